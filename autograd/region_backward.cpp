// The backward functions of plans (autograd/region_plan.h): the formulas of the body's nodes in
// reverse, on values that are saved or computed again from them.
#include <algorithm>
#include <bit>

#include "autograd/formula_graph.h"
#include "autograd/region_graphs.h"
#include "autograd/region_plan.h"
#include "core/error.h"
#include "ir/shape_facts.h"
#include "passes/dead_code_elimination.h"

namespace wick::autograd {

using Source = GradientFunction::Source;

// Builds one backward function.
class RegionBackward {
 public:
  RegionBackward(const RegionPlan& plan, Ends walk)
      : plan_(plan),
        walk_(walk),
        leading_(plan.operators_->valuesLeadingTo(walk.arguments)),
        graph_(std::make_shared<Graph>()) {
    for (size_t i = 0; i < plan.saved_.size(); ++i) {
      const Value* v = plan.saved_values_[i];
      inside_[v] = parameter({Parameter::Kind::Saved, i}, v->type());
    }
    if (plan.symbols_.empty()) return;
    // A tensor that has the numbers as its sizes, so that passes know what is equal to what. In the
    // end ints take its place.
    carrier_ = parameter({Parameter::Kind::Number, 0}, tensorType(DType::Float, plan.symbols_));
  }

  // Null where a formula does not fit, or reads what can be had no more.
  std::unique_ptr<RegionPlan::Backward> build() {
    for (size_t i = 0; i < plan_.forward_results_.size(); ++i) {
      const Value* result = plan_.forward_results_[i];
      if ((walk_.results >> i & 1) == 0 || !plan_.results_need_it_[i]) continue;
      accumulate(result, parameter({Parameter::Kind::Gradient, i}, result->type()));
    }
    std::vector<const wick::Node*> nodes(plan_.body_->nodes().begin(), plan_.body_->nodes().end());
    for (size_t n = nodes.size(); n-- > 0;) {
      if (!differentiate(nodes[n])) return nullptr;
    }
    made_->passage.passed = plan_.operators_->passed(walk_);
    made_->passage.kept = plan_.uses_->keptBy(made_->passage.passed);
    std::vector<Value*> results;
    for (size_t k = 0; k < plan_.arguments_.size(); ++k) {
      const size_t argument = plan_.arguments_[k];
      const auto found = gradients_.find(plan_.body_->inputs()[argument]);
      if (found == gradients_.end() || (walk_.arguments >> argument & 1) == 0) continue;
      made_->found.push_back(k);
      results.push_back(found->second);
    }
    if (results.empty()) return std::move(made_);
    graph_->registerOutput(graph_->insertNode(graph_->createTuple(results))->output());
    simplify();
    if (carrier_ && !replaceCarrier()) return nullptr;
    dropUnread();
    made_->unit = std::make_shared<CompilationUnit>();
    made_->function = made_->unit->createFunction("__torch__.backward", graph_);
    return std::move(made_);
  }

 private:
  using Parameter = RegionPlan::Backward::Parameter;

  Value* parameter(Parameter which, TypePtr type) {
    made_->parameters.push_back(which);
    return graph_->block()->addInput(std::move(type));
  }

  void simplify() {
    withoutComplexNumbers(*graph_);
    foldShapes(*graph_);
  }

  // An int for each size of the carrier that is read. False where something else reads it.
  bool replaceCarrier() {
    std::vector<wick::Node*> readers;
    for (const Use& use : carrier_->uses()) readers.push_back(use.user);
    std::unordered_map<int64_t, Value*> ints;
    for (wick::Node* reader : readers) {
      if (reader->kind() != aten::size || reader->inputs().size() != 2) return false;
      const std::optional<int64_t> d = intOf(reader->input(1));
      if (!d) return false;
      Value*& v = ints[*d];
      if (!v) v = parameter({Parameter::Kind::Number, static_cast<size_t>(*d)}, types::Int());
      reader->output()->replaceAllUsesWith(v);
      reader->destroy();
    }
    return true;
  }

  void dropUnread() {
    eliminateDeadCode(*graph_);
    for (size_t i = graph_->inputs().size(); i-- > 0;) {
      Value* input = graph_->inputs()[i];
      if (!input->uses().empty()) {
        // The function's own executor finds out.
        if (isTensor(input)) input->setType(types::Tensor());
        continue;
      }
      graph_->block()->eraseInput(i);
      made_->parameters.erase(made_->parameters.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  // A size as an int; the sizes of what the plan counts among its numbers are known.
  Value* numberFor(int64_t size) {
    if (size >= 0) return graph_->insertConstant(IValue(size));
    Value*& v = ints_[size];
    if (v) return v;
    const auto found = std::ranges::find(plan_.symbols_, size);
    WICK_ASSERT(found != plan_.symbols_.end(), "a size that no call finds");
    // At the front, so that all may read it.
    wick::Node* node = graph_->create(aten::size, {carrier_, carrier_});
    node->output()->setType(types::Int());
    graph_->block()->prependNode(node);
    const auto d = static_cast<int64_t>(found - plan_.symbols_.begin());
    node->replaceInput(1,
                       graph_->block()->prependNode(graph_->createConstant(IValue(d)))->output());
    return v = node->output();
  }
  Value* sizesFor(const Value* of) {
    const KnownSizes sizes = *knownSizes(of);
    if (std::ranges::all_of(sizes, [](int64_t s) { return s >= 0; })) {
      return graph_->insertConstant(IValue(makeIntList(sizes)),
                                    std::make_shared<const ListType>(types::Int()));
    }
    std::vector<Value*> elements;
    for (const int64_t s : sizes) elements.push_back(numberFor(s));
    return graph_->insertNode(graph_->createList(types::Int(), elements))->output();
  }

  void accumulate(const Value* of, Value* gradient) {
    accumulateGradient(*graph_, gradients_[of], gradient);
  }

  // A forward value, computed again where it is not saved; null when it cannot be.
  Value* valueOf(Value* v) {
    if (const auto found = inside_.find(v); found != inside_.end()) return found->second;
    if (const auto symbol = plan_.symbolOf(v)) return inside_[v] = numberFor(*symbol);
    const wick::Node* node = v->node();
    if (!isConstant(v) && !isCheap(node)) return nullptr;
    std::unordered_map<Value*, Value*> map;
    for (Value* input : node->inputs()) {
      Value* made = valueOf(input);
      if (!made) return nullptr;
      map[input] = made;
    }
    wick::Node* copy = graph_->insertNode(graph_->createClone(node, map));
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      inside_[node->output(i)] = copy->output(i);
    }
    return inside_.at(v);
  }

  Value* argumentFor(const Source& source, const wick::Node* node, Value* gradient) {
    if (source.kind == Source::Kind::Gradients) return gradient;
    if (source.kind == Source::Kind::Gradient) {
      return source.part == Source::Part::Size ? sizesFor(node->output()) : gradient;
    }
    Value* v = source.kind == Source::Kind::Argument ? node->input(source.index) : node->output();
    if (source.part != Source::Part::Size) return valueOf(v);
    if (!isTensorList(v)) return sizesFor(v);
    std::vector<Value*> sizes;
    for (const Value* element : v->node()->inputs()) sizes.push_back(sizesFor(element));
    const TypePtr ints = std::make_shared<const ListType>(types::Int());
    return graph_->insertNode(graph_->createList(ints, sizes))->output();
  }

  // The parts' gradients as a list: zeros where nothing depends on a part.
  void gatherParts(const wick::Node* unpack) {
    if (std::ranges::none_of(unpack->outputs(),
                             [&](const Value* v) { return gradients_.count(v) != 0; })) {
      return;
    }
    std::vector<Value*> parts;
    for (const Value* part : unpack->outputs()) {
      const auto found = gradients_.find(part);
      if (found != gradients_.end()) {
        parts.push_back(found->second);
        continue;
      }
      Value* dtype = graph_->insertConstant(IValue(static_cast<int64_t>(dtypeOf(part))));
      Value* none = graph_->insertConstant(IValue());
      parts.push_back(insertTensor(*graph_, "zeros", {sizesFor(part), dtype, none, none, none}));
    }
    gradients_[unpack->input(0)] =
        graph_->insertNode(graph_->createList(types::Tensor(), parts))->output();
  }

  // The gradients of a list's elements.
  void spreadParts(const wick::Node* list) {
    const auto found = gradients_.find(list->output());
    if (found == gradients_.end()) return;
    for (size_t i = 0; i < list->inputs().size(); ++i) {
      if (leading_.count(list->input(i)) == 0) continue;
      Value* index = graph_->insertConstant(IValue(static_cast<int64_t>(i)));
      wick::Node* element = graph_->create(aten::__getitem__, {found->second, index});
      element->output()->setType(types::Tensor());
      accumulate(list->input(i), graph_->insertNode(element)->output());
    }
  }

  // Adds the gradients of the node's inputs that need them.
  bool differentiate(const wick::Node* node) {
    if (node->kind() == prim::ListUnpack) {
      if (leading_.count(node->input(0)) != 0) gatherParts(node);
      return true;
    }
    if (node->kind() == prim::ListConstruct) {
      if (isTensorList(node->output())) spreadParts(node);
      return true;
    }
    if (node->outputs().size() != 1) return node->outputs().empty();
    const auto found = gradients_.find(node->output());
    if (found == gradients_.end()) return true;
    const Rule& rule = ruleOf(*node->maybeOperator());
    uint64_t wanted = wantedInputs(node, plan_.needed_);
    for (uint64_t rest = wanted; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(rest));
      if (leading_.count(node->input(i)) == 0) wanted &= ~(uint64_t{1} << i);
    }
    if (wanted == 0) return true;
    const GradientFunction& gradients = rule.gradients(wanted);
    const RangeGuard range(graph_.get(), node->range());
    std::vector<Value*> arguments;
    for (const Source& source : gradients.sources) {
      arguments.push_back(argumentFor(source, node, found->second));
      if (!arguments.back()) return false;
    }
    const std::vector<Value*> results =
        inlineGraph(*graph_, *gradients.function->graph(), arguments);
    const wick::Node* made = results[0]->node();
    for (size_t k = 0; k < gradients.arguments.size(); ++k) {
      const Value* input = node->input(gradients.arguments[k]);
      Value* gradient = made->input(k);
      if (isTensorList(input)) {
        // Several readers of one list: how to add is not said.
        if (!gradients_.try_emplace(input, gradient).second) return false;
        continue;
      }
      if (!isPointwise(node) || *knownSizes(input) != *knownSizes(node->output())) {
        gradient = insertTensor(*graph_, "sum_to_size", {gradient, sizesFor(input)});
      }
      accumulate(input, gradient);
    }
    return true;
  }

  const RegionPlan& plan_;
  const Ends walk_;
  const std::unordered_set<const Value*> leading_;  // values whose gradients are wanted
  std::shared_ptr<Graph> graph_;
  std::unique_ptr<RegionPlan::Backward> made_ = std::make_unique<RegionPlan::Backward>();
  Value* carrier_ = nullptr;                  // null when all sizes are numbers
  std::unordered_map<int64_t, Value*> ints_;  // by symbol
  std::unordered_map<const Value*, Value*> inside_;
  std::unordered_map<const Value*, Value*> gradients_;
};

std::shared_ptr<const RegionPlan::Backward> RegionPlan::build(Ends walk) const {
  return RegionBackward(*this, walk).build();
}

}  // namespace wick::autograd

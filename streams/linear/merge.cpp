// Every value that a linear filter gives has forms: the filter that computes it at once from a value
// further in front. A value that several read ends a form, because it is computed in any case. Forms
// are made from those of the inputs, in the order of the nodes, and for each value the cheapest way
// is kept: its own node on the cheapest inputs, or one of its forms. Backwards, from the values that
// others read, the forms that were chosen become nodes.
//
//   %a : Tensor = aten::conv1d(%x, %w1, …)        %c : Tensor = aten::conv1d(%x, %w, …)
//   %b : Tensor = aten::conv1d(%x, %w2, …)   →
//   %c : Tensor = aten::add(%a, %b, %one)
#include "streams/linear/merge.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "ir/alias_db.h"
#include "ir/shape_facts.h"
#include "passes/dead_code_elimination.h"
#include "passes/propagate_types.h"
#include "streams/linear/fir.h"

namespace wick::streams {

namespace {

// What a filter costs beside its products, and what a number costs that is written and read again,
// in products an element.
constexpr double kPerFilter = 64;
constexpr double kPerChannel = 8;
// Forms that are kept of a value; the nearest ones.
constexpr size_t kMostForms = 12;

const Symbol kCat = Symbol::aten("cat");

struct Form {
  Value* source;
  std::shared_ptr<const Fir> fir;
};

struct Known {
  std::vector<Form> forms;
  double own_cost = 0;   // of the node alone, for each element of the region's input
  double best_cost = 0;  // of the cheapest way to compute it from what is computed in any case
  std::optional<size_t> choice;  // a form; none: its own node
  double rate = 1;               // elements for each of the region's input
  int64_t channels = 0;
};

std::optional<std::vector<double>> numbersOf(const Value* value) {
  const std::optional<IValue> constant = constantOf(value);
  if (!constant || !constant->isTensor() || !constant->toTensor().defined()) return std::nullopt;
  const Tensor& tensor = constant->toTensor();
  if (!isFloating(tensor.dtype()) || !tensor.device().isCpu() || tensor.numel() > kMostWeights) {
    return std::nullopt;
  }
  const Tensor doubles = tensor.to(DType::Double).contiguous();
  return std::vector<double>(doubles.data<double>(), doubles.data<double>() + doubles.numel());
}

// The filter of a convolution node, when all of it is constant.
std::optional<Fir> firOf(const Node* node) {
  static const Symbol kConv1d = Symbol::aten("conv1d");
  const bool general = node->kind() == aten::_convolution;
  if (!general && node->kind() != kConv1d) return std::nullopt;
  if (node->inputs().size() < 7 || (general && boolOf(node->input(6)) != false))
    return std::nullopt;
  const std::optional<IValue> weight = constantOf(node->input(1));
  if (!weight || !weight->isTensor() || weight->toTensor().dim() != 3) return std::nullopt;
  const Tensor& w = weight->toTensor();
  const auto stride = intsOf(node->input(3), 1), padding = intsOf(node->input(4), 1);
  const auto dilation = intsOf(node->input(5), 1);
  const auto groups = intOf(node->input(general ? 8 : 6));
  if (!stride || !padding || !dilation || groups != 1 || stride->size() != 1 ||
      padding->size() != 1 || dilation->size() != 1) {
    return std::nullopt;
  }
  constexpr int64_t kMost = 1 << 20;
  if (stride->at(0) < 1 || stride->at(0) > kMost || padding->at(0) < 0 || padding->at(0) > kMost ||
      dilation->at(0) < 1 || dilation->at(0) > kMost || w.numel() == 0 || w.size(2) > kMost) {
    return std::nullopt;
  }
  const auto numbers = numbersOf(node->input(1));
  std::optional<Fir> fir = makeFir(w.size(0), w.size(1), (w.size(2) - 1) * dilation->at(0) + 1);
  if (!numbers || !fir) return std::nullopt;
  for (int64_t row = 0; row < w.size(0) * w.size(1); ++row) {
    for (int64_t k = 0; k < w.size(2); ++k) {
      fir->weight[static_cast<size_t>(row * fir->taps + k * dilation->at(0))] =
          (*numbers)[static_cast<size_t>(row * w.size(2) + k)];
    }
  }
  if (!isNoneConstant(node->input(2))) {
    const auto bias = numbersOf(node->input(2));
    if (!bias || static_cast<int64_t>(bias->size()) != fir->out) return std::nullopt;
    fir->bias = *bias;
  }
  fir->stride = stride->at(0);
  fir->padding = padding->at(0);
  return fir;
}

class Merger {
 public:
  explicit Merger(Graph& graph) : graph_(graph), aliases_(graph) {}

  MergeReport run() {
    for (Node* node : graph_.nodes()) {
      if (node->outputs().size() == 1) visit(node);
    }
    choose();
    eliminateDeadCode(graph_);
    return report_;
  }

 private:
  // Whether the value is one of a linear filter that only one node reads, so that it need not exist.
  const Known* inner(Value* value) const {
    const auto known = known_.find(value);
    return known != known_.end() && value->uses().size() == 1 ? &known->second : nullptr;
  }

  // What computing the value costs its only reader; nothing when it is there in any case.
  double costOf(Value* value) const {
    const Known* known = inner(value);
    return known ? known->best_cost : 0;
  }
  double rateOf(Value* value) const {
    const auto known = known_.find(value);
    return known == known_.end() ? 1 : known->second.rate;
  }

  static double costOf(const Fir& fir, double rate_of_source) {
    const double rate = rate_of_source / static_cast<double>(fir.stride);
    return kPerFilter + rate * (2 * static_cast<double>(fir.out * fir.in * fir.taps) +
                                kPerChannel * static_cast<double>(fir.out));
  }
  double costOf(const Form& form) const {
    return costOf(*form.fir, rateOf(form.source)) + costOf(form.source);
  }

  void visit(Node* node) {
    if (aliases_.hasWriters(node)) return;
    Known made;
    if (auto fir = firOf(node)) {
      convolution(node, std::make_shared<const Fir>(*std::move(fir)), made);
    } else if (!product(node, made) && !addition(node, made) && !join(node, made)) {
      return;
    }
    if (made.forms.empty()) return;
    if (made.forms.size() > kMostForms) made.forms.resize(kMostForms);
    made.channels = made.forms[0].fir->out;
    made.rate = rateOf(made.forms[0].source) / static_cast<double>(made.forms[0].fir->stride);
    if (made.own_cost == 0) {  // not a convolution: a pass over its results
      made.own_cost = kPerFilter + made.rate * kPerChannel * static_cast<double>(made.channels);
    }
    made.best_cost = made.own_cost;
    for (Value* input : node->inputs()) made.best_cost += costOf(input);
    for (size_t i = 0; i < made.forms.size(); ++i) {
      const double cost = costOf(made.forms[i]);
      if (cost < made.best_cost) {
        made.best_cost = cost;
        made.choice = i;
      }
    }
    known_.emplace(node->output(), std::move(made));
  }

  // A form of one filter that is the node itself costs the same and is no choice.
  void convolution(Node* node, std::shared_ptr<const Fir> fir, Known& made) {
    Value* input = node->input(0);
    made.own_cost = costOf(*fir, rateOf(input));
    made.forms.push_back({input, fir});
    const Known* before = inner(input);
    if (!before) return;
    for (const Form& form : before->forms) {
      if (auto both = compose(*form.fir, *fir)) {
        made.forms.push_back({form.source, std::make_shared<const Fir>(*std::move(both))});
      }
    }
  }

  bool product(Node* node, Known& made) {
    const bool divides = node->kind() == aten::div;
    if ((node->kind() != aten::mul && !divides) || node->inputs().size() != 2) return false;
    const std::optional<double> factor = floatOf(node->input(1));
    const Known* before = inner(node->input(0));
    if (!factor || !before || (divides && *factor == 0)) return false;
    for (const Form& form : before->forms) {
      made.forms.push_back({form.source, std::make_shared<const Fir>(
                                             scaled(*form.fir, divides ? 1 / *factor : *factor))});
    }
    return true;
  }

  // The forms of an operand, and that it is itself.
  std::vector<Form> formsOf(Value* value, int64_t channels) const {
    std::vector<Form> forms;
    if (const Known* known = inner(value)) forms = known->forms;
    if (auto identity = identityFir(channels)) {
      forms.push_back({value, std::make_shared<const Fir>(*std::move(identity))});
    }
    return forms;
  }
  int64_t channelsOf(Value* value) const {
    const auto known = known_.find(value);
    return known == known_.end() ? 0 : known->second.channels;
  }

  bool addition(Node* node, Known& made) {
    const bool subtracts = node->kind() == aten::sub;
    if ((node->kind() != aten::add && !subtracts) || node->inputs().size() != 3) return false;
    const std::optional<double> alpha = floatOf(node->input(2));
    Value* a = node->input(0);
    Value* b = node->input(1);
    const int64_t channels = std::max(channelsOf(a), channelsOf(b));
    const bool tensors =
        a->type()->kind() == TypeKind::Tensor && b->type()->kind() == TypeKind::Tensor;
    if (!alpha || channels == 0 || !tensors) return false;
    for (const Form& left : formsOf(a, channels)) {
      for (const Form& right : formsOf(b, channels)) {
        if (left.source != right.source) continue;
        if (auto both = sum(*left.fir, *right.fir, subtracts ? -*alpha : *alpha)) {
          made.forms.push_back({left.source, std::make_shared<const Fir>(*std::move(both))});
        }
      }
    }
    return true;
  }

  // cat of channels; that they are the second dimension of three must be known.
  bool join(Node* node, Known& made) {
    if (node->kind() != kCat || node->inputs().size() != 2) return false;
    const auto parts = literalElements(node->input(0));
    const auto dim = intOf(node->input(1));
    const TensorFacts* facts = factsOf(node->output());
    const bool three = facts && facts->dim == std::optional<size_t>(3);
    if (!parts || parts->size() < 2 || !dim || !(*dim == -2 || (*dim == 1 && three))) return false;
    for (Value* part : *parts) {
      if (!inner(part)) return false;
    }
    for (const Form& first : inner(parts->at(0))->forms) {
      std::vector<const Fir*> firs;
      for (Value* part : *parts) {
        for (const Form& form : inner(part)->forms) {
          if (form.source != first.source) continue;
          firs.push_back(form.fir.get());
          break;
        }
      }
      if (firs.size() != parts->size()) continue;
      if (auto all = stack(firs)) {
        made.forms.push_back({first.source, std::make_shared<const Fir>(*std::move(all))});
      }
    }
    // The list stands between the node and what it joins.
    double parts_cost = 0;
    for (Value* part : *parts) parts_cost += costOf(part);
    made.own_cost = kPerFilter + parts_cost;
    return true;
  }

  void choose() {
    std::vector<Node*> nodes;
    for (Node* node : graph_.nodes()) nodes.push_back(node);
    std::unordered_map<const Value*, bool> covered;  // values that a chosen form computes within
    for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
      Node* node = *it;
      if (node->outputs().size() != 1) continue;
      const auto known = known_.find(node->output());
      if (known == known_.end() || covered.contains(node->output())) continue;
      if (!known->second.choice) continue;
      replace(node, known->second.forms[*known->second.choice], covered);
    }
  }

  // Marks what lies between a form's source and the node's inputs.
  void cover(Node* node, const Value* source, std::unordered_map<const Value*, bool>& covered) {
    std::vector<Node*> open{node};
    while (!open.empty()) {
      Node* at = open.back();
      open.pop_back();
      ++report_.before;
      std::vector<Value*> inputs = at->inputs();
      if (at->kind() == kCat) inputs = literalElements(at->input(0)).value_or(inputs);
      for (Value* input : inputs) {
        if (input == source || !inner(input)) continue;
        covered[input] = true;
        open.push_back(input->node());
      }
    }
  }

  void replace(Node* node, const Form& form, std::unordered_map<const Value*, bool>& covered) {
    const DType dtype = dtypeOf(node);
    cover(node, form.source, covered);
    InsertPointGuard guard(node);
    RangeGuard range(&graph_, node->range());
    const Fir& fir = *form.fir;
    const auto list = [&](int64_t n) { return graph_.insertConstant(IValue(makeIntList({n}))); };
    const DimVector sizes{fir.out, fir.in, fir.taps};
    Value* weight =
        graph_.insertConstant(IValue(Tensor::fromData(fir.weight.data(), sizes).to(dtype)));
    const bool has_bias = std::ranges::any_of(fir.bias, [](double b) { return b != 0; });
    Value* bias = has_bias ? graph_.insertConstant(IValue(
                                 Tensor::fromData(fir.bias.data(), DimVector{fir.out}).to(dtype)))
                           : graph_.insertNode(graph_.createNone())->output();
    Node* merged = graph_.insertNode(graph_.create(
        Symbol::aten("conv1d"), {form.source, weight, bias, list(fir.stride), list(fir.padding),
                                 list(1), graph_.insertConstant(IValue(int64_t{1}))}));
    merged->setInlinedFrom(node->inlinedFrom());
    merged->output()->setType(node->output()->type());
    node->output()->replaceAllUsesWith(merged->output());
    ++report_.after;
  }

  // That of the weights of any convolution in front.
  static DType dtypeOf(Node* node) {
    std::vector<Node*> open{node};
    while (!open.empty()) {
      Node* at = open.back();
      open.pop_back();
      for (Value* input : at->inputs()) {
        const std::optional<IValue> constant = constantOf(input);
        if (constant && constant->isTensor() && constant->toTensor().defined()) {
          return constant->toTensor().dtype();
        }
      }
      for (Value* input : at->inputs()) {
        if (input->node()->kind() != prim::Param) open.push_back(input->node());
      }
    }
    return DType::Float;
  }

  Graph& graph_;
  AliasDb aliases_;
  std::unordered_map<Value*, Known> known_;
  MergeReport report_;
};

}  // namespace

MergeReport mergeLinearFilters(Graph& graph) {
  return Merger(graph).run();
}

std::pair<std::shared_ptr<GraphFunction>, MergeReport> mergeLinear(
    const std::shared_ptr<GraphFunction>& function, const std::vector<IValue>& example) {
  function->ensureDefined();
  const std::shared_ptr<Graph> typed = function->graph()->copy();
  for (size_t i = 0; i < typed->inputs().size() && i < example.size(); ++i) {
    if (!example[i].isTensor() || !example[i].toTensor().defined()) continue;
    TensorFacts facts;
    facts.dtype = example[i].toTensor().dtype();
    facts.dim = static_cast<size_t>(example[i].toTensor().dim());
    typed->inputs()[i]->setType(TensorType::create(std::move(facts)));
  }
  propagateTypes(*typed);
  const MergeReport report = mergeLinearFilters(*typed);
  std::shared_ptr<GraphFunction> merged(new GraphFunction(function->qualifiedName(), typed),
                                        [function](GraphFunction* f) { delete f; });
  merged->setSchema(function->schema());
  return {std::move(merged), report};
}

}  // namespace wick::streams

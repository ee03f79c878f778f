// The nodes of the graph's block, without constants, in their order. First it is settled between
// which neighbours a filter may end; what lies between two such places is a unit. Units of one
// layer, and small ones with the unit behind them, become one filter. So every filter is a run of
// nodes, and the filters in their order compute the program.
#include "streams/from_method.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/budget.h"
#include "core/error.h"
#include "ir/alias_db.h"
#include "passes/inline_calls.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/module_paths.h"

namespace wick::streams {

namespace {

constexpr size_t kLongText = 60;

bool isEverywhere(const Node* node) {
  return node->kind() == prim::Constant || node->kind() == prim::Uninitialized;
}

// Calls `visit` for the node and all within its blocks.
template <class F>
void visitNodes(const Node* node, F&& visit) {
  std::vector<const Node*> open{node};
  while (!open.empty()) {
    const Node* at = open.back();
    open.pop_back();
    visit(at);
    for (const Block* block : at->blocks()) {
      for (const Node* inner : block->nodes()) open.push_back(inner);
    }
  }
}

// Calls `visit` for every value that the node, or its blocks, read.
template <class F>
void visitReads(const Node* node, F&& visit) {
  visitNodes(node, [&](const Node* n) {
    for (const Value* input : n->inputs()) visit(input);
    for (const Block* block : n->blocks()) {
      for (const Value* output : block->outputs()) visit(output);
    }
  });
}

// Whether calls under way at the same time could notice each other at this node.
bool outlivesCall(const AliasDb& aliases, const Node* top) {
  bool found = false;
  visitNodes(top, [&](const Node* node) {
    if (isEverywhere(node) || node->kind() == prim::RaiseException) return;
    if (aliases.writesOutside(node) || node->kind() == prim::SetAttr) found = true;
    if (!node->blocks().empty()) return;
    if (node->isNondeterministic() || aliases.hasOrderedEffects(node)) found = true;
  });
  return found;
}

// Whether it computes nothing that takes time: views, questions for sizes, containers, checks.
bool isSmall(const Node* top) {
  bool small = true;
  visitNodes(top, [&](const Node* node) {
    if (isEverywhere(node) || node->kind() == prim::If || node->kind() == prim::RaiseException) {
      return;
    }
    if (node->kind() == prim::Loop) small = false;
    if (node->kind().isPrim() && node->blocks().empty() && node->kind() != prim::CallFunction &&
        node->kind() != prim::CallMethod) {
      return;
    }
    if (kernelKindOf(node) == FusionKind::View) return;
    for (const Value* output : node->outputs()) {
      const auto* list = output->type()->as<ListType>();
      const TypeKind kind = list ? list->element()->kind() : output->type()->kind();
      if (kind != TypeKind::Int && kind != TypeKind::Bool && kind != TypeKind::Float) small = false;
    }
  });
  return small;
}

std::string classOf(const ClassType& type) {
  const std::string name = type.annotation();
  return name.substr(name.rfind('.') + 1);
}

struct Unit {
  size_t begin = 0;  // of the nodes
  size_t end = 0;
  const Node* main = nullptr;  // what the filter is named after
  bool small = false;
  bool stateful = false;
  std::string path;        // of the module, may be empty
  std::string class_name;  // of the module
  bool is_layer = false;   // a module of torch.nn without submodules
  std::string group;       // neighbours of one group are one filter; empty: alone
  const LayerRule* grain = nullptr;
};

class Builder {
 public:
  Builder(const std::shared_ptr<GraphFunction>& program, GraphFunction* method,
          const Module* module, const Overrides& overrides)
      : program_(program),
        method_(method),
        module_(module),
        overrides_(overrides),
        used_(overrides.rules.size()),
        graph_(*program->graph()),
        aliases_(*program->graph()) {}

  StreamGraph build() {
    for (const Node* node : graph_.nodes()) {
      if (isEverywhere(node)) continue;
      index_[node] = nodes_.size();
      nodes_.push_back(node);
    }
    findEnds();
    makeUnits();
    joinUnits();
    for (const Unit& unit : units_) addFilter(unit);
    finish();
    return std::move(result_);
  }

 private:
  // The node of the graph's block that makes the value; null for inputs, constants and values of
  // inner blocks.
  std::optional<size_t> makerOf(const Value* value) const {
    const auto found = index_.find(value->node());
    return found == index_.end() ? std::nullopt : std::optional<size_t>(found->second);
  }

  // No filter ends between the nodes.
  void forbid(size_t first, size_t last) {
    ++begun_[first + 1];
    --begun_[last + 1];
  }

  void findEnds() {
    begun_.assign(nodes_.size() + 2, 0);
    keepGroups();
    keepState();
    may_end_.assign(nodes_.size() + 1, true);
    int64_t open = 0;
    for (size_t i = 0; i <= nodes_.size(); ++i) {
      open += begun_[i];
      may_end_[i] = open == 0;
    }
  }

  void keepState() {
    // What outlives a call is one filter.
    std::optional<size_t> first, last;
    stateful_.assign(nodes_.size(), false);
    bool any = false;
    for (const Node* node : nodes_) any = any || outlivesCall(aliases_, node);
    for (size_t i = 0; any && i < nodes_.size(); ++i) {
      const bool reads = aliases_.hasWriters(nodes_[i]);
      if (!reads && !outlivesCall(aliases_, nodes_[i])) continue;
      if (!first) first = i;
      last = i;
    }
    if (!first) return;
    forbid(*first, *last);
    for (size_t i = *first; i <= *last; ++i) stateful_[i] = true;
  }

  // Neighbours that one kernel may compute stay together: sums within a kernel are added in another
  // order than an operator does.
  void keepGroups() {
    std::vector<FusionKind> kinds;
    std::vector<size_t> breaks{0};  // nodes before each that no kernel takes and that compute
    for (const Node* node : nodes_) {
      kinds.push_back(node->blocks().empty() ? kernelKindOf(node) : FusionKind::None);
      const bool breaks_group = kinds.back() == FusionKind::None && !isSmall(node);
      breaks.push_back(breaks.back() + (breaks_group ? 1 : 0));
    }
    std::unordered_map<const Value*, size_t> last_reader;
    const auto sums = [&](size_t i) {
      return kinds[i] == FusionKind::Reduction || kinds[i] == FusionKind::Composite;
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      checkBudget();
      if (kinds[i] == FusionKind::None) continue;
      for (const Value* input : nodes_[i]->inputs()) {
        const std::optional<size_t> maker = makerOf(input);
        if (maker && kinds[*maker] != FusionKind::None && breaks[*maker] == breaks[i]) {
          forbid(*maker, i);
        }
        if (isEverywhere(input->node())) continue;
        const auto [reader, is_new] = last_reader.emplace(input, i);
        if (!is_new) {
          const size_t before = std::exchange(reader->second, i);
          if (breaks[before] == breaks[i] && (sums(before) || sums(i))) forbid(before, i);
        }
      }
    }
  }

  void makeUnits() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (i == 0 || may_end_[i]) units_.emplace_back().begin = i;
      units_.back().end = i + 1;
      units_.back().stateful = units_.back().stateful || stateful_[i];
    }
    for (Unit& unit : units_) describe(unit);
  }

  void describe(Unit& unit) {
    checkBudget();
    unit.small = true;
    for (size_t i = unit.begin; i < unit.end; ++i) {
      const Node* node = nodes_[i];
      if (isSmall(node)) continue;
      unit.small = false;
      const bool heavier = !unit.main || (kernelKindOf(unit.main) != FusionKind::None &&
                                          kernelKindOf(node) == FusionKind::None);
      if (heavier) unit.main = node;
    }
    if (!unit.main) unit.main = nodes_[unit.begin];
    if (method_) unit.path = modulePathOf(*method_, *unit.main);
    if (module_ && !unit.path.empty()) describeModule(unit);
    for (size_t r = 0; r < overrides_.rules.size(); ++r) {
      const LayerRule& rule = overrides_.rules[r];
      if (rule.grain && fits(rule, unit)) unit.grain = &rule;
    }
    if (unit.grain && *unit.grain->grain == LayerRule::Grain::Module) {
      unit.group = "module " + pathFor(*unit.grain, unit);
    } else if (unit.is_layer && !unit.grain) {
      unit.group = "layer " + unit.path;
    }
  }

  void describeModule(Unit& unit) {
    try {
      const Module inner = module_->submodule(unit.path);
      unit.class_name = classOf(*inner.type());
      // What is left of some layers are checks, which belong to the filter behind them.
      bool gives = false;
      for (size_t i = unit.begin; i < unit.end; ++i) {
        for (const Value* output : nodes_[i]->outputs()) {
          gives = gives || readBehind(*output, unit.end);
        }
      }
      unit.is_layer = gives && inner.children().empty() &&
                      inner.type()->annotation().starts_with("__torch__.torch.nn.");
    } catch (const UsageError&) {  // a module that the paths do not lead to has no class
    }
  }

  // The module that the rule means: the unit's own, or the outermost around it that fits.
  std::string pathFor(const LayerRule& rule, const Unit& unit) const {
    for (size_t dot = unit.path.find('.'); dot != std::string::npos;
         dot = unit.path.find('.', dot + 1)) {
      const std::string outer = unit.path.substr(0, dot);
      if (!rule.layer.empty() && fitsPattern(rule.layer, outer)) return outer;
    }
    return unit.path;
  }

  bool fits(const LayerRule& rule, const Unit& unit) {
    if (!rule.layer.empty()) {
      const bool module = rule.grain && *rule.grain == LayerRule::Grain::Module;
      const std::string path = module ? pathFor(rule, unit) : unit.path;
      if (path.empty() || !fitsPattern(rule.layer, path)) return false;
    }
    if (!rule.class_name.empty() && !fitsPattern(rule.class_name, unit.class_name)) return false;
    if (!rule.op.empty() && !fitsPattern(rule.op, unit.main->kind().qualString())) return false;
    used_[static_cast<size_t>(&rule - overrides_.rules.data())] = true;
    return true;
  }

  static void take(Unit& into, const Unit& unit) {
    into.end = unit.end;
    into.stateful = into.stateful || unit.stateful;
    if (into.small && !unit.small) {
      const size_t begin = into.begin;
      const size_t end = into.end;
      const bool stateful = into.stateful;
      into = unit;
      into.begin = begin;
      into.end = end;
      into.stateful = stateful;
    }
  }

  void joinUnits() {
    // A module that a rule makes one filter reaches from its first node to its last.
    std::map<std::string, size_t> last_of;
    for (size_t i = 0; i < units_.size(); ++i) {
      if (units_[i].group.starts_with("module ")) last_of[units_[i].group] = i;
    }
    std::vector<Unit> joined;
    size_t together_until = 0;
    std::string module_group;
    for (size_t i = 0; i < units_.size(); ++i) {
      const Unit& unit = units_[i];
      if (unit.group.starts_with("module ") && i >= together_until) module_group = unit.group;
      const bool before = unit.grain && *unit.grain->grain == LayerRule::Grain::Before;
      const bool same = !joined.empty() && !unit.group.empty() &&
                        joined.back().group == unit.group &&
                        sameCall(*joined.back().main, *unit.main);
      const bool into_small =
          !joined.empty() && joined.back().small && !joined.back().is_layer && !joined.back().grain;
      if (!joined.empty() && (i < together_until || before || same || into_small)) {
        take(joined.back(), unit);
        if (i < together_until) joined.back().group = module_group;
      } else {
        joined.push_back(unit);
      }
      if (const auto last = last_of.find(unit.group); last != last_of.end()) {
        together_until = std::max(together_until, last->second + 1);
      }
    }
    // What is left at the end belongs to the filter before it.
    if (joined.size() > 1 && joined.back().small && !joined.back().is_layer &&
        !joined.back().grain) {
      const Unit last = joined.back();
      joined.pop_back();
      joined.back().end = last.end;
      joined.back().stateful = joined.back().stateful || last.stateful;
    }
    units_ = std::move(joined);
  }

  // Whether both were inlined from one call: a layer that is called twice is two filters.
  static bool sameCall(const Node& a, const Node& b) { return a.inlinedFrom() == b.inlinedFrom(); }

  std::string uniqueName(const Unit& unit, const std::string& kind) {
    std::string name = unit.path;
    if (name.empty() || !(unit.is_layer || unit.group.starts_with("module "))) {
      name += (name.empty() ? "" : ".") + kind;
    }
    if (unit.group.starts_with("module ")) name = unit.group.substr(7);
    const size_t count = names_[name]++;
    if (count == 0) return name;
    std::string numbered = fmt::format("{}_{}", name, count);
    while (names_.contains(numbered)) numbered += "_";
    names_[numbered] = 1;
    return numbered;
  }

  static std::string operatorName(const Node& node) {
    std::string name(node.kind().name());
    if (name.ends_with("_fused")) name.resize(name.size() - 6);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
  }

  // Names of values as the text form can spell them.
  static std::string nameOf(const Value& value) {
    std::string name = value.debugName();
    for (char& c : name) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.';
      if (!plain) c = '_';
    }
    return name;
  }

  static Port portOf(const Value& value) {
    return {nameOf(value), value.type()->annotation(), 1, 1, 0};
  }

  void addFilter(const Unit& unit) {
    checkBudget();
    Filter filter;
    filter.kind = operatorName(*unit.main);
    if (unit.is_layer && !unit.class_name.empty()) {
      filter.kind = unit.class_name;
      std::ranges::transform(filter.kind, filter.kind.begin(),
                             [](unsigned char c) { return std::tolower(c); });
    }
    if (unit.group.starts_with("module ")) filter.kind = "module";
    filter.stateful = unit.stateful;
    const LayerRule rule = ruleFor(unit);
    if (rule.filter_name) filter.kind = *rule.filter_name;
    if (rule.stateful) filter.stateful = filter.stateful || *rule.stateful;
    if (rule.replicas) filter.most_replicas = *rule.replicas;
    filter.name = uniqueName(unit, filter.kind);
    std::unordered_set<const Value*> made, read;
    std::vector<std::string> carried;
    for (size_t i = unit.begin; i < unit.end; ++i) {
      const Node* node = nodes_[i];
      filter.nodes.push_back(node);
      visitReads(node, [&](const Value* value) {
        const std::optional<size_t> maker = makerOf(value);
        const bool is_input = value->node() == graph_.paramNode();
        if ((maker && *maker < unit.begin) || is_input) {
          if (read.insert(value).second) filter.inputs.push_back(portOf(*value));
        }
      });
      for (const Value* output : node->outputs()) {
        if (readBehind(*output, unit.end)) filter.outputs.push_back(portOf(*output));
      }
      if (node->kind() == prim::Loop) {
        for (const Value* output : node->outputs()) carried.push_back(nameOf(*output));
      }
      describeConstants(*node, node == unit.main, rule, filter);
    }
    if (!carried.empty()) loops_.emplace_back(result_.filters.size(), std::move(carried));
    checkCounts(rule, filter);
    result_.filters.push_back(std::move(filter));
  }

  // What all rules that fit say, the last of each matter.
  LayerRule ruleFor(const Unit& unit) {
    LayerRule all;
    for (const LayerRule& rule : overrides_.rules) {
      if (!fits(rule, unit)) continue;
      if (rule.filter_name) all.filter_name = rule.filter_name;
      if (rule.options) all.options = rule.options;
      if (rule.state) all.state = rule.state;
      if (rule.srcs) all.srcs = rule.srcs;
      if (rule.dests) all.dests = rule.dests;
      if (rule.stateful) all.stateful = rule.stateful;
      if (rule.replicas) all.replicas = rule.replicas;
    }
    return all;
  }

  static void checkCounts(const LayerRule& rule, const Filter& filter) {
    const auto check = [&](const std::optional<int64_t>& expected, size_t found, const char* what) {
      if (!expected || *expected == static_cast<int64_t>(found)) return;
      throw UsageError(fmt::format("filter '{}': the overrides expect {} {}, the model has {}",
                                   filter.name, *expected, what, found));
    };
    check(rule.srcs, filter.inputs.size(), "srcs");
    check(rule.dests, filter.outputs.size(), "dests");
  }

  bool readBehind(const Value& value, size_t end) const {
    return std::ranges::any_of(value.uses(), [&](const Use& use) {
      const Node* user = use.user;
      while (user->block() && user->block() != graph_.block()) user = user->block()->owningNode();
      if (user == graph_.returnNode()) return true;
      const auto at = index_.find(user);
      // The return nodes of inner blocks are in no list of nodes.
      return at == index_.end() || at->second >= end;
    });
  }

  // The constant arguments as options and state.
  static void describeConstants(const Node& node, bool main, const LayerRule& rule,
                                Filter& filter) {
    const FunctionSchema* schema = node.maybeSchema();
    const auto wanted = [](const std::optional<std::vector<std::string>>& names,
                           const std::string& name) {
      return !names || std::ranges::find(*names, name) != names->end();
    };
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const std::optional<IValue> value = constantOf(node.inputs()[i]);
      if (!value || value->isNone()) continue;
      const bool known = schema && i < schema->arguments().size();
      const std::string name = known ? schema->arguments()[i].name : fmt::format("constant{}", i);
      if (value->isTensor()) {
        if (!value->toTensor().defined() || !wanted(rule.state, name)) continue;
        filter.state.emplace_back(name, value->toTensor().describe());
      } else if (main && known && wanted(rule.options, name)) {
        const auto& usual = schema->arguments()[i].default_value;
        if (usual && usual->tag() == value->tag() && usual->equals(*value)) continue;
        filter.options.emplace_back(name, value->shortRepr(kLongText));
      }
    }
  }

  void finish() {
    for (size_t r = 0; r < used_.size(); ++r) {
      if (used_[r]) continue;
      throw UsageError(fmt::format("overrides, rule {}: no layer of {} fits it", r + 1,
                                   program_->qualifiedName()));
    }
    result_.name = program_->name();
    for (const Value* input : graph_.inputs()) result_.inputs.push_back(portOf(*input));
    std::unordered_set<const Value*> given;
    for (const Value* output : graph_.outputs()) {
      if (!isEverywhere(output->node()) && given.insert(output).second) {
        result_.outputs.push_back(portOf(*output));
      }
    }
    result_.program = program_->graph();
    result_.owner = program_;
    result_.root = arrange(result_, loops_);
    validate(result_);
  }

  const std::shared_ptr<GraphFunction>& program_;
  GraphFunction* const method_;
  const Module* const module_;
  const Overrides& overrides_;
  std::vector<bool> used_;  // rules
  const Graph& graph_;
  AliasDb aliases_;
  std::vector<const Node*> nodes_;
  std::unordered_map<const Node*, size_t> index_;
  std::vector<int64_t> begun_;  // runs that must stay together: begun less ended at each node
  std::vector<bool> may_end_;   // whether a filter may end before the node
  std::vector<bool> stateful_;
  std::vector<Unit> units_;
  std::map<std::string, size_t> names_;
  std::vector<std::pair<size_t, std::vector<std::string>>> loops_;
  StreamGraph result_;
};

}  // namespace

StreamGraph fromMethod(const std::shared_ptr<GraphFunction>& program, GraphFunction* method,
                       const Module* module, const Overrides& overrides) {
  program->ensureDefined();
  return Builder(program, method, module, overrides).build();
}

std::shared_ptr<GraphFunction> inlinedFunction(GraphFunction& function,
                                               std::shared_ptr<void> owner) {
  function.ensureDefined();
  std::shared_ptr<Graph> graph = function.graph()->copy();
  inlineCalls(*graph);
  std::shared_ptr<GraphFunction> made(new GraphFunction(function.qualifiedName(), std::move(graph)),
                                      [owner = std::move(owner)](GraphFunction* f) { delete f; });
  made->setSchema(function.schema());
  return made;
}

}  // namespace wick::streams

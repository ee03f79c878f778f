#include "autograd/formula.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <set>
#include <shared_mutex>
#include <sstream>
#include <unordered_map>

#include "core/error.h"
#include "core/source_origin.h"
#include "frontend/compile.h"
#include "frontend/parser.h"
#include "ir/depth.h"
#include "passes/dead_code_elimination.h"
#include "passes/pipeline.h"
#include "passes/propagate_types.h"

namespace wick::autograd {

namespace {

using Source = GradientFunction::Source;

struct Texts {
  std::shared_mutex mutex;  // of formulas; helpers come before main()
  std::unordered_map<std::string, const char*> formulas;
  std::map<std::string, const char*> helpers;
};
Texts& texts() {
  static Texts* instance = new Texts;
  return *instance;
}

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool mentions(const std::string& text, const std::string& word) {
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || (!isWord(text[at - 1]) && text[at - 1] != '.');
    const size_t end = at + word.size();
    // Not the name of an argument, as in f(dim=1).
    const bool ends = end == text.size() || !isWord(text[end]);
    const bool keyword = end + 1 < text.size() && text[end] == '=' && text[end + 1] != '=';
    if (begins && ends && !keyword) return true;
  }
  return false;
}

// The helpers that the text calls, and those that they call.
std::string helpersOf(const std::string& text) {
  std::set<std::string> taken;
  std::string out, pending = text;
  for (bool more = true; more;) {
    more = false;
    for (const auto& [name, source] : texts().helpers) {
      if (taken.count(name) != 0 || !mentions(pending, name)) continue;
      taken.insert(name);
      out += source;
      out += '\n';
      pending += source;
      more = true;
    }
  }
  return out;
}

// `prefix` stands before the operator's name.
const char* find(const Operator& op, const std::string& prefix = "") {
  const auto key = [&](const std::string& name, const std::string& overload) {
    return prefix + (overload.empty() ? name : name + "." + overload);
  };
  const FunctionSchema& schema = op.schema();
  std::shared_lock lock(texts().mutex);
  const auto& formulas = texts().formulas;
  if (auto it = formulas.find(key(schema.name(), schema.overload())); it != formulas.end()) {
    return it->second;
  }
  // What the operator is called that does the same without writing, or as a view.
  const bool writes = schema.name().ends_with('_') && op.writtenArguments() != 0;
  const bool copies = schema.name().ends_with("_copy") && schema.name() != "aten::narrow_copy";
  if (writes || copies) {
    const std::string base = schema.name().substr(0, schema.name().size() - (writes ? 1 : 5));
    const auto it = formulas.find(key(base, schema.overload()));
    if (it != formulas.end()) return it->second;
  }
  // Another name of an operator, and its forms, share its record.
  const std::string_view record = op.record().schema;
  const auto it = formulas.find(prefix + std::string(record.substr(0, record.find('('))));
  return it == formulas.end() ? nullptr : it->second;
}

std::string strip(std::string text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool isTensorList(const TypePtr& type) {
  const auto* list = type->as<ListType>();
  return list && list->element()->kind() == TypeKind::Tensor;
}

bool makesTensors(const Operator& op) {
  return (op.writtenArguments() & op.tensorArguments()) != 0 ||
         std::ranges::any_of(op.schema().returns(), [](const Argument& r) {
           return r.type->kind() == TypeKind::Tensor || isTensorList(r.type);
         });
}

// An out= form with several results is an operator of its own.
bool writesToOut(const Operator& op) {
  const uint64_t written = op.writtenArguments() & op.tensorArguments();
  if (written == 0) return false;
  return op.schema().arguments().at(static_cast<size_t>(std::countr_zero(written))).kwarg_only;
}

}  // namespace

RegisterFormulas::RegisterFormulas(std::span<const FormulaText> formulas,
                                   std::span<const HelperText> helpers) {
  for (const FormulaText& f : formulas) {
    std::istringstream names(f.ops);
    for (std::string name; std::getline(names, name, ',');) {
      const size_t begin = name.find_first_not_of(" \n");
      const bool fresh = texts().formulas.emplace(name.substr(begin), f.text).second;
      WICK_ASSERT(fresh, "two formulas for {}", name);
    }
  }
  for (const HelperText& h : helpers) {
    const bool fresh = texts().helpers.emplace(h.name, h.source).second;
    WICK_ASSERT(fresh, "two helpers {}", h.name);
  }
}

void addFormula(const std::string& op, std::string text) {
  static auto* const kept = new std::deque<std::string>;
  std::unique_lock lock(texts().mutex);
  kept->push_back(std::move(text));
  texts().formulas[op] = kept->back().c_str();
}

std::string formulaError(const Operator& op, const std::string& text) {
  std::istringstream in(text);
  bool any = false;
  for (std::string line; std::getline(in, line);) {
    if (strip(line).empty() || line[0] == ' ') continue;
    any = true;
    const std::string first = line.substr(0, line.find_first_of(" :"));
    const std::string rest = strip(line.substr(first.size()));
    const bool alone = first == "none" || first == "others";
    if (alone && rest.empty()) continue;
    if (first == "let" || first == "missing" || first == "refused" || first == "results" ||
        first == "return") {
      continue;
    }
    if (!rest.starts_with(':') || !op.schema().argumentIndex(first)) {
      return fmt::format("expected a line \"ARGUMENT: EXPRESSION\", found \"{}\"", strip(line));
    }
  }
  if (!any) return "it is empty";
  try {
    const Rule rule(op, text.c_str());
    rule.check(text.find("ops.") == std::string::npos);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Rule::Rule(const Operator& op) : Rule(op, find(op)) {}

Rule::Rule(const Operator& op, const char* text) : op_(op) {
  if (text) {
    kind_ = Kind::Formula;
    parse(text);
  } else if (!makesTensors(op)) {
    kind_ = Kind::Ignored;
  } else if (op.has(kNotDifferentiable)) {
    kind_ = Kind::None;
  } else if (op.schema().name().starts_with("aten::_foreach_")) {
    // What is written to has its own history; results have none, as in PyTorch.
    kind_ = op.writtenArguments() != 0 ? Kind::Others : Kind::Missing;
    reason_ = "PyTorch has no derivative";
  }
  if (op.form() == Operator::Form::Out || writesToOut(op)) kind_ = Kind::Out;
}

void Rule::parse(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (strip(line).empty()) continue;
    if (line[0] == ' ' && !lines.empty()) {
      lines.back() += " " + strip(line);
    } else {
      lines.push_back(strip(line));
    }
  }
  for (const std::string& line : lines) {
    if (line == "none") {
      kind_ = Kind::None;
    } else if (line == "others") {
      kind_ = Kind::Others;
    } else if (line.starts_with("missing ")) {
      kind_ = Kind::Missing;
      reason_ = line.substr(8);
    } else if (line.starts_with("refused ")) {
      kind_ = Kind::Refused;
      reason_ = line.substr(8);
    } else if (line.starts_with("let ")) {
      lets_.push_back(line.substr(4));
    } else if (line.starts_with("return ")) {
      kind_ = Kind::Script;
      returns_ = line;
    } else if (line.starts_with("results")) {
      std::istringstream numbers(line.substr(7));
      results_.emplace();
      for (size_t n = 0; numbers >> n;) results_->push_back(n);
    } else {
      const size_t colon = line.find(':');
      const std::string name = strip(line.substr(0, colon));
      WICK_ASSERT(colon != std::string::npos && op_.schema().argumentIndex(name),
                  "the formula of {} has a line for {}", op_.schema().str(), name);
      expressions_[name] = strip(line.substr(colon + 1));
    }
  }
}

bool Rule::hasGradient(size_t result) const {
  return !results_ || std::ranges::find(*results_, result) != results_->end();
}

bool Rule::covers(size_t argument) const {
  return expressions_.count(op_.schema().arguments().at(argument).name) != 0;
}

bool Rule::ignores(size_t argument) const {
  if (kind_ != Kind::Formula) return false;
  const auto found = expressions_.find(op_.schema().arguments()[argument].name);
  return found != expressions_.end() && found->second == "None";
}

// The parameters that the text uses, as they are declared.
std::string Rule::parameters(const std::string& text, std::vector<Source>& sources,
                             bool with_results) const {
  using Kind = Source::Kind;
  using Part = Source::Part;
  std::string out;
  const auto add = [&](const std::string& name, const std::string& type, Source source) {
    if (!mentions(text, name)) return;
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", name, type);
    sources.push_back(source);
  };
  const auto addParts = [&](const std::string& name, Kind kind, size_t index) {
    add(name + "_size", "List[int]", {kind, Part::Size, index});
    add(name + "_stride", "List[int]", {kind, Part::Stride, index});
    add(name + "_offset", "int", {kind, Part::Offset, index});
    add(name + "_dtype", "int", {kind, Part::DType, index});
  };
  const FunctionSchema& schema = op_.schema();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    add(argument.name, argument.type->annotation(), {Kind::Argument, Part::Value, i});
    if ((op_.tensorArguments() >> i & 1) != 0 && !isTensorList(argument.type)) {
      addParts(argument.name, Kind::Argument, i);
    } else if (isTensorList(argument.type)) {
      add(argument.name + "_sizes", "List[List[int]]", {Kind::Argument, Part::Size, i});
    }
  }
  if (!with_results) return out;
  const auto& returns = schema.returns();
  for (size_t i = 0; i < returns.size(); ++i) {
    const std::string number = returns.size() == 1 ? "" : std::to_string(i);
    if (isTensorList(returns[i].type)) {
      add("grads", "List[Tensor]", {Kind::Gradients});
      continue;
    }
    const std::string grad = "grad" + number;
    const bool optional = text.find(grad + " is ") != std::string::npos;
    add(grad, optional ? "Optional[Tensor]" : "Tensor", {Kind::Gradient, Part::Value, i, optional});
    add("result" + number, returns[i].type->annotation(), {Kind::Result, Part::Value, i});
    addParts("result" + number, Kind::Result, i);
  }
  return out;
}

namespace {

bool isReal(const Value* v) {
  if (v->type()->kind() != TypeKind::Tensor) return false;
  const auto& dtype = static_cast<const TensorType&>(*v->type()).facts().dtype;
  return dtype && !isComplex(*dtype);
}

// Takes out of `block` what `typed`, a copy with types, says to be conjugates of real tensors, and
// questions whether such are complex. True when anything changed.
bool removeConjugates(Block* block, const Block* typed) {
  static const Symbol kConj = Symbol::aten("conj"), kIsComplex = Symbol::aten("is_complex");
  bool changed = false;
  auto at = typed->nodes().begin();
  for (Node* node : block->nodes()) {
    const Node* known = *at;
    ++at;
    for (size_t b = 0; b < node->blocks().size(); ++b) {
      changed |= removeConjugates(node->blocks()[b], known->blocks()[b]);
    }
    if ((node->kind() != kConj && node->kind() != kIsComplex) || !isReal(known->input(0))) continue;
    changed = true;
    if (node->kind() == kConj) {
      node->output()->replaceAllUsesWith(node->input(0));
    } else {
      InsertPointGuard guard(node);
      Graph* graph = block->graph();
      node->output()->replaceAllUsesWith(graph->insertConstant(IValue(false)));
    }
  }
  return changed;
}

// The graph for inputs without complex tensors; null when it is the same.
std::shared_ptr<Graph> withoutConjugates(const Graph& graph) {
  const std::shared_ptr<Graph> typed = graph.copy();
  for (Value* input : typed->inputs()) {
    if (input->type()->kind() != TypeKind::Tensor) continue;
    TensorType::Facts facts;
    facts.dtype = DType::Float;  // which does not matter, as long as it is real
    input->setType(TensorType::create(std::move(facts)));
  }
  std::shared_ptr<Graph> out = graph.copy();
  bool changed = false;
  withStackFor(*typed, [&] {
    propagateTypes(*typed);
    changed = removeConjugates(out->block(), typed->block());
    if (changed) eliminateDeadCode(*out);
  });
  return changed ? out : nullptr;
}

}  // namespace

std::unique_ptr<GradientFunction> Rule::compile(uint64_t mask) const {
  auto made = std::make_unique<GradientFunction>();
  std::string body, returned;
  for (const std::string& let : lets_) body += "    " + let + "\n";
  const auto& arguments = op_.schema().arguments();
  for (size_t i = 0; i < arguments.size() && i < 64; ++i) {
    if ((mask >> i & 1) == 0) continue;
    made->arguments.push_back(i);
    returned += expressions_.at(arguments[i].name) + ", ";
  }
  if (kind_ == Kind::Script) {
    body += "    " + returns_ + "\n";
  } else {
    body += "    return (" + returned + ")\n";
  }
  const std::string parameters = this->parameters(body, made->sources, kind_ != Kind::Script);
  const std::string source =
      fmt::format("{}\ndef gradients({}):\n{}", helpersOf(body), parameters, body);
  made->unit = compileSource(
      source, fmt::format("{}{}>", kind_ == Kind::Script ? kForwardSource : kGradientSource,
                          op_.schema().name()));
  GraphFunction& whole = *made->unit->findFunction("__torch__.gradients");
  // Without what only other gradients need, so that it is not saved.
  std::shared_ptr<Graph> graph = whole.graph()->copy();
  runPhase(*graph, Phase::Required);
  withStackFor(*graph, [&] { eliminateDeadCode(*graph); });
  for (size_t i = graph->inputs().size(); i-- > 0;) {
    if (!graph->inputs()[i]->uses().empty()) continue;
    graph->block()->eraseInput(i);
    made->sources.erase(made->sources.begin() + static_cast<ptrdiff_t>(i));
  }
  if (kind_ != Kind::Script) {
    if (std::shared_ptr<Graph> real = withoutConjugates(*graph)) {
      made->of_reals = made->unit->createFunction("__torch__.gradients_of_reals", std::move(real));
    }
  }
  made->function = made->unit->createFunction("__torch__.needed_gradients", std::move(graph));
  return made;
}

void Rule::check(bool compile) const {
  for (const std::string& let : lets_) Parser(let, "<derivative>").parseModule();
  for (const auto& [name, expression] : expressions_) {
    Parser(expression, "<derivative>").parseExpression();
  }
  for (const size_t result : results_.value_or(std::vector<size_t>())) {
    if (result < op_.schema().returns().size()) continue;
    throw UsageError(fmt::format("results: there is no result {}; {} has {}", result,
                                 op_.schema().name(), op_.schema().returns().size()));
  }
  if (!compile) return;
  if (kind_ == Kind::Script) script();
  for (size_t i = 0; i < op_.schema().arguments().size() && i < 64; ++i) {
    if (covers(i)) gradients(uint64_t{1} << i);
  }
}

const GradientFunction& Rule::gradients(uint64_t mask) const {
  std::lock_guard lock(mutex_);
  auto& made = compiled_[mask];
  if (!made) made = compile(mask);
  return *made;
}

GraphFunction& Rule::script() const {
  std::lock_guard lock(mutex_);
  if (!script_) script_ = compile(0);
  return *script_->function;
}

const std::vector<Source>& Rule::scriptSources() const {
  script();
  return script_->sources;
}

const Rule& ruleOf(const Operator& op) {
  std::atomic<const void*>& state = op.recorderState();
  if (const void* known = state.load(std::memory_order_acquire)) {
    return *static_cast<const Rule*>(known);
  }
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (const void* known = state.load(std::memory_order_relaxed)) {
    return *static_cast<const Rule*>(known);
  }
  const Rule* made = new Rule(op);
  state.store(made, std::memory_order_release);
  return *made;
}

const Rule& nestedRuleOf(const Operator& op) {
  static std::mutex mutex;
  static auto* const known = new std::unordered_map<const Operator*, const Rule*>;
  std::lock_guard lock(mutex);
  const Rule*& rule = (*known)[&op];
  if (rule) return *rule;
  const Rule& plain = ruleOf(op);
  if (const char* text = find(op, "nested ")) {
    rule = new Rule(op, text);
  } else if (plain.kind() == Rule::Kind::Formula || plain.kind() == Rule::Kind::Script) {
    rule = new Rule(op, "missing there is none for nested tensors");
  } else {
    rule = &plain;
  }
  return *rule;
}

}  // namespace wick::autograd

#include "ir/function.h"

#include "core/error.h"
#include "core/stack.h"

namespace wick {

namespace {

// Compiling a function compiles those that it calls first, by recursion.
constexpr size_t kMaxNestedDefinitions = 20'000;
// What the emitter needs for an ordinary function; it asks for more itself.
constexpr size_t kStackForDefinition = size_t{512} << 10;
thread_local size_t definitions_in_progress = 0;

// Held by the thread that compiles, once, however deep functions ask for each other. They do so on
// stacks that change (core/stack.h), to which a recursive mutex would not seem to belong for tools
// that watch locks.
class DefinitionLock {
 public:
  DefinitionLock() {
    if (depth_++ == 0) mutex().lock();
  }
  ~DefinitionLock() {
    if (--depth_ == 0) mutex().unlock();
  }
  DefinitionLock(const DefinitionLock&) = delete;
  DefinitionLock& operator=(const DefinitionLock&) = delete;

 private:
  // Never destroyed: functions may be asked while the process ends.
  static std::mutex& mutex() {
    static auto& instance = *new std::mutex;
    return instance;
  }
  static thread_local int depth_;
};
thread_local int DefinitionLock::depth_ = 0;

}  // namespace

GraphFunction::GraphFunction(std::string qualified_name, std::shared_ptr<Graph> graph,
                             Definer definer)
    : name_(std::move(qualified_name)),
      graph_(graph ? std::move(graph) : std::make_shared<Graph>()),
      definer_(std::move(definer)),
      state_(definer_ ? State::Undefined : State::Defined) {}

GraphFunction::~GraphFunction() = default;

const FunctionSchema& GraphFunction::schema() {
  if (const auto* settled = settled_schema_.load(std::memory_order_acquire)) return *settled;
  const DefinitionLock lock;
  // A definer may set the schema before it compiles the body, which lets the function be named
  // inside.
  if (!schema_) ensureDefined();
  if (!schema_) schema_ = std::make_unique<FunctionSchema>(defaultSchemaFor(name(), *graph_));
  if (isDefined()) settled_schema_.store(schema_.get(), std::memory_order_release);
  return *schema_;
}

void GraphFunction::ensureDefined() {
  if (isDefined()) return;
  const DefinitionLock lock;
  if (isDefined()) return;  // by another thread, meanwhile
  if (state_ == State::Defining) {
    throw CompileError(
        SourceRange(),
        fmt::format("function '{}' is called recursively; recursive calls are not supported",
                    name()));
  }
  if (definitions_in_progress >= kMaxNestedDefinitions) {
    throw CompileError(SourceRange(),
                       fmt::format("'{}' is reached through more than {} functions that call each "
                                   "other before any of them is compiled",
                                   name(), kMaxNestedDefinitions));
  }
  state_ = State::Defining;
  ++definitions_in_progress;
  try {
    withStack(kStackForDefinition, [&] { definer_(*this); });
  } catch (...) {
    --definitions_in_progress;
    state_ = State::Undefined;
    throw;
  }
  --definitions_in_progress;
  definer_ = nullptr;
  state_.store(State::Defined, std::memory_order_release);
}

void* GraphFunction::attachment(const std::function<std::shared_ptr<void>()>& make) {
  std::lock_guard lock(mutex_);
  if (!attached()) {
    // With those that were detached.
    const auto all = std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
        make(), std::move(attachment_));
    attachment_ = std::shared_ptr<void>(all, all->first.get());
    attached_.store(attachment_.get(), std::memory_order_release);
  }
  return attachment_.get();
}

void GraphFunction::detach() {
  std::lock_guard lock(mutex_);
  attached_.store(nullptr, std::memory_order_release);
}

FunctionSchema defaultSchemaFor(const std::string& name, const Graph& graph) {
  std::vector<Argument> arguments;
  for (Value* v : graph.inputs()) {
    Argument a;
    a.name = v->hasDebugName() ? v->debugNameBase() : "argument_" + v->debugName();
    a.type = v->type();
    arguments.push_back(std::move(a));
  }
  std::vector<Argument> returns;
  for (Value* v : graph.outputs()) {
    Argument a;
    a.type = v->type();
    returns.push_back(std::move(a));
  }
  return FunctionSchema(name, "", std::move(arguments), std::move(returns));
}

CompilationUnit::~CompilationUnit() {
  // First, because their code reads the types.
  functions_.clear();
  for (const auto& [name, type] : types_) {
    // Constant for everybody but the unit that built it.
    if (const auto* c = type->as<ClassType>()) const_cast<ClassType*>(c)->dissolve();
    if (const auto* i = type->as<InterfaceType>()) const_cast<InterfaceType*>(i)->dissolve();
  }
}

GraphFunction* CompilationUnit::createFunction(std::string qualified_name,
                                               std::shared_ptr<Graph> graph,
                                               GraphFunction::Definer definer) {
  if (function_index_.count(qualified_name)) {
    throw CompileError(SourceRange(),
                       fmt::format("the function '{}' is defined twice", qualified_name));
  }
  functions_.push_back(std::make_unique<GraphFunction>(std::move(qualified_name), std::move(graph),
                                                       std::move(definer)));
  GraphFunction* f = functions_.back().get();
  function_index_.emplace(f->qualifiedName(), f);
  return f;
}

GraphFunction* CompilationUnit::findFunction(const std::string& qualified_name) const {
  auto it = function_index_.find(qualified_name);
  return it == function_index_.end() ? nullptr : it->second;
}

void CompilationUnit::registerType(const std::string& qualified_name, TypePtr type) {
  if (!type_index_.emplace(qualified_name, type).second) {
    throw CompileError(SourceRange(),
                       fmt::format("the type '{}' is defined twice", qualified_name));
  }
  types_.emplace_back(qualified_name, std::move(type));
}

TypePtr CompilationUnit::findType(const std::string& qualified_name) const {
  auto it = type_index_.find(qualified_name);
  return it == type_index_.end() ? nullptr : it->second;
}

ClassTypePtr CompilationUnit::findClass(const std::string& qualified_name) const {
  TypePtr type = findType(qualified_name);
  const ClassType* found = type ? type->as<ClassType>() : nullptr;
  return found ? found->shared() : nullptr;
}

std::string CompilationUnit::mangle(const std::string& qualified_name) const {
  std::string name = qualified_name;
  size_t dot = qualified_name.rfind('.');
  while (type_index_.count(name) || function_index_.count(name)) {
    std::string prefix = dot == std::string::npos ? "" : qualified_name.substr(0, dot + 1);
    std::string last = dot == std::string::npos ? qualified_name : qualified_name.substr(dot + 1);
    name = fmt::format("{}___torch_mangle_{}.{}", prefix, mangle_index_++, last);
  }
  return name;
}

}  // namespace wick

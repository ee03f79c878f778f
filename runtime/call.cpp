#include "runtime/call.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "core/budget.h"
#include "core/conform.h"
#include "core/error.h"
#include "core/function_schema.h"
#include "core/grad_mode.h"
#include "core/log.h"
#include "core/suggestions.h"
#include "core/tensor_kind.h"
#include "ir/alias_db.h"
#include "ir/call_layer.h"
#include "ir/depth.h"
#include "ir/function.h"
#include "passes/inline_forks.h"
#include "runtime/compile_queue.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/fusion/elements.h"
#include "runtime/fusion/group_backend.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/module_paths.h"
#include "runtime/repeats.h"

namespace wick {
namespace {

template <class... Args>
[[noreturn]] void throwUsage(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

// One number stands for all elements of a list of fixed length (BroadcastingList2[int]).
IValue repeated(const Argument& argument, IValue value) {
  if (!argument.fixed_size) return value;
  TypePtr type = argument.type;
  if (const auto* optional = type->as<OptionalType>()) type = optional->element();
  const auto* list = type->as<ListType>();
  if (!list || !(value.isInt() || value.isDouble())) return value;
  return IValue(makeList(list->element(), std::vector<IValue>(*argument.fixed_size, value)));
}

IValue fit(const FunctionSchema& schema, const Argument& argument, size_t position, IValue value) {
  const std::string_view found = value.tagName();
  try {
    value = repeated(argument, std::move(value));
    return conform(std::move(value), argument.type, Conversions::Python);
  } catch (const RuntimeError& error) {
    throwUsage(
        "{}() Expected a value of type '{}' for argument '{}' but instead found type '{}' ({}).\n"
        "Position: {}\nDeclaration: {}",
        schema.name(), argument.type->annotation(), argument.name, found, error.brief(), position,
        schema.str());
  }
}

// Puts an object in front of arguments. It is lent, for the caller's reference keeps it: threads
// that run one module write to no count of it.
class LentFirst {
 public:
  LentFirst(std::vector<IValue>& arguments, const ObjectRef& object) : arguments_(&arguments) {
    arguments.insert(arguments.begin(), IValue());
    arguments.front() = IValue::borrow(object);
  }
  ~LentFirst() {
    if (arguments_) arguments_->front().forget();
  }
  LentFirst(const LentFirst&) = delete;
  LentFirst& operator=(const LentFirst&) = delete;
  // From now on the arguments hold a reference.
  void give() { std::exchange(arguments_, nullptr)->front().rawObject()->retain(); }

 private:
  std::vector<IValue>* arguments_;  // null when they were given the object
};

}  // namespace

Kwargs toKwargs(NamedArguments named) {
  Kwargs kwargs;
  kwargs.reserve(named.size());
  for (const NamedArgument& argument : named) kwargs.emplace_back(argument.name, argument.value);
  return kwargs;
}

namespace {

// A name that the schema does not have, before anything that is missing: the one most often explains the
// other.
void checkNames(const FunctionSchema& schema, const Kwargs& kwargs, size_t num_bound) {
  const auto& declared = schema.arguments();
  for (const auto& [name, value] : kwargs) {
    const std::optional<size_t> index = schema.argumentIndex(name);
    if (index && *index >= num_bound) continue;
    std::set<std::string> names;
    std::string list;
    for (size_t i = num_bound; i < declared.size(); ++i) {
      names.insert(declared[i].name);
      list += (list.empty() ? "" : ", ") + declared[i].name;
    }
    const std::string meant = didYouMean(name, names);
    throwUsage("{}() has no argument '{}'; {}{} Declaration: {}", schema.name(), name,
               list.empty() ? "it takes none" : "its arguments are: " + list,
               meant.empty() ? "." : meant, schema.str());
  }
}

}  // namespace

std::vector<IValue> bindArguments(const FunctionSchema& schema, std::vector<IValue> arguments,
                                  Kwargs kwargs, size_t num_bound) {
  const auto& declared = schema.arguments();
  if (declared.size() < num_bound) throwUsage("{} has no self", schema.str());
  checkNames(schema, kwargs, num_bound);
  size_t count = declared.size() - num_bound;
  if (arguments.size() > count) {
    throwUsage("{}() expected at most {} argument(s) but received {} argument(s). Declaration: {}",
               schema.name(), count, arguments.size() + kwargs.size(), schema.str());
  }
  std::vector<IValue> bound;
  bound.reserve(declared.size());
  size_t positional = arguments.size();
  size_t used = 0;
  for (size_t i = 0; i < count; ++i) {
    const Argument& argument = declared[num_bound + i];
    auto named = kwargs.begin();
    while (named != kwargs.end() && named->first != argument.name) ++named;
    if (i < positional) {
      if (named != kwargs.end()) {
        throwUsage("Argument '{}' specified both as positional and keyword argument. Schema: {}",
                   argument.name, schema.str());
      }
      if (argument.kwarg_only) {
        throwUsage("{}() expected at most {} positional argument(s). Declaration: {}",
                   schema.name(), i, schema.str());
      }
      bound.push_back(fit(schema, argument, i, std::move(arguments[i])));
    } else if (named != kwargs.end()) {
      bound.push_back(fit(schema, argument, i, std::move(named->second)));
      ++used;
    } else if (argument.default_value) {
      bound.push_back(*argument.default_value);
    } else {
      throwUsage("{}() is missing value for argument '{}'. Declaration: {}", schema.name(),
                 argument.name, schema.str());
    }
  }
  if (used == kwargs.size()) return bound;
  throwUsage("{}() got a keyword argument twice. Schema: {}", schema.name(), schema.str());
}

void checkSelf(const ObjectRef& self, GraphFunction& method) {
  if (!self) throwUsage("{}() expected an object to be called on, got null", method.name());
  const auto& declared = method.schema().arguments();
  if (declared.empty()) throwUsage("{} has no self", method.schema().str());
  // Code relies on the slots of the declared class.
  const TypePtr& type = declared[0].type;
  if (self->type().get() == type.get() || self->type()->isSubtypeOf(*type)) return;
  throwUsage("{}() expected an object of type '{}', got one of type '{}'", method.name(),
             type->annotation(), self->type()->annotation());
}

namespace {

// What has to be compiled for the call is compiled under its limits.
const Code& codeFor(GraphExecutor& executor, std::span<const IValue> arguments,
                    const RunOptions& options) {
  Budget budget({options.deadline, options.max_memory, options.interrupt});
  if (!budget.bounded()) return executor.codeFor(arguments);  // under those of the thread, if any
  const BudgetScope scope(&budget);
  return executor.codeFor(arguments);
}

}  // namespace

namespace {

// Adds the tensors of a constant; false when somebody could give it others.
bool addTensors(const IValue& constant, std::vector<Tensor>& tensors) {
  return allElements(constant, [&](const IValue& v) {
    if (!v.isTensor()) return !v.isCounted() || v.isString() || v.isComplex();
    if (v.toTensor().defined()) tensors.push_back(v.toTensor());
    return true;
  });
}

bool isOneOf(const IValue& object, std::span<const IValue> values) {
  return std::ranges::any_of(
      values, [&](const IValue& v) { return v.isObject() && &v.toObject() == &object.toObject(); });
}

// Whether the nodes compute and do nothing else; adds the tensors among their constants. They may read
// attributes of the objects among `known`.
bool onlyComputes(const AliasDb& aliases, const Block* block, std::span<const IValue> known,
                  std::vector<Tensor>& constants) {
  static const std::unordered_set<Symbol> kFree = {prim::RaiseException, Symbol::prim("Guard"),
                                                   Symbol::prim("BailOut")};
  for (const Node* node : block->nodes()) {
    if (node->kind() == prim::Constant) {
      const std::optional<IValue> value = constantOf(node->output());
      if (value->isObject() && isOneOf(*value, known)) continue;
      if (aliases.hasWriters(node->output()) || !addTensors(*value, constants)) {
        GRAPH_DEBUG("not repeated for the constant {}", node->str());
        return false;
      }
      continue;
    }
    if (kFree.count(node->kind()) != 0) continue;
    if (node->kind() == prim::SetAttr || node->kind() == prim::CreateObject ||
        aliases.writesOutside(node)) {
      GRAPH_DEBUG("not repeated for {}", node->str());
      return false;
    }
    for (const Block* inner : node->blocks()) {
      if (!onlyComputes(aliases, inner, known, constants)) return false;
    }
    if (node->blocks().empty() && aliases.hasOrderedEffects(node)) {
      GRAPH_DEBUG("not repeated for {}", node->str());
      return false;
    }
  }
  return true;
}

bool isPlain(const RunOptions& options) {
  return !options.observer && !options.deadline && !options.interrupt && options.max_memory == 0 &&
         options.max_steps == std::numeric_limits<uint64_t>::max();
}

// Of the first tensor that is not on the CPU; null where there is none.
GroupBackend* backendOf(std::span<const IValue> arguments) {
  const auto elsewhere = std::ranges::find_if(arguments, [](const IValue& v) {
    return v.isTensor() && v.toTensor().defined() && !v.toTensor().device().isCpu();
  });
  return elsewhere == arguments.end() ? nullptr : groupBackend(elsewhere->toTensor().device().type);
}

// Lets the device of the arguments repeat the call, where it can.
template <class Run>
std::optional<IValue> repeatOnDevice(const Code& code, std::span<const IValue> arguments,
                                     const RunOptions& options, Run&& run) {
  if (!isPlain(options) || currentBudget() || recordsGradients() ||
      threadContext().active_layers != 0) {
    return std::nullopt;
  }
  GroupBackend* backend = backendOf(arguments);
  if (!backend) return std::nullopt;
  const auto constants = [&]() -> std::optional<std::vector<Tensor>> {
    const std::shared_ptr<Graph> graph = code.graph()->copy();
    std::vector<Tensor> found;
    bool fits = false;
    inlineForks(*graph);
    withStackFor(*graph, [&] {
      const AliasDb aliases(*graph);
      fits = onlyComputes(aliases, graph->block(), code.constants(), found);
    });
    return fits ? std::optional(std::move(found)) : std::nullopt;
  };
  GroupBackend::Call call{code.shared_from_this(), arguments, constants, run};
  // Prepared modules read attributes of an object where they could not be made constants.
  const auto isObject = [](const IValue& v) { return v.isObject(); };
  if (std::ranges::any_of(code.constants(), isObject)) {
    call.state = [&](std::vector<IValue>& state) {
      return std::ranges::all_of(code.constants(), [&](const IValue& v) {
        return !v.isObject() || collectState(v.toObject(), state);
      });
    };
  }
  return backend->repeat(call);
}

// The same for a method that leaves its object as it was, but for elements of tensors: a step of a
// training, for example. The arguments are the object and what it was called with.
template <class Run>
std::optional<IValue> repeatMethodOnDevice(const Object& self, const GraphFunction& method,
                                           const Code& code, std::span<const IValue> arguments,
                                           const RunOptions& options, Run&& run) {
  if (!isPlain(options) || currentBudget() || threadContext().active_layers != 0) {
    return std::nullopt;
  }
  const auto given = arguments.subspan(1);
  const auto isWanting = [](const IValue& v) {
    return v.isTensor() && v.toTensor().defined() &&
           (v.toTensor().requiresGrad() || v.toTensor().impl()->history.get());
  };
  GroupBackend* backend = backendOf(given);
  if (!backend || std::ranges::any_of(given, isWanting)) return std::nullopt;
  GroupBackend::Call call;
  call.code = code.shared_from_this();
  call.arguments = given;
  call.constants = [&]() -> std::optional<std::vector<Tensor>> {
    const std::string effect = lastingEffect(method);
    if (!effect.empty()) GRAPH_DEBUG("{} is not repeated: it {}", method.name(), effect);
    return effect.empty() ? std::optional(std::vector<Tensor>()) : std::nullopt;
  };
  call.state = [&](std::vector<IValue>& state) {
    state.emplace_back(gradEnabled());
    return collectState(self, state);
  };
  call.run = [&](std::vector<IValue> values) {
    values.insert(values.begin(), arguments.front());
    return run(std::move(values));
  };
  return backend->repeat(call);
}

}  // namespace

IValue callFunction(GraphFunction& function, std::vector<IValue> arguments, Kwargs kwargs,
                    const RunOptions& options, const std::shared_ptr<void>* owner) {
  const CompileHold hold;
  GraphExecutor& executor = GraphExecutor::of(function);
  auto bound = bindArguments(function.schema(), std::move(arguments), std::move(kwargs));
  const auto run = [&] {
    const Code& code = codeFor(executor, bound, options);
    if (kindsInUse()) [[unlikely]] {
      std::optional<IValue> repeated =
          repeatOnDevice(code, bound, options, [&](std::vector<IValue> given) {
            return runCode(code, std::move(given), options, owner);
          });
      if (repeated) return *std::move(repeated);
    }
    return runCode(code, std::move(bound), options, owner);
  };
  if (CallLayer* tracing = tracingLayer()) [[unlikely]] {
    return tracing->callFunction(function, bound, options.owner || !owner ? options.owner : *owner,
                                 run);
  }
  return run();
}

IValue callMethod(const ObjectRef& self, GraphFunction& method, std::vector<IValue> arguments,
                  Kwargs kwargs, const RunOptions& options) {
  const CompileHold hold;
  checkSelf(self, method);
  GraphExecutor& executor = GraphExecutor::of(method);
  self->noteThread();
  auto bound = bindArguments(method.schema(), std::move(arguments), std::move(kwargs), 1);
  if (CallLayer* tracing = tracingLayer()) [[unlikely]] {
    bound.insert(bound.begin(), IValue(self));
    return tracing->callFunction(method, bound, self->owner(), [&] {
      const Code& code = codeFor(executor, bound, options);
      return runCode(code, std::move(bound), options, &self->owner());
    });
  }
  LentFirst lent(bound, self);
  const Code& code = codeFor(executor, bound, options);
  try {
    if (kindsInUse()) [[unlikely]] {
      std::optional<IValue> repeated =
          repeatMethodOnDevice(*self, method, code, bound, options, [&](std::vector<IValue> given) {
            return runCode(code, std::move(given), options, &self->owner());
          });
      if (repeated) return *std::move(repeated);
    }
    if (code.keepsFirst()) return runCodeWithLentModule(code, bound, options, &self->owner());
    lent.give();
    return runCode(code, std::move(bound), options, &self->owner());
  } catch (const RuntimeError& error) {
    // Of a module, which of its modules the error comes from.
    if (!self->type()->isModule() || error.frames().size() < 2) throw;
    throw withModulePaths(error, method);
  }
}

}  // namespace wick

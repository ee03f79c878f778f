// Fuzz target: one call of an operator. The input's bytes choose the operator and its arguments,
// which are fitted to the schema as those of an embedding program are; the call goes through
// Operator::call, like that of the interpreter, under limits of time and memory. Nothing is left
// out by name, but futures that are not done: nobody would complete them.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "core/budget.h"
#include "core/conform.h"
#include "core/grad_mode.h"
#include "core/messages.h"
#include "ir/operator.h"
#include "tests/fuzz/operator_arguments.h"

namespace wick {

// In the order of their names, all overloads and derived forms.
inline const std::vector<const Operator*>& fuzzedOperators() {
  static const std::vector<const Operator*> all = [] {
    std::vector<const Operator*> found;
    OperatorRegistry& registry = OperatorRegistry::instance();
    for (const std::string& name : registry.names()) {
      const auto& overloads = registry.overloads(Symbol::fromQualString(name));
      found.insert(found.end(), overloads.begin(), overloads.end());
    }
    return found;
  }();
  return all;
}

namespace operator_fuzz {

inline constexpr size_t kMemory = size_t{24} << 20;
// What a call may take beyond its limit before the interpreter, which looks between calls, would
// end the run.
inline constexpr int64_t kMemorySlack = 4 << 20;
inline constexpr std::chrono::milliseconds kTime{100};
// Sanitizers make calls some ten times slower, a busy machine more.
inline constexpr std::chrono::milliseconds kTimeSlack{3000};

// InternalError unless the tensor lies where it says, and its booleans are booleans.
inline void checkTensor(const Operator& op, const Tensor& t) {
  // Nested tensors have the sizes of their largest parts and the elements of all.
  if (!t.defined() || t.kind() == TensorKind::Nested) return;
  __int128 last = t.offset(), numel = 1;
  for (int64_t d = 0; d < t.dim(); ++d) {
    WICK_ASSERT(t.sizes()[d] >= 0 && t.strides()[d] >= 0, "{}: negative size or stride",
                op.schema().str());
    numel *= t.sizes()[d];
    last += static_cast<__int128>(t.sizes()[d] - 1) * t.strides()[d];
  }
  WICK_ASSERT(numel == t.numel(), "{}: {} elements in {}", op.schema().str(), t.numel(),
              t.describe());
  if (numel == 0 || !t.device().isCpu()) return;
  const auto memory = static_cast<__int128>(t.storage()->bytes());
  WICK_ASSERT(t.offset() >= 0 && (last + 1) * static_cast<__int128>(t.itemSize()) <= memory,
              "{}: {} lies outside of its {} bytes", op.schema().str(), t.describe(),
              t.storage()->bytes());
  if (t.dtype() != DType::Bool || !t.isContiguous()) return;
  const auto* bytes = static_cast<const uint8_t*>(t.rawData());
  for (int64_t i = 0; i < std::min<int64_t>(t.numel(), 4096); ++i) {
    WICK_ASSERT(bytes[i] <= 1, "{}: the byte {} as a bool", op.schema().str(), bytes[i]);
  }
}

inline void checkTensors(const Operator& op, const IValue& value, int depth = 4) {
  if (value.isTensor()) {
    checkTensor(op, value.toTensor());
  } else if ((value.isList() || value.isTuple()) && depth > 0) {
    for (size_t i = 0; i < std::min<size_t>(value.elements().size(), 8); ++i) {
      checkTensors(op, value.elements()[i], depth - 1);
    }
  }
}

// The arguments as the schema wants them. RuntimeError when they do not fit.
inline std::vector<IValue> fittingArguments(ByteSource& bytes, const FunctionSchema& schema,
                                            OperatorArguments& arguments, TypeBindings& bindings) {
  std::vector<IValue> out;
  for (const Argument& argument : schema.arguments()) {
    IValue value = arguments.make(argument);
    TypePtr type = argument.type;
    if (type->hasFreeVariables()) {
      std::string why;
      std::optional<TypePtr> bound = matchTypeVariables(type, value.type(), bindings, &why);
      WICK_CHECK(bound.has_value(), "{}: {}", argument.name, why);
      type = *bound;
    }
    out.push_back(conform(std::move(value), type, Conversions::Python));
  }
  if (schema.isVararg()) {
    for (int64_t n = bytes.below(5); n > 0; --n) out.push_back(arguments.any(2));
  }
  return out;
}

// The interpreter believes the types that results are declared with. But nodes of prim::EnumValue
// have the type of the enum's values, whichever overload they name.
inline void checkResults(const Operator& op, const std::vector<IValue>& results,
                         const TypeBindings& bindings) {
  for (size_t i = 0; i < results.size(); ++i) {
    checkTensors(op, results[i]);
    if (op.schema().name() == "prim::EnumValue") continue;
    const TypePtr& declared = op.schema().returns()[i].type;
    const std::optional<TypePtr> type = substituteTypeVariables(declared, bindings);
    if (!type || (results[i].isNone() && declared->kind() == TypeKind::Tensor)) continue;
    try {
      conform(results[i], *type);
    } catch (const RuntimeError& error) {
      // A container around an argument that is nested as deeply as may be (or that a list holds
      // which holds itself) is right, and cannot be looked through.
      if (error.message().find("values nest deeper") != std::string::npos) continue;
      throw InternalError(
          __FILE__, __LINE__,
          op.schema().str() + " returns no " + (*type)->annotation() + ": " + error.message());
    }
  }
}

inline void call(const Operator& op, std::vector<IValue> arguments, const TypeBindings& bindings,
                 bool hold) {
  // A call may write over an argument that nobody else holds.
  const std::vector<IValue> held = hold ? arguments : std::vector<IValue>();
  std::vector<IValue> results(op.schema().returns().size());
  const auto begin = std::chrono::steady_clock::now();
  Budget::Bounds bounds;
  bounds.deadline = begin + kTime;
  bounds.memory = kMemory;
  Budget budget(std::move(bounds));
  bool refused = false;
  {
    BudgetScope scope(&budget);
    try {
      op.call(arguments.data(), arguments.size(), results.data(), results.size());
    } catch (const InternalError&) {
      throw;
    } catch (const Error&) {
      refused = true;
    } catch (const std::exception&) {
      refused = true;  // the standard library's own: the interpreter makes a RuntimeError of it
    }
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - begin);
  WICK_ASSERT(took <= kTime + kTimeSlack, "{}: took {} ms of {}", op.schema().str(), took.count(),
              kTime.count());
  WICK_ASSERT(budget.used() <= static_cast<int64_t>(kMemory) + kMemorySlack,
              "{}: holds {} bytes of {}", op.schema().str(), budget.used(), kMemory);
  for (const IValue& argument : held) checkTensors(op, argument);
  if (!refused) checkResults(op, results, bindings);
}

}  // namespace operator_fuzz

// The operator that the source's next bytes choose.
inline const Operator& chosenOperator(ByteSource& bytes) {
  const std::vector<const Operator*>& operators = fuzzedOperators();
  return *operators[bytes.next(2) % operators.size()];
}
inline const Operator& operatorOf(const std::string& input) {
  ByteSource bytes(input);
  return chosenOperator(bytes);
}

inline void operatorCallTarget(const std::string& input) {
  ByteSource bytes(input);
  const Operator& op = chosenOperator(bytes);
  // Each input is a run of its own.
  setWarningHandler([](const std::string&) {});
  defaultGenerator().seed(1);
  GradModeGuard mode(true);
  const bool hold = bytes.chance(2);
  OperatorArguments source(bytes, op.schema());
  TypeBindings bindings;
  std::vector<IValue> arguments =
      operator_fuzz::fittingArguments(bytes, op.schema(), source, bindings);
  operator_fuzz::call(op, std::move(arguments), bindings, hold);
}

}  // namespace wick

#include "runtime/typed_operator.h"

#include "core/error.h"
#include "ir/operator.h"
#include "runtime/threads.h"

namespace wick {

TypedOperator::TypedOperator(const char* name, const char* overload)
    : operator_(OperatorRegistry::instance().find(Symbol::fromQualString(name), overload)) {
  if (!operator_) {
    throw UsageError(fmt::format("there is no operator {}{}{}: the headers are of another version",
                                 name, *overload ? "." : "", overload));
  }
}

void TypedOperator::run(std::span<IValue> arguments, std::span<IValue> results) const {
  // Kernels rely on the types; the one that C++ does not see is that of an empty handle.
  const std::vector<Argument>& declared = operator_->schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].isNone() && declared[i].type->kind() == TypeKind::Tensor) {
      throw UsageError(fmt::format("{}: expected a Tensor for '{}', got an undefined one",
                                   operator_->schema().name(), declared[i].name));
    }
  }
  applyNumThreads();
  operator_->call(arguments.data(), arguments.size(), results.data(), results.size());
}

}  // namespace wick

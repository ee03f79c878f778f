#include "runtime/ops/call.h"

namespace wick {

const Operator& OperatorHandle::lookUp() const {
  const Operator* found =
      OperatorRegistry::instance().find(Symbol::fromQualString(name_), overload_);
  WICK_CHECK(found, "{}: there is no overload \"{}\"", name_, overload_);
  op_.store(found, std::memory_order_release);
  return *found;
}

std::vector<IValue> OperatorHandle::call(std::vector<IValue> args) const {
  const Operator& target = op();
  const std::vector<Argument>& formals = target.schema().arguments();
  WICK_ASSERT(args.size() <= formals.size(), "{}: called with {} arguments", name_, args.size());
  for (size_t i = args.size(); i < formals.size(); ++i) {
    WICK_ASSERT(formals[i].default_value.has_value(), "{}: called without its argument {}", name_,
                formals[i].name);
    args.push_back(*formals[i].default_value);
  }
  std::vector<IValue> results(target.schema().returns().size());
  target.call(args.data(), args.size(), results.data(), results.size());
  return results;
}

}  // namespace wick

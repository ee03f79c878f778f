// All operators of the registry, for tests.
#pragma once

#include <string>

#include "core/symbol.h"
#include "ir/operator.h"

namespace wick {

template <class F>
void forEachOperator(F&& f) {
  OperatorRegistry& registry = OperatorRegistry::instance();
  for (const std::string& name : registry.names()) {
    for (const Operator* op : registry.overloads(Symbol::fromQualString(name))) f(*op);
  }
}

}  // namespace wick

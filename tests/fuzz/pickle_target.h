// Fuzz target: a pickle, whose tensors lie in one small storage.
#pragma once

#include <cstring>
#include <span>
#include <string>

#include "core/conform.h"
#include "core/function_schema.h"
#include "serialization/pickler.h"
#include "serialization/unpickler.h"

namespace wick {

inline void pickleTarget(const std::string& input) {
  static const Ref<Storage> storage = [] {
    Ref<Storage> zeros = Storage::allocate(64);
    std::memset(zeros->data(), 0, 64);
    return zeros;
  }();
  UnpicklerHooks hooks;
  hooks.parse_type = parseSchemaType;
  hooks.storage = [&](const StorageRequest&) { return storage; };
  hooks.budget = std::make_shared<LoadBudget>(size_t{64} << 20);
  IValue value =
      Unpickler(std::as_bytes(std::span(input.data(), input.size())), "fuzz", hooks).load();
  value = TypeClaims().conform(std::move(value), types::Any());
  // Whatever was accepted can be walked and written.
  value.repr();
  Pickler pickler;
  pickler.push(value);
}

}  // namespace wick

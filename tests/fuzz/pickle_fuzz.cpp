#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/function_schema.h"
#include "serialization/pickler.h"
#include "serialization/unpickler.h"
#include "tests/fuzz/mutate.h"

namespace wick {
namespace {

std::string seed(bool for_python) {
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  Tensor tensor = Tensor::zeros(DimVector{2, 3}, DType::Float);
  dict->set("list", makeIntList(DimVector{1, -70000, 300}));
  dict->set("tuple", makeTuple({IValue(), true, 2.5, "text", std::complex<double>(1, 2),
                                Device::parse("cpu"), int64_t{1} << 40, makeTuple({})}));
  dict->set("tensor", tensor);
  dict->set("view", tensor.transpose(0, 1));
  dict->set("tensors", makeTensorList({tensor, tensor.select(0, 1)}));
  PicklerOptions options;
  options.for_python = for_python;
  Pickler pickler(options);
  pickler.push(dict);
  return pickler.finish();
}

TEST(PickleFuzz, AnyBytes) {
  Ref<Storage> storage = Storage::allocate(64);
  std::memset(storage->data(), 0, 64);
  fuzz({seed(true), seed(false)}, fuzzCount(20'000), [&](const std::string& input) {
    UnpicklerHooks hooks;
    hooks.parse_type = parseSchemaType;
    hooks.storage = [&](const StorageRequest&) { return storage; };
    IValue value =
        Unpickler(std::as_bytes(std::span(input.data(), input.size())), "fuzz", hooks).load();
    // Whatever was accepted can be walked and written.
    value.repr();
    Pickler pickler;
    pickler.push(value);
  });
}

}  // namespace
}  // namespace wick

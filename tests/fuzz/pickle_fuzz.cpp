#include <gtest/gtest.h>

#include <string>

#include "tests/fuzz/mutate.h"
#include "tests/fuzz/pickle_target.h"

namespace wick::pickle_fuzz {
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
  fuzz({seed(true), seed(false)}, fuzzCount(20'000), pickleTarget);
}

}  // namespace
}  // namespace wick::pickle_fuzz

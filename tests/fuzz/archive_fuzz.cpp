#include <gtest/gtest.h>

#include <string>

#include "tests/fuzz/archive_target.h"
#include "tests/fuzz/mutate.h"

namespace wick::archive_fuzz {
namespace {

TEST(ArchiveFuzz, AnyBytes) {
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  dict->set("tensor", Tensor::zeros(DimVector{2, 3}, DType::Float));
  dict->set("list", makeIntList(DimVector{1, 2, 3}));
  const std::string large = saveValueToString(dict);
  const std::string small = saveValueToString(IValue(int64_t{1}));
  fuzz({large, small}, fuzzCount(10'000), zipTarget);
  fuzz({large, small}, fuzzCount(10'000), archiveTarget);
}

}  // namespace
}  // namespace wick::archive_fuzz

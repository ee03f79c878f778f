#include <gtest/gtest.h>

#include <string>

#include "serialization/torch_save.h"
#include "tests/fuzz/mutate.h"

namespace wick {
namespace {

Bytes bytesOf(const std::string& text) {
  return copyBytes(std::as_bytes(std::span(text.data(), text.size())));
}

TEST(ArchiveFuzz, AnyBytes) {
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  dict->set("tensor", Tensor::zeros(DimVector{2, 3}, DType::Float));
  dict->set("list", makeIntList(DimVector{1, 2, 3}));
  const std::string large = saveValueToString(dict);
  const std::string small = saveValueToString(IValue(int64_t{1}));
  fuzz({large, small}, fuzzCount(20'000), [](const std::string& input) {
    // Records one by one too: loading a value stops at the first that is damaged.
    ArchiveReader archive(bytesOf(input), "fuzz");
    for (const std::string& record : archive.records()) archive.map(record);
    loadValue(bytesOf(input), "fuzz");
  });
}

}  // namespace
}  // namespace wick

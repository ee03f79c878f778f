#include <gtest/gtest.h>

#include <cstring>

#include "runtime/kernels/onednn.h"

namespace wick::onednn::pack_transposed_test {
namespace {

using Tag = dnnl::memory::format_tag;

// The same memory as oneDNN's reorder gives, padding included.
TEST(PackTransposed, IsWhatReorderGives) {
  const int64_t kSizes[][2] = {{1, 1},  {16, 64},  {17, 65},  {8, 8},     {15, 63},
                               {64, 7}, {768, 96}, {300, 20}, {1030, 130}};
  for (Tag tag : {Tag::BA16a16b, Tag::BA16a32b, Tag::BA16a48b, Tag::BA16a64b}) {
    for (const auto& [columns, rows] : kSizes) {
      const int64_t stride = columns + 3;
      std::vector<float> values(static_cast<size_t>(rows * stride));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
      const dnnl::memory::desc plain = describe(DimVector{columns, rows}, DimVector{1, stride});
      const dnnl::memory::desc wanted({columns, rows}, dnnl::memory::data_type::f32, tag);
      const size_t count = wanted.get_size() / sizeof(float);
      std::vector<float> expected(count, -1.0f), packed(count, -1.0f);
      dnnl::memory from(plain, engine(), values.data());
      dnnl::memory to(wanted, engine(), expected.data());
      dnnl::reorder(from, to).execute(stream(), from, to);
      stream().wait();
      ASSERT_TRUE(packTransposed(plain, wanted, values.data(), packed.data()));
      EXPECT_EQ(std::memcmp(packed.data(), expected.data(), wanted.get_size()), 0)
          << columns << "x" << rows;
    }
  }
}

TEST(PackTransposed, LeavesOtherLayoutsAlone) {
  float from[256] = {}, to[4096] = {};
  const dnnl::memory::desc blocks({16, 16}, dnnl::memory::data_type::f32, Tag::BA16a64b);
  const dnnl::memory::desc plain = describe(DimVector{16, 16}, DimVector{16, 1});
  EXPECT_FALSE(packTransposed(plain, blocks, from, to));
  const dnnl::memory::desc turned = describe(DimVector{16, 16}, DimVector{1, 16});
  EXPECT_FALSE(packTransposed(turned, plain, from, to));
  const dnnl::memory::desc other({16, 16}, dnnl::memory::data_type::f32, Tag::AB16b16a);
  EXPECT_FALSE(packTransposed(turned, other, from, to));
}

}  // namespace
}  // namespace wick::onednn::pack_transposed_test

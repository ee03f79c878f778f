#include "serialization/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"

namespace wick::npy_test {
namespace {

using namespace std::string_literals;

Bytes bytesOf(const std::string& text) {
  return copyBytes(std::as_bytes(std::span(text.data(), text.size())));
}

std::string npy(const std::string& header, const std::string& data) {
  return "\x93NUMPY\x01\x00"s + static_cast<char>(header.size()) + '\0' + header + data;
}

// Of a row-major tensor, as saveNpy writes it.
std::string npy(const Tensor& t) {
  return npyHeader(t) +
         std::string(static_cast<const char*>(t.rawData()), size_t(t.numel()) * t.itemSize());
}

TEST(NpyTest, RoundTripsEveryDType) {
#define WICK_DTYPE(type, name, text, number)                                  \
  if (DType::name != DType::BFloat16) {                                       \
    Tensor t = Tensor::zeros(DimVector{2, 3}, DType::name);                   \
    t.select(0, 1).fill(1);                                                   \
    Tensor back = loadNpy(bytesOf(npy(t)), text);                             \
    EXPECT_EQ(back.dtype(), DType::name);                                     \
    EXPECT_EQ(DimVector(back.sizes()), (DimVector{2, 3}));                    \
    EXPECT_EQ(std::memcmp(back.rawData(), t.rawData(), 6 * t.itemSize()), 0); \
  }
  WICK_FORALL_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  EXPECT_THROW(npy(Tensor::zeros({}, DType::BFloat16)), RuntimeError);
}

TEST(NpyTest, WritesNumPysHeader) {
  EXPECT_NE(npy(Tensor::zeros({}, DType::Float)).find("'shape': (), }"), std::string::npos);
  EXPECT_NE(npy(Tensor::zeros(DimVector{4}, DType::Float)).find("'shape': (4,), }"),
            std::string::npos);
  EXPECT_NE(npy(Tensor::zeros(DimVector{4, 2}, DType::Float)).find("'shape': (4, 2), }"),
            std::string::npos);
}

TEST(NpyTest, FortranOrderBecomesStrides) {
  Tensor t = loadNpy(bytesOf(npy("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n",
                                 "\x01\x02\x03\x04\x05\x06")),
                     "f.npy");
  EXPECT_EQ(t.select(0, 0).select(0, 1).item<int8_t>(), 3);
}

TEST(NpyTest, DamageIsALoadError) {
  const std::string whole = npy(Tensor::zeros(DimVector{2, 3}, DType::Float));
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_THROW(loadNpy(bytesOf(whole.substr(0, n)), "t"), LoadError) << n;
  }
  for (const char* header :
       {"", "{", "{}", "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4611686018427387904, 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 'y'}"}) {
    EXPECT_THROW(loadNpy(bytesOf(npy(header, "0000")), "t"), LoadError) << header;
  }
  try {
    loadNpy(bytesOf(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }", "0000")), "t");
    FAIL() << "accepted";
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("expected True or False"));
  }
}

}  // namespace
}  // namespace wick::npy_test

// Kronecker products: whichever way the rows are laid out, each element is one product.
#include <random>

#include "tests/runtime/op_testing.h"

namespace wick::kron_test {
namespace {

using namespace testing;

Tensor numbers(const DimVector& sizes, DType dtype, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> value(-9, 9);
  Tensor t = Tensor::empty(sizes, DType::Double);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = value(random);
  return t.to(dtype);
}

// By its definition, of matrices.
void expectProducts(const Tensor& x, const Tensor& y) {
  const Tensor found = call("aten::kron", "", x, y);
  const int64_t rows = y.size(0), columns = y.size(1);
  ASSERT_EQ(shape(found), (Shape{x.size(0) * rows, x.size(1) * columns}));
  const Values all = values(found), a = values(x), b = values(y);
  for (int64_t i = 0; i < found.size(0); ++i) {
    for (int64_t j = 0; j < found.size(1); ++j) {
      const double want = a[static_cast<size_t>(i / rows * x.size(1) + j / columns)] *
                          b[static_cast<size_t>(i % rows * columns + j % columns)];
      ASSERT_EQ(all[static_cast<size_t>(i * found.size(1) + j)], want)
          << i << ", " << j << " of " << x.describe() << " and " << y.describe();
    }
  }
}

TEST(Kron, MatricesOfAllSizes) {
  for (const int64_t n : {1, 2, 8}) {
    for (const int64_t m : {1, 3, 16, 70}) {
      const Tensor x = numbers({n, n + 1}, DType::Float, 1), y = numbers({m + 2, m}, DType::Int, 2);
      expectProducts(x, y);
      expectProducts(y, x);
      expectProducts(x.transpose(0, 1), y.transpose(0, 1));
      expectProducts(x.narrow(0, 0, 1).expand(DimVector{5, n + 1}), y);
    }
  }
  expectProducts(numbers({4, 0}, DType::Float, 1), numbers({4, 4}, DType::Float, 2));
}

TEST(Kron, RanksAreFilledInFront) {
  const Tensor x = numbers({6}, DType::Double, 3), y = numbers({5, 7, 4}, DType::Double, 4);
  const Tensor found = call("aten::kron", "", x, y);
  ASSERT_EQ(shape(found), (Shape{5, 7, 24}));
  for (int64_t i = 0; i < 6; ++i) {
    const Values part = values(found.narrow(2, 4 * i, 4).contiguous()), all = values(y);
    for (size_t k = 0; k < part.size(); ++k) ASSERT_EQ(part[k], x.data<double>()[i] * all[k]);
  }
}

}  // namespace
}  // namespace wick::kron_test

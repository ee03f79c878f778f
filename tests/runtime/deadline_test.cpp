// Operators that take long leave off, or are refused, when their time is over; and what a deadline
// cuts into parts gives the same bits as without one.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>

#include "core/budget.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/lapack.h"
#include "runtime/kernels/lapack_time.h"
#include "tests/runtime/op_testing.h"
#include "tests/runtime/random_tensor.h"
#include "tests/same_bits.h"

namespace wick::deadline_test {
namespace {

using namespace std::chrono_literals;
using testing::call;
using testing::callAll;
using testing_tensors::sameBits;
using Clock = std::chrono::steady_clock;

Budget::Bounds endingIn(Clock::duration time) {
  Budget::Bounds bounds;
  bounds.deadline = Clock::now() + time;
  return bounds;
}

// How long a call takes that is given so much time, and the class of the error that ends it.
struct Ended {
  double seconds = 0;
  std::string error = "none";
};
Ended endOf(Clock::duration time, const std::function<void()>& work) {
  Budget budget(endingIn(time));
  const BudgetScope scope(&budget);
  Ended ended;
  const auto begin = Clock::now();
  try {
    work();
  } catch (const RuntimeError& e) {
    ended.error = e.className();
  }
  ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return ended;
}

// Numbers without structure, in [0, 1): made faster than random ones.
Tensor arbitrary(IntSpan sizes, DType dtype = DType::Float) {
  const Tensor t = Tensor::empty(sizes, DType::Double);
  uint64_t state = 1;
  for (int64_t i = 0; i < t.numel(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    t.data<double>()[i] = static_cast<double>(state >> 40) / (1 << 24);
  }
  return t.to(dtype);
}

struct LongCall {
  const char* name;
  std::function<void()> (*make)();
};
void PrintTo(const LongCall& c, std::ostream* out) {
  *out << c.name;
}

// Each takes at least some ten seconds on two cores.
const LongCall kLongCalls[] = {
    {"svd",
     [] {
       return std::function<void()>([a = arbitrary({4000, 4000})] { callAll("aten::svd", "", a); });
     }},
    {"complex_svd",
     [] {
       return std::function<void()>(
           [a = arbitrary({2500, 2500}, DType::ComplexDouble)] { callAll("aten::svd", "", a); });
     }},
    {"eig",
     [] {
       return std::function<void()>(
           [a = arbitrary({3000, 3000})] { callAll("aten::linalg_eig", "", a); });
     }},
    {"eigh",
     [] {
       return std::function<void()>(
           [a = arbitrary({4000, 4000}, DType::Double)] { callAll("aten::linalg_eigh", "", a); });
     }},
    {"lstsq",
     [] {
       return std::function<void()>([a = arbitrary({4000, 4000}, DType::Double)] {
         callAll("aten::linalg_lstsq", "", a, a);
       });
     }},
    {"lu",
     [] {
       return std::function<void()>([a = arbitrary({8000, 8000}, DType::Double)] {
         callAll("aten::linalg_lu_factor", "", a);
       });
     }},
    {"matrix_exp",
     [] {
       return std::function<void()>(
           [a = arbitrary({4000, 4000}, DType::Double)] { callAll("aten::matrix_exp", "", a); });
     }},
    {"batch_of_svds",
     [] {
       return std::function<void()>(
           [a = arbitrary({1, 60, 60}).expand({40000, 60, 60})] { callAll("aten::svd", "", a); });
     }},
    {"convolution",
     [] {
       return std::function<void()>(
           [x = Tensor::full({1, 64, 1500, 1500}, 0.5, DType::Float),
            w = arbitrary({512, 64, 9, 9})] { callAll("aten::conv2d", "", x, w); });
     }},
    {"convolution_of_padding",
     [] {
       return std::function<void()>([x = arbitrary({1, 512, 2, 2}),
                                     w = arbitrary({512, 512, 7, 7})] {
         callAll("aten::conv2d", "", x, w, IValue(), makeIntList({1, 1}), makeIntList({900, 900}));
       });
     }},
    {"transposed_convolution",
     [] {
       return std::function<void()>([x = Tensor::full({1, 64, 1000, 1000}, 0.5, DType::Float),
                                     w = arbitrary({64, 128, 15, 15})] {
         callAll("aten::conv_transpose2d", "input", x, w);
       });
     }},
    {"wide_pooling",
     [] {
       return std::function<void()>([x = Tensor::zeros({1, 1, 3000, 3000}, DType::Float)] {
         callAll("aten::avg_pool2d", "", x, makeIntList({1500, 1500}), makeIntList({1, 1}));
       });
     }},
    {"sort",
     [] {
       return std::function<void()>([x = Tensor::zeros({1}, DType::Float).expand({1 << 26})] {
         callAll("aten::sort", "stable", x, true);
       });
     }},
    {"two_long_rows",
     [] {
       return std::function<void()>(
           [x = Tensor::full({2, 1 << 24}, 0.5, DType::Double).narrow(1, 1, (1 << 24) - 1)] {
             callAll("aten::special_gammaincc", "", x, x);
           });
     }},
    {"norms_of_an_expanded_row",
     [] {
       return std::function<void()>(
           [x = Tensor::full({1, 1}, 0.5, DType::Float).expand({2, int64_t{1} << 32}),
            i = Tensor::zeros({1}, DType::Long)] {
             callAll("aten::embedding_renorm_", "", x, i, 1e9, 3.0);
           });
     }},
    {"margins",
     [] {
       return std::function<void()>(
           [x = Tensor::zeros({500000}, DType::Float), t = Tensor::zeros({500000}, DType::Long)] {
             callAll("aten::multilabel_margin_loss", "", x, t);
           });
     }},
    {"bags",
     [] {
       return std::function<void()>(
           [w = Tensor::zeros({1, 10000000}, DType::Float),
            i = Tensor::zeros({100000}, DType::Long),
            o = Tensor::zeros({1}, DType::Long)] { callAll("aten::embedding_bag", "", w, i, o); });
     }},
    {"chain",
     [] {
       return std::function<void()>([] {
         callAll("aten::linalg_multi_dot", "",
                 makeTensorList(std::vector<Tensor>(6000, Tensor::zeros({1, 1}, DType::Float))));
       });
     }},
    {"equal_texts",
     [] {
       const IValue a(std::string(10'000'000, 'a')), b(std::string(10'000'000, 'a'));
       return std::function<void()>(
           [x = IValue(makeList(types::String(), std::vector<IValue>(100'000, a))),
            y = IValue(makeList(types::String(), std::vector<IValue>(100'000, b)))] {
             (void)x.equals(y);
           });
     }},
};

class LongCalls : public ::testing::TestWithParam<LongCall> {};
INSTANTIATE_TEST_SUITE_P(All, LongCalls, ::testing::ValuesIn(kLongCalls),
                         [](const auto& info) { return info.param.name; });

TEST_P(LongCalls, EndWithTheirTime) {
  const std::function<void()> work = GetParam().make();
  const Ended ended = endOf(300ms, work);
  EXPECT_EQ(ended.error, "TimeoutError");
  // Where others keep the library's threads from running, measuring alone takes seconds.
  EXPECT_LT(ended.seconds, 60);
}

TEST(Deadline, WorkThatEndsInTimeIsDone) {
  const Tensor a = arbitrary({300, 300}, DType::Double);
  const auto all = [&] {
    callAll("aten::svd", "", a);
    callAll("aten::linalg_eig", "", a);
    callAll("aten::linalg_eigh", "", a);
    callAll("aten::linalg_lstsq", "", a, a);
    callAll("aten::linalg_qr", "", a);
    callAll("aten::inverse", "", a);
    callAll("aten::linalg_multi_dot", "", makeTensorList({a, a, a, a}));
  };
  EXPECT_EQ(endOf(100s, all).error, "none");
}

// The machine is measured, and what would be in time is not refused.
TEST(Deadline, MeasuresBeforeItRefuses) {
  Budget budget(endingIn(20s));
  const BudgetScope scope(&budget);
  // More than the slowest machine would be trusted with, and a second's work or so.
  lapack::checkTime<float>(lapack::Work::Products, 5e9, "a test");
  EXPECT_THROW(lapack::checkTime<float>(lapack::Work::Products, 1e18, "a test"), RuntimeError);
  EXPECT_THROW(lapack::checkTime<double>(lapack::Work::Bidiagonal, 1e18, "a test"), RuntimeError);
  EXPECT_THROW(lapack::checkTime<std::complex<float>>(lapack::Work::Tridiagonal, 1e18, "a test"),
               RuntimeError);
  EXPECT_THROW(lapack::checkTime<std::complex<double>>(lapack::Work::Hessenberg, 1e18, "a test"),
               RuntimeError);
}

TEST(Deadline, NothingIsRefusedWithoutOne) {
  lapack::checkTime<float>(lapack::Work::Products, 1e30, "a test");
  Budget::Bounds bounds;
  bounds.memory = size_t{1} << 40;
  Budget budget(std::move(bounds));
  const BudgetScope scope(&budget);
  lapack::checkTime<float>(lapack::Work::Products, 1e30, "a test");
}

// ---- parts ----

struct Layer {
  DimVector input, weight, stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool transposed = false;
  bool residual = false;
  bool exact = true;
};

Tensor convolved(const Layer& l, bool channels_last) {
  ConvolutionParams p;
  p.stride = l.stride;
  p.padding = p.padding_after = l.padding;
  p.dilation = l.dilation;
  p.output_padding = l.output_padding.empty() ? DimVector(l.stride.size(), 0) : l.output_padding;
  p.groups = l.groups;
  p.transposed = l.transposed;
  Tensor x = arbitrary(l.input), w = arbitrary(l.weight);
  if (channels_last && x.dim() == 4) x = x.contiguous(MemoryFormat::ChannelsLast);
  const int64_t channels = l.transposed ? l.weight[1] * l.groups : l.weight[0];
  const Tensor bias = arbitrary(DimVector{channels});
  Tensor residual;
  if (l.residual) {
    residual = arbitrary(convolutionOutputSize("conv", x, w, bias, p));
  }
  return convolution("conv", x, w, bias, p, residual,
                     l.residual ? Activation::Relu : Activation::None);
}

// Up to rounding.
bool nearlySame(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return callAll("aten::allclose", "", x, y, 1e-5, 1e-6)[0].toBool();
}

TEST(Parts, OfConvolutionsGiveTheSame) {
  // Without AVX-512 oneDNN has other ways for some of the parts, which round otherwise.
  const bool wide = __builtin_cpu_supports("avx512f");
  const Layer layers[] = {
      // One image, its rows in slices; with a stride, padding, dilation.
      {{1, 64, 300, 300}, {64, 64, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {}},
      {{1, 64, 301, 299}, {128, 64, 7, 7}, {2, 2}, {3, 3}, {1, 1}, {}},
      // On newer Xeons oneDNN has another way for dilated rows of another height, which rounds otherwise.
      {{1, 64, 260, 260}, {64, 64, 3, 3}, {1, 1}, {4, 4}, {4, 4}, {}, 1, false, false, false},
      {{1, 256, 250, 250}, {512, 256, 1, 1}, {1, 1}, {0, 0}, {1, 1}, {}},
      // Images of a batch, alone and in slices.
      {{7, 64, 120, 120}, {128, 64, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {}},
      // Residuals that lie in the result and apart from it.
      {{2, 64, 200, 200}, {64, 64, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {}, 1, false, true},
      {{2, 256, 150, 150}, {256, 256, 1, 1}, {1, 1}, {0, 0}, {1, 1}, {}, 1, false, true},
      // Groups, one and three dimensions.
      {{1, 128, 300, 300}, {256, 32, 5, 5}, {1, 1}, {2, 2}, {1, 1}, {}, 4},
      // oneDNN has another way for rows as long as this one, which rounds otherwise.
      {{1, 64, 60000}, {64, 64, 31}, {1}, {15}, {1}, {}, 1, false, false, false},
      {{1, 32, 40, 50, 60}, {64, 32, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {}},
      // Rows that lie in the padding alone, and single rows that are cut themselves.
      {{1, 128, 3, 3}, {128, 128, 5, 5}, {1, 1}, {60, 60}, {1, 1}, {}, 1, false, false, wide},
      {{1, 256, 4, 20000}, {256, 256, 4, 5}, {1, 1}, {0, 2}, {1, 1}, {}},
      // Transposed, with gaps between what neighbours add to.
      {{1, 64, 150, 150}, {64, 64, 4, 4}, {2, 2}, {1, 1}, {1, 1}, {}, 1, true},
      {{2, 64, 128, 128}, {64, 64, 5, 5}, {1, 1}, {2, 2}, {1, 1}, {}, 1, true},
      {{1, 256, 200, 200}, {256, 256, 1, 1}, {3, 3}, {0, 0}, {1, 1}, {2, 2}, 1, true, false, wide},
      {{1, 64, 150, 150}, {64, 64, 3, 3}, {2, 2}, {0, 0}, {2, 2}, {1, 1}, 1, true},
  };
  for (const Layer& layer : layers) {
    for (bool channels_last : {false, true}) {
      const Tensor whole = convolved(layer, channels_last);
      Budget budget(endingIn(1000s));
      const BudgetScope scope(&budget);
      const Tensor parts = convolved(layer, channels_last);
      EXPECT_TRUE(layer.exact ? sameBits(whole, parts) : nearlySame(whole, parts))
          << formatInts(layer.input) << " " << formatInts(layer.weight) << " " << channels_last;
    }
  }
}

TEST(Parts, OfProductsGiveTheSame) {
  for (DType dtype : {DType::Float, DType::Double, DType::ComplexFloat}) {
    const Tensor a = arbitrary({1500, 1300}, dtype), b = arbitrary({1300, 1700}, dtype);
    const Tensor whole = call("aten::mm", "", a, b);
    Budget budget(endingIn(1000s));
    const BudgetScope scope(&budget);
    const Tensor parts = call("aten::mm", "", a, b);
    // OpenBLAS rounds otherwise for some numbers of rows.
    EXPECT_TRUE(dtype == DType::Float ? sameBits(whole, parts) : nearlySame(whole, parts))
        << toString(dtype);
  }
}

// ---- what was found beside ----

// The number of pairs overflows, to a small number for these.
TEST(Deadline, PairsOfManyRowsAreCounted) {
  const Tensor rows = Tensor::zeros({29609317455448317, 0}, DType::Float);
  EXPECT_THROW(call("aten::pdist", "", rows), RuntimeError);
  const Tensor some = Tensor::zeros({134}, DType::Float);
  EXPECT_THROW(call("aten::_pdist_backward", "", some, rows, 2.0, some), RuntimeError);
}

// LAPACK answers the size of its work space in float32, rounded.
TEST(Deadline, EigenvaluesOfLargeFloatMatrices) {
  const Tensor eye = call("aten::eye", "", 2900);
  const Tensor values = callAll("aten::linalg_eigh", "", eye)[0].toTensor();
  EXPECT_EQ(testing::values(values), std::vector<double>(2900, 1.0));
}

TEST(Deadline, LongChainsOfProducts) {
  std::vector<Tensor> chain(400, Tensor::full({2, 2}, 0.5, DType::Double));
  chain[0] = Tensor::full({3, 2}, 1, DType::Double);
  const Tensor product = callAll("aten::linalg_multi_dot", "", makeTensorList(chain))[0].toTensor();
  EXPECT_EQ(testing::values(product), std::vector<double>(6, 1.0));
}

}  // namespace
}  // namespace wick::deadline_test

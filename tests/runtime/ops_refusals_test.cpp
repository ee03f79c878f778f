// Calls that PyTorch refuses and that could be computed by mistake.
#include <limits>

#include "core/budget.h"
#include "tests/error_text.h"
#include "tests/runtime/op_testing.h"

namespace wick::ops_refusals_test {
namespace {

using namespace testing;

Tensor expandedOnes() {
  return iota(DimVector{1}).expand(DimVector{3});
}

TEST(Refusals, WritesToElementsThatShareMemory) {
  const Tensor x = expandedOnes();
  const Tensor at = longs({0}), one = floats({1});
  EXPECT_THROW(call("aten::copy_", "", x, floats({1, 2, 3})), RuntimeError);
  EXPECT_THROW(call("aten::add_", "Tensor", x, one), RuntimeError);
  EXPECT_THROW(call("aten::index_add_", "", x, 0, at, one), RuntimeError);
  EXPECT_THROW(call("aten::index_copy_", "", x, 0, at, one), RuntimeError);
  EXPECT_THROW(call("aten::index_reduce_", "", x, 0, at, one, std::string("prod")), RuntimeError);
  EXPECT_THROW(call("aten::put_", "", x, at, one), RuntimeError);
  EXPECT_THROW(call("aten::scatter_", "src", x, 0, at, one), RuntimeError);
  EXPECT_THROW(call("aten::scatter_", "value", x, 0, at, Scalar(2.0)), RuntimeError);
  EXPECT_THROW(call("aten::scatter_add_", "", x, 0, at, one), RuntimeError);
  // Results of kernels that know of no destination, one and several.
  const Tensor three = floats({1, 2, 3});
  EXPECT_THROW(call("aten::index_select", "out", three, 0, longs({0, 1, 2}), x), RuntimeError);
  EXPECT_THROW(call("aten::amax", "out", iota(DimVector{3, 2}), DimVector{1}, false, x),
               RuntimeError);
  EXPECT_THROW(callAll("aten::sort", "values", three, 0, false, x, longs({0, 0, 0})), RuntimeError);
}

TEST(Refusals, DimensionsThatAreNone) {
  const Tensor number = Tensor::scalar(1.0f);
  EXPECT_THROW(call("aten::roll", "", number, DimVector{0}, DimVector{0}), RuntimeError);
  EXPECT_EQ(values(call("aten::roll", "", number, DimVector{3})), Values{1});
  EXPECT_THROW(call("aten::movedim", "int", number, 1, 0), RuntimeError);
  EXPECT_EQ(values(call("aten::movedim", "int", number, -1, 0)), Values{1});
  EXPECT_THROW(call("aten::movedim", "intlist", number, DimVector{0, 0}, DimVector{0, 0}),
               RuntimeError);
  EXPECT_THROW(call("aten::count_nonzero", "dim_IntList", number, DimVector{0, -1}), RuntimeError);
  const Tensor deep = Tensor::zeros(DimVector(65, 1), DType::Float);
  EXPECT_THROW(call("aten::amax", "", deep, DimVector{0}), RuntimeError);
  EXPECT_THROW(call("aten::sum", "", deep), RuntimeError);
  // Tensors that join anything have no dimension to be wrong about.
  const std::vector<Tensor> nothing(2, Tensor::zeros(DimVector{0}, DType::Float));
  EXPECT_EQ(shape(call("aten::cat", "", nothing, 1)), Shape{0});
}

TEST(Refusals, DTypesOfWhatIsNeverCompared) {
  const Tensor number = Tensor::scalar(std::complex<float>(1, 2));
  EXPECT_THROW(callAll("aten::max", "dim", number, 0), RuntimeError);
  EXPECT_THROW(callAll("aten::min", "dim", number, 0), RuntimeError);
  EXPECT_EQ(shape(call("aten::argmax", "", Tensor::zeros(DimVector{3, 0}, DType::Bool), 0)),
            Shape{0});
  EXPECT_THROW(call("aten::linalg_vecdot", "", longs({1, 2}), longs({3, 4})), RuntimeError);
  EXPECT_THROW(call("aten::linalg_vecdot", "", floats({1}), floats({3, 4})), RuntimeError);
  EXPECT_EQ(values(call("aten::linalg_vecdot", "", floats({1, 2}), floats({3, 4}))), Values{11});
}

TEST(Refusals, NumbersThatTheDTypeCannotHold) {
  const Tensor shorts = iota(DimVector{2}, DType::Short);
  const Tensor huge = Tensor::scalar<int64_t>(int64_t{1} << 40);
  EXPECT_THROW(call("aten::fill_", "Tensor", shorts, huge), RuntimeError);
  EXPECT_THROW(
      call("aten::where", "ScalarOther", bools({true, false}), shorts, Scalar(int64_t{1} << 40)),
      RuntimeError);
  EXPECT_THROW(call("aten::index_fill_", "int_Scalar", shorts, 0, longs({0}),
                    Scalar(std::complex<double>(0, 1))),
               RuntimeError);
  const Tensor ones = longs({1, 1});
  EXPECT_THROW(call("aten::masked_fill", "Tensor", ones, bools({true, false}),
                    Tensor::scalar(std::complex<float>(0, 1))),
               RuntimeError);
  EXPECT_EQ(
      values(call("aten::masked_fill", "Tensor", ones, bools({true, false}), Tensor::scalar(2.5f))),
      (Values{2, 1}));
  // -0.5 is no negative limit where limits are integers.
  const Tensor bytes = iota(DimVector{3}, DType::Byte);
  EXPECT_EQ(values(call("aten::hardtanh", "", bytes, Scalar(0.5), Scalar(-0.5))),
            (Values{0, 0, 0}));
  EXPECT_THROW(call("aten::hardtanh", "", bytes, Scalar(-1), Scalar(1)), RuntimeError);
  const Tensor square = iota(DimVector{2, 2});
  const Scalar i(std::complex<double>(0, 1));
  EXPECT_THROW(call("aten::addmm", "", square, square, square, Scalar(1), i), RuntimeError);
  EXPECT_THROW(call("aten::renorm", "", square, Scalar(2), 0, i), RuntimeError);
  EXPECT_THROW(call("aten::histc", "", square, 4, Scalar(0), i), RuntimeError);
}

TEST(Refusals, SingularMatricesNameTheCall) {
  const Tensor zeros = Tensor::zeros({2, 2}, DType::Float);
  const Tensor b = iota(DimVector{2, 1});
  for (const char* op : {"aten::linalg_solve_ex", "aten::_linalg_solve_ex"}) {
    EXPECT_EQ(testing_errors::errorOf([&] { callAll(op, "", zeros, b, true, true); }),
              "torch.linalg.solve_ex: The solver failed because the input matrix is singular.");
    EXPECT_NO_THROW(callAll(op, "", zeros, b, true, false));
  }
  EXPECT_EQ(testing_errors::errorOf([&] {
              call("aten::linalg_cond", "p_str", iota(DimVector{2, 3}), std::string("nuc"));
            }),
            "linalg.cond: A must be batches of square matrices, but they are 2 by 3 matrices");
}

TEST(Refusals, DTypesThatHaveNoMeaning) {
  const Tensor truths = bools({true, false});
  EXPECT_THROW(call("aten::trapezoid", "dx", truths), RuntimeError);
  EXPECT_THROW(call("aten::trapezoid", "x", floats({1, 2}), truths), RuntimeError);
  EXPECT_THROW(call("aten::hardtanh", "", iota(DimVector{2}, DType::Byte), Scalar(-1), Scalar(1)),
               RuntimeError);
  EXPECT_THROW(call("aten::argmax", "", truths, 0), RuntimeError);
  EXPECT_THROW(
      call("aten::index_copy_", "", floats({1, 2}), 0, iota(DimVector{1}, DType::Int), floats({1})),
      RuntimeError);
  EXPECT_THROW(call("aten::cumsum_", "", floats({1, 2}), 0, DType::Double), RuntimeError);
  EXPECT_THROW(
      call("aten::nextafter", "", iota(DimVector{1}, DType::Long), iota(DimVector{1}, DType::Long)),
      RuntimeError);
}

TEST(Refusals, ArgumentsOutOfRange) {
  const Tensor square = iota(DimVector{2, 2});
  EXPECT_THROW(call("aten::cross_entropy_loss", "", square, square, Tensor(), 1, 0), RuntimeError);
  EXPECT_THROW(call("aten::multilabel_margin_loss", "", floats({1, 2, 3}), longs({0, -4, 1})),
               RuntimeError);
  EXPECT_THROW(call("aten::cov", "", square, 1, longs({1, -1})), RuntimeError);
  EXPECT_THROW(call("aten::prelu", "", square, square), RuntimeError);
  EXPECT_THROW(call("aten::kl_div", "", square, square.to(DType::Long)), RuntimeError);
  EXPECT_THROW(call("aten::fft_fft", "", square, -1), RuntimeError);
  EXPECT_THROW(call("aten::exponential_", "", square, -1.0), RuntimeError);
  EXPECT_THROW(call("aten::conv_transpose1d", "", iota(DimVector{1, 1, 2}),
                    iota(DimVector{1, 1, 1}), Tensor(), DimVector{1}, DimVector{1}),
               RuntimeError);
  const Tensor cube = iota(DimVector{2, 2, 2});
  EXPECT_THROW(call("aten::linalg_norm", "", cube, Scalar(2), DimVector{0, 1, 2}), RuntimeError);
  EXPECT_THROW(call("aten::linalg_matrix_norm", "", square, Scalar(1), DimVector{-2, -1}, false,
                    DType::Half),
               RuntimeError);
  EXPECT_THROW(call("aten::linalg_matrix_norm", "", square, Scalar(1), DimVector{-2, -1}, false,
                    DType::ComplexFloat),
               RuntimeError);
}

// A place for each row is eight times as large as the result.
TEST(Refusals, PlacesBeyondTheMemoryOfARun) {
  Budget::Bounds bounds;
  bounds.memory = size_t{32} << 20;
  Budget budget(std::move(bounds));
  BudgetScope scope(&budget);
  const Tensor x = Tensor::zeros(DimVector{1}, DType::Bool).expand(DimVector{1 << 23});
  EXPECT_THROW(call("aten::flip", "", x, DimVector{0}), RuntimeError);
  const Tensor planes = x.unsqueeze(0).unsqueeze(0);
  EXPECT_THROW(call("aten::replication_pad1d", "", planes.to(DType::Byte), DimVector{1, 1}),
               RuntimeError);
  EXPECT_LT(budget.used(), 9 << 20);
}

TEST(Refusals, ListsThatNoMemoryHolds) {
  const Tensor none = iota(DimVector{0});
  EXPECT_THROW(callAll("aten::chunk", "", none, int64_t{1} << 40, 0), RuntimeError);
}

// A tensor without dimensions takes 0 and -1 as if it had one.
TEST(Refusals, DimensionsOfNumbers) {
  const Tensor one = iota(DimVector{});
  EXPECT_THROW(call("aten::linalg_tensorsolve", "", one, one, DimVector{0}), RuntimeError);
}

TEST(Integers, SumsWrap) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  const Tensor least = longs({kLeast}), minus = longs({-1});
  EXPECT_EQ(call("aten::index_add", "", least, 0, longs({0}), minus).item<int64_t>(),
            -(kLeast + 1));
  EXPECT_EQ(call("aten::put", "", least, longs({0}), minus, true).item<int64_t>(), -(kLeast + 1));
}

// Positions that scales lead to lie far away, or nowhere.
TEST(Upsample, ScalesOfAnySize) {
  const Tensor x = iota(DimVector{1, 1, 4});
  for (double scale : {1e-310, 1e-30, 1e30, 1e300}) {
    for (const char* name : {"aten::upsample_linear1d", "aten::upsample_nearest1d"}) {
      const bool linear = std::string_view(name).ends_with("linear1d");
      const Tensor y = linear ? call(name, "", x, DimVector{5}, false, scale)
                              : call(name, "", x, DimVector{5}, scale);
      for (double v : values(y)) EXPECT_TRUE(v >= 0 && v <= 3) << name << " " << scale;
    }
  }
}

// They compile, as they do in PyTorch, and say why they cannot run.
TEST(Refusals, OperatorsOfOtherBackends) {
  const Tensor square = iota(DimVector{2, 2});
  for (const char* name : {"aten::smm", "aten::hspmm"}) {
    try {
      call(name, "", square, square);
      ADD_FAILURE() << name;
    } catch (const RuntimeError& e) {
      EXPECT_NE(std::string(e.what()).find("sparse"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(call("aten::_linalg_check_errors", "", tensorOf<int32_t>({0, 2}),
                    std::string("linalg.cholesky"), false),
               RuntimeError);
}

// What follows a convolution as y += r keeps the dtype and the shape of y; y + r need not.
TEST(FusedConvolution, AddsInPlaceAsAddDoes) {
  Tensor x = iota({1, 1, 2, 2}), w = iota({2, 1, 1, 1});
  auto fused = [&](const Tensor& residual, bool in_place) {
    IValue ones(makeIntList({1, 1})), zeros(makeIntList({0, 0}));
    return call("wick::conv2d_fused", "", x, w, IValue(), residual, ones, zeros, ones, int64_t{1},
                std::string("none"), in_place);
  };
  Tensor wide = iota({2, 2}, DType::Double);
  EXPECT_EQ(fused(wide, false).dtype(), DType::Double);
  Tensor kept = fused(wide, true);
  EXPECT_EQ(kept.dtype(), DType::Float);
  EXPECT_EQ(values(kept), (Values{0, 1, 2, 3, 0, 2, 4, 6}));
  EXPECT_EQ(shape(fused(iota({3, 2, 2, 2}), false)), (Shape{3, 2, 2, 2}));
  EXPECT_THROW(fused(iota({3, 2, 2, 2}), true), RuntimeError);
}

// Products of several matrices in which there is nothing to multiply have the dtype of the second.
TEST(Matmul, WithoutElementsHasTheSecondDtype) {
  Tensor a = Tensor::zeros({0, 1, 3, 2}, DType::Bool), b = Tensor::zeros({1, 2, 1}, DType::Float);
  EXPECT_EQ(call("aten::matmul", "", a, b).dtype(), DType::Float);
}

// Arguments at the edges of int64, with which sums and products of sizes overflow.
TEST(Refusals, SizesAtTheEdgesOfInt64) {
  const Tensor x = floats({1, 2});
  EXPECT_THROW(call("aten::combinations", "", x, INT64_MAX, true), RuntimeError);
  EXPECT_THROW(call("aten::_transform_bias_rescale_qkv", "", iota(DimVector{1, 1, 6}),
                    floats({1, 2, 3, 4, 5, 6}), INT64_MAX / 2),
               RuntimeError);
  const Tensor many = Tensor::full({}, 0, DType::Long).expand({int64_t{1} << 40});
  const Tensor wide = Tensor::zeros({1}, DType::Float).expand({0, int64_t{1} << 40});
  EXPECT_THROW(call("aten::embedding_dense_backward", "", wide, many, 1, -1, false), RuntimeError);
  EXPECT_THROW(call("aten::replication_pad1d", "", iota(DimVector{1, 1, 2}),
                    makeIntList({INT64_MIN, INT64_MAX})),
               RuntimeError);
}

TEST(Refusals, DifferencesAndWindowsOfNothing) {
  const Tensor none = Tensor::zeros({0, int64_t{1} << 40}, DType::Float);
  EXPECT_EQ(shape(call("aten::diff", "", none, INT64_MAX - 1, 1)), (Shape{0, 0}));
  EXPECT_EQ(shape(call("aten::diff", "", none, 3, 1)), (Shape{0, (int64_t{1} << 40) - 3}));
  EXPECT_THROW(call("aten::fractional_max_pool2d", "", iota(DimVector{1, 1, 4, 4}),
                    makeIntList({INT64_MAX, 3}), makeIntList({4, 1}),
                    Tensor::zeros({1, 1, 2}, DType::Float)),
               RuntimeError);
}

TEST(Refusals, BlocksWithoutAProductOfSizes) {
  const int64_t big = int64_t{1} << 40;
  const Tensor none = call("aten::sparse_coo_tensor", "size", makeIntList({0, 0}));
  EXPECT_THROW(call("aten::to_sparse_bsr", "", none, makeIntList({big, big})), RuntimeError);
}

// Which dtypes of out= PyTorch 1.13 takes, beside the result's own.
TEST(Refusals, OutputsOfOtherDTypes) {
  const Tensor mask = Tensor::zeros({2}, DType::Bool);
  enum Taken { kNone, kThoseItCastsTo, kEvery };
  const Tensor x = floats({3, 1, 2}), y = floats({1, 2, 3}), at = longs({0, 2});
  const Tensor square = iota(DimVector{2, 2}), image = iota(DimVector{1, 4, 4});
  const auto check = [](const char* name, const char* overload, Taken taken, DType result,
                        auto&&... args) {
    constexpr DType kAll[] = {DType::Bool,   DType::Byte,         DType::Int,
                              DType::Long,   DType::Half,         DType::Float,
                              DType::Double, DType::ComplexFloat, DType::ComplexDouble};
    for (const DType dtype : kAll) {
      const bool is_taken = dtype == result || taken == kEvery ||
                            (taken == kThoseItCastsTo && canCast(result, dtype));
      const Tensor out = Tensor::zeros({0}, dtype);
      bool was_taken = true;
      try {
        callAll(name, overload, args..., out);
      } catch (const RuntimeError&) {
        was_taken = false;
      }
      EXPECT_EQ(was_taken, is_taken) << name << " into " << toString(dtype);
    }
  };
  check("aten::argmax", "out", kNone, DType::Long, x, 0, false);
  check("aten::nonzero", "out", kNone, DType::Long, x);
  check("aten::searchsorted", "out", kNone, DType::Int, y, x, true, false, IValue(), IValue());
  check("aten::index_select", "out", kNone, DType::Float, x, 0, at);
  check("aten::gather", "out", kNone, DType::Float, x, 0, at, false);
  check("aten::mm", "out", kNone, DType::Float, square, square);
  check("aten::abs", "out", kNone, DType::Float, x);
  check("aten::clamp", "out", kNone, DType::Float, x, Scalar(1.0), IValue());
  check("aten::clamp", "Tensor_out", kThoseItCastsTo, DType::Float, x, y, IValue());
  check("aten::avg_pool2d", "out", kNone, DType::Float, image, DimVector{2, 2}, DimVector{},
        DimVector{0, 0}, false, true, IValue());
  check("aten::tril", "out", kNone, DType::Float, square, 0);
  check("aten::add", "out", kThoseItCastsTo, DType::Float, x, y, Scalar(int64_t{1}));
  check("aten::cat", "out", kThoseItCastsTo, DType::Float, makeTensorList({x, y}), 0);
  check("aten::exp", "out", kThoseItCastsTo, DType::Float, x);
  check("aten::repeat", "out", kEvery, DType::Float, x, DimVector{2});
  check("aten::rsub", "Scalar_out", kEvery, DType::Float, x, Scalar(1.0), Scalar(int64_t{1}));
  check("aten::masked_fill", "Scalar_out", kEvery, DType::Long, at, mask, Scalar(int64_t{1}));
  check("aten::eq", "out", kEvery, DType::Bool, x, y);
  const Tensor complex_out = Tensor::zeros({0}, DType::ComplexFloat);
  EXPECT_THROW(call("aten::logsumexp", "out", x, DimVector{0}, false, complex_out), RuntimeError);
  EXPECT_EQ(call("aten::exp", "out", x, complex_out).dtype(), DType::ComplexFloat);
  // Each of several results.
  const Tensor values = Tensor::zeros({0}, DType::Float), indices = Tensor::zeros({0}, DType::Long);
  check("aten::sort", "values", kNone, DType::Long, x, 0, false, values);
  check("aten::topk", "values", kNone, DType::Long, x, 1, 0, true, true, values);
  check("aten::max", "dim_max", kNone, DType::Long, x, 0, false, values);
  for (const DType dtype : {DType::Double, DType::Half}) {
    EXPECT_THROW(callAll("aten::sort", "values", x, 0, false, Tensor::zeros({0}, dtype), indices),
                 RuntimeError);
  }
  // Results of true and false may be written as uint8.
  const Tensor byte = Tensor::zeros({0}, DType::Byte);
  EXPECT_EQ(testing::values(call("aten::any", "out", x, byte)), (Values{1}));
  EXPECT_THROW(call("aten::any", "out", x, Tensor::zeros({0}, DType::Int)), RuntimeError);
}

// An index that is checked and then written to would point outside.
TEST(Scatter, RefusesAnIndexThatIsWrittenTo) {
  const Tensor x = longs({1, 0, 2, 1});
  EXPECT_THROW(call("aten::scatter_", "value", x, 0, x, Scalar(int64_t{1} << 40)), RuntimeError);
  EXPECT_EQ(values(x), (Values{1, 0, 2, 1}));
}

}  // namespace
}  // namespace wick::ops_refusals_test

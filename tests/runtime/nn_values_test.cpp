// Operators against PyTorch's answers: they get waves (sines of a square); the sizes and a weighted sum
// of the first result are compared.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/runtime/op_testing.h"

namespace wick::nn_values_test {
namespace {

// sin(0.37 i^2 + 0.7 i + seed) in row-major order: matrices of full rank.
IValue wave(const DimVector& sizes, double seed) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) {
    double x = static_cast<double>(i);
    t.data<float>()[i] = static_cast<float>(std::sin(0.37 * x * x + 0.7 * x + seed));
  }
  return IValue(t);
}
IValue ints(const DimVector& values) {
  return IValue(makeIntList(values));
}
IValue floats(std::vector<double> values) {
  return IValue(makeList(types::Float(), std::vector<IValue>(values.begin(), values.end())));
}
IValue tensors(std::vector<IValue> values) {
  return IValue(makeList(types::Tensor(), std::move(values)));
}

// The sizes of the first result, and its elements weighted by their places.
template <class... Args>
void expectSum(const char* name, const char* overload, const char* sizes, double checksum,
               Args&&... args) {
  const Tensor out =
      testing::call(name, overload, std::forward<Args>(args)...).to(DType::Double).contiguous();
  EXPECT_EQ(formatInts(out.sizes()), sizes) << name;
  double sum = 0;
  for (int64_t i = 0; i < out.numel(); ++i) {
    sum += out.data<double>()[i] * std::cos(static_cast<double>(i) * 0.3);
  }
  EXPECT_NEAR(sum, checksum, 1e-4 * (1 + std::abs(checksum))) << name;
}

TEST(Values, NormsAndPools) {
  expectSum("aten::batch_norm", "", "[2, 3, 4, 5]", 8.323408861175217, wave({2, 3, 4, 5}, 0),
            wave({3}, 1), wave({3}, 2), IValue(), IValue(), true, 0.1, 1e-05, true);
  expectSum("aten::layer_norm", "", "[4, 6, 10]", -6.6348032437006825, wave({4, 6, 10}, 0),
            ints({10}), wave({10}, 1), wave({10}, 2), 1e-05, true);
  expectSum("aten::group_norm", "", "[2, 6, 3, 3]", 7.155733829241431, wave({2, 6, 3, 3}, 0), 3,
            wave({6}, 1), wave({6}, 2), 1e-05, true);
  expectSum("aten::instance_norm", "", "[2, 3, 4, 5]", 3.6133501657745137, wave({2, 3, 4, 5}, 0),
            IValue(), IValue(), IValue(), IValue(), true, 0.1, 1e-05, true);
  expectSum("aten::max_pool2d", "", "[2, 3, 5, 4]", -10.466203163009704, wave({2, 3, 9, 8}, 0),
            ints({3, 2}), ints({2, 2}), ints({1, 0}), ints({1, 2}), true);
  expectSum("aten::avg_pool2d", "", "[2, 3, 5, 4]", -5.028112206194434, wave({2, 3, 9, 8}, 0),
            ints({3, 2}), ints({2, 2}), ints({1, 0}), true, false, IValue());
  expectSum("aten::avg_pool3d", "", "[1, 2, 3, 5, 4]", 0.20406868508322695,
            wave({1, 2, 5, 6, 7}, 0), ints({3, 2, 2}), ints({2, 1, 2}), ints({1, 0, 1}), false,
            true, IValue());
  expectSum("aten::adaptive_avg_pool2d", "", "[2, 3, 4, 3]", 1.403644303838866,
            wave({2, 3, 9, 8}, 0), ints({4, 3}));
  expectSum("aten::adaptive_max_pool2d", "", "[2, 3, 4, 3]", 2.2808534445744346,
            wave({2, 3, 9, 8}, 0), ints({4, 3}));
}

TEST(Values, Samples) {
  expectSum("aten::upsample_bilinear2d", "", "[1, 2, 7, 9]", 1.889785794371055,
            wave({1, 2, 4, 5}, 0), ints({7, 9}), true, IValue(), IValue());
  expectSum("aten::upsample_bilinear2d", "vec", "[1, 2, 6, 3]", -1.1973789772834944,
            wave({1, 2, 4, 5}, 0), IValue(), false, floats({1.5, 0.7}));
  expectSum("aten::upsample_bicubic2d", "", "[1, 2, 7, 3]", 2.9915556408689286,
            wave({1, 2, 4, 5}, 0), ints({7, 3}), false, IValue(), IValue());
  expectSum("aten::upsample_nearest2d", "", "[1, 2, 7, 3]", 2.1320211398292894,
            wave({1, 2, 4, 5}, 0), ints({7, 3}), IValue(), IValue());
  expectSum("aten::_upsample_nearest_exact2d", "", "[1, 2, 7, 3]", 0.9281729632180301,
            wave({1, 2, 4, 5}, 0), ints({7, 3}), IValue(), IValue());
  expectSum("aten::_upsample_bilinear2d_aa", "", "[1, 2, 4, 3]", 1.5426459232697471,
            wave({1, 2, 9, 8}, 0), ints({4, 3}), false, IValue(), IValue());
  expectSum("aten::upsample_trilinear3d", "", "[1, 2, 5, 3, 7]", 10.975704458112064,
            wave({1, 2, 3, 4, 5}, 0), ints({5, 3, 7}), false, IValue(), IValue(), IValue());
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -2.3452339398680753, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 0, 0, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -3.1770462972810813, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 0, 1, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -3.177046188564693, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 0, 2, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -5.367345703868238, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 1, 0, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -5.367345703868238, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 1, 1, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -5.367345703868238, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 1, 2, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -3.115150022654676, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 2, 0, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -3.959209105881433, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 2, 1, false);
  expectSum("aten::grid_sampler_2d", "", "[1, 2, 4, 3]", -3.840048697656955, wave({1, 2, 5, 6}, 0),
            wave({1, 4, 3, 2}, 3), 2, 2, false);
  expectSum("aten::grid_sampler_3d", "", "[1, 2, 2, 4, 3]", 1.9229445788137192,
            wave({1, 2, 4, 5, 6}, 0), wave({1, 2, 4, 3, 3}, 3), 0, 2, true);
  expectSum("aten::affine_grid_generator", "", "[2, 3, 4, 2]", 0.7197116305978071,
            wave({2, 2, 3}, 0), ints({2, 1, 3, 4}), false);
}

TEST(Values, LayersAndLosses) {
  expectSum("aten::im2col", "", "[2, 18, 21]", 6.313221553905896, wave({2, 3, 6, 7}, 0),
            ints({3, 2}), ints({1, 2}), ints({1, 1}), ints({2, 1}));
  expectSum("aten::conv_transpose2d", "input", "[1, 4, 10, 10]", -15.490136020193347,
            wave({1, 4, 5, 6}, 0), wave({4, 2, 3, 3}, 1), wave({4}, 2), ints({2, 1}), ints({1, 0}),
            ints({1, 0}), 2, ints({1, 2}));
  expectSum("aten::conv1d", "padding", "[2, 6, 9]", -6.857848812360496, wave({2, 4, 9}, 0),
            wave({6, 2, 4}, 1), IValue(), ints({1}), IValue("same"), ints({2}), 2);
  expectSum("aten::conv3d", "", "[1, 3, 3, 3, 6]", 32.694814379948234, wave({1, 2, 5, 5, 5}, 0),
            wave({3, 2, 2, 3, 2}, 1), IValue(), ints({1, 2, 1}), ints({0, 1, 1}), ints({2, 1, 1}),
            1);
  expectSum("aten::lstm", "input", "[6, 3, 10]", -2.1982142546819574, wave({6, 3, 4}, 0),
            tensors({wave({2, 3, 5}, 1), wave({2, 3, 5}, 2)}),
            tensors({wave({20, 4}, 1), wave({20, 5}, 2), wave({20}, 3), wave({20}, 4),
                     wave({20, 4}, 5), wave({20, 5}, 6), wave({20}, 7), wave({20}, 8)}),
            true, 1, 0.0, false, true, false);
  expectSum("aten::gru", "input", "[3, 6, 5]", -0.011709252185188035, wave({3, 6, 4}, 0),
            wave({1, 3, 5}, 1),
            tensors({wave({15, 4}, 1), wave({15, 5}, 2), wave({15}, 3), wave({15}, 4)}), true, 1,
            0.0, false, false, true);
  expectSum("aten::mse_loss", "", "[]", 1.5293735265731812, wave({3, 4}, 0), wave({3, 4}, 2), 1);
  expectSum("aten::l1_loss", "", "[]", 1.1687226295471191, wave({3, 4}, 0), wave({3, 4}, 2), 1);
  expectSum("aten::smooth_l1_loss", "", "[]", 0.6826798319816589, wave({3, 4}, 0), wave({3, 4}, 2),
            1);
  expectSum("aten::huber_loss", "", "[]", 0.6826798319816589, wave({3, 4}, 0), wave({3, 4}, 2), 1);
  expectSum("aten::soft_margin_loss", "", "[]", 10.066646575927734, wave({3, 4}, 0),
            wave({3, 4}, 2), 2);
  expectSum("aten::binary_cross_entropy_with_logits", "", "[3, 4]", 0.7296704120510642,
            wave({3, 4}, 0), wave({3, 4}, 2), wave({3, 4}, 5), wave({4}, 6), 0);
  expectSum("aten::triplet_margin_loss", "", "[3]", 3.568375459812481, wave({3, 4}, 0),
            wave({3, 4}, 2), wave({3, 4}, 4), 1.0, 2.0, 1e-06, true, 0);
  expectSum("aten::cosine_similarity", "", "[3]", -1.349937158118189, wave({3, 4}, 0),
            wave({3, 4}, 2), 1, 1e-08);
  expectSum("aten::pairwise_distance", "", "[3, 1]", 8.419330608519111, wave({3, 4}, 0),
            wave({3, 4}, 2), 1.5, 1e-06, true);
  expectSum("aten::glu", "", "[3, 4]", 0.1761543707206641, wave({3, 8}, 0), -1);
}

TEST(Values, ProductsAndReductions) {
  expectSum("aten::einsum", "", "[2, 5, 3]", -2.4618431840155246, IValue("bij,bjk->bki"),
            tensors({wave({2, 3, 4}, 0), wave({2, 4, 5}, 1)}));
  expectSum("aten::einsum", "", "[2]", 1.1696823073053755, IValue("...ii,i->..."),
            tensors({wave({2, 3, 3}, 0), wave({3}, 1)}));
  expectSum("aten::bilinear", "", "[3, 6]", 0.42995101457540424, wave({3, 4}, 0), wave({3, 5}, 1),
            wave({6, 4, 5}, 2), wave({6}, 3));
  expectSum("aten::tensordot", "", "[5, 2]", 2.0986184513120794, wave({3, 4, 5}, 0),
            wave({4, 3, 2}, 1), ints({1, 0}), ints({0, 1}));
  expectSum("aten::baddbmm", "", "[2, 3, 5]", 6.8734179244619, wave({2, 3, 5}, 0),
            wave({2, 3, 4}, 1), wave({2, 4, 5}, 2));
  expectSum("aten::linalg_det", "", "[3]", -2.114369294411078, wave({3, 4, 4}, 0));
  expectSum("aten::linalg_inv", "", "[4, 4]", -0.56828176498349, wave({4, 4}, 9));
  expectSum("aten::linalg_solve", "", "[4, 3]", -1.9030289849756157, wave({4, 4}, 9),
            wave({4, 3}, 0));
  expectSum("aten::linalg_solve_ex", "", "[4, 3]", -1.9030289849756157, wave({4, 4}, 9),
            wave({4, 3}, 0));
  expectSum("aten::linalg_solve_triangular", "", "[2, 4, 3]", 3.3296401763787493,
            wave({2, 4, 4}, 3), wave({2, 4, 3}, 1), true, true, true);
  const Tensor square = wave({2, 4, 4}, 2).toTensor();
  const std::vector<IValue> factors =
      testing::callAll("aten::linalg_ldl_factor", "",
                       testing::call("aten::add", "Tensor", square, square.transpose(1, 2)));
  expectSum("aten::linalg_ldl_solve", "", "[2, 4, 3]", 8.744793154170292, factors[0], factors[1],
            wave({2, 4, 3}, 1));
  expectSum("aten::linalg_cond", "p_str", "[2]", 47.937524206694846, wave({2, 4, 4}, 9),
            IValue("nuc"));
  expectSum("aten::linalg_svdvals", "", "[2, 3]", 6.1669781625336855, wave({2, 5, 3}, 0));
  expectSum("aten::linalg_eigvalsh", "", "[2, 4]", -3.017721815823105, wave({2, 4, 4}, 0),
            IValue("L"));
  expectSum("aten::linalg_norm", "ord_str", "[]", 5.784284591674805, wave({4, 5}, 0), IValue("nuc"),
            IValue(), false);
  expectSum("aten::matrix_exp", "", "[3, 4, 4]", -0.10867116170932345, wave({3, 4, 4}, 0));
  expectSum("aten::linalg_matrix_power", "", "[4, 4]", 14057.899025547067, wave({4, 4}, 0), -2);
  expectSum("aten::cdist", "", "[3, 4]", -2.563864528330257, wave({3, 5}, 0), wave({4, 5}, 2), 1.5,
            IValue());
  expectSum("aten::logcumsumexp", "", "[4, 5]", 0.06695914725443275, wave({4, 5}, 0), 1);
  expectSum("aten::renorm", "", "[4, 5]", 1.854203558803409, wave({4, 5}, 0), 2.0, 0, 1.0);
  expectSum("aten::logsumexp", "", "[5]", 5.365535489585079, wave({4, 5}, 0), ints({0}));
  expectSum("aten::var", "dim", "[4]", 1.3192457034707628, wave({4, 5}, 0), ints({1}), true, false);
  expectSum("aten::cumprod", "", "[4, 5]", -0.11802124659165064, wave({4, 5}, 0), 1);
  expectSum("aten::fft_irfft", "", "[3, 12]", -0.409551619933076, wave({3, 7}, 0), IValue(), -1,
            IValue("ortho"));
  expectSum("aten::fft_hfft", "", "[3, 6]", 2.900248389589922, wave({3, 7}, 0), 6, -1, IValue());
}

// PyTorch keeps the statistics of 16-bit channels in their dtype before it normalizes with them: the
// mean, the variance with eps, and one over its root.
TEST(BatchNorm, RoundsTheStatisticsOfShortFloats) {
  static const OperatorHandle kBatchNorm("aten::batch_norm", "");
  const auto rounded = [](double v) {
    return static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(v))));
  };
  constexpr double kEps = 0.6;
  const Tensor x = wave({3, 2, 7}, 0.3).toTensor().to(DType::BFloat16);
  const Tensor wide = x.to(DType::Double);
  const Tensor out = kBatchNorm(x, Tensor(), Tensor(), Tensor(), Tensor(), true, 0.1, kEps, false)
                         .to(DType::Double);
  for (int64_t c = 0; c < 2; ++c) {
    const auto at = [&](const Tensor& t, int64_t i) {
      return t.data<double>()[(i / 7 * 2 + c) * 7 + i % 7];
    };
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < 21; ++i) mean += at(wide, i) / 21;
    for (int64_t i = 0; i < 21; ++i) variance += std::pow(at(wide, i) - mean, 2) / 21;
    const double scale = rounded(1 / std::sqrt(rounded(variance + kEps)));
    for (int64_t i = 0; i < 21; ++i) {
      EXPECT_EQ(at(out, i), rounded((at(wide, i) - rounded(mean)) * scale)) << c << " " << i;
    }
  }
}

// Many rows are compared by one matrix product, unless the mode says otherwise.
TEST(Cdist, AgreesInEveryMode) {
  static const OperatorHandle kCdist("aten::cdist", "");
  const IValue a = wave({2, 30, 5}, 0), b = wave({1, 9, 5}, 2);
  const Tensor each = kCdist(a, b, 2.0, int64_t{2}), chosen = kCdist(a, b, 2.0, IValue()),
               product = kCdist(a, b, 2.0, int64_t{1});
  ASSERT_EQ(DimVector(each.sizes()), (DimVector{2, 30, 9}));
  ASSERT_EQ(DimVector(chosen.sizes()), (DimVector{2, 30, 9}));
  for (int64_t i = 0; i < each.numel(); ++i) {
    EXPECT_NEAR(each.data<float>()[i], chosen.data<float>()[i], 1e-5) << i;
    EXPECT_EQ(product.data<float>()[i], chosen.data<float>()[i]) << i;
  }
  EXPECT_THROW(kCdist(a, b, 2.0, int64_t{3}), RuntimeError);
  const Tensor none = kCdist(wave({30, 0}, 0), wave({4, 0}, 0), 2.0, IValue());
  EXPECT_EQ(none.numel(), 120);
  for (int64_t i = 0; i < none.numel(); ++i) EXPECT_EQ(none.data<float>()[i], 0) << i;
}

// 16 bits are attended to in float32: the result is that of float32, rounded.
TEST(Attention, RoundsTheResultAlone) {
  static const OperatorHandle kAttention("aten::scaled_dot_product_attention", "");
  const auto narrow = [](const IValue& v) { return v.toTensor().to(DType::BFloat16); };
  const Tensor q = narrow(wave({2, 3, 8}, 0)), k = narrow(wave({2, 5, 8}, 1)),
               v = narrow(wave({2, 5, 8}, 2)), mask = narrow(wave({3, 5}, 3));
  const auto wide = [](const Tensor& t) { return t.to(DType::Float); };
  for (bool masked : {false, true}) {
    const Tensor m = masked ? mask : Tensor(), wide_m = masked ? wide(mask) : Tensor();
    const Tensor got = kAttention(q, k, v, m, 0.0, false, 0.9, false);
    const Tensor want = kAttention(wide(q), wide(k), wide(v), wide_m, 0.0, false, 0.9, false);
    ASSERT_EQ(got.dtype(), DType::BFloat16);
    const Tensor a = wide(got), b = wide(want.to(DType::BFloat16));
    for (int64_t i = 0; i < a.numel(); ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]) << i;
  }
}

// Sums of one operand are int64, also over sizes of one; products keep their dtype.
TEST(Einsum, SumsIntegersAsSumDoes) {
  static const OperatorHandle kEinsum("aten::einsum", "");
  const IValue one(Tensor::full(DimVector{1, 3, 1}, 2, DType::Int));
  const auto dtypeOf = [&](const char* equation, std::vector<IValue> operands) {
    return Tensor(kEinsum(IValue(equation), tensors(std::move(operands)), IValue())).dtype();
  };
  EXPECT_EQ(dtypeOf("iji->j", {one}), DType::Long);
  EXPECT_EQ(dtypeOf("ijk->jki", {one}), DType::Int);
  EXPECT_EQ(dtypeOf("ijk,ijk->j", {one, one}), DType::Int);
}

// Any number of groups divides no channels at all.
TEST(GroupNorm, RefusesGroupsWithoutNumber) {
  static const OperatorHandle kGroupNorm("aten::group_norm", "");
  const Tensor x = Tensor::empty(DimVector{5, 0}, DType::Float);
  EXPECT_THROW(kGroupNorm(x, INT64_MAX, Tensor(), Tensor(), 1e-5, true), RuntimeError);
}

}  // namespace
}  // namespace wick::nn_values_test

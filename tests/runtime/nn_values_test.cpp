// Operators against PyTorch's answers: each case feeds waves (sines of a square) and compares
// the sizes and a weighted sum of the first result.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/ops/call.h"

namespace wick {
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

struct Case {
  const char* name;
  const char* overload;
  std::vector<IValue> args;
  const char* sizes;
  double checksum;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"aten::batch_norm",
       "",
       {wave({2, 3, 4, 5}, 0), wave({3}, 1), wave({3}, 2), IValue(), IValue(), IValue(true),
        IValue(0.1), IValue(1e-05), IValue(true)},
       "[2, 3, 4, 5]",
       8.323408861175217},
      {"aten::layer_norm",
       "",
       {wave({4, 6, 10}, 0), ints({10}), wave({10}, 1), wave({10}, 2), IValue(1e-05), IValue(true)},
       "[4, 6, 10]",
       -6.6348032437006825},
      {"aten::group_norm",
       "",
       {wave({2, 6, 3, 3}, 0), IValue(int64_t{3}), wave({6}, 1), wave({6}, 2), IValue(1e-05),
        IValue(true)},
       "[2, 6, 3, 3]",
       7.155733829241431},
      {"aten::instance_norm",
       "",
       {wave({2, 3, 4, 5}, 0), IValue(), IValue(), IValue(), IValue(), IValue(true), IValue(0.1),
        IValue(1e-05), IValue(true)},
       "[2, 3, 4, 5]",
       3.6133501657745137},
      {"aten::max_pool2d",
       "",
       {wave({2, 3, 9, 8}, 0), ints({3, 2}), ints({2, 2}), ints({1, 0}), ints({1, 2}),
        IValue(true)},
       "[2, 3, 5, 4]",
       -10.466203163009704},
      {"aten::avg_pool2d",
       "",
       {wave({2, 3, 9, 8}, 0), ints({3, 2}), ints({2, 2}), ints({1, 0}), IValue(true),
        IValue(false), IValue()},
       "[2, 3, 5, 4]",
       -5.028112206194434},
      {"aten::avg_pool3d",
       "",
       {wave({1, 2, 5, 6, 7}, 0), ints({3, 2, 2}), ints({2, 1, 2}), ints({1, 0, 1}), IValue(false),
        IValue(true), IValue()},
       "[1, 2, 3, 5, 4]",
       0.20406868508322695},
      {"aten::adaptive_avg_pool2d",
       "",
       {wave({2, 3, 9, 8}, 0), ints({4, 3})},
       "[2, 3, 4, 3]",
       1.403644303838866},
      {"aten::adaptive_max_pool2d",
       "",
       {wave({2, 3, 9, 8}, 0), ints({4, 3})},
       "[2, 3, 4, 3]",
       2.2808534445744346},
      {"aten::upsample_bilinear2d",
       "",
       {wave({1, 2, 4, 5}, 0), ints({7, 9}), IValue(true), IValue(), IValue()},
       "[1, 2, 7, 9]",
       1.889785794371055},
      {"aten::upsample_bilinear2d",
       "vec",
       {wave({1, 2, 4, 5}, 0), IValue(), IValue(false), floats({1.5, 0.7})},
       "[1, 2, 6, 3]",
       -1.1973789772834944},
      {"aten::upsample_bicubic2d",
       "",
       {wave({1, 2, 4, 5}, 0), ints({7, 3}), IValue(false), IValue(), IValue()},
       "[1, 2, 7, 3]",
       2.9915556408689286},
      {"aten::upsample_nearest2d",
       "",
       {wave({1, 2, 4, 5}, 0), ints({7, 3}), IValue(), IValue()},
       "[1, 2, 7, 3]",
       2.1320211398292894},
      {"aten::_upsample_nearest_exact2d",
       "",
       {wave({1, 2, 4, 5}, 0), ints({7, 3}), IValue(), IValue()},
       "[1, 2, 7, 3]",
       0.9281729632180301},
      {"aten::_upsample_bilinear2d_aa",
       "",
       {wave({1, 2, 9, 8}, 0), ints({4, 3}), IValue(false), IValue(), IValue()},
       "[1, 2, 4, 3]",
       1.5426459232697471},
      {"aten::upsample_trilinear3d",
       "",
       {wave({1, 2, 3, 4, 5}, 0), ints({5, 3, 7}), IValue(false), IValue(), IValue(), IValue()},
       "[1, 2, 5, 3, 7]",
       10.975704458112064},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{0}), IValue(int64_t{0}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -2.3452339398680753},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{0}), IValue(int64_t{1}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -3.1770462972810813},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{0}), IValue(int64_t{2}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -3.177046188564693},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{1}), IValue(int64_t{0}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -5.367345703868238},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{1}), IValue(int64_t{1}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -5.367345703868238},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{1}), IValue(int64_t{2}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -5.367345703868238},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{2}), IValue(int64_t{0}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -3.115150022654676},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{2}), IValue(int64_t{1}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -3.959209105881433},
      {"aten::grid_sampler_2d",
       "",
       {wave({1, 2, 5, 6}, 0), wave({1, 4, 3, 2}, 3), IValue(int64_t{2}), IValue(int64_t{2}),
        IValue(false)},
       "[1, 2, 4, 3]",
       -3.840048697656955},
      {"aten::grid_sampler_3d",
       "",
       {wave({1, 2, 4, 5, 6}, 0), wave({1, 2, 4, 3, 3}, 3), IValue(int64_t{0}), IValue(int64_t{2}),
        IValue(true)},
       "[1, 2, 2, 4, 3]",
       1.9229445788137192},
      {"aten::affine_grid_generator",
       "",
       {wave({2, 2, 3}, 0), ints({2, 1, 3, 4}), IValue(false)},
       "[2, 3, 4, 2]",
       0.7197116305978071},
      {"aten::im2col",
       "",
       {wave({2, 3, 6, 7}, 0), ints({3, 2}), ints({1, 2}), ints({1, 1}), ints({2, 1})},
       "[2, 18, 21]",
       6.313221553905896},
      {"aten::conv_transpose2d",
       "input",
       {wave({1, 4, 5, 6}, 0), wave({4, 2, 3, 3}, 1), wave({4}, 2), ints({2, 1}), ints({1, 0}),
        ints({1, 0}), IValue(int64_t{2}), ints({1, 2})},
       "[1, 4, 10, 10]",
       -15.490136020193347},
      {"aten::conv1d",
       "padding",
       {wave({2, 4, 9}, 0), wave({6, 2, 4}, 1), IValue(), ints({1}), IValue("same"), ints({2}),
        IValue(int64_t{2})},
       "[2, 6, 9]",
       -6.857848812360496},
      {"aten::conv3d",
       "",
       {wave({1, 2, 5, 5, 5}, 0), wave({3, 2, 2, 3, 2}, 1), IValue(), ints({1, 2, 1}),
        ints({0, 1, 1}), ints({2, 1, 1}), IValue(int64_t{1})},
       "[1, 3, 3, 3, 6]",
       32.694814379948234},
      {"aten::lstm",
       "input",
       {wave({6, 3, 4}, 0), tensors({wave({2, 3, 5}, 1), wave({2, 3, 5}, 2)}),
        tensors({wave({20, 4}, 1), wave({20, 5}, 2), wave({20}, 3), wave({20}, 4), wave({20, 4}, 5),
                 wave({20, 5}, 6), wave({20}, 7), wave({20}, 8)}),
        IValue(true), IValue(int64_t{1}), IValue(0.0), IValue(false), IValue(true), IValue(false)},
       "[6, 3, 10]",
       -2.1982142546819574},
      {"aten::gru",
       "input",
       {wave({3, 6, 4}, 0), wave({1, 3, 5}, 1),
        tensors({wave({15, 4}, 1), wave({15, 5}, 2), wave({15}, 3), wave({15}, 4)}), IValue(true),
        IValue(int64_t{1}), IValue(0.0), IValue(false), IValue(false), IValue(true)},
       "[3, 6, 5]",
       -0.011709252185188035},
      {"aten::mse_loss",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), IValue(int64_t{1})},
       "[]",
       1.5293735265731812},
      {"aten::l1_loss",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), IValue(int64_t{1})},
       "[]",
       1.1687226295471191},
      {"aten::smooth_l1_loss",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), IValue(int64_t{1})},
       "[]",
       0.6826798319816589},
      {"aten::huber_loss",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), IValue(int64_t{1})},
       "[]",
       0.6826798319816589},
      {"aten::soft_margin_loss",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), IValue(int64_t{2})},
       "[]",
       10.066646575927734},
      {"aten::binary_cross_entropy_with_logits",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), wave({3, 4}, 5), wave({4}, 6), IValue(int64_t{0})},
       "[3, 4]",
       0.7296704120510642},
      {"aten::triplet_margin_loss",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), wave({3, 4}, 4), IValue(1.0), IValue(2.0), IValue(1e-06),
        IValue(true), IValue(int64_t{0})},
       "[3]",
       3.568375459812481},
      {"aten::cosine_similarity",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), IValue(int64_t{1}), IValue(1e-08)},
       "[3]",
       -1.349937158118189},
      {"aten::pairwise_distance",
       "",
       {wave({3, 4}, 0), wave({3, 4}, 2), IValue(1.5), IValue(1e-06), IValue(true)},
       "[3, 1]",
       8.419330608519111},
      {"aten::glu", "", {wave({3, 8}, 0), IValue(int64_t{-1})}, "[3, 4]", 0.1761543707206641},
      {"aten::einsum",
       "",
       {IValue("bij,bjk->bki"), tensors({wave({2, 3, 4}, 0), wave({2, 4, 5}, 1)})},
       "[2, 5, 3]",
       -2.4618431840155246},
      {"aten::einsum",
       "",
       {IValue("...ii,i->..."), tensors({wave({2, 3, 3}, 0), wave({3}, 1)})},
       "[2]",
       1.1696823073053755},
      {"aten::bilinear",
       "",
       {wave({3, 4}, 0), wave({3, 5}, 1), wave({6, 4, 5}, 2), wave({6}, 3)},
       "[3, 6]",
       0.42995101457540424},
      {"aten::tensordot",
       "",
       {wave({3, 4, 5}, 0), wave({4, 3, 2}, 1), ints({1, 0}), ints({0, 1})},
       "[5, 2]",
       2.0986184513120794},
      {"aten::baddbmm",
       "",
       {wave({2, 3, 5}, 0), wave({2, 3, 4}, 1), wave({2, 4, 5}, 2)},
       "[2, 3, 5]",
       6.8734179244619},
      {"aten::linalg_det", "", {wave({3, 4, 4}, 0)}, "[3]", -2.114369294411078},
      {"aten::linalg_inv", "", {wave({4, 4}, 9)}, "[4, 4]", -0.56828176498349},
      {"aten::linalg_solve", "", {wave({4, 4}, 9), wave({4, 3}, 0)}, "[4, 3]", -1.9030289849756157},
      {"aten::linalg_svdvals", "", {wave({2, 5, 3}, 0)}, "[2, 3]", 6.1669781625336855},
      {"aten::linalg_eigvalsh",
       "",
       {wave({2, 4, 4}, 0), IValue("L")},
       "[2, 4]",
       -3.017721815823105},
      {"aten::linalg_norm",
       "ord_str",
       {wave({4, 5}, 0), IValue("nuc"), IValue(), IValue(false)},
       "[]",
       5.784284591674805},
      {"aten::matrix_exp", "", {wave({3, 4, 4}, 0)}, "[3, 4, 4]", -0.10867116170932345},
      {"aten::linalg_matrix_power",
       "",
       {wave({4, 4}, 0), IValue(int64_t{-2})},
       "[4, 4]",
       14057.899025547067},
      {"aten::cdist",
       "",
       {wave({3, 5}, 0), wave({4, 5}, 2), IValue(1.5), IValue()},
       "[3, 4]",
       -2.563864528330257},
      {"aten::logcumsumexp",
       "",
       {wave({4, 5}, 0), IValue(int64_t{1})},
       "[4, 5]",
       0.06695914725443275},
      {"aten::renorm",
       "",
       {wave({4, 5}, 0), IValue(2.0), IValue(int64_t{0}), IValue(1.0)},
       "[4, 5]",
       1.854203558803409},
      {"aten::logsumexp", "", {wave({4, 5}, 0), ints({0})}, "[5]", 5.365535489585079},
      {"aten::var",
       "dim",
       {wave({4, 5}, 0), ints({1}), IValue(true), IValue(false)},
       "[4]",
       1.3192457034707628},
      {"aten::cumprod", "", {wave({4, 5}, 0), IValue(int64_t{1})}, "[4, 5]", -0.11802124659165064},
      {"aten::fft_irfft",
       "",
       {wave({3, 7}, 0), IValue(), IValue(int64_t{-1}), IValue("ortho")},
       "[3, 12]",
       -0.409551619933076},
      {"aten::fft_hfft",
       "",
       {wave({3, 7}, 0), IValue(int64_t{6}), IValue(int64_t{-1}), IValue()},
       "[3, 6]",
       2.900248389589922},
  };
  return all;
}

TEST(Operators, AgreeWithPyTorch) {
  for (const Case& c : cases()) {
    const Operator* op =
        OperatorRegistry::instance().find(Symbol::fromQualString(c.name), c.overload);
    ASSERT_NE(op, nullptr) << c.name << "." << c.overload;
    std::vector<IValue> args = c.args;
    const auto& formals = op->schema().arguments();
    while (args.size() < formals.size()) args.push_back(*formals[args.size()].default_value);
    std::vector<IValue> results(op->schema().returns().size());
    op->call(args.data(), args.size(), results.data(), results.size());
    Tensor out = results[0].toTensor().to(DType::Double).contiguous();
    EXPECT_EQ(formatInts(out.sizes()), c.sizes) << op->schema().str();
    double sum = 0;
    for (int64_t i = 0; i < out.numel(); ++i) {
      sum += out.data<double>()[i] * std::cos(static_cast<double>(i) * 0.3);
    }
    EXPECT_NEAR(sum, c.checksum, 1e-4 * (1 + std::abs(c.checksum))) << op->schema().str();
  }
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
}  // namespace wick

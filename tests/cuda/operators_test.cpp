// Operators whose kernels are texts: the texts compile, and results have the right sizes and dtypes.
// What they compute is compared on devices.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/value_conversions.h"
#include "ir/operator.h"
#include "runtime/cuda/compiler.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"

namespace wick::cuda::operators_test {
namespace {

TEST(Operators, ComplexFunctions) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  for (const DType type : {DType::ComplexFloat, DType::ComplexDouble}) {
    const Tensor t = zeros({3, 4}, type), row = zeros({4}, type);
    for (const char* name :
         {"exp",        "log",    "log2",  "log10",         "sqrt",    "rsqrt", "sin",
          "cos",        "tan",    "sinh",  "cosh",          "tanh",    "asin",  "acos",
          "atan",       "asinh",  "acosh", "atanh",         "sigmoid", "silu",  "neg",
          "reciprocal", "square", "sgn",   "conj_physical", "sinc"}) {
      const uint64_t before = driver.state().launches;
      const std::string full = std::string("aten::") + name;
      const Tensor r = OperatorHandle(full.c_str(), "")(t);
      EXPECT_EQ(r.dtype(), type) << name;
      EXPECT_EQ(DimVector(r.sizes()), (DimVector{3, 4})) << name;
      EXPECT_GT(driver.state().launches, before) << name;
    }
    for (const char* name : {"abs", "angle"}) {
      const std::string full = std::string("aten::") + name;
      EXPECT_EQ(OperatorHandle(full.c_str(), "")(t).dtype(), toRealType(type)) << name;
    }
    for (const char* name : {"mul", "div", "eq", "ne", "add", "sub"}) {
      const std::string full = std::string("aten::") + name;
      const Tensor r = OperatorHandle(full.c_str(), "Tensor")(t, row);
      EXPECT_EQ(r.dtype(), name[0] == 'e' || name[0] == 'n' ? DType::Bool : type) << name;
    }
    static const OperatorHandle kSum{"aten::sum", ""}, kProd{"aten::prod", ""},
        kCumprod{"aten::cumprod", ""}, kVar{"aten::var", ""}, kTriu{"aten::triu", ""};
    EXPECT_EQ(kSum(t).dtype(), type);
    EXPECT_EQ(kProd(t).dtype(), type);
    EXPECT_EQ(DimVector(kCumprod(t, int64_t{0}).sizes()), (DimVector{3, 4}));
    EXPECT_EQ(kVar(t).dtype(), toRealType(type));
    EXPECT_EQ(kTriu(t).dtype(), type);
  }
}

TEST(Operators, SpecialFunctions) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double}) {
    const Tensor t = zeros({5}, type);
    for (const char* name : {"digamma", "special_ndtri", "special_log_ndtr", "special_airy_ai",
                             "special_modified_bessel_k0", "special_scaled_modified_bessel_k1"}) {
      const std::string full = std::string("aten::") + name;
      EXPECT_EQ(OperatorHandle(full.c_str(), "")(t).dtype(), type) << name;
    }
    for (const char* name : {"igamma", "igammac", "special_zeta", "special_chebyshev_polynomial_t",
                             "special_hermite_polynomial_h", "special_laguerre_polynomial_l"}) {
      const std::string full = std::string("aten::") + name;
      EXPECT_EQ(OperatorHandle(full.c_str(), "")(t, t).dtype(), type) << name;
    }
    // Their names are also those of variables in kernels.
    for (const char* name :
         {"special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1"}) {
      const std::string full = std::string("aten::") + name;
      EXPECT_EQ(OperatorHandle(full.c_str(), "")(zeros({}, type)).dtype(), type) << name;
    }
    static const OperatorHandle kPolygamma{"aten::polygamma", ""};
    EXPECT_EQ(kPolygamma(int64_t{2}, t).dtype(), type);
  }
}

// Operators of one or two tensors and nothing else.
std::vector<const Operator*> operatorsOfTensors() {
  std::vector<const Operator*> all;
  for (const std::string& name : OperatorRegistry::instance().names()) {
    if (!name.starts_with("aten::")) continue;
    for (const Operator* op :
         OperatorRegistry::instance().overloads(Symbol::fromQualString(name))) {
      const FunctionSchema& schema = op->schema();
      const bool is_of_tensors =
          op->form() == Operator::Form::Base && schema.returns().size() == 1 &&
          schema.returns()[0].type->kind() == TypeKind::Tensor &&
          std::ranges::all_of(schema.arguments(),
                              [](const Argument& a) { return a.type->kind() == TypeKind::Tensor; });
      const size_t count = schema.arguments().size();
      if (is_of_tensors && (count == 1 || count == 2)) all.push_back(op);
    }
  }
  return all;
}

// What is not there, and why.
const std::map<std::string, std::string> kMissing = {
    {"aten::_standard_gamma_grad", "adds up as many terms as samples are large"},
};

// What the CPU computes is there; a kernel that does not compile is an operator that is not available.
TEST(Operators, AllOfTensorsAloneAreThere) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  const auto errorOf = [](const Operator& op, const Tensor& t) {
    IValue arguments[2] = {t, t}, result;
    try {
      op.call(arguments, op.schema().arguments().size(), &result, 1);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  int there = 0;
  for (const Operator* op : operatorsOfTensors()) {
    if (!errorOf(*op, Tensor::full({5}, 0.5, DType::Float)).empty()) continue;
    const std::string error = errorOf(*op, zeros({5}, DType::Float));
    const bool is_missing = error.find("not available on device") != std::string::npos;
    EXPECT_EQ(is_missing, kMissing.contains(op->schema().name())) << op->schema().name() << error;
    there += error.empty() ? 1 : 0;
  }
  EXPECT_GT(there, 200);
}

TEST(Operators, ScansAndRows) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  static const OperatorHandle kCummax{"aten::cummax", ""}, kLog{"aten::logcumsumexp", ""},
      kFrexp{"aten::frexp", "Tensor"}, kCdist{"aten::cdist", ""}, kHistc{"aten::histc", ""},
      kQuantile{"aten::nanquantile", "scalar"}, kMargin{"aten::multi_margin_loss", ""},
      kLabels{"aten::multilabel_margin_loss", ""}, kAminmax{"aten::aminmax", ""};
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    const Tensor t = zeros({4, 6}, type);
    const std::vector<IValue> most = kCummax.all(t, int64_t{1});
    EXPECT_EQ(most[0].toTensor().dtype(), type);
    EXPECT_EQ(most[1].toTensor().dtype(), DType::Long);
    EXPECT_EQ(kLog(t, int64_t{0}).dtype(), type);
    EXPECT_EQ(kFrexp.all(t)[1].toTensor().dtype(), DType::Int);
    EXPECT_EQ(DimVector(kCdist(t, zeros({5, 6}, type)).sizes()), (DimVector{4, 5}));
    EXPECT_EQ(DimVector(kAminmax.all(t, int64_t{0})[1].toTensor().sizes()), (DimVector{6}));
  }
  for (const DType type : {DType::Float, DType::Double}) {
    const Tensor t = zeros({4, 6}, type);
    EXPECT_EQ(DimVector(kHistc(t, int64_t{10}, Scalar(0), Scalar(1)).sizes()), (DimVector{10}));
    EXPECT_EQ(DimVector(kQuantile(t, 0.5, int64_t{1}).sizes()), (DimVector{4}));
    EXPECT_EQ(kMargin(t, zeros({4}, DType::Long)).dim(), 0);
    EXPECT_EQ(kLabels(t, zeros({4, 6}, DType::Long)).dim(), 0);
  }
}

// A site keeps kernels for so many kinds of arguments: where dimensions of one element stand counts.
TEST(Operators, KindsOfArgumentsHaveNoEnd) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  static const OperatorHandle kSum{"aten::sum", ""};
  for (int64_t rank = 1; rank <= 8; ++rank) {
    for (uint32_t ones = 0; ones < 1u << rank; ++ones) {
      DimVector sizes;
      for (int64_t d = 0; d < rank; ++d) sizes.push_back(ones >> d & 1 ? 1 : 2);
      EXPECT_EQ(kSum(zeros(sizes)).dim(), 0) << formatInts(sizes);
    }
  }
}

TEST(Operators, WrongArgumentsRaise) {
  FakeDriver driver;
  static const OperatorHandle kClose{"aten::isclose", ""}, kQuantile{"aten::quantile", "scalar"},
      kHistc{"aten::histc", ""}, kCdist{"aten::cdist", ""};
  const Tensor f = zeros({3}, DType::Float), d = zeros({3}, DType::Double);
  EXPECT_THROW(kClose(f, d), RuntimeError);
  EXPECT_THROW(kQuantile(f, 1.5), RuntimeError);
  EXPECT_THROW(kHistc(f, int64_t{0}), RuntimeError);
  EXPECT_THROW(kCdist(f, f), RuntimeError);
}

}  // namespace
}  // namespace wick::cuda::operators_test

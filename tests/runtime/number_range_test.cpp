// Which numbers operators refuse because a dtype cannot hold them: recorded from PyTorch 1.13.
#include "core/number_range.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/frontend/robustness_testing.h"

namespace wick::number_range_test {
namespace {

constexpr const char* kNumbers[] = {"1e40",
                                    "70000.0",
                                    "300",
                                    "-1",
                                    "2 ** 40",
                                    "math.inf",
                                    "math.nan",
                                    "-1.5",
                                    "complex(1e40, 0.0)",
                                    "complex(1.0, 2.0)",
                                    "1.5"};
// Dtypes for which PyTorch has no such operator.
constexpr const char* kReal = "float32 float64 float16 bfloat16 int32 uint8 int8 bool int64";
constexpr const char* kAll =
    "float32 float64 float16 bfloat16 int32 uint8 int8 bool complex64 int64";
struct Row {
  const char* number;
  const char* refused;  // "float32=float": for x of dtype float32 the number is no float
  std::optional<const char*> not_asked = std::nullopt;  // where they are not those of the family
};
struct Family {
  std::vector<const char*> uses;  // of the tensor x and the number v; all refuse alike
  const char* not_asked;
  std::vector<Row> rows;  // numbers that are refused, or are not asked like the others
};
const Family kFamilies[] = {
    {{"x[0] = v", "x[torch.tensor([True, False, True])] = v", "torch.tensor(v,dtype=x.dtype)"},
     "",
     {
         {"1e40",
          "float32=float float64=float float16=float bfloat16=float int32=float uint8=float "
          "int8=float bool=float complex64=float int64=float"},
         {"complex(1e40, 0.0)",
          "float32=c10::complex<float> float64=c10::complex<float> float16=c10::complex<float> "
          "bfloat16=c10::complex<float> int32=c10::complex<float> uint8=c10::complex<float> "
          "int8=c10::complex<float> bool=c10::complex<float> complex64=c10::complex<float> "
          "int64=c10::complex<float>"},
     }},
    {{"x.fill_(v)", "torch.full_like(x,v)", "x.masked_fill(torch.tensor([True,False,True]),v)",
      "torch.scalar_tensor(v,dtype=x.dtype)", "torch.constant_pad_nd(x,[1,1],v)",
      "x.scatter(0,torch.tensor([0]),v)"},
     "",
     {
         {"1e40",
          "float32=float float16=at::Half bfloat16=at::BFloat16 int32=int uint8=uint8_t "
          "int8=int8_t complex64=c10::complex<float> int64=int64_t"},
         {"70000.0", "float16=at::Half uint8=uint8_t int8=int8_t"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"2 ** 40", "float16=at::Half int32=int uint8=uint8_t int8=int8_t"},
         {"math.inf", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"math.nan", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"-1.5", "uint8=uint8_t"},
         {"complex(1e40, 0.0)",
          "float32=float float16=at::Half bfloat16=at::BFloat16 int32=int uint8=uint8_t "
          "int8=int8_t complex64=c10::complex<float> int64=int64_t"},
         {"complex(1.0, 2.0)",
          "float32=float float64=double float16=at::Half bfloat16=at::BFloat16 int32=int "
          "uint8=uint8_t int8=int8_t int64=int64_t"},
     }},
    {{"x.index_fill(0,torch.tensor([0]),v)"},
     "",
     {
         {"1e40",
          "float32=float float16=at::Half bfloat16=at::BFloat16 int32=int uint8=uint8_t "
          "int8=int8_t complex64=c10::complex<float> int64=int64_t"},
         {"70000.0", "float16=at::Half uint8=uint8_t int8=int8_t"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"2 ** 40", "float16=at::Half int32=int uint8=uint8_t int8=int8_t"},
         {"math.inf", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"math.nan", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"-1.5", "uint8=uint8_t"},
         {"complex(1e40, 0.0)", "complex64=c10::complex<float>", kReal},
         {"complex(1.0, 2.0)", "", kReal},
     }},
    {{"x.clamp(min=v)"},
     "float16 complex64",
     {
         {"complex(1e40, 0.0)", "", kAll},
         {"complex(1.0, 2.0)", "", kAll},
         {"1e40",
          "float32=float bfloat16=at::BFloat16 int32=float uint8=float int8=float bool=float "
          "int64=float"},
         {"300", "uint8=uint8_t int8=int8_t"},
     }},
    {{"torch.clamp_min(x,v)"},
     "float16 complex64",
     {
         {"complex(1e40, 0.0)", "", kAll},
         {"complex(1.0, 2.0)", "", kAll},
         {"1e40",
          "float32=float bfloat16=at::BFloat16 int32=float uint8=float int8=float bool=float "
          "int64=float"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"math.nan", "", "complex64"},
     }},
    {{"torch.where(torch.tensor([True,False,True]),x,v)"},
     "",
     {
         {"1e40",
          "float32=float float16=at::Half bfloat16=at::BFloat16 int32=float uint8=float int8=float "
          "bool=float complex64=c10::complex<float> int64=float"},
         {"70000.0", "float16=at::Half"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"2 ** 40", "float16=at::Half"},
         {"complex(1e40, 0.0)",
          "float32=c10::complex<float> float16=c10::complex<c10::Half> "
          "bfloat16=c10::complex<float> int32=c10::complex<float> uint8=c10::complex<float> "
          "int8=c10::complex<float> bool=c10::complex<float> complex64=c10::complex<float> "
          "int64=c10::complex<float>"},
     }},
    {{"torch.add(x,x,alpha=v)"},
     "int32 uint8 int8 bool int64",
     {
         {"1e40",
          "float32=float float16=at::Half bfloat16=at::BFloat16 complex64=c10::complex<float>"},
         {"70000.0", "float16=at::Half"},
         {"300", "uint8=uint8_t int8=int8_t", ""},
         {"-1", "", ""},
         {"2 ** 40", "float16=at::Half"},
         {"complex(1e40, 0.0)", "complex64=c10::complex<float>", kReal},
         {"complex(1.0, 2.0)", "", kReal},
     }},
    {{"torch.add(x,v)", "torch.mul(x,v)", "torch.eq(x,v)"}, "", {}},
    {{"torch.lt(x,v)"},
     "complex64",
     {
         {"complex(1e40, 0.0)", "", kAll},
         {"complex(1.0, 2.0)", "", kAll},
     }},
    {{"torch.pow(x,v)"},
     "",
     {
         {"1e40", "float16=at::Half bfloat16=at::BFloat16"},
         {"70000.0", "float16=at::Half"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"-1", "", "int32 uint8 int8 bool int64"},
         {"2 ** 40", "float16=at::Half"},
         {"complex(1e40, 0.0)", "", "float16"},
         {"complex(1.0, 2.0)", "", "float16"},
     }},
    {{"torch.addcmul(x,x,x,value=v)"},
     "float16 bool",
     {
         {"1e40",
          "float32=float bfloat16=float int32=int uint8=uint8_t int8=int8_t "
          "complex64=c10::complex<float> int64=int64_t"},
         {"70000.0", "uint8=uint8_t int8=int8_t"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"2 ** 40", "int32=int uint8=uint8_t int8=int8_t"},
         {"math.inf", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"math.nan", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"-1.5", "uint8=uint8_t"},
         {"complex(1e40, 0.0)",
          "float32=float bfloat16=float int32=int uint8=uint8_t int8=int8_t "
          "complex64=c10::complex<float> int64=int64_t"},
         {"complex(1.0, 2.0)",
          "float32=float float64=double bfloat16=float int32=int uint8=uint8_t int8=int8_t "
          "int64=int64_t"},
     }},
    {{"torch.threshold(x,v,v)"},
     "float16 bool complex64",
     {
         {"1e40",
          "float32=float bfloat16=at::BFloat16 int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"70000.0", "uint8=uint8_t int8=int8_t"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"2 ** 40", "int32=int uint8=uint8_t int8=int8_t"},
         {"math.inf", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"math.nan", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"-1.5", "uint8=uint8_t"},
         {"complex(1e40, 0.0)",
          "float32=float bfloat16=at::BFloat16 int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"complex(1.0, 2.0)",
          "float32=float float64=double bfloat16=at::BFloat16 int32=int uint8=uint8_t int8=int8_t "
          "int64=int64_t"},
     }},
    {{"torch.nn.functional.leaky_relu(x,v)"},
     "float16 int32 uint8 int8 bool complex64 int64",
     {
         {"300", "", kAll},
         {"-1", "", kAll},
         {"complex(1e40, 0.0)", "", kAll},
         {"complex(1.0, 2.0)", "", kAll},
         {"1e40", "float32=float bfloat16=float"},
     }},
    {{"torch.linspace(0,v,3,dtype=x.dtype)"},
     "bool",
     {
         {"1e40",
          "float32=float float16=at::Half bfloat16=at::BFloat16 int32=int uint8=uint8_t "
          "int8=int8_t complex64=c10::complex<float> int64=int64_t"},
         {"70000.0", "float16=at::Half uint8=uint8_t int8=int8_t"},
         {"300", "uint8=uint8_t int8=int8_t"},
         {"2 ** 40", "float16=at::Half int32=int uint8=uint8_t int8=int8_t"},
         {"math.inf", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"math.nan", "int32=int uint8=uint8_t int8=int8_t int64=int64_t"},
         {"-1.5", "uint8=uint8_t"},
         {"complex(1e40, 0.0)", "complex64=c10::complex<float>", kReal},
         {"complex(1.0, 2.0)", "", kReal},
     }},
    {{"torch.lerp(x,x,v)"},
     "float16 int32 uint8 int8 bool int64",
     {
         {"1e40", "float32=float bfloat16=float complex64=c10::complex<float>"},
         {"complex(1e40, 0.0)", "float32=float bfloat16=float complex64=c10::complex<float>"},
         {"complex(1.0, 2.0)", "float32=float float64=double bfloat16=float"},
     }},
};

constexpr const char* kDTypes[] = {"float32", "float64", "float16", "bfloat16",  "int32",
                                   "uint8",   "int8",    "bool",    "complex64", "int64"};

std::string typeOf(const char* list, const std::string& dtype) {
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    if (word == dtype) return word;
    if (word.starts_with(dtype + "=")) return word.substr(dtype.size() + 1);
  }
  return "";
}

void expectRefusals(const std::string& of, const Row& row) {
  for (const std::string dtype : kDTypes) {
    if (!typeOf(*row.not_asked, dtype).empty()) continue;
    std::string use = of;
    if (size_t at = use.find("x.dtype"); at != std::string::npos) {
      use.replace(at, 7, "torch." + dtype);
    }
    const bool assigns = use.starts_with("x[");
    const std::string program = fmt::format(
        "def main():\n    x = torch.ones(3).to(torch.{})\n    v = {}\n    {}{}\n"
        "    return {}\n",
        dtype, row.number, assigns ? "" : "y = ", use, assigns ? "x" : "y");
    const std::string type = typeOf(row.refused, dtype);
    const std::string expected =
        type.empty() ? "no error"
                     : fmt::format("value cannot be converted to type {} without overflow", type);
    std::string found = refusalOf<RuntimeError>([&] { resultOf(program); });
    // Some of PyTorch's kernels take the numbers of reduced dtypes as float, or have complex ones
    // of half: their names are not compared.
    if (dtype == "bfloat16" || type.ends_with("Half>")) {
      EXPECT_EQ(found.ends_with("without overflow"), !type.empty()) << program << found;
    } else {
      EXPECT_EQ(found, expected) << program;
    }
  }
}

TEST(NumberRange, OperatorsRefuseWhatPyTorchRefuses) {
  for (const auto& [uses, not_asked, rows] : kFamilies) {
    for (const std::string_view number : kNumbers) {
      Row row{number.data(), ""};
      for (const Row& known : rows) {
        if (known.number == number) row = known;
      }
      if (!row.not_asked) row.not_asked = not_asked;
      for (const char* use : uses) expectRefusals(use, row);
    }
  }
}

TEST(NumberRange, Limits) {
  EXPECT_TRUE(holdsNumber(DType::Byte, Scalar(-255)));
  EXPECT_FALSE(holdsNumber(DType::Byte, Scalar(-256)));
  EXPECT_FALSE(holdsNumber(DType::Byte, Scalar(-1.0)));
  EXPECT_TRUE(holdsNumber(DType::Char, Scalar(-128)));
  EXPECT_FALSE(holdsNumber(DType::Char, Scalar(128)));
  EXPECT_FALSE(holdsNumber(DType::Long, Scalar(1e19)));
  EXPECT_FALSE(holdsNumber(DType::Int, Scalar(std::nan(""))));
  EXPECT_TRUE(holdsNumber(DType::Half, Scalar(65504)));
  EXPECT_FALSE(holdsNumber(DType::Half, Scalar(65505)));
  EXPECT_TRUE(holdsNumber(DType::Half, Scalar(HUGE_VAL)));
  EXPECT_TRUE(holdsNumber(DType::Bool, Scalar(std::complex<double>(1, 2))));
  EXPECT_FALSE(holdsNumber(DType::Double, Scalar(std::complex<double>(1, 2))));
  EXPECT_FALSE(holdsNumber(DType::ComplexFloat, Scalar(std::complex<double>(0, 1e40))));
}

TEST(NumberRange, BoundsThatAreNaN) {
  auto clamped = [](const std::string& call) {
    return resultOf(
        "def main() -> List[float]:\n    x = torch.tensor([1.0, 2.0])\n    y: List[float] = " +
        call + ".tolist()\n    return y\n");
  };
  EXPECT_EQ(clamped("x.clamp(min=math.nan)"), "[1.0, 2.0]");
  EXPECT_EQ(clamped("x.clamp(max=math.nan)"), "[1.0, 2.0]");
  EXPECT_EQ(clamped("torch.clamp_min(x, math.nan)"), "[nan, nan]");
  EXPECT_EQ(clamped("torch.clamp_max(x, math.nan)"), "[nan, nan]");
  EXPECT_EQ(clamped("x.clamp(0.0, math.nan)"), "[nan, nan]");
}

}  // namespace
}  // namespace wick::number_range_test

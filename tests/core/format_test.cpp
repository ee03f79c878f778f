// The expected texts are what Python and PyTorch print.
#include <gtest/gtest.h>

#include <cmath>

#include "core/ivalue.h"

namespace wick::format_test {
namespace {

Tensor range(IntSpan sizes) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

Tensor floats(std::vector<float> values) {
  return Tensor::fromData(values.data(), DimVector{static_cast<int64_t>(values.size())});
}

TEST(FormatTest, doublesAsPython) {
  const std::pair<double, const char*> cases[] = {
      {0x0.0p+0, "0.0"},
      {-0x0.0p+0, "-0.0"},
      {0x1.0000000000000p+0, "1.0"},
      {0x1.999999999999ap-4, "0.1"},
      {0x1.1c37937e08000p+53, "1e+16"},
      {0x1.c6bf526340000p+49, "1000000000000000.0"},
      {0x1.b69b4ba630f35p+56, "1.2345678901234568e+17"},
      {0x1.1c37937e07fffp+53, "9999999999999998.0"},
      {0x1.a36e2eb1c432dp-14, "0.0001"},
      {0x1.4f8b588e368f1p-17, "1e-05"},
      {0x1.02e4b6ce5dc68p-13, "0.00012345"},
      {0x0.0000000000001p-1022, "5e-324"},
      {0x1.fffffffffffffp+1023, "1.7976931348623157e+308"},
      {0x1.4000000000000p+1, "2.5"},
      {0x1.5555555555555p-2, "0.3333333333333333"},
      {-0x1.0f0cf064dd592p+73, "-1e+22"},
      {0x1.249ad2594c37dp+332, "1e+100"},
      {0x1.e240c9fbe76c9p+16, "123456.789"},
      {0x1.ba8493ceb3ffdp+190, "2.7126267136355693e+57"},
      {0x1.1b1b48b529b4ap-756, "2.9176505403442687e-228"},
      {0x1.dadfa5eb561a4p+852, "5.5705027106665415e+256"},
      {0x1.dc94f9a9a80fdp-53, "2.0668446752292503e-16"},
      {0x1.95c7ea02f34a6p+166, "1.4826236772844953e+50"},
      {0x1.4491e10c67fd9p+217, "2.670405756230503e+65"},
      {0x1.4294f035efa25p+838, "2.3095972247362096e+252"},
      {0x1.fce2cd6645fa9p-63, "2.1552158160265848e-19"},
      {0x1.01c7642650644p+105, "4.084669271327047e+31"},
      {0x1.b12133bfd1d33p-631, "1.89867543353284e-190"},
      {0x1.b81c3fee29476p+445, "1.5619592075495646e+134"},
      {0x1.ea1da78633074p+84, "3.703210565721954e+25"},
      {0x1.a506bd6225675p+102, "8.339285569756503e+30"},
      {0x1.54e4179f248b0p-210, "8.092383615358505e-64"},
      {0x1.5f8f0a399f82ap+740, "7.942454533308265e+222"},
      {0x1.f9ec3268ecc45p-549, "1.0724487151562167e-165"},
      {0x1.85ca2a2863a7fp-713, "3.5334869493505085e-215"},
      {0x1.1c6dade383784p+873, "6.997119006180081e+262"},
      {0x1.9724885ef3430p-225, "2.9495629468048806e-68"},
      {0x1.05409bdc2ae99p-992, "2.438173398544643e-299"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(formatDouble(value), text);
  EXPECT_EQ(formatDouble(NAN), "nan");
  EXPECT_EQ(formatDouble(-INFINITY), "-inf");
}

TEST(FormatTest, complexAsPython) {
  EXPECT_EQ(formatComplex({1, 2}), "(1+2j)");
  EXPECT_EQ(formatComplex({0, 1.5}), "1.5j");
  EXPECT_EQ(formatComplex({-0.0, 1}), "(-0+1j)");
  EXPECT_EQ(formatComplex({1, NAN}), "(1+nanj)");
  EXPECT_EQ(formatComplex({1e20, -INFINITY}), "(1e+20-infj)");
}

TEST(FormatTest, stringsAsPython) {
  EXPECT_EQ(quoteString("a"), "'a'");
  EXPECT_EQ(quoteString("it's"), "\"it's\"");
  EXPECT_EQ(quoteString("'\""), "'\\'\"'");
  EXPECT_EQ(quoteString("a\n\t\x01\\"), "'a\\n\\t\\x01\\\\'");
  EXPECT_EQ(quoteString("h\u00e9\u00a0\u200b"), "'h\u00e9\\xa0\\u200b'");
  EXPECT_EQ(quoteString(std::string_view("\xff\xc3", 2)), "'\\xff\\xc3'");
}

TEST(FormatTest, values) {
  IValue list(makeList(types::Float(), {IValue(1.0), IValue(0.5)}));
  IValue tuple(makeTuple({IValue("a"), IValue(true), IValue()}));
  auto dict = makeRef<DictObject>(types::String(), types::List(types::Float()));
  dict->set("k", list);
  EXPECT_EQ(list.repr(), "[1.0, 0.5]");
  EXPECT_EQ(tuple.repr(), "('a', True, None)");
  EXPECT_EQ(IValue(makeTuple({IValue(1)})).repr(), "(1,)");
  EXPECT_EQ(IValue(dict).repr(), "{'k': [1.0, 0.5]}");
  EXPECT_EQ(IValue(dict).printed(), "{k: [1., 0.5]}");
  EXPECT_EQ(tuple.printed(), "(a, True, None)");
  EXPECT_EQ(IValue("x").str(), "x");
  EXPECT_EQ(IValue(0.1).printed(), "0.10000000000000001");
  EXPECT_EQ(IValue(-0.0).printed(), "-0.");
  EXPECT_EQ(IValue(1e10).printed(), "10000000000");
  EXPECT_EQ(IValue(Device::parse("cuda:1")).repr(), "device(type='cuda', index=1)");
}

TEST(FormatTest, aListThatHoldsItself) {
  ListRef list = makeList(types::Any());
  list->elements.push_back(IValue(list));
  EXPECT_NE(IValue(list).repr().find("..."), std::string::npos);
  list->elements.clear();
}

TEST(FormatTest, tensorsAsPython) {
  EXPECT_EQ(formatTensor(Tensor::full(DimVector{2, 2}, 1.5, DType::Float)),
            "tensor([[1.5000, 1.5000],\n"
            "        [1.5000, 1.5000]])");
  EXPECT_EQ(formatTensor(range(DimVector{2, 2})),
            "tensor([[0., 1.],\n"
            "        [2., 3.]])");
  EXPECT_EQ(formatTensor(range(DimVector{3}).to(DType::Long)), "tensor([0, 1, 2])");
  EXPECT_EQ(formatTensor(range(DimVector{3}).to(DType::Int)),
            "tensor([0, 1, 2], dtype=torch.int32)");
  EXPECT_EQ(formatTensor(range(DimVector{3}).to(DType::Bool)), "tensor([False,  True,  True])");
  EXPECT_EQ(formatTensor(range(DimVector{40})),
            "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
            "        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n"
            "        28., 29., 30., 31., 32., 33., 34., 35., 36., 37., 38., 39.])");
  EXPECT_EQ(formatTensor(range(DimVector{2, 2, 2})),
            "tensor([[[0., 1.],\n"
            "         [2., 3.]],\n"
            "\n"
            "        [[4., 5.],\n"
            "         [6., 7.]]])");
  EXPECT_EQ(formatTensor(range(DimVector{1001})),
            "tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.])");
  EXPECT_EQ(formatTensor(range(DimVector{40, 40}).to(DType::Double)),
            "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 3.7000e+01, 3.8000e+01,\n"
            "         3.9000e+01],\n"
            "        [4.0000e+01, 4.1000e+01, 4.2000e+01,  ..., 7.7000e+01, 7.8000e+01,\n"
            "         7.9000e+01],\n"
            "        [8.0000e+01, 8.1000e+01, 8.2000e+01,  ..., 1.1700e+02, 1.1800e+02,\n"
            "         1.1900e+02],\n"
            "        ...,\n"
            "        [1.4800e+03, 1.4810e+03, 1.4820e+03,  ..., 1.5170e+03, 1.5180e+03,\n"
            "         1.5190e+03],\n"
            "        [1.5200e+03, 1.5210e+03, 1.5220e+03,  ..., 1.5570e+03, 1.5580e+03,\n"
            "         1.5590e+03],\n"
            "        [1.5600e+03, 1.5610e+03, 1.5620e+03,  ..., 1.5970e+03, 1.5980e+03,\n"
            "         1.5990e+03]], dtype=torch.float64)");
  EXPECT_EQ(formatTensor(range(DimVector{10, 10, 11})),
            "tensor([[[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 8.0000e+00,\n"
            "          9.0000e+00, 1.0000e+01],\n"
            "         [1.1000e+01, 1.2000e+01, 1.3000e+01,  ..., 1.9000e+01,\n"
            "          2.0000e+01, 2.1000e+01],\n"
            "         [2.2000e+01, 2.3000e+01, 2.4000e+01,  ..., 3.0000e+01,\n"
            "          3.1000e+01, 3.2000e+01],\n"
            "         ...,\n"
            "         [7.7000e+01, 7.8000e+01, 7.9000e+01,  ..., 8.5000e+01,\n"
            "          8.6000e+01, 8.7000e+01],\n"
            "         [8.8000e+01, 8.9000e+01, 9.0000e+01,  ..., 9.6000e+01,\n"
            "          9.7000e+01, 9.8000e+01],\n"
            "         [9.9000e+01, 1.0000e+02, 1.0100e+02,  ..., 1.0700e+02,\n"
            "          1.0800e+02, 1.0900e+02]],\n"
            "\n"
            "        [[1.1000e+02, 1.1100e+02, 1.1200e+02,  ..., 1.1800e+02,\n"
            "          1.1900e+02, 1.2000e+02],\n"
            "         [1.2100e+02, 1.2200e+02, 1.2300e+02,  ..., 1.2900e+02,\n"
            "          1.3000e+02, 1.3100e+02],\n"
            "         [1.3200e+02, 1.3300e+02, 1.3400e+02,  ..., 1.4000e+02,\n"
            "          1.4100e+02, 1.4200e+02],\n"
            "         ...,\n"
            "         [1.8700e+02, 1.8800e+02, 1.8900e+02,  ..., 1.9500e+02,\n"
            "          1.9600e+02, 1.9700e+02],\n"
            "         [1.9800e+02, 1.9900e+02, 2.0000e+02,  ..., 2.0600e+02,\n"
            "          2.0700e+02, 2.0800e+02],\n"
            "         [2.0900e+02, 2.1000e+02, 2.1100e+02,  ..., 2.1700e+02,\n"
            "          2.1800e+02, 2.1900e+02]],\n"
            "\n"
            "        [[2.2000e+02, 2.2100e+02, 2.2200e+02,  ..., 2.2800e+02,\n"
            "          2.2900e+02, 2.3000e+02],\n"
            "         [2.3100e+02, 2.3200e+02, 2.3300e+02,  ..., 2.3900e+02,\n"
            "          2.4000e+02, 2.4100e+02],\n"
            "         [2.4200e+02, 2.4300e+02, 2.4400e+02,  ..., 2.5000e+02,\n"
            "          2.5100e+02, 2.5200e+02],\n"
            "         ...,\n"
            "         [2.9700e+02, 2.9800e+02, 2.9900e+02,  ..., 3.0500e+02,\n"
            "          3.0600e+02, 3.0700e+02],\n"
            "         [3.0800e+02, 3.0900e+02, 3.1000e+02,  ..., 3.1600e+02,\n"
            "          3.1700e+02, 3.1800e+02],\n"
            "         [3.1900e+02, 3.2000e+02, 3.2100e+02,  ..., 3.2700e+02,\n"
            "          3.2800e+02, 3.2900e+02]],\n"
            "\n"
            "        ...,\n"
            "\n"
            "        [[7.7000e+02, 7.7100e+02, 7.7200e+02,  ..., 7.7800e+02,\n"
            "          7.7900e+02, 7.8000e+02],\n"
            "         [7.8100e+02, 7.8200e+02, 7.8300e+02,  ..., 7.8900e+02,\n"
            "          7.9000e+02, 7.9100e+02],\n"
            "         [7.9200e+02, 7.9300e+02, 7.9400e+02,  ..., 8.0000e+02,\n"
            "          8.0100e+02, 8.0200e+02],\n"
            "         ...,\n"
            "         [8.4700e+02, 8.4800e+02, 8.4900e+02,  ..., 8.5500e+02,\n"
            "          8.5600e+02, 8.5700e+02],\n"
            "         [8.5800e+02, 8.5900e+02, 8.6000e+02,  ..., 8.6600e+02,\n"
            "          8.6700e+02, 8.6800e+02],\n"
            "         [8.6900e+02, 8.7000e+02, 8.7100e+02,  ..., 8.7700e+02,\n"
            "          8.7800e+02, 8.7900e+02]],\n"
            "\n"
            "        [[8.8000e+02, 8.8100e+02, 8.8200e+02,  ..., 8.8800e+02,\n"
            "          8.8900e+02, 8.9000e+02],\n"
            "         [8.9100e+02, 8.9200e+02, 8.9300e+02,  ..., 8.9900e+02,\n"
            "          9.0000e+02, 9.0100e+02],\n"
            "         [9.0200e+02, 9.0300e+02, 9.0400e+02,  ..., 9.1000e+02,\n"
            "          9.1100e+02, 9.1200e+02],\n"
            "         ...,\n"
            "         [9.5700e+02, 9.5800e+02, 9.5900e+02,  ..., 9.6500e+02,\n"
            "          9.6600e+02, 9.6700e+02],\n"
            "         [9.6800e+02, 9.6900e+02, 9.7000e+02,  ..., 9.7600e+02,\n"
            "          9.7700e+02, 9.7800e+02],\n"
            "         [9.7900e+02, 9.8000e+02, 9.8100e+02,  ..., 9.8700e+02,\n"
            "          9.8800e+02, 9.8900e+02]],\n"
            "\n"
            "        [[9.9000e+02, 9.9100e+02, 9.9200e+02,  ..., 9.9800e+02,\n"
            "          9.9900e+02, 1.0000e+03],\n"
            "         [1.0010e+03, 1.0020e+03, 1.0030e+03,  ..., 1.0090e+03,\n"
            "          1.0100e+03, 1.0110e+03],\n"
            "         [1.0120e+03, 1.0130e+03, 1.0140e+03,  ..., 1.0200e+03,\n"
            "          1.0210e+03, 1.0220e+03],\n"
            "         ...,\n"
            "         [1.0670e+03, 1.0680e+03, 1.0690e+03,  ..., 1.0750e+03,\n"
            "          1.0760e+03, 1.0770e+03],\n"
            "         [1.0780e+03, 1.0790e+03, 1.0800e+03,  ..., 1.0860e+03,\n"
            "          1.0870e+03, 1.0880e+03],\n"
            "         [1.0890e+03, 1.0900e+03, 1.0910e+03,  ..., 1.0970e+03,\n"
            "          1.0980e+03, 1.0990e+03]]])");
  EXPECT_EQ(formatTensor(Tensor::empty(DimVector{0, 3}, DType::Float)), "tensor([], size=(0, 3))");
  EXPECT_EQ(formatTensor(Tensor::empty(DimVector{0}, DType::Long)),
            "tensor([], dtype=torch.int64)");
  EXPECT_EQ(formatTensor(Tensor::scalar(2.5)), "tensor(2.5000, dtype=torch.float64)");
  EXPECT_EQ(formatTensor(Tensor::scalar(2.5f)), "tensor(2.5000)");
  EXPECT_EQ(formatTensor(Tensor::scalar(true)), "tensor(True)");
  EXPECT_EQ(formatTensor(floats({1e-5f, 1.0f})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(formatTensor(floats({NAN, INFINITY, -INFINITY, 1.0f})), "tensor([nan, inf, -inf, 1.])");
  EXPECT_EQ(formatTensor(floats({0.0f, -0.0f})), "tensor([0., -0.])");
  EXPECT_EQ(formatTensor(floats({NAN, 0.25f})), "tensor([   nan, 0.2500])");
  EXPECT_EQ(formatTensor(floats({1e9f, 2.0f})), "tensor([1.0000e+09, 2.0000e+00])");
  EXPECT_EQ(formatTensor(floats({-1.5f, 22.25f}).to(DType::Half)),
            "tensor([-1.5000, 22.2500], dtype=torch.float16)");
  EXPECT_EQ(formatTensor(floats({-1.5f, 22.25f}).to(DType::ComplexFloat)),
            "tensor([-1.5000+0.j, 22.2500+0.j])");
  EXPECT_EQ(formatTensor(floats({100000.0f, 12345.678f})), "tensor([100000.0000,  12345.6777])");
  EXPECT_EQ(formatTensor(Tensor::scalar(std::complex<double>(1, -2.5))),
            "tensor(1.-2.5000j, dtype=torch.complex128)");
}

}  // namespace
}  // namespace wick::format_test

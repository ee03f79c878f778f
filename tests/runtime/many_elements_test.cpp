// What operators do another way where there are many elements: on several threads, with vectors,
// with fewer passes. The plain way stands beside it here.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/kernels/reduce_rows.h"
#include "tests/runtime/op_testing.h"
#include "tests/same_bits.h"

namespace wick::many_elements_test {
namespace {

using namespace testing;
using testing_tensors::sameBits;
constexpr float kInf = std::numeric_limits<float>::infinity();

// Few different numbers, so that many are equal, with NaN, infinities and both zeros among them.
Tensor repetitive(IntSpan sizes, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (float& v : t.span<float>()) {
    const uint32_t kind = random() % 64;
    v = kind == 0   ? NAN
        : kind == 1 ? kInf
        : kind == 2 ? -kInf
        : kind == 3 ? -0.0f
                    : static_cast<float>(static_cast<int>(random() % 40) - 20);
  }
  return t;
}
Tensor noise(IntSpan sizes, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (float& v : t.span<float>()) v = normal(random);
  return t;
}
struct Pair {
  float value;
  int64_t index;
};
bool comesBefore(const Pair& a, const Pair& b) {
  return (std::isnan(b.value) && !std::isnan(a.value)) || a.value < b.value;
}
bool comesAfter(const Pair& a, const Pair& b) {
  return comesBefore(b, a);
}
std::vector<Pair> pairsOf(const Tensor& row) {
  std::vector<Pair> pairs;
  for (float v : row.span<const float>()) pairs.push_back({v, std::ssize(pairs)});
  return pairs;
}
void expectPairs(const std::vector<IValue>& results, std::span<const Pair> expected) {
  const auto found = results[0].toTensor().span<const float>();
  const auto positions = results[1].toTensor().span<const int64_t>();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(found[i]), std::bit_cast<uint32_t>(expected[i].value)) << i;
    ASSERT_EQ(positions[i], expected[i].index) << i;
  }
}

TEST(ManyElements, EqualOnesAreSortedAsPairsAre) {
  const Tensor x = repetitive({5000}, 1);
  for (const bool descending : {false, true}) {
    std::vector<Pair> pairs = pairsOf(x);
    std::sort(pairs.begin(), pairs.end(), descending ? comesAfter : comesBefore);
    expectPairs(callAll("aten::sort", "", x, -1, descending), pairs);
    pairs = pairsOf(x);
    std::stable_sort(pairs.begin(), pairs.end(), descending ? comesAfter : comesBefore);
    expectPairs(callAll("aten::sort", "stable", x, true, -1, descending), pairs);
  }
}

TEST(ManyElements, FewOfManyAreChosenAsAHeapChoosesThem) {
  constexpr int64_t kRows = 40, kLength = 1000, kFew = 5;
  const Tensor x = repetitive({kRows, kLength}, 2);
  for (const bool largest : {false, true}) {
    const auto results = callAll("aten::topk", "", x, kFew, -1, largest);
    for (int64_t r = 0; r < kRows; ++r) {
      std::vector<Pair> pairs = pairsOf(x.select(0, r));
      std::partial_sort(pairs.begin(), pairs.begin() + kFew, pairs.end(),
                        largest ? comesAfter : comesBefore);
      expectPairs({results[0].toTensor().select(0, r), results[1].toTensor().select(0, r)},
                  std::span(pairs).first(kFew));
    }
  }
}

TEST(ManyElements, MedianIsTheEarliestOfItsRank) {
  constexpr int64_t kRows = 30, kLength = 999;
  const Tensor x = repetitive({kRows, kLength}, 3);
  const auto plain = callAll("aten::median", "dim", x, 1);
  const auto without_nan = callAll("aten::nanmedian", "dim", x, 1);
  for (int64_t r = 0; r < kRows; ++r) {
    const Tensor row = x.select(0, r);
    std::vector<Pair> pairs = pairsOf(row);
    std::stable_sort(pairs.begin(), pairs.end(), comesBefore);
    const auto first_nan = std::ranges::find_if(pairs, [](Pair p) { return std::isnan(p.value); });
    ASSERT_NE(first_nan, pairs.end());
    expectPairs({plain[0].toTensor().narrow(0, r, 1), plain[1].toTensor().narrow(0, r, 1)},
                std::span(&*first_nan, 1));
    const auto middle = static_cast<size_t>((first_nan - pairs.begin() - 1) / 2);
    expectPairs(
        {without_nan[0].toTensor().narrow(0, r, 1), without_nan[1].toTensor().narrow(0, r, 1)},
        std::span(pairs).subspan(middle, 1));
  }
}

TEST(ManyElements, PositionsInSequencesSortedOrNot) {
  const Tensor sought = repetitive({300, 7}, 4);
  Tensor sorted = callAll("aten::sort", "", noise({77}, 5))[0].toTensor();
  for (float& v : sorted.span<float>()) v = std::round(v * 8);
  const Tensor spoiled = sorted.clone();
  spoiled.data<float>()[40] = NAN;
  for (const Tensor& sequence :
       {sorted, spoiled, noise({77}, 6), sorted.slice(0, 0, 1), sorted.slice(0, 0, 0)}) {
    for (const bool right : {false, true}) {
      const Tensor found = call("aten::bucketize", "Tensor", sought, sequence, false, right);
      for (int64_t i = 0; i < sought.numel(); ++i) {
        const float v = sought.data<float>()[i];
        int64_t low = 0, high = sequence.numel();
        while (low < high) {
          const int64_t middle = low + (high - low) / 2;
          const float m = sequence.data<float>()[middle];
          const bool before = right ? !(m > v) : !(m >= v);
          (before ? low : high) = before ? middle + 1 : middle;
        }
        ASSERT_EQ(found.data<int64_t>()[i], low) << v;
      }
    }
  }
}

TEST(ManyElements, HistogramsCountEachElementOnce) {
  const Tensor x = noise({100'003}, 7);
  x.data<float>()[99] = 10;  // outside of the given range
  for (const double bound : {0.0, 2.5}) {
    const Tensor counts = call("aten::histc", "", x, 17, -bound, bound);
    const auto [least, most] = std::ranges::minmax(x.span<const float>());
    const float low = bound == 0 ? least : static_cast<float>(-bound);
    const float high = bound == 0 ? most : static_cast<float>(bound);
    Values expected(17, 0);
    for (float v : x.span<const float>()) {
      if (v < low || v > high) continue;
      const auto bin = static_cast<size_t>((v - low) * 17.0f / (high - low));
      ++expected[std::min<size_t>(bin, 16)];
    }
    EXPECT_EQ(values(counts), expected);
  }
  x.data<float>()[70'000] = NAN;
  EXPECT_EQ(values(call("aten::histc", "", x, 2, -100, 100))[0],
            values(call("aten::histc", "", x.slice(0, 0, 70'000), 2, -100, 100))[0] + 1 +
                values(call("aten::histc", "", x.slice(0, 70'001, 100'003), 2, -100, 100))[0]);
  EXPECT_THROW(call("aten::histc", "", x, 2, 0, 0), RuntimeError);
}

TEST(ManyElements, PositionsOfSetFlags) {
  const Tensor x = noise({33, 70, 41}, 8);
  const Tensor flags = call("aten::gt", "Scalar", x, 0.3);
  const Tensor found = call("aten::nonzero", "", flags);
  Values expected;
  for (int64_t i = 0; i < x.numel(); ++i) {
    if (!flags.data<bool>()[i]) continue;
    for (int64_t part : {i / (70 * 41), i / 41 % 70, i % 41}) {
      expected.push_back(static_cast<double>(part));
    }
  }
  EXPECT_EQ(values(found), expected);
  EXPECT_EQ(values(call("aten::count_nonzero", "", flags)),
            (Values{static_cast<double>(expected.size() / 3)}));
  EXPECT_EQ(values(call("aten::count_nonzero", "dim_IntList", flags, DimVector{0, 2})),
            values(call("aten::sum", "dim_IntList", flags, DimVector{0, 2})));
  const Tensor odd = floats({NAN, 0, -0.0f, 1e-45f, -kInf});
  EXPECT_EQ(values(call("aten::count_nonzero", "", odd)), (Values{3}));
  EXPECT_EQ(shape(call("aten::nonzero", "", Tensor::full({}, 1, DType::Float))), (Shape{1, 0}));
  EXPECT_EQ(shape(call("aten::nonzero", "", Tensor::zeros({3, 0}, DType::Bool))), (Shape{0, 2}));
}

TEST(ManyElements, RowsAreAddedInTheirOrder) {
  const Tensor to = noise({5, 3000}, 9), add = noise({400, 3000}, 10);
  const Tensor index = Tensor::empty({400}, DType::Long);
  for (int64_t i = 0; i < 400; ++i) index.data<int64_t>()[i] = i * i % 5;
  const Tensor sum = call("aten::index_add", "", to, 0, index, add, 0.7);
  const Tensor expected = to.clone();
  for (int64_t i = 0; i < 400; ++i) {
    for (int64_t j = 0; j < 3000; ++j) {
      expected.data<float>()[i * i % 5 * 3000 + j] += add.data<float>()[i * 3000 + j] * 0.7f;
    }
  }
  EXPECT_TRUE(sameBits(sum, expected));
}

TEST(ManyElements, BagsOfWideRows) {
  constexpr int64_t kRows = 50, kWidth = 150, kIndices = 700, kBags = 9, kPadding = 3;
  const Tensor table = noise({kRows, kWidth}, 11), scales = noise({kIndices}, 12);
  const Tensor index = Tensor::empty({kIndices}, DType::Long);
  for (int64_t i = 0; i < kIndices; ++i) index.data<int64_t>()[i] = i * 37 % kRows;
  const Tensor offsets = longs({0, 0, 5, 100, 101, 350, 350, 351, 699});
  for (const int64_t mode : {0, 1}) {
    const bool scaled = mode == 0;
    const Tensor bags = call("aten::embedding_bag", "padding_idx", table, index, offsets, false,
                             mode, false, scaled ? IValue(scales) : IValue(), false, kPadding);
    Tensor expected = Tensor::zeros({kBags, kWidth}, DType::Float);
    for (int64_t bag = 0; bag < kBags; ++bag) {
      const int64_t end = bag + 1 < kBags ? offsets.data<int64_t>()[bag + 1] : kIndices;
      float count = 0;
      float* const to = expected.data<float>() + bag * kWidth;
      for (int64_t i = offsets.data<int64_t>()[bag]; i < end; ++i) {
        const int64_t row = index.data<int64_t>()[i];
        if (row == kPadding) continue;
        const float scale = scaled ? scales.data<float>()[i] : 1.0f;
        for (int64_t j = 0; j < kWidth; ++j) to[j] += table.data<float>()[row * kWidth + j] * scale;
        ++count;
      }
      for (int64_t j = 0; j < kWidth && mode == 1 && count > 0; ++j) to[j] /= count;
    }
    EXPECT_TRUE(sameBits(bags, expected)) << mode;
  }
  EXPECT_THROW(callAll("aten::embedding_bag", "", table, index, longs({0, 5, 2})), RuntimeError);
  index.data<int64_t>()[600] = kRows;
  EXPECT_THROW(callAll("aten::embedding_bag", "", table, index, offsets), RuntimeError);
}

TEST(ManyElements, WideRegistersAddInTheSameOrder) {
  if (!reduce::rows::hasWideRegisters()) GTEST_SKIP() << "no AVX-512";
  using reduce::rows::Fold;
  const Tensor x = noise({32 * 50}, 13);
  const auto compare = [&]<Fold kFold>() {
    const auto narrow = reduce::rows::foldBlocks<kFold>(x.data<float>(), x.numel());
    const auto wide = reduce::rows::foldWideBlocks<kFold>(x.data<float>(), x.numel());
    EXPECT_EQ(std::memcmp(&narrow, &wide, sizeof wide), 0);
  };
  compare.operator()<Fold::Sum>();
  compare.operator()<Fold::Squares>();
  compare.operator()<Fold::Product>();
  x.data<float>()[77] = NAN;
  compare.operator()<Fold::NanSum>();
}

TEST(ManyElements, ColumnsAreAddedInTheOrderOfRows) {
  const Tensor x = noise({87, 101}, 19);
  x.data<float>()[5 * 101 + 9] = NAN;
  const Tensor sums = call("aten::sum", "dim_IntList", x, DimVector{0});
  const Tensor without_nan = call("aten::nansum", "", x, DimVector{0});
  for (int64_t j = 0; j < 101; ++j) {
    double sum = 0, numbers = 0;
    for (int64_t i = 0; i < 87; ++i) {
      const double v = x.data<float>()[i * 101 + j];
      sum += v;
      numbers += std::isnan(v) ? 0 : v;
    }
    EXPECT_EQ(std::isnan(sum), std::isnan(sums.data<float>()[j]));
    if (!std::isnan(sum)) {
      EXPECT_EQ(sums.data<float>()[j], static_cast<float>(sum));
    }
    EXPECT_EQ(without_nan.data<float>()[j], static_cast<float>(numbers));
  }
}

TEST(ManyElements, MasksChooseElementsOfEachSize) {
  const Tensor numbers = noise({100, 7}, 20), others = repetitive({100, 7}, 21);
  const Tensor mask = call("aten::gt", "Scalar", noise({100, 7}, 22), 0);
  for (const DType dtype : {DType::Bool, DType::Char, DType::Half, DType::Int, DType::Float,
                            DType::Double, DType::ComplexFloat, DType::ComplexDouble}) {
    const Tensor a = numbers.to(dtype), b = others.to(dtype);
    const Tensor chosen = call("aten::where", "self", mask, a, b);
    const Tensor filled = call("aten::masked_fill", "Tensor", a, mask, b.select(0, 0).select(0, 0));
    const auto size = a.itemSize();
    const auto at = [&](const Tensor& t, int64_t i) {
      return static_cast<const char*>(t.rawData()) + static_cast<size_t>(i) * size;
    };
    for (int64_t i = 0; i < mask.numel(); ++i) {
      const bool set = mask.data<bool>()[i];
      ASSERT_EQ(std::memcmp(at(chosen, i), at(set ? a : b, i), size), 0) << toString(dtype);
      ASSERT_EQ(std::memcmp(at(filled, i), set ? at(b, 0) : at(a, i), size), 0) << toString(dtype);
    }
  }
}

TEST(ManyElements, RemaindersOfWholeNumbersAreExact) {
  std::vector<int64_t> kinds = {1, -1, 2, 3, -7, 10, 1000, -999'983, INT64_MAX, INT64_MIN};
  for (int bit : {31, 52, 53, 54, 62}) {
    for (int64_t delta : {-1, 0, 1}) {
      kinds.push_back((int64_t{1} << bit) + delta);
      kinds.push_back(-(int64_t{1} << bit) + delta);
    }
  }
  const auto count = static_cast<int64_t>(kinds.size());
  // Each pair among ordinary numbers; then neighbours of multiples, which quotients round to.
  const int64_t pairs = 8 * count * count, n = pairs + 8003;
  const Tensor x = Tensor::full({n}, 1234567, DType::Long);
  const Tensor y = Tensor::full({n}, 89, DType::Long);
  for (int64_t i = 0; i < count * count; ++i) {
    x.data<int64_t>()[8 * i + 3] = kinds[static_cast<size_t>(i / count)];
    y.data<int64_t>()[8 * i + 3] = kinds[static_cast<size_t>(i % count)];
  }
  std::mt19937_64 random(23);
  for (int64_t i = pairs; i < n; ++i) {
    const auto divisor = static_cast<int64_t>(random() >> (11 + random() % 50)) | 1;
    const int64_t multiple =
        static_cast<int64_t>((random() >> 12) / static_cast<uint64_t>(divisor));
    const int64_t near = multiple * divisor + static_cast<int64_t>(random() % 3) - 1;
    x.data<int64_t>()[i] = random() % 2 == 0 ? near : -near;
    y.data<int64_t>()[i] = random() % 2 == 0 ? divisor : -divisor;
  }
  const Tensor rest = call("aten::fmod", "Tensor", x, y);
  const Tensor positive = call("aten::remainder", "Tensor", x, y);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t a = x.data<int64_t>()[i], d = y.data<int64_t>()[i];
    const int64_t expected = d == -1 ? 0 : a % d;
    ASSERT_EQ(rest.data<int64_t>()[i], expected) << a << " % " << d;
    ASSERT_EQ(positive.data<int64_t>()[i],
              expected != 0 && (expected < 0) != (d < 0) ? expected + d : expected)
        << a << " % " << d;
  }
}

TEST(ManyElements, WholeNumbersOfFloats) {
  const Tensor x = noise({1003}, 24);
  float* const p = x.data<float>();
  for (int64_t i = 0; i < 1003; ++i) p[i] = std::ldexp(p[i], static_cast<int>(i % 80) - 10);
  const float odd[] = {NAN, kInf, -kInf, 0x1p63f, -0x1p63f, 0x1.fffffep62f, -0.0f, -0.99f, 1e-45f};
  std::copy(std::begin(odd), std::end(odd), p + 500);
  const Tensor whole = x.to(DType::Long);
  for (int64_t i = 0; i < 1003; ++i) {
    const bool fits = p[i] >= -0x1p63f && p[i] < 0x1p63f;
    ASSERT_EQ(whole.data<int64_t>()[i], fits ? static_cast<int64_t>(p[i]) : INT64_MIN) << p[i];
  }
}

TEST(ManyElements, MatrixTimesVector) {
  for (const int64_t length : {1, 7, 33, 300}) {
    const Tensor matrix = noise({50, 2 * length}, 14), wide = noise({length, 3}, 15);
    for (const Tensor& a : {matrix.slice(1, 0, length), matrix.slice(1, 0, length).contiguous()}) {
      const Tensor v = wide.select(1, 1);
      const Tensor product = call("aten::mv", "", a, v);
      for (int64_t r = 0; r < 50; ++r) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < length; ++k) {
          const double term = static_cast<double>(a.data<float>()[r * a.stride(0) + k]) *
                              static_cast<double>(v.data<float>()[k * v.stride(0)]);
          sum += term;
          size += std::fabs(term);
        }
        EXPECT_NEAR(product.data<float>()[r], sum, size * 1e-6);
      }
    }
  }
}

TEST(ManyElements, MagnitudesOfComplexNumbers) {
  const Tensor parts = repetitive({2000, 2}, 16);
  float* const p = parts.data<float>();
  const float largest = std::numeric_limits<float>::max(), smallest = 1e-45f;
  const float odd[] = {largest, largest, smallest, smallest, 3e-30f, 4e-30f, NAN, kInf, -kInf, NAN};
  std::copy(std::begin(odd), std::end(odd), p);
  const Tensor size = call("aten::abs", "", call("aten::view_as_complex", "", parts));
  for (int64_t i = 0; i < 2000; ++i) {
    const float expected = std::hypot(p[2 * i], p[2 * i + 1]), found = size.data<float>()[i];
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(found)) << i;
    } else {
      EXPECT_EQ(found, expected) << i;
    }
  }
}

// The sums are single precision, as PyTorch's are; a draw between two of them depends on that.
// Threads note at the same time what their parts decide.
TEST(ManyElements, DecisionsLoseNoPart) {
  Tensor x = Tensor::empty({1500, 1700}, DType::Bool);
  x.fill(1);
  const Tensor last = Tensor::zeros({1500, 1700}, DType::Bool);
  last.data<bool>()[last.numel() - 1] = true;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(call("aten::all", "", x).item<bool>()) << i;
    ASSERT_TRUE(call("aten::any", "", last).item<bool>()) << i;
    ASSERT_TRUE(call("aten::amin", "", x).item<bool>()) << i;
  }
}

TEST(ManyElements, DrawsAreByRoundedSums) {
  constexpr int64_t kRows = 11, kLength = 3000, kDraws = 40;
  Tensor weights = call("aten::abs", "", noise({kRows, kLength}, 17));
  const auto drawn = makeRef<GeneratorObject>(5), again = makeRef<GeneratorObject>(5);
  const Tensor found = call("aten::multinomial", "", weights, kDraws, true, IValue(drawn));
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<float> sums;
    float total = 0;
    for (float v : weights.select(0, r).span<const float>()) sums.push_back(total += v);
    for (int64_t s = 0; s < kDraws; ++s) {
      const double u = again->uniformDouble();
      const auto at = std::ranges::find_if(
          sums, [&](float sum) { return static_cast<double>(sum / total) >= u; });
      ASSERT_EQ(found.data<int64_t>()[r * kDraws + s], at - sums.begin());
    }
  }
  weights.data<float>()[5 * kLength + 7] = NAN;
  EXPECT_THROW(call("aten::multinomial", "", weights, kDraws, true), RuntimeError);
}

TEST(ManyElements, ShortRowsAreRepeatedAndMultiplied) {
  const Tensor x = noise({500, 20}, 18);
  const Tensor some = x.slice(1, 0, 8);
  const Tensor repeated = call("aten::repeat", "", some, DimVector{1, 4});
  const Tensor column = x.select(1, 3);
  const Tensor products = call("aten::mul", "Tensor", some.select(1, 2).unsqueeze(1), column);
  for (int64_t r = 0; r < 500; ++r) {
    for (int64_t j = 0; j < 32; ++j) {
      ASSERT_EQ(repeated.data<float>()[r * 32 + j], x.data<float>()[r * 20 + j % 8]);
    }
    for (int64_t j = 0; j < 500; ++j) {
      ASSERT_EQ(products.data<float>()[r * 500 + j],
                x.data<float>()[r * 20 + 2] * x.data<float>()[j * 20 + 3]);
    }
  }
}

}  // namespace
}  // namespace wick::many_elements_test

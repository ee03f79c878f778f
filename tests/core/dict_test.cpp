// Dicts against a plain model, and with keys that were chosen to meet.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "core/error.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"

namespace wick::dict_test {
namespace {

using Model = std::vector<std::pair<int64_t, int64_t>>;

Model contentsOf(const DictObject& d) {
  Model out;
  for (const auto& [key, value] : d.items()) out.emplace_back(key.toInt(), value.toInt());
  return out;
}

TEST(DictTest, behavesAsAListOfPairs) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    DictObject d(types::Int(), types::Int());
    Model model;
    const int64_t keys = 1 + round * 4;
    const int shift =
        round % 2 == 0 ? 0 : 32;  // neighbours, or keys that differ in their high bits
    for (int64_t step = 0; step < 1500; ++step) {
      const int64_t key = static_cast<int64_t>(random() % static_cast<uint64_t>(keys)) << shift;
      auto at = std::find_if(model.begin(), model.end(), [&](auto& e) { return e.first == key; });
      switch (random() % 8) {
        case 0:
        case 1:
        case 2:
        case 3:
          d.set(key, step);
          if (at == model.end()) {
            model.emplace_back(key, step);
          } else {
            at->second = step;
          }
          break;
        case 4:
        case 5:
          EXPECT_EQ(d.erase(key), at != model.end());
          if (at != model.end()) model.erase(at);
          break;
        case 6: {
          auto last = d.popLast();
          ASSERT_EQ(last.has_value(), !model.empty());
          if (last) {
            EXPECT_EQ(last->first.toInt(), model.back().first);
            model.pop_back();
          }
          break;
        }
        default:
          const IValue* found = d.find(key);
          ASSERT_EQ(found != nullptr, at != model.end());
          if (found) {
            EXPECT_EQ(found->toInt(), at->second);
          }
      }
      ASSERT_EQ(d.size(), model.size());
    }
    EXPECT_EQ(contentsOf(d), model);
    d.clear();
    EXPECT_EQ(d.size(), 0u);
    EXPECT_EQ(d.find(0), nullptr);
  }
}

TEST(DictTest, equalNumbersAreOneKey) {
  DictObject d(types::Any(), types::Int());
  for (int filler = 100; filler < 120; ++filler) d.set(filler, 0);  // enough for an index
  d.set(1, 1);
  d.set(1.0, 2);
  d.set(true, 3);
  d.set(std::complex<double>(1, 0), 4);
  EXPECT_EQ(d.size(), 21u);
  EXPECT_EQ(d.find(1)->toInt(), 4);
  d.set(0.0, 5);
  EXPECT_EQ(d.find(-0.0)->toInt(), 5);
  EXPECT_EQ(d.find(false)->toInt(), 5);
  d.set(NAN, 6);
  ASSERT_NE(d.find(NAN), nullptr);  // the same bits
  d.set(0x1p63, 7);
  EXPECT_EQ(d.find(INT64_MAX), nullptr);
  d.set(makeTuple({IValue(1), IValue("a")}), 8);
  EXPECT_EQ(d.find(makeTuple({IValue(1.0), IValue("a")}))->toInt(), 8);
  EXPECT_EQ(d.find("1"), nullptr);
  EXPECT_EQ(d.find(IValue()), nullptr);
  d.set(IValue(), 9);
  EXPECT_EQ(d.find(IValue())->toInt(), 9);
  Tensor t = Tensor::empty(DimVector{1}, DType::Float);
  d.set(t, 10);
  EXPECT_EQ(d.find(t)->toInt(), 10);
  EXPECT_EQ(d.find(t.clone()), nullptr);
}

TEST(DictTest, keysWithoutAHashAreErrors) {
  DictObject d(types::Any(), types::Int());
  EXPECT_THROW(d.set(makeList(types::Int()), 1), RuntimeError);
  EXPECT_THROW(d.find(makeList(types::Int())), RuntimeError);
  EXPECT_EQ(d.size(), 0u);
}

// Multiples of the number of buckets of std::unordered_map with std::hash, and of powers of two.
TEST(DictTest, chosenKeysAreAsFastAsOthers) {
  for (int64_t step :
       {int64_t{205759}, int64_t{1} << 20, int64_t{1} << 40, int64_t{1}, int64_t{8}}) {
    DictObject d(types::Int(), types::Int());
    for (int64_t i = 0; i < 100000; ++i) d.set(i * step, i);
    for (int64_t i = 0; i < 100000; ++i) ASSERT_EQ(d.find(i * step)->toInt(), i);
  }
}

TEST(DictTest, insertingAndRemovingKeepsItSmall) {
  DictObject d(types::Int(), types::Int());
  for (int64_t i = 0; i < 300000; ++i) {
    d.set(i, i);
    if (i >= 20) {
      EXPECT_TRUE(d.erase(i - 20));
    }
  }
  EXPECT_EQ(contentsOf(d).front().first, 299980);
  for (int64_t i = 0; i < 300000; ++i) {
    d.set(-1 - i, i);
    ASSERT_EQ(d.popLast()->first.toInt(), -1 - i);
  }
  EXPECT_EQ(d.size(), 20u);
}

TEST(KeyedHashTest, differsWithEveryByte) {
  std::string text(40, 'x');
  for (size_t n = 0; n <= text.size(); ++n) {
    const std::string_view part = std::string_view(text).substr(0, n);
    const std::string same(part);
    EXPECT_EQ(keyedHash(part), keyedHash(std::string_view(same)));
    EXPECT_NE(keyedHash(part), keyedHash(std::string_view(same + "x")));
    for (size_t i = 0; i < n; ++i) {
      std::string other = same;
      other[i] = 'y';
      EXPECT_NE(keyedHash(part), keyedHash(std::string_view(other))) << n << " " << i;
    }
  }
}

TEST(KeyedHashTest, spreadsMultiples) {
  for (int shift : {0, 16, 32, 48, 56}) {
    std::map<uint64_t, int> places;
    for (uint64_t i = 0; i < 256; ++i) ++places[keyedHash(i << shift) & 1023];
    EXPECT_GT(places.size(), 180u) << shift;  // about 226 of random ones
  }
}

}  // namespace
}  // namespace wick::dict_test

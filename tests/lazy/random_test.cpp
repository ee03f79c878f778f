// Random programs with views and writes: on the device "lazy" they compute the bits that they
// compute on the CPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "core/device_backend.h"
#include "core/error.h"
#include "lazy/lazy.h"
#include "runtime/ops/call.h"
#include "tests/same_bits.h"
#include "wick_ops.h"

namespace wick::random_test {
namespace {

using testing_tensors::sameBits;

const Device kOnLazy{kLazy, -1};

Tensor start(int64_t rows, int64_t columns, unsigned seed) {
  std::mt19937 draw(seed);
  std::uniform_real_distribution<float> uniform(-2, 2);
  const Tensor t = Tensor::empty({rows, columns}, DType::Float);
  for (float& v : t.span<float>()) v = uniform(draw);
  return t;
}

// The same choices for the same seed, on whatever device `place` puts the first tensors.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : seed_(seed), draw_(seed) {}

  // All tensors at the end. An error of a step is a step that does nothing; its text is kept.
  std::vector<Tensor> run(const std::function<Tensor(const Tensor&)>& place) {
    draw_.seed(seed_);
    errors_.clear();
    story_.clear();
    pool_ = {place(start(3, 4, seed_)), place(start(4, 3, seed_ + 1)),
             place(start(1, 4, seed_ + 2)), place(start(3, 1, seed_ + 3))};
    const int steps = 4 + choose(16);
    for (int i = 0; i < steps; ++i) {
      story_ += "\n" + std::to_string(i) + ":";
      try {
        step();
      } catch (const Error& error) {
        std::string text = error.what();
        for (size_t at = 0; (at = text.find(" on lazy")) != std::string::npos;) text.erase(at, 8);
        errors_ += std::to_string(i) + ", " + std::to_string(chosen_) + ": " + text + "\n";
        // What an out= form leaves behind when it raises may have other sizes already.
        if (chosen_ == kOutForm) {
          pool_.clear();
          break;
        }
      }
      if (pool_.size() > 12) pool_.erase(pool_.begin() + choose(static_cast<int>(pool_.size())));
    }
    return pool_;
  }
  const std::string& errors() const { return errors_; }
  // What the steps did: the operator's number, the tensors that it got, and those that it gave.
  const std::string& story() const { return story_; }

 private:
  int choose(int n) { return static_cast<int>(draw_() % static_cast<unsigned>(n)); }
  Tensor any() {
    const int at = choose(static_cast<int>(pool_.size()));
    const Tensor t = pool_[static_cast<size_t>(at)];
    story_ += " " + std::to_string(at) + ": " + describe(t);
    return t;
  }
  static std::string describe(const Tensor& t) {
    return std::string(toString(t.dtype())) + formatInts(t.sizes()) + formatInts(t.strides()) +
           "@" + std::to_string(t.offset());
  }

  void step() {
    static const OperatorHandle kAdd("aten::add_", "Tensor"), kMul("aten::mul_", "Scalar"),
        kRelu("aten::relu_", ""), kFill("aten::fill_", "Scalar"), kZero("aten::zero_", ""),
        kCopy("aten::copy_", ""), kSelect("aten::select", "int"), kSlice("aten::slice", "Tensor"),
        kTranspose("aten::transpose", "int"), kView("aten::view", ""),
        kReshape("aten::reshape", ""), kExpand("aten::expand", ""),
        kUnsqueeze("aten::unsqueeze", ""), kFlip("aten::flip", ""), kCat("aten::cat", ""),
        kClamp("aten::clamp", ""), kSum("aten::sum", "dim_IntList"),
        kSplit("aten::split", "Tensor"), kClone("aten::clone", ""), kDiagonal("aten::diagonal", ""),
        kStrided("aten::as_strided", ""), kMasked("aten::masked_fill_", "Scalar"),
        kGreater("aten::gt", "Tensor"), kTo("aten::to", "dtype"),
        kIndexPut("aten::index_fill_", "int_Scalar"), kOut("aten::mul", "out"),
        kCumsum("aten::cumsum", ""), kDetach("aten::detach", ""), kSqueeze("aten::squeeze", "");
    const Tensor x = any(), y = any();
    const int dim = choose(3) - 1;
    chosen_ = choose(32);
    story_ += ", operator " + std::to_string(chosen_);
    switch (chosen_) {
      case 0:
        return keep(ops::add(x, y, Scalar(0.5)));
      case 1:
        return keep(ops::mul(x, y));
      case 2:
        return keep(ops::sin(x));
      case 3:
        return keep(kClamp(x, -0.5, 0.5));
      case 4:
        return void(kAdd(x, y, Scalar(1)));
      case 5:
        return void(kMul(x, Scalar(1.25)));
      case 6:
        return void(kRelu(x));
      case 7:
        return void(kFill(x, Scalar(choose(3))));
      case 8:
        return void(kZero(x));
      case 9:
        return void(kCopy(x, y, false));
      case 10:
        return keep(kSelect(x, dim, choose(3)));
      case 11:
      case 12:
        return keep(kSlice(x, dim, choose(2), 2 + choose(3), 1 + choose(2)));
      case 13:
      case 14:
        return keep(kTranspose(x, 0, dim));
      case 15:
        return keep(kView(x, DimVector{-1}));
      case 16:
        return keep(kReshape(x, DimVector{2, -1}));
      case 17:
        return keep(kExpand(x, DimVector{3, 4}, false));
      case 18:
        return keep(kUnsqueeze(x, dim));
      case 19:
        return keep(kFlip(x, DimVector{0}));
      case 20:
        return keep(kCat(std::vector<Tensor>{x, y}, 0));
      case 21:
        return keep(kSum(x, DimVector{0}, choose(2) == 0, IValue()));
      case 22: {
        const std::vector<IValue> results = kSplit.all(x, 2, 0);
        for (const IValue& part : results[0].elements()) keep(part.toTensor());
        return;
      }
      case 23:
        return keep(kClone(x, IValue()));
      case 24:
        return keep(kDiagonal(x, choose(2), 0, 1));
      case 25:
        return keep(kStrided(x, DimVector{2, 2}, DimVector{1 + choose(2), 1}, choose(3)));
      case 26:
        return void(kMasked(x, kGreater(x, y), Scalar(9)));
      case 27:
        return keep(kTo(x, static_cast<int64_t>(choose(2) == 0 ? DType::Double : DType::Float),
                        false, false, IValue()));
      case kOutForm:
        return void(kOut(x, y, any()));
      case 29:
        return keep(kCumsum(x, 0, IValue()));
      case 30:
        return keep(kSqueeze(x));
      case 31:
        return keep(ops::exp(kDetach(x)));
    }
  }
  void keep(const Tensor& t) {
    pool_.push_back(t);
    story_ += " -> " + describe(t);
  }

  unsigned seed_;
  static constexpr int kOutForm = 28;
  int chosen_ = 0;
  std::mt19937 draw_;
  std::vector<Tensor> pool_;
  std::string errors_, story_;
};

TEST(Lazy, RandomProgramsHaveTheBitsOfEagerOnes) {
  const char* asked = std::getenv("WICK_LAZY_COUNT");
  const unsigned count = asked ? static_cast<unsigned>(std::atoi(asked)) : 400;
  const char* first = std::getenv("WICK_LAZY_SEED");
  const unsigned begin = first ? static_cast<unsigned>(std::atoi(first)) : 0;
  for (unsigned seed = begin; seed < begin + count; ++seed) {
    RandomProgram program(seed);
    const std::vector<Tensor> want = program.run([](const Tensor& t) { return t.clone(); });
    const std::string errors = program.errors();
    const std::vector<Tensor> got = program.run([](const Tensor& t) { return moveTo(t, kOnLazy); });
    ASSERT_EQ(program.errors(), errors) << "program " << seed;
    ASSERT_EQ(got.size(), want.size()) << "program " << seed;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].dtype(), want[i].dtype()) << "program " << seed;
      ASSERT_EQ(formatInts(got[i].sizes()), formatInts(want[i].sizes())) << "program " << seed;
      for (int64_t d = 0; d < want[i].dim(); ++d) {
        // Where there is one element the stride means nothing.
        if (want[i].size(d) <= 1) continue;
        ASSERT_EQ(got[i].stride(d), want[i].stride(d)) << "program " << seed;
      }
      ASSERT_TRUE(sameBits(moveTo(got[i], Device()), want[i]))
          << "program " << seed << ", tensor " << i << ": "
          << formatTensor(moveTo(got[i], Device())) << "\nfor " << formatTensor(want[i])
          << program.story();
    }
  }
}

}  // namespace
}  // namespace wick::random_test

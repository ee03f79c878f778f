// MersenneTwister: the numbers of std::mt19937 for each seed, made in blocks by vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace wick {

// Copyable; a copy goes on with the same numbers.
class MersenneTwister {
 public:
  explicit MersenneTwister(uint32_t seed = 5489) { this->seed(seed); }

  void seed(uint32_t seed) {
    state_[0] = seed;
    for (uint32_t i = 1; i < kSize; ++i) {
      state_[i] = 1812433253u * (state_[i - 1] ^ state_[i - 1] >> 30) + i;
    }
    next_ = kSize;
  }

  uint32_t operator()() {
    if (next_ == kSize) makeBlock();
    return numbers_[next_++];
  }

  // The state as PyTorch's files and other libraries have it: the words of the current block, and how
  // many of its numbers are used up.
  static constexpr size_t kWords = 624;
  const uint32_t* words() const { return state_; }
  size_t used() const { return next_; }
  // Goes on from there; `used` is at most kWords.
  void load(const uint32_t* words, size_t used) {
    std::memcpy(state_, words, sizeof state_);
    temperBlock();
    next_ = used;
  }

  // The next n numbers.
  void fill(uint32_t* out, size_t n) {
    while (n > 0) {
      if (next_ == kSize) makeBlock();
      const size_t some = n < kSize - next_ ? n : kSize - next_;
      std::memcpy(out, numbers_ + next_, some * sizeof *out);
      next_ += some;
      out += some;
      n -= some;
    }
  }

 private:
  static constexpr size_t kSize = kWords, kFar = 397;
  static constexpr size_t kLanes = 8;
  using Lanes = uint32_t __attribute__((vector_size(kLanes * sizeof(uint32_t))));

  template <class V>
  static V get(const uint32_t* from) {
    V v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  template <class V>
  static void put(uint32_t* to, V v) {
    std::memcpy(to, &v, sizeof v);
  }
  template <class V>
  static V twisted(V here, V next, V far) {
    const V mixed = (here & 0x80000000u) | (next & 0x7fffffffu);
    return far ^ (mixed >> 1) ^ ((next & 1u) * 0x9908b0dfu);
  }
  template <class V>
  static V tempered(V y) {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  // Numbers begin to end - 1 of the state; `far` is where the others that they need begin.
  void twist(size_t begin, size_t end, size_t far) {
    for (; begin + kLanes <= end; begin += kLanes, far += kLanes) {
      put(state_ + begin, twisted(get<Lanes>(state_ + begin), get<Lanes>(state_ + begin + 1),
                                  get<Lanes>(state_ + far)));
    }
    for (; begin < end; ++begin, ++far) {
      state_[begin] = twisted(state_[begin], state_[begin + 1], state_[far]);
    }
  }
  void makeBlock() {
    twist(0, kSize - kFar, kFar);
    twist(kSize - kFar, kSize - 1, 0);
    state_[kSize - 1] = twisted(state_[kSize - 1], state_[0], state_[kFar - 1]);
    temperBlock();
    next_ = 0;
  }
  void temperBlock() {
    for (size_t i = 0; i < kSize; i += kLanes) {
      put(numbers_ + i, tempered(get<Lanes>(state_ + i)));
    }
  }

  uint32_t state_[kSize];
  uint32_t numbers_[kSize] = {};
  size_t next_ = kSize;
};

}  // namespace wick

// Fourier transforms of models that were compiled ahead of time. C++17. Rows lie one behind the other; complex numbers are
// pairs of a real and an imaginary part.
//
// What a length needs was made with the model: `words` tell it (aot/fourier.cpp) and where in `numbers` its tables are. So a
// call computes no tables, and works in memory that it is given.
#ifndef WICK_AOT_FOURIER_H
#define WICK_AOT_FOURIER_H

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "fourier_runs.h"

namespace wick_aot {

// One pass (fft::pass). The last two are positions in the numbers.
struct FourierStep {
  int64_t p, m, s, twiddles, roots;
};
// Transforms longer than this one are computed one by one.
constexpr int64_t kLongestInLanes = fft::kLongestInLanes;

// What one length needs. Of `kind` 0 passes; 1, a large prime factor, a convolution of `room` numbers; 2, long waves, a matrix
// whose columns and rows are transformed.
template <class R>
struct FourierTables {
  int64_t kind, length, room;
  const FourierStep* steps;
  int64_t num_steps;
  const R *numbers, *chirp, *kernel, *turns;
  int64_t rows, columns;
  const FourierTables *inner, *down, *across;
};

// The tables that words tell, and those that they are made of.
template <class R>
class FourierPlan {
 public:
  FourierPlan(const int64_t* words, const R* numbers) : words_(words), numbers_(numbers) {
    whole_ = read();
  }
  const FourierTables<R>& whole() const { return *whole_; }

 private:
  const FourierTables<R>* read() {
    FourierTables<R>& t = all_[used_++];
    t.kind = *words_++;
    t.length = *words_++;
    t.room = *words_++;
    if (t.kind == 0) {
      t.numbers = numbers_ + *words_++;
      t.num_steps = *words_++;
      t.steps = reinterpret_cast<const FourierStep*>(words_);
      words_ += t.num_steps * static_cast<int64_t>(sizeof(FourierStep) / sizeof(int64_t));
    } else if (t.kind == 1) {
      t.chirp = numbers_ + *words_++;
      t.kernel = numbers_ + *words_++;
      t.inner = read();
    } else {
      t.rows = *words_++;
      t.columns = *words_++;
      t.turns = numbers_ + *words_++;
      t.down = read();
      t.across = read();
    }
    return &t;
  }

  const int64_t* words_;
  const R* numbers_;
  // A convolution, the long wave within it, and its columns and rows.
  FourierTables<R> all_[4] = {};
  int used_ = 0;
  const FourierTables<R>* whole_;
};

// Working memory: parts of `part` numbers each, and of `inner` for what long waves are made of.
template <class R>
struct FourierMemory {
  R* begin;
  int64_t part, inner;

  fft::Wave<R> data() const { return {begin, begin + part}; }
  fft::Wave<R> work() const { return {begin + 2 * part, begin + 3 * part}; }
  fft::Wave<R> lanes() const { return {begin + 4 * part, begin + 4 * part + inner}; }
  fft::Wave<R> lanesWork() const {
    return {begin + 4 * part + 2 * inner, begin + 4 * part + 3 * inner};
  }
};

// Transforms W waves at once: out[k] = sum over j of in[j] exp(-2 pi i j k / n). `data` holds them, `work` is overwritten; the
// result lies in the one that is returned. W is 1 or fft::kLanes.
template <int W, class R>
fft::Wave<R> fourier(const FourierTables<R>& t, fft::Wave<R> data, fft::Wave<R> work,
                     const FourierMemory<R>& memory) {
  if (t.kind == 1) {
    return fft::convolve<W>(
        data, work, t.length, t.room, t.chirp, t.kernel,
        [&](fft::Wave<R> x, fft::Wave<R> y) { return fourier<W>(*t.inner, x, y, memory); });
  }
  if (t.kind == 0) return fft::runPasses<W>(t.steps, t.num_steps, t.numbers, data, work);
  constexpr int kWide = fft::kLanes<R>;
  const auto transformed = [&](const FourierTables<R>& of) {
    return [&](fft::Wave<R> x) {
      return fft::runPasses<kWide>(of.steps, of.num_steps, of.numbers, x, memory.lanesWork());
    };
  };
  for (int64_t g = 0; g < (t.columns + kWide - 1) / kWide; ++g) {
    fft::squareColumns(g, data, work, t.rows, t.columns, t.turns, memory.lanes(),
                       transformed(*t.down));
  }
  for (int64_t g = 0; g < (t.rows + kWide - 1) / kWide; ++g) {
    fft::squareRows(g, work, data, t.rows, t.columns, memory.lanes(), transformed(*t.across));
  }
  return data;
}
template <int W, class R>
fft::Wave<R> inverseFourier(const FourierTables<R>& t, fft::Wave<R> data, fft::Wave<R> work,
                            const FourierMemory<R>& memory) {
  return fourier<W>(t, data.exchanged(), work.exchanged(), memory).exchanged();
}

template <class R>
void conjugate(fft::Wave<R> x, int64_t numbers) {
  for (int64_t i = 0; i < numbers; ++i) x.im[i] = -x.im[i];
}
// Of a transform of real numbers those behind the first n/2 + 1.
template <int W, class R>
void mirror(fft::Wave<R> x, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) {
    const auto v = fft::get<W>(x, n - k);
    fft::put<W, R>(x, k, {v.re, -v.im});
  }
}

// Calls body(W, first row, how many) for groups of rows, W a constant.
template <class R, class F>
void forRowGroups(const FourierTables<R>& t, int64_t rows, const F& body) {
  constexpr int W = fft::kLanes<R>;
  if (t.room <= kLongestInLanes) {
    for (int64_t i = 0; i < rows; i += W) {
      body(std::integral_constant<int, W>(), i, std::min<int64_t>(W, rows - i));
    }
  } else {
    for (int64_t i = 0; i < rows; ++i) body(std::integral_constant<int, 1>(), i, int64_t{1});
  }
}

// n pairs of `count` rows, `width` numbers each. Behind the last row it is repeated.
template <int W, class R>
void loadPairs(const R* from, int64_t width, int64_t count, int64_t n, fft::Wave<R> to) {
  if constexpr (W == 1) {
    for (int64_t k = 0; k < n; ++k) {
      to.re[k] = from[2 * k];
      to.im[k] = from[2 * k + 1];
    }
  } else {
    const R* rows[W];
    for (int64_t i = 0; i < W; ++i) rows[i] = from + std::min(i, count - 1) * width;
    fft::pairsToLanes(rows, n, to);
  }
}
template <int W, class R>
void loadReals(const R* from, int64_t width, int64_t count, int64_t n, fft::Wave<R> to) {
  if constexpr (W == 1) {
    std::copy(from, from + n, to.re);
  } else {
    const R* rows[W];
    for (int64_t i = 0; i < W; ++i) rows[i] = from + std::min(i, count - 1) * width;
    fft::rowsToLanes(rows, n, to.re);
  }
  std::fill(to.im, to.im + n * W, R(0));
}
template <int W, class R>
void storePairs(fft::Wave<R> from, int64_t n, R* to, int64_t width, int64_t count, R scale) {
  if constexpr (W == 1) {
    for (int64_t k = 0; k < n; ++k) {
      to[2 * k] = from.re[k] * scale;
      to[2 * k + 1] = from.im[k] * scale;
    }
  } else {
    R* rows[W];
    for (int64_t i = 0; i < count; ++i) rows[i] = to + i * width;
    fft::lanesToPairs(from, n, rows, count, scale);
  }
}
template <int W, class R>
void storeReals(fft::Wave<R> from, int64_t n, R* to, int64_t width, int64_t count, R scale) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < n; ++k) to[i * width + k] = from.re[k * W + i] * scale;
  }
}

// Each row becomes its transform, times `scale`. `forward` chooses exp(-2 pi i j k / n), else the sign is plus.
template <class R>
void fourierRows(const R* from, const int64_t* words, const R* numbers, const double* scale, R* to,
                 R* memory, int64_t rows, int64_t part, int64_t inner, int64_t forward) {
  const FourierPlan<R> plan(words, numbers);
  const FourierMemory<R> space{memory, part, inner};
  const FourierTables<R>& t = plan.whole();
  const int64_t n = t.length;
  forRowGroups(t, rows, [&](auto lanes, int64_t first, int64_t count) {
    constexpr int W = decltype(lanes)::value;
    const fft::Wave<R> x = space.data();
    loadPairs<W>(from + 2 * n * first, 2 * n, count, n, x);
    const fft::Wave<R> y = forward != 0 ? fourier<W>(t, x, space.work(), space)
                                        : inverseFourier<W>(t, x, space.work(), space);
    storePairs<W>(y, n, to + 2 * n * first, 2 * n, count, static_cast<R>(*scale));
  });
}

// Rows of n real numbers; `kept` numbers of each transform, n/2 + 1 or all. For an even n the tables are those of n / 2, and
// `turns` those of unravel().
template <class R>
void fourierRowsOfReals(const R* from, const int64_t* words, const R* numbers, const R* turns,
                        const double* scale, R* to, R* memory, int64_t rows, int64_t part,
                        int64_t inner, int64_t forward, int64_t n, int64_t kept) {
  const FourierPlan<R> plan(words, numbers);
  const FourierMemory<R> space{memory, part, inner};
  const FourierTables<R>& t = plan.whole();
  forRowGroups(t, rows, [&](auto lanes, int64_t first, int64_t count) {
    constexpr int W = decltype(lanes)::value;
    const fft::Wave<R> x = space.data();
    if (turns) {
      loadPairs<W>(from + n * first, n, count, n / 2, x);
    } else {
      loadReals<W>(from + n * first, n, count, n, x);
    }
    const fft::Wave<R> y = fourier<W>(t, x, space.work(), space);
    if (turns) fft::unravelPairs<W>(y, n, turns);
    if (forward == 0) conjugate(y, (n / 2 + 1) * W);
    if (kept > n / 2 + 1) mirror<W>(y, n);
    storePairs<W>(y, kept, to + 2 * kept * first, 2 * kept, count, static_cast<R>(*scale));
  });
}

// The other way: n real numbers from the first n/2 + 1 complex ones.
template <class R>
void fourierRowsToReals(const R* from, const int64_t* words, const R* numbers, const R* turns,
                        const double* scale, R* to, R* memory, int64_t rows, int64_t part,
                        int64_t inner, int64_t forward, int64_t n) {
  const FourierPlan<R> plan(words, numbers);
  const FourierMemory<R> space{memory, part, inner};
  const FourierTables<R>& t = plan.whole();
  const int64_t given = n / 2 + 1;
  forRowGroups(t, rows, [&](auto lanes, int64_t first, int64_t count) {
    constexpr int W = decltype(lanes)::value;
    const fft::Wave<R> y = space.data();
    loadPairs<W>(from + 2 * given * first, 2 * given, count, given, y);
    if (forward != 0) conjugate(y, given * W);
    if (turns) {
      fft::ravelPairs<W>(y, n, turns);
    } else {
      mirror<W>(y, n);
    }
    const fft::Wave<R> x = inverseFourier<W>(t, y, space.work(), space);
    if (turns) {
      storePairs<W>(x, n / 2, to + n * first, n, count, static_cast<R>(*scale));
    } else {
      storeReals<W>(x, n, to + n * first, n, count, static_cast<R>(*scale));
    }
  });
}

// Frames of n numbers, `hop` apart, added up one behind the other: istft. Each is an element of x or all of them that of
// one frame (`step` is 0).
template <class R>
void overlapAdd(const R* x, R* to, int64_t batches, int64_t frames, int64_t n, int64_t hop,
                int64_t step) {
  const int64_t total = n + hop * (frames - 1);
  for (int64_t b = 0; b < batches; ++b, to += total) {
    std::fill(to, to + total, R(0));
    for (int64_t f = 0; f < frames; ++f, x += step) {
      for (int64_t i = 0; i < n; ++i) to[f * hop + i] = to[f * hop + i] + x[i];
    }
  }
}

}  // namespace wick_aot

#endif

// As many rows as a vector has numbers are transformed side by side; long rows, or a few, one by
// one (fft_plan.h).
#include "runtime/kernels/fft.h"

#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/fft_plan.h"
#include "runtime/kernels/fft_rows.h"

namespace wick::fft {

namespace {

// The rows of a tensor along one dimension. Steps count real numbers.
template <class R>
struct Rows {
  R* data;
  int64_t step;              // from one number of a row to the next
  int64_t imag;              // from a real part to its imaginary one; -1: there is none
  DimVector sizes, strides;  // of the other dimensions

  Rows(const Tensor& t, int64_t dim) {
    const int64_t item = isComplex(t.dtype()) ? 2 : 1;
    data = static_cast<R*>(t.rawData());
    step = t.stride(dim) * item;
    imag = item == 2 ? 1 : -1;
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (d == dim) continue;
      sizes.push_back(t.size(d));
      strides.push_back(t.stride(d) * item);
    }
  }
  // Pairs of neighbours as complex numbers.
  Rows paired() const {
    Rows r = *this;
    r.imag = step;
    r.step = 2 * step;
    return r;
  }
  R* row(int64_t i) const {
    R* at = data;
    for (size_t d = sizes.size(); d-- > 0; i /= sizes[d]) at += i % sizes[d] * strides[d];
    return at;
  }
  bool packed() const { return step == 2 && imag == 1; }
};

// Whether rows lie `by` after each other.
template <class R>
bool adjacent(R* const* rows, int64_t count, int64_t by) {
  for (int64_t i = 1; i < count; ++i) {
    if (rows[i] != rows[0] + i * by) return false;
  }
  return count == kLanes<R>;
}

// The first n numbers of `count` rows. Behind the last one it is repeated.
template <int W, class R>
void load(const Rows<R>& from, int64_t first, int64_t count, int64_t n, Wave<R> to) {
  R* rows[W];
  for (int64_t i = 0; i < W; ++i) rows[i] = i < count ? from.row(first + i) : rows[count - 1];
  const int64_t step = from.step, imag = from.imag;
  if constexpr (W == 1) {
    const R* at = rows[0];
    if (from.packed()) {
      for (int64_t k = 0; k < n; ++k) {
        to.re[k] = at[2 * k];
        to.im[k] = at[2 * k + 1];
      }
      return;
    }
  } else {
    if (from.packed()) return pairsToLanes(rows, n, to);
    if (imag < 0 && step == 1) {
      rowsToLanes(rows, n, to.re);
      std::fill_n(to.im, n * W, R(0));
      return;
    }
    if (imag == 1 && adjacent(rows, count, 2)) {
      for (int64_t k = 0; k < n; ++k) {
        const R* at = rows[0] + k * step;
        put<W, R>(to, k, parted(get<W>(at), get<W>(at + W)));
      }
      return;
    }
    if (adjacent(rows, count, 1)) {
      for (int64_t k = 0; k < n; ++k) {
        const R* at = rows[0] + k * step;
        put<W, R>(to, k, {get<W>(at), imag < 0 ? Lanes<R, W>{} : get<W>(at + imag)});
      }
      return;
    }
  }
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < W; ++i) {
      to.re[k * W + i] = rows[i][k * step];
      to.im[k * W + i] = imag < 0 ? R(0) : rows[i][k * step + imag];
    }
  }
}

template <int W, class R>
void store(Wave<R> from, int64_t n, const Rows<R>& to, int64_t first, int64_t count, R scale) {
  R* rows[W];
  for (int64_t i = 0; i < count; ++i) rows[i] = to.row(first + i);
  const int64_t step = to.step, imag = to.imag;
  if constexpr (W == 1) {
    R* at = rows[0];
    if (to.packed()) {
      for (int64_t k = 0; k < n; ++k) {
        at[2 * k] = from.re[k] * scale;
        at[2 * k + 1] = from.im[k] * scale;
      }
      return;
    }
  } else {
    const Lanes<R, W> factor = spread<W>(scale);
    if (to.packed()) return lanesToPairs(from, n, rows, count, scale);
    if (imag == 1 && adjacent(rows, count, 2)) {
      for (int64_t k = 0; k < n; ++k) {
        const auto v = get<W>(from, k);
        const auto both = joined(v.re * factor, v.im * factor);
        put<W>(rows[0] + k * step, both.re);
        put<W>(rows[0] + k * step + W, both.im);
      }
      return;
    }
    if (adjacent(rows, count, 1)) {
      for (int64_t k = 0; k < n; ++k) {
        const auto v = get<W>(from, k);
        put<W>(rows[0] + k * step, v.re * factor);
        if (imag >= 0) put<W>(rows[0] + k * step + imag, v.im * factor);
      }
      return;
    }
  }
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t i = 0; i < count; ++i) {
      rows[i][k * step] = from.re[k * W + i] * scale;
      if (imag >= 0) rows[i][k * step + imag] = from.im[k * W + i] * scale;
    }
  }
}

// Calls body.operator()<W>(first row, rows, memory) for groups of at most W rows, where memory has
// room for W waves of `room` numbers.
template <class R, class F>
void forGroups(int64_t rows, int64_t room, F&& body) {
  constexpr int W = kLanes<R>;
  if (room <= kLongestInLanes && rows > W / 4) {
    parallelFor((rows + W - 1) / W, std::max<int64_t>(1, 32768 / (room * W)),
                [&](int64_t begin, int64_t end) {
                  const Workspace<R> space(room * W);
                  for (int64_t g = begin; g < end; ++g) {
                    body.template operator()<W>(g * W, std::min<int64_t>(W, rows - g * W), space);
                  }
                });
    return;
  }
  // A few long rows have threads of their own.
  const int64_t grain = rows < omp_get_max_threads() ? rows : 1;
  parallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    const Workspace<R> space(room);
    for (int64_t i = begin; i < end; ++i) body.template operator()<1>(i, int64_t{1}, space);
  });
}

template <int W, class R>
Wave<R> inverse(const Plan<R>& plan, Wave<R> data, Wave<R> work) {
  return plan.template run<W>(data.exchanged(), work.exchanged()).exchanged();
}

template <class R>
void conjugate(Wave<R> x, int64_t numbers) {
  for (int64_t i = 0; i < numbers; ++i) x.im[i] = -x.im[i];
}

template <int W, class R>
void mirror(Wave<R> x, int64_t n) {
  for (int64_t k = n / 2 + 1; k < n; ++k) {
    const auto v = get<W>(x, n - k);
    put<W, R>(x, k, {v.re, -v.im});
  }
}

template <class R>
void transformRows(const Rows<R>& from, const Rows<R>& to, int64_t rows, int64_t n, bool forward,
                   R scale) {
  const auto plan = planFor<R>(n);
  forGroups<R>(rows, plan->room(),
               [&]<int W>(int64_t first, int64_t count, const Workspace<R>& space) {
                 load<W>(from, first, count, n, space.data());
                 const Wave<R> x = forward ? plan->template run<W>(space.data(), space.work())
                                           : inverse<W>(*plan, space.data(), space.work());
                 store<W>(x, n, to, first, count, scale);
               });
}

// Calls body.operator()<R>() with the type of the tensor's numbers or their parts.
template <class F>
void withReals(const Tensor& t, F&& body) {
  if (toRealType(t.dtype()) == DType::Double) {
    body.template operator()<double>();
  } else {
    WICK_CHECK(toRealType(t.dtype()) == DType::Float, "fft: Unsupported dtype {}",
               toString(t.dtype()));
    body.template operator()<float>();
  }
}

Tensor resultLike(const Tensor& x, int64_t dim, int64_t size, DType dtype) {
  DimVector sizes(x.sizes());
  sizes[static_cast<size_t>(dim)] = size;
  return Tensor::empty(sizes, dtype);
}

}  // namespace

Tensor complexToComplex(const Tensor& input, IntSpan dims, bool forward, double scale) {
  if (dims.empty() || input.numel() == 0) return input.clone(MemoryFormat::Contiguous);
  const Tensor& x = input;
  Tensor out = Tensor::empty(x.sizes(), x.dtype());
  withReals(x, [&]<class R>() {
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t n = x.size(dims[i]);
      transformRows<R>({i == 0 ? x : out, dims[i]}, {out, dims[i]}, x.numel() / n, n, forward,
                       static_cast<R>(i == 0 ? scale : 1));
    }
  });
  return out;
}

Tensor realToComplex(const Tensor& x, int64_t dim, bool forward, bool onesided, double scale) {
  const int64_t n = x.size(dim);
  Tensor out = resultLike(x, dim, onesided ? n / 2 + 1 : n, toComplexType(x.dtype()));
  if (x.numel() == 0) return out;
  withReals(x, [&]<class R>() {
    const auto plan = realPlanFor<R>(n);
    const Rows<R> plain(x, dim), from = plan->halved() ? plain.paired() : plain, to(out, dim);
    const int64_t loaded = plan->inner().length();
    forGroups<R>(x.numel() / n, plan->room(),
                 [&]<int W>(int64_t first, int64_t count, const Workspace<R>& space) {
                   load<W>(from, first, count, loaded, space.data());
                   const Wave<R> y = plan->inner().template run<W>(space.data(), space.work());
                   if (plan->halved()) plan->template unravel<W>(y);
                   if (!forward) conjugate(y, (n / 2 + 1) * W);
                   if (!onesided) mirror<W>(y, n);
                   store<W>(y, out.size(dim), to, first, count, static_cast<R>(scale));
                 });
  });
  return out;
}

Tensor complexToReal(const Tensor& input, int64_t dim, int64_t n, bool forward, double scale) {
  Tensor out = resultLike(input, dim, n, toRealType(input.dtype()));
  if (out.numel() == 0) return out;
  const Tensor& x = input;
  withReals(x, [&]<class R>() {
    const auto plan = realPlanFor<R>(n);
    const Rows<R> from(x, dim), plain(out, dim), to = plan->halved() ? plain.paired() : plain;
    const int64_t stored = plan->inner().length();
    forGroups<R>(out.numel() / n, plan->room(),
                 [&]<int W>(int64_t first, int64_t count, const Workspace<R>& space) {
                   const Wave<R> y = space.data();
                   load<W>(from, first, count, n / 2 + 1, y);
                   if (forward) conjugate(y, (n / 2 + 1) * W);
                   if (plan->halved()) {
                     plan->template ravel<W>(y);
                   } else {
                     mirror<W>(y, n);
                   }
                   store<W>(inverse<W>(plan->inner(), y, space.work()), stored, to, first, count,
                            static_cast<R>(scale));
                 });
  });
  return out;
}

}  // namespace wick::fft

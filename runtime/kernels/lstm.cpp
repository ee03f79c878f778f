#include "runtime/kernels/lstm.h"

#include <cstring>

#include "codegen/scalar/lanes.h"
#include "codegen/scalar/plain_builder.h"
#include "core/error.h"
#include "core/parallel.h"
#include "runtime/kernels/device_layers.h"

namespace wick {

namespace {

template <class B, class T>
typename B::V load(const T* from) {
  typename B::V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class V, class T>
void store(T* to, const V& v) {
  std::memcpy(to, &v, sizeof v);
}

// From here on pointers are to element (row, column), and of gates to that of the first gate.
template <class T>
struct Step {
  const T *gates, *hidden, *c;
  T *activated, *next_c, *next_h;

  template <class B>
  void run(int64_t h) const {
    const B b{};
    const auto gate = [&](int64_t k) {
      return b.add(load<B>(gates + k * h), load<B>(hidden + k * h));
    };
    const auto in = b.sigmoid(gate(0)), forget = b.sigmoid(gate(1)), cell = b.tanh(gate(2));
    const auto out = b.sigmoid(gate(3));
    const auto next = b.add(b.mul(forget, load<B>(c)), b.mul(in, cell));
    store(activated, in);
    store(activated + h, forget);
    store(activated + 2 * h, cell);
    store(activated + 3 * h, out);
    store(next_c, next);
    store(next_h, b.mul(out, b.tanh(next)));
  }
  Step at(int64_t row, int64_t column, int64_t h) const {
    const int64_t one = row * h + column, four = 4 * row * h + column;
    return {gates + four, hidden + four, c + one, activated + four, next_c + one, next_h + one};
  }
};

template <class T>
struct Gradient {
  const T *grad_h, *more_grad_h, *grad_next_c, *activated, *c, *next_c;
  T *grad_gates, *grad_c;

  template <class B>
  void run(int64_t h) const {
    const B b{};
    const auto one = b.constant(1);
    // d * y * (1 - y) and d * (1 - y * y)
    const auto ofSigmoid = [&](auto d, auto y) { return b.mul(b.mul(d, y), b.sub(one, y)); };
    const auto ofTanh = [&](auto d, auto y) { return b.mul(d, b.sub(one, b.mul(y, y))); };
    auto dh = load<B>(grad_h);
    if (more_grad_h) dh = b.add(dh, load<B>(more_grad_h));
    const auto in = load<B>(activated), forget = load<B>(activated + h);
    const auto cell = load<B>(activated + 2 * h), out = load<B>(activated + 3 * h);
    const auto shown = b.tanh(load<B>(next_c));
    const auto dc = b.add(load<B>(grad_next_c), ofTanh(b.mul(dh, out), shown));
    store(grad_gates, ofSigmoid(b.mul(dc, cell), in));
    store(grad_gates + h, ofSigmoid(b.mul(dc, load<B>(c)), forget));
    store(grad_gates + 2 * h, ofTanh(b.mul(dc, in), cell));
    store(grad_gates + 3 * h, ofSigmoid(b.mul(dh, shown), out));
    store(grad_c, b.mul(dc, forget));
  }
  Gradient at(int64_t row, int64_t column, int64_t h) const {
    const int64_t one = row * h + column, four = 4 * row * h + column;
    return {grad_h + one,      more_grad_h ? more_grad_h + one : nullptr,
            grad_next_c + one, activated + four,
            c + one,           next_c + one,
            grad_gates + four, grad_c + one};
  }
};

#ifdef __AVX2__
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, float>, LaneBuilder, DoubleLaneBuilder>;
#endif

template <class T, class Work>
void runRows(const Work& work, int64_t rows, int64_t h) {
  parallelFor(rows, std::max<int64_t>(1, kGrainSize / (8 * h)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t column = 0;
#ifdef __AVX2__
      constexpr int64_t kLanes = Wide<T>::kLanes;
      for (; column + kLanes <= h; column += kLanes) {
        work.at(row, column, h).template run<Wide<T>>(h);
      }
#endif
      for (; column < h; ++column) work.at(row, column, h).template run<PlainBuilder<T>>(h);
    }
  });
}

template <class T>
Step<T> pointersOf(const LstmStep& s) {
  return {s.gates.data<T>(),     s.hidden.data<T>(), s.c.data<T>(),
          s.activated.data<T>(), s.next_c.data<T>(), s.next_h.data<T>()};
}
template <class T>
Gradient<T> pointersOf(const LstmStepGradient& s) {
  return {s.grad_h.data<T>(),      s.more_grad_h.defined() ? s.more_grad_h.data<T>() : nullptr,
          s.grad_next_c.data<T>(), s.activated.data<T>(),
          s.c.data<T>(),           s.next_c.data<T>(),
          s.grad_gates.data<T>(),  s.grad_c.data<T>()};
}

// `c` is a tensor of one number a cell.
template <class S>
void runOnCpu(const S& step, const Tensor& c) {
  if (c.dtype() == DType::Float) {
    runRows<float>(pointersOf<float>(step), c.size(0), c.size(1));
  } else {
    WICK_CHECK(c.dtype() == DType::Double, "lstm: expected float32 or float64, got {}",
               toString(c.dtype()));
    runRows<double>(pointersOf<double>(step), c.size(0), c.size(1));
  }
}

}  // namespace

void lstmStep(const LstmStep& step) {
  if (step.c.numel() == 0) return;
  if (!step.c.device().isCpu()) return deviceLayers("lstm", step.c.device()).lstmStep(step);
  runOnCpu(step, step.c);
}

void lstmStepGradient(const LstmStepGradient& step) {
  if (step.c.numel() == 0) return;
  if (!step.c.device().isCpu()) return deviceLayers("lstm", step.c.device()).lstmStepGradient(step);
  runOnCpu(step, step.c);
}

}  // namespace wick

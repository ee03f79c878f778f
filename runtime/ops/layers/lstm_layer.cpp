#include "runtime/ops/layers/lstm_layer.h"

#include "core/error.h"
#include "runtime/kernels/lstm.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"

namespace wick::recurrent {

namespace {

constexpr const char* kOp = "lstm_layer";

void checkSizes(const char* what, const Tensor& t, IntSpan sizes, const Tensor& like) {
  WICK_CHECK(t.dtype() == like.dtype() && t.device() == like.device() &&
                 std::ranges::equal(t.sizes(), sizes),
             "{}: expected {} of sizes {} like {}, got {}", kOp, what, formatInts(sizes),
             like.describe(), t.describe());
}

void checkLayer(const Tensor& gates, const Tensor& h, const Tensor& c, const Tensor& w_hh,
                const Tensor& b_hh) {
  WICK_CHECK(gates.dim() == 3 && isFloating(gates.dtype()) && h.dim() == 2,
             "{}: expected gates of three dimensions and states of two, got {} and {}", kOp,
             gates.describe(), h.describe());
  const int64_t n = gates.size(1), size = h.size(1);
  WICK_CHECK(size <= gates.size(2) && gates.size(2) == 4 * size,
             "{}: expected four gates for each of {} states, got {}", kOp, size, gates.describe());
  checkSizes("h", h, DimVector{n, size}, gates);
  checkSizes("c", c, DimVector{n, size}, gates);
  checkSizes("w_hh", w_hh, DimVector{4 * size, size}, gates);
  if (b_hh.defined()) checkSizes("b_hh", b_hh, DimVector{4 * size}, gates);
}

// What steps compute in: kernels of the CPU have no reduced floats.
DType computeType(const Tensor& t) {
  return t.device().isCpu() && isReducedFloat(t.dtype()) ? DType::Float : t.dtype();
}
Tensor dense(const Tensor& t, DType dtype) {
  return t.defined() ? t.to(dtype).contiguous() : t;
}

int64_t stepAt(int64_t i, int64_t time, bool reverse) {
  return reverse ? time - 1 - i : i;
}

using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Five lstmLayer(const Tensor& gates, const Tensor& h, const Tensor& c, const Tensor& w_hh,
               const Tensor& b_hh, bool reverse) {
  const LstmLayer layer = runLstmLayer(gates, h, c, w_hh, b_hh, reverse, true);
  return {layer.output, layer.h, layer.c, layer.cells, layer.activated};
}

// The gradients for gates, h, c, w_hh and b_hh. Steps go backward; weights get theirs in one product
// over all steps.
Five lstmLayerGradient(const Tensor& grad_out, const Tensor& grad_h, const Tensor& grad_c,
                       const Tensor& out, const Tensor& cells, const Tensor& activated,
                       const Tensor& gates, const Tensor& h, const Tensor& c, const Tensor& w_hh,
                       const Tensor& b_hh, bool reverse) {
  checkLayer(gates, h, c, w_hh, b_hh);
  const int64_t time = gates.size(0), n = gates.size(1), size = h.size(1);
  const DimVector states{time, n, size};
  for (const Tensor* t : {&grad_out, &out, &cells}) checkSizes("a result", *t, states, gates);
  checkSizes("activated gates", activated, gates.sizes(), gates);
  for (const Tensor* t : {&grad_h, &grad_c}) checkSizes("a gradient", *t, h.sizes(), gates);
  const DType wide = computeType(gates);
  const Tensor by_out = dense(grad_out, wide), made = dense(out, wide), all_c = dense(cells, wide),
               acts = dense(activated, wide), w = dense(w_hh, wide), first_c = dense(c, wide);
  const Tensor by_gates = Tensor::empty(gates.sizes(), wide, gates.device());
  const Tensor dc = dense(grad_c, wide).clone();
  Tensor dh = dense(grad_h, wide);
  for (int64_t i = time; i-- > 0;) {
    const int64_t t = stepAt(i, time, reverse);
    const Tensor before = i > 0 ? all_c.select(0, stepAt(i - 1, time, reverse)) : first_c;
    const Tensor of_step = by_gates.select(0, t);
    lstmStepGradient(
        {by_out.select(0, t), dh, dc, acts.select(0, t), before, all_c.select(0, t), of_step, dc});
    dh = linear(of_step, w.transpose(0, 1), {});
  }
  // The states that steps began with: those behind the step before.
  const Tensor begins = dense(h, wide).unsqueeze(0);
  const Tensor before = time == 0 ? made
                        : reverse ? ops::cat(std::vector{made.narrow(0, 1, time - 1), begins}, 0)
                                  : ops::cat(std::vector{begins, made.narrow(0, 0, time - 1)}, 0);
  const Tensor rows = by_gates.reshape(DimVector{time * n, 4 * size});
  const Tensor by_w =
      linear(rows.transpose(0, 1), before.reshape(DimVector{time * n, size}).transpose(0, 1), {});
  const auto narrowed = [&](const Tensor& t) { return t.to(gates.dtype()); };
  const Tensor by_b = ops::sumDims(rows, DimVector{0}, false);
  return {narrowed(by_gates), narrowed(dh.rawData() == grad_h.rawData() ? dh.clone() : dh),
          narrowed(dc), narrowed(by_w), narrowed(by_b)};
}

#define WICK_INPUTS "Tensor gates, Tensor h, Tensor c, Tensor w_hh, Tensor? b_hh, bool reverse"
#define WICK_FIVE "(Tensor, Tensor, Tensor, Tensor, Tensor)"

constexpr OperatorRecord kLstmLayerRecords[] = {
    // output, h, c, cells, activated (LstmLayer)
    {"wick::lstm_layer(" WICK_INPUTS ") -> " WICK_FIVE, WICK_KERNEL(lstmLayer), kNeutral},
    {"wick::lstm_layer_gradient(Tensor grad_out, Tensor grad_h, Tensor grad_c, Tensor out, Tensor "
     "cells, Tensor activated, " WICK_INPUTS ") -> " WICK_FIVE,
     WICK_KERNEL(lstmLayerGradient), kNeutral},
};
const RegisterOperators kLstmLayerRegistered(kLstmLayerRecords);

}  // namespace

LstmLayer runLstmLayer(const Tensor& gates, const Tensor& h, const Tensor& c, const Tensor& w_hh,
                       const Tensor& b_hh, bool reverse, bool keeps) {
  checkLayer(gates, h, c, w_hh, b_hh);
  const int64_t time = gates.size(0), n = gates.size(1), size = h.size(1);
  const DType wide = computeType(gates);
  const Tensor x = dense(gates, wide), w = dense(w_hh, wide), b = dense(b_hh, wide);
  const auto made = [&](DimVector sizes) { return Tensor::empty(sizes, wide, gates.device()); };
  // Without a gradient a step leaves its numbers where the one before it did.
  const int64_t kept = keeps ? time : 1;
  const Tensor output = made({time, n, size}), cells = made({kept, n, size}),
               activated = made({kept, n, 4 * size});
  Tensor hidden_state = dense(h, wide), cell = dense(c, wide);
  for (int64_t i = 0; i < time; ++i) {
    const int64_t t = stepAt(i, time, reverse), place = keeps ? t : 0;
    const Tensor next_h = output.select(0, t), next_c = cells.select(0, place);
    lstmStep({x.select(0, t), linear(hidden_state, w, b), cell, activated.select(0, place), next_c,
              next_h});
    hidden_state = next_h;
    cell = next_c;
  }
  const auto own = [&](const Tensor& t) { return t.to(gates.dtype()).clone(); };
  const auto narrowed = [&](const Tensor& t) { return t.to(gates.dtype()); };
  LstmLayer layer{narrowed(output), own(hidden_state), own(cell), {}, {}};
  if (keeps) {
    layer.cells = narrowed(cells);
    layer.activated = narrowed(activated);
  }
  return layer;
}

}  // namespace wick::recurrent

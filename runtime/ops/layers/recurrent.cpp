// Recurrent networks: cells, layers over padded and packed sequences.
#include "runtime/ops/layers/recurrent.h"

#include "core/counted_vector.h"
#include "core/device_backend.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/lstm_layer.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {

using recurrent::CellKind;
using recurrent::Options;
using recurrent::Result;
using recurrent::State;
using recurrent::Weights;

namespace {

Tensor chunkOf(const Tensor& t, int64_t parts, int64_t i) {
  int64_t n = t.size(-1) / parts;
  return t.narrow(t.dim() - 1, i * n, n);
}

// The input's part of the gates, and the state's.
Tensor gatesOfInput(const Tensor& input, const Weights& w) {
  return w.of_input ? w.of_input(input) : linear(input, w.w_ih, w.b_ih);
}
Tensor gatesOfState(const Tensor& h, const Weights& w) {
  return w.of_state ? w.of_state(h) : linear(h, w.w_hh, w.b_hh);
}

// One step; `gates` is the input's part.
State step(CellKind kind, const Tensor& gates, const State& s, const Weights& w) {
  Tensor hidden = gatesOfState(s.h, w);
  switch (kind) {
    case CellKind::Lstm: {
      Tensor all = ops::add(gates, hidden);
      Tensor in = ops::sigmoid(chunkOf(all, 4, 0)), forget = ops::sigmoid(chunkOf(all, 4, 1));
      Tensor cell = ops::tanh(chunkOf(all, 4, 2)), out = ops::sigmoid(chunkOf(all, 4, 3));
      Tensor c = ops::add(ops::mul(forget, s.c), ops::mul(in, cell));
      Tensor h = ops::mul(out, ops::tanh(c));
      return {w.w_hr.defined() ? linear(h, w.w_hr, {}) : h, c};
    }
    case CellKind::Gru: {
      Tensor reset = ops::sigmoid(ops::add(chunkOf(gates, 3, 0), chunkOf(hidden, 3, 0)));
      Tensor update = ops::sigmoid(ops::add(chunkOf(gates, 3, 1), chunkOf(hidden, 3, 1)));
      Tensor fresh =
          ops::tanh(ops::add(chunkOf(gates, 3, 2), ops::mul(reset, chunkOf(hidden, 3, 2))));
      return {ops::add(fresh, ops::mul(update, ops::sub(s.h, fresh))), {}};
    }
    case CellKind::Tanh:
      return {ops::tanh(ops::add(gates, hidden)), {}};
    case CellKind::Relu:
      return {ops::relu(ops::add(gates, hidden)), {}};
  }
  return s;
}

// Time steps [T, N, features] with the number of sequences that are still running in each; empty
// when all run to the end.
struct Sequence {
  Tensor data;        // [T, N, F], or packed [sum, F]
  DimVector batches;  // of packed data
  bool packed() const { return !batches.empty(); }
};

// Runs a layer in one direction over padded steps.
Tensor runPadded(CellKind kind, const Tensor& input, State& s, const Weights& w, bool reverse) {
  int64_t time = input.size(0);
  Tensor gates = gatesOfInput(input, w);
  const bool plain = kind == CellKind::Lstm && !w.of_state && !w.w_hr.defined();
  if (plain && (!gates.device().isCpu() || !isReducedFloat(gates.dtype()))) {
    recurrent::LstmLayer layer =
        recurrent::runLstmLayer(gates, s.h, s.c, w.w_hh, w.b_hh, reverse, false);
    s = {layer.h, layer.c};
    return layer.output;
  }
  std::vector<Tensor> outputs(static_cast<size_t>(time));
  for (int64_t i = 0; i < time; ++i) {
    int64_t t = reverse ? time - 1 - i : i;
    s = step(kind, gates.select(0, t), s, w);
    outputs[static_cast<size_t>(t)] = s.h;
  }
  if (time == 0) {
    return Tensor::empty(DimVector{0, input.size(1), s.h.size(-1)}, input.dtype());
  }
  return ops::stack(outputs, 0);
}

State firstRows(const State& s, int64_t n) {
  return {s.h.narrow(0, 0, n), s.c.defined() ? s.c.narrow(0, 0, n) : s.c};
}

State joinRows(const State& a, const State& b) {
  auto join = [](const Tensor& x, const Tensor& y) {
    return x.defined() ? ops::cat(std::vector<Tensor>{x, y}, 0) : x;
  };
  return {join(a.h, b.h), join(a.c, b.c)};
}

State restRows(const State& s, int64_t from) {
  int64_t n = s.h.size(0);
  return {s.h.narrow(0, from, n - from), s.c.defined() ? s.c.narrow(0, from, n - from) : s.c};
}

// Packed steps: sequences are sorted by length, so the running ones are the first rows.
Tensor runPacked(CellKind kind, const Sequence& q, State& s, const Weights& w, bool reverse) {
  Tensor gates = gatesOfInput(q.data, w);
  size_t time = q.batches.size();
  CountedVector<int64_t> starts(time);
  int64_t total = 0;
  for (size_t t = 0; t < time; ++t) {
    starts[t] = total;
    total += q.batches[t];
  }
  std::vector<Tensor> outputs(time);
  State running = reverse ? firstRows(s, q.batches.back()) : s, done;
  for (size_t i = 0; i < time; ++i) {
    size_t t = reverse ? time - 1 - i : i;
    int64_t n = q.batches[t], have = running.h.size(0);
    if (n > have) {
      running = joinRows(running, restRows(firstRows(s, n), have));
    } else if (n < have) {
      State ended = restRows(running, n);
      done = done.h.defined() ? joinRows(ended, done) : ended;
      running = firstRows(running, n);
    }
    running = step(kind, gates.narrow(0, starts[t], n), running, w);
    outputs[t] = running.h;
  }
  s = done.h.defined() ? joinRows(running, done) : running;
  return ops::cat(outputs, 0);
}

// Splits the flat list of parameters: per layer and direction w_ih, w_hh, b_ih, b_hh and w_hr.
std::vector<Weights> gather(const char* op, const std::vector<Tensor>& params, bool biases,
                            bool projection, int64_t count) {
  size_t each = (biases ? 4 : 2) + (projection ? 1 : 0);
  WICK_CHECK(params.size() == each * static_cast<size_t>(count),
             "{}: expected {} parameter tensors, got {}", op, each * static_cast<size_t>(count),
             params.size());
  std::vector<Weights> out;
  for (size_t i = 0; i < params.size(); i += each) {
    Weights w;
    w.w_ih = params[i];
    w.w_hh = params[i + 1];
    if (biases) {
      w.b_ih = params[i + 2];
      w.b_hh = params[i + 3];
    }
    if (projection) w.w_hr = params[i + each - 1];
    out.push_back(w);
  }
  return out;
}

using WeightsFor = std::function<std::vector<Weights>(int64_t count, bool projection)>;

Result run(const char* op, CellKind kind, Sequence q, const std::vector<Tensor>& hx,
           const WeightsFor& weights_for, const Options& o) {
  bool lstm = kind == CellKind::Lstm;
  WICK_CHECK(hx.size() == (lstm ? 2u : 1u), "{}: expected {} hidden states, got {}", op,
             lstm ? 2 : 1, hx.size());
  int64_t directions = o.bidirectional ? 2 : 1;
  WICK_CHECK(o.layers > 0 && o.layers < (1 << 20), "{}: expected a positive number of layers", op);
  int64_t count = o.layers * directions;
  for (const Tensor& h : hx) {
    WICK_CHECK(h.dim() == 3 && h.size(0) == count,
               "{}: Expected hidden size ({}, batch, features), got {}", op, count,
               formatInts(h.sizes()));
  }
  bool projection = lstm && hx[0].size(2) != hx[1].size(2);
  const std::vector<Weights> weights = weights_for(count, projection);
  WICK_CHECK(weights.size() == static_cast<size_t>(count),
             "{}: expected the parameters of {} layers, got {}", op, count, weights.size());
  int64_t batch = q.packed() ? q.batches[0] : q.data.size(1);
  WICK_CHECK(hx[0].size(1) == batch, "{}: Expected hidden batch size {}, got {}", op, batch,
             hx[0].size(1));
  std::vector<Tensor> hs, cs;
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      int64_t i = layer * directions + d;
      State s{hx[0].select(0, i), lstm ? hx[1].select(0, i) : Tensor()};
      const Weights& w = weights[static_cast<size_t>(i)];
      outputs.push_back(q.packed() ? runPacked(kind, q, s, w, d == 1)
                                   : runPadded(kind, q.data, s, w, d == 1));
      hs.push_back(s.h);
      if (lstm) cs.push_back(s.c);
    }
    q.data = directions == 1 ? outputs[0] : ops::cat(outputs, q.data.dim() - 1);
    if (o.train && o.dropout > 0 && layer + 1 < o.layers) {
      q.data = ops::dropout(q.data, o.dropout, true);
    }
  }
  return {q.data, ops::stack(hs, 0), lstm ? ops::stack(cs, 0) : Tensor()};
}

Result onInput(const char* op, CellKind kind, const Tensor& input, const std::vector<Tensor>& hx,
               const WeightsFor& weights, const Options& o, bool batch_first) {
  WICK_CHECK(input.dim() == 3, "{}: input must have 3 dimensions, got {}", op, input.dim());
  Tensor data = batch_first ? input.transpose(0, 1) : input;
  Result r = run(op, kind, {data, {}}, hx, weights, o);
  if (batch_first) r.output = r.output.transpose(0, 1);
  return r;
}

Result onData(const char* op, CellKind kind, const Tensor& data, const Tensor& batch_sizes,
              const std::vector<Tensor>& hx, const WeightsFor& weights, const Options& o) {
  WICK_CHECK(batch_sizes.dim() == 1 && batch_sizes.dtype() == DType::Long &&
                 batch_sizes.numel() > 0 && data.dim() == 2,
             "{}: expected packed data and its batch sizes, got {} and {}", op, data.describe(),
             batch_sizes.describe());
  // They may be anywhere; the loop over them is here.
  const Tensor sizes = moveTo(batch_sizes, Device()).contiguous();
  DimVector batches(sizes.data<int64_t>(), sizes.data<int64_t>() + sizes.numel());
  int64_t total = 0;
  for (size_t t = 0; t < batches.size(); ++t) {
    WICK_CHECK(
        batches[t] > 0 && (t == 0 || batches[t] <= batches[t - 1]) && batches[t] <= data.size(0),
        "{}: batch sizes must be positive and must not grow: {}", op, formatInts(batches));
    total += batches[t];
  }
  WICK_CHECK(total == data.size(0), "{}: batch sizes add up to {}, the data has {} rows", op, total,
             data.size(0));
  return run(op, kind, {data, batches}, hx, weights, o);
}

WeightsFor weightsOf(const char* op, const std::vector<Tensor>& params, const Options& o) {
  return [=, &params](int64_t count, bool projection) {
    return gather(op, params, o.biases, projection, count);
  };
}

Result runInput(const char* op, CellKind kind, const Tensor& input, const std::vector<Tensor>& hx,
                const std::vector<Tensor>& params, const Options& o, bool batch_first) {
  return onInput(op, kind, input, hx, weightsOf(op, params, o), o, batch_first);
}
Result runData(const char* op, CellKind kind, const Tensor& data, const Tensor& batch_sizes,
               const std::vector<Tensor>& hx, const std::vector<Tensor>& params, const Options& o) {
  return onData(op, kind, data, batch_sizes, hx, weightsOf(op, params, o), o);
}

Triple lstmInput(const Tensor& input, const std::vector<Tensor>& hx,
                 const std::vector<Tensor>& params, bool biases, int64_t layers, double dropout,
                 bool train, bool bidirectional, bool batch_first) {
  Result r = runInput("lstm", CellKind::Lstm, input, hx, params,
                      {biases, layers, dropout, train, bidirectional}, batch_first);
  return {r.output, r.h, r.c};
}
Triple lstmData(const Tensor& data, const Tensor& batch_sizes, const std::vector<Tensor>& hx,
                const std::vector<Tensor>& params, bool biases, int64_t layers, double dropout,
                bool train, bool bidirectional) {
  Result r = runData("lstm", CellKind::Lstm, data, batch_sizes, hx, params,
                     {biases, layers, dropout, train, bidirectional});
  return {r.output, r.h, r.c};
}

constexpr const char* nameOf(CellKind kind) {
  return kind == CellKind::Gru ? "gru" : kind == CellKind::Tanh ? "rnn_tanh" : "rnn_relu";
}

template <CellKind K>
Pair rnnInput(const Tensor& input, const Tensor& hx, const std::vector<Tensor>& params, bool biases,
              int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  Result r = runInput(nameOf(K), K, input, {hx}, params,
                      {biases, layers, dropout, train, bidirectional}, batch_first);
  return {r.output, r.h};
}
template <CellKind K>
Pair rnnData(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx,
             const std::vector<Tensor>& params, bool biases, int64_t layers, double dropout,
             bool train, bool bidirectional) {
  Result r = runData(nameOf(K), K, data, batch_sizes, {hx}, params,
                     {biases, layers, dropout, train, bidirectional});
  return {r.output, r.h};
}

template <CellKind K>
Tensor cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih, const Tensor& w_hh,
            const Tensor& b_ih, const Tensor& b_hh) {
  return step(K, linear(input, w_ih, b_ih), {hx, {}}, {w_ih, w_hh, b_ih, b_hh, {}, {}, {}}).h;
}
Pair lstmCell(const Tensor& input, const std::vector<Tensor>& hx, const Tensor& w_ih,
              const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  WICK_CHECK(hx.size() == 2, "lstm_cell: lstm_cell expects two hidden states");
  State s = step(CellKind::Lstm, linear(input, w_ih, b_ih), {hx[0], hx[1]},
                 {w_ih, w_hh, b_ih, b_hh, {}, {}, {}});
  return {s.h, s.c};
}

#define WICK_RNN_REST                                                                  \
  "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool " \
  "bidirectional"
#define WICK_CELL_REST "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None) -> "
#define WICK_RNN_INPUT \
  "(Tensor input, Tensor hx, " WICK_RNN_REST ", bool batch_first) -> (Tensor, Tensor)"
#define WICK_RNN_DATA \
  "(Tensor data, Tensor batch_sizes, Tensor hx, " WICK_RNN_REST ") -> (Tensor, Tensor)"

constexpr OperatorRecord kRecurrentRecords[] = {
    {"aten::lstm.input(Tensor input, Tensor[] hx, " WICK_RNN_REST
     ", bool batch_first) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(lstmInput), kNondeterministic | kNeutral | kEagerCastUnknown,
     ops::shapes::recurrent},
    {"aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, " WICK_RNN_REST
     ") -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(lstmData), kNondeterministic | kNeutralMixed | kEagerCastUnknown},
    {"aten::gru.input" WICK_RNN_INPUT, WICK_KERNEL(rnnInput<CellKind::Gru>),
     kNondeterministic | kNeutral | kEagerCastUnknown, ops::shapes::recurrent},
    {"aten::gru.data" WICK_RNN_DATA, WICK_KERNEL(rnnData<CellKind::Gru>),
     kNondeterministic | kNeutralMixed | kEagerCastUnknown},
    {"aten::rnn_tanh.input" WICK_RNN_INPUT, WICK_KERNEL(rnnInput<CellKind::Tanh>),
     kNondeterministic | kNeutral | kEagerCastUnknown, ops::shapes::recurrent},
    {"aten::rnn_tanh.data" WICK_RNN_DATA, WICK_KERNEL(rnnData<CellKind::Tanh>),
     kNondeterministic | kNeutralMixed | kEagerCastUnknown},
    {"aten::rnn_relu.input" WICK_RNN_INPUT, WICK_KERNEL(rnnInput<CellKind::Relu>),
     kNondeterministic | kNeutral | kEagerCastUnknown, ops::shapes::recurrent},
    {"aten::rnn_relu.data" WICK_RNN_DATA, WICK_KERNEL(rnnData<CellKind::Relu>),
     kNondeterministic | kNeutralMixed | kEagerCastUnknown},
    {"aten::lstm_cell(Tensor input, Tensor[] hx, " WICK_CELL_REST "(Tensor, Tensor)",
     WICK_KERNEL(lstmCell), kNeutral | kCastReduced | kEagerCastUnknown},
    {"aten::gru_cell(Tensor input, Tensor hx, " WICK_CELL_REST "Tensor",
     WICK_KERNEL(cell<CellKind::Gru>), kNeutral | kCastReduced | kEagerCastUnknown},
    {"aten::rnn_tanh_cell(Tensor input, Tensor hx, " WICK_CELL_REST "Tensor",
     WICK_KERNEL(cell<CellKind::Tanh>), kNeutral | kCastReduced | kEagerCastUnknown},
    {"aten::rnn_relu_cell(Tensor input, Tensor hx, " WICK_CELL_REST "Tensor",
     WICK_KERNEL(cell<CellKind::Relu>), kNeutral | kCastReduced | kEagerCastUnknown},
};

const RegisterOperators kRecurrentRegistered(kRecurrentRecords);

}  // namespace

namespace recurrent {

State runCell(CellKind kind, const Tensor& input, const State& s, const Weights& w) {
  return step(kind, gatesOfInput(input, w), s, w);
}

Result runLayers(const char* op, CellKind kind, const Tensor& input, const Tensor& batch_sizes,
                 const std::vector<Tensor>& hx, const std::vector<Weights>& weights,
                 const Options& o, bool batch_first) {
  const WeightsFor all = [&](int64_t, bool) { return weights; };
  return batch_sizes.defined() ? onData(op, kind, input, batch_sizes, hx, all, o)
                               : onInput(op, kind, input, hx, all, o, batch_first);
}

}  // namespace recurrent
}  // namespace wick

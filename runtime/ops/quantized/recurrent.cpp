// Recurrent layers over packed weights: quantized dynamically, or of float16.
#include "runtime/ops/layers/recurrent.h"

#include "ir/operator.h"
#include "runtime/ops/quantized/packed_params.h"
#include "runtime/ops/quantized/record_flags.h"

namespace wick::ops::quantized {

namespace {

using recurrent::CellKind;
using recurrent::Result;
using recurrent::State;
using recurrent::Weights;

Weights weightsOf(const char* op, const IValue& input_layer, const IValue& hidden_layer,
                  bool reduce_range) {
  const auto through = [op, reduce_range](const IValue& layer) {
    linearOf(op, layer);
    return [op, reduce_range, layer](const Tensor& x) {
      return linearDynamic(op, x, linearOf(op, layer), reduce_range, false);
    };
  };
  Weights weights;
  weights.of_input = through(input_layer);
  weights.of_state = through(hidden_layer);
  return weights;
}

std::vector<Weights> weightsOf(const char* op, const IValue& params) {
  std::vector<Weights> result;
  for (const IValue& p : params.elements()) {
    const CellParams& cell = cellOf(op, p);
    result.push_back(weightsOf(op, cell.input_layer, cell.hidden_layer, cell.reduce_range));
  }
  return result;
}

// ---- layers ----

Triple lstmInput(const Tensor& input, const std::vector<Tensor>& hx, const IValue& params,
                 bool biases, int64_t layers, double dropout, bool train, bool bidirectional,
                 bool batch_first, const IValue&, bool) {
  const char* op = "quantized_lstm";
  const Result r =
      recurrent::runLayers(op, CellKind::Lstm, input, {}, hx, weightsOf(op, params),
                           {biases, layers, dropout, train, bidirectional}, batch_first);
  return {r.output, r.h, r.c};
}
Triple lstmData(const Tensor& data, const Tensor& batch_sizes, const std::vector<Tensor>& hx,
                const IValue& params, bool biases, int64_t layers, double dropout, bool train,
                bool bidirectional, const IValue&, bool) {
  const char* op = "quantized_lstm";
  const Result r =
      recurrent::runLayers(op, CellKind::Lstm, data, batch_sizes, hx, weightsOf(op, params),
                           {biases, layers, dropout, train, bidirectional}, false);
  return {r.output, r.h, r.c};
}
Pair gruInput(const Tensor& input, const Tensor& hx, const IValue& params, bool biases,
              int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  const char* op = "quantized_gru";
  const Result r =
      recurrent::runLayers(op, CellKind::Gru, input, {}, {hx}, weightsOf(op, params),
                           {biases, layers, dropout, train, bidirectional}, batch_first);
  return {r.output, r.h};
}
Pair gruData(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, const IValue& params,
             bool biases, int64_t layers, double dropout, bool train, bool bidirectional) {
  const char* op = "quantized_gru";
  const Result r =
      recurrent::runLayers(op, CellKind::Gru, data, batch_sizes, {hx}, weightsOf(op, params),
                           {biases, layers, dropout, train, bidirectional}, false);
  return {r.output, r.h};
}

// ---- cells; PyTorch's use seven bits for what they quantize ----

template <CellKind kKind>
Tensor cell(const Tensor& input, const Tensor& hx, const IValue& w_ih, const IValue& w_hh,
            const Tensor&, const Tensor&) {
  const char* op = "quantized_cell_dynamic";
  return recurrent::runCell(kKind, input, {hx, {}}, weightsOf(op, w_ih, w_hh, true)).h;
}
Pair lstmCell(const Tensor& input, const std::vector<Tensor>& hx, const IValue& w_ih,
              const IValue& w_hh, const Tensor&, const Tensor&) {
  const char* op = "quantized_lstm_cell_dynamic";
  WICK_CHECK(hx.size() == 2, "{}: lstm_cell expects two hidden states", op);
  const State s =
      recurrent::runCell(CellKind::Lstm, input, {hx[0], hx[1]}, weightsOf(op, w_ih, w_hh, true));
  return {s.h, s.c};
}

// ---- parameters ----

IValue makeDynamic(const IValue& w_ih, const IValue& w_hh, const Tensor& bias_ih,
                   const Tensor& bias_hh, bool reduce_range) {
  const char* op = "quantized::make_quantized_cell_params_dynamic";
  linearOf(op, w_ih);
  linearOf(op, w_hh);
  auto cell = makeRef<CellParams>();
  cell->reduce_range = reduce_range;
  cell->input_layer = w_ih;
  cell->hidden_layer = w_hh;
  cell->input_bias = bias_ih;
  cell->hidden_bias = bias_hh;
  return makeNative(kCellClass, cell);
}
IValue makeHalf(const IValue& w_ih, const IValue& w_hh) {
  const char* op = "quantized::make_quantized_cell_params_fp16";
  WICK_CHECK(linearOf(op, w_ih).isHalf() && linearOf(op, w_hh).isHalf(),
             "{}: expected layers of float16 weights", op);
  auto cell = makeRef<CellParams>();
  cell->kind = CellParams::Kind::Half;
  cell->input_layer = w_ih;
  cell->hidden_layer = w_hh;
  return makeNative(kCellClass, cell);
}

#define WICK_LINEAR "__torch__.torch.classes.quantized.LinearPackedParamsBase"
#define WICK_CELL "__torch__.torch.classes.rnn.CellParamsBase"
#define WICK_REST \
  WICK_CELL       \
  "[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
#define WICK_CELL_ARGUMENTS WICK_LINEAR " w_ih, " WICK_LINEAR " w_hh, Tensor b_ih, Tensor b_hh) -> "

const OperatorRecord kRecurrentRecords[] = {
    {"aten::quantized_lstm.input(Tensor input, Tensor[] hx, " WICK_REST
     ", bool batch_first, *, ScalarType? dtype=None, bool use_dynamic=False) -> (Tensor, Tensor, "
     "Tensor)",
     WICK_CPU_KERNEL(lstmInput), kNotDifferentiable | kNondeterministic},
    {"aten::quantized_lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, " WICK_REST
     ", *, ScalarType? dtype=None, bool use_dynamic=False) -> (Tensor, Tensor, Tensor)",
     WICK_CPU_KERNEL(lstmData), kNotDifferentiable | kNondeterministic},
    {"aten::quantized_gru.input(Tensor input, Tensor hx, " WICK_REST
     ", bool batch_first) -> (Tensor, Tensor)",
     WICK_CPU_KERNEL(gruInput), kNotDifferentiable | kNondeterministic},
    {"aten::quantized_gru.data(Tensor data, Tensor batch_sizes, Tensor hx, " WICK_REST
     ") -> (Tensor, Tensor)",
     WICK_CPU_KERNEL(gruData), kNotDifferentiable | kNondeterministic},
    {"quantized::quantized_lstm_cell_dynamic(Tensor input, Tensor[] hx, " WICK_LINEAR
     " w_ih, " WICK_LINEAR " w_hh, Tensor bias_ih, Tensor bias_hh) -> (Tensor, Tensor)",
     WICK_CPU_KERNEL(lstmCell), kPlain},
    {"quantized::quantized_gru_cell_dynamic(Tensor input, Tensor hx, " WICK_CELL_ARGUMENTS "Tensor",
     WICK_CPU_KERNEL(cell<CellKind::Gru>), kPlain},
    {"quantized::quantized_rnn_relu_cell_dynamic(Tensor input, Tensor hx, " WICK_CELL_ARGUMENTS
     "Tensor",
     WICK_CPU_KERNEL(cell<CellKind::Relu>), kPlain},
    {"quantized::quantized_rnn_tanh_cell_dynamic(Tensor input, Tensor hx, " WICK_CELL_ARGUMENTS
     "Tensor",
     WICK_CPU_KERNEL(cell<CellKind::Tanh>), kPlain},
    {"quantized::make_quantized_cell_params_dynamic(" WICK_LINEAR " w_ih, " WICK_LINEAR
     " w_hh, Tensor bias_ih, Tensor bias_hh, bool reduce_range=False) -> " WICK_CELL,
     WICK_CPU_KERNEL(makeDynamic), kPlain},
    {"quantized::make_quantized_cell_params_fp16(" WICK_LINEAR " w_ih, " WICK_LINEAR
     " w_hh) -> " WICK_CELL,
     WICK_CPU_KERNEL(makeHalf), kPlain},
};
const RegisterOperators kRecurrentRegistered(kRecurrentRecords);

}  // namespace

}  // namespace wick::ops::quantized

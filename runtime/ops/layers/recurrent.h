// Recurrent layers over any weights: dense ones, and what quantized layers keep instead.
#pragma once

#include <functional>
#include <vector>

#include "core/tensor.h"

namespace wick::recurrent {

enum class CellKind { Lstm, Gru, Tanh, Relu };

// A layer's parameters in one direction.
struct Weights {
  Tensor w_ih, w_hh, b_ih, b_hh;
  Tensor w_hr;  // the projection of an LSTM's output; mostly undefined
  // Instead of the products with w_ih and w_hh and the biases, when they are not empty.
  std::function<Tensor(const Tensor& input)> of_input;
  std::function<Tensor(const Tensor& h)> of_state;
};

struct State {
  Tensor h, c;  // c only for LSTM
};

struct Options {
  bool biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;
};

struct Result {
  Tensor output, h, c;
};

// One step of one cell.
State runCell(CellKind kind, const Tensor& input, const State& s, const Weights& w);

// All layers, with the weights of each layer and direction in turn. `batch_sizes` is undefined, or
// `input` is packed data. RuntimeError that begins with `op` for what does not fit.
Result runLayers(const char* op, CellKind kind, const Tensor& input, const Tensor& batch_sizes,
                 const std::vector<Tensor>& hx, const std::vector<Weights>& weights,
                 const Options& o, bool batch_first);

}  // namespace wick::recurrent

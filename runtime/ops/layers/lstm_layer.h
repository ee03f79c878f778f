// A layer of an LSTM in one direction, over steps of the same number of sequences.
#pragma once

#include "core/tensor.h"

namespace wick::recurrent {

struct LstmLayer {
  Tensor output;  // [T, N, H]
  Tensor h, c;    // behind the last step: [N, H]
  // What the gradient needs, empty when it is not kept: the c behind each step [T, N, H], and the
  // activated gates [T, N, 4H].
  Tensor cells, activated;
};

// `gates` [T, N, 4H] is the input's part; h and c are [N, H], w_hh [4H, H], and b_hh [4H] may be
// undefined. All of one float dtype and device. `reverse` begins with the last step. RuntimeError for
// what does not fit.
LstmLayer runLstmLayer(const Tensor& gates, const Tensor& h, const Tensor& c, const Tensor& w_hh,
                       const Tensor& b_hh, bool reverse, bool keeps);

}  // namespace wick::recurrent

// The pointwise part of one step of an LSTM, and its gradient.
#pragma once

#include "core/tensor.h"

namespace wick {

// All of one float dtype and device, without gaps: [N, H], those of gates [N, 4H], in which stand the
// gates in, forget, cell and out behind each other. Float32 and float64 on the CPU.
struct LstmStep {
  Tensor gates, hidden;  // the input's part and the state's: the gates are their sum
  Tensor c;
  // Written.
  Tensor activated;  // sigmoid of the gates, of the third tanh
  Tensor next_c;     // forget * c + in * cell
  Tensor next_h;     // out * tanh(next_c)
};
void lstmStep(const LstmStep& step);

struct LstmStepGradient {
  // Of next_h, in two parts (the second may be undefined), and of next_c.
  Tensor grad_h, more_grad_h, grad_next_c;
  Tensor activated, c, next_c;  // of the step
  // Written.
  Tensor grad_gates;
  Tensor grad_c;  // may be grad_next_c
};
void lstmStepGradient(const LstmStepGradient& step);

}  // namespace wick

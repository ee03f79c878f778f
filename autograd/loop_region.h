// prim::DifferentiableGraphs that hold a loop (runtime/fusion/form_loop_graphs.h). The body of the
// loop has a plan as regions have (autograd/region_plan.h), which serves all iterations. A call runs
// the plan's forward function once an iteration and keeps what the cut chose; what comes from
// outside is kept once, and what is carried is kept as a result of the iteration before. The tape
// gets one node, whose results are those of all iterations; it runs the plan's backward function from
// the last iteration to the first.
//
//   for i in range(n):           forward(i, h, x, w):        backward(i, h', x, w, g):
//     h = tanh(x[i] + h @ w)       h' = tanh(x[i] + h @ w)     gp = g * (1 - h' * h') …
#pragma once

#include "runtime/fusion/site_derivative.h"

namespace wick::autograd {

bool holdsLoop(const Graph& body);
std::unique_ptr<SiteDerivative> makeLoopDerivative(const wick::Node& graph);

// How many calls went onto the tape as one node in the process, for tests.
uint64_t numLoopsAsGraphs();

}  // namespace wick::autograd

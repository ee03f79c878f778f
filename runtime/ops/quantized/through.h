// Kernels for quantized tensors that go through the dense kernel of the same operator: on the
// integers, or on the real numbers.
#pragma once

#include "ir/operator.h"
#include "runtime/ops/quantized/values.h"

namespace wick::ops::quantized {

// What moves or orders elements: the dense kernel runs on the integers, and what it returns of
// their dtype gets the quantizer of the first quantized argument. A view stays a view. RuntimeError
// for tensors quantized per channel, whose axis might move.
void onIntegers(CallFrame& frame);
// The same for what leaves the axis where it is.
void onIntegersOfAnyScheme(CallFrame& frame);
// What makes views of parts along one dimension (slice, select, split): channels that are cut off
// take their parameters along, and a part with one channel is quantized as a whole.
void onParts(CallFrame& frame);
// squeeze: the axis of a tensor quantized per channel moves with its dimensions.
void onSqueezed(CallFrame& frame);
// The same for lists of tensors: all are brought to the grid of the first.
void onCommonGrid(CallFrame& frame);
// The same for operators that change what their first argument is a view of (squeeze_).
void onIntegersInPlace(CallFrame& frame);

// The dense kernel runs on the real numbers; the result is dense.
void onReals(CallFrame& frame);
// The same, and floating results are rounded to the grid of the first quantized argument.
void onRealsAndBack(CallFrame& frame);
// The same for operators that scale with their argument (averages, maxima, interpolation): it runs
// on multiples of the scale, so that nothing is lost before the result is rounded.
void onStepsAndBack(CallFrame& frame);

}  // namespace wick::ops::quantized

// The text form of stream graphs.
//
//   stream "Net.forward" (x : Tensor) -> (y : Tensor) {
//     filter conv1d "features.0" (x pop 2 peek 9) -> (a : Tensor) {
//       stride = [2]
//       state weight = float32[8, 4, 9]
//     }
//     splitjoin {
//       split duplicate                     or: split roundrobin(1, 1)
//       pipeline { … }
//       identity a
//       join roundrobin(1, 1)
//     }
//     filter add "add" (b, a) -> (c : Tensor)
//     feedback (h) { filter … }           a recurrence, and what it carries
//     network { filter …  filter … }        wired by names alone
//     stateful filter dropout "drop" (c) -> (y : Tensor)
//   }
//
// Behind an input may stand `pop N`, `peek N` and `delay N`, behind an output's type `push N`; N is 1
// where nothing stands, peek is as pop, and delay is 0. `replicas N` in front of `filter` limits the
// copies that a plan may make. What a filter computes is not part of the text.
#pragma once

#include <string>
#include <string_view>

#include "streams/stream_graph.h"

namespace wick::streams {

std::string printStream(const StreamGraph& graph);

// Reads it back; printStream() of the result is the same text. UsageError with line and column for
// what is not of this form, and for graphs that validate() refuses.
StreamGraph parseStream(std::string_view text);

}  // namespace wick::streams

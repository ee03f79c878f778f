// Programs over time, run piece by piece: sound that never ends, with the numbers of one whole run.
//
// One dimension of the input is time. Convolutions and pools along it become filters that keep their
// window: the last elements that the next result still needs. They are given the zeros of their
// padding before the first piece and behind the last. Transposed convolutions keep the elements that
// still add to coming results; running sums, counts and recurrent layers what they hand on
// (streams/time/carried.h). So whatever pieces the input comes in, the results, one behind the other,
// are those of one call with all of it (up to rounding). What adds or joins two branches waits for the
// slower one. Memory depends on the windows and pieces alone.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/function.h"
#include "streams/stream_graph.h"

namespace wick::streams {

// Used by one thread.
class TimeStream {
 public:
  // The place of a node in messages.
  using PlaceOf = std::function<std::string(const Node&)>;

  // `program` is a method prepared for inference, or a function with its calls inlined, whose first
  // argument has time as its dimension `axis` (from the end when negative) and whose result is one
  // tensor. `example` are arguments for one call; the first shows the other dimensions and must be
  // long enough for a result, the others stay the same for all pieces. What does not depend on time
  // is computed here, once. UsageError that names the operator and its place for what cannot be
  // computed piece by piece: it looks at all of the time (a global normalization), asks for its
  // length, turns it around, or decides a branch or a loop by it, or is a call; and for branches whose rates differ.
  TimeStream(const std::shared_ptr<GraphFunction>& program, const std::vector<IValue>& example,
             int64_t axis, const PlaceOf& place_of = nullptr);
  ~TimeStream();

  // The filters; an element is a time step.
  const StreamGraph& graph() const;
  // Which dimension of the result is time.
  int64_t resultAxis() const;

  // Takes the next piece, of any length, and gives the results that are ready; nullopt when no
  // result is. RuntimeError for a tensor of other sizes, or when the stream has ended.
  std::optional<Tensor> push(const Tensor& piece);
  // The input has ended: the rest of the results, nullopt when there is none. RuntimeError when two
  // branches that meet gave different numbers of steps.
  std::optional<Tensor> finish();
  // Begins a new stream.
  void reset();
  // Elements of tensors that are kept between pieces.
  int64_t heldElements() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace wick::streams

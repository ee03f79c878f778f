// Where everything lies: memory of a call is planned ahead of time, so that a call allocates nothing.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "aot/program.h"

namespace wick::aot {

// The contents of constant buffers, each once.
class Weights {
 public:
  // Where the bytes lie, which are the buffer's `data`.
  int64_t place(const Buffer& buffer);
  // In order; each begins at a multiple of 64 bytes.
  const std::vector<Tensor>& pieces() const { return pieces_; }
  int64_t bytes() const { return bytes_; }

 private:
  std::vector<Tensor> pieces_;
  std::unordered_multimap<size_t, std::pair<size_t, int64_t>> known_;  // piece and offset by hash
  int64_t bytes_ = 0;
};

// A buffer in the memory of a call, from the first to the last of the steps that use it.
struct Span {
  uint32_t buffer;
  size_t first, last;
  int64_t bytes, offset = 0;
};
// Finds an offset for each; those that live at the same time lie apart. The bytes that all of them take.
int64_t placeInMemory(std::vector<Span>& spans);

struct Plan {
  struct Home {
    enum class Kind : uint8_t { Unused, Memory, Weights, Input, Output };
    Kind kind = Kind::Unused;
    int64_t offset = 0;  // bytes in the memory or the weights
    uint32_t index = 0;  // of the argument or result
  };
  std::vector<Home> homes;   // of each buffer
  std::vector<bool> direct;  // of each output: whether its steps write to the caller's memory
  std::vector<Span> spans;   // of the buffers in memory
  int64_t memory_bytes = 0;
};

// Removes steps whose results nobody needs, and finds a place for every buffer that is left. NotAhead
// when something is read that nothing wrote.
Plan makePlan(Program& program, Weights& weights);

}  // namespace wick::aot

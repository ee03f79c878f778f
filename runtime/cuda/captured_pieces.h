// What captured work depends on, where it is known: products, and kernels of the loop IR, say what they
// read and write. A product that depends on nothing of the last pieces becomes a branch of the graph, so that
// the device may do it before its turn: those of a recurrent loop's inputs beside the steps, for example.
//
// Pieces go to the captured stream; a branch waits for the last piece that it depends on, and the
// captured stream for the branch where a piece depends on it. Work that says nothing of itself asks for
// the stream (currentStream()): it comes behind all branches, and in front of all later ones.
#pragma once

#include <span>
#include <vector>

#include "core/tensor.h"
#include "runtime/cuda/loop_kernel.h"

namespace wick::cuda {

// Of one capture and its thread.
class CapturedPieces {
 public:
  explicit CapturedPieces(CudaDevice& device) : device_(device) {}
  ~CapturedPieces();
  CapturedPieces(const CapturedPieces&) = delete;
  CapturedPieces& operator=(const CapturedPieces&) = delete;

  // Where to queue a piece; done() follows when it is. Throws RuntimeError.
  Stream place(std::span<const MemoryRange> reads, std::span<const MemoryRange> writes,
               bool may_branch);
  void done();
  // The captured stream waits for all branches; nothing is known of what is queued there next.
  void joinAll();
  // Memory that is given back soon, so that not each piece writes over what the last ones read. False
  // where it is too much.
  bool delayFree(Device device, void* memory, size_t bytes);
  void freeDelayed() noexcept;

 private:
  struct Piece {
    Stream stream;
    std::vector<MemoryRange> reads, writes;
    Event end = nullptr;
    bool waits = false;  // the captured stream does not wait for it yet
  };
  void begin(Stream stream);
  void join(size_t last);
  void drop(Piece& piece) noexcept;
  void release() noexcept;

  CudaDevice& device_;
  Stream main_ = nullptr, branch_ = nullptr;
  Event start_ = nullptr;  // of the captured stream: in front of the pieces
  std::vector<Piece> pieces_;
  std::vector<void*> delayed_;
};

// The bytes that a tensor of the device touches; it has elements.
MemoryRange rangeOf(const Tensor& t);

// A piece, while it is queued on stream(): where the thread captures nothing, its own.
class CapturedPiece {
 public:
  CapturedPiece(std::span<const MemoryRange> reads, std::span<const MemoryRange> writes,
                bool may_branch);
  ~CapturedPiece();
  CapturedPiece(const CapturedPiece&) = delete;
  CapturedPiece& operator=(const CapturedPiece&) = delete;
  Stream stream() const { return stream_; }

 private:
  CapturedPieces* const pieces_;
  Stream stream_ = nullptr;
};

}  // namespace wick::cuda

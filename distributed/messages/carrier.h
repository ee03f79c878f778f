// What moves messages between processes: sockets, or MPI.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "distributed/messages/sockets.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

struct Message {
  int from = 0;
  int to = 0;
  uint32_t kind = 0;
  std::string bytes;
};
// Longer ones are refused.
inline constexpr uint64_t kMostMessageBytes = uint64_t{1} << 36;

// Used by one thread alone, which also makes and destroys it. Process 0 is linked with all others, and
// each process with the one before and behind it; other pairs cannot send to each other.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual int rank() const = 0;  // from 0 on
  virtual int size() const = 0;

  struct News {
    std::function<void(Message)> arrived;
    std::function<void(int rank)> heard;  // a part of a message came
    std::function<void(int rank)> gone;   // the link ended
  };
  // Moves what can be moved now, without waiting. `out` loses the messages that were taken over.
  // Messages from one process to another arrive in order. Whether something moved.
  virtual bool step(std::deque<Message>& out, const News& news) = 0;
  // Whether something that was taken over is not yet on its way.
  virtual bool isSending() const = 0;
  // Until something can be moved or wake() is called, at most as long as told.
  virtual void wait(std::chrono::milliseconds most) = 0;
  // From any thread.
  virtual void wake() = 0;
  // When all went well, after the last message.
  virtual void close() {}
};

// All processes come to this.
std::unique_ptr<Carrier> openTcpCarrier(const TcpPlace& place, std::chrono::seconds patience);
// Those that mpirun started. Once in a process, which then can have no group of MPI.
std::unique_ptr<Carrier> openMpiCarrier();

// Whether this process is linked with the other.
inline bool areLinked(int a, int b, int size) {
  return a != b && a >= 0 && b >= 0 && a < size && b < size &&
         (a == 0 || b == 0 || a - b == 1 || b - a == 1);
}

}  // namespace wick::distributed

#pragma GCC visibility pop

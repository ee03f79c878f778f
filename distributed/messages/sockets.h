// TCP sockets, and how processes find each other by an address.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace wick::distributed {

// One process among `size`. Process 0 listens at the address, where the others find it.
struct TcpPlace {
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";
  uint16_t port = 29500;
};
// What the environment variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say, as torchrun sets
// them; nothing without the first two. RuntimeError for values that cannot be.
std::optional<TcpPlace> tcpPlaceOfEnvironment();

// Owns a descriptor. Used by one thread.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  bool isOpen() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  // Whether something can be read before the time is over.
  bool awaits(short what, std::chrono::steady_clock::time_point until) const;
  // False when the other one is gone.
  bool send(const void* bytes, size_t count) const;
  // False when the other one is gone, or the time is over.
  bool receive(void* bytes, size_t count,
               std::optional<std::chrono::steady_clock::time_point> until = std::nullopt) const;
  // Small messages are not held back.
  void sendAtOnce() const;

 private:
  int descriptor_ = -1;
};

// Waits for all processes, at most until then. Of process 0 the sockets of the others, by their numbers
// (the first is closed); of another one only that of process 0. RuntimeError when a process does not come.
std::vector<Socket> meet(const TcpPlace& place, std::chrono::steady_clock::time_point until);

}  // namespace wick::distributed

#pragma GCC visibility pop

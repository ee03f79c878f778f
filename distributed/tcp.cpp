// A star: process 0 in the middle. Each call begins with what the others ask for, which has to be what
// process 0 asks for; numbers go to it in pieces, and the result comes back. Sums are added in the order
// of the processes, so they have the same bits everywhere.
#include "distributed/tcp.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/error.h"
#include "distributed/init.h"

namespace wick::distributed {

namespace {

constexpr size_t kPiece = size_t{4} << 20;  // bytes

// What a process asks for.
struct Request {
  enum Kind : uint32_t { AllReduce = 1, Broadcast = 2, Barrier = 3 };
  uint32_t kind = 0;
  uint32_t detail = 0;  // dtype and reduction, or the root
  uint64_t count = 0;
  bool operator==(const Request&) const = default;
  std::string text() const {
    switch (kind) {
      case AllReduce:
        return fmt::format("a reduction of {} numbers (kind {})", count, detail);
      case Broadcast:
        return fmt::format("a broadcast of {} bytes from process {}", count, detail);
      case Barrier:
        return "a barrier";
      default:
        return "something unknown";
    }
  }
};

template <class T>
void reduceInto(void* to, const void* from, size_t count, Reduction reduction) {
  T* const a = static_cast<T*>(to);
  const T* const b = static_cast<const T*>(from);
  for (size_t i = 0; i < count; ++i) {
    a[i] = reduction == Reduction::Sum   ? static_cast<T>(a[i] + b[i])
           : reduction == Reduction::Max ? std::max(a[i], b[i])
                                         : std::min(a[i], b[i]);
  }
}
void reduceInto(void* to, const void* from, size_t count, DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::Float:
      return reduceInto<float>(to, from, count, reduction);
    case DType::Double:
      return reduceInto<double>(to, from, count, reduction);
    case DType::Int:
      return reduceInto<int32_t>(to, from, count, reduction);
    case DType::Long:
      return reduceInto<int64_t>(to, from, count, reduction);
    case DType::Byte:
      return reduceInto<uint8_t>(to, from, count, reduction);
    default:
      throwRuntimeError("distributed: {} is not carried", toString(dtype));
  }
}

class TcpTransport : public Transport {
 public:
  TcpTransport(const TcpPlace& place, std::chrono::seconds patience)
      : place_(place), others_(meet(place, std::chrono::steady_clock::now() + patience)) {}
  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }

  void allReduce(void* numbers, int64_t count, DType dtype, Reduction reduction) override {
    const auto detail = static_cast<uint32_t>(dtype) << 8 | static_cast<uint32_t>(reduction);
    agree({Request::AllReduce, detail, static_cast<uint64_t>(count)});
    const size_t item = itemSize(dtype), all = static_cast<size_t>(count) * item;
    std::vector<char> theirs(place_.rank == 0 ? std::min(kPiece, all) : 0);
    for (size_t at = 0; at < all; at += kPiece) {
      const size_t bytes = std::min(kPiece, all - at);
      char* const piece = static_cast<char*>(numbers) + at;
      if (place_.rank != 0) {
        send(0, piece, bytes);
        receive(0, piece, bytes);
        continue;
      }
      for (int r = 1; r < place_.size; ++r) {
        receive(r, theirs.data(), bytes);
        reduceInto(piece, theirs.data(), bytes / item, dtype, reduction);
      }
      for (int r = 1; r < place_.size; ++r) send(r, piece, bytes);
    }
  }
  void broadcast(void* bytes, size_t count, int root) override {
    agree({Request::Broadcast, static_cast<uint32_t>(root), count});
    for (size_t at = 0; at < count; at += kPiece) {
      char* const piece = static_cast<char*>(bytes) + at;
      const size_t n = std::min(kPiece, count - at);
      if (place_.rank == 0) {
        if (root != 0) receive(root, piece, n);
        for (int r = 1; r < place_.size; ++r) {
          if (r != root) send(r, piece, n);
        }
      } else if (place_.rank == root) {
        send(0, piece, n);
      } else {
        receive(0, piece, n);
      }
    }
  }
  void barrier() override {
    agree({Request::Barrier, 0, 0});
    char done = 1;
    for (int r = 1; place_.rank == 0 && r < place_.size; ++r) send(r, &done, 1);
    if (place_.rank != 0) receive(0, &done, 1);
  }

 private:
  // All processes ask for the same.
  void agree(const Request& request) {
    if (place_.rank != 0) return send(0, &request, sizeof request);
    for (int r = 1; r < place_.size; ++r) {
      Request theirs;
      receive(r, &theirs, sizeof theirs);
      WICK_CHECK(theirs == request, "distributed: process {} asks for {}, process 0 for {}", r,
                 theirs.text(), request.text());
    }
  }
  void send(int to, const void* bytes, size_t count) {
    const bool sent = others_[static_cast<size_t>(to)].send(bytes, count);
    WICK_CHECK(sent, "distributed: process {} is gone", to);
  }
  void receive(int from, void* bytes, size_t count) {
    const bool received = others_[static_cast<size_t>(from)].receive(bytes, count);
    WICK_CHECK(received, "distributed: process {} is gone", from);
  }

  const TcpPlace place_;
  std::vector<Socket> others_;  // of process 0 all but the first; else only process 0
};

}  // namespace

std::unique_ptr<Transport> openTcp(const TcpPlace& place, std::chrono::seconds patience) {
  return std::make_unique<TcpTransport>(place, patience);
}

std::shared_ptr<Group> initTcp(const TcpPlace& place, std::chrono::seconds patience) {
  auto group = std::make_shared<Group>([=] { return openTcp(place, patience); });
  static const int at_end = std::atexit(shutdown);
  static_cast<void>(at_end);
  setCurrentGroup(group);
  return group;
}

}  // namespace wick::distributed

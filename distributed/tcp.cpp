// A star: process 0 in the middle. Each call begins with what the others ask for, which has to be what
// process 0 asks for; numbers go to it in pieces, and the result comes back. Sums are added in the order
// of the processes, so they have the same bits everywhere.
#include "distributed/tcp.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "distributed/init.h"

namespace wick::distributed {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostProcesses = 1024;
constexpr size_t kPiece = size_t{4} << 20;  // bytes
// How long a stranger may take to say who it is.
constexpr std::chrono::seconds kHandshake(5);

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
  bool awaits(short what, Clock::time_point until) const {
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      pollfd one{descriptor_, what, 0};
      const int found = poll(&one, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
      if (found > 0) return true;
      if (found == 0 || errno != EINTR) return false;
    }
  }
  // False when the other one is gone.
  bool send(const void* bytes, size_t count) const {
    const char* at = static_cast<const char*>(bytes);
    while (count > 0) {
      const ssize_t n = ::send(descriptor_, at, count, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      count -= static_cast<size_t>(n);
    }
    return true;
  }
  bool receive(void* bytes, size_t count,
               std::optional<Clock::time_point> until = std::nullopt) const {
    char* at = static_cast<char*>(bytes);
    while (count > 0) {
      if (until && !awaits(POLLIN, *until)) return false;
      const ssize_t n = recv(descriptor_, at, count, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      count -= static_cast<size_t>(n);
    }
    return true;
  }

 private:
  int descriptor_ = -1;
};

struct Addresses {
  addrinfo* first = nullptr;
  explicit Addresses(const TcpPlace& place) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    const int status =
        getaddrinfo(place.address.c_str(), std::to_string(place.port).c_str(), &hints, &first);
    WICK_CHECK(status == 0, "distributed: the address {} is not known: {}", place.address,
               gai_strerror(status));
  }
  ~Addresses() { freeaddrinfo(first); }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
};

// What a process says first.
struct Hello {
  char magic[8] = {'w', 'i', 'c', 'k', 't', 'c', 'p', '1'};
  uint32_t rank = 0, size = 0;
};

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
  TcpTransport(const TcpPlace& place, std::chrono::seconds patience) : place_(place) {
    const Clock::time_point until = Clock::now() + patience;
    others_.resize(static_cast<size_t>(place.rank == 0 ? place.size : 1));
    if (place.size == 1) return;
    place.rank == 0 ? gather(until) : join(until);
  }
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
  void gather(Clock::time_point until) {
    const Addresses addresses(place_);
    Socket listening;
    int wrong = 0;
    for (const addrinfo* a = addresses.first; a && !listening.isOpen(); a = a->ai_next) {
      Socket made(socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      const int on = 1;
      if (made.isOpen()) setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      const bool listens = made.isOpen() && bind(made.get(), a->ai_addr, a->ai_addrlen) == 0 &&
                           listen(made.get(), kMostProcesses) == 0;
      if (!listens) wrong = errno;
      if (listens) listening = std::move(made);
    }
    WICK_CHECK(listening.isOpen(), "distributed: process 0 cannot listen at {}:{}: {}",
               place_.address, place_.port, std::strerror(wrong));
    for (int missing = place_.size - 1; missing > 0;) {
      WICK_CHECK(listening.awaits(POLLIN, until),
                 "distributed: {} of {} processes did not come to {}:{}", missing, place_.size,
                 place_.address, place_.port);
      Socket came(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      Hello hello;
      const Hello expected;
      if (!came.isOpen() || !came.receive(&hello, sizeof hello, Clock::now() + kHandshake) ||
          std::memcmp(hello.magic, expected.magic, sizeof hello.magic) != 0) {
        continue;  // a stranger
      }
      WICK_CHECK(hello.size == static_cast<uint32_t>(place_.size) && hello.rank > 0 &&
                     hello.rank < hello.size && !others_[hello.rank].isOpen(),
                 "distributed: process {} of {} came, expected others of {}", hello.rank,
                 hello.size, place_.size);
      sendAtOnce(came);
      others_[hello.rank] = std::move(came);
      --missing;
    }
    const Hello welcome;
    for (int r = 1; r < place_.size; ++r) send(r, &welcome, sizeof welcome);
  }
  void join(Clock::time_point until) {
    const Addresses addresses(place_);
    int wrong = 0;
    while (!others_[0].isOpen()) {
      for (const addrinfo* a = addresses.first; a && !others_[0].isOpen(); a = a->ai_next) {
        Socket made(socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
        if (made.isOpen() && connect(made.get(), a->ai_addr, a->ai_addrlen) == 0) {
          others_[0] = std::move(made);
        } else {
          wrong = errno;
        }
      }
      if (others_[0].isOpen()) break;
      WICK_CHECK(Clock::now() < until, "distributed: process 0 is not at {}:{}: {}", place_.address,
                 place_.port, std::strerror(wrong));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    sendAtOnce(others_[0]);
    Hello hello;
    hello.rank = static_cast<uint32_t>(place_.rank);
    hello.size = static_cast<uint32_t>(place_.size);
    send(0, &hello, sizeof hello);
    Hello welcome;
    const Hello expected;
    const bool welcomed = others_[0].receive(&welcome, sizeof welcome, until) &&
                          std::memcmp(welcome.magic, expected.magic, sizeof expected.magic) == 0;
    WICK_CHECK(welcomed, "distributed: what listens at {}:{} is no process 0, or it gave up",
               place_.address, place_.port);
  }
  static void sendAtOnce(const Socket& socket) {
    const int on = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

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

std::optional<int> numberOf(const char* name, int lowest, int highest) {
  const char* const text = std::getenv(name);
  if (!text || !*text) return std::nullopt;
  int number = 0;
  const char* const end = text + std::strlen(text);
  const auto [at, error] = std::from_chars(text, end, number);
  WICK_CHECK(error == std::errc() && at == end && number >= lowest && number <= highest,
             "distributed: {} is '{}', expected a number from {} to {}", name, text, lowest,
             highest);
  return number;
}

}  // namespace

std::optional<TcpPlace> tcpPlaceOfEnvironment() {
  const auto size = numberOf("WORLD_SIZE", 1, kMostProcesses);
  if (!size) return std::nullopt;
  const auto rank = numberOf("RANK", 0, *size - 1);
  if (!rank) return std::nullopt;
  TcpPlace place;
  place.rank = *rank;
  place.size = *size;
  if (const char* address = std::getenv("MASTER_ADDR"); address && *address) {
    place.address = address;
  }
  if (const auto port = numberOf("MASTER_PORT", 1, 65535)) {
    place.port = static_cast<uint16_t>(*port);
  }
  return place;
}

std::unique_ptr<Transport> openTcp(const TcpPlace& place, std::chrono::seconds patience) {
  WICK_CHECK(
      place.size >= 1 && place.size <= kMostProcesses && place.rank >= 0 && place.rank < place.size,
      "distributed: there is no process {} among {}", place.rank, place.size);
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

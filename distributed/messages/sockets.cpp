#include "distributed/messages/sockets.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "core/error.h"

namespace wick::distributed {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostProcesses = 1024;
// How long a stranger may take to say who it is.
constexpr std::chrono::seconds kHandshake(5);

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

std::vector<Socket> gather(const TcpPlace& place, Clock::time_point until) {
  std::vector<Socket> others(static_cast<size_t>(place.size));
  const Addresses addresses(place);
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
  WICK_CHECK(listening.isOpen(), "distributed: process 0 cannot listen at {}:{}: {}", place.address,
             place.port, std::strerror(wrong));
  for (int missing = place.size - 1; missing > 0;) {
    WICK_CHECK(listening.awaits(POLLIN, until),
               "distributed: {} of {} processes did not come to {}:{}", missing, place.size,
               place.address, place.port);
    Socket came(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    const Hello expected;
    if (!came.isOpen() || !came.receive(&hello, sizeof hello, Clock::now() + kHandshake) ||
        std::memcmp(hello.magic, expected.magic, sizeof hello.magic) != 0) {
      continue;  // a stranger
    }
    WICK_CHECK(hello.size == static_cast<uint32_t>(place.size) && hello.rank > 0 &&
                   hello.rank < hello.size && !others[hello.rank].isOpen(),
               "distributed: process {} of {} came, expected others of {}", hello.rank, hello.size,
               place.size);
    came.sendAtOnce();
    others[hello.rank] = std::move(came);
    --missing;
  }
  const Hello welcome;
  for (int r = 1; r < place.size; ++r) {
    WICK_CHECK(others[static_cast<size_t>(r)].send(&welcome, sizeof welcome),
               "distributed: process {} is gone", r);
  }
  return others;
}

std::vector<Socket> join(const TcpPlace& place, Clock::time_point until) {
  std::vector<Socket> others(1);
  const Addresses addresses(place);
  int wrong = 0;
  while (!others[0].isOpen()) {
    for (const addrinfo* a = addresses.first; a && !others[0].isOpen(); a = a->ai_next) {
      Socket made(socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
      if (made.isOpen() && connect(made.get(), a->ai_addr, a->ai_addrlen) == 0) {
        others[0] = std::move(made);
      } else {
        wrong = errno;
      }
    }
    if (others[0].isOpen()) break;
    WICK_CHECK(Clock::now() < until, "distributed: process 0 is not at {}:{}: {}", place.address,
               place.port, std::strerror(wrong));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  others[0].sendAtOnce();
  Hello hello;
  hello.rank = static_cast<uint32_t>(place.rank);
  hello.size = static_cast<uint32_t>(place.size);
  const bool sent = others[0].send(&hello, sizeof hello);
  Hello welcome;
  const Hello expected;
  const bool welcomed = sent && others[0].receive(&welcome, sizeof welcome, until) &&
                        std::memcmp(welcome.magic, expected.magic, sizeof expected.magic) == 0;
  WICK_CHECK(welcomed, "distributed: what listens at {}:{} is no process 0, or it gave up",
             place.address, place.port);
  return others;
}
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

bool Socket::awaits(short what, Clock::time_point until) const {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    pollfd one{descriptor_, what, 0};
    const int found = poll(&one, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (found > 0) return true;
    if (found == 0 || errno != EINTR) return false;
  }
}

bool Socket::send(const void* bytes, size_t count) const {
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

bool Socket::receive(void* bytes, size_t count, std::optional<Clock::time_point> until) const {
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

void Socket::sendAtOnce() const {
  const int on = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

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

std::vector<Socket> meet(const TcpPlace& place, Clock::time_point until) {
  WICK_CHECK(
      place.size >= 1 && place.size <= kMostProcesses && place.rank >= 0 && place.rank < place.size,
      "distributed: there is no process {} among {}", place.rank, place.size);
  if (place.size == 1) return std::vector<Socket>(1);
  return place.rank == 0 ? gather(place, until) : join(place, until);
}

}  // namespace wick::distributed

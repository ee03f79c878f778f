// Each link is one socket. A message is its kind and length, then its bytes.
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "distributed/messages/carrier.h"

namespace wick::distributed {

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kPiece = size_t{1} << 20;

struct Header {
  char magic[4] = {'w', 'm', 's', 'g'};
  uint32_t kind = 0;
  uint64_t length = 0;
};

// Where a process listens for the one behind it.
struct Listening {
  sockaddr_storage address{};
  uint32_t length = 0;
};

class TcpCarrier final : public Carrier {
 public:
  TcpCarrier(const TcpPlace& place, std::chrono::seconds patience)
      : place_(place), links_(static_cast<size_t>(place.size)) {
    const Clock::time_point until = Clock::now() + patience;
    std::vector<Socket> met = meet(place, until);
    wake_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    WICK_CHECK(wake_.isOpen(), "distributed: the system gives no event: {}", std::strerror(errno));
    if (place.rank == 0) {
      for (int r = 1; r < place.size; ++r) link(r).socket = std::move(met[static_cast<size_t>(r)]);
      introduce(until);
    } else {
      link(0).socket = std::move(met[0]);
      meetNeighbours(until);
    }
  }
  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }

  bool step(std::deque<Message>& out, const News& news) override {
    bool moved = false;
    while (!out.empty()) {
      Message& message = out.front();
      Header header;
      header.kind = message.kind;
      header.length = message.bytes.size();
      Link& to = link(message.to);
      if (to.socket.isOpen()) {
        to.out.push_back({std::string(reinterpret_cast<const char*>(&header), sizeof header), 0});
        if (!message.bytes.empty()) to.out.push_back({std::move(message.bytes), 0});
      }
      out.pop_front();
      moved = true;
    }
    for (int r = 0; r < place_.size; ++r) {
      if (!link(r).socket.isOpen()) continue;
      moved |= sendTo(r);
      moved |= receiveFrom(r, news);
    }
    return moved;
  }
  bool isSending() const override {
    return std::ranges::any_of(links_,
                               [](const Link& l) { return l.socket.isOpen() && !l.out.empty(); });
  }
  void wait(std::chrono::milliseconds most) override {
    std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
    for (const Link& l : links_) {
      if (!l.socket.isOpen()) continue;
      polled.push_back(
          {l.socket.get(), static_cast<short>(l.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    }
    poll(polled.data(), polled.size(), static_cast<int>(most.count()));
    uint64_t count = 0;
    while (read(wake_.get(), &count, sizeof count) > 0) {
    }
  }
  void wake() override {
    const uint64_t one = 1;
    static_cast<void>(!write(wake_.get(), &one, sizeof one));
  }

 private:
  struct Link {
    Socket socket;
    std::deque<std::pair<std::string, size_t>> out;  // with what is sent of it
    Header header;
    size_t header_bytes = 0;  // that are there
    std::string body;
  };
  Link& link(int rank) { return links_[static_cast<size_t>(rank)]; }

  // Process 0 tells each process where the one before it listens. The host is the one that it came
  // from, the port what it says.
  void introduce(Clock::time_point until) {
    Listening before;
    for (int r = 1; r < place_.size; ++r) {
      uint16_t port = 0;  // in the network's order
      if (r + 1 < place_.size) {
        const bool told = link(r).socket.receive(&port, sizeof port, until);
        WICK_CHECK(told, "distributed: process {} is gone", r);
      }
      if (r > 1) {
        const bool sent = link(r).socket.send(&before, sizeof before);
        WICK_CHECK(sent, "distributed: process {} is gone", r);
      }
      socklen_t length = sizeof before.address;
      const auto address = reinterpret_cast<sockaddr*>(&before.address);
      WICK_CHECK(getpeername(link(r).socket.get(), address, &length) == 0,
                 "distributed: process {} is gone", r);
      before.length = length;
      if (before.address.ss_family == AF_INET6) {
        reinterpret_cast<sockaddr_in6*>(address)->sin6_port = port;
      } else {
        reinterpret_cast<sockaddr_in*>(address)->sin_port = port;
      }
    }
  }
  void meetNeighbours(Clock::time_point until) {
    Socket listening;
    const Socket& first = link(0).socket;
    if (place_.rank + 1 < place_.size) {
      sockaddr_storage own{};
      socklen_t length = sizeof own;
      const auto address = reinterpret_cast<sockaddr*>(&own);
      bool done = getsockname(first.get(), address, &length) == 0;
      auto& port = own.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(address)->sin_port;
      port = 0;
      listening = Socket(socket(own.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      done = done && listening.isOpen() && bind(listening.get(), address, length) == 0 &&
             listen(listening.get(), 8) == 0 && getsockname(listening.get(), address, &length) == 0;
      WICK_CHECK(done, "distributed: process {} cannot listen: {}", place_.rank,
                 std::strerror(errno));
      WICK_CHECK(first.send(&port, sizeof port), "distributed: process 0 is gone");
    }
    if (place_.rank > 1) {
      Listening before;
      const bool told =
          first.receive(&before, sizeof before, until) && before.length <= sizeof before.address;
      WICK_CHECK(told, "distributed: process 0 is gone, or a process did not come");
      Socket made(socket(before.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const auto place = static_cast<uint32_t>(place_.rank);
      const bool joined =
          made.isOpen() &&
          connect(made.get(), reinterpret_cast<sockaddr*>(&before.address), before.length) == 0 &&
          made.send(&place, sizeof place);
      WICK_CHECK(joined, "distributed: process {} cannot be reached from process {}: {}",
                 place_.rank - 1, place_.rank, std::strerror(errno));
      made.sendAtOnce();
      link(place_.rank - 1).socket = std::move(made);
    }
    while (listening.isOpen() && !link(place_.rank + 1).socket.isOpen()) {
      WICK_CHECK(listening.awaits(POLLIN, until), "distributed: process {} did not come",
                 place_.rank + 1);
      Socket came(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      uint32_t place = 0;
      // Others may be strangers.
      if (!came.isOpen() ||
          !came.receive(&place, sizeof place, Clock::now() + std::chrono::seconds(5)) ||
          place != static_cast<uint32_t>(place_.rank + 1)) {
        continue;
      }
      came.sendAtOnce();
      link(place_.rank + 1).socket = std::move(came);
    }
  }

  static bool mayComeLater() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }
  // What cannot be sent is noticed when nothing can be received either.
  bool sendTo(int rank) {
    Link& to = link(rank);
    bool moved = false;
    while (!to.out.empty()) {
      auto& [bytes, sent] = to.out.front();
      const ssize_t n = ::send(to.socket.get(), bytes.data() + sent,
                               std::min(kPiece, bytes.size() - sent), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && !mayComeLater()) to.out.clear();
      if (n <= 0) break;
      moved = true;
      sent += static_cast<size_t>(n);
      if (sent == bytes.size()) to.out.pop_front();
    }
    return moved;
  }
  bool receiveFrom(int rank, const News& news) {
    Link& from = link(rank);
    bool moved = false;
    for (size_t all = 0; all < 16 * kPiece;) {
      const bool in_header = from.header_bytes < sizeof from.header;
      char* into = nullptr;
      size_t wanted = 0;
      const size_t before = from.body.size();
      if (in_header) {
        into = reinterpret_cast<char*>(&from.header) + from.header_bytes;
        wanted = sizeof from.header - from.header_bytes;
      } else {
        // Memory grows with what has come, whatever length the header says.
        wanted = std::min<uint64_t>(kPiece, from.header.length - before);
        from.body.resize(before + wanted);
        into = from.body.data() + before;
      }
      const ssize_t n = recv(from.socket.get(), into, wanted, MSG_DONTWAIT);
      const bool later = n < 0 && mayComeLater();
      if (!in_header) from.body.resize(before + static_cast<size_t>(std::max<ssize_t>(n, 0)));
      if (later) return moved;
      if (n <= 0) return end(rank, news);
      moved = true;
      all += static_cast<size_t>(n);
      news.heard(rank);
      if (in_header) {
        from.header_bytes += static_cast<size_t>(n);
        if (from.header_bytes < sizeof from.header) continue;
        const Header expected;
        if (std::memcmp(from.header.magic, expected.magic, sizeof expected.magic) != 0 ||
            from.header.length > kMostMessageBytes) {
          return end(rank, news);
        }
      }
      if (from.body.size() == from.header.length) {
        from.header_bytes = 0;
        news.arrived({rank, place_.rank, from.header.kind, std::exchange(from.body, {})});
      }
    }
    return moved;
  }
  bool end(int rank, const News& news) {
    link(rank).socket.close();
    link(rank).out.clear();
    news.gone(rank);
    return true;
  }

  const TcpPlace place_;
  std::vector<Link> links_;  // by process
  Socket wake_;
};

}  // namespace

std::unique_ptr<Carrier> openTcpCarrier(const TcpPlace& place, std::chrono::seconds patience) {
  return std::make_unique<TcpCarrier>(place, patience);
}

}  // namespace wick::distributed

// A message is its kind and length, then its bytes in pieces, each a message of MPI with the same tag:
// MPI keeps their order. mpirun ends all processes when one of them dies.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "distributed/messages/carrier.h"
#include "distributed/messages/mpi_library.h"

namespace wick::distributed {

namespace {

constexpr int kTag = 7701;
constexpr int kAnySource = -1;              // MPI_ANY_SOURCE
constexpr size_t kPiece = size_t{4} << 20;  // bytes

// As Open MPI has it.
struct Status {
  int source = 0;
  int tag = 0;
  int error = 0;
  int cancelled = 0;
  size_t bytes = 0;
};
struct Functions : MpiBasics {
  int (*isend)(const void*, int, MpiHandle, int, int, MpiHandle, MpiHandle*);
  int (*irecv)(void*, int, MpiHandle, int, int, MpiHandle, MpiHandle*);
  int (*iprobe)(int, int, MpiHandle, int*, Status*);

  Functions() {
    findMpi("MPI_Isend", isend);
    findMpi("MPI_Irecv", irecv);
    findMpi("MPI_Iprobe", iprobe);
  }
};

struct Header {
  uint64_t kind = 0;
  uint64_t length = 0;
};

class MpiCarrier final : public Carrier {
 public:
  MpiCarrier() { mpi_.begin(rank_, size_); }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  bool step(std::deque<Message>& out, const News& news) override {
    bool moved = !out.empty();
    while (!out.empty()) {
      sending_[out.front().to].waiting.push_back(std::move(out.front()));
      out.pop_front();
    }
    for (auto& [to, sending] : sending_) moved |= sendTo(to, sending);
    while (receive(news)) moved = true;
    if (moved) looks_ = 0;
    return moved;
  }
  bool isSending() const override {
    return std::ranges::any_of(sending_, [](const auto& s) { return !s.second.waiting.empty(); });
  }
  // MPI has no way to sleep until something comes. Looks often at first; who waits long leaves the
  // processor to those who compute.
  void wait(std::chrono::milliseconds most) override {
    ++looks_;
    if (looks_ < 200) return std::this_thread::yield();
    std::unique_lock lock(mutex_);
    const auto time = std::min<std::chrono::microseconds>(
        most, std::chrono::microseconds(looks_ < 20000 ? 50 : 500));
    changed_.wait_for(lock, time, [this] { return woken_; });
    woken_ = false;
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_one();
  }
  void close() override { mpi_.finalize(); }

 private:
  struct Sending {
    std::deque<Message> waiting;
    Header header;
    bool header_sent = false;
    size_t sent = 0;  // bytes of the first message
    size_t piece = 0;
    MpiHandle request = nullptr;
    bool is_open = false;  // whether the request is
  };
  struct Receiving {
    Header header;
    bool has_header = false;
    std::string body;
  };

  bool isDone(MpiHandle& request) const {
    int done = 0;
    mpi_.check(mpi_.test(&request, &done, nullptr), "MPI_Test");
    return done != 0;
  }
  bool sendTo(int to, Sending& s) {
    bool moved = false;
    while (!s.waiting.empty()) {
      const Message& message = s.waiting.front();
      if (s.is_open) {
        if (!isDone(s.request)) return moved;
        s.is_open = false;
        moved = true;
        if (s.header_sent) s.sent += s.piece;
        s.header_sent = true;
        if (s.sent == message.bytes.size()) {
          s.waiting.pop_front();
          s.header_sent = false;
          s.sent = 0;
          continue;
        }
      }
      const void* from = &s.header;
      s.piece = sizeof s.header;
      if (!s.header_sent) {
        s.header = {message.kind, message.bytes.size()};
      } else {
        from = message.bytes.data() + s.sent;
        s.piece = std::min(kPiece, message.bytes.size() - s.sent);
      }
      mpi_.check(
          mpi_.isend(from, static_cast<int>(s.piece), mpi_.uint8, to, kTag, mpi_.world, &s.request),
          "MPI_Isend");
      s.is_open = true;
    }
    return moved;
  }
  // One piece at a time.
  bool receive(const News& news) {
    if (!receiving_now_) {
      int there = 0;
      Status status;
      mpi_.check(mpi_.iprobe(kAnySource, kTag, mpi_.world, &there, &status), "MPI_Iprobe");
      if (!there) return false;
      from_ = status.source;
      Receiving& r = receiving_[from_];
      void* into = &r.header;
      size_t piece = sizeof r.header;
      if (r.has_header) {
        const size_t before = r.body.size();
        piece = std::min<uint64_t>(kPiece, r.header.length - before);
        r.body.resize(before + piece);
        into = r.body.data() + before;
      }
      mpi_.check(
          mpi_.irecv(into, static_cast<int>(piece), mpi_.uint8, from_, kTag, mpi_.world, &request_),
          "MPI_Irecv");
      receiving_now_ = true;
    }
    if (!isDone(request_)) return false;
    receiving_now_ = false;
    news.heard(from_);
    Receiving& r = receiving_[from_];
    r.has_header = true;
    WICK_CHECK(r.header.length <= kMostMessageBytes, "MPI: process {} sent no message of ours",
               from_);
    if (r.body.size() == r.header.length) {
      r.has_header = false;
      news.arrived({from_, rank_, static_cast<uint32_t>(r.header.kind), std::exchange(r.body, {})});
    }
    return true;
  }

  const Functions mpi_;
  int rank_ = 0, size_ = 1;
  std::map<int, Sending> sending_;
  std::map<int, Receiving> receiving_;
  bool receiving_now_ = false;
  int from_ = 0;
  MpiHandle request_ = nullptr;
  int looks_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
};

}  // namespace

std::unique_ptr<Carrier> openMpiCarrier() {
  return std::make_unique<MpiCarrier>();
}

}  // namespace wick::distributed

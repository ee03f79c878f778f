#include "distributed/messages/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace wick::distributed {

namespace {

// For what is still to be sent when the work has failed.
constexpr std::chrono::seconds kLastWords(2);
constexpr std::chrono::seconds kMeeting(300);

}  // namespace

Messages::Messages(std::function<std::unique_ptr<Carrier>()> open,
                   std::chrono::milliseconds patience)
    : patience_(patience) {
  thread_ = std::thread([this, open = std::move(open)] { serve(open); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return opened_ || not_opened_; });
  if (!not_opened_) return;
  lock.unlock();
  thread_.join();
  std::rethrow_exception(not_opened_);
}

Messages::~Messages() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (carrier_) carrier_->wake();
  }
  thread_.join();
}

void Messages::send(int to, uint32_t kind, std::string bytes) {
  const std::lock_guard lock(mutex_);
  WICK_CHECK(failed_.empty(), "{}", failed_);
  WICK_ASSERT(areLinked(rank_, to, size_) && kind < kBeat, "a message to process {} of {}", to,
              size_);
  WICK_CHECK(bytes.size() <= kMostMessageBytes, "a message of {} bytes is too long", bytes.size());
  out_.push_back({rank_, to, kind, std::move(bytes)});
  if (carrier_) carrier_->wake();
}

std::optional<Message> Messages::receive(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [this] { return !in_.empty() || !failed_.empty(); });
  WICK_CHECK(failed_.empty(), "{}", failed_);
  if (in_.empty()) return std::nullopt;
  Message message = std::move(in_.front());
  in_.pop_front();
  return message;
}

void Messages::fail(const std::string& text) {
  const std::lock_guard lock(mutex_);
  // What one process says may be what another one told it.
  failAs(fmt::format("process {}: {}", rank_, text));
}

void Messages::check() {
  const std::lock_guard lock(mutex_);
  WICK_CHECK(failed_.empty(), "{}", failed_);
}

void Messages::failAs(const std::string& text) {
  if (!failed_.empty() || closing_) return;
  failed_ = text;
  changed_.notify_all();
  if (carrier_) carrier_->wake();
}

void Messages::tellAll(uint32_t kind, const std::string& bytes) {
  for (int r = 0; r < size_; ++r) {
    if (areLinked(rank_, r, size_)) out_.push_back({rank_, r, kind, bytes});
  }
}

void Messages::take(Message message) {
  const std::lock_guard lock(mutex_);
  switch (message.kind) {
    case kBeat:
      return;
    case kGoodbye:
      left_[static_cast<size_t>(message.from)] = 1;
      return;
    case kFailed:
      left_[static_cast<size_t>(message.from)] = 1;
      return failAs(message.bytes);
    default:
      in_.push_back(std::move(message));
      changed_.notify_all();
  }
}

void Messages::serve(const std::function<std::unique_ptr<Carrier>()>& open) {
  std::unique_ptr<Carrier> carrier;
  try {
    carrier = open();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    not_opened_ = std::current_exception();
    changed_.notify_all();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    rank_ = carrier->rank();
    size_ = carrier->size();
    left_.resize(static_cast<size_t>(size_));
    heard_.assign(static_cast<size_t>(size_), Clock::now());
    carrier_ = carrier.get();
    opened_ = true;
    changed_.notify_all();
  }
  try {
    move(*carrier);
  } catch (const std::exception& e) {
    const std::lock_guard lock(mutex_);
    failAs(fmt::format("process {}: {}", rank_, e.what()));
  }
  {
    const std::lock_guard lock(mutex_);
    carrier_ = nullptr;
    if (!failed_.empty()) return;
  }
  carrier->close();
}

void Messages::move(Carrier& carrier) {
  const auto nobodySince = [this](int r) {
    return fmt::format("process {} has not answered for {:.0f} s", r,
                       std::chrono::duration<double>(patience_).count());
  };
  const Carrier::News news{[this](Message message) { take(std::move(message)); },
                           [this](int r) { heard_[static_cast<size_t>(r)] = Clock::now(); },
                           [this](int r) {
                             const std::lock_guard lock(mutex_);
                             if (!left_[static_cast<size_t>(r)]) {
                               left_[static_cast<size_t>(r)] = 1;
                               failAs(fmt::format("process {} is gone", r));
                             }
                           }};
  const std::chrono::milliseconds pause = std::max(patience_ / 5, std::chrono::milliseconds(1));
  Clock::time_point next_beat = Clock::now();
  std::optional<Clock::time_point> last;
  bool said_goodbye = false;
  std::deque<Message> now;
  for (;;) {
    const Clock::time_point time = Clock::now();
    {
      const std::lock_guard lock(mutex_);
      if (!failed_.empty() && !told_) {
        // What was to be sent before is of no use any more.
        told_ = true;
        out_.clear();
        tellAll(kFailed, failed_);
        last = time + kLastWords;
      }
      if (closing_ && !said_goodbye && failed_.empty()) {
        said_goodbye = true;
        tellAll(kGoodbye, "");
        last = time + patience_;
      }
      if (time >= next_beat && failed_.empty() && !said_goodbye) {
        next_beat = time + pause;
        tellAll(kBeat, "");
      }
      while (!out_.empty()) {
        now.push_back(std::move(out_.front()));
        out_.pop_front();
      }
    }
    const bool moved = carrier.step(now, news);
    {
      const std::lock_guard lock(mutex_);
      if (closing_ && out_.empty() && (told_ || said_goodbye) &&
          (!carrier.isSending() || Clock::now() >= *last)) {
        return;
      }
      for (int r = 0; r < size_ && failed_.empty() && !closing_; ++r) {
        if (!areLinked(rank_, r, size_) || left_[static_cast<size_t>(r)]) continue;
        if (Clock::now() - heard_[static_cast<size_t>(r)] > patience_) failAs(nobodySince(r));
      }
    }
    if (!moved) carrier.wait(pause);
  }
}

std::unique_ptr<Messages> openMessages() {
  if (const char* const size = std::getenv("OMPI_COMM_WORLD_SIZE")) {
    int number = 0;
    std::from_chars(size, size + std::strlen(size), number);
    if (number <= 1) return nullptr;
    return std::make_unique<Messages>([] { return openMpiCarrier(); });
  }
  const std::optional<TcpPlace> place = tcpPlaceOfEnvironment();
  if (!place || place->size == 1) return nullptr;
  return std::make_unique<Messages>([place] { return openTcpCarrier(*place, kMeeting); });
}

}  // namespace wick::distributed

// Messages from process to process, and who of them is still there.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/messages/carrier.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// A thread moves the messages, and notices when a process dies, ends with an error, or does not answer:
// the first of these ends the work of all processes, and each of them names it. Thread-safe.
class Messages {
 public:
  // `open` runs on that thread. Throws what it throws. A process that sends nothing for `patience`,
  // though its thread says every now and then that it is there, counts as dead.
  explicit Messages(std::function<std::unique_ptr<Carrier>()> open,
                    std::chrono::milliseconds patience = std::chrono::seconds(10));
  // Says goodbye, after what was sent; the others go on. When something failed it waits for nobody.
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Never waits: who sends much asks the other one for answers. Only between processes that are linked
  // (carrier.h). RuntimeError when the work has failed.
  void send(int to, uint32_t kind, std::string bytes);
  // The next message from anybody; nothing when none came in that time. RuntimeError when the work has
  // failed.
  std::optional<Message> receive(std::chrono::milliseconds most);
  // Ends the work of all processes. They say "process R: " and the text.
  void fail(const std::string& text);
  // RuntimeError when the work has failed.
  void check();

 private:
  using Clock = std::chrono::steady_clock;
  // Kinds of its own are above those that may be sent.
  enum Kind : uint32_t { kBeat = 0xfffffff0, kGoodbye, kFailed };

  void serve(const std::function<std::unique_ptr<Carrier>()>& open);
  void move(Carrier& carrier);
  void take(Message message);
  void failAs(const std::string& text);
  void tellAll(uint32_t kind, const std::string& bytes);

  const std::chrono::milliseconds patience_;
  int rank_ = 0, size_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool opened_ = false, closing_ = false;
  std::exception_ptr not_opened_;
  Carrier* carrier_ = nullptr;  // while it is there
  std::deque<Message> out_, in_;
  std::string failed_;      // why the work has; empty: it has not
  bool told_ = false;       // the others of that
  std::vector<char> left_;  // who said goodbye, by process
  std::vector<Clock::time_point> heard_;
  std::thread thread_;
};

// Where this process is one of several: those that mpirun started, or those that RANK and WORLD_SIZE tell
// of (sockets.h). Null where it is alone. Waits for the others.
std::unique_ptr<Messages> openMessages();

}  // namespace wick::distributed

#pragma GCC visibility pop

// Messages between processes: here threads, each with a carrier of its own.
#include "distributed/messages/messages.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "core/error.h"
#include "tests/free_port.h"

namespace wick::distributed::messages_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing_ports::freePort;

// What each of the processes does. The errors, by process.
std::vector<std::string> together(int size, const std::function<void(Messages&)>& work) {
  const uint16_t port = freePort();
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Messages messages(
            [&] {
              return openTcpCarrier({rank, size, "127.0.0.1", port}, seconds(60));
            },
            seconds(60));
        work(messages);
      } catch (const Error& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return errors;
}

Message awaitOne(Messages& messages) {
  for (;;) {
    if (std::optional<Message> message = messages.receive(milliseconds(100))) {
      return *std::move(message);
    }
  }
}

TEST(Messages, GoRoundInOrder) {
  const auto errors = together(4, [](Messages& m) {
    const int behind = (m.rank() + 1) % m.size();
    // More than one piece, and none.
    const std::string large(5'000'001, 'x');
    for (uint32_t i = 0; i < 20; ++i) {
      if (m.rank() == 0) m.send(behind, i, i == 7 ? large : std::to_string(i));
      const Message came = awaitOne(m);
      EXPECT_EQ(came.kind, i);
      EXPECT_EQ(came.from, (m.rank() + m.size() - 1) % m.size());
      EXPECT_EQ(came.bytes, i == 7 ? large : std::to_string(i));
      if (m.rank() != 0) m.send(behind, i, came.bytes);
    }
    if (m.rank() == 0) {
      for (int r = 1; r < m.size(); ++r) m.send(r, 99, "");
    } else {
      EXPECT_EQ(awaitOne(m).kind, 99u);
    }
  });
  EXPECT_THAT(errors, testing::Each(""));
}

// What one process says of itself reaches all, also those that are not linked with it.
TEST(Messages, FailuresReachAll) {
  const auto errors = together(5, [](Messages& m) {
    if (m.rank() == 2) m.fail("the disk is full");
    awaitOne(m);
  });
  EXPECT_THAT(errors, testing::Each(HasSubstr("process 2: the disk is full")));
}

TEST(Messages, WhoLeavesIsNotMissed) {
  const auto errors = together(3, [](Messages& m) {
    if (m.rank() == 1) return m.send(2, 5, "last words");
    if (m.rank() == 2) {
      EXPECT_EQ(awaitOne(m).bytes, "last words");
      return m.send(0, 6, "");
    }
    EXPECT_EQ(awaitOne(m).from, 2);
  });
  EXPECT_THAT(errors, testing::Each(""));
}

// The carrier of process 1 of 2, which hears from process 0 or does not, or loses it.
class FakeCarrier final : public Carrier {
 public:
  FakeCarrier(bool answers, bool goes) : answers_(answers), goes_(goes) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  bool step(std::deque<Message>& out, const News& news) override {
    out.clear();
    if (answers_) news.heard(0);
    if (goes_) news.gone(0);
    return false;
  }
  bool isSending() const override { return false; }
  void wait(milliseconds most) override {
    std::this_thread::sleep_for(std::min(most, milliseconds(1)));
  }
  void wake() override {}

 private:
  const bool answers_, goes_;
};

std::string errorAfter(Messages& messages, milliseconds most) {
  try {
    messages.receive(most);
  } catch (const RuntimeError& e) {
    return e.what();
  }
  return "";
}

TEST(Messages, WhoDoesNotAnswerIsNamed) {
  Messages silent([] { return std::make_unique<FakeCarrier>(false, false); }, milliseconds(50));
  EXPECT_THAT(errorAfter(silent, seconds(60)), HasSubstr("process 0 has not answered for"));
  EXPECT_THROW(silent.send(0, 1, ""), RuntimeError);
  EXPECT_THROW(silent.check(), RuntimeError);
  Messages heard([] { return std::make_unique<FakeCarrier>(true, false); }, seconds(60));
  EXPECT_EQ(errorAfter(heard, milliseconds(20)), "");
}

TEST(Messages, WhoIsGoneIsNamed) {
  Messages lost([] { return std::make_unique<FakeCarrier>(true, true); }, seconds(60));
  EXPECT_THAT(errorAfter(lost, seconds(60)), HasSubstr("process 0 is gone"));
}

TEST(Messages, WhatCannotOpen) {
  EXPECT_THROW(Messages([]() -> std::unique_ptr<Carrier> { throwRuntimeError("no"); }),
               RuntimeError);
}

// One who sends what is no message ends the link.
TEST(Messages, NoMessage) {
  const uint16_t port = freePort();
  std::thread stranger([&] {
    std::vector<Socket> met =
        meet({1, 2, "127.0.0.1", port}, std::chrono::steady_clock::now() + seconds(60));
    const std::string text(64, '?');
    EXPECT_TRUE(met[0].send(text.data(), text.size()));
    char byte = 0;
    while (met[0].receive(&byte, 1)) {
    }
  });
  {
    Messages messages(
        [&] {
          return openTcpCarrier({0, 2, "127.0.0.1", port}, seconds(60));
        },
        seconds(60));
    EXPECT_THAT(errorAfter(messages, seconds(60)), HasSubstr("process 1 is gone"));
  }
  stranger.join();
}

}  // namespace
}  // namespace wick::distributed::messages_test

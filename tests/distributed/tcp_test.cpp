// Processes that find each other by an address: here threads, each with a group of its own.
#include "distributed/tcp.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <thread>

#include "core/error.h"
#include "tests/free_port.h"

namespace wick::tcp_test {
namespace {

using distributed::Group;
using distributed::Reduction;
using distributed::TcpPlace;
using distributed::Transport;
using testing::HasSubstr;
using testing_ports::freePort;

// What each of the processes does. The errors, by process.
std::vector<std::string> together(int size, const std::function<void(Transport&)>& work,
                                  std::chrono::seconds patience = std::chrono::seconds(60)) {
  const uint16_t port = freePort();
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = size - 1; rank >= 0; --rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto transport = distributed::openTcp({rank, size, "127.0.0.1", port}, patience);
        work(*transport);
      } catch (const Error& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return errors;
}

TEST(Tcp, ReducesAndBroadcasts) {
  const auto errors = together(3, [](Transport& t) {
    // More than one piece.
    std::vector<float> numbers(3'000'001, static_cast<float>(t.rank() + 1));
    numbers.back() = static_cast<float>(-t.rank());
    t.allReduce(numbers.data(), static_cast<int64_t>(numbers.size()), DType::Float, Reduction::Sum);
    EXPECT_EQ(numbers.front(), 6);
    EXPECT_EQ(numbers[2'000'000], 6);
    EXPECT_EQ(numbers.back(), -3);
    int64_t most = t.rank() * 10, least = most;
    t.allReduce(&most, 1, DType::Long, Reduction::Max);
    t.allReduce(&least, 1, DType::Long, Reduction::Min);
    EXPECT_EQ(most, 20);
    EXPECT_EQ(least, 0);
    for (int root = 0; root < 3; ++root) {
      std::vector<char> text(5'000'000, static_cast<char>('a' + t.rank()));
      t.broadcast(text.data(), text.size(), root);
      EXPECT_EQ(text.back(), 'a' + root);
    }
    double none = 0;
    t.allReduce(&none, 0, DType::Double, Reduction::Sum);
    t.barrier();
  });
  EXPECT_THAT(errors, testing::Each(""));
}

TEST(Tcp, AloneItIsAGroupOfOne) {
  Group group([] { return distributed::openTcp({}, std::chrono::seconds(1)); });
  EXPECT_EQ(group.size(), 1);
  const Tensor x = Tensor::full({3}, 2, DType::Float);
  EXPECT_EQ(group.endAllReduce(group.beginAllReduce(x, "sum")).span<float>()[2], 2);
}

TEST(Tcp, WhoAsksForSomethingElseIsNamed) {
  const auto errors = together(2, [](Transport& t) {
    float numbers[4] = {};
    if (t.rank() == 1) return t.allReduce(numbers, 3, DType::Float, Reduction::Sum);
    t.broadcast(numbers, 16, 0);
  });
  EXPECT_THAT(errors[0], HasSubstr("process 1 asks for a reduction of 3 numbers"));
  EXPECT_THAT(errors[0], HasSubstr("process 0 for a broadcast of 16 bytes"));
  EXPECT_THAT(errors[1], HasSubstr("process 0 is gone"));
}

TEST(Tcp, WhoGoesAwayIsNamed) {
  const auto errors = together(3, [](Transport& t) {
    if (t.rank() != 2) t.barrier();
  });
  EXPECT_THAT(errors[0], HasSubstr("process 2 is gone"));
  EXPECT_THAT(errors[1], HasSubstr("process 0 is gone"));
}

TEST(Tcp, WhoDoesNotCome) {
  const uint16_t port = freePort();
  const auto messageOf = [](const TcpPlace& place) -> std::string {
    try {
      distributed::openTcp(place, std::chrono::seconds(0));
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(messageOf({0, 3, "127.0.0.1", port}), HasSubstr("2 of 3 processes did not come"));
  EXPECT_THAT(messageOf({1, 3, "127.0.0.1", port}), HasSubstr("process 0 is not at 127.0.0.1"));
  EXPECT_THAT(messageOf({0, 2, "no.such.host.invalid", port}), HasSubstr("is not known"));
  EXPECT_THAT(messageOf({3, 3, "127.0.0.1", port}), HasSubstr("no process 3 among 3"));
}

// One who is none of the processes, and one who counts differently.
TEST(Tcp, Strangers) {
  const uint16_t port = freePort();
  std::thread stranger([&] {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (const size_t bytes : {size_t{3}, size_t{40}}) {
      int one = -1;
      for (bool came = false; !came;) {
        one = socket(AF_INET, SOCK_STREAM, 0);
        came = connect(one, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
        if (!came) close(one);
        if (!came) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      const std::string text(bytes, 'x');
      EXPECT_EQ(send(one, text.data(), bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
      close(one);
    }
    EXPECT_THROW(distributed::openTcp({1, 3, "127.0.0.1", port}, std::chrono::seconds(20)),
                 RuntimeError);
  });
  try {
    distributed::openTcp({0, 2, "127.0.0.1", port}, std::chrono::seconds(20));
    ADD_FAILURE();
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.what(), HasSubstr("process 1 of 3 came, expected others of 2"));
  }
  stranger.join();
}

TEST(Tcp, TheEnvironmentSaysWhoIsThere) {
  const auto placeOf = [](const char* rank, const char* size, const char* port) {
    rank ? setenv("RANK", rank, 1) : unsetenv("RANK");
    size ? setenv("WORLD_SIZE", size, 1) : unsetenv("WORLD_SIZE");
    port ? setenv("MASTER_PORT", port, 1) : unsetenv("MASTER_PORT");
    return distributed::tcpPlaceOfEnvironment();
  };
  EXPECT_FALSE(placeOf(nullptr, nullptr, nullptr));
  EXPECT_FALSE(placeOf("1", nullptr, nullptr));
  const auto found = placeOf("1", "4", "2950");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->rank, 1);
  EXPECT_EQ(found->size, 4);
  EXPECT_EQ(found->port, 2950);
  EXPECT_THROW(placeOf("4", "4", nullptr), RuntimeError);
  EXPECT_THROW(placeOf("-1", "4", nullptr), RuntimeError);
  EXPECT_THROW(placeOf("0", "99999999999", nullptr), RuntimeError);
  EXPECT_THROW(placeOf("0", "2x", nullptr), RuntimeError);
  EXPECT_THROW(placeOf("0", "2", "70000"), RuntimeError);
  placeOf(nullptr, nullptr, nullptr);
}

}  // namespace
}  // namespace wick::tcp_test

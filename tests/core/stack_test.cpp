#include "core/stack.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <stdexcept>
#include <string>

namespace wick::stack_test {
namespace {

// Uses about 2 KB of stack a level: TSan has room for 65,536 calls.
[[gnu::noinline]] size_t recurse(size_t levels) {
  volatile char frame[2048];
  frame[0] = static_cast<char>(levels);
  return levels == 0 ? 0 : recurse(levels - 1) + static_cast<size_t>(frame[0] == frame[0]);
}

TEST(Stack, StaysOnAStackWithRoom) {
  const void* frame = nullptr;
  const char* here = static_cast<const char*>(__builtin_frame_address(0));
  withStack(1000, [&] { frame = __builtin_frame_address(0); });
  EXPECT_LT(static_cast<size_t>(here - static_cast<const char*>(frame)), size_t{1} << 16);
}

TEST(Stack, MakesRoom) {
  size_t levels = 0;
  withStack(size_t{256} << 20, [&] {
    EXPECT_GE(stackLeft(), size_t{255} << 20);
    levels = recurse(50'000);
  });
  EXPECT_EQ(levels, 50'000u);
  EXPECT_LT(stackLeft(), size_t{64} << 20);
}

TEST(Stack, Nests) {
  int depth = 0;
  withStack(size_t{20} << 20, [&] {
    ++depth;
    withStack(size_t{40} << 20, [&] {
      ++depth;
      recurse(10'000);
    });
    recurse(5'000);
  });
  EXPECT_EQ(depth, 2);
}

TEST(Stack, CarriesExceptions) {
  try {
    withStack(size_t{64} << 20, [] {
      recurse(10'000);
      throw std::runtime_error("from there");
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "from there");
  }
}

TEST(Stack, HelpsThreadsWithSmallStacks) {
  size_t levels = 0;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, size_t{512} << 10);
  pthread_t thread;
  auto body = [](void* out) -> void* {
    withStack(size_t{8} << 20, [&] { *static_cast<size_t*>(out) = recurse(3'000); });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &levels), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(levels, 3'000u);
}

}  // namespace
}  // namespace wick::stack_test

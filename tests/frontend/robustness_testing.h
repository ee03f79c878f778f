// What the tests of limits share: running programs with arguments, and threads with small stacks.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "frontend/compile.h"
#include "ir/verifier.h"
#include "runtime/call.h"

namespace wick {

// What main(arguments…) gives, as Python's repr.
inline std::string resultOf(const std::string& program, std::vector<IValue> arguments = {}) {
  std::shared_ptr<CompilationUnit> unit = compileSource(program, "test.py");
  for (const auto& function : unit->functions()) verify(*function->graph());
  RunOptions options;
  options.owner = unit;
  return callFunction(*unit->findFunction("__torch__.main"), std::move(arguments), {}, options)
      .repr();
}

// The first line of the error of the type, or "no error".
template <class E = CompileError>
std::string refusalOf(const std::function<void()>& work) {
  try {
    work();
  } catch (const E& error) {
    return error.brief();
  }
  return "no error";
}

// Functions take several times as much of it under AddressSanitizer.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr size_t kSmallStack = size_t{2} << 20;
#else
inline constexpr size_t kSmallStack = size_t{512} << 10;
#endif

// Runs `work` on a thread with a stack of `bytes`.
inline void onSmallStack(std::function<void()> work, size_t bytes = kSmallStack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  auto body = [](void* context) -> void* {
    (*static_cast<std::function<void()>*>(context))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &work), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

inline std::string repeated(const std::string& text, size_t count) {
  std::string out;
  out.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

}  // namespace wick

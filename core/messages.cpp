#include "core/messages.h"

#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

namespace wick {

namespace {

struct Warnings {
  std::mutex mutex;
  WarningHandler handler;
};

Warnings& warnings() {
  static auto* const made = new Warnings;  // outlives static objects that warn
  return *made;
}

}  // namespace

void setWarningHandler(WarningHandler handler) {
  Warnings& w = warnings();
  {
    std::lock_guard lock(w.mutex);
    w.handler.swap(handler);
  }
  // The old one is destroyed without the lock: it may be anything.
}

void warn(const std::string& message) {
  WarningHandler handler;
  {
    std::lock_guard lock(warnings().mutex);
    handler = warnings().handler;
  }
  if (handler) {
    handler(message);
  } else {
    fmt::print(stderr, "Warning: {}\n", message);
  }
}

}  // namespace wick

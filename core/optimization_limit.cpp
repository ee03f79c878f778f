#include "core/optimization_limit.h"

#include <charconv>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core/error.h"

namespace wick {

namespace {

struct Limit {
  uint64_t allowed;
  uint64_t made = 0;
};

struct LimitState {
  std::mutex mutex;
  std::unordered_map<std::string, Limit> limits;
  uint64_t made = 0;
  std::string last;
};

LimitState& state() {
  static LimitState* instance = new LimitState();
  return *instance;
}

std::optional<std::unordered_map<std::string, Limit>> parseLimits(std::string_view text) {
  std::unordered_map<std::string, Limit> limits;
  while (!text.empty()) {
    size_t end = text.find(':');
    std::string_view pair = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) return std::nullopt;
    std::string_view number = pair.substr(equals + 1);
    uint64_t allowed = 0;
    auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), allowed);
    if (error != std::errc() || stop != number.data() + number.size()) return std::nullopt;
    std::string_view name = pair.substr(0, equals);
    limits.insert_or_assign(std::string(name == "*" ? name : logName(name)), Limit{allowed});
  }
  return limits;
}

const bool from_environment = [] {
  const char* limits = std::getenv("WICK_OPT_LIMIT");
  if (!limits) return false;
  try {
    setOptimizationLimits(limits);
  } catch (const UsageError& error) {
    fmt::print(stderr, "WICK_OPT_LIMIT: {}\n", error.what());  // nobody could catch it before main
    std::exit(2);
  }
  return true;
}();

}  // namespace

namespace detail {

std::atomic<bool> limiting{false};

bool withinLimit(std::string_view path) {
  LimitState& s = state();
  std::lock_guard lock(s.mutex);
  auto own = s.limits.find(std::string(logName(path)));
  auto all = s.limits.find("*");
  for (auto limit : {own, all}) {
    if (limit != s.limits.end() && limit->second.made >= limit->second.allowed) return false;
  }
  for (auto limit : {own, all}) {
    if (limit != s.limits.end()) ++limit->second.made;
  }
  ++s.made;
  s.last = logName(path);
  return true;
}

}  // namespace detail

void setOptimizationLimits(std::string_view limits) {
  auto parsed = parseLimits(limits);
  if (!parsed) {
    throw UsageError(fmt::format(
        "optimization limits: expected NAME=NUMBER pairs separated by ':', got '{}'", limits));
  }
  LimitState& s = state();
  std::lock_guard lock(s.mutex);
  s.limits = std::move(*parsed);
  s.made = 0;
  s.last.clear();
  detail::limiting.store(!s.limits.empty(), std::memory_order_relaxed);
}

uint64_t optimizationsMade() {
  LimitState& s = state();
  std::lock_guard lock(s.mutex);
  return s.made;
}

std::string lastOptimizingPass() {
  LimitState& s = state();
  std::lock_guard lock(s.mutex);
  return s.last;
}

}  // namespace wick

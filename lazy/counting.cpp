#include "lazy/counting.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>

#include "lazy/graph.h"
#include "lazy/lazy.h"

namespace wick::lazy {

namespace {

// Lines that are counted apart; what comes from further ones is counted without a line.
constexpr size_t kMaxPlaces = 4096;

// How often something happened, by name and place.
class Counts {
 public:
  void add(std::string_view what, const SourceRange& place) {
    Key key{what, place.source().get(), place.start()};
    auto at = entries_.find(key);
    if (at == entries_.end()) {
      const bool room = entries_.size() < kMaxPlaces;
      std::get<0>(key) = *names_.emplace(what).first;
      if (!room) std::get<1>(key) = nullptr, std::get<2>(key) = 0;
      at = entries_.try_emplace(key, Entry{room ? place : SourceRange(), 0}).first;
    }
    ++at->second.times;
  }
  // Sorted by name.
  std::vector<Counters::Count> byName() const {
    std::vector<Counters::Count> made;
    for (const auto& [key, entry] : entries_) {
      const std::string_view name = std::get<0>(key);
      if (made.empty() || made.back().what != name) made.push_back({std::string(name), 0});
      made.back().times += entry.times;
    }
    return made;
  }
  // A line each, the most frequent first.
  std::string lines() const {
    struct Line {
      uint64_t times;
      std::string what, place;
    };
    std::vector<Line> all;
    size_t width = 0;
    for (const auto& [key, entry] : entries_) {
      all.push_back({entry.times, std::string(std::get<0>(key)), entry.place.location()});
      width = std::max(width, all.back().what.size());
    }
    std::ranges::sort(all, [](const Line& a, const Line& b) {
      return std::tie(b.times, a.what, a.place) < std::tie(a.times, b.what, b.place);
    });
    std::string text;
    for (const Line& line : all) {
      text += line.place.empty()
                  ? fmt::format("{:>8}  {}\n", line.times, line.what)
                  : fmt::format("{:>8}  {:<{}}  {}\n", line.times, line.what, width, line.place);
    }
    return text;
  }

 private:
  // The source is held by the entry's place.
  using Key = std::tuple<std::string_view, const Source*, size_t>;
  struct Entry {
    SourceRange place;
    uint64_t times;
  };
  std::set<std::string, std::less<>> names_;
  std::map<Key, Entry> entries_;
};

struct State {
  Counters totals;
  Counts causes, immediate;
};
// Synchronized by mutex(). Threads may outlive main.
State& state() {
  static State& made = *new State;
  return made;
}

}  // namespace

void countRecorded() {
  ++state().totals.recorded;
}
void countEvaluation(const char* cause, bool compiled, const SourceRange& place) {
  ++state().totals.evaluations;
  ++(compiled ? state().totals.compiled : state().totals.found);
  state().causes.add(cause, place);
}
void countFollowed(const char* cause, const SourceRange& place) {
  ++state().totals.evaluations;
  ++state().totals.followed;
  state().causes.add(cause, place);
}
void countRolled(size_t loops) {
  state().totals.rolled += loops;
}
void countImmediate(std::string_view op, const SourceRange& place) {
  state().immediate.add(op, place);
}

Counters counters() {
  const std::lock_guard lock(mutex());
  Counters found = state().totals;
  found.causes = state().causes.byName();
  found.immediate = state().immediate.byName();
  return found;
}
void resetCounters() {
  const std::lock_guard lock(mutex());
  state() = State();
}

std::string report() {
  const std::lock_guard lock(mutex());
  const State& now = state();
  std::string text = fmt::format(
      "{} calls recorded; {} graphs run: {} compiled, {} found in the cache, {} of frozen steps\n",
      now.totals.recorded, now.totals.evaluations, now.totals.compiled, now.totals.found,
      now.totals.followed);
  if (now.totals.rolled > 0) {
    text += fmt::format("{} repetitions of records ran as loops\n", now.totals.rolled);
  }
  const std::string causes = now.causes.lines(), immediate = now.immediate.lines();
  if (!causes.empty()) text += "why graphs ran:\n" + causes;
  if (!immediate.empty()) text += "operators that ran at once, not recorded:\n" + immediate;
  return text;
}

}  // namespace wick::lazy

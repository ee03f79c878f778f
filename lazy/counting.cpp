#include "lazy/counting.h"

#include <map>
#include <mutex>
#include <string>

#include "lazy/graph.h"
#include "lazy/lazy.h"

namespace wick::lazy {

namespace {

struct State {
  Counters totals;
  std::map<std::string, uint64_t, std::less<>> causes, immediate;
};
// Synchronized by mutex(). Threads may outlive main.
State& state() {
  static State& made = *new State;
  return made;
}

void count(std::map<std::string, uint64_t, std::less<>>& counts, std::string_view what) {
  const auto at = counts.find(what);
  ++(at != counts.end() ? at : counts.emplace(std::string(what), 0).first)->second;
}

}  // namespace

void countRecorded() {
  ++state().totals.recorded;
}
void countEvaluation(const char* cause, bool compiled) {
  ++state().totals.evaluations;
  ++(compiled ? state().totals.compiled : state().totals.found);
  count(state().causes, cause);
}
void countFollowed(const char* cause) {
  ++state().totals.evaluations;
  ++state().totals.followed;
  count(state().causes, cause);
}
void countImmediate(std::string_view op) {
  count(state().immediate, op);
}

Counters counters() {
  const std::lock_guard lock(mutex());
  Counters found = state().totals;
  for (const auto& [what, times] : state().causes) found.causes.push_back({what, times});
  for (const auto& [what, times] : state().immediate) found.immediate.push_back({what, times});
  return found;
}
void resetCounters() {
  const std::lock_guard lock(mutex());
  state() = State();
}

}  // namespace wick::lazy

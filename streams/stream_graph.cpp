#include "streams/stream_graph.h"

#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "core/error_types.h"

namespace wick::streams {

namespace {

// Deeper text is refused, so that what is read here is shallow.
void countFilters(const Part& part, std::vector<size_t>& seen, size_t& total) {
  if (part.kind == Part::Kind::Filter) {
    if (part.filter >= seen.size()) throw UsageError("a stream graph arranges a filter it lacks");
    ++seen[part.filter];
    ++total;
  }
  for (const Part& inner : part.parts) countFilters(inner, seen, total);
}

void checkPort(const Filter& filter, const Port& port) {
  if (port.rate < 1 || port.peek < port.rate || port.delay < 0) {
    throw UsageError(fmt::format(
        "filter '{}': expected pop and push of at least 1, peek of at least pop and a delay of at "
        "least 0 at '{}', found {}, {} and {}",
        filter.name, port.value, port.rate, port.peek, port.delay));
  }
}

}  // namespace

void validate(const StreamGraph& graph) {
  std::unordered_set<std::string> names;
  std::unordered_map<std::string, size_t> made;  // value -> filter + 1
  for (const Port& port : graph.inputs) {
    if (!made.emplace(port.value, 0).second) {
      throw UsageError(fmt::format("the stream has two inputs '{}'", port.value));
    }
  }
  for (size_t i = 0; i < graph.filters.size(); ++i) {
    const Filter& filter = graph.filters[i];
    if (!names.insert(filter.name).second) {
      throw UsageError(fmt::format("there are two filters '{}'", filter.name));
    }
    for (const Port& port : filter.outputs) {
      checkPort(filter, port);
      if (!made.emplace(port.value, i + 1).second) {
        throw UsageError(fmt::format("'{}' has two producers, the second is filter '{}'",
                                     port.value, filter.name));
      }
    }
  }
  for (size_t i = 0; i < graph.filters.size(); ++i) {
    const Filter& filter = graph.filters[i];
    for (const Port& port : filter.inputs) {
      checkPort(filter, port);
      const auto producer = made.find(port.value);
      if (producer == made.end()) {
        throw UsageError(
            fmt::format("filter '{}' reads '{}', which nothing produces", filter.name, port.value));
      }
      if (producer->second > i && port.delay == 0) {
        throw UsageError(
            fmt::format("filter '{}' reads '{}', which comes later: a feedback needs a delay",
                        filter.name, port.value));
      }
    }
  }
  for (const Port& port : graph.outputs) {
    if (!made.contains(port.value)) {
      throw UsageError(fmt::format("the stream gives '{}', which nothing produces", port.value));
    }
  }
  std::vector<size_t> seen(graph.filters.size());
  size_t total = 0;
  countFilters(graph.root, seen, total);
  for (size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == 1) continue;
    throw UsageError(fmt::format("filter '{}' occurs {} times in the arrangement, expected once",
                                 graph.filters[i].name, seen[i]));
  }
}

}  // namespace wick::streams

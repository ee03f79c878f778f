#include "runtime/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <ostream>
#include <tuple>
#include <unordered_map>

#include "core/source_origin.h"
#include "ir/operator.h"
#include "runtime/interpreter/observer.h"

namespace wick {

namespace {

// "aten::conv2d"; of a kernel for several operators "aten::mul aten::add".
std::string nameOf(const OperatorCall& call) {
  if (call.op) return call.op->schema().name();
  std::string names;
  for (const Node* node : call.node.subgraph(attr::Subgraph)->nodes()) {
    if (node->kind() == prim::Constant) continue;
    names += (names.empty() ? "" : " ") + std::string(node->kind().qualString());
  }
  return names;
}

std::string placeOf(const SourceRange& range) {
  const SourceRange own = userRange(range);
  if (!own.valid()) return "";
  return fmt::format("{}:{}", own.source()->name(), own.source()->lineNumber(own.start()));
}

}  // namespace

class Profile::Observer : public OperatorObserver {
 public:
  void called(const OperatorCall& call) override {
    std::lock_guard lock(mutex_);
    Entry& entry = entries_[&call.node];
    // Code may be gone by now, and other code lie there.
    if (entry.row.calls == 0 || !isOf(entry, call.node)) {
      if (entry.row.calls > 0) past_.push_back(entry.row);
      entry.row = {nameOf(call), placeOf(call.node.range())};
      entry.kind = call.node.kind();
      entry.range = call.node.range();
    }
    ++entry.row.calls;
    entry.row.seconds += std::chrono::duration<double>(call.end - call.begin).count();
    entry.row.bytes += call.bytes;
  }

  std::vector<Row> rows() const {
    std::map<std::pair<std::string, std::string>, Row> merged;
    const auto add = [&](const Row& row) {
      Row& to = merged[{row.op, row.place}];
      to.op = row.op;
      to.place = row.place;
      to.calls += row.calls;
      to.seconds += row.seconds;
      to.bytes += row.bytes;
    };
    {
      std::lock_guard lock(mutex_);
      for (const Row& row : past_) add(row);
      for (const auto& [node, entry] : entries_) add(entry.row);
    }
    std::vector<Row> sorted;
    for (auto& [key, row] : merged) sorted.push_back(std::move(row));
    std::ranges::stable_sort(sorted, std::greater(), &Row::seconds);
    return sorted;
  }

  void clear() {
    std::lock_guard lock(mutex_);
    entries_.clear();
    past_.clear();
  }

 private:
  struct Entry {
    Row row;
    Symbol kind;
    SourceRange range;  // holds its source
  };
  static bool isOf(const Entry& entry, const Node& node) {
    return entry.kind == node.kind() && entry.range.source() == node.range().source() &&
           entry.range.start() == node.range().start();
  }

  mutable std::mutex mutex_;
  std::unordered_map<const Node*, Entry> entries_;
  std::vector<Row> past_;
};

Profile::Profile() : observer_(std::make_unique<Observer>()) {}
Profile::~Profile() = default;

RunOptions Profile::options(RunOptions others) const {
  others.observer = observer_.get();
  return others;
}

std::vector<Profile::Row> Profile::rows() const {
  return observer_->rows();
}

void Profile::clear() {
  observer_->clear();
}

// A friend: the pragma of the header does not reach it.
__attribute__((visibility("default"))) std::ostream& operator<<(std::ostream& out, const Profile& profile) {
  out << fmt::format("{:>12}  {:>9}  {:>10}  {:>12}  {:<28} {}\n", "total us", "calls", "us a call",
                     "bytes kept", "operator", "source");
  for (const Profile::Row& row : profile.rows()) {
    const double us = row.seconds * 1e6;
    out << fmt::format("{:12.1f}  {:9}  {:10.2f}  {:12}  {:<28} {}\n", us, row.calls,
                       us / static_cast<double>(row.calls), row.bytes, row.op, row.place);
  }
  return out;
}

}  // namespace wick

// Recognizes the forms of StreamIt from the outside to the inside.
//
// Filters in their order are cut where no more than one filter's values are alive: a pipeline. What
// lies between two cuts and is more than one filter is a region. Its last filter joins what the
// others, without it, fall apart into: branches that share nothing but what the region is given.
// A branch that only hands a value on is an identity. Each branch is arranged in the same way.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "streams/stream_graph.h"

namespace wick::streams {

namespace {

using Indices = std::vector<size_t>;
using Names = std::set<std::string>;

// Split-joins within each other; what lies deeper becomes a network.
constexpr size_t kMaxDepth = 64;

class Arranger {
 public:
  Arranger(const StreamGraph& graph,
           const std::vector<std::pair<size_t, std::vector<std::string>>>& loops)
      : graph_(graph), loops_(loops.begin(), loops.end()) {
    for (size_t i = 0; i < graph.filters.size(); ++i) {
      for (const Port& port : graph.filters[i].outputs) producer_[port.value] = i;
    }
  }

  Part whole() {
    Indices all(graph_.filters.size());
    std::iota(all.begin(), all.end(), size_t{0});
    Names results;
    for (const Port& port : graph_.outputs) results.insert(port.value);
    Part part = pipeline(all, results, 0);
    if (part.kind == Part::Kind::Pipeline) return part;
    Part root;
    root.parts.push_back(std::move(part));
    return root;
  }

 private:
  Part single(size_t index) const {
    Part part;
    part.kind = Part::Kind::Filter;
    part.filter = index;
    const auto loop = loops_.find(index);
    if (loop == loops_.end()) return part;
    Part feedback;
    feedback.kind = Part::Kind::Feedback;
    feedback.carried = loop->second;
    feedback.parts.push_back(std::move(part));
    return feedback;
  }

  static Part unwrapped(Part pipeline) {
    if (pipeline.kind == Part::Kind::Pipeline && pipeline.parts.size() == 1) {
      Part only = std::move(pipeline.parts[0]);
      return only;
    }
    return pipeline;
  }

  // Whether the values come from one filter, or from outside, or there is at most one.
  bool fromOnePlace(const Names& values) const {
    if (values.size() <= 1) return true;
    const auto first = producer_.find(*values.begin());
    return std::ranges::all_of(values, [&](const std::string& v) {
      const auto producer = producer_.find(v);
      return producer != producer_.end() && first != producer_.end() &&
             producer->second == first->second;
    });
  }

  // The filters, which are in order, with `results` read by others.
  Part pipeline(const Indices& filters, const Names& results, size_t depth) {
    // What is read behind each position, or by others, and made before it.
    std::vector<Names> alive(filters.size() + 1);
    Names needed = results;
    for (size_t k = filters.size(); k-- > 0;) {
      alive[k + 1] = needed;
      const Filter& filter = graph_.filters[filters[k]];
      for (const Port& port : filter.outputs) needed.erase(port.value);
      for (const Port& port : filter.inputs) needed.insert(port.value);
    }
    alive[0] = needed;
    Part part;
    size_t begin = 0;
    for (size_t k = 1; k <= filters.size(); ++k) {
      if (k != filters.size() && !fromOnePlace(alive[k])) continue;
      const Indices segment(filters.begin() + static_cast<int64_t>(begin),
                            filters.begin() + static_cast<int64_t>(k));
      if (segment.size() == 1) {
        part.parts.push_back(single(segment[0]));
      } else {
        region(segment, alive[begin], alive[k], depth, part.parts);
      }
      begin = k;
    }
    return unwrapped(std::move(part));
  }

  void region(const Indices& segment, const Names& given, const Names& results, size_t depth,
              std::vector<Part>& out) {
    if (depth < kMaxDepth) {
      const size_t last = segment.back();
      const auto ofLast = [&](const std::string& v) {
        const auto producer = producer_.find(v);
        return producer != producer_.end() && producer->second == last;
      };
      if (std::ranges::all_of(results, ofLast)) {
        Names read;
        for (const Port& port : graph_.filters[last].inputs) read.insert(port.value);
        if (branches(Indices(segment.begin(), segment.end() - 1), given, read, depth, out)) {
          out.push_back(single(last));
          return;
        }
      } else if (branches(segment, given, results, depth, out)) {
        return;
      }
    }
    Part network;
    network.kind = Part::Kind::Network;
    for (size_t index : segment) network.parts.push_back(single(index));
    out.push_back(std::move(network));
  }

  // Adds a split-join of the filters whose results `read` are joined; false when they are one piece.
  bool branches(const Indices& filters, const Names& given, const Names& read, size_t depth,
                std::vector<Part>& out) {
    std::vector<Indices> pieces = fallApart(filters, given);
    std::vector<std::string> handed_on;
    for (const std::string& value : given) {
      if (read.contains(value)) handed_on.push_back(value);
    }
    if (pieces.size() + handed_on.size() < 2) return false;
    Part split_join;
    split_join.kind = Part::Kind::SplitJoin;
    Names taken;
    bool apart = given.size() > 1;  // no element goes to two branches
    for (const Indices& piece : pieces) {
      Names results;
      Names uses;
      for (size_t index : piece) {
        for (const Port& port : graph_.filters[index].outputs) {
          if (read.contains(port.value)) results.insert(port.value);
        }
        for (const Port& port : graph_.filters[index].inputs) {
          if (given.contains(port.value)) uses.insert(port.value);
        }
      }
      apart = apart && !uses.empty();
      for (const std::string& value : uses) apart = taken.insert(value).second && apart;
      split_join.split.push_back(static_cast<int64_t>(uses.size()));
      split_join.join.push_back(static_cast<int64_t>(results.size()));
      split_join.parts.push_back(pipeline(piece, results, depth + 1));
    }
    for (const std::string& value : handed_on) {
      Part identity;
      identity.kind = Part::Kind::Identity;
      identity.value = value;
      apart = taken.insert(value).second && apart;
      split_join.split.push_back(1);
      split_join.join.push_back(1);
      split_join.parts.push_back(std::move(identity));
    }
    if (!apart) split_join.split.clear();
    out.push_back(std::move(split_join));
    return true;
  }

  // Pieces that share no value but those in `given`, each in order.
  std::vector<Indices> fallApart(const Indices& filters, const Names& given) const {
    std::vector<size_t> leader(filters.size());
    std::iota(leader.begin(), leader.end(), size_t{0});
    const auto find = [&](size_t i) {
      while (leader[i] != i) i = leader[i] = leader[leader[i]];
      return i;
    };
    std::map<std::string, size_t> seen;
    for (size_t k = 0; k < filters.size(); ++k) {
      const Filter& filter = graph_.filters[filters[k]];
      const auto meet = [&](const Port& port) {
        if (given.contains(port.value)) return;
        const auto [where, is_new] = seen.emplace(port.value, k);
        if (is_new) return;
        const size_t a = find(where->second), b = find(k);
        leader[std::max(a, b)] = std::min(a, b);
      };
      std::ranges::for_each(filter.inputs, meet);
      std::ranges::for_each(filter.outputs, meet);
    }
    std::map<size_t, Indices> pieces;
    for (size_t k = 0; k < filters.size(); ++k) pieces[find(k)].push_back(filters[k]);
    std::vector<Indices> list;
    for (auto& [first, piece] : pieces) list.push_back(std::move(piece));
    return list;
  }

  const StreamGraph& graph_;
  std::map<size_t, std::vector<std::string>> loops_;
  std::map<std::string, size_t> producer_;
};

}  // namespace

Part arrange(const StreamGraph& graph,
             const std::vector<std::pair<size_t, std::vector<std::string>>>& loops) {
  return Arranger(graph, loops).whole();
}

}  // namespace wick::streams

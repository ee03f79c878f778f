#include "extensions/text/byte_pairs.h"

#include <compare>
#include <functional>
#include <queue>
#include <span>

#include "core/budget.h"
#include "core/counted_vector.h"
#include "core/error.h"

namespace wick::text {

namespace {

constexpr BytePairs::Token kNone = -1;
constexpr size_t kBytes = 256;

uint64_t pairKey(BytePairs::Token first, BytePairs::Token second) {
  return uint64_t{static_cast<uint32_t>(first)} << 32 | static_cast<uint32_t>(second);
}

[[noreturn]] void throwNotInMap(const char* class_name, const std::string& what) {
  throwRuntimeError("{}: Argument passed to at() was not in the map: {}", class_name, what);
}

// A copy whose keys and values are K and V.
template <class K, class V>
DictRef copyDict(const char* class_name, const char* what, const IValue& dict) {
  WICK_CHECK(dict.isDict(), "{}: expected {} to be a dict, got {}", class_name, what,
             dict.tagName());
  DictRef copy = makeRef<DictObject>(ValueConversion<K>::type(), ValueConversion<V>::type());
  Pace pace;
  dict.toDict().all([&](const IValue& key, const IValue& value) {
    pace.step(16);
    detail::within(key, [&] {
      copy->set(IValue(ValueConversion<K>::from(key)), IValue(ValueConversion<V>::from(value)));
    });
    return true;
  });
  return copy;
}

}  // namespace

BytePairTables BytePairTables::from(const char* class_name, std::span<const IValue> parts) {
  return {copyDict<std::string, int64_t>(class_name, "bpe_encoder", parts[0]),
          copyDict<std::string, int64_t>(class_name, "bpe_merge_ranks", parts[1]),
          parts[2].to<std::string>(),
          copyDict<int64_t, std::string>(class_name, "byte_encoder", parts[3]),
          parts[4].to<bool>()};
}

IValue BytePairTables::state() const {
  return IValue(makeTuple(
      {IValue(numbers), IValue(ranks), IValue(separator), IValue(bytes), IValue(caching)}));
}

BytePairs::BytePairs(const char* class_name, const BytePairTables& tables,
                     const std::string& suffix)
    : class_name_(class_name), unknown_rank_(static_cast<int64_t>(tables.ranks->size()) + 1) {
  WICK_CHECK(!tables.separator.empty(), "{}: Expected `seperator` not to be empty", class_name);
  Pace pace;
  tables.ranks->all([&](const IValue& pair, const IValue& rank) {
    pace.step(64);
    const std::string& text = pair.toString();
    const size_t middle = text.find(tables.separator);
    // Nothing is ever looked up that has no separator.
    if (middle == std::string::npos) return true;
    const std::string first = text.substr(0, middle);
    const std::string second = text.substr(middle + tables.separator.size());
    const Token left = intern(first);
    const Token right = intern(second);
    memory_.add(class_name, 2 * sizeof(uint64_t) + sizeof(Merge));
    merges_.emplace(pairKey(left, right), Merge{rank.toInt(), intern(first + second)});
    return true;
  });
  within_.assign(kBytes, kNone);
  last_.assign(kBytes, kNone);
  tables.bytes->all([&](const IValue& byte, const IValue& text) {
    const int64_t i = byte.toInt();
    if (i < 0 || i >= static_cast<int64_t>(kBytes)) return true;  // never asked for
    within_[static_cast<size_t>(i)] = intern(text.toString());
    last_[static_cast<size_t>(i)] = intern(text.toString() + suffix);
    return true;
  });
  numbers_.resize(texts_.size());
  tables.numbers->all([&](const IValue& text, const IValue& number) {
    pace.step(16);
    // What no word can become needs no number here.
    const auto found = tokens_.find(text.toString());
    if (found != tokens_.end()) numbers_[static_cast<size_t>(found->second)] = number.toInt();
    return true;
  });
}

BytePairs::Token BytePairs::intern(const std::string& text) {
  const auto found = tokens_.find(text);
  if (found != tokens_.end()) return found->second;
  WICK_CHECK(texts_.size() < static_cast<size_t>(INT32_MAX), "{}: too many tokens", class_name_);
  memory_.add(class_name_, HeldMemory::of(text) + sizeof(std::string*) + 2 * sizeof(int64_t));
  const auto made = tokens_.emplace(text, static_cast<Token>(texts_.size())).first;
  texts_.push_back(&made->first);
  return made->second;
}

const BytePairs::Merge* BytePairs::find(Token first, Token second) const {
  const auto found = merges_.find(pairKey(first, second));
  return found == merges_.end() ? nullptr : &found->second;
}

BytePairs::Token BytePairs::byteToken(const std::vector<Token>& table, char byte) const {
  const auto at = static_cast<unsigned char>(byte);
  if (table[at] == kNone) throwNotInMap(class_name_, "byte " + std::to_string(at));
  return table[at];
}

int64_t BytePairs::numberOf(Token token) const {
  const std::optional<int64_t>& number = numbers_[static_cast<size_t>(token)];
  if (!number) throwNotInMap(class_name_, "token '" + textOf(token) + "'");
  return *number;
}

std::string BytePairs::encoded(std::string_view word) const {
  std::string text;
  Pace pace;
  for (char byte : word) {
    const std::string& part = textOf(byteToken(within_, byte));
    pace.step(static_cast<int64_t>(1 + part.size() / 8));
    text += part;
    if (text.size() >= (size_t{1} << 20)) checkAllocation(class_name_, text.size());
  }
  return text;
}

// One word while it is joined. Neighbours wait in a queue by rank and place, so that a long word
// takes n log n steps. Rounds are those of the algorithm as it is written down: wherever
// the best pair stands are joined, from the left, before the next pair is chosen, and what a round
// makes is not joined again in the same one.
class BytePairs::Joiner {
 public:
  Joiner(const BytePairs& pairs, std::string_view word) : pairs_(pairs) {
    const auto n = static_cast<int64_t>(word.size());
    nodes_.reserve(word.size());
    for (int64_t i = 0; i < n; ++i) {
      const bool last = i + 1 == n;
      const auto& table = last ? pairs.last_ : pairs.within_;
      nodes_.push_back(
          {pairs.byteToken(table, word[static_cast<size_t>(i)]), 0, i - 1, last ? kEnd : i + 1});
    }
    for (int64_t i = 0; i + 1 < n; ++i) look(i);
  }

  std::vector<Token> joined() {
    while (!queue_.empty() && round()) {
    }
    std::vector<Token> result;
    for (int64_t i = nodes_.empty() ? kEnd : 0; i != kEnd; i = at(i).next) {
      result.push_back(at(i).token);
    }
    return result;
  }

 private:
  static constexpr int64_t kEnd = -1;
  struct Node {
    Token token;    // kNone when its left neighbour took it
    int64_t round;  // when it was made
    int64_t before;
    int64_t next;
  };
  // Where two neighbours stood. In order: all of one pair, from the left, before those of the next.
  struct Place {
    int64_t rank;
    Token first, second;
    int64_t left;
    auto operator<=>(const Place&) const = default;
    bool samePair(const Place& o) const {
      return rank == o.rank && first == o.first && second == o.second;
    }
  };

  Node& at(int64_t i) { return nodes_[static_cast<size_t>(i)]; }
  bool stands(const Place& p) {
    const Node& left = at(p.left);
    return left.token == p.first && left.next != kEnd && at(left.next).token == p.second;
  }
  const Merge* mergeAt(int64_t left) {
    return pairs_.find(at(left).token, at(at(left).next).token);
  }
  // Takes note of the neighbours at `left`, and takes it back.
  void look(int64_t left) {
    if (const Merge* merge = mergeAt(left)) {
      queue_.push({merge->rank, at(left).token, at(at(left).next).token, left});
    } else {
      ++unknown_;
    }
  }
  void forget(int64_t left) {
    if (!mergeAt(left)) --unknown_;
  }

  // False when no pair can be joined any more.
  bool round() {
    const Place best = queue_.top();
    if (!stands(best)) {
      queue_.pop();
      return true;
    }
    // torchtext takes the pair for the best that has no rank, and stops.
    if (best.rank > pairs_.unknown_rank_ && unknown_ > 0) return false;
    places_.clear();
    while (!queue_.empty() && queue_.top().samePair(best)) {
      places_.push_back(queue_.top().left);
      queue_.pop();
    }
    ++round_;
    const Token joined = pairs_.find(best.first, best.second)->joined;
    for (int64_t left : places_) {
      pace_.step(32);
      const bool there = stands({best.rank, best.first, best.second, left});
      if (there && at(left).round < round_) joinAt(left, joined);
    }
    return true;
  }

  void joinAt(int64_t left, Token joined) {
    Node& node = at(left);
    Node& taken = at(node.next);
    if (node.before != kEnd) forget(node.before);
    if (taken.next != kEnd) forget(node.next);
    node.token = joined;
    node.round = round_;
    node.next = taken.next;
    taken.token = kNone;
    if (node.next != kEnd) at(node.next).before = left;
    if (node.before != kEnd) look(node.before);
    if (node.next != kEnd) look(left);
  }

  const BytePairs& pairs_;
  CountedVector<Node> nodes_;
  std::priority_queue<Place, CountedVector<Place>, std::greater<>> queue_;
  CountedVector<int64_t> places_;
  int64_t unknown_ = 0;  // neighbours that have no rank
  int64_t round_ = 0;
  Pace pace_;
};

std::vector<BytePairs::Token> BytePairs::join(std::string_view word) const {
  return Joiner(*this, word).joined();
}

}  // namespace wick::text

// Records that look alike are found by their hashes: where windows of records come again and again
// at the same distance, the distance is the length of a block, or a part of it. What the blocks read
// is compared then.
#include "lazy/repetitions.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string_view>

#include "lazy/effects.h"

namespace wick::lazy {

namespace {

// Fewer records are compiled faster than a loop pays for.
constexpr size_t kMinRecords = 48;
// A chain of pointwise operators is one kernel that passes over memory once. As a loop it is one for
// each block, so only what is too long for a kernel becomes one.
constexpr size_t kMinPointwise = 1024;
// Windows longer than what repeats within a block find the block; short ones find short blocks.
constexpr size_t kWindows[] = {8, 64};
// A block may be this many times what looks alike: layers of one kind within a step.
constexpr size_t kMaxMultiple = 4;
// How often the beginning of the blocks is looked for in one stretch.
constexpr int kMaxAttempts = 4;

// ---- hashes ----

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

// Numbers that may be handed over are one and the same.
uint64_t mixConstant(uint64_t hash, const IValue& v) {
  hash = mix(hash, static_cast<uint64_t>(v.tag()));
  switch (v.tag()) {
    case IValue::Tag::Int:
      return isParameter(v.toInt()) ? mix(hash, static_cast<uint64_t>(v.toInt())) : hash;
    case IValue::Tag::Bool:
      return mix(hash, v.toBool() ? 1 : 0);
    case IValue::Tag::Double: {
      const double number = v.toDouble();
      return number == 0 || number == 1 ? hash : mix(hash, std::bit_cast<uint64_t>(number));
    }
    case IValue::Tag::String:
      return mix(hash, std::hash<std::string_view>()(v.toString()));
    case IValue::Tag::List:
      hash = mix(hash, v.elements().size());
      for (const IValue& e : v.elements()) hash = mixConstant(hash, e);
      return hash;
    default:
      return hash;
  }
}

// Equal for records that may be the same one of two blocks.
uint64_t hashOf(const Record& record) {
  uint64_t hash = mix(record.cloned, reinterpret_cast<uintptr_t>(record.op));
  for (const int64_t n : record.results) hash = mix(hash, static_cast<uint64_t>(n));
  for (const Operand& operand : record.operands) {
    switch (operand.kind) {
      case Operand::Kind::Value:
      case Operand::Kind::Values:
        hash = mix(hash, operand.values.size());
        break;
      case Operand::Kind::Number:
        hash = mix(hash, static_cast<uint64_t>(operand.value.tag()));
        break;
      case Operand::Kind::Ints:
        hash = mix(hash, operand.value.elements().size());
        break;
      default:
        hash = mixConstant(hash, operand.value);
    }
  }
  return hash;
}

// Records [begin, end) in which each looks like the one `period` before it.
struct Stretch {
  size_t begin, end, period;
};

// The last place of each window.
class Places {
 public:
  explicit Places(size_t count) : slots_(std::bit_ceil(2 * count + 1)) {}
  // The place before, or none.
  std::optional<size_t> put(uint64_t hash, size_t at) {
    size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot].at != 0 && slots_[slot].hash != hash)
      slot = (slot + 1) & (slots_.size() - 1);
    Slot& found = slots_[slot];
    const size_t before = found.at;
    found = {hash, at + 1};
    if (before == 0) return std::nullopt;
    return before - 1;
  }

 private:
  struct Slot {
    uint64_t hash = 0;
    size_t at = 0;  // one more; 0: free
  };
  std::vector<Slot> slots_;
};

void findStretches(const std::vector<uint64_t>& hashes, size_t window, std::vector<Stretch>& into) {
  if (hashes.size() < 2 * window) return;
  constexpr uint64_t kBase = 0x100000001B3u;
  uint64_t sum = 0, power = 1;
  for (size_t i = 0; i < window; ++i) {
    sum = sum * kBase + hashes[i];
    power *= kBase;
  }
  const size_t count = hashes.size() - window + 1;
  Places places(count);
  size_t run = 0, distance = 0;  // windows from `run` on came before at this distance
  const auto close = [&](size_t next) {
    if (distance == 0) return;
    const Stretch found{run - distance, next - 1 + window, distance};
    if (found.end - found.begin >= kMinTrips * distance) into.push_back(found);
  };
  for (size_t i = 0; i < count; ++i) {
    const auto before = places.put(sum ^ (sum >> 32), i);
    const size_t now = before ? i - *before : 0;
    if (now != distance) {
      close(i);
      run = i;
      distance = now;
    }
    if (i + 1 < count) sum = sum * kBase + hashes[i + window] - power * hashes[i];
  }
  close(count);
}

// ---- what blocks read ----

bool looksLike(const Record& a, const Record& b) {
  return a.op == b.op && a.cloned == b.cloned && a.results == b.results && a.count == b.count &&
         a.operands.size() == b.operands.size();
}

bool holdsValues(const Operand& operand) {
  return operand.kind == Operand::Kind::Value || operand.kind == Operand::Kind::Values;
}

class Finder {
 public:
  Finder(std::span<const Record> records, std::span<const Graph::Origin> origins,
         std::span<const uint32_t> plan)
      : records_(records), origins_(origins), plan_(plan), places_(records.size()) {
    for (size_t p = 0; p < plan.size(); ++p) places_[plan[p]] = p;
  }

  std::vector<Repetition> run() {
    std::vector<uint64_t> hashes;
    hashes.reserve(plan_.size());
    for (const uint32_t at : plan_) hashes.push_back(hashOf(records_[at]));
    std::vector<Stretch> stretches;
    for (const size_t window : kWindows) findStretches(hashes, window, stretches);
    std::ranges::stable_sort(stretches, [](const Stretch& a, const Stretch& b) {
      return a.end - a.begin > b.end - b.begin;
    });
    taken_.assign(plan_.size(), false);
    for (const Stretch& stretch : stretches) tryStretch(stretch);
    if (found_.empty()) return {};
    addFeeders();
    std::ranges::sort(found_, {}, &Repetition::begin);
    return std::move(found_);
  }

 private:
  const Record& record(size_t at) const { return records_[plan_[at]]; }

  void tryStretch(Stretch stretch) {
    while (stretch.begin < stretch.end && taken_[stretch.begin]) ++stretch.begin;
    size_t end = stretch.begin;
    while (end < stretch.end && !taken_[end]) ++end;
    for (size_t multiple = 1; multiple <= kMaxMultiple; ++multiple) {
      const size_t known = found_.size();
      tryBlocks(stretch.begin, end, stretch.period * multiple);
      if (found_.size() > known) return;
    }
  }

  void tryBlocks(size_t begin, size_t end, size_t period) {
    for (int attempt = 0; attempt < kMaxAttempts && end - begin >= kMinTrips * period; ++attempt) {
      Repetition found{begin, period, (end - begin) / period, {}};
      if (!pays(found)) {
        passed_over_.push_back({begin, end, period});
        return;
      }
      compare(found);
      if (found.trips < kMinTrips) {
        begin += std::max<size_t>(found.trips, 1) * period;
        continue;
      }
      begin = found.end();
      if (pays(found)) take(std::move(found));
    }
  }
  void take(Repetition found) {
    std::fill(taken_.begin() + static_cast<ptrdiff_t>(found.begin),
              taken_.begin() + static_cast<ptrdiff_t>(found.end()), true);
    found_.push_back(std::move(found));
  }

  // What a loop takes an element of in each trip has to come from a loop too, or else each number of
  // trips is another program. So blocks that would not pay are repetitions where they make such
  // elements, each for itself.
  void addFeeders() {
    if (passed_over_.empty()) return;
    std::vector<bool> wanted(origins_.size());
    for (const Repetition& found : found_) want(found, wanted);
    std::ranges::sort(passed_over_, std::greater(), &Stretch::begin);
    for (const Stretch& stretch : passed_over_) {
      Repetition found{
          stretch.begin, stretch.period, (stretch.end - stretch.begin) / stretch.period, {}};
      const auto first = taken_.begin() + static_cast<ptrdiff_t>(stretch.begin);
      const auto last = taken_.begin() + static_cast<ptrdiff_t>(stretch.end);
      if (std::find(first, last, true) != last) continue;
      compare(found);
      const bool chain = std::ranges::any_of(
          found.reads, [](const Read& read) { return read.from == Read::From::Before; });
      if (found.trips < kMinTrips || chain || !makes(found, wanted)) continue;
      want(found, wanted);
      take(std::move(found));
    }
  }
  bool makes(const Repetition& found, const std::vector<bool>& wanted) const {
    for (size_t at = found.begin; at < found.end(); ++at) {
      for (uint32_t c = 0; c < record(at).count; ++c) {
        if (wanted[record(at).first + c]) return true;
      }
    }
    return false;
  }
  void want(const Repetition& found, std::vector<bool>& wanted) const {
    for (size_t t = 0; t < found.trips; ++t) {
      size_t next = 0;
      for (size_t j = 0; j < found.period; ++j) {
        for (const Operand& operand : record(found.begin + t * found.period + j).operands) {
          if (!holdsValues(operand)) continue;
          for (const ValueId id : operand.values) {
            if (found.reads[next++].from == Read::From::Each) wanted[id] = true;
          }
        }
      }
    }
  }

  bool pays(const Repetition& found) const {
    const size_t size = found.period * found.trips;
    if (size < kMinRecords) return false;
    if (size >= kMinPointwise) return true;
    for (size_t j = 0; j < found.period; ++j) {
      const Operator& op = *record(found.begin + j).op;
      if (!op.record().scalar && !op.makesViews()) return true;
    }
    return false;
  }

  // Lowers `trips` to the blocks that are the same.
  void compare(Repetition& found) const {
    size_t before = 0;
    // What was equal in all blocks may be something else in fewer of them.
    for (int pass = 0; found.trips != before && found.trips >= kMinTrips; ++pass) {
      before = found.trips;
      if (pass == kMaxAttempts) found.trips = 0;
      found.reads.clear();
      for (size_t j = 0; j < found.period && found.trips >= kMinTrips; ++j) {
        compareRecords(found, j);
      }
    }
  }

  void compareRecords(Repetition& found, size_t j) const {
    const Record& first = record(found.begin + j);
    if (hasRecordedEffects(*first.op)) found.trips = 0;
    for (size_t t = 1; t < found.trips; ++t) {
      const Record& other = record(found.begin + t * found.period + j);
      if (!looksLike(first, other)) found.trips = t;
    }
    std::vector<const Operand*> operands;
    for (size_t i = 0; i < first.operands.size() && found.trips >= kMinTrips; ++i) {
      operands.clear();
      for (size_t t = 0; t < found.trips; ++t) {
        operands.push_back(&record(found.begin + t * found.period + j).operands[i]);
      }
      if (holdsValues(*operands[0])) {
        compareValues(found, j, operands);
      } else {
        compareOthers(found, operands);
      }
    }
  }

  void compareValues(Repetition& found, size_t j, std::span<const Operand* const> operands) const {
    for (size_t t = 1; t < found.trips; ++t) {
      const bool same = operands[t]->kind == operands[0]->kind &&
                        operands[t]->values.size() == operands[0]->values.size();
      if (!same) found.trips = t;
    }
    std::vector<ValueId> values;
    for (size_t e = 0; e < operands[0]->values.size() && found.trips >= kMinTrips; ++e) {
      values.clear();
      for (size_t t = 0; t < found.trips; ++t) values.push_back(operands[t]->values[e]);
      found.reads.push_back(readOf(found, j, values));
    }
  }

  struct Maker {
    bool before = true;  // all blocks
    size_t block = 0;
    uint32_t record = 0, index = 0;
  };
  Maker makerOf(const Repetition& found, ValueId id) const {
    if (id == kNoValue || origins_[id].record == Graph::kInput) return {};
    const size_t place = places_[origins_[id].record];
    if (place < found.begin) return {};
    const size_t inside = place - found.begin;
    return {false, inside / found.period, static_cast<uint32_t>(inside % found.period),
            origins_[id].index};
  }

  Read readOf(Repetition& found, size_t j, std::span<const ValueId> values) const {
    const Maker first = makerOf(found, values[0]), second = makerOf(found, values[1]);
    Read read;
    read.first = values[0];
    if (!second.before) {
      read.from = second.block == 1 ? Read::From::Block : Read::From::Before;
      read.record = second.record;
      read.index = second.index;
      if (read.from == Read::From::Block && second.record >= j) found.trips = 0;
      if (read.from == Read::From::Before && values[0] == kNoValue) found.trips = 1;
    } else if (values[0] == values[1] && values[1] == values[2]) {
      read.from = values[0] == kNoValue ? Read::From::Nothing : Read::From::Same;
    } else {
      read.from = Read::From::Each;
    }
    // That the first block reads within itself or before all says which of both it is.
    if (first.before == (read.from == Read::From::Block))
      found.trips = std::min<size_t>(found.trips, 1);
    for (size_t t = 1; t < found.trips; ++t) {
      const bool same = fits(read, makerOf(found, values[t]), t, values[t]);
      if (!same || (read.from == Read::From::Each && !isInRow(values, t))) found.trips = t;
    }
    return read;
  }

  // Whether the values up to this one are inputs, or made by records at equal distances, as those
  // of another repetition are, or stand at equal distances in one record's list.
  bool isInRow(std::span<const ValueId> values, size_t t) const {
    const auto place = [&](size_t i) {
      const Graph::Origin& origin = origins_[values[i]];
      return origin.record == Graph::kInput
                 ? std::pair<int64_t, int64_t>(-1, 0)
                 : std::pair<int64_t, int64_t>(places_[origin.record], origin.index);
    };
    const auto first = place(0), second = place(1), here = place(t);
    const auto trips = static_cast<int64_t>(t);
    return here.first == first.first + trips * (second.first - first.first) &&
           here.second == first.second + trips * (second.second - first.second) &&
           (first.first < 0) == (here.first < 0);
  }

  static bool fits(const Read& read, const Maker& maker, size_t t, ValueId value) {
    switch (read.from) {
      case Read::From::Nothing:
      case Read::From::Same:
        return value == read.first;
      case Read::From::Each:
        return maker.before && value != kNoValue;
      default: {
        const size_t block = read.from == Read::From::Block ? t : t - 1;
        return !maker.before && maker.block == block && maker.record == read.record &&
               maker.index == read.index;
      }
    }
  }

  static void compareOthers(Repetition& found, std::span<const Operand* const> operands) {
    const size_t elements =
        operands[0]->kind == Operand::Kind::Ints ? operands[0]->value.elements().size() : 1;
    for (size_t e = 0; e < elements && found.trips >= kMinTrips; ++e) {
      const auto blocks = operands.first(found.trips);
      const bool ints = operands[0]->kind == Operand::Kind::Ints;
      const Numbers numbers = ints ? compareInts(blocks, e) : compareNumbers(blocks);
      if (numbers != Numbers::Wrong) continue;
      size_t same = 1;
      while (same < found.trips && operands[same]->kind == operands[0]->kind &&
             sameConstant(operands[same]->value, operands[0]->value)) {
        ++same;
      }
      found.trips = std::min(same, found.trips - 1);
    }
  }

  std::span<const Record> records_;
  std::span<const Graph::Origin> origins_;
  std::span<const uint32_t> plan_;
  std::vector<size_t> places_;  // of each record in the plan
  std::vector<bool> taken_;
  std::vector<Repetition> found_;
  std::vector<Stretch> passed_over_;  // they do not pay
};

}  // namespace

Numbers compareNumbers(std::span<const Operand* const> blocks) {
  bool handed_over = false, all = true, same = true;
  for (const Operand* operand : blocks) {
    const bool number = operand->kind == Operand::Kind::Number;
    if (!number && operand->kind != Operand::Kind::Constant) return Numbers::Wrong;
    handed_over |= number;
    all &= number;
    same &= sameConstant(operand->value, blocks[0]->value);
  }
  if (same) return all ? Numbers::Same : handed_over ? Numbers::Wrong : Numbers::Text;
  const auto isNumber = [&](const Operand* operand) {
    return operand->value.tag() == blocks[0]->value.tag() &&
           (operand->value.isInt() || operand->value.isDouble());
  };
  return handed_over && std::ranges::all_of(blocks, isNumber) ? Numbers::Differ : Numbers::Wrong;
}

Numbers compareInts(std::span<const Operand* const> blocks, size_t element) {
  bool handed_over = false, same = true;
  const auto size = blocks[0]->value.elements().size();
  for (const Operand* operand : blocks) {
    if (operand->kind != Operand::Kind::Ints || operand->value.elements().size() != size) {
      return Numbers::Wrong;
    }
    const int64_t number = operand->value.elements()[element].toInt();
    handed_over |= isParameter(number);
    same &= number == blocks[0]->value.elements()[element].toInt();
  }
  if (same) return handed_over ? Numbers::Same : Numbers::Text;
  return handed_over ? Numbers::Differ : Numbers::Wrong;
}

std::vector<Repetition> findRepetitions(std::span<const Record> records,
                                        std::span<const Graph::Origin> origins,
                                        std::span<const uint32_t> plan) {
  if (plan.size() < kMinRecords) return {};
  return Finder(records, origins, plan).run();
}

}  // namespace wick::lazy

// Entries stand in the order of their insertion; an index of their positions finds a key by its
// hash, as Python's dicts do it.
#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "core/large_pages.h"
#include "core/memory_limit.h"

namespace wick {

namespace {

// A slot of the index holds a position, and above it as many bits of the hash as there is room for, so that hardly an entry
// with another key is looked at: in large dicts each look waits for memory.
constexpr uint32_t kFree = UINT32_MAX;
constexpr int kMaxPositionBits = 30;

// How the slots of an index of this size are divided. At most half of them are used, and at most as many entries were taken
// out, so a position is less than the number of slots, and no slot in use is kFree.
struct Slots {
  explicit Slots(size_t size) : bits(std::min<int>(std::bit_width(size), kMaxPositionBits)) {}
  size_t position(uint32_t slot) const { return slot & ((uint32_t{1} << bits) - 1); }
  uint32_t make(size_t position, uint64_t hash) const {
    return static_cast<uint32_t>(position) | (static_cast<uint32_t>(hash >> 32) >> bits << bits);
  }
  bool mayHold(uint32_t slot, uint64_t hash) const {
    return (slot ^ static_cast<uint32_t>(hash >> 32)) >> bits == 0;
  }
  int bits;  // of a position
};

constexpr size_t kFewEntries = 8;
constexpr size_t kMaxEntries =
    (size_t{1} << kMaxPositionBits) - 1;  // the last position would be that of kFree

bool sameKey(const IValue& a, const IValue& b) {
  if (a.tag() == b.tag()) {
    if (a.isInt() || (a.isDouble() && a.rawInt() == b.rawInt())) return a.rawInt() == b.rawInt();
    if (a.isString()) return a.rawObject() == b.rawObject() || a.toString() == b.toString();
  }
  return a.isSame(b) || (!a.isTensor() && a.equals(b));
}

}  // namespace

uint64_t DictObject::hashOf(const IValue& key) {
  const uint64_t hash =
      key.isInt() ? keyedHashOfNeighbour(static_cast<uint64_t>(key.rawInt())) : key.keyHash();
  return hash == kTaken ? 1 : hash;
}

// The position of the key's entry, or kNowhere.
size_t DictObject::locate(const IValue& key, uint64_t hash) const {
  if (index_.empty()) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].hash == hash && sameKey(entries_[i].key, key)) return i;
    }
    return kNowhere;
  }
  const Slots slots(index_.size());
  const size_t mask = index_.size() - 1;
  for (size_t slot = hash & mask; index_[slot] != kFree; slot = (slot + 1) & mask) {
    if (!slots.mayHold(index_[slot], hash)) continue;
    const size_t position = slots.position(index_[slot]);
    const Entry& entry = entries_[position];
    if (entry.hash == hash && sameKey(entry.key, key)) return position;
  }
  return kNowhere;
}

void DictObject::insertSlot(size_t entry) {
  const size_t mask = index_.size() - 1;
  size_t slot = entries_[entry].hash & mask;
  while (index_[slot] != kFree) slot = (slot + 1) & mask;
  index_[slot] = Slots(index_.size()).make(entry, entries_[entry].hash);
}

// Closes the gap: what stands behind it moves up, unless it would then stand before where its hash
// points.
void DictObject::eraseSlot(size_t entry) {
  if (index_.empty()) return;
  const Slots slots(index_.size());
  const size_t mask = index_.size() - 1;
  size_t gap = entries_[entry].hash & mask;
  while (slots.position(index_[gap]) != entry) gap = (gap + 1) & mask;
  for (size_t slot = (gap + 1) & mask; index_[slot] != kFree; slot = (slot + 1) & mask) {
    const size_t home = entries_[slots.position(index_[slot])].hash & mask;
    if (((slot - home) & mask) >= ((slot - gap) & mask)) {
      index_[gap] = index_[slot];
      gap = slot;
    }
  }
  index_[gap] = kFree;
}

// An index for this many entries and as many again.
void DictObject::makeIndex(size_t entries) {
  size_t slots = 4 * kFewEntries;
  while (slots < entries * 4) slots *= 2;
  index_ = Index();  // first, for two at once need more memory
  index_.reserve(slots);
  // What is read here and there is found sooner where a page holds more of it.
  adviseLargePages(index_.data(), slots * sizeof(uint32_t));
  index_.assign(slots, kFree);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].hash != kTaken) insertSlot(i);
  }
  count();
}

const IValue* DictObject::find(const IValue& key) const {
  const size_t i = locate(key, hashOf(key));
  return i == kNowhere ? nullptr : &entries_[i].value;
}

// For one more entry.
void DictObject::makeRoom() {
  if (entries_.size() < entries_.capacity()) return;
  const size_t capacity = std::max<size_t>(4, 2 * entries_.capacity());
  // The index grows too, about when the entries do.
  checkAllocation("dict", capacity * (sizeof(Entry) + 4 * sizeof(uint32_t)));
  Entries larger;
  larger.reserve(capacity);
  // Before it is touched: fewer pages are asked for.
  adviseLargePages(larger.data(), capacity * sizeof(Entry));
  for (Entry& each : entries_) larger.push_back(std::move(each));
  entries_ = std::move(larger);
  count();
}

void DictObject::set(IValue key, IValue value) {
  const uint64_t hash = hashOf(key);
  if (const size_t i = locate(key, hash); i != kNowhere) {
    // The old value is released last: its destruction must not find the dict half written.
    std::swap(entries_[i].value, value);
    return;
  }
  WICK_CHECK(entries_.size() < kMaxEntries, "a dict of {} keys is too large", entries_.size());
  makeRoom();
  entries_.push_back({std::move(key), std::move(value), hash});
  const bool full =
      index_.empty() ? entries_.size() > kFewEntries : (size_ + 1) * 2 > index_.size();
  try {
    if (full) makeIndex(size_ + 1);
  } catch (...) {
    // Without an index entries are looked through, which is slow and right.
    entries_.pop_back();
    throw;
  }
  if (!full && !index_.empty()) insertSlot(entries_.size() - 1);
  ++size_;
}

bool DictObject::erase(const IValue& key) {
  const size_t i = locate(key, hashOf(key));
  if (i == kNowhere) return false;
  eraseSlot(i);
  const Entry removed = std::move(entries_[i]);
  entries_[i].hash = kTaken;
  --size_;
  if (entries_.size() > kFewEntries && size_ * 2 < entries_.size()) compact();
  return true;
}

void DictObject::clear() {
  const Entries removed = std::move(entries_);
  entries_ = Entries();
  index_ = Index();
  size_ = 0;
  count();
}

std::optional<std::pair<IValue, IValue>> DictObject::popLast() {
  while (!entries_.empty() && entries_.back().hash == kTaken) entries_.pop_back();
  if (entries_.empty()) return std::nullopt;
  eraseSlot(entries_.size() - 1);
  std::pair last(std::move(entries_.back().key), std::move(entries_.back().value));
  entries_.pop_back();
  --size_;
  return last;
}

std::vector<std::pair<IValue, IValue>> DictObject::items() const {
  checkAllocation("dict.items", size() * sizeof(std::pair<IValue, IValue>));
  std::vector<std::pair<IValue, IValue>> out;
  out.reserve(size());
  for (const Entry& e : entries_) {
    if (e.hash != kTaken) out.emplace_back(e.key, e.value);
  }
  return out;
}

std::vector<IValue> DictObject::keys() const {
  checkAllocation("dict.keys", size() * sizeof(IValue));
  std::vector<IValue> out;
  out.reserve(size());
  for (const Entry& e : entries_) {
    if (e.hash != kTaken) out.push_back(e.key);
  }
  return out;
}

std::vector<IValue> DictObject::values() const {
  checkAllocation("dict.values", size() * sizeof(IValue));
  std::vector<IValue> out;
  out.reserve(size());
  for (const Entry& e : entries_) {
    if (e.hash != kTaken) out.push_back(e.value);
  }
  return out;
}

void DictObject::compact() {
  std::erase_if(entries_, [](const Entry& e) { return e.hash == kTaken; });
  if (index_.empty()) return;
  if (entries_.size() <= kFewEntries) {
    index_ = Index();
    return;
  }
  makeIndex(entries_.size());
}

}  // namespace wick

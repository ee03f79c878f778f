// Building only records edges. finish() condenses the strongly connected elements (values carried
// around a loop) and hands sets of locations up from the leaves; an element with one successor
// shares its successor's set, so that a chain of a thousand views costs one set.
#include "ir/memory_dag.h"

#include <algorithm>
#include <tuple>

#include "core/error.h"

namespace wick {

MemoryKinds memoryKindsOf(const Type& type) {
  switch (type.kind()) {
    case TypeKind::Tensor:
      return kTensorMemory;
    case TypeKind::List:
      return containedKindsOf(type) == kNoMemory ? kPlainListMemory : kListMemory;
    case TypeKind::AnyList:
      return kPlainListMemory | kListMemory;
    case TypeKind::Dict:
      return kDictMemory;
    case TypeKind::Tuple:
      return containedKindsOf(type) == kNoMemory ? kNoMemory : kTupleMemory;
    case TypeKind::AnyTuple:
      return kTupleMemory;
    case TypeKind::Class:
    case TypeKind::AnyClass:
    case TypeKind::Interface:
      return kObjectMemory;
    case TypeKind::Future:
    case TypeKind::Await:
    case TypeKind::RRef:
      return kFutureMemory;
    case TypeKind::Generator:
    case TypeKind::Storage:
    case TypeKind::Capsule:
      return kOtherMemory;
    case TypeKind::Optional:
    case TypeKind::Union:
      return containedKindsOf(type);
    case TypeKind::Any:
    case TypeKind::Var:
      return kAllMemory;
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Complex:
    case TypeKind::Bool:
    case TypeKind::String:
    case TypeKind::None:
    case TypeKind::Number:
    case TypeKind::Device:
    case TypeKind::Stream:
    case TypeKind::Enum:
    case TypeKind::AnyEnum:
    case TypeKind::Function:
      return kNoMemory;
  }
  return kAllMemory;
}

MemoryKinds containedKindsOf(const Type& type) {
  switch (type.kind()) {
    case TypeKind::List:
    case TypeKind::Dict:
    case TypeKind::Tuple:
    case TypeKind::Future:
    case TypeKind::Await:
    case TypeKind::RRef:
    case TypeKind::Optional:
    case TypeKind::Union: {
      MemoryKinds kinds = kNoMemory;
      for (const TypePtr& t : type.contained()) kinds |= memoryKindsOf(*t);
      return kinds;
    }
    case TypeKind::Tensor:
      return kNoMemory;
    default:
      return memoryKindsOf(type) == kNoMemory ? kNoMemory : kAllMemory;
  }
}

// ---- building ----

MemoryDag::MemoryDag() {
  for (size_t k = 0; k < kNumMemoryKinds; ++k) external_[k] = makeFresh(1u << k);
  any_external_ = makePointer(kAllMemory);
  Contents held;
  for (size_t k = 0; k < kNumMemoryKinds; ++k) held[k] = external_[k];
  contents_index_[any_external_] = 0;
  contents_.push_back(held);
  for (size_t k = 0; k < kNumMemoryKinds; ++k) pointTo(any_external_, external_[k]);
}

MemoryDag::Element MemoryDag::make(MemoryKinds kinds) {
  auto e = static_cast<Element>(elements_.size());
  WICK_ASSERT(e != kNone, "too many values");
  elements_.push_back({kinds, kNone, kNone, kNone, {}});
  class_parent_.push_back(e);
  contents_index_.push_back(kNone);
  return e;
}

MemoryDag::Element MemoryDag::makeFresh(MemoryKinds kinds) {
  Element e = make(kinds);
  elements_[e].own = num_locations_++;
  location_parent_.push_back(elements_[e].own);
  return e;
}

MemoryDag::Element MemoryDag::makePointer(MemoryKinds kinds) {
  return make(kinds);
}

MemoryDag::Element MemoryDag::external(MemoryKind kind) const {
  size_t k = 0;
  while ((1u << k) != kind) ++k;
  return external_[k];
}

MemoryDag::Element MemoryDag::classOf(Element e) const {
  while (class_parent_[e] != e) e = class_parent_[e] = class_parent_[class_parent_[e]];
  return e;
}

void MemoryDag::pointTo(Element from, Element to) {
  if (from == to) return;
  elements_[from].to.push_back(to);
  shareContents(from, to);
}

void MemoryDag::shareContents(Element a, Element b) {
  if ((elements_[a].kinds & kContainerMemory) != 0 &&
      (elements_[b].kinds & kContainerMemory) != 0) {
    mergeClasses(a, b);
  }
}

void MemoryDag::mergeClasses(Element a, Element b) {
  std::vector<std::pair<Element, Element>> work{{a, b}};
  while (!work.empty()) {
    std::tie(a, b) = work.back();
    work.pop_back();
    a = classOf(a);
    b = classOf(b);
    if (a == b) continue;
    if (contents_index_[a] == kNone) std::swap(a, b);
    class_parent_[b] = a;
    if (contents_index_[b] == kNone) continue;
    // Both hold something: from now on it is the same, which cycles of edges say.
    const Contents other = contents_[contents_index_[b]];
    Contents& mine = contents_[contents_index_[a]];
    for (size_t k = 0; k < kNumMemoryKinds; ++k) {
      if (other[k] == kNone) continue;
      if (mine[k] == kNone) {
        mine[k] = other[k];
      } else if (mine[k] != other[k]) {
        elements_[mine[k]].to.push_back(other[k]);
        elements_[other[k]].to.push_back(mine[k]);
        if (((1u << k) & kContainerMemory) != 0) work.emplace_back(mine[k], other[k]);
      }
    }
  }
}

MemoryDag::Element MemoryDag::contents(Element container, size_t kind) {
  Element c = classOf(container);
  if (contents_index_[c] == kNone) {
    contents_index_[c] = static_cast<uint32_t>(contents_.size());
    contents_.emplace_back().fill(kNone);
  }
  uint32_t at = contents_index_[c];
  if (contents_[at][kind] == kNone) {
    Element made = makePointer(1u << kind);
    contents_[at][kind] = made;
  }
  return contents_[at][kind];
}

void MemoryDag::store(Element container, Element value, MemoryKinds kinds) {
  if ((elements_[container].kinds & kContainerMemory) == 0) return;
  for (size_t k = 0; k < kNumMemoryKinds; ++k) {
    if (kinds & (1u << k)) pointTo(contents(container, k), value);
  }
}

void MemoryDag::load(Element into, Element container, MemoryKinds kinds) {
  if ((elements_[container].kinds & kContainerMemory) == 0) return;
  for (size_t k = 0; k < kNumMemoryKinds; ++k) {
    if (kinds & (1u << k)) pointTo(into, contents(container, k));
  }
}

void MemoryDag::escape(Element e) {
  for (size_t k = 0; k < kNumMemoryKinds; ++k) {
    if (elements_[e].kinds & (1u << k)) pointTo(external_[k], e);
  }
}

// ---- sets ----

// Computes the sets of all elements over one kind of edges.
class MemorySets {
 public:
  // Large sets are kept exactly while there is room: a few entries an element on average. Beyond
  // that the locations of a large set are no longer told apart, which keeps everything linear.
  static constexpr size_t kLargeSet = 4096;
  static constexpr size_t kSmallSet = 16;
  static constexpr size_t kEntriesPerElement = 16;

  MemorySets(MemoryDag& dag, bool contained)
      : dag_(dag),
        contained_(contained),
        room_(kEntriesPerElement * dag.elements_.size() + (size_t{1} << 16)) {}

  void run() {
    size_t n = dag_.elements_.size();
    order_.assign(n, kNone);
    low_.assign(n, 0);
    set_.assign(n, kNone);
    for (MemoryDag::Element e = 0; e < n; ++e) {
      if (order_[e] == kNone) visit(e);
    }
    for (MemoryDag::Element e = 0; e < n; ++e) {
      (contained_ ? dag_.elements_[e].reachable : dag_.elements_[e].locations) = set_[e];
    }
  }

 private:
  static constexpr uint32_t kNone = MemoryDag::kNone;
  using Element = MemoryDag::Element;

  size_t degree(Element e) const {
    size_t own = dag_.elements_[e].to.size();
    return own + (holds(e) ? kNumMemoryKinds : 0);
  }
  bool holds(Element e) const {
    return contained_ && (dag_.elements_[e].kinds & kContainerMemory) != 0 &&
           dag_.contents_index_[dag_.classOf(e)] != kNone;
  }
  // The i-th successor, or kNone for contents that are empty.
  Element successor(Element e, size_t i) const {
    const auto& to = dag_.elements_[e].to;
    if (i < to.size()) return to[i];
    return dag_.contents_[dag_.contents_index_[dag_.classOf(e)]][i - to.size()];
  }

  // Tarjan's algorithm with its own stack: chains of views may be as long as the graph.
  void visit(Element root) {
    struct Frame {
      Element e;
      size_t next;
    };
    std::vector<Frame> frames{{root, 0}};
    enter(root);
    while (!frames.empty()) {
      Frame& f = frames.back();
      if (f.next < degree(f.e)) {
        Element s = successor(f.e, f.next++);
        if (s == kNone) continue;
        if (order_[s] == kNone) {
          enter(s);
          frames.push_back({s, 0});
        } else if (set_[s] == kNone) {
          low_[f.e] = std::min(low_[f.e], order_[s]);
        }
        continue;
      }
      Element done = f.e;
      frames.pop_back();
      if (!frames.empty()) {
        low_[frames.back().e] = std::min(low_[frames.back().e], low_[done]);
      }
      if (low_[done] == order_[done]) component(done);
    }
  }

  void enter(Element e) {
    order_[e] = low_[e] = counter_++;
    stack_.push_back(e);
  }

  void component(Element root) {
    size_t first = stack_.size();
    do {
      --first;
    } while (stack_[first] != root);
    std::span<const Element> members(stack_.data() + first, stack_.size() - first);
    uint32_t set = setOf(members);
    for (Element e : members) set_[e] = set;
    stack_.resize(first);
  }

  uint32_t setOf(std::span<const Element> members) {
    std::vector<uint32_t> below;
    std::vector<MemoryDag::Location> own;
    for (Element e : members) {
      if (dag_.elements_[e].own != kNone) own.push_back(dag_.elements_[e].own);
      for (size_t i = 0; i < degree(e); ++i) {
        Element s = successor(e, i);
        if (s != kNone && set_[s] != kNone) below.push_back(set_[s]);
      }
    }
    std::sort(below.begin(), below.end());
    below.erase(std::unique(below.begin(), below.end()), below.end());
    if (own.empty() && below.size() == 1) return below[0];
    std::vector<MemoryDag::Location> all = std::move(own);
    for (uint32_t s : below) all.insert(all.end(), dag_.sets_[s].begin(), dag_.sets_[s].end());
    for (MemoryDag::Location& l : all) l = dag_.find(l);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    bool fits = all.size() <= kSmallSet || (all.size() <= kLargeSet && all.size() <= room_);
    if (!fits) {
      for (MemoryDag::Location l : all) dag_.location_parent_[l] = all[0];
      all.resize(1);
    }
    if (all.size() > kSmallSet) room_ -= all.size();
    return dag_.addSet(std::move(all));
  }

  MemoryDag& dag_;
  bool contained_;
  size_t room_;
  uint32_t counter_ = 0;
  std::vector<uint32_t> order_, low_, set_;
  std::vector<Element> stack_;
};

MemoryDag::Location MemoryDag::find(Location l) const {
  while (location_parent_[l] != l) l = location_parent_[l] = location_parent_[location_parent_[l]];
  return l;
}

uint32_t MemoryDag::addSet(std::vector<Location> set) {
  sets_.push_back(std::move(set));
  return static_cast<uint32_t>(sets_.size() - 1);
}

void MemoryDag::finish() {
  WICK_ASSERT(!finished_, "finish() is called twice");
  finished_ = true;
  MemorySets(*this, /*contained=*/false).run();
  MemorySets(*this, /*contained=*/true).run();
  normalizeSets();
}

// Locations may have been merged after a set was made.
void MemoryDag::normalizeSets() {
  for (std::vector<Location>& set : sets_) {
    for (Location& l : set) l = find(l);
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
  }
}

MemoryDag::Locations MemoryDag::locations(Element e) const {
  return sets_[elements_[e].locations];
}

MemoryDag::Locations MemoryDag::reachable(Element e) const {
  return sets_[elements_[e].reachable];
}

bool MemoryDag::intersect(Locations a, Locations b) {
  if (a.data() == b.data()) return !a.empty();
  if (a.size() > b.size()) std::swap(a, b);
  if (a.size() * 16 < b.size()) {
    return std::any_of(a.begin(), a.end(),
                       [&](Location l) { return std::binary_search(b.begin(), b.end(), l); });
  }
  auto x = a.begin();
  auto y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (*x == *y) return true;
    *x < *y ? ++x : ++y;
  }
  return false;
}

MemoryDag::Element MemoryDag::addFresh(MemoryKinds kinds) {
  WICK_ASSERT(finished_, "addFresh() before finish()");
  Element e = makeFresh(kinds);
  elements_[e].locations = elements_[e].reachable = addSet({elements_[e].own});
  return e;
}

}  // namespace wick

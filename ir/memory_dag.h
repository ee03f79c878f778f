// What may point to what: the constraint graph beneath AliasDb (ir/alias_db.h).
//
// An element stands for a Value, for what containers hold, or for memory outside of the graph. Some
// elements are memory of their own, a location. `pointTo(a, b)` says that a may be whatever b may
// be; the locations of an element are those that it reaches over such edges. Elements without edges
// are the leaves of this graph: distinct leaves are distinct memory.
//
// What a container holds is one element for each kind of memory. Containers that may be the same
// share these elements, whichever of them is stored to or loaded from: that part of the analysis
// unifies, so that building stays close to linear, while the edges between values are directed and
// keep `r` that is `a` or `b` from making `a` and `b` the same.
//
// Not synchronized.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/type.h"

namespace wick {

// Bits of the kinds of memory that values of a type can be.
enum MemoryKind : uint32_t {
  kNoMemory = 0,
  kTensorMemory = 1 << 0,
  kPlainListMemory = 1 << 1,  // a list whose elements are immutable
  kListMemory = 1 << 2,
  kDictMemory = 1 << 3,
  kObjectMemory = 1 << 4,
  kFutureMemory = 1 << 5,
  kOtherMemory = 1 << 6,  // generators, storages, capsules
  kTupleMemory = 1 << 7,  // tuples that hold any of these; immutable themselves
};
using MemoryKinds = uint32_t;
inline constexpr size_t kNumMemoryKinds = 8;
inline constexpr MemoryKinds kAllMemory = (1u << kNumMemoryKinds) - 1;
inline constexpr MemoryKinds kContainerMemory =
    kListMemory | kDictMemory | kObjectMemory | kFutureMemory | kTupleMemory;

// kNoMemory for types whose values are immutable through and through.
MemoryKinds memoryKindsOf(const Type& type);
// Of the elements of a container type: list elements, dict keys and values, tuple fields. All kinds
// for types that do not say (classes, Any).
MemoryKinds containedKindsOf(const Type& type);

class MemoryDag {
 public:
  using Element = uint32_t;
  using Location = uint32_t;
  // Sorted locations; valid until the next element is made.
  using Locations = std::span<const Location>;

  MemoryDag();

  // An element that is new memory.
  Element makeFresh(MemoryKinds kinds);
  // An element that is only what it will be made to point to.
  Element makePointer(MemoryKinds kinds);
  // Memory that exists before the graph runs or is seen by others while it runs, by kind (one bit).
  Element external(MemoryKind kind) const;
  // An element that may be any of the external memory.
  Element anyExternal() const { return any_external_; }

  void pointTo(Element from, Element to);
  // `container` comes to hold `value`, which is of `kinds`.
  void store(Element container, Element value, MemoryKinds kinds);
  // `into`, of `kinds`, may be anything of these kinds that `container` holds.
  void load(Element into, Element container, MemoryKinds kinds);
  // The two are the same container, or hold the same.
  void shareContents(Element a, Element b);
  // Others may come to see `e` and everything in it.
  void escape(Element e);
  MemoryKinds kinds(Element e) const { return elements_[e].kinds; }

  // Computes the sets below. Before it, only the functions above may be called; after it, only
  // the following ones.
  void finish();
  // What the element may be.
  Locations locations(Element e) const;
  // That, and whatever can be got out of it.
  Locations reachable(Element e) const;
  // Both are the same for two elements with equal handles.
  uint32_t reachableHandle(Element e) const { return elements_[e].reachable; }
  uint32_t locationsHandle(Element e) const { return elements_[e].locations; }
  size_t numLocations() const { return num_locations_; }
  static bool intersect(Locations a, Locations b);
  // New memory, and another element that is what `e` is, for values that a pass adds.
  Element addFresh(MemoryKinds kinds);

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Entry {
    MemoryKinds kinds;
    uint32_t own = kNone;  // the location, for memory
    uint32_t locations = kNone;
    uint32_t reachable = kNone;
    std::vector<Element> to;
  };
  // Of a class of containers that may be the same, kept at its representative.
  using Contents = std::array<Element, kNumMemoryKinds>;

  Element make(MemoryKinds kinds);
  Element classOf(Element e) const;
  void mergeClasses(Element a, Element b);
  Element contents(Element container, size_t kind);
  Location find(Location l) const;
  uint32_t addSet(std::vector<Location> set);
  void normalizeSets();
  friend class MemorySets;

  std::vector<Entry> elements_;
  mutable std::vector<Element> class_parent_;
  std::vector<uint32_t> contents_index_;  // of a representative: into contents_, or kNone
  std::vector<Contents> contents_;
  std::vector<std::vector<Location>> sets_;
  mutable std::vector<Location> location_parent_;  // locations that are no longer told apart
  std::array<Element, kNumMemoryKinds> external_{};
  Element any_external_ = 0;
  uint32_t num_locations_ = 0;
  bool finished_ = false;
};

}  // namespace wick

// ArgumentSpec: the signature of a call, by which an executor finds the plan for it.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "runtime/executor/tensor_key.h"

namespace wick {

// Where among the arguments of a function the tensors are whose properties plans may depend on:
// arguments of type Tensor or Optional[Tensor], such elements of tuples, lists of tensors (one key
// for what all elements share, so that their number builds no plan), and the attributes of modules
// that the graph reads and never sets. Immutable.
class ArgumentPlaces {
 public:
  // Of a graph with its calls inlined. At most kMaxPlaces are kept.
  explicit ArgumentPlaces(const Graph& graph);
  static constexpr size_t kMaxPlaces = 1024;
  // Elements that are looked at; of a longer list nothing is known.
  static constexpr size_t kMaxListElements = 64;

  // The number of keys of a spec.
  size_t size() const { return size_; }
  // Writes the size() keys of these arguments.
  void read(std::span<const IValue> arguments, TensorKey* keys) const;
  // Gives the inputs and attribute reads of a graph like the one that this was made of the types
  // that follow from the keys.
  void refine(Graph& graph, std::span<const TensorKey> keys) const;

 private:
  class Finder;
  class Refiner;
  enum class Kind : uint8_t { Tensor, List, Tuple, Object };
  struct Place {
    Kind kind;
    uint32_t index;  // which argument, element or slot of what encloses it
    std::vector<Place> children;
  };
  static void readPlace(const Place& place, const IValue& value, TensorKey*& out);
  static void readAbsent(const Place& place, TensorKey*& out);
  static TypePtr refinePlace(const Place& place, const TypePtr& declared,
                             std::span<Value* const> values, Refiner& refiner,
                             const TensorKey*& in);

  std::vector<Place> arguments_;
  size_t size_ = 0;
};

class ArgumentSpec {
 public:
  // Below 100 ns for ten tensors.
  ArgumentSpec(const ArgumentPlaces& places, std::span<const IValue> arguments);
  uint64_t hash() const { return hash_; }
  std::span<const TensorKey> keys() const { return {data(), size_}; }
  // Both of the same places. The default dtype of the process counts as well.
  bool operator==(const ArgumentSpec& other) const;
  // "(Float(*, *, device=cpu), None)".
  std::string str() const;

 private:
  static constexpr size_t kInline = 16;
  const TensorKey* data() const { return heap_ ? heap_.get() : inline_.data(); }
  uint64_t hash_;
  size_t size_;
  DType default_dtype_;
  std::unique_ptr<TensorKey[]> heap_;  // when they are more than kInline
  std::array<TensorKey, kInline> inline_;
};

}  // namespace wick

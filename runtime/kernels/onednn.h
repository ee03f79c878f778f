// What every use of oneDNN shares: the engine, streams, the cache of primitives, scratch memory and
// prepacked weights. Float32 goes through oneDNN, and bfloat16 where the processor multiplies it.
// Everything here is thread-safe.
#pragma once

#include <array>
#include <dnnl.hpp>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/tensor.h"
#include "runtime/kernels/activation.h"

namespace wick::onednn {

dnnl::engine& engine();
// The stream of the calling thread.
dnnl::stream& stream();
// The number of threads that a primitive made now would use; part of every key, for a primitive
// keeps it.
int64_t threadCount();

// What determines a primitive: a short sequence of integers.
class Key {
 public:
  void add(int64_t v) {
    WICK_ASSERT(size_ < values_.size(), "a primitive's key is too long");
    values_[size_++] = v;
    hash_ = (hash_ ^ static_cast<uint64_t>(v)) * 0x9e3779b97f4a7c15u;
    hash_ ^= hash_ >> 29;
  }
  void add(IntSpan values) {
    add(static_cast<int64_t>(values.size()));
    for (int64_t v : values) add(v);
  }
  uint64_t hash() const { return hash_; }
  friend bool operator==(const Key& a, const Key& b) {
    return a.size_ == b.size_ && a.hash_ == b.hash_ &&
           std::equal(a.values_.begin(), a.values_.begin() + a.size_, b.values_.begin());
  }

 private:
  std::array<int64_t, 56> values_;
  size_t size_ = 0;
  uint64_t hash_ = 0x243f6a8885a308d3u;
};

// The most recently used objects by key.
template <class T>
class Cache {
 public:
  explicit Cache(size_t capacity) : capacity_(capacity) {}

  // The object for `key`; make() builds a missing one outside the lock, so two threads may build
  // the same, of which one is kept.
  template <class Make>
  std::shared_ptr<T> get(const Key& key, Make&& make) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (auto it = index_.find(key); it != index_.end()) {
        order_.splice(order_.begin(), order_, it->second);
        return it->second->second;
      }
    }
    std::shared_ptr<T> made = make();
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = index_.find(key); it != index_.end()) return it->second->second;
    order_.emplace_front(key, made);
    index_.emplace(key, order_.begin());
    if (order_.size() > capacity_) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    return made;
  }

 private:
  struct KeyHash {
    size_t operator()(const Key& k) const { return k.hash(); }
  };
  using Order = std::list<std::pair<Key, std::shared_ptr<T>>>;
  const size_t capacity_;
  std::mutex mutex_;
  Order order_;
  std::unordered_map<Key, typename Order::iterator, KeyHash> index_;
};

// Scratch memory of the calling thread, valid until the thread asks again.
void* scratchpad(size_t bytes);

// `weight` in the layout `wanted`; `plain` describes its memory as it is. The packed copy is kept
// with the weight's storage until the storage dies or is written to.
std::shared_ptr<dnnl::memory> packWeight(const Tensor& weight, const dnnl::memory::desc& plain,
                                         const dnnl::memory::desc& wanted);

// Packs a matrix whose first dimension lies side by side into blocks of rows of 16 (oneDNN's
// BA16a64b and its kin); false for all other layouts, and nothing is done. Sizes are those of the
// descriptions.
bool packTransposed(const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted,
                    const float* from, float* to);

// Makes a primitive apply the activation to its result. Relu and relu6 take NaN for zero
// there, and gelu's error was 2e-7 where it was looked at.
void appendActivation(dnnl::post_ops& ops, Activation activation);

// A description of memory with these sizes and strides, of a dtype that oneDNN computes.
dnnl::memory::desc describe(IntSpan sizes, IntSpan strides, DType dtype = DType::Float);

// Runs f; an error that oneDNN throws becomes a RuntimeError that begins with `op`.
template <class F>
decltype(auto) guarded(const char* op, F&& f) {
  try {
    return f();
  } catch (const dnnl::error& e) {
    throwRuntimeError("{}: oneDNN refused: {}", op, e.what());
  }
}

}  // namespace wick::onednn

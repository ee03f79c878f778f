// What every use of oneDNN shares: the engine, streams, the cache of primitives, scratch memory and
// prepacked weights. Float32 goes through oneDNN, and bfloat16 where the processor multiplies it.
// Everything here is thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <dnnl.hpp>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core/error.h"
#include "core/tensor.h"
#include "runtime/kernels/convolution.h"

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

// The most recently used objects by key. Each thread has some of those that it used lately to
// itself, so that finding them takes no lock. There may be one cache of a type T.
template <class T>
class Cache {
 public:
  explicit Cache(size_t capacity) : capacity_(capacity) {}

  // The object for `key`, valid until the calling thread asks again; make() builds a missing one
  // outside the lock, so two threads may build the same, and one of the two is kept.
  template <class Make>
  const T& get(const Key& key, Make&& make) {
    thread_local Recent recent;
    std::unique_ptr<Used>& used = recent[key.hash() % recent.size()];
    if (!used || !(used->key == key)) {
      used.reset(new Used{key, getShared(key, std::forward<Make>(make))});
    }
    return *used->object;
  }

 private:
  struct Used {
    Key key;
    std::shared_ptr<T> object;
  };
  using Recent = std::array<std::unique_ptr<Used>, 128>;

  template <class Make>
  std::shared_ptr<T> getShared(const Key& key, Make&& make) {
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

// A weight in another layout.
class PackedWeight {
 public:
  explicit PackedWeight(const dnnl::memory& kept) : memory_(&kept) {}
  explicit PackedWeight(std::shared_ptr<dnnl::memory> own)
      : memory_(own.get()), own_(std::move(own)) {}
  const dnnl::memory& memory() const { return *memory_; }

 private:
  const dnnl::memory* memory_;
  std::shared_ptr<dnnl::memory> own_;
};

// `weight` in the layout `wanted`; `plain` describes its memory as it is. The packed copy is kept
// with the weight's storage and valid as long as that is; when the weight was written to, it is
// packed anew into the same memory. Threads that find it share no lock.
PackedWeight packWeight(const Tensor& weight, const dnnl::memory::desc& plain,
                        const dnnl::memory::desc& wanted);

// What a primitive is given. Refers to the memory objects, whose counts threads would share.
class Arguments {
 public:
  void add(int index, const dnnl::memory& memory) {
    WICK_ASSERT(size_ < list_.size(), "a primitive has too many arguments");
    list_[size_++] = {index, memory.get()};
  }
  // On the calling thread's stream; dnnl::error when the primitive refuses.
  void execute(const dnnl::primitive& primitive) const;

 private:
  std::array<dnnl_exec_arg_t, 8> list_;
  size_t size_ = 0;
};

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

// Strides of a dense [N, C, spatial…] tensor whose channels are innermost.
DimVector channelsInnermost(IntSpan sizes);
// `t` itself or a copy, with these strides where a dimension has several elements.
Tensor toChannelsInnermost(const Tensor& t);

// The padding after the last element of a convolution that makes the sizes come out even: a stride may
// leave elements at the end unread, and a transposed output ends where its size says.
DimVector evenPadding(const Tensor& weight, const ConvolutionParams& params, IntSpan input,
                      IntSpan output);
// Whether a residual lies in the result's memory and is added there. oneDNN's fastest kernels do
// that, and only slower ones add another tensor. Copying the residual there costs less than that,
// except for kernels of a single point, which are fast in both ways.
bool addsInResult(const Tensor& weight);

// What oneDNN calls the kernel that it computes a convolution with, "jit:avx2". The tensors of the
// images, whose channels lie innermost, have these sizes.
std::string kernelOfConvolution(const Tensor& weight, bool has_bias,
                                const ConvolutionParams& params, bool has_residual,
                                Activation activation, IntSpan input, IntSpan output);

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

// How a product of matrices is computed on the CPU, by its shapes and layouts alone. The kernels
// (gemm.cpp) and whoever compiles products ahead of time (aot/) choose by these functions.
namespace wick::products {

// Multiplications below which smallgemm beats oneDNN, measured on 64-wide layers.
inline constexpr int64_t kSmallWork = 64 * 64 * 8;
// Rows up to which a product is bound by reading the weight once.
inline constexpr int64_t kFewRows = 4;
// A product of so many multiplications takes ten microseconds on one core: what a second thread
// saves, waking it costs, and more when the processors are busy.
inline constexpr int64_t kOneThreadWork = int64_t{1} << 20;

inline bool isRowMajor(const Tensor& t) {
  return (t.stride(-1) == 1 || t.size(-1) == 1) && (t.stride(-2) >= t.size(-1) || t.size(-2) == 1);
}

// Whether one of the last two strides is 1 and the other spans its row, as BLAS interfaces want it.
inline bool isMatrix(const Tensor& t) {
  const int64_t rows = t.size(-2), down = t.stride(-2), across = t.stride(-1);
  const bool column_major = (down == 1 || rows == 1) && (across >= rows || t.size(-1) == 1);
  return isRowMajor(t) || column_major;
}

inline int64_t leading(const Tensor& t, bool row_major) {
  const int64_t d = row_major ? t.stride(-2) : t.stride(-1);
  const int64_t extent = row_major ? t.size(-1) : t.size(-2);
  return std::max({d, extent, int64_t{1}});
}

inline int64_t batchStride(const Tensor& t) {
  return t.size(0) == 1 ? 0 : t.stride(0);
}

// An expanded batch as what it is: one matrix. oneDNN knows no zero strides.
inline Tensor collapseBatch(const Tensor& t) {
  return t.size(0) > 1 && t.stride(0) == 0 ? t.narrow(0, 0, 1) : t;
}

// Multiplications of a product. A product without elements may have sizes that no integer holds the
// product of.
inline double workOf(int64_t m, int64_t n, int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}

// Whether a library that computes this dtype multiplies so much of it; less is done by smallgemm, in
// float32.
inline bool isLibraryWork(DType dtype, int64_t m, int64_t n, int64_t k, int64_t batches) {
  return workOf(m, n, k) > kSmallWork && (dtype != DType::Float || m > kFewRows || batches > 1);
}

// Whether the product of a [B, M, K] and b [B, K, N] is one of rows and a vector. It reads each
// element once, for which the library is slow.
inline bool isByVector(const Tensor& a, const Tensor& b) {
  return a.dtype() == DType::Float && b.size(2) == 1 && isRowMajor(a);
}

}  // namespace wick::products

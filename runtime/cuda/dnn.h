// cuDNN's graph of operations, as far as the engine uses it: descriptors, the choice of an engine for
// a graph, and its execution. The numbers are the library's own (cudnn_graph.h of version 9).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "core/tensor.h"
#include "runtime/cuda/device.h"

namespace wick::cuda::dnn {

// What a descriptor describes.
enum class Kind : int {
  Pointwise = 0,
  Convolution = 1,
  Engine = 2,
  EngineChoice = 3,
  Heuristic = 4,
  Plan = 5,
  ConvolutionForward = 10,
  ConvolutionWeights = 11,
  ConvolutionImages = 12,
  PointwiseCall = 13,
  Graph = 15,
  Arguments = 16,
  Tensor = 17,
};

// Of the values of an attribute.
enum class ValueType : int {
  Handle = 0,
  DataType = 1,
  Bool = 2,
  Int = 3,
  Float = 4,
  Double = 5,
  Pointer = 6,
  ConvolutionMode = 7,
  HeuristicMode = 8,
  Note = 11,
  PointwiseMode = 14,
  Descriptor = 15,
};

enum class Attribute : int {
  PointwiseMode = 0,
  PointwisePrecision = 1,
  ConvolutionPrecision = 100,
  ConvolutionMode = 101,
  ConvolutionDilations = 102,
  ConvolutionStrides = 103,
  ConvolutionPaddingAfter = 104,
  ConvolutionPaddingBefore = 105,
  ConvolutionDimensions = 106,
  HeuristicMode = 200,
  HeuristicGraph = 201,
  HeuristicResults = 202,
  ChoiceEngine = 300,
  PlanHandle = 400,
  PlanChoice = 401,
  PlanWorkspace = 402,
  // Of the three calls of convolutions; each has alpha, beta, the convolution and three tensors.
  ForwardAlpha = 700,
  ImagesAlpha = 706,
  WeightsAlpha = 712,
  PointwiseDescriptor = 750,
  PointwiseX = 751,
  PointwiseB = 752,
  PointwiseY = 753,
  GraphHandle = 800,
  GraphOperations = 801,
  TensorAlignment = 900,
  TensorType = 901,
  TensorSizes = 902,
  TensorStrides = 903,
  TensorId = 906,
  TensorIsVirtual = 907,
  ArgumentsIds = 1000,
  ArgumentsPointers = 1001,
  ArgumentsWorkspace = 1003,
  EngineNotes = 1303,
};

inline constexpr int kAdd = 0, kRelu = 100;  // modes of Pointwise

// The number of a dtype; throws RuntimeError that names the operator for others than floats.
int typeOf(const char* op, DType type);

// One descriptor of the library.
class Descriptor {
 public:
  Descriptor(const char* op, Kind kind);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;

  void set(Attribute attribute, ValueType type, int64_t count, const void* values);
  void set(Attribute attribute, std::span<const int64_t> values) {
    set(attribute, ValueType::Int, static_cast<int64_t>(values.size()), values.data());
  }
  void set(Attribute attribute, const Descriptor& value) {
    set(attribute, ValueType::Descriptor, 1, &value.made_);
  }
  // Throws RuntimeError that names the operator.
  void finalize();
  // False where the library does not support what is described.
  bool tryFinalize();
  // Fills up to `count` values and returns how many there are.
  int64_t get(Attribute attribute, ValueType type, int64_t count, void* values) const;
  void* raw() const { return made_; }

 private:
  const char* op_;
  void* made_ = nullptr;
};

// Describes a tensor for a graph; `virtual_` ones are never in memory. `id` tells it apart.
Descriptor describe(const char* op, int64_t id, int type, IntSpan sizes, IntSpan strides,
                    int64_t alignment, bool is_virtual);

// One at a time: a handle is for one thread.
struct Handle {
  std::mutex mutex;
  void* raw = nullptr;
};
Handle& handleOf(const char* op, CudaDevice& device);

// A graph with the engine that runs it.
class Plan {
 public:
  // Null when no engine is fit: deterministic, with at most 1 GiB of workspace and, unless
  // `may_reduce`, without factors of fewer bits than the tensors have. The handle's mutex must be
  // held.
  static std::unique_ptr<Plan> make(const char* op, Handle& handle,
                                    std::span<const Descriptor* const> operations, bool may_reduce);
  // Queues it on the thread's stream. `pointers` belong to the ids. The handle's mutex must be held.
  void run(const char* op, Handle& handle, Device device, std::span<const int64_t> ids,
           std::span<void* const> pointers) const;

 private:
  explicit Plan(Descriptor plan) : plan_(std::move(plan)) {}
  Descriptor plan_;
  int64_t workspace_ = 0;
};

}  // namespace wick::cuda::dnn

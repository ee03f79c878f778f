#include "runtime/cuda/convolution.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/error.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/library.h"

namespace wick::cuda {

namespace {

constexpr const char* kNames[] = {"libcudnn.so.9", "libcudnn.so"};
constexpr size_t kMostWorkspace = size_t{1} << 30;

using Status = int;
// The library's own numbers.
constexpr int kFloat = 0, kDouble = 1, kHalf = 2, kBFloat16 = 9;
constexpr int kRowMajor = 0, kChannelsLast = 1;
constexpr int kCrossCorrelation = 1;
constexpr int kTensorMath = 1, kPlainMath = 3;
struct Choice {
  int algorithm;
  Status status;
  float time;
  size_t memory;
  int determinism;
  int math;
  int reserved[3];
};

#define WICK_FORALL_DNN_FUNCTIONS(_)                                                             \
  _(create, "cudnnCreate", (void** handle))                                                      \
  _(setStream, "cudnnSetStream", (void* handle, Stream stream))                                  \
  _(createTensor, "cudnnCreateTensorDescriptor", (void** tensor))                                \
  _(destroyTensor, "cudnnDestroyTensorDescriptor", (void* tensor))                               \
  _(setTensor, "cudnnSetTensorNdDescriptor",                                                     \
    (void* tensor, int type, int dims, const int* sizes, const int* strides))                    \
  _(createFilter, "cudnnCreateFilterDescriptor", (void** filter))                                \
  _(destroyFilter, "cudnnDestroyFilterDescriptor", (void* filter))                               \
  _(setFilter, "cudnnSetFilterNdDescriptor",                                                     \
    (void* filter, int type, int format, int dims, const int* sizes))                            \
  _(createConvolution, "cudnnCreateConvolutionDescriptor", (void** convolution))                 \
  _(destroyConvolution, "cudnnDestroyConvolutionDescriptor", (void* convolution))                \
  _(setConvolution, "cudnnSetConvolutionNdDescriptor",                                           \
    (void* convolution, int dims, const int* padding, const int* stride, const int* dilation,    \
     int mode, int compute))                                                                     \
  _(setGroups, "cudnnSetConvolutionGroupCount", (void* convolution, int groups))                 \
  _(setMath, "cudnnSetConvolutionMathType", (void* convolution, int math))                       \
  _(chooseForward, "cudnnGetConvolutionForwardAlgorithm_v7",                                     \
    (void* handle, void* x, void* w, void* convolution, void* y, int most, int* count,           \
     Choice* choices))                                                                           \
  _(forwardWorkspace, "cudnnGetConvolutionForwardWorkspaceSize",                                 \
    (void* handle, void* x, void* w, void* convolution, void* y, int algorithm, size_t* bytes))  \
  _(forward, "cudnnConvolutionForward",                                                          \
    (void* handle, const void* alpha, void* x, const void* x_data, void* w, const void* w_data,  \
     void* convolution, int algorithm, void* workspace, size_t bytes, const void* beta, void* y, \
     void* y_data))                                                                              \
  _(chooseBackward, "cudnnGetConvolutionBackwardDataAlgorithm_v7",                               \
    (void* handle, void* w, void* y, void* convolution, void* x, int most, int* count,           \
     Choice* choices))                                                                           \
  _(backwardWorkspace, "cudnnGetConvolutionBackwardDataWorkspaceSize",                           \
    (void* handle, void* w, void* y, void* convolution, void* x, int algorithm, size_t* bytes))  \
  _(backward, "cudnnConvolutionBackwardData",                                                    \
    (void* handle, const void* alpha, void* w, const void* w_data, void* y, const void* y_data,  \
     void* convolution, int algorithm, void* workspace, size_t bytes, const void* beta, void* x, \
     void* x_data))

struct Functions {
#define WICK_DNN_FUNCTION(member, name, parameters) Status(*member) parameters = nullptr;
  WICK_FORALL_DNN_FUNCTIONS(WICK_DNN_FUNCTION)
#undef WICK_DNN_FUNCTION
  const char* (*errorText)(Status) = nullptr;
};

void find(const Library& library, Functions& functions) {
#define WICK_DNN_FUNCTION(member, name, parameters) \
  functions.member = reinterpret_cast<Status(*) parameters>(library.find(name));
  WICK_FORALL_DNN_FUNCTIONS(WICK_DNN_FUNCTION)
#undef WICK_DNN_FUNCTION
  functions.errorText =
      reinterpret_cast<const char* (*)(Status)>(library.find("cudnnGetErrorString"));
}
const Functions& functions() {
  static const auto& found = *new LibraryFunctions<Functions>(kNames, find);
  return found.get();
}

void checkStatus(Status status, const char* op) {
  WICK_CHECK(status == 0, "{}: cuDNN: {}", op, functions().errorText(status));
}

class Descriptor {
 public:
  Descriptor(const char* op, Status (*create)(void**), Status (*destroy)(void*))
      : destroy_(destroy) {
    checkStatus(create(&made_), op);
  }
  ~Descriptor() { destroy_(made_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void* get() const { return made_; }

 private:
  void* made_ = nullptr;
  Status (*destroy_)(void*);
};

int typeOf(const char* op, DType type) {
  switch (type) {
    case DType::Float:
      return kFloat;
    case DType::Double:
      return kDouble;
    case DType::Half:
      return kHalf;
    case DType::BFloat16:
      return kBFloat16;
    default:
      throwRuntimeError("{}: no convolution of {} tensors on CUDA devices", op, toString(type));
  }
}

std::vector<int> narrowed(const char* op, IntSpan values) {
  std::vector<int> narrow;
  for (const int64_t v : values) {
    WICK_CHECK(v >= 0 && v <= INT32_MAX, "{}: a size of {} is too large", op, v);
    narrow.push_back(static_cast<int>(v));
  }
  return narrow;
}

// One at a time: a handle is for one thread.
struct State {
  std::mutex mutex;
  void* handle = nullptr;
  std::map<std::vector<int>, int> chosen;
};
State& stateOf(const char* op, CudaDevice& device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& states = *new std::map<const CudaDevice*, std::unique_ptr<State>>;
  std::lock_guard lock(mutex);
  std::unique_ptr<State>& slot = states[&device];
  if (!slot) {
    auto made = std::make_unique<State>();
    checkStatus(functions().create(&made->handle), op);
    slot = std::move(made);
  }
  return *slot;
}

// What the choice of an algorithm depends on.
struct Key {
  std::vector<int> words;
  void add(std::span<const int> more) {
    words.push_back(static_cast<int>(more.size()));
    words.insert(words.end(), more.begin(), more.end());
  }
};

// Images of one dimension are rows of images of two.
Tensor widened(const Tensor& t) {
  return t.dim() == 3 ? t.unsqueeze(2) : t;
}
DimVector widened(const DimVector& v, int64_t before) {
  if (v.size() != 1) return v;
  return DimVector{before, v[0]};
}

}  // namespace

Tensor convolve(const char* op, const Tensor& given_input, const Tensor& given_weight,
                const ConvolutionParams& params, IntSpan output_size, bool channels_last) {
  const Functions& f = functions();
  const bool flat = given_input.dim() == 3;
  const int dims = flat ? 4 : static_cast<int>(given_input.dim());
  const MemoryFormat format = !channels_last || flat ? MemoryFormat::Contiguous
                              : dims == 4            ? MemoryFormat::ChannelsLast
                                                     : MemoryFormat::ChannelsLast3d;
  const Tensor input = widened(given_input).contiguous(format);
  const Tensor weight = widened(given_weight).contiguous(format);
  DimVector sizes(output_size);
  if (flat) sizes.insert(2, 1);
  const Tensor out = Tensor::empty(sizes, input.dtype(), input.device(), format);
  const auto result = [&] { return flat ? out.squeeze(2) : out; };
  if (out.numel() == 0) return result();
  if (input.numel() == 0 || weight.numel() == 0) {
    out.fill(0);
    return result();
  }
  CudaDevice& device = enter(input.device());
  const int type = typeOf(op, input.dtype());
  const int compute = input.dtype() == DType::Double ? kDouble : kFloat;
  Descriptor x(op, f.createTensor, f.destroyTensor), y(op, f.createTensor, f.destroyTensor);
  Descriptor w(op, f.createFilter, f.destroyFilter);
  Descriptor convolution(op, f.createConvolution, f.destroyConvolution);
  Key key;
  const auto describe = [&](const Descriptor& descriptor, const Tensor& t) {
    const std::vector<int> extents = narrowed(op, t.sizes()), steps = narrowed(op, t.strides());
    key.add(extents);
    key.add(steps);
    checkStatus(f.setTensor(descriptor.get(), type, dims, extents.data(), steps.data()), op);
  };
  describe(x, input);
  describe(y, out);
  const std::vector<int> kernel = narrowed(op, weight.sizes());
  key.add(kernel);
  const int layout = format == MemoryFormat::Contiguous ? kRowMajor : kChannelsLast;
  checkStatus(f.setFilter(w.get(), type, layout, dims, kernel.data()), op);
  const std::vector<int> padding = narrowed(op, widened(params.padding, 0));
  const std::vector<int> stride = narrowed(op, widened(params.stride, 1));
  const std::vector<int> dilation = narrowed(op, widened(params.dilation, 1));
  key.add(padding);
  key.add(stride);
  key.add(dilation);
  const int rest[] = {type, layout, static_cast<int>(params.groups), params.transposed};
  key.add(rest);
  checkStatus(f.setConvolution(convolution.get(), dims - 2, padding.data(), stride.data(),
                               dilation.data(), kCrossCorrelation, compute),
              op);
  checkStatus(f.setGroups(convolution.get(), static_cast<int>(params.groups)), op);
  // Float32 stays float32: no factors of fewer bits.
  const int math = isReducedFloat(input.dtype()) ? kTensorMath : kPlainMath;
  checkStatus(f.setMath(convolution.get(), math), op);

  State& state = stateOf(op, device);
  std::lock_guard lock(state.mutex);
  checkStatus(f.setStream(state.handle, currentStream()), op);
  const auto it = state.chosen.find(key.words);
  int algorithm = it == state.chosen.end() ? -1 : it->second;
  if (algorithm < 0) {
    std::array<Choice, 10> choices{};
    int count = 0;
    // A transposed convolution is the gradient of the images of an ordinary one.
    checkStatus(params.transposed
                    ? f.chooseBackward(state.handle, w.get(), x.get(), convolution.get(), y.get(),
                                       static_cast<int>(choices.size()), &count, choices.data())
                    : f.chooseForward(state.handle, x.get(), w.get(), convolution.get(), y.get(),
                                      static_cast<int>(choices.size()), &count, choices.data()),
                op);
    for (int i = 0; i < count && algorithm < 0; ++i) {
      const Choice& choice = choices[static_cast<size_t>(i)];
      const bool right = choice.status == 0 && choice.memory <= kMostWorkspace;
      if (right &&
          (isReducedFloat(input.dtype()) || choice.math == kPlainMath || choice.math == 0)) {
        algorithm = choice.algorithm;
      }
    }
    WICK_CHECK(algorithm >= 0, "{}: cuDNN has no algorithm for {} and {}", op, input.describe(),
               weight.describe());
    state.chosen.emplace(key.words, algorithm);
  }
  size_t bytes = 0;
  checkStatus(
      (params.transposed ? f.backwardWorkspace : f.forwardWorkspace)(
          state.handle, params.transposed ? w.get() : x.get(),
          params.transposed ? x.get() : w.get(), convolution.get(), y.get(), algorithm, &bytes),
      op);
  const Ref<Storage> workspace = Storage::allocate(bytes, input.device());
  const double one = 1, zero = 0;
  const float one32 = 1, zero32 = 0;
  const bool wide = compute == kDouble;
  const void* const alpha = wide ? static_cast<const void*>(&one) : &one32;
  const void* const beta = wide ? static_cast<const void*>(&zero) : &zero32;
  const Status status = params.transposed
                            ? f.backward(state.handle, alpha, w.get(), weight.rawData(), x.get(),
                                         input.rawData(), convolution.get(), algorithm,
                                         workspace->data(), bytes, beta, y.get(), out.rawData())
                            : f.forward(state.handle, alpha, x.get(), input.rawData(), w.get(),
                                        weight.rawData(), convolution.get(), algorithm,
                                        workspace->data(), bytes, beta, y.get(), out.rawData());
  checkStatus(status, op);
  noteLaunch("a convolution");
  return result();
}

}  // namespace wick::cuda

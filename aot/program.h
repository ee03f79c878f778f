// A compiled model before it is written: buffers, and steps that compute one from others.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/cpp/kernel_text.h"
#include "core/tensor.h"
#include "runtime/kernels/activation.h"

namespace wick::aot {

// Where something lies: so many bytes behind the beginning of a buffer.
struct Place {
  uint32_t buffer = 0;
  int64_t offset = 0;
};

struct Buffer {
  enum class Kind : uint8_t {
    Temporary,  // memory of the call
    Input,      // argument `index` of the call
    Constant,   // known already: `data`
    Window,     // a part of another buffer, which a WindowStep chooses
  };
  size_t bytes = 0;
  Kind kind = Kind::Temporary;
  uint32_t index = 0;
  Tensor data{};             // on the CPU, dense, and as large as the buffer
  bool written = false;      // by some step
  bool read_before = false;  // before the first step that writes it
  // The number of the innermost loop that makes it anew in each round, 0 for none.
  uint32_t loop = 0;
  bool swapped = false;  // by a SwapStep
  bool copied = false;   // a constant whose contents the program copied there
};

// One kernel of the loop IR.
struct KernelStep {
  std::shared_ptr<const loop::Kernel> kernel;
  codegen::CppWalk walk;
  std::vector<Place> places;  // of each access; those of positions have none
  std::vector<uint64_t> numbers;
  // What the call ends with where a check of the kernel does not hold; "": that an index is out of range.
  std::string complaint{};
};

// A product that smallgemm computes (runtime/kernels/small_gemm_blocks.h), for each matrix of a batch.
struct SmallProductStep {
  bool transposed = false;  // b is [n, k] rather than [k, n]
  int64_t batches = 1, m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  int64_t a_step = 0, b_step = 0, c_step = 0;  // from matrix to matrix, in elements
  Place a, b, c;
  std::optional<Place> bias;
};

// The same of any dtype, element by element; strides are of batch, rows and columns.
struct PlainProductStep {
  DType dtype = DType::Double;
  int64_t batches = 1, m = 0, n = 0, k = 0;
  std::array<int64_t, 3> a_strides{}, b_strides{};
  Place a, b, c;
  std::optional<Place> bias;
};

// Sizes and strides of what a library reads or writes.
struct Layout {
  DimVector sizes, strides;
};

// A convolution or product of a library: oneDNN, or for CUDA cuBLASLt and cuDNN. A weight that is constant is packed beforehand.
struct LibraryStep {
  enum class Kind : uint8_t { Convolution, Transposed, Product };
  enum class Residual : uint8_t { None, InResult, Apart };
  Kind kind = Kind::Product;
  DType dtype = DType::Float;
  Layout source, weight, result;
  DimVector stride, dilation, padding, padding_after;  // of convolutions; one entry a dimension
  Activation activation = Activation::None;
  Residual residual = Residual::None;
  bool one_thread = false;
  bool reduces = false;  // of devices: whether factors of float32 may be rounded to TF32
  Place from, weights, to;
  bool packs = false;
  // How the weight lies when it is packed already (pack_weights.h): sizes of blocks, and which dimensions they divide.
  struct Blocks {
    DimVector sizes, dims;
  } blocks;
  std::optional<Place> bias, addend;
};

// A convolution that wick_aot::convolve computes (aot/runtime/wick_aot_convolution.h), over images whose
// channels lie innermost. `weights` are packed as is told there. By Winograd's method (wick_aot_winograd.h) there is
// `scratch`, for `tiles_at_once`.
struct ConvolutionStep {
  int64_t samples = 1, groups = 1;
  std::array<int64_t, 2> input{1, 1}, result{1, 1}, kernel{1, 1}, stride{1, 1}, dilation{1, 1},
      padding{0, 0};
  int64_t in_channels = 1, out_channels = 1;
  bool residual_first = false;
  Activation activation = Activation::None;  // none, relu, relu6
  Place from, weights, to;
  std::optional<Place> bias, residual, scratch;
  int64_t tiles_at_once = 0;
};

// Pooling over windows that are listed for each of three dimensions.
struct PoolStep {
  struct Axis {
    int64_t input = 1, step = 1;
    std::vector<int64_t> begin, end, span;
    friend bool operator==(const Axis&, const Axis&) = default;
  };
  bool average = false;
  bool channels_last = false;
  DType dtype = DType::Float;
  int64_t samples = 1, channels = 1;
  std::array<Axis, 3> axes;
  Place from, to;
  std::optional<Place> indices;  // of maxima
  bool count_padding = false;    // of averages, like the next two
  std::optional<int64_t> divisor{};
  bool shares_rows = false;  // whether the rows of windows are added up first
};

// Writes zeros, or the contents of a constant buffer, over a whole buffer.
struct FillStep {
  Place to;
  std::optional<Place> from;
};

// The steps up to the Otherwise that belongs to it run when an element of a boolean tensor is true, those
// from there to the End when it is false.
struct BranchStep {
  Place condition;
};
struct OtherwiseStep {};
struct EndStep {};

// The program raises.
struct RaiseStep {
  std::string message;
};

// The steps up to the EndStep that belongs to it run once a round, `rounds` times or as often as the
// number at `told_rounds` says, and while the element of a boolean tensor is true, which is looked at before each round.
struct LoopStep {
  uint32_t number = 0;
  int64_t rounds = 0;
  std::optional<Place> told_rounds, condition;
  Place round;                      // gets the number of the round, an int64
  std::vector<uint32_t> swapped{};  // buffers that its SwapSteps exchange
};
// Exchanges the contents of two buffers of one size, at the end of a round.
struct SwapStep {
  uint32_t carried, next;
};
// Places a window: `bytes` times the int64 at `index` behind `from`. An index outside of [-size, size) is an error;
// from the end when it is negative.
struct WindowStep {
  uint32_t window;
  Place from, index;
  int64_t bytes = 0, size = 0;
};

// Numbers of int64 or float64 from others, by a function of wick_aot (wick_aot_numbers.h).
struct NumberStep {
  struct Operand {
    Place place;
    DType dtype = DType::Long;
  };
  std::string function;
  DType computed = DType::Long;  // what it takes: int64 or float64
  std::vector<Operand> from;
  Operand to;
};

// A function of wick_aot that moves, orders or counts elements (wick_aot_elements.h). It is given pointers, then
// numbers.
struct FunctionStep {
  enum class How : uint8_t { Reads, Writes, Changes };
  struct Operand {
    std::optional<Place> place;  // none: null
    DType dtype = DType::Float;
    How how = How::Reads;
    size_t bytes = 0;  // when it is not 0: elements are words of so many bytes, whatever they mean
  };
  std::string function;  // with its arguments as a template
  std::vector<Operand> operands;
  std::vector<int64_t> numbers;
  std::string complaint{};  // what the call ends with when it returns false; "": it returns nothing
};

// A kernel of a device that is written as text (runtime/cuda/text_kernel.h): it is given addresses, then numbers.
struct DeviceKernelStep {
  std::string text;
  std::string kernel;  // its name in the text
  int64_t points = 0;
  std::vector<FunctionStep::Operand> operands;
  std::vector<int64_t> numbers;
};

// From here on the program depends on a size that is known now: the int64 at `count`, from 0 to `most`. What follows, up to the
// end of the block around it, is a part of its own (aot/family.h).
struct SizeStep {
  Place count;
  int64_t most = 0;
  std::string by;  // whose size it is
  // Of the part that begins here: the answers so far, "s" for a size, "t" and "f" for conditions.
  std::string key;
};
// Tells the caller the sizes of results.
struct ResultSizesStep {
  std::vector<DimVector> sizes;
};

struct Step {
  std::variant<KernelStep, SmallProductStep, PlainProductStep, LibraryStep, ConvolutionStep,
               PoolStep, FillStep, BranchStep, OtherwiseStep, EndStep, RaiseStep, LoopStep,
               SwapStep, WindowStep, NumberStep, FunctionStep, DeviceKernelStep, SizeStep,
               ResultSizesStep>
      what;
  std::string name;   // "fused_mul_add", "conv2d"
  bool kept = false;  // whether it runs even when nobody seems to need it
};

// A tensor among the arguments or results of a call.
struct TensorSlot {
  std::string name;
  DType dtype = DType::Float;
  Layout layout;
  Place place;
  // Of a result whose sizes elements decide: the largest ones, and a bit for each dimension that they decide.
  DimVector most{};
  uint32_t decided = 0;
};

// Of a result the largest ones.
const DimVector& sizesOf(const TensorSlot& slot);

// A size that elements decide: from 0 to `most`.
struct SizeAsk {
  std::string by;
  int64_t most = 0;
};

// Values of such sizes that a recording is for, in order; those behind them are 0. With `refused` the size of this number has
// too many values, together with those before it.
struct DecidedSizes {
  std::vector<int64_t> values{};
  std::optional<size_t> refused{};
  int64_t most = 64;  // of those for which the program tells no bound
};

struct Program {
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<TensorSlot> inputs, outputs;
  // Further buffers of results, which have other sizes: buffer and number of the result.
  std::vector<std::pair<uint32_t, uint32_t>> alternates{};
  // Sizes that elements decide, in order. The program is that of some values of them, and `again` records that of others.
  // Where it has no outputs it raises.
  std::vector<SizeAsk> asks{};
  std::function<Program(const DecidedSizes&)> again{};
};

// The buffers that a step touches; `written` tells reads and writes apart. A buffer that is both is
// listed twice.
struct Use {
  uint32_t buffer;
  bool written;
};
std::vector<Use> usesOf(const Step& step);

// The same for all steps of a program: what a step does with a window it does with the whole, too.
std::vector<std::vector<Use>> usesWithWholes(const Program& program);

// Puts other buffers into a step; those that are not in the map stay.
void renameBuffers(Step& step, const std::unordered_map<uint32_t, uint32_t>& names);

}  // namespace wick::aot

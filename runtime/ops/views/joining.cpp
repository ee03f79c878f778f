// Operators that put tensors together or rearrange their elements: cat, stack, repeat, roll, flip,
// pixel and channel shuffles.
#include <cmath>

#include "core/paced.h"
#include "core/parallel.h"
#include "runtime/kernels/remap.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

// A one-dimensional tensor without elements joins anything, as it did before shapes were checked.
bool isSkipped(const Tensor& t) {
  return t.dim() == 1 && t.sizes()[0] == 0;
}

// `count` blocks that stand one behind the other, to places `pitch` bytes apart; by threads where
// they are many bytes.
void copyBlocks(char* to, int64_t pitch, const char* from, int64_t block, int64_t count) {
  constexpr int64_t kGrain = int64_t{1} << 18;  // bytes
  parallelFor(block * count, kGrain, [&](int64_t begin, int64_t end) {
    char* row = to + begin / block * pitch;
    int64_t offset = begin % block;
    for (int64_t at = begin; at < end; row += pitch, offset = 0) {
      const int64_t n = std::min(block - offset, end - at);
      copyBytes(row + offset, from + at, static_cast<size_t>(n));
      at += n;
    }
  });
}

Tensor cat(std::vector<Tensor> tensors, int64_t dim, Out out) {
  WICK_CHECK(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
  const Tensor* shape_of = nullptr;
  DType dtype = tensors[0].dtype();
  for (size_t i = 0; i < tensors.size(); ++i) {
    WICK_CHECK(tensors[i].dim() > 0,
               "zero-dimensional tensor (at position {}) cannot be concatenated", i);
    dtype = promoteTypes(dtype, tensors[i].dtype());
    if (!shape_of && !isSkipped(tensors[i])) shape_of = &tensors[i];
  }
  // Where all are skipped, there is no dimension that `dim` could be wrong about.
  if (!shape_of) return Tensor::empty(tensors[0].sizes(), dtype, tensors[0].device());
  dim = wrapDim(dim, shape_of->dim());
  DimVector sizes(shape_of->sizes());
  sizes[dim] = 0;
  MemoryFormat format = shape_of->suggestMemoryFormat();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& t = tensors[i];
    if (isSkipped(t)) continue;
    WICK_CHECK(t.dim() == shape_of->dim(),
               "Tensors must have same number of dimensions: got {} and {}", shape_of->dim(),
               t.dim());
    for (int64_t d = 0; d < t.dim(); ++d) {
      WICK_CHECK(d == dim || t.sizes()[d] == sizes[d],
                 "Sizes of tensors must match except in dimension {}. Expected size {} but got "
                 "size {} for tensor number {} in the list.",
                 dim, sizes[d], t.sizes()[d], i);
    }
    sizes[dim] += t.sizes()[dim];
    if (t.suggestMemoryFormat() != format) format = MemoryFormat::Contiguous;
  }
  Tensor result;
  if (out && out.tensor->dtype() == dtype) {
    bool shared = false;
    for (const Tensor& t : tensors) shared |= t.sharesStorage(*out.tensor);
    if (!shared) {
      resizeTo(*out.tensor, sizes);
      result = *out.tensor;
    }
  }
  if (!result.defined()) result = Tensor::empty(sizes, dtype, tensors[0].device(), format);
  bool plain = result.isContiguous() && result.device().isCpu();
  for (const Tensor& t : tensors) plain &= t.isContiguous() && t.dtype() == dtype;
  if (!plain) {
    int64_t start = 0;
    for (const Tensor& t : tensors) {
      if (isSkipped(t)) continue;
      result.narrow(dim, start, t.sizes()[dim]).copyFrom(t);
      start += t.sizes()[dim];
    }
    return result;
  }
  // Row-major throughout: each tensor contributes one block a row of the outer dimensions.
  DimSplit split = splitAt(sizes, dim);
  const int64_t item = static_cast<int64_t>(result.itemSize());
  const int64_t pitch = split.size * split.inner * item;
  char* to = static_cast<char*>(result.rawData());
  for (const Tensor& t : tensors) {
    if (isSkipped(t) || t.numel() == 0) continue;
    const int64_t block = t.sizes()[dim] * split.inner * item;
    copyBlocks(to, pitch, static_cast<const char*>(t.rawData()), block, split.outer);
    to += block;
  }
  return result;
}

Tensor stack(std::vector<Tensor> tensors, int64_t dim, Out out) {
  WICK_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  DimVector sizes(tensors[0].sizes());
  dim = wrapDim(dim, tensors[0].dim() + 1);
  for (size_t i = 0; i < tensors.size(); ++i) {
    WICK_CHECK(std::ranges::equal(tensors[i].sizes(), sizes),
               "stack expects each tensor to be equal size, but got {} at entry 0 and {} at entry "
               "{}",
               formatInts(sizes), formatInts(tensors[i].sizes()), i);
    tensors[i] = tensors[i].unsqueeze(dim);
  }
  return cat(std::move(tensors), dim, out);
}

Tensor atLeast(Tensor t, int64_t dims) {
  if (t.dim() == 0) t = t.reshape(DimVector{1});
  if (dims >= 2 && t.dim() == 1) t = t.unsqueeze(0);
  if (dims >= 3 && t.dim() == 2) t = t.unsqueeze(-1);
  return t;
}
Tensor stackAtLeast(const char* op, std::vector<Tensor> tensors, int64_t dims, int64_t dim,
                    Out out) {
  WICK_CHECK(!tensors.empty(), "{} expects a non-empty TensorList", op);
  for (Tensor& t : tensors) t = atLeast(t, dims);
  return cat(std::move(tensors), dim, out);
}
Tensor hstack(std::vector<Tensor> tensors, Out out) {
  WICK_CHECK(!tensors.empty(), "hstack expects a non-empty TensorList");
  return stackAtLeast("hstack", tensors, 1, tensors[0].dim() <= 1 ? 0 : 1, out);
}
Tensor vstack(std::vector<Tensor> tensors, Out out) {
  return stackAtLeast("vstack", std::move(tensors), 2, 0, out);
}
Tensor dstack(std::vector<Tensor> tensors, Out out) {
  return stackAtLeast("dstack", std::move(tensors), 3, 2, out);
}
Tensor columnStack(std::vector<Tensor> tensors, Out out) {
  WICK_CHECK(!tensors.empty(), "column_stack expects a non-empty TensorList");
  for (Tensor& t : tensors) {
    if (t.dim() <= 1) t = t.reshape(DimVector{t.numel(), 1});
  }
  return cat(std::move(tensors), 1, out);
}

Tensor repeat(const Tensor& self, DimVector repeats) {
  WICK_CHECK(static_cast<int64_t>(repeats.size()) >= self.dim(),
             "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
             "tensor");
  size_t lead = repeats.size() - static_cast<size_t>(self.dim());
  DimVector padded(lead, 1);
  for (int64_t s : self.sizes()) padded.push_back(s);
  DimVector sizes(repeats.size());
  for (size_t d = 0; d < sizes.size(); ++d) {
    WICK_CHECK(repeats[d] >= 0, "Trying to create tensor with negative dimension {}: {}",
               repeats[d], formatInts(repeats));
    WICK_CHECK(!__builtin_mul_overflow(padded[d], repeats[d], &sizes[d]),
               "repeat: the result of {} times {} is too large", formatInts(repeats),
               formatInts(padded));
  }
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  if (out.numel() == 0) return out;
  // Both as [r0, n0, r1, n1, …], the source broadcast over the repeats.
  DimVector split;
  DimVector strides;
  for (size_t d = 0; d < sizes.size(); ++d) {
    split.push_back(repeats[d]);
    split.push_back(padded[d]);
    strides.push_back(0);
    strides.push_back(d < lead ? 0 : self.strides()[d - lead]);
  }
  out.view(split).copyFrom(self.asStrided(split, strides, self.offset()));
  return out;
}

Tensor tile(const Tensor& self, DimVector dims) {
  DimVector repeats;
  for (int64_t d = static_cast<int64_t>(dims.size()); d < self.dim(); ++d) repeats.push_back(1);
  for (int64_t d : dims) repeats.push_back(d);
  return repeat(self, repeats);
}

// expandCounts() of int64 counts on another device, by operators.
Tensor expandElsewhere(const Tensor& counts, std::optional<int64_t> output_size) {
  const Tensor sums = ops::cumsum(counts, 0);
  WICK_CHECK(ops::amin(counts).item<int64_t>() >= 0, "repeats can not be negative");
  // A sum that overflows turns negative.
  WICK_CHECK(ops::amin(sums).item<int64_t>() >= 0, "repeat_interleave: the result is too large");
  const auto total = sums.select(0, sums.numel() - 1).item<int64_t>();
  WICK_CHECK(!output_size || *output_size == total,
             "repeat_interleave: expected an output of size {}, the repeats add up to {}",
             output_size.value_or(0), total);
  const Tensor ones = Tensor::full(DimVector{total}, 1, DType::Long, counts.device());
  const Tensor places = ops::addScalar(ops::cumsum(ones, 0), Scalar(int64_t{-1}));
  return ops::searchSorted(sums, places, false, true);
}

// How often each index occurs, as the list of the indices.
Tensor expandCounts(const Tensor& repeats, std::optional<int64_t> output_size) {
  WICK_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  WICK_CHECK(repeats.dtype() == DType::Long || repeats.dtype() == DType::Int,
             "repeats has to be Long or Int tensor");
  Tensor counts = repeats.to(DType::Long).contiguous();
  if (!counts.device().isCpu() && counts.numel() > 0) return expandElsewhere(counts, output_size);
  const int64_t* data = counts.data<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    WICK_CHECK(data[i] >= 0, "repeats can not be negative");
    WICK_CHECK(!__builtin_add_overflow(total, data[i], &total),
               "repeat_interleave: the result is too large");
  }
  WICK_CHECK(!output_size || *output_size == total,
             "repeat_interleave: expected an output of size {}, the repeats add up to {}",
             output_size.value_or(0), total);
  Tensor out = Tensor::empty(DimVector{total}, DType::Long, repeats.device());
  if (total == 0) return out;
  int64_t* to = out.data<int64_t>();
  Pace pace;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    constexpr int64_t kAtOnce = 1 << 20;
    for (int64_t left = data[i]; left > 0; left -= kAtOnce) {
      pace.step(std::min(left, kAtOnce));
      to = std::fill_n(to, std::min(left, kAtOnce), i);
    }
    pace.step();
  }
  return out;
}
Tensor repeatInterleaveCounts(const Tensor& repeats, std::optional<int64_t> output_size) {
  return expandCounts(repeats, output_size).to(repeats.dtype());
}
Tensor repeatInterleave(const Tensor& self, const Tensor& repeats, std::optional<int64_t> dim,
                        std::optional<int64_t> output_size) {
  Tensor input = dim ? self : self.flatten();
  if (input.dim() == 0) input = input.reshape(DimVector{1});
  int64_t d = wrapDim(dim.value_or(0), input.dim());
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.numel() == 1)) {
    counts = repeats.reshape(DimVector{1}).expand(DimVector{input.sizes()[d]});
  }
  WICK_CHECK(counts.dim() == 1, "repeats must be 0-dim or 1-dim tensor");
  WICK_CHECK(counts.numel() == input.sizes()[d],
             "repeats must have the same size as input along dim");
  Tensor index = expandCounts(counts, output_size);
  if (!input.device().isCpu()) {
    return ops::indexSelect(input, d, index);
  }
  DimVector sizes(input.sizes());
  sizes[d] = index.numel();
  Tensor out = Tensor::empty(sizes, input.dtype(), input.device());
  std::vector<OffsetTable> tables = offsetTables(input);
  OffsetTable picked(static_cast<size_t>(index.numel()));
  for (size_t i = 0; i < picked.size(); ++i) picked[i] = tables[d][index.data<int64_t>()[i]];
  tables[d] = std::move(picked);
  remap(out.rawData(), input.rawData(), tables, input.itemSize());
  return out;
}
Tensor repeatInterleaveInt(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                           std::optional<int64_t> output_size) {
  if (self.device().isCpu()) {
    return repeatInterleave(self, Tensor::scalar<int64_t>(repeats), dim, output_size);
  }
  WICK_CHECK(repeats >= 0, "repeats can not be negative");
  Tensor input = dim ? self : self.reshape(DimVector{-1});
  if (input.dim() == 0) input = input.reshape(DimVector{1});
  const int64_t d = wrapDim(dim.value_or(0), input.dim());
  DimVector spread(input.sizes()), sizes(input.sizes());
  spread.insert(static_cast<size_t>(d) + 1, repeats);
  int64_t& size = sizes[static_cast<size_t>(d)];
  WICK_CHECK(!__builtin_mul_overflow(size, repeats, &size),
             "repeat_interleave: {} repeats of {} are too many", repeats, input.size(d));
  WICK_CHECK(!output_size || *output_size == size, "allocated size does not match required size");
  return input.unsqueeze(d + 1).expand(spread).clone(MemoryFormat::Contiguous).view(sizes);
}

// As two parts in the other order, dimension by dimension.
Tensor rollOnDevice(const Tensor& self, const DimVector& shifts, const DimVector& dims) {
  Tensor rolled = self.clone(MemoryFormat::Contiguous);
  for (size_t k = 0; k < dims.size() && self.numel() > 0; ++k) {
    const int64_t d = wrapDim(dims[k], self.dim()), n = self.size(d);
    const int64_t shift = (shifts[k] % n + n) % n;
    if (shift == 0) continue;
    rolled = cat({rolled.narrow(d, n - shift, shift), rolled.narrow(d, 0, n - shift)}, d, {});
  }
  return rolled;
}
Tensor roll(const Tensor& self, DimVector shifts, DimVector dims) {
  WICK_CHECK(!shifts.empty(), "`shifts` required");
  if (dims.empty() && shifts.size() == 1) {
    Tensor flat = self.contiguous().view(DimVector{-1});
    return roll(flat, shifts, DimVector{0}).view(self.sizes());
  }
  WICK_CHECK(dims.size() == shifts.size(), "shifts and dimensions must align. shifts: {}, dims:{}",
             shifts.size(), dims.size());
  WICK_CHECK(self.dim() > 0, "Dimension specified as {} but tensor has no dimensions", dims[0]);
  if (!self.device().isCpu()) return rollOnDevice(self, shifts, dims);
  Tensor out = Tensor::empty(self.sizes(), self.dtype(), self.device());
  if (self.numel() == 0) return out;
  std::vector<OffsetTable> tables = offsetTables(self);
  for (size_t k = 0; k < dims.size(); ++k) {
    int64_t d = wrapDim(dims[k], self.dim());
    int64_t n = self.sizes()[d];
    int64_t shift = shifts[k] % n;
    if (shift < 0) shift += n;
    std::rotate(tables[d].begin(), tables[d].end() - shift, tables[d].end());
  }
  remap(out.rawData(), self.rawData(), tables, self.itemSize());
  return out;
}

Tensor flip(const Tensor& self, DimVector dims) {
  if (!self.device().isCpu()) {
    return ops::flip(self, dims);
  }
  std::vector<OffsetTable> tables = offsetTables(self);
  std::vector<bool> seen(static_cast<size_t>(self.dim()) + 1, false);
  for (int64_t dim : dims) {
    int64_t d = wrapDim(dim, self.dim());
    WICK_CHECK(!seen[d], "dim {} appears multiple times in the list of dims", d);
    seen[d] = true;
    if (self.dim() > 0) std::reverse(tables[d].begin(), tables[d].end());
  }
  Tensor out = Tensor::emptyLike(self, self.dtype());
  if (self.numel() == 0) return out;
  Tensor dense = out.isContiguous() ? out : Tensor::empty(self.sizes(), self.dtype());
  remap(dense.rawData(), self.rawData(), tables, self.itemSize());
  return out.copyFrom(dense);
}
Tensor fliplr(const Tensor& self) {
  WICK_CHECK(self.dim() >= 2, "Input must be >= 2-d.");
  return flip(self, DimVector{1});
}
Tensor flipud(const Tensor& self) {
  WICK_CHECK(self.dim() >= 1, "Input must be >= 1-d.");
  return flip(self, DimVector{0});
}

Tensor rot90(const Tensor& self, int64_t k, DimVector dims) {
  int64_t n = self.dim();
  WICK_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = {}", dims.size());
  WICK_CHECK(n >= 2, "expected total dims >= 2, but got total dims = {}", n);
  WICK_CHECK(dims[0] != dims[1] && std::abs(dims[0] - dims[1]) != n,
             "expected rotation dims to be different, but got dim0 = {} and dim1 = {}", dims[0],
             dims[1]);
  for (int i = 0; i < 2; ++i) {
    WICK_CHECK(dims[i] >= -n && dims[i] < n, "Rotation dim{} out of range, dim{} = {}", i, i,
               dims[i]);
  }
  switch (((k % 4) + 4) % 4) {
    case 1:
      return flip(self, DimVector{dims[1]}).transpose(dims[0], dims[1]);
    case 2:
      return flip(self, dims);
    case 3:
      return flip(self, DimVector{dims[0]}).transpose(dims[0], dims[1]);
    default:
      return self.clone(MemoryFormat::Contiguous);
  }
}

// The last three dimensions of an image, and how far they are moved.
struct Pixels {
  int64_t channels, height, width, square;
};
Pixels pixelsOf(const char* op, const char* direction, const Tensor& self, int64_t factor) {
  WICK_CHECK(self.dim() >= 3,
             "{} expects input to have at least 3 dimensions, but got input with {} dimension(s)",
             op, self.dim());
  WICK_CHECK(factor > 0, "{} expects a positive {}_factor, but got {}", op, direction, factor);
  Pixels p{self.size(-3), self.size(-2), self.size(-1), 0};
  WICK_CHECK(!__builtin_mul_overflow(factor, factor, &p.square), "{}: {}_factor {} is too large",
             op, direction, factor);
  return p;
}
// Splits the last three dimensions into five, which are put into another order and joined again.
Tensor shuffled(const Tensor& self, const std::array<int64_t, 5>& parts,
                const std::array<int64_t, 5>& places, const std::array<int64_t, 3>& joined) {
  const int64_t lead = self.dim() - 3;
  DimVector split(self.sizes().begin(), self.sizes().begin() + lead), order;
  DimVector sizes = split;
  for (int64_t d = 0; d < lead; ++d) order.push_back(d);
  for (int64_t s : parts) split.push_back(s);
  for (int64_t d : places) order.push_back(lead + d);
  for (int64_t s : joined) sizes.push_back(s);
  const Tensor out = self.reshape(split).permute(order).clone(MemoryFormat::Contiguous).view(sizes);
  const MemoryFormat format = self.suggestMemoryFormat();
  return self.dim() == 4 && format == MemoryFormat::ChannelsLast ? out.contiguous(format) : out;
}
Tensor pixelShuffle(const Tensor& self, int64_t factor) {
  const auto [c, h, w, square] = pixelsOf("pixel_shuffle", "upscale", self, factor);
  WICK_CHECK(c % square == 0,
             "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
             "of upscale_factor, but input.size(-3)={} is not divisible by {}",
             c, square);
  int64_t height = 0, width = 0;
  WICK_CHECK(
      !__builtin_mul_overflow(h, factor, &height) && !__builtin_mul_overflow(w, factor, &width),
      "pixel_shuffle: upscale_factor {} is too large", factor);
  return shuffled(self, {c / square, factor, factor, h, w}, {0, 3, 1, 4, 2},
                  {c / square, height, width});
}
Tensor pixelUnshuffle(const Tensor& self, int64_t factor) {
  const auto [c, h, w, square] = pixelsOf("pixel_unshuffle", "downscale", self, factor);
  WICK_CHECK(h % factor == 0,
             "pixel_unshuffle expects height to be divisible by downscale_factor, but "
             "input.size(-2)={} is not divisible by {}",
             h, factor);
  WICK_CHECK(w % factor == 0,
             "pixel_unshuffle expects width to be divisible by downscale_factor, but "
             "input.size(-1)={} is not divisible by {}",
             w, factor);
  int64_t channels = 0;
  WICK_CHECK(!__builtin_mul_overflow(c, square, &channels),
             "pixel_unshuffle: downscale_factor {} is too large", factor);
  return shuffled(self, {c, h / factor, factor, w / factor, factor}, {0, 2, 4, 1, 3},
                  {channels, h / factor, w / factor});
}
Tensor channelShuffle(const Tensor& self, int64_t groups) {
  WICK_CHECK(self.dim() > 2,
             "channel_shuffle expects input with > 2 dims, but got input with sizes {}",
             formatInts(self.sizes()));
  WICK_CHECK(groups > 0,
             "Number of groups to divide channels in must be positive. Value of groups:{}", groups);
  int64_t c = self.sizes()[1];
  WICK_CHECK(c % groups == 0,
             "Number of channels must be divisible by groups. Got {} channels and {} groups.", c,
             groups);
  DimVector split{self.sizes()[0], groups, c / groups};
  for (int64_t d = 2; d < self.dim(); ++d) split.push_back(self.sizes()[d]);
  return self.reshape(split).transpose(1, 2).clone(MemoryFormat::Contiguous).view(self.sizes());
}

const OperatorRecord kJoiningRecords[] = {
    {"aten::cat(Tensor[] tensors, int dim=0) -> Tensor", WICK_KERNEL(cat),
     kOutForm | kRefusesOverlap | kNeutralLast | kEagerCastWidest | kSavesNothing | kKeepsOrder,
     shapes::concatenated},
    {"aten::_cat(Tensor[] tensors, int dim=0) -> Tensor", WICK_KERNEL(cat),
     kOutForm | kRefusesOverlap | kNeutralLast, shapes::concatenated},
    {"aten::stack(Tensor[] tensors, int dim=0) -> Tensor", WICK_KERNEL(stack),
     kOutForm | kRefusesOverlap | kNeutralLast | kEagerCastWidest | kSavesNothing, shapes::stacked},
    {"aten::_stack(Tensor[] tensors, int dim=0) -> Tensor", WICK_KERNEL(stack),
     kOutForm | kRefusesOverlap | kNeutralLast, shapes::stacked},
    {"aten::hstack(Tensor[] tensors) -> Tensor", WICK_KERNEL(hstack),
     kOutForm | kMayReturnArgument | kNeutral | kSavesNothing},
    {"aten::vstack(Tensor[] tensors) -> Tensor", WICK_KERNEL(vstack),
     kOutForm | kMayReturnArgument | kNeutral | kSavesNothing},
    {"aten::dstack(Tensor[] tensors) -> Tensor", WICK_KERNEL(dstack),
     kOutForm | kNeutral | kSavesNothing},
    {"aten::column_stack(Tensor[] tensors) -> Tensor", WICK_KERNEL(columnStack),
     kOutForm | kNeutral},
    {"aten::repeat(Tensor self, int[] repeats) -> Tensor", WICK_KERNEL(repeat),
     kOutForm | kOutAny | kNeutral | kSavesNothing, shapes::repeated},
    {"aten::repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor",
     WICK_KERNEL(repeatInterleaveCounts), kNotDifferentiable | kNeutral | kRaisesByElements},
    {"aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? "
     "output_size=None) -> Tensor",
     WICK_KERNEL(repeatInterleave), kNeutral | kRaisesByElements},
    {"aten::repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? "
     "output_size=None) -> Tensor",
     WICK_KERNEL(repeatInterleaveInt), kNeutral},
    {"aten::tile(Tensor self, int[] dims) -> Tensor", WICK_KERNEL(tile), kNeutral | kSavesNothing},
    {"aten::roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", WICK_KERNEL(roll),
     kOutForm | kOutAny | kNeutral | kSavesNothing, shapes::likeFirst},
    {"aten::flip(Tensor self, int[] dims) -> Tensor", WICK_KERNEL(flip),
     kOutForm | kOutAny | kSavesNothing, shapes::likeFirst},
    {"aten::fliplr(Tensor self) -> Tensor", WICK_KERNEL(fliplr), kNeutral | kSavesNothing,
     shapes::likeFirst},
    {"aten::flipud(Tensor self) -> Tensor", WICK_KERNEL(flipud), kNeutral | kSavesNothing,
     shapes::likeFirst},
    {"aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor", WICK_KERNEL(rot90),
     kOutForm | kOutAny | kNeutral | kSavesNothing | kMovesElements},
    {"aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", WICK_KERNEL(pixelShuffle),
     kOutForm | kMayReturnArgument | kOutAny | kNeutral, shapes::pixelShuffled},
    {"aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
     WICK_KERNEL(pixelUnshuffle), kOutForm | kMayReturnArgument | kOutAny | kNeutral,
     shapes::pixelShuffled},
    {"aten::channel_shuffle(Tensor self, int groups) -> Tensor", WICK_KERNEL(channelShuffle),
     kOutForm | kNeutral, shapes::likeFirst},
    {"aten::native_channel_shuffle(Tensor self, int groups) -> Tensor", WICK_KERNEL(channelShuffle),
     kNeutral, shapes::likeFirst},
};

const OperatorAlias kJoiningAliases[] = {
    {"aten::concat", "aten::cat"},
    {"aten::concatenate", "aten::cat"},
    {"aten::row_stack", "aten::vstack"},
};

const RegisterOperators kJoiningRegistered(kJoiningRecords, kJoiningAliases);

}  // namespace

}  // namespace wick::ops

// How nested tensors are made of dense ones, and back, and what is known of one.
#include <algorithm>

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/memory_limit.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/nested/nested.h"

namespace wick::ops::nested {

namespace {

// ---- from dense ----

Tensor fromMask(const Tensor& t, const Tensor& mask, bool check) {
  const char* op = "_nested_tensor_from_mask";
  WICK_CHECK(mask.dtype() == DType::Bool,
             "{}: Expected mask to be of ScalarType Bool, but got {} instead.", op,
             toString(mask.dtype()));
  WICK_CHECK(mask.dim() == 2, "{}: Padding mask should be 2D, got {}", op, mask.describe());
  WICK_CHECK(t.dim() == 3, "{}: Input should be a 3D tensor, N * L * D, got {}", op, t.describe());
  WICK_CHECK(t.size(0) == mask.size(0) && t.size(1) == mask.size(1),
             "{}: Mask size should match input size, got {} and {}", op, mask.describe(),
             t.describe());
  const int64_t width = t.size(2), length = mask.size(1);
  const Tensor rows = mask.contiguous();
  std::vector<DimVector> sizes;
  checkAllocation(op, static_cast<size_t>(mask.size(0)) * sizeof(DimVector));
  int64_t total = 0;
  Pace pace;
  for (int64_t n = 0; n < mask.size(0); ++n) {
    pace.step(length + 1);
    const bool* row = rows.data<bool>() + n * length;
    const int64_t count = std::count(row, row + length, true);
    WICK_CHECK(!check || std::find(row, row + length, false) == row + count,
               "{}: Mask must be left-aligned without gaps", op);
    sizes.push_back(DimVector{count, width});
    total += count;
  }
  Tensor buffer = Tensor::empty(DimVector{total * width}, t.dtype());
  const Tensor result = makePackedNested(buffer, sizes);
  const NestedForm& form = nestedFormOf(op, result);
  for (size_t n = 0; n < sizes.size(); ++n) {
    pace.step();
    form.parts[n].copyFrom(t.select(0, static_cast<int64_t>(n)).narrow(0, 0, sizes[n][0]));
  }
  return result;
}

// The factories of Python end here; the tensors are copied.
Tensor fromList(const std::vector<Tensor>& list, const TensorOptions& options) {
  const char* op = "_nested_tensor_from_tensor_list";
  WICK_CHECK(options.deviceOr(Device()).isCpu(), "{}: nested tensors are on the CPU", op);
  std::vector<DimVector> sizes;
  DType dtype = options.dtypeOr(list.empty() ? defaultDType() : list[0].dtype());
  int64_t total = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    WICK_CHECK(list[i].kind() == TensorKind::Dense, "{}: expected dense tensors, got {}", op,
               list[i].describe());
    WICK_CHECK(list[i].dim() == list[0].dim(),
               "{}: All Tensors given to nested_tensor must have the same dimension. Found "
               "dimension {} for Tensor at index {} and dimension {} for Tensor at index 0.",
               op, list[i].dim(), i, list[0].dim());
    sizes.emplace_back(list[i].sizes());
    WICK_CHECK(!__builtin_add_overflow(total, list[i].numel(), &total), "{}: too many elements",
               op);
  }
  Tensor buffer = Tensor::empty(DimVector{total}, dtype);
  const Tensor result = makePackedNested(buffer, sizes);
  const NestedForm& form = nestedFormOf(op, result);
  for (size_t i = 0; i < list.size(); ++i) form.parts[i].copyFrom(list[i]);
  return result;
}

// `sizes` [N, d] tells how much of each row of `padded` [N, …] is data. With `swapped` padded is
// [N, H, L, D] and the parts become [L, H * D], which sizes tells.
Tensor fromPadded(const Tensor& padded, const Tensor& sizes, bool swapped) {
  const char* op = "_nested_from_padded";
  WICK_CHECK(padded.kind() == TensorKind::Dense && sizes.kind() == TensorKind::Dense &&
                 sizes.dtype() == DType::Long && sizes.dim() == 2 && padded.dim() >= 1 &&
                 sizes.size(0) == padded.size(0),
             "{}: expected a tensor and its sizes int64[{}, …], got {} and {}", op,
             padded.dim() >= 1 ? padded.size(0) : 0, padded.describe(), sizes.describe());
  Tensor source = padded;
  if (swapped) {
    WICK_CHECK(padded.dim() == 4, "{}: expected a tensor of 4 dimensions, got {}", op,
               padded.describe());
    source = padded.transpose(1, 2).reshape(
        DimVector{padded.size(0), padded.size(2), padded.size(1) * padded.size(3)});
  }
  const auto inner = static_cast<size_t>(source.dim()) - 1;
  WICK_CHECK(static_cast<size_t>(sizes.size(1)) == inner,
             "{}: expected {} sizes for each part, got {}", op, inner, sizes.size(1));
  const Tensor table = sizes.contiguous();
  CountedVector<Tensor> views;
  std::vector<DimVector> shapes;
  int64_t total = 0;
  Pace pace;
  for (int64_t n = 0; n < source.size(0); ++n) {
    pace.step(static_cast<int64_t>(inner) + 1);
    Tensor part = source.select(0, n);
    DimVector shape;
    for (size_t d = 0; d < inner; ++d) {
      const int64_t size =
          table.data<int64_t>()[n * static_cast<int64_t>(inner) + static_cast<int64_t>(d)];
      WICK_CHECK(size >= 0 && size <= part.size(static_cast<int64_t>(d)),
                 "{}: size {} of part {} does not lie within {}", op, size, n, part.describe());
      part = part.narrow(static_cast<int64_t>(d), 0, size);
      shape.push_back(size);
    }
    WICK_CHECK(!__builtin_add_overflow(total, part.numel(), &total), "{}: too many elements", op);
    views.push_back(std::move(part));
    shapes.push_back(std::move(shape));
  }
  const Tensor result = makePackedNested(Tensor::empty(DimVector{total}, padded.dtype()), shapes);
  const NestedForm& form = nestedFormOf(op, result);
  for (size_t n = 0; n < shapes.size(); ++n) form.parts[n].copyFrom(views[n]);
  return result;
}

Tensor sizeTable(const Tensor& self);

Tensor fromPaddedLike(const Tensor& padded, const Tensor& example) {
  nestedFormOf("_nested_from_padded_and_nested_example", example);
  return fromPadded(padded, sizeTable(example), false);
}

// Numbers that a program says are checked by asStrided().
Tensor viewOfBuffer(const Tensor& self, const Tensor& sizes, const Tensor& strides,
                    const DimVector& offsets) {
  const char* op = "_nested_view_from_buffer";
  const auto isTable = [&](const Tensor& t) {
    return t.kind() == TensorKind::Dense && t.dtype() == DType::Long && t.dim() == 2 &&
           t.size(0) == static_cast<int64_t>(offsets.size());
  };
  WICK_CHECK(self.kind() == TensorKind::Dense && self.dim() == 1,
             "{}: expected a buffer of one "
             "dimension, got {}",
             op, self.describe());
  WICK_CHECK(isTable(sizes) && isTable(strides) && sizes.size(1) == strides.size(1),
             "{}: expected sizes and strides int64[{}, d], got {} and {}", op, offsets.size(),
             sizes.describe(), strides.describe());
  WICK_CHECK(self.device().isCpu(), "{}: nested tensors exist on the CPU only, got {}", op,
             self.describe());
  const Tensor all_sizes = moveTo(sizes, Device()).contiguous();
  const Tensor all_strides = moveTo(strides, Device()).contiguous();
  const auto width = static_cast<size_t>(sizes.size(1));
  CountedVector<Tensor> parts;
  for (size_t n = 0; n < offsets.size(); ++n) {
    const IntSpan size(all_sizes.data<int64_t>() + n * width, width);
    const IntSpan stride(all_strides.data<int64_t>() + n * width, width);
    int64_t offset = 0;
    WICK_CHECK(offsets[n] >= 0 && !__builtin_add_overflow(self.offset(), offsets[n], &offset),
               "{}: offset {} is out of range", op, offsets[n]);
    parts.push_back(self.asStrided(size, stride, offset));
  }
  return makeNested(std::move(parts), self.dtype(), static_cast<int64_t>(width));
}
Tensor copiedViewOfBuffer(const Tensor& self, const Tensor& sizes, const Tensor& strides,
                          const DimVector& offsets) {
  return viewOfBuffer(self.clone(), sizes, strides, offsets);
}

// ---- to dense ----

Tensor toPadded(const Tensor& self, double padding, const std::optional<DimVector>& wanted) {
  const char* op = "to_padded_tensor";
  const NestedForm& form = nestedFormOf(op, self);
  if (form.parts.empty()) return Tensor::empty(DimVector{0}, self.dtype());
  DimVector sizes(self.sizes());
  if (wanted) {
    WICK_CHECK(wanted->size() == sizes.size(),
               "{}: Length of output_size does not match NestedTensor dims. Broadcasting is not "
               "supported.",
               op);
    for (size_t d = 0; d < sizes.size(); ++d) {
      WICK_CHECK((*wanted)[d] >= sizes[d],
                 "{}: Value in output_size is less than NestedTensor padded size. Truncation is "
                 "not supported.",
                 op);
    }
    sizes = *wanted;
  }
  Tensor result = Tensor::full(sizes, padding, self.dtype());
  Pace pace;
  for (size_t i = 0; i < form.parts.size(); ++i) {
    pace.step();
    Tensor place = result.select(0, static_cast<int64_t>(i));
    for (int64_t d = 0; d < form.part_dim; ++d) place = place.narrow(d, 0, form.parts[i].size(d));
    place.copyFrom(form.parts[i]);
  }
  return result;
}
[[noreturn]] void refusePadding(CallFrame& frame) {
  throwRuntimeError("{}: expected a nested tensor, got {}", frame.op->schema().name(),
                    frame.args[0].toTensor().describe());
}
void padOrRefuse(CallFrame& frame) {
  if (!isNested(frame.args[0].toTensor())) refusePadding(frame);
  std::optional<DimVector> sizes;
  if (!frame.args[2].isNone()) sizes = frame.args[2].toDims();
  frame.results[0] = toPadded(frame.args[0].toTensor(), frame.args[1].numberToDouble(), sizes);
}

// ---- what is known ----

template <class Of>
Tensor table(const char* op, const Tensor& self, Of of) {
  const NestedForm& form = nestedFormOf(op, self);
  if (form.parts.empty()) return Tensor::empty(DimVector{0}, DType::Long);
  Tensor result =
      Tensor::empty(DimVector{static_cast<int64_t>(form.parts.size()), form.part_dim}, DType::Long);
  int64_t* to = result.data<int64_t>();
  for (const Tensor& part : form.parts) to = std::ranges::copy(of(part), to).out;
  return result;
}
Tensor sizeTable(const Tensor& self) {
  return table("_nested_tensor_size", self, [](const Tensor& part) { return part.sizes(); });
}
Tensor strideTable(const Tensor& self) {
  return table("_nested_tensor_strides", self, [](const Tensor& part) { return part.strides(); });
}
DimVector offsets(const Tensor& self) {
  const NestedForm& form = nestedFormOf("_nested_tensor_offsets", self);
  DimVector result;
  const int64_t first = form.parts.empty() ? 0 : form.parts[0].offset();
  for (const Tensor& part : form.parts) result.push_back(part.offset() - first);
  return result;
}

int64_t sizeAt(const Tensor& self, int64_t d) {
  const int64_t dim = wrapDim(d, self.dim());
  if (dim == 0) return self.size(0);
  const std::optional<int64_t> size = nestedSize(self, dim - 1);
  WICK_CHECK(size, "size: Given dimension {} is irregular and does not have a size.", dim);
  return *size;
}
DimVector allSizes(const Tensor& self) {
  DimVector sizes;
  for (int64_t d = 0; d < self.dim(); ++d) sizes.push_back(sizeAt(self, d));
  return sizes;
}
int64_t length(const Tensor& self) {
  return self.size(0);
}
bool isContiguous(const Tensor& self) {
  return nestedFormOf("is_contiguous", self).isPacked();
}
bool sameSize(const Tensor& self, const Tensor& other) {
  return isNested(self) && isNested(other) && sameNestedSizes(self, other);
}
Tensor values(const Tensor& self) {
  const Tensor whole = packed("values", self);
  return nestedFormOf("values", whole).buffer.detach();
}

// Operators that ask for nothing but what every tensor has.
void asForDense(CallFrame& frame) {
  frame.op->record().kernel(frame);
}

constexpr uint64_t kFacts = kAnyKind | kNotDifferentiable;

constexpr OperatorRecord kConstructRecords[] = {
    {"aten::_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor",
     WICK_KERNEL(fromMask)},
    {"aten::_nested_tensor_from_tensor_list(Tensor[] list, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     WICK_KERNEL(fromList)},
    {"aten::_nested_from_padded(Tensor padded, Tensor cpu_nested_shape_example, bool "
     "fuse_transform_0213=False) -> Tensor",
     WICK_KERNEL(fromPadded)},
    {"aten::_nested_from_padded_and_nested_example(Tensor padded, Tensor nt_example) -> Tensor",
     WICK_KERNEL(fromPaddedLike), kAnyKind},
    {"aten::_nested_view_from_buffer(Tensor(a) self, Tensor nested_size, Tensor nested_strides, "
     "int[] offsets) -> Tensor(a)",
     WICK_KERNEL(viewOfBuffer)},
    {"aten::_nested_view_from_buffer_copy(Tensor self, Tensor nested_size, Tensor nested_strides, "
     "int[] offsets) -> Tensor",
     WICK_KERNEL(copiedViewOfBuffer)},
    {"aten::to_padded_tensor(Tensor self, float padding, int[]? output_size=None) -> Tensor",
     &padOrRefuse, kAnyKind},
    {"aten::nested_to_padded_tensor(Tensor self, float padding, int[]? output_size=None) -> Tensor",
     &padOrRefuse, kAnyKind},
    {"aten::_nested_tensor_size(Tensor self) -> Tensor", WICK_KERNEL(sizeTable), kFacts},
    {"aten::_nested_tensor_strides(Tensor self) -> Tensor", WICK_KERNEL(strideTable), kFacts},
    {"aten::_nested_tensor_offsets(Tensor self) -> int[]", WICK_KERNEL(offsets), kFacts},
};
const RegisterOperators kConstructRegistered(kConstructRecords);

constexpr KindKernel kConstructKernels[] = {
    {"aten::size.int", WICK_KERNEL(sizeAt)},
    {"aten::size", WICK_KERNEL(allSizes)},
    {"aten::len.Tensor", WICK_KERNEL(length)},
    {"aten::is_contiguous", WICK_KERNEL(isContiguous)},
    {"aten::is_same_size", WICK_KERNEL(sameSize)},
    {"aten::values", WICK_KERNEL(values)},
    {"aten::is_leaf", &asForDense},
    {"aten::requires_grad_", &asForDense},
    {"aten::retain_grad", &asForDense},
    {"aten::retains_grad", &asForDense},
    {"prim::grad", &asForDense},
};
const RegisterKindKernels kConstructKernelsRegistered(TensorKind::Nested, kConstructKernels);

}  // namespace

}  // namespace wick::ops::nested

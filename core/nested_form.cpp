#include "core/nested_form.h"

#include "core/budget.h"
#include "core/error.h"
#include "core/ivalue.h"
#include "core/memory_limit.h"

namespace wick {

namespace {

// What a handle with its sizes and strides takes, roughly.
constexpr size_t kBytesOfPart = sizeof(TensorImpl) + sizeof(Tensor);

// The sizes that hold every part. Programs that ask for a size get an error where parts differ;
// this is what ranks and errors of other operators see.
DimVector paddedSizes(const NestedForm& form) {
  DimVector sizes(static_cast<size_t>(form.part_dim) + 1, 0);
  sizes[0] = static_cast<int64_t>(form.parts.size());
  for (const Tensor& part : form.parts) {
    for (size_t d = 0; d < part.sizes().size(); ++d) {
      sizes[d + 1] = std::max(sizes[d + 1], part.sizes()[d]);
    }
  }
  return sizes;
}

Tensor makeTensor(Ref<NestedForm> form, DType dtype) {
  // Sizes may be so different that no tensor could hold all of them. Where one can, the elements of
  // the parts are no more, and their sum does not overflow.
  DimVector sizes = paddedSizes(*form);
  checkedNumel(sizes);
  int64_t elements = 0;
  for (const Tensor& part : form->parts) elements += part.numel();
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->becomeFormless(TensorKind::Nested, form, dtype, std::move(sizes));
  impl->numel = elements;
  return Tensor(std::move(impl));
}

}  // namespace

Tensor makeNested(CountedVector<Tensor> parts, DType dtype, int64_t part_dim) {
  Ref<NestedForm> form = makeRef<NestedForm>();
  form->part_dim = parts.empty() ? part_dim : parts[0].dim();
  Pace pace;
  for (const Tensor& part : parts) {
    pace.step();
    WICK_CHECK(part.defined() && part.kind() == TensorKind::Dense,
               "nested tensor: expected dense tensors, got {}",
               part.defined() ? toString(part.kind()) : "None");
    WICK_CHECK(part.device().isCpu(), "nested tensor: expected tensors on the CPU, got {}",
               part.describe());
    WICK_CHECK(part.dtype() == parts[0].dtype() && part.dim() == form->part_dim,
               "nested tensor: expected tensors like {}, got {}", parts[0].describe(),
               part.describe());
  }
  if (!parts.empty()) dtype = parts[0].dtype();
  form->parts = std::move(parts);
  return makeTensor(std::move(form), dtype);
}

Tensor makePackedNested(const Tensor& buffer, const std::vector<DimVector>& sizes) {
  WICK_CHECK(buffer.kind() == TensorKind::Dense && buffer.dim() == 1 && buffer.isContiguous(),
             "nested tensor: expected a contiguous buffer of one dimension, got {}",
             buffer.describe());
  Ref<NestedForm> form = makeRef<NestedForm>();
  checkAllocation("nested tensor", sizes.size() * kBytesOfPart);
  int64_t offset = 0;
  Pace pace;
  for (const DimVector& part : sizes) {
    pace.step();
    WICK_CHECK(part.size() == sizes[0].size(),
               "nested tensor: expected parts of {} dimensions, got sizes {}", sizes[0].size(),
               formatInts(part));
    const int64_t elements = checkedNumel(part);
    WICK_CHECK(elements <= buffer.numel() - offset,
               "nested tensor: its parts have more elements than the buffer, {}", buffer.numel());
    form->parts.push_back(
        buffer.asStrided(part, contiguousStrides(part), buffer.offset() + offset));
    offset += elements;
  }
  WICK_CHECK(offset == buffer.numel(),
             "nested tensor: its parts have {} elements, but the buffer {}", offset,
             buffer.numel());
  form->part_dim = sizes.empty() ? 0 : static_cast<int64_t>(sizes[0].size());
  form->buffer = buffer.detach();
  const DType dtype = buffer.dtype();
  return makeTensor(std::move(form), dtype);
}

const NestedForm& nestedFormOf(std::string_view op, const Tensor& t) {
  WICK_CHECK(t.defined() && t.kind() == TensorKind::Nested, "{}: expected a nested tensor, got {}",
             op, t.defined() ? t.describe() : "None");
  return static_cast<const NestedForm&>(*t.form());
}

std::optional<int64_t> nestedSize(const Tensor& t, int64_t d) {
  const NestedForm& form = nestedFormOf("size", t);
  if (form.parts.empty()) return 0;
  const int64_t size = form.parts[0].size(d);
  for (const Tensor& part : form.parts) {
    if (part.size(d) != size) return std::nullopt;
  }
  return size;
}

bool sameNestedSizes(const Tensor& a, const Tensor& b) {
  const NestedForm& x = nestedFormOf("sizes", a);
  const NestedForm& y = nestedFormOf("sizes", b);
  if (x.parts.size() != y.parts.size()) return false;
  for (size_t i = 0; i < x.parts.size(); ++i) {
    const IntSpan p = x.parts[i].sizes(), q = y.parts[i].sizes();
    if (!std::equal(p.begin(), p.end(), q.begin(), q.end())) return false;
  }
  return true;
}

std::string formatNested(const Tensor& t, int64_t max_elements) {
  const NestedForm& form = nestedFormOf("print", t);
  std::string text = "nested_tensor([\n";
  for (size_t i = 0; i < form.parts.size(); ++i) {
    std::string part = formatTensor(form.parts[i], max_elements);
    for (size_t at = part.find('\n'); at != std::string::npos; at = part.find('\n', at + 3)) {
      part.insert(at + 1, "  ");
    }
    text += (i == 0 ? "  " : ",\n  ") + part;
  }
  return text + "\n])";
}

}  // namespace wick

// Operators that move or pick the entries of sparse tensors: transposed, selected, joined, masked.
#include <algorithm>
#include <numeric>

#include "core/budget.h"
#include "core/sparse_form.h"
#include "ir/operator.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/sparse/coordinates.h"
#include "runtime/ops/views/moved_dims.h"

namespace wick::ops::sparse {

namespace {

Tensor pickRows(const Tensor& indices, const DimVector& rows) {
  const Positions which(rows.begin(), rows.end());
  const Tensor index = indexTensor(which, DimVector{static_cast<int64_t>(which.size())});
  return ops::indexSelect(indices, int64_t{0}, index).contiguous();
}

// ---- order of dimensions ----

// Compressed matrices change from rows to columns.
Tensor transposedCompressed(const Tensor& self, int64_t d0, int64_t d1) {
  const SparseForm& form = sparseFormOf("transpose", self);
  const int64_t batch = form.batchDim();
  WICK_CHECK(std::min(d0, d1) == batch && std::max(d0, d1) == batch + 1,
             "transpose(): can only transpose the rows and columns of tensors of layout {}, got "
             "dimensions {} and {}",
             layoutName(self), d0, d1);
  DimVector sizes(self.sizes());
  std::swap(sizes[batch], sizes[batch + 1]);
  SparseLayout layout = SparseLayout::Csr;
  switch (form.layout) {
    case SparseLayout::Csr:
      layout = SparseLayout::Csc;
      break;
    case SparseLayout::Bsr:
      layout = SparseLayout::Bsc;
      break;
    case SparseLayout::Bsc:
      layout = SparseLayout::Bsr;
      break;
    default:
      break;
  }
  const Tensor values =
      isBlocked(layout) ? form.values.transpose(batch + 1, batch + 2) : form.values;
  return makeSparseCompressed(layout, form.compressed, form.plain, values, sizes);
}

Tensor permute(const Tensor& self, DimVector order) {
  WICK_CHECK(static_cast<int64_t>(order.size()) == self.dim(),
             "permute(sparse_coo): number of dimensions in the tensor input does not match the "
             "length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to "
             "len(dims) = {}",
             self.dim(), order.size());
  std::vector<bool> seen(order.size(), false);
  for (int64_t& d : order) {
    d = wrapDim(d, self.dim());
    WICK_CHECK(!seen[d], "permute(): duplicate dims are not allowed.");
    seen[d] = true;
  }
  const SparseForm& form = sparseFormOf("permute", self);
  if (!form.isCoo()) refuseLayout("permute", self);
  if (std::is_sorted(order.begin(), order.end())) return self.detach();
  const int64_t sparse_dim = form.sparse_dim;
  DimVector rows, value_order{0}, sizes;
  for (size_t i = 0; i < order.size(); ++i) {
    const bool sparse = static_cast<int64_t>(i) < sparse_dim;
    WICK_CHECK(sparse == (order[i] < sparse_dim),
               "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
               "allowed. Only transpositions within sparse and dense dimensions are supported.");
    sizes.push_back(self.sizes()[order[i]]);
    if (sparse) {
      rows.push_back(order[i]);
    } else {
      value_order.push_back(order[i] - sparse_dim + 1);
    }
  }
  const bool same_rows = std::is_sorted(rows.begin(), rows.end());
  const Coordinates c = coordinatesOf("permute", self);
  return makeSparseCoo(same_rows ? c.indices : pickRows(c.indices, rows),
                       c.values.permute(value_order), sizes, form.coalesced && same_rows);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t d0 = wrapDim(dim0, self.dim()), d1 = wrapDim(dim1, self.dim());
  if (d0 == d1) return self;
  if (!isSparseCoo(self)) return transposedCompressed(self, d0, d1);
  const int64_t sparse_dim = sparseFormOf("transpose", self).sparse_dim;
  WICK_CHECK((d0 < sparse_dim) == (d1 < sparse_dim),
             "sparse transpose: transposed dimensions must be sparse Got sparse_dim: {}, d0: {}, "
             "d1: {}",
             sparse_dim, d0, d1);
  DimVector order(static_cast<size_t>(self.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[d0], order[d1]);
  return permute(self, order);
}
Tensor t(const Tensor& self) {
  WICK_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 sparse and 0 dense dimensions");
  if (self.dim() < 2) return self;
  return transpose(self, 0, 1);
}
Tensor reversed(const Tensor& self) {
  if (!isSparseCoo(self)) return t(self);
  DimVector order(static_cast<size_t>(self.dim()));
  for (int64_t d = 0; d < self.dim(); ++d) order[d] = self.dim() - 1 - d;
  return permute(self, order);
}
Tensor matrixTransposed(const Tensor& self) {
  WICK_CHECK(self.dim() >= 2, "mT: expected a tensor of two dimensions or more, got {}",
             self.dim());
  return transpose(self, -2, -1);
}
Tensor movedims(const Tensor& self, DimVector source, DimVector destination) {
  return permute(self, ops::movedDims(self.dim(), source, destination));
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return movedims(self, DimVector{source}, DimVector{destination});
}

// ---- picking ----

Tensor selectCompressed(const Tensor& self, int64_t dim, int64_t index) {
  const SparseForm& form = sparseFormOf("select", self);
  const int64_t batch = form.batchDim();
  DimVector sizes(self.sizes());
  sizes.erase(static_cast<size_t>(dim));
  if (dim < batch) {
    return makeSparseCompressed(form.layout, form.compressed.select(dim, index),
                                form.plain.select(dim, index), form.values.select(dim, index),
                                sizes);
  }
  WICK_CHECK(batch == 0 && !isBlocked(form.layout),
             "select(): selecting rows or columns is not implemented for batched or blocked sparse "
             "compressed tensors");
  return ops::select(toTensor(coalesce(expandedOf("select", self))), dim, index);
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  WICK_CHECK(self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int64_t d = wrapDim(dim, self.dim()), size = self.size(d);
  WICK_CHECK(index >= -size && index < size,
             "select(): index {} out of range for tensor of size {} at dimension {}", index,
             formatInts(self.sizes()), d);
  if (index < 0) index += size;
  if (!isSparseCoo(self)) return selectCompressed(self, d, index);
  const Coordinates c = coordinatesOf("select", self);
  DimVector sizes = c.sizes;
  sizes.erase(static_cast<size_t>(d));
  if (d >= c.sparseDim()) {
    return makeSparseCoo(c.indices, c.values.select(d - c.sparseDim() + 1, index), sizes, false);
  }
  Positions which;
  Pace pace;
  for (int64_t i = 0; i < c.count(); ++i) {
    pace.step();
    if (c.row(d)[i] == index) which.push_back(i);
  }
  const Coordinates picked = entries(c, which);
  if (c.sparseDim() == 1) {
    Tensor sum = Tensor::zeros(sizes, c.dtype());
    addRows(sum, c.inner(), Positions(which.size(), 0), picked.values);
    return sum;
  }
  DimVector rows;
  for (int64_t r = 0; r < c.sparseDim(); ++r) {
    if (r != d) rows.push_back(r);
  }
  return makeSparseCoo(pickRows(picked.indices, rows), picked.values, sizes, false);
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  const int64_t d = wrapDim(dim, self.dim());
  std::vector<Tensor> parts;
  WICK_CHECK(self.dim() > 0, "Dimension specified as {} but tensor has no dimensions", dim);
  for (int64_t i = 0; i < self.size(d); ++i) {
    checkBudget();
    parts.push_back(select(self, d, i));
  }
  return parts;
}

// One index may pick an entry several times.
Tensor indexSelect(const Tensor& self, int64_t dim, const Tensor& index) {
  WICK_CHECK(index.kind() == TensorKind::Dense && index.dim() <= 1,
             "index_select(): Index is supposed to be a vector");
  WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
             "index_select(): Expected dtype int32/int64 for index but got: {}",
             toString(index.dtype()));
  WICK_CHECK(self.dim() > 0, "index_select() cannot be applied to a 0-dim tensor.");
  if (!isSparseCoo(self)) refuseLayout("index_select", self);
  const int64_t d = wrapDim(dim, self.dim()), size = self.size(d);
  const Tensor wide = index.to(DType::Long).contiguous().view(DimVector{-1});
  Positions wanted(wide.data<int64_t>(), wide.data<int64_t>() + wide.numel());
  for (int64_t& i : wanted) {
    WICK_CHECK(i >= -size && i < size,
               "index_select(): index contains {} that is out of range for tensor of size {} at "
               "dimension {}",
               i, formatInts(self.sizes()), d);
    if (i < 0) i += size;
  }
  const Coordinates c = coordinatesOf("index_select", self);
  DimVector sizes = c.sizes;
  sizes[d] = wide.numel();
  if (d >= c.sparseDim()) {
    const Tensor checked = indexTensor(wanted, DimVector{wide.numel()});
    return makeSparseCoo(c.indices, ops::indexSelect(c.values, d - c.sparseDim() + 1, checked),
                         sizes, false);
  }
  // The entries in order of their index along d, and where those of each index begin.
  Positions order(static_cast<size_t>(c.count()));
  std::iota(order.begin(), order.end(), 0);
  const int64_t* const along = c.row(d);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return along[a] < along[b]; });
  Positions which, place;
  Pace pace;
  for (size_t k = 0; k < wanted.size(); ++k) {
    pace.step(16);
    auto at = std::lower_bound(order.begin(), order.end(), wanted[k],
                               [&](int64_t a, int64_t value) { return along[a] < value; });
    for (; at != order.end() && along[*at] == wanted[k]; ++at) {
      pace.step();
      which.push_back(*at);
      place.push_back(static_cast<int64_t>(k));
    }
  }
  const Coordinates picked = entries(c, which);
  std::copy(place.begin(), place.end(), picked.indices.data<int64_t>() + d * picked.count());
  return makeSparseCoo(picked.indices, picked.values, sizes, false);
}

Tensor narrowCopy(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  if (!isSparseCoo(self)) refuseLayout("narrow_copy", self);
  const int64_t d = wrapDim(dim, self.dim());
  WICK_CHECK(
      self.dim() > 0 && start >= 0 && length >= 0 && start <= self.size(d) &&
          length <= self.size(d) - start,
      "Invalid range to narrow. range(start, start+length) must be a subset of range(0, {}).",
      self.dim() > 0 ? self.size(d) : 0);
  const Coordinates c = coordinatesOf("narrow_copy", self);
  DimVector sizes = c.sizes;
  sizes[d] = length;
  if (d >= c.sparseDim()) {
    return makeSparseCoo(c.indices, c.values.narrow(d - c.sparseDim() + 1, start, length), sizes,
                         c.coalesced);
  }
  Positions which;
  Pace pace;
  for (int64_t i = 0; i < c.count(); ++i) {
    pace.step();
    if (c.row(d)[i] >= start && c.row(d)[i] - start < length) which.push_back(i);
  }
  const Coordinates picked = entries(c, which);
  int64_t* const row = picked.indices.data<int64_t>() + d * picked.count();
  for (int64_t i = 0; i < picked.count(); ++i) row[i] -= start;
  return makeSparseCoo(picked.indices, picked.values, sizes, c.coalesced);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  if (!isSparseCoo(self)) refuseLayout("unsqueeze", self);
  const int64_t d = wrapDim(dim, self.dim() + 1);
  const Coordinates c = coordinatesOf("unsqueeze", self);
  DimVector sizes = c.sizes;
  sizes.insert(static_cast<size_t>(d), 1);
  if (d > c.sparseDim()) {
    return makeSparseCoo(c.indices, c.values.unsqueeze(d - c.sparseDim() + 1), sizes, false);
  }
  const std::vector<Tensor> rows{c.indices.narrow(0, 0, d),
                                 Tensor::zeros(DimVector{1, c.count()}, DType::Long),
                                 c.indices.narrow(0, d, c.sparseDim() - d)};
  return makeSparseCoo(ops::cat(rows, int64_t{0}), c.values, sizes, false);
}

// ---- joining ----

Tensor cat(std::vector<Tensor> tensors, int64_t dim) {
  WICK_CHECK(!tensors.empty(), "cat: expected a non-empty list of Tensors");
  for (size_t i = 0; i < tensors.size(); ++i) {
    WICK_CHECK(isSparseCoo(tensors[i]),
               "Concatenating sparse tensors, but a tensor of layout {} was found at position {}.",
               layoutName(tensors[i]), i);
  }
  const Coordinates first = coordinatesOf("cat", tensors[0]);
  const int64_t d = wrapDim(dim, static_cast<int64_t>(first.sizes.size()));
  WICK_CHECK(!first.sizes.empty(),
             "zero-dimensional tensor (at position 0) cannot be concatenated");
  const bool sparse = d < first.sparseDim();
  DType dtype = first.dtype();
  for (const Tensor& t : tensors) dtype = promoteTypes(dtype, t.dtype());
  DimVector sizes = first.sizes;
  sizes[d] = 0;
  std::vector<Coordinates> parts;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Coordinates c = toDType(coordinatesOf("cat", tensors[i]), dtype);
    WICK_CHECK(
        c.sparseDim() == first.sparseDim() && c.denseDim() == first.denseDim(),
        "All tensors must have the same shape: {} sparse and {} dense dimensions, but tensor "
        "at position {} has {} and {}.",
        first.sparseDim(), first.denseDim(), i, c.sparseDim(), c.denseDim());
    for (size_t k = 0; k < sizes.size(); ++k) {
      WICK_CHECK(
          static_cast<int64_t>(k) == d || c.sizes[k] == sizes[k],
          "All tensors must have the same shape: {} (except in the concatenating dimension), "
          "but found shape: {} at position {}",
          formatInts(first.sizes), formatInts(c.sizes), i);
    }
    parts.push_back(std::move(c));
  }
  std::vector<Tensor> indices, values;
  for (Coordinates& c : parts) {
    Tensor own = c.indices;
    Tensor part = c.values;
    if (sparse && sizes[d] != 0) {
      own = own.clone();
      int64_t* const row = own.data<int64_t>() + d * c.count();
      for (int64_t i = 0; i < c.count(); ++i) row[i] += sizes[d];
    }
    if (!sparse) {
      // Each part's values, with zeros where the other parts lie; added below.
      DimVector whole(c.values.sizes());
      const int64_t along = d - first.sparseDim() + 1;
      whole[along] = 0;
      for (const Coordinates& other : parts) whole[along] += other.values.size(along);
      part = Tensor::zeros(whole, dtype);
      part.narrow(along, sizes[d], c.values.size(along)).copyFrom(c.values);
    }
    WICK_CHECK(!__builtin_add_overflow(sizes[d], c.sizes[d], &sizes[d]),
               "cat: sizes are too large");
    indices.push_back(own);
    values.push_back(part);
  }
  return makeSparseCoo(ops::cat(indices, int64_t{1}), ops::cat(values, int64_t{0}), sizes, false);
}

Tensor stack(std::vector<Tensor> tensors, int64_t dim) {
  WICK_CHECK(!tensors.empty(), "stack expects a non-empty TensorList");
  for (Tensor& t : tensors) {
    WICK_CHECK(isSparseCoo(t) && std::ranges::equal(t.sizes(), tensors[0].sizes()),
               "stack expects each tensor to be sparse in coordinates and of equal size");
  }
  const int64_t d = wrapDim(dim, tensors[0].dim() + 1);
  for (Tensor& t : tensors) t = unsqueeze(t, d);
  return cat(std::move(tensors), d);
}
Tensor hstack(std::vector<Tensor> tensors) {
  WICK_CHECK(!tensors.empty() && tensors[0].dim() > 0, "hstack expects tensors with dimensions");
  const int64_t dim = tensors[0].dim() == 1 ? 0 : 1;
  return cat(std::move(tensors), dim);
}
Tensor vstack(std::vector<Tensor> tensors) {
  for (Tensor& t : tensors) {
    if (t.dim() == 1) t = unsqueeze(t, 0);
  }
  return cat(std::move(tensors), 0);
}

// New leading dimensions, and those of size one repeated.
Tensor broadcastTo(const Tensor& self, DimVector size) {
  const Coordinates c = coordinatesOf("_sparse_broadcast_to", self);
  const auto more = static_cast<int64_t>(size.size()) - self.dim();
  WICK_CHECK(more >= 0 && std::ranges::equal(broadcastShapes(c.sizes, size), size),
             "_sparse_broadcast_to: sizes {} cannot be broadcast to {}", formatInts(c.sizes),
             formatInts(size));
  DimVector repeated;  // the new sparse dimensions that are broadcast
  int64_t times = 1;
  const int64_t sparse_dim = c.sparseDim() + more;
  for (int64_t d = 0; d < sparse_dim; ++d) {
    const bool grows = d < more || (c.sizes[d - more] == 1 && size[d] != 1);
    if (!grows) continue;
    repeated.push_back(d);
    WICK_CHECK(!__builtin_mul_overflow(times, size[d], &times), "sizes {} are too large",
               formatInts(size));
  }
  DimVector value_sizes{c.count()};
  for (size_t d = static_cast<size_t>(sparse_dim); d < size.size(); ++d)
    value_sizes.push_back(size[d]);
  int64_t total = 0;
  WICK_CHECK(!__builtin_mul_overflow(times, c.count(), &total), "sizes {} are too large",
             formatInts(size));
  Tensor indices = Tensor::zeros(DimVector{sparse_dim, total}, DType::Long);
  int64_t* const out = indices.data<int64_t>();
  Positions from(static_cast<size_t>(total));
  Pace pace;
  for (int64_t i = 0; i < total; ++i) {
    pace.step(sparse_dim + 1);
    const int64_t entry = i % std::max<int64_t>(c.count(), 1);
    int64_t rest = i / std::max<int64_t>(c.count(), 1);
    from[i] = entry;
    for (int64_t d = more; d < sparse_dim; ++d) out[d * total + i] = c.row(d - more)[entry];
    for (size_t k = repeated.size(); k-- > 0;) {
      out[repeated[k] * total + i] = rest % size[repeated[k]];
      rest /= size[repeated[k]];
    }
  }
  const Tensor values = ops::indexSelect(c.values.expand(value_sizes), int64_t{0},
                                         indexTensor(from, DimVector{total}));
  return makeSparseCoo(indices, values, size, false);
}

// ---- masks and sizes ----

Tensor mask(const Tensor& self, const Tensor& mask) {
  const SparseForm& form = sparseFormOf("sparse_mask", mask);
  WICK_CHECK(!form.isCoo() || form.coalesced, "sparse_mask: mask is uncoalesced");
  WICK_CHECK(
      std::ranges::equal(self.sizes(), mask.sizes()),
      "sparse_mask(): operands have incompatible sizes; self has size {} but mask has size {}",
      formatInts(self.sizes()), formatInts(mask.sizes()));
  WICK_CHECK(
      self.kind() != TensorKind::Sparse || sparseFormOf("sparse_mask", self).layout == form.layout,
      "sparse_mask: the layouts {} and {} of the tensor and its mask differ", layoutName(self),
      layoutName(mask));
  if (self.kind() == TensorKind::Sparse) {
    // The entries of both, zero where only the mask has one.
    const Coordinates own = coalesce(expandedOf("sparse_mask", self));
    const Coordinates places_of = expandedOf("sparse_mask", mask);
    const Positions have = places(own), want = places(places_of);
    WICK_CHECK(own.sparseDim() == places_of.sparseDim(),
               "sparse_mask: the numbers of sparse dimensions, {} and {}, differ", own.sparseDim(),
               places_of.sparseDim());
    Positions to, from;
    Pace pace;
    for (size_t i = 0; i < want.size(); ++i) {
      pace.step(8);
      const auto found = std::lower_bound(have.begin(), have.end(), want[i]);
      const bool there = found != have.end() && *found == want[i];
      if (there) to.push_back(static_cast<int64_t>(i));
      if (there) from.push_back(found - have.begin());
    }
    Tensor values = Tensor::zeros(places_of.values.sizes(), self.dtype());
    addRows(values, own.inner(), to, entries(own, from).values);
    if (form.isCoo()) return toTensor(withValues(places_of, values));
    // PyTorch keeps the entries that both have.
    if (isBlocked(form.layout)) refuseLayout("sparse_mask", self);
    Coordinates shared = entries(places_of, to);
    shared.values = entries(own, from).values;
    return compress("sparse_mask", shared, form.layout, kOne);
  }
  const Coordinates c = expandedOf("sparse_mask", mask);
  std::vector<Tensor> at;
  for (int64_t d = 0; d < c.sparseDim(); ++d) at.push_back(c.indices.select(0, d));
  const Tensor values = at.empty() ? self.unsqueeze(0) : ops::index(self, at);
  if (form.isCoo()) return toTensor(withValues(c, values));
  return withCompressedValues(mask, values.reshape(form.values.sizes()));
}

// The values of `t` at indices; zero where it has no entry.
Tensor maskHelper(const Tensor& t, const Tensor& mask_indices) {
  const Coordinates own = coalesce(coordinatesOf("_sparse_mask_helper", t));
  DimVector value_sizes(own.values.sizes());
  value_sizes[0] = mask_indices.dim() == 2 ? mask_indices.size(1) : 0;
  const Tensor zeros = Tensor::zeros(value_sizes, t.dtype());
  const Tensor like = makeSparseCoo(mask_indices, zeros, t.sizes(), true);
  return sparseFormOf("_sparse_mask_helper", mask(toTensor(own), like)).values.detach();
}

Tensor resized(const char* op, const Tensor& self, const DimVector& size, int64_t sparse_dim,
               int64_t dense_dim, bool clear) {
  const SparseForm& form = sparseFormOf(op, self);
  if (!form.isCoo()) refuseLayout(op, self);
  WICK_CHECK(sparse_dim >= 0 && dense_dim >= 0 && sparse_dim <= static_cast<int64_t>(size.size()) &&
                 sparse_dim + dense_dim == static_cast<int64_t>(size.size()),
             "number of dimensions must be sparse_dim ({}) + dense_dim ({}), but got {}",
             sparse_dim, dense_dim, size.size());
  if (clear || form.count() == 0) return emptyCoo(sparse_dim, size, self.dtype());
  WICK_CHECK(
      sparse_dim == form.sparse_dim,
      "changing the number of sparse dimensions (from {} to {}) on a non-empty sparse tensor "
      "is not supported.",
      form.sparse_dim, sparse_dim);
  WICK_CHECK(dense_dim == form.dense_dim,
             "changing the number of dense dimensions (from {} to {}) on a non-empty sparse tensor "
             "is not supported.",
             form.dense_dim, dense_dim);
  bool grows = false;
  for (size_t d = 0; d < size.size(); ++d) {
    const bool sparse = static_cast<int64_t>(d) < sparse_dim;
    WICK_CHECK(
        size[d] >= self.sizes()[d],
        "shrinking the size of {} dimensions (from {} to {}) on a non-empty sparse tensor is "
        "not supported.",
        sparse ? "sparse" : "dense", formatInts(self.sizes()), formatInts(size));
    grows |= !sparse && size[d] != self.sizes()[d];
  }
  Tensor values = form.values;
  if (grows) {
    DimVector value_sizes{form.count()};
    for (size_t d = static_cast<size_t>(sparse_dim); d < size.size(); ++d) {
      value_sizes.push_back(size[d]);
    }
    values = Tensor::zeros(value_sizes, self.dtype());
    Tensor part = values;
    for (int64_t d = 1; d < values.dim(); ++d) part = part.narrow(d, 0, form.values.size(d));
    part.copyFrom(form.values);
  }
  return makeSparseCoo(form.indices, values, size, form.coalesced);
}
Tensor resizeInto(const Tensor& self, DimVector size, int64_t sparse_dim, int64_t dense_dim) {
  self.impl()->takeOver(
      *resized("sparse_resize_", self, size, sparse_dim, dense_dim, false).impl());
  return self;
}
Tensor resizeAndClear(const Tensor& self, DimVector size, int64_t sparse_dim, int64_t dense_dim) {
  self.impl()->takeOver(
      *resized("sparse_resize_and_clear_", self, size, sparse_dim, dense_dim, true).impl());
  return self;
}
Tensor resizeAs(const Tensor& self, const Tensor& other) {
  const SparseForm& form = sparseFormOf("resize_as_sparse_", self);
  const SparseForm& like = sparseFormOf("resize_as_sparse_", other);
  WICK_CHECK(form.layout == like.layout, "resize_as_sparse_: the layouts {} and {} differ",
             layoutName(self), layoutName(other));
  if (!form.isCoo()) {
    self.impl()->takeOver(
        *makeSparseCompressed(form.layout, like.compressed.clone(), like.plain.clone(),
                              Tensor::zeros(like.values.sizes(), self.dtype()), other.sizes())
             .impl());
    return self;
  }
  if (std::ranges::equal(self.sizes(), other.sizes()) && form.sparse_dim == like.sparse_dim) {
    return self;
  }
  return resizeInto(self, DimVector(other.sizes()), like.sparse_dim, like.dense_dim);
}

// The same, of a tensor of its own.
Tensor resizedCopy(const Tensor& self, DimVector size, int64_t sparse_dim, int64_t dense_dim) {
  return resized("sparse_resize", self, size, sparse_dim, dense_dim, false);
}
Tensor clearedCopy(const Tensor& self, DimVector size, int64_t sparse_dim, int64_t dense_dim) {
  return resized("sparse_resize_and_clear", self, size, sparse_dim, dense_dim, true);
}
Tensor resizedAsCopy(const Tensor& self, const Tensor& other) {
  sparseFormOf("resize_as_sparse", self);
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->takeOver(*self.impl());
  return resizeAs(Tensor(std::move(impl)), other);
}

template <auto kMade>
Tensor inPlace(const Tensor& self) {
  self.impl()->takeOver(*kMade(self).impl());
  return self;
}
Tensor transposeInto(const Tensor& self, int64_t dim0, int64_t dim1) {
  self.impl()->takeOver(*transpose(self, dim0, dim1).impl());
  return self;
}

constexpr OperatorRecord kShapesRecords[] = {
    {"aten::sparse_mask(Tensor self, Tensor mask) -> Tensor", WICK_KERNEL(mask),
     kAnyKind | kOutForm},
    {"aten::_sparse_mask_helper(Tensor t, Tensor mask_indices) -> Tensor", WICK_KERNEL(maskHelper),
     kAnyKind},
    {"aten::_sparse_broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)",
     WICK_KERNEL(broadcastTo), kAnyKind},
    {"aten::_sparse_broadcast_to_copy(Tensor self, int[] size) -> Tensor", WICK_KERNEL(broadcastTo),
     kAnyKind | kOutForm},
    {"aten::sparse_resize(Tensor self, int[] size, int sparse_dim, int dense_dim) -> Tensor",
     WICK_KERNEL(resizedCopy), kAnyKind | kOutForm},
    {"aten::sparse_resize_and_clear(Tensor self, int[] size, int sparse_dim, int dense_dim) -> "
     "Tensor",
     WICK_KERNEL(clearedCopy), kAnyKind | kOutForm},
    {"aten::resize_as_sparse(Tensor self, Tensor the_template) -> Tensor",
     WICK_KERNEL(resizedAsCopy), kAnyKind | kOutForm},
    {"aten::sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> "
     "Tensor(a!)",
     WICK_KERNEL(resizeInto), kAnyKind | kChangesMetadata},
    {"aten::sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) "
     "-> "
     "Tensor(a!)",
     WICK_KERNEL(resizeAndClear), kAnyKind},
    {"aten::resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)",
     WICK_KERNEL(resizeAs), kAnyKind},
};
const RegisterOperators kShapesRegistered(kShapesRecords);

constexpr KindKernel kShapesKernels[] = {
    {"aten::permute", WICK_KERNEL(permute)},
    {"aten::transpose.int", WICK_KERNEL(transpose)},
    {"aten::transpose_", WICK_KERNEL(transposeInto)},
    {"aten::swapaxes", WICK_KERNEL(transpose)},
    {"aten::swapdims", WICK_KERNEL(transpose)},
    {"aten::t", WICK_KERNEL(t)},
    {"aten::t_", WICK_KERNEL(inPlace<t>)},
    {"aten::numpy_T", WICK_KERNEL(reversed)},
    {"aten::numpy_T.a", WICK_KERNEL(reversed)},
    {"aten::mT", WICK_KERNEL(matrixTransposed)},
    {"aten::mT.a", WICK_KERNEL(matrixTransposed)},
    {"aten::movedim.int", WICK_KERNEL(movedim)},
    {"aten::movedim.intlist", WICK_KERNEL(movedims)},
    {"aten::select.int", WICK_KERNEL(select)},
    {"aten::unbind.int", WICK_KERNEL(unbind)},
    {"aten::index_select", WICK_KERNEL(indexSelect)},
    {"aten::narrow_copy", WICK_KERNEL(narrowCopy)},
    {"aten::unsqueeze", WICK_KERNEL(unsqueeze)},
    {"aten::cat", WICK_KERNEL(cat)},
    {"aten::stack", WICK_KERNEL(stack)},
    {"aten::hstack", WICK_KERNEL(hstack)},
    {"aten::vstack", WICK_KERNEL(vstack)},
};
const RegisterKindKernels kShapesKernelsRegistered(TensorKind::Sparse, kShapesKernels);

}  // namespace

}  // namespace wick::ops::sparse

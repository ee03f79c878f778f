#include "runtime/ops/sparse/coordinates.h"

#include <algorithm>
#include <numeric>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/memory_limit.h"
#include "core/wrapped.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops::sparse {

namespace {

// The numbers of the entries in ascending order of the keys.
Positions ascending(const Positions& keys) {
  Positions order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::is_sorted(keys.begin(), keys.end())) return order;
  const Tensor sorted = ops::sortStable
                            .all(indexTensor(keys, DimVector{static_cast<int64_t>(keys.size())}),
                                 true, int64_t{0}, false)[1]
                            .toTensor()
                            .contiguous();
  const int64_t* at = sorted.data<int64_t>();
  std::copy(at, at + sorted.numel(), order.begin());
  return order;
}

Positions readIndices(const Tensor& t) {
  const Tensor wide = t.to(DType::Long).contiguous();
  const int64_t* data = wide.data<int64_t>();
  return Positions(data, data + wide.numel());
}

}  // namespace

Tensor indexTensor(const Positions& numbers, IntSpan sizes) {
  return Tensor::fromData(numbers.data(), sizes);
}

std::string layoutName(const Tensor& t) {
  return t.kind() == TensorKind::Sparse ? std::string(toString(sparseFormOf("", t).layout))
                                        : "Strided";
}

void refuseLayout(const char* op, const Tensor& t) {
  WICK_CHECK(t.kind() == TensorKind::Sparse,
             "{}: works on sparse tensors only, got one of layout {}", op, layoutName(t));
  throwRuntimeError("{}: not available for tensors of layout {}", op, layoutName(t));
}

Coordinates coordinatesOf(const char* op, const Tensor& t) {
  const SparseForm& form = sparseFormOf(op, t);
  if (!form.isCoo()) refuseLayout(op, t);
  checkIndices(form, t.sizes());
  return {form.indices.contiguous(), form.values.contiguous(), DimVector(t.sizes()),
          form.coalesced};
}

Coordinates expandedOf(const char* op, const Tensor& t) {
  const SparseForm& form = sparseFormOf(op, t);
  if (form.isCoo()) return coordinatesOf(op, t);
  checkIndices(form, t.sizes());
  const int64_t batch_dim = form.batchDim(), count = form.count();
  const IntSpan batch_sizes = t.sizes().subspan(0, static_cast<size_t>(batch_dim));
  const int64_t batches = checkedNumel(batch_sizes);
  const Positions begin = readIndices(form.compressed), plain = readIndices(form.plain);
  const int64_t lines = form.compressed.size(-1) - 1;
  const bool by_rows = isByRows(form.layout), blocked = isBlocked(form.layout);
  DimVector block{1, 1};
  if (blocked) {
    const IntSpan sizes = form.values.sizes().subspan(static_cast<size_t>(batch_dim) + 1, 2);
    block = DimVector(sizes);
  }
  const int64_t area = block[0] * block[1], sparse_dim = batch_dim + 2;
  const int64_t total = batches * count * area;
  Tensor indices = Tensor::empty(DimVector{sparse_dim, total}, DType::Long);
  int64_t* const out = indices.data<int64_t>();
  Pace pace;
  int64_t n = 0;
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t line = 0; line < lines; ++line) {
      pace.step();
      for (int64_t i = begin[b * (lines + 1) + line]; i < begin[b * (lines + 1) + line + 1]; ++i) {
        const int64_t other = plain[b * count + i];
        for (int64_t e = 0; e < area; ++e, ++n) {
          pace.step();
          int64_t rest = b;
          for (int64_t d = batch_dim; d-- > 0;) {
            out[d * total + n] = rest % batch_sizes[d];
            rest /= batch_sizes[d];
          }
          out[batch_dim * total + n] = (by_rows ? line : other) * block[0] + e / block[1];
          out[(batch_dim + 1) * total + n] = (by_rows ? other : line) * block[1] + e % block[1];
        }
      }
    }
  }
  DimVector value_sizes{total};
  for (const int64_t s : t.sizes().subspan(static_cast<size_t>(sparse_dim)))
    value_sizes.push_back(s);
  Coordinates c{std::move(indices), form.values.contiguous().view(value_sizes),
                DimVector(t.sizes()), by_rows && !blocked};
  return c;
}

Tensor toTensor(const Coordinates& c) {
  return makeSparseCoo(c.indices, c.values, c.sizes, c.coalesced);
}

Positions places(const Coordinates& c) {
  const int64_t count = c.count();
  Positions at(static_cast<size_t>(count), 0);
  if (count == 0) return at;
  const IntSpan sizes = c.sparseSizes();
  int64_t all = 1;
  for (const int64_t s : sizes) {
    WICK_CHECK(!__builtin_mul_overflow(all, s, &all), "sparse sizes {} are too large",
               formatInts(sizes));
  }
  Pace pace;
  for (int64_t d = 0; d < c.sparseDim(); ++d) {
    const int64_t* row = c.row(d);
    for (int64_t i = 0; i < count; ++i) {
      pace.step();
      at[i] = at[i] * sizes[d] + row[i];
    }
  }
  return at;
}

Coordinates entries(const Coordinates& c, const Positions& which) {
  const Tensor index = indexTensor(which, DimVector{static_cast<int64_t>(which.size())});
  return {ops::indexSelect(c.indices, int64_t{1}, index).contiguous(),
          ops::indexSelect(c.values, int64_t{0}, index).contiguous(), c.sizes, false};
}

Coordinates withValues(const Coordinates& c, const Tensor& values) {
  Coordinates out = c;
  out.values = values.contiguous();
  return out;
}

Coordinates toDType(const Coordinates& c, DType dtype) {
  return c.dtype() == dtype ? c : withValues(c, c.values.to(dtype));
}

void addRows(const Tensor& target, int64_t inner, const Positions& at, const Tensor& rows) {
  if (inner == 0) return;
  dispatchAll(target.dtype(), [&]<class T>() {
    T* const to = target.data<T>();
    const T* from = rows.data<T>();
    Pace pace;
    for (const int64_t place : at) {
      pace.step(inner);
      T* const sum = to + place * inner;
      for (int64_t k = 0; k < inner; ++k) {
        if constexpr (std::is_same_v<T, bool>) {
          sum[k] = sum[k] || from[k];
        } else if constexpr (dtypeCategory<T>() == kReducedFloats) {
          sum[k] = T(static_cast<float>(sum[k]) + static_cast<float>(from[k]));
        } else {
          sum[k] = wrappedSum(sum[k], from[k]);
        }
      }
      from += inner;
    }
  });
}

Coordinates coalesce(const Coordinates& c) {
  if (c.coalesced) return c;
  if (c.count() < 2) {
    Coordinates same = c;
    same.coalesced = true;
    return same;
  }
  const Positions at = places(c);
  const Positions order = ascending(at);
  Positions group(order.size()), firsts;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || at[order[i]] != at[order[i - 1]]) firsts.push_back(order[i]);
    group[i] = static_cast<int64_t>(firsts.size()) - 1;
  }
  if (firsts.size() == order.size()) {
    Coordinates sorted = entries(c, order);
    sorted.coalesced = true;
    return sorted;
  }
  const Tensor rows = entries(c, order).values;
  DimVector value_sizes(c.values.sizes());
  value_sizes[0] = static_cast<int64_t>(firsts.size());
  Tensor values = Tensor::zeros(value_sizes, c.dtype());
  addRows(values, c.inner(), group, rows);
  const Tensor index = indexTensor(firsts, DimVector{value_sizes[0]});
  return {ops::indexSelect(c.indices, int64_t{1}, index).contiguous(), std::move(values), c.sizes,
          true};
}

Tensor toDense(const Coordinates& c) {
  Tensor dense = Tensor::zeros(c.sizes, c.dtype());
  addRows(dense, c.inner(), places(c), c.values);
  return dense;
}

Tensor emptyCoo(int64_t sparse_dim, IntSpan sizes, DType dtype) {
  DimVector value_sizes{0};
  for (const int64_t s : sizes.subspan(static_cast<size_t>(sparse_dim))) value_sizes.push_back(s);
  return makeSparseCoo(Tensor::empty(DimVector{sparse_dim, 0}, DType::Long),
                       Tensor::empty(value_sizes, dtype), sizes, true);
}

namespace {

// Entries of single elements as entries of blocks.
Coordinates blocksOf(const Coordinates& c, int64_t batch_dim, IntSpan block) {
  const int64_t count = c.count();
  // Made first, because it refuses sizes without a product.
  Tensor values = Tensor::zeros(DimVector{count, block[0], block[1]}, c.dtype());
  const int64_t area = block[0] * block[1];
  Tensor indices = c.indices.clone();
  int64_t* const rows = indices.data<int64_t>() + batch_dim * count;
  int64_t* const columns = rows + count;
  Positions at(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    at[i] = i * area + rows[i] % block[0] * block[1] + columns[i] % block[1];
    rows[i] /= block[0];
    columns[i] /= block[1];
  }
  addRows(values, 1, at, c.values);
  DimVector sizes(IntSpan(c.sizes).subspan(0, static_cast<size_t>(batch_dim)));
  for (size_t d = 0; d < 2; ++d) sizes.push_back(c.sizes[batch_dim + d] / block[d]);
  for (const int64_t b : block) sizes.push_back(b);
  return coalesce({std::move(indices), std::move(values), std::move(sizes), false});
}

}  // namespace

Tensor compress(const char* op, const Coordinates& c, SparseLayout layout, IntSpan block) {
  const int64_t batch_dim = c.sparseDim() - 2;
  WICK_CHECK(batch_dim >= 0 && c.denseDim() == 0,
             "{}: expected a matrix or a batch of them, got {} sparse and {} dense dimensions", op,
             c.sparseDim(), c.denseDim());
  const bool blocked = isBlocked(layout), by_rows = isByRows(layout);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t size = c.sizes[static_cast<size_t>(batch_dim) + d];
    WICK_CHECK(block[d] > 0, "{}: block sizes must be positive, got {}", op, formatInts(block));
    WICK_CHECK(size % block[d] == 0,
               "{}: Tensor size({}) {} needs to be divisible by blocksize[{}] {}", op,
               static_cast<int64_t>(d) - 2, size, d, block[d]);
  }
  Coordinates sorted = coalesce(c);
  if (blocked) sorted = blocksOf(sorted, batch_dim, block);
  const int64_t count = sorted.count();
  const IntSpan batch_sizes = IntSpan(sorted.sizes).subspan(0, static_cast<size_t>(batch_dim));
  const int64_t batches = checkedNumel(batch_sizes);
  const int64_t lines = sorted.sizes[batch_dim + (by_rows ? 0 : 1)];
  int64_t cells = 0;
  WICK_CHECK(!__builtin_mul_overflow(batches, lines + 1, &cells), "{}: sizes {} are too large", op,
             formatInts(c.sizes));
  checkAllocation(op, static_cast<size_t>(std::min<int64_t>(cells, int64_t{1} << 58)) * 8);
  // By columns: rows and columns change places for the sorting.
  Coordinates keys = sorted;
  if (!by_rows) {
    Positions rows(static_cast<size_t>(keys.sparseDim()));
    std::iota(rows.begin(), rows.end(), 0);
    std::swap(rows[batch_dim], rows[batch_dim + 1]);
    keys.indices =
        ops::indexSelect(keys.indices, int64_t{0}, indexTensor(rows, DimVector{keys.sparseDim()}))
            .contiguous();
    std::swap(keys.sizes[batch_dim], keys.sizes[batch_dim + 1]);
    keys = entries(keys, ascending(places(keys)));
  }
  const int64_t per_batch = batches == 0 ? 0 : count / batches;
  Tensor compressed = Tensor::zeros(DimVector{cells}, DType::Long);
  int64_t* const begin = compressed.data<int64_t>();
  const int64_t* const line = keys.row(batch_dim);
  Pace pace;
  for (int64_t i = 0; i < count; ++i) {
    pace.step();
    int64_t b = 0;
    for (int64_t d = 0; d < batch_dim; ++d) b = b * batch_sizes[d] + keys.row(d)[i];
    WICK_CHECK(i / std::max<int64_t>(per_batch, 1) == b,
               "{}: Expect the same number of specified elements per batch.", op);
    ++begin[b * (lines + 1) + line[i] + 1];
  }
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t l = 0; l < lines; ++l) {
      pace.step();
      begin[b * (lines + 1) + l + 1] += begin[b * (lines + 1) + l];
    }
    WICK_CHECK(begin[b * (lines + 1) + lines] == per_batch,
               "{}: Expect the same number of specified elements per batch.", op);
  }
  DimVector compressed_sizes(batch_sizes), plain_sizes(batch_sizes), sizes(c.sizes);
  compressed_sizes.push_back(lines + 1);
  plain_sizes.push_back(per_batch);
  DimVector value_sizes = plain_sizes;
  if (blocked) {
    for (const int64_t b : block) value_sizes.push_back(b);
  }
  const Positions plain(keys.row(batch_dim + 1), keys.row(batch_dim + 1) + count);
  return makeSparseCompressed(layout, compressed.view(compressed_sizes),
                              indexTensor(plain, plain_sizes), keys.values.view(value_sizes),
                              sizes);
}

Tensor withCompressedValues(const Tensor& t, const Tensor& values) {
  const SparseForm& form = sparseFormOf("values", t);
  return makeSparseCompressed(form.layout, form.compressed, form.plain, values, t.sizes());
}

Rows rowsOf(const char* op, const Tensor& matrix) {
  const Coordinates c = expandedOf(op, matrix);
  WICK_CHECK(c.sizes.size() == 2 && c.denseDim() == 0,
             "{}: expected a sparse matrix of two sparse dimensions, got {} sparse and {} dense",
             op, c.sparseDim(), c.denseDim());
  Rows out;
  out.rows = c.sizes[0];
  out.num_columns = c.sizes[1];
  checkAllocation(op, static_cast<size_t>(out.rows) * sizeof(int64_t));
  out.begin.assign(static_cast<size_t>(out.rows) + 1, 0);
  const int64_t* const row = c.row(0);
  const int64_t* const column = c.row(1);
  const int64_t count = c.count();
  Pace pace;
  bool sorted = true;
  for (int64_t i = 0; i < count; ++i) {
    pace.step();
    ++out.begin[row[i] + 1];
    sorted = sorted && (i == 0 || row[i - 1] <= row[i]);
  }
  std::partial_sum(out.begin.begin(), out.begin.end(), out.begin.begin());
  if (sorted) {
    out.columns.assign(column, column + count);
    out.values = c.values;
    return out;
  }
  Positions next(out.begin.begin(), out.begin.end() - 1), order(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) order[next[row[i]]++] = i;
  out.columns.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) out.columns[i] = column[order[i]];
  out.values = entries(c, order).values;
  return out;
}

}  // namespace wick::ops::sparse

// Rules of views, of joining and of factories.
#include <algorithm>
#include <cmath>

#include "core/dtype_promotion.h"
#include "runtime/ops/shapes/shape_helpers.h"

namespace wick::ops::shapes {

namespace {

Types viewOf(const Node& node, std::optional<Sizes> sizes) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(self.dtype, std::move(sizes), self.device);
}

// Sizes with one -1 of a tensor with these elements.
std::optional<Sizes> inferred(const Value* list, const std::optional<Sizes>& from) {
  std::optional<std::vector<SizeArgument>> wanted = list ? sizeArguments(list) : std::nullopt;
  if (!wanted) return std::nullopt;
  Sizes out;
  Size others = 1;
  std::optional<size_t> missing;
  for (size_t i = 0; i < wanted->size(); ++i) {
    const SizeArgument& s = (*wanted)[i];
    out.push_back(s.size);
    if (s.is_minus_one) {
      missing = i;
    } else {
      others = multiplySizes(others, s.size);
    }
  }
  if (missing && from) out[*missing] = divideSizes(productOf(*from), others);
  return out;
}

// The dimension that an argument names, of a tensor of this rank.
std::optional<size_t> dimArgument(const Node& node, std::string_view name, size_t rank) {
  std::optional<int64_t> d = intArgument(node, name);
  return d ? wrappedDim(*d, rank) : std::nullopt;
}

}  // namespace

Types view(const Node& node) {
  const Value* sizes = argumentOf(node, "size");
  if (!sizes) sizes = argumentOf(node, "shape");
  return viewOf(node, inferred(sizes, sizesOf(firstTensor(node))));
}

Types viewAs(const Node& node) {
  return viewOf(node, sizesOf(tensorArgument(node, "other")));
}

Types expanded(const Node& node) {
  const Value* list = argumentOf(node, "size");
  std::optional<std::vector<SizeArgument>> wanted = list ? sizeArguments(list) : std::nullopt;
  if (!wanted) return viewOf(node, std::nullopt);
  std::optional<Sizes> from = sizesOf(firstTensor(node));
  Sizes out;
  for (size_t i = 0; i < wanted->size(); ++i) {
    const SizeArgument& s = (*wanted)[i];
    Size kept;
    if (s.is_minus_one && from && from->size() + i >= wanted->size()) {
      kept = (*from)[from->size() + i - wanted->size()];
    }
    out.push_back(s.is_minus_one ? kept : s.size);
  }
  return viewOf(node, std::move(out));
}

Types broadcastTo(const Node& node) {
  return expanded(node);
}

Types flattened(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) {
    // From dimension 1 on to the last, which is refused for tensors without it.
    std::optional<int64_t> start = intArgument(node, "start_dim");
    bool known = start && *start > 0 && *start < 64 && intArgument(node, "end_dim") == -1;
    return viewOf(node, known ? std::optional<Sizes>(Sizes(*start + 1)) : std::nullopt);
  }
  std::optional<size_t> first = argumentOf(node, "start_dim")
                                    ? dimArgument(node, "start_dim", sizes->size())
                                    : std::optional<size_t>(0);
  std::optional<size_t> last = argumentOf(node, "end_dim")
                                   ? dimArgument(node, "end_dim", sizes->size())
                                   : std::optional<size_t>(std::max<size_t>(sizes->size(), 1) - 1);
  if (!first || !last || *first > *last) return viewOf(node, std::nullopt);
  if (sizes->empty()) return viewOf(node, Sizes{1});
  Sizes out(sizes->begin(), sizes->begin() + *first);
  out.push_back(productOf(Sizes(sizes->begin() + *first, sizes->begin() + *last + 1)));
  out.insert(out.end(), sizes->begin() + *last + 1, sizes->end());
  return viewOf(node, std::move(out));
}

Types unflattened(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<size_t> d = dimArgument(node, "dim", sizes->size());
  if (!d || *d >= sizes->size()) return viewOf(node, std::nullopt);
  std::optional<Sizes> inner = inferred(argumentOf(node, "sizes"), Sizes{(*sizes)[*d]});
  if (!inner) return viewOf(node, std::nullopt);
  sizes->erase(sizes->begin() + *d);
  sizes->insert(sizes->begin() + *d, inner->begin(), inner->end());
  return viewOf(node, std::move(sizes));
}

Types squeezed(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  Sizes out;
  for (Size s : *sizes) {
    if (!s || *s < 0) return viewOf(node, std::nullopt);
    if (*s != 1) out.push_back(s);
  }
  return viewOf(node, std::move(out));
}

Types squeezedDim(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<size_t> d = dimArgument(node, "dim", sizes->size());
  if (!d) return viewOf(node, std::nullopt);
  if (*d >= sizes->size()) return viewOf(node, std::move(sizes));
  Size s = (*sizes)[*d];
  if (!s || *s < 0) return viewOf(node, std::nullopt);
  if (*s == 1) sizes->erase(sizes->begin() + *d);
  return viewOf(node, std::move(sizes));
}

Types unsqueezed(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<size_t> d = dimArgument(node, "dim", sizes->size() + 1);
  if (!d) return viewOf(node, Sizes(sizes->size() + 1));
  sizes->insert(sizes->begin() + *d, 1);
  return viewOf(node, std::move(sizes));
}

Types transposed(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<int64_t> a = intOf(node.input(1));
  std::optional<int64_t> b = intOf(node.input(2));
  std::optional<size_t> i = a ? wrappedDim(*a, sizes->size()) : std::nullopt;
  std::optional<size_t> j = b ? wrappedDim(*b, sizes->size()) : std::nullopt;
  if (!i || !j) return viewOf(node, Sizes(sizes->size()));
  if (!sizes->empty()) std::swap((*sizes)[*i], (*sizes)[*j]);
  return viewOf(node, std::move(sizes));
}

Types transposedMatrix(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (sizes && sizes->size() == 2) std::swap((*sizes)[0], (*sizes)[1]);
  return viewOf(node, std::move(sizes));
}

Types transposedLast(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (sizes && sizes->size() >= 2)
    std::swap((*sizes)[sizes->size() - 1], (*sizes)[sizes->size() - 2]);
  return viewOf(node, std::move(sizes));
}

Types reversedDims(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (sizes) std::reverse(sizes->begin(), sizes->end());
  return viewOf(node, std::move(sizes));
}

Types permuted(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  std::optional<std::vector<int64_t>> order = intsOf(argumentOf(node, "dims"));
  if (!order)
    return viewOf(node, sizes ? std::optional<Sizes>(Sizes(sizes->size())) : std::nullopt);
  Sizes out;
  for (int64_t d : *order) {
    std::optional<size_t> i = wrappedDim(d, order->size());
    out.push_back(i && sizes && *i < sizes->size() ? (*sizes)[*i] : std::nullopt);
  }
  return viewOf(node, std::move(out));
}

Types movedDim(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<std::vector<int64_t>> from = intsOf(argumentOf(node, "source"));
  std::optional<std::vector<int64_t>> to = intsOf(argumentOf(node, "destination"));
  size_t rank = sizes->size();
  if (!from || !to || from->size() != to->size() || rank == 0) return viewOf(node, Sizes(rank));
  std::vector<bool> moved(rank), taken(rank);
  Sizes out(rank);
  for (size_t k = 0; k < from->size(); ++k) {
    std::optional<size_t> i = wrappedDim((*from)[k], rank);
    std::optional<size_t> j = wrappedDim((*to)[k], rank);
    if (!i || !j || moved[*i] || taken[*j]) return viewOf(node, Sizes(rank));
    moved[*i] = taken[*j] = true;
    out[*j] = (*sizes)[*i];
  }
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (moved[i]) continue;
    while (taken[next]) ++next;
    out[next++] = (*sizes)[i];
  }
  return viewOf(node, std::move(out));
}

Types selected(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes || sizes->empty()) return viewOf(node, std::nullopt);
  std::optional<size_t> d = dimArgument(node, "dim", sizes->size());
  if (!d) return viewOf(node, Sizes(sizes->size() - 1));
  sizes->erase(sizes->begin() + *d);
  return viewOf(node, std::move(sizes));
}

namespace {

// How many elements start:end:step takes of `size`. A bound counted from the end of a symbolic size
// is known only when it leaves all.
Size slicedSize(const Node& node, Size size) {
  const Value* start_value = argumentOf(node, "start");
  const Value* end_value = argumentOf(node, "end");
  std::optional<int64_t> start = isNoneConstant(start_value) ? 0 : intOf(start_value);
  std::optional<int64_t> end = isNoneConstant(end_value) ? INT64_MAX : intOf(end_value);
  std::optional<int64_t> step = intArgument(node, "step");
  if (!size || !start || !step || *step <= 0) return std::nullopt;
  if (*size < 0) {
    bool whole =
        *start == 0 && *step == 1 && ((end && *end == INT64_MAX) || sizeValue(end_value) == size);
    return whole ? size : std::nullopt;
  }
  if (!end) return std::nullopt;
  auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + *size : i, 0, *size); };
  int64_t from = clamp(*start);
  int64_t to = std::max(from, clamp(*end));
  return (to - from + *step - 1) / *step;
}

}  // namespace

Types sliced(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<size_t> d = dimArgument(node, "dim", sizes->size());
  if (!d || *d >= sizes->size()) return viewOf(node, Sizes(sizes->size()));
  (*sizes)[*d] = slicedSize(node, (*sizes)[*d]);
  return viewOf(node, std::move(sizes));
}

Types narrowed(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<size_t> d = dimArgument(node, "dim", sizes->size());
  if (!d || *d >= sizes->size()) return viewOf(node, Sizes(sizes->size()));
  (*sizes)[*d] = sizeValue(argumentOf(node, "length"));
  return viewOf(node, std::move(sizes));
}

Types diagonal(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes || sizes->size() < 2) return viewOf(node, std::nullopt);
  std::optional<size_t> a = dimArgument(node, "dim1", sizes->size());
  std::optional<size_t> b = dimArgument(node, "dim2", sizes->size());
  std::optional<int64_t> offset = intArgument(node, "offset");
  if (!a || !b || *a == *b) return viewOf(node, Sizes(sizes->size() - 1));
  Size rows = (*sizes)[*a];
  Size columns = (*sizes)[*b];
  Size length;
  if (rows && columns && offset && *rows >= 0 && *columns >= 0) {
    length = std::max<int64_t>(0, *offset >= 0 ? std::min(*rows, *columns - *offset)
                                               : std::min(*rows + *offset, *columns));
  } else if (rows && rows == columns && offset == std::optional<int64_t>(0)) {
    length = rows;
  }
  sizes->erase(sizes->begin() + std::max(*a, *b));
  sizes->erase(sizes->begin() + std::min(*a, *b));
  sizes->push_back(length);
  return viewOf(node, std::move(sizes));
}

Types strided(const Node& node) {
  return viewOf(node, sizeList(argumentOf(node, "size")));
}

Types unfolded(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return viewOf(node, std::nullopt);
  std::optional<size_t> d = dimArgument(node, "dimension", sizes->size());
  Size length = sizeValue(argumentOf(node, "size"));
  Size step = sizeValue(argumentOf(node, "step"));
  if (!d) return viewOf(node, Sizes(sizes->size() + 1));
  if (*d < sizes->size()) {
    Size rest = subtractSizes((*sizes)[*d], length);
    (*sizes)[*d] = addSizes(divideSizes(rest, step), 1);
  }
  sizes->push_back(length);
  return viewOf(node, std::move(sizes));
}

Types realParts(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(real(self.dtype), sizesOf(self), self.device);
}

Types unbound(const Node& node) {
  return {types::List(selected(node)[0])};
}

// Parts need not be of one size; all but the last of chunk and split are.
Types parts(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  if (!sizes) return {types::List(viewOf(node, std::nullopt)[0])};
  std::optional<size_t> d = dimArgument(node, "dim", sizes->size());
  if (!d || *d >= sizes->size()) return {types::List(viewOf(node, Sizes(sizes->size()))[0])};
  Size& size = (*sizes)[*d];
  Size part;
  if (std::optional<int64_t> chunks = intArgument(node, "chunks")) {
    if (size && *size >= 0 && *chunks > 0 && *size % *chunks == 0) part = *size / *chunks;
  } else if (std::optional<int64_t> length = intArgument(node, "split_size")) {
    if (size && *size > 0 && *length > 0 && *size % *length == 0) part = *length;
  } else if (const Value* lengths = argumentOf(node, "split_sizes")) {
    std::optional<std::vector<int64_t>> all = intsOf(lengths);
    bool equal = all && !all->empty() && std::equal(all->begin() + 1, all->end(), all->begin());
    if (equal && all->front() >= 0) part = all->front();
  }
  size = part;
  return {types::List(viewOf(node, std::move(sizes))[0])};
}

// ---- joining ----

Types concatenated(const Node& node) {
  std::optional<std::vector<const TensorFacts*>> tensors = tensorListArgument(node, "tensors");
  if (!tensors || tensors->empty()) return nothingKnown(node);
  std::optional<DType> dtype = promotedDType(*tensors);
  std::optional<Device> device = commonDevice(*tensors);
  std::optional<Sizes> out;
  bool first = true;
  for (const TensorFacts* t : *tensors) {
    std::optional<Sizes> sizes = sizesOf(*t);
    // A vector without elements joins anything.
    bool skipped =
        sizes && sizes->size() == 1 && ((*sizes)[0] == Size(0) || !(*sizes)[0] || *(*sizes)[0] < 0);
    if (!sizes || (skipped && tensors->size() > 1)) return tensorOf(dtype, std::nullopt, device);
    std::optional<size_t> d = dimArgument(node, "dim", sizes->size());
    if (!d || *d >= sizes->size()) return tensorOf(dtype, std::nullopt, device);
    if (first) {
      out = sizes;
      first = false;
      continue;
    }
    if (out->size() != sizes->size()) return tensorOf(dtype, std::nullopt, device);
    for (size_t i = 0; i < sizes->size(); ++i) {
      if (i == *d) {
        (*out)[i] = addSizes((*out)[i], (*sizes)[i]);
      } else if (!(*out)[i] || ((*sizes)[i] && *(*sizes)[i] >= 0)) {
        (*out)[i] = (*sizes)[i];  // they are equal, and a number says most
      }
    }
  }
  return tensorOf(dtype, std::move(out), device);
}

Types stacked(const Node& node) {
  std::optional<std::vector<const TensorFacts*>> tensors = tensorListArgument(node, "tensors");
  if (!tensors || tensors->empty()) return nothingKnown(node);
  std::optional<Sizes> sizes;
  for (const TensorFacts* t : *tensors) {
    if (!sizes) sizes = sizesOf(*t);
  }
  std::optional<Sizes> out;
  if (sizes) {
    std::optional<size_t> d = dimArgument(node, "dim", sizes->size() + 1);
    out = Sizes(sizes->size() + 1);
    if (d) {
      out = sizes;
      out->insert(out->begin() + *d, static_cast<int64_t>(tensors->size()));
    }
  }
  return tensorOf(promotedDType(*tensors), std::move(out), commonDevice(*tensors));
}

Types repeated(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  std::optional<Sizes> times = sizeList(argumentOf(node, "repeats"));
  if (!times) return viewOf(node, std::nullopt);
  if (!sizes || sizes->size() > times->size()) return viewOf(node, Sizes(times->size()));
  size_t added = times->size() - sizes->size();
  for (size_t i = 0; i < sizes->size(); ++i) {
    (*times)[added + i] = multiplySizes((*times)[added + i], (*sizes)[i]);
  }
  return viewOf(node, std::move(times));
}

Types padded(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  const Value* list = argumentOf(node, "pad");
  if (!list) list = argumentOf(node, "padding");
  std::optional<std::vector<int64_t>> pad = intsOf(list);
  if (!sizes || !pad || pad->size() % 2 != 0 || pad->size() / 2 > sizes->size()) {
    return viewOf(node, sizes ? std::optional<Sizes>(Sizes(sizes->size())) : std::nullopt);
  }
  for (size_t i = 0; i < pad->size() / 2; ++i) {
    Size& s = (*sizes)[sizes->size() - 1 - i];
    int64_t added = (*pad)[2 * i] + (*pad)[2 * i + 1];
    s = added >= 0 ? addSizes(s, added) : subtractSizes(s, -added);
  }
  return viewOf(node, std::move(sizes));
}

Types pixelShuffled(const Node& node) {
  std::optional<Sizes> sizes = sizesOf(firstTensor(node));
  std::optional<int64_t> up = intArgument(node, "upscale_factor");
  std::optional<int64_t> down = intArgument(node, "downscale_factor");
  std::optional<int64_t> factor = up ? up : down;
  if (!sizes || sizes->size() < 3 || !factor || *factor <= 0 || *factor > 1000) {
    return viewOf(node, sizes ? std::optional<Sizes>(Sizes(sizes->size())) : std::nullopt);
  }
  Size& channels = (*sizes)[sizes->size() - 3];
  channels =
      up ? divideSizes(channels, *factor * *factor) : multiplySizes(channels, *factor * *factor);
  for (size_t i = sizes->size() - 2; i < sizes->size(); ++i) {
    Size& s = (*sizes)[i];
    s = up ? multiplySizes(s, *factor) : divideSizes(s, *factor);
  }
  return viewOf(node, std::move(sizes));
}

// ---- factories ----

namespace {
Types madeOf(const Node& node, std::optional<DType> dtype, std::optional<Sizes> sizes) {
  return tensorOf(dtypeArgument(node, dtype), std::move(sizes), deviceArgument(node, Device()));
}
}  // namespace

Types made(const Node& node) {
  return madeOf(node, defaultDType(), sizeList(argumentOf(node, "size")));
}

Types filled(const Node& node) {
  std::optional<DType> dtype;
  switch (argumentOf(node, "fill_value")->type()->kind()) {
    case TypeKind::Int:
      dtype = DType::Long;
      break;
    case TypeKind::Bool:
      dtype = DType::Bool;
      break;
    case TypeKind::Float:
      dtype = defaultDType();
      break;
    case TypeKind::Complex:
      dtype = toComplexType(defaultDType());
      break;
    default:
      break;
  }
  return madeOf(node, dtype, sizeList(argumentOf(node, "size")));
}

Types madeLike(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(dtypeArgument(node, self.dtype), sizesOf(self),
                  deviceArgument(node, self.device));
}

Types newLike(const Node& node) {
  const TensorFacts& self = firstTensor(node);
  return tensorOf(dtypeArgument(node, self.dtype), sizeList(argumentOf(node, "size")),
                  deviceArgument(node, self.device));
}

Types ranged(const Node& node) {
  std::optional<DType> dtype = DType::Long;
  bool known = true;
  for (const char* name : {"start", "end", "step"}) {
    const Value* v = argumentOf(node, name);
    if (!v) continue;
    if (v->type()->kind() == TypeKind::Float) dtype = defaultDType();
    known = known && (v->type()->kind() == TypeKind::Float || v->type()->kind() == TypeKind::Int);
  }
  if (!known) dtype.reset();
  const Value* start = argumentOf(node, "start");
  const Value* step = argumentOf(node, "step");
  std::optional<int64_t> from = start ? intOf(start) : 0;
  std::optional<int64_t> by = step ? intOf(step) : 1;
  std::optional<int64_t> to = intArgument(node, "end");
  Size length;
  constexpr int64_t kSmall = int64_t{1} << 31;
  auto small = [&](const std::optional<int64_t>& i) { return i && *i > -kSmall && *i < kSmall; };
  if (small(from) && small(to) && small(by) && *by != 0) {
    int64_t span = *to - *from;
    length = std::max<int64_t>(0, (span + *by - (*by > 0 ? 1 : -1)) / *by);
  } else if (from == std::optional<int64_t>(0) && by == std::optional<int64_t>(1)) {
    Size s = sizeValue(argumentOf(node, "end"));
    if (isNeverNegative(s)) length = s;
  }
  return madeOf(node, dtype, Sizes{length});
}

Types identity(const Node& node) {
  Size rows = sizeValue(argumentOf(node, "n"));
  const Value* m = argumentOf(node, "m");
  return madeOf(node, defaultDType(), Sizes{rows, m ? sizeValue(m) : rows});
}

Types numberTensor(const Node& node) {
  return madeOf(node, defaultDType(), Sizes());
}

}  // namespace wick::ops::shapes

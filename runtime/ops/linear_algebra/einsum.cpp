// einsum, and distances between rows.
//
// einsum gives every letter one dimension of all operands (missing ones have size 1), then joins
// operands from left to right: letters that nobody needs any more are contracted by one batched
// matrix product.
#include <array>
#include <cmath>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/values/pairs.h"

namespace wick {
namespace {

constexpr int kLetters = 52;

int letterIndex(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

// Labels of one operand or of the result; kEllipsis stands for "...".
constexpr int kEllipsis = 52;

std::vector<int> parseLabels(std::string_view text) {
  constexpr size_t kMostLabels = 64;
  std::vector<int> labels;
  bool ellipsis = false;
  Pace pace;
  for (size_t i = 0; i < text.size(); ++i) {
    pace.step();
    WICK_CHECK(labels.size() <= kMostLabels, "einsum(): more than {} subscripts for one operand",
               kMostLabels);
    if (text[i] == ' ') continue;
    if (text[i] == '.') {
      WICK_CHECK(!ellipsis && text.substr(i, 3) == "...",
                 "einsum(): found '.' for operand that is not part of any ellipsis");
      ellipsis = true;
      labels.push_back(kEllipsis);
      i += 2;
      continue;
    }
    int letter = letterIndex(text[i]);
    WICK_CHECK(letter >= 0,
               "einsum(): invalid subscript given in the equation string, subscripts "
               "must be in [a-zA-Z], got '{}'",
               text.substr(i, 1));
    labels.push_back(letter);
  }
  return labels;
}

struct Equation {
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
  bool has_result = false;
};

Equation parseEquation(const std::string& text, size_t count) {
  Equation e;
  size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  size_t start = 0;
  while (e.operands.size() <= count) {
    size_t comma = left.find(',', start);
    e.operands.push_back(parseLabels(left.substr(start, comma - start)));
    if (comma == std::string_view::npos) break;
    start = comma + 1;
  }
  WICK_CHECK(e.operands.size() == count,
             "einsum(): {} operands were provided than specified in the equation",
             count < e.operands.size() ? "fewer" : "more");
  if (arrow != std::string::npos) {
    e.has_result = true;
    e.result = parseLabels(std::string_view(text).substr(arrow + 2));
  }
  return e;
}

// Sums `sum_dims` of the product of two operands of the same rank, whose dimensions agree or are 1.
Tensor multiplySum(Tensor a, Tensor b, const std::vector<bool>& summed) {
  DimVector batch, outer_a, outer_b, inner;
  int64_t n = a.dim();
  for (int64_t d = 0; d < n; ++d) {
    size_t i = static_cast<size_t>(d);
    if (summed[i] && (a.size(d) == 1 || b.size(d) == 1)) {
      // Only one operand has this letter: its sum can be taken first.
      if (a.size(d) != 1) a = ops::sumDims(a, DimVector{d}, true);
      if (b.size(d) != 1) b = ops::sumDims(b, DimVector{d}, true);
      batch.push_back(d);
    } else if (summed[i]) {
      inner.push_back(d);
    } else if (a.size(d) != 1 && b.size(d) != 1) {
      batch.push_back(d);
    } else if (a.size(d) != 1) {
      outer_a.push_back(d);
    } else {
      outer_b.push_back(d);
    }
  }
  if (inner.empty()) return ops::mul(a, b);
  auto product = [](const Tensor& t, const DimVector& dims) {
    int64_t p = 1;
    for (int64_t d : dims) p *= t.size(d);
    return p;
  };
  auto order = [](const DimVector& x, const DimVector& y, const DimVector& z, const DimVector& w) {
    DimVector all;
    for (const DimVector* part : {&x, &y, &z, &w}) {
      for (int64_t d : *part) all.push_back(d);
    }
    return all;
  };
  int64_t batches = product(a, batch), k = product(a, inner);
  int64_t rows = product(a, outer_a), columns = product(b, outer_b);
  Tensor left = a.permute(order(batch, outer_a, inner, outer_b)).reshape({batches, rows, k});
  Tensor right = b.permute(order(batch, inner, outer_b, outer_a)).reshape({batches, k, columns});
  Tensor out = batchMatrixProduct("einsum", left, right);
  DimVector sizes, arrangement = order(batch, outer_a, outer_b, inner);
  for (int64_t d : arrangement) {
    bool contracted = summed[static_cast<size_t>(d)];
    sizes.push_back(contracted                            ? 1
                    : std::max(a.size(d), b.size(d)) == 1 ? 1
                    : a.size(d) != 1                      ? a.size(d)
                                                          : b.size(d));
  }
  DimVector back(static_cast<size_t>(n));
  for (size_t i = 0; i < arrangement.size(); ++i) {
    back[static_cast<size_t>(arrangement[i])] = static_cast<int64_t>(i);
  }
  return out.view(sizes).permute(back);
}

// Where each letter goes: the result's first, in their order, then those that are summed.
struct Placement {
  std::array<int64_t, kLetters> dim;
  int64_t ellipsis_start = 0, ellipsis_size = 0, kept = 0, total = 0;
};

Placement placeLetters(const Equation& e, const std::array<int64_t, kLetters>& uses,
                       int64_t ellipsis) {
  Placement p;
  p.dim.fill(-1);
  p.ellipsis_size = ellipsis;
  bool seen_ellipsis = false;
  int64_t next = 0;
  if (e.has_result) {
    for (int label : e.result) {
      if (label == kEllipsis) {
        p.ellipsis_start = next;
        next += ellipsis;
        seen_ellipsis = true;
        continue;
      }
      WICK_CHECK(p.dim[label] < 0 && uses[label] > 0,
                 "einsum(): output subscript appears more than once in the output or not in any "
                 "input");
      p.dim[label] = next++;
    }
  } else {
    seen_ellipsis = true;
    next = ellipsis;
    for (int l = 0; l < kLetters; ++l) {
      if (uses[l] == 1) p.dim[l] = next++;
    }
  }
  p.kept = next;
  if (!seen_ellipsis) {
    p.ellipsis_start = next;
    next += ellipsis;
  }
  for (int l = 0; l < kLetters; ++l) {
    if (uses[l] > 0 && p.dim[l] < 0) p.dim[l] = next++;
  }
  p.total = next;
  return p;
}

// One operand with its letters where the placement says; repeated letters take the diagonal.
Tensor arrange(const Tensor& operand, const std::vector<int>& labels, const Placement& p) {
  Tensor t = operand;
  DimVector sources(static_cast<size_t>(p.total), -1);
  int64_t dim = 0;
  int64_t own = operand.dim() - static_cast<int64_t>(labels.size()) + 1;
  for (int label : labels) {
    if (label == kEllipsis) {
      for (int64_t i = 0; i < own; ++i) {
        sources[static_cast<size_t>(p.ellipsis_start + p.ellipsis_size - own + i)] = dim++;
      }
      continue;
    }
    int64_t& source = sources[static_cast<size_t>(p.dim[label])];
    if (source >= 0) {
      WICK_CHECK(t.size(source) == t.size(dim),
                 "einsum(): subscript is repeated for an operand but the sizes don't match, {} != "
                 "{}",
                 t.size(dim), t.size(source));
      // The diagonal comes out last; its place is where the letter was first.
      t = ops::diagonal(t, int64_t{0}, source, dim);
      DimVector order;
      int64_t last = t.dim() - 1;
      for (int64_t d = 0; d <= last; ++d) {
        order.push_back(d < source ? d : d == source ? last : d - 1);
      }
      t = t.permute(order);
    } else {
      source = dim++;
    }
  }
  DimVector order, missing;
  for (size_t d = 0; d < sources.size(); ++d) {
    if (sources[d] >= 0) {
      order.push_back(sources[d]);
    } else {
      missing.push_back(static_cast<int64_t>(d));
    }
  }
  t = t.permute(order);
  for (int64_t d : missing) t = t.unsqueeze(d);
  return t;
}

Tensor einsum(const std::string& equation, const std::vector<Tensor>& tensors,
              const std::optional<DimVector>&) {
  WICK_CHECK(!tensors.empty(), "einsum(): must provide at least one operand");
  Equation e = parseEquation(equation, tensors.size());
  std::array<int64_t, kLetters> uses{};
  int64_t ellipsis = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    int64_t named = 0;
    bool dots = false;
    for (int label : e.operands[i]) {
      if (label == kEllipsis) {
        dots = true;
      } else {
        ++uses[label];
        ++named;
      }
    }
    int64_t extra = tensors[i].dim() - named;
    WICK_CHECK(dots ? extra >= 0 : extra == 0,
               "einsum(): the number of subscripts in the equation ({}) does not match the number "
               "of dimensions ({}) for operand {}{}",
               named, tensors[i].dim(), i, dots ? "" : " and no ellipsis was given");
    if (dots) ellipsis = std::max(ellipsis, extra);
  }
  Placement p = placeLetters(e, uses, ellipsis);
  std::vector<Tensor> operands;
  for (size_t i = 0; i < tensors.size(); ++i) {
    operands.push_back(arrange(tensors[i], e.operands[i], p));
  }
  // A dimension of size one broadcasts, so sizes must agree only where both are larger.
  size_t total = static_cast<size_t>(p.total);
  std::vector<size_t> last_use(total, 0);
  for (size_t d = 0; d < total; ++d) {
    int64_t size = 1;
    for (size_t i = 0; i < operands.size(); ++i) {
      int64_t s = operands[i].size(static_cast<int64_t>(d));
      if (s == 1) continue;
      WICK_CHECK(size == 1 || size == s,
                 "einsum(): operands do not broadcast with remapped shapes: {} against {}", s,
                 size);
      size = s;
      last_use[d] = i;
    }
  }
  Tensor result = operands[0];
  if (operands.size() == 1 && p.total > p.kept) {
    // One sum, also over sizes of one: sums of integers are int64.
    DimVector summed;
    for (int64_t d = p.kept; d < p.total; ++d) summed.push_back(d);
    return ops::sumDims(result, summed, false);
  }
  auto sumNow = [&](size_t d, size_t operand) {
    return static_cast<int64_t>(d) >= p.kept && last_use[d] == operand;
  };
  for (size_t d = static_cast<size_t>(p.kept); d < total; ++d) {
    if (sumNow(d, 0) && result.size(static_cast<int64_t>(d)) != 1) {
      result = ops::sumDims(result, DimVector{static_cast<int64_t>(d)}, true);
    }
  }
  for (size_t i = 1; i < operands.size(); ++i) {
    std::vector<bool> summed(total);
    for (size_t d = 0; d < total; ++d) summed[d] = sumNow(d, i);
    result = multiplySum(result, operands[i], summed);
  }
  for (int64_t d = p.total; d-- > p.kept;) result = result.select(d, 0);
  return result;
}

// The distance of two rows by the p-norm.
template <class T>
T rowDistance(const T* a, const T* b, int64_t n, double p) {
  double acc = 0;
  for (int64_t i = 0; i < n; ++i) {
    double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (p == 0) {
      acc += d != 0;
    } else if (p == 1) {
      acc += d;
    } else if (p == 2) {
      acc += d * d;
    } else if (std::isinf(p)) {
      acc = d > acc || d != d ? d : acc;
    } else {
      acc += std::pow(d, p);
    }
  }
  if (p == 2) return static_cast<T>(std::sqrt(acc));
  if (p == 0 || p == 1 || std::isinf(p)) return static_cast<T>(acc);
  return static_cast<T>(std::pow(acc, 1 / p));
}

// Distances of all pairs of rows by one product: |x|^2 - 2 x y + |y|^2. Where rows lie close to
// each other digits cancel out, as in PyTorch.
Tensor euclideanDist(const Tensor& x1, const Tensor& x2) {
  const auto squares = [](const Tensor& x) {
    return ops::sumDims(ops::powScalar(x, Scalar(2)), DimVector{-1}, true);
  };
  const auto joined = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return ops::cat(makeList(types::Tensor(), std::vector<IValue>{a, b, c}), -1);
  };
  const Tensor norm1 = squares(x1), norm2 = squares(x2);
  const Tensor one1 = Tensor::full(norm1.sizes(), 1, norm1.dtype(), norm1.device());
  const Tensor one2 = Tensor::full(norm2.sizes(), 1, norm2.dtype(), norm2.device());
  const Tensor product = matmul(joined(ops::mulScalar(x1, Scalar(-2)), norm1, one1),
                                joined(x2, one2, norm2).transpose(-2, -1));
  return ops::sqrt(ops::clampMin(product, Scalar(0)));
}

Tensor cdist(const Tensor& x1, const Tensor& x2, double p, std::optional<int64_t> mode) {
  const char* op = "cdist";
  linalg::checkDistances(x1, x2, p);
  int64_t r = x1.size(-2), s = x2.size(-2), n = x1.size(-1);
  if (linalg::distancesByProduct(p, mode, r, s) && x1.numel() > 0 && x2.numel() > 0) {
    return euclideanDist(widened(x1), widened(x2)).to(x1.dtype());
  }
  auto leading = [](const Tensor& t) { return t.sizes().first(static_cast<size_t>(t.dim() - 2)); };
  DimVector batch = broadcastShapes(leading(x1), leading(x2)), size1 = batch, size2 = batch;
  size1.push_back(r);
  size1.push_back(n);
  size2.push_back(s);
  size2.push_back(n);
  Tensor a = widened(x1).expand(size1).contiguous(), b = widened(x2).expand(size2).contiguous();
  size1.back() = s;
  Tensor out = Tensor::empty(size1, a.dtype());
  dispatch<kFloats>(op, a.dtype(), [&]<class T>() {
    parallelFor(checkedNumel(batch) * r, 1 + 8192 / (1 + s * n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = a.data<T>() + row * n;
        const T* others = b.data<T>() + row / r * s * n;
        for (int64_t j = 0; j < s; ++j) {
          out.data<T>()[row * s + j] = rowDistance(from, others + j * n, n, p);
        }
      }
    });
  });
  return out.to(x1.dtype());
}

// Distances of all pairs of rows i < j.
Tensor pdist(const Tensor& self, double p) {
  WICK_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: {}D", self.dim());
  WICK_CHECK(p >= 0, "pdist only supports non-negative p values");
  int64_t rows = self.size(0), n = self.size(1);
  Tensor x = self.contiguous();
  Tensor out = Tensor::empty(DimVector{linalg::pairsOf("pdist", rows)}, self.dtype());
  dispatch<kFloats>("pdist", self.dtype(), [&]<class T>() {
    int64_t at = 0;
    Pace pace;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = i + 1; j < rows; ++j) {
        pace.step(1 + n);
        out.data<T>()[at++] = rowDistance(x.data<T>() + i * n, x.data<T>() + j * n, n, p);
      }
    }
  });
  return out;
}

constexpr OperatorRecord kEinsumRecords[] = {
    {"aten::einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
     WICK_KERNEL(einsum), kMayReturnArgument | kNeutral | kEagerCastUnknown},
    {"aten::cdist(Tensor x1, Tensor x2, float p=2.0, int? compute_mode=None) -> Tensor",
     WICK_KERNEL(cdist), kCastFull | kEagerCastFull},
    {"aten::_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor",
     WICK_KERNEL(cdist), kOutForm | kOutAny},
    {"aten::_euclidean_dist(Tensor x1, Tensor x2) -> Tensor", WICK_KERNEL(euclideanDist),
     kOutForm | kOutAny | kNeutral},
    {"aten::pdist(Tensor self, float p=2.0) -> Tensor", WICK_KERNEL(pdist), kCastFull},
    {"aten::_pdist_forward(Tensor self, float p=2.0) -> Tensor", WICK_KERNEL(pdist),
     kOutForm | kOutAny},
};

const RegisterOperators kEinsumRegistered(kEinsumRecords);

}  // namespace
}  // namespace wick

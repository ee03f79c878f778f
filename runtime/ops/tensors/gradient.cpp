// torch.gradient: differences of the first and second order over evenly and unevenly spaced points.
#include "runtime/ops/common_calls.h"

namespace wick::ops {

namespace {

// Slices of width one or n - 2 along the dimension of one derivative.
struct Line {
  Tensor t;
  int64_t d;
  int64_t size() const { return t.size(d); }
  Tensor range(int64_t from, int64_t to) const { return t.slice(d, from, to); }
  Tensor at(int64_t i) const {
    return range(i < 0 ? size() + i : i, i < 0 ? size() + i + 1 : i + 1);
  }
};

Tensor scaled(const Tensor& t, double by) {
  return mulScalar(t, by);
}
Tensor over(const Tensor& t, const Scalar& step) {
  return divScalar(t, step);
}

void check(const Tensor& self, const DimVector& dims, int64_t edge_order) {
  WICK_CHECK(self.dtype() != DType::Byte, "torch.gradient does not support uint8 input.");
  WICK_CHECK(edge_order == 1 || edge_order == 2,
             "torch.gradient only supports edge_order=1 and edge_order=2.");
  std::vector<bool> seen(static_cast<size_t>(self.dim()) + 1);
  for (int64_t d : dims) {
    WICK_CHECK(d < self.dim() && !seen[static_cast<size_t>(d)],
               "torch.gradient: dim {} appears multiple times in the list of dims", d);
    seen[static_cast<size_t>(d)] = true;
    WICK_CHECK(self.size(d) >= edge_order + 1,
               "torch.gradient expected each dimension size to be at least edge_order+1");
  }
}

// The dimensions that are asked for; all of them when none is.
DimVector dimsOf(const Tensor& self, const std::optional<DimVector>& dims) {
  DimVector out;
  if (dims) {
    for (int64_t d : *dims) out.push_back(wrapDim(d, self.dim()));
  } else {
    for (int64_t d = 0; d < self.dim(); ++d) out.push_back(d);
  }
  return out;
}

Tensor evenly(const Line& x, const Scalar& step, int64_t edge_order) {
  int64_t n = x.size();
  Tensor centre = over(over(sub(x.range(2, n), x.range(0, n - 2)), step), 2);
  Tensor first, last;
  if (edge_order == 1) {
    first = over(sub(x.at(1), x.at(0)), step);
    last = over(sub(x.at(-1), x.at(-2)), step);
  } else {
    Tensor ahead = sub(scaled(x.at(1), 2), scaled(x.at(2), 0.5));
    first = over(sub(ahead, scaled(x.at(0), 1.5)), step);
    Tensor behind = sub(scaled(x.at(-2), 2), scaled(x.at(-3), 0.5));
    last = over(sub(scaled(x.at(-1), 1.5), behind), step);
  }
  return cat(std::vector<Tensor>{first, centre, last}, x.d);
}

// A weighted sum of three slices; the weights run along the dimension.
Tensor weigh(const Tensor& a, const Tensor& x, const Tensor& b, const Tensor& y, const Tensor& c,
             const Tensor& z) {
  return add(add(mul(a, x), mul(b, y)), mul(c, z));
}

// `points` are the coordinates along the dimension, one a slice.
Tensor unevenly(const Line& x, const Tensor& points, int64_t edge_order) {
  WICK_CHECK(points.dim() == 1 && points.size(0) == x.size(),
             "torch.gradient expected each tensor in spacing to have the length of its dimension, "
             "{}, got {}",
             x.size(), points.describe());
  int64_t n = x.size();
  DimVector shape(static_cast<size_t>(x.t.dim()), 1);
  shape[static_cast<size_t>(x.d)] = n - 1;
  Line step{sub(points.slice(0, 1, n), points.slice(0, 0, n - 1)).view(shape), x.d};
  Tensor centre;
  {
    Tensor h1 = step.range(0, n - 2), h2 = step.range(1, n - 1), h = add(h1, h2);
    centre = weigh(neg(div(h2, mul(h1, h))), x.range(0, n - 2), div(sub(h2, h1), mul(h1, h2)),
                   x.range(1, n - 1), div(h1, mul(h2, h)), x.range(2, n));
  }
  Tensor first, last;
  if (edge_order == 1) {
    first = div(sub(x.at(1), x.at(0)), step.at(0));
    last = div(sub(x.at(-1), x.at(-2)), step.at(-1));
  } else {
    Tensor h1 = step.at(0), h2 = step.at(1), h = add(h1, h2);
    first = weigh(neg(div(add(h1, h), mul(h1, h))), x.at(0), div(h, mul(h1, h2)), x.at(1),
                  neg(div(h1, mul(h2, h))), x.at(2));
    h1 = step.at(-2);
    h2 = step.at(-1);
    h = add(h1, h2);
    last = weigh(div(h2, mul(h1, h)), x.at(-3), neg(div(h, mul(h1, h2))), x.at(-2),
                 div(add(h2, h), mul(h2, h)), x.at(-1));
  }
  return cat(std::vector<Tensor>{first, centre, last}, x.d);
}

std::vector<Tensor> withSteps(const Tensor& self, const std::vector<Scalar>& steps,
                              const DimVector& dims, int64_t edge_order) {
  check(self, dims, edge_order);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    out.push_back(evenly({self, dims[i]}, steps[i], edge_order));
  }
  return out;
}
std::vector<Tensor> withPoints(const Tensor& self, const std::vector<Tensor>& points,
                               const DimVector& dims, int64_t edge_order) {
  WICK_CHECK(points.size() == dims.size(),
             "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
             "equal to the number of dims, {}, but got a list of length {}",
             dims.size(), points.size());
  check(self, dims, edge_order);
  std::vector<Tensor> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    out.push_back(unevenly({self, dims[i]}, points[i], edge_order));
  }
  return out;
}

std::optional<DimVector> single(std::optional<int64_t> dim) {
  return dim ? std::optional<DimVector>(DimVector{*dim}) : std::nullopt;
}
std::vector<Scalar> repeated(const Scalar& step, const DimVector& dims) {
  return std::vector<Scalar>(dims.size(), step);
}
std::vector<Scalar> listed(const IValue& steps, const DimVector& dims) {
  std::vector<Scalar> out;
  for (const IValue& e : steps.elements()) out.push_back(Scalar::fromIValue(e));
  WICK_CHECK(out.size() == dims.size(),
             "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
             "equal to the number of dims, {}, but got a list of length {}",
             dims.size(), out.size());
  return out;
}

std::vector<Tensor> scalarInt(const Tensor& self, const std::optional<Scalar>& spacing,
                              std::optional<int64_t> dim, int64_t edge_order) {
  DimVector dims = dimsOf(self, single(dim));
  return withSteps(self, repeated(spacing.value_or(Scalar(int64_t{1})), dims), dims, edge_order);
}
std::vector<Tensor> scalarArray(const Tensor& self, const Scalar& spacing, const DimVector& dim,
                                int64_t edge_order) {
  DimVector dims = dimsOf(self, dim);
  return withSteps(self, repeated(spacing, dims), dims, edge_order);
}
std::vector<Tensor> array(const Tensor& self, const DimVector& dim, int64_t edge_order) {
  return scalarArray(self, Scalar(int64_t{1}), dim, edge_order);
}
std::vector<Tensor> scalarsInt(const Tensor& self, const IValue& spacing,
                               std::optional<int64_t> dim, int64_t edge_order) {
  DimVector dims = dimsOf(self, single(dim));
  return withSteps(self, listed(spacing, dims), dims, edge_order);
}
std::vector<Tensor> scalarsArray(const Tensor& self, const IValue& spacing, const DimVector& dim,
                                 int64_t edge_order) {
  DimVector dims = dimsOf(self, dim);
  return withSteps(self, listed(spacing, dims), dims, edge_order);
}
std::vector<Tensor> tensorsInt(const Tensor& self, const std::vector<Tensor>& spacing,
                               std::optional<int64_t> dim, int64_t edge_order) {
  return withPoints(self, spacing, dimsOf(self, single(dim)), edge_order);
}
std::vector<Tensor> tensorsArray(const Tensor& self, const std::vector<Tensor>& spacing,
                                 const DimVector& dim, int64_t edge_order) {
  return withPoints(self, spacing, dimsOf(self, dim), edge_order);
}

#define WICK_GRADIENT(overload, arguments) \
  "aten::gradient." overload "(Tensor self, *, " arguments ", int edge_order=1) -> Tensor[]"

constexpr OperatorRecord kGradientRecords[] = {
    {WICK_GRADIENT("scalarint", "Scalar? spacing=None, int? dim=None"), WICK_KERNEL(scalarInt),
     kNeutral},
    {WICK_GRADIENT("scalararray", "Scalar spacing, int[] dim"), WICK_KERNEL(scalarArray), kNeutral},
    {WICK_GRADIENT("array", "int[] dim"), WICK_KERNEL(array), kNeutral},
    {WICK_GRADIENT("scalarrayint", "Scalar[] spacing, int? dim=None"), WICK_KERNEL(scalarsInt),
     kNeutral},
    {WICK_GRADIENT("scalarrayarray", "Scalar[] spacing, int[] dim"), WICK_KERNEL(scalarsArray),
     kNeutral},
    {WICK_GRADIENT("tensorarrayint", "Tensor[] spacing, int? dim=None"), WICK_KERNEL(tensorsInt),
     kNeutral},
    {WICK_GRADIENT("tensorarray", "Tensor[] spacing, int[] dim"), WICK_KERNEL(tensorsArray),
     kNeutral},
};

const RegisterOperators kGradientRegistered(kGradientRecords);

}  // namespace

}  // namespace wick::ops

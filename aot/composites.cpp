// Operators on the device "ahead" that are made of others.
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "aot/device.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

// ---- autocast: what a compiled model computes, it computes on the CPU ----

Tensor toFullPrecision(const Tensor& self, bool, bool cpu_enabled) {
  return cpu_enabled && isReducedFloat(self.dtype()) ? self.to(DType::Float) : self;
}
Tensor toReducedPrecision(const Tensor& self, bool, bool cpu_enabled, DType, DType cpu_dtype) {
  return cpu_enabled && self.dtype() == DType::Float ? self.to(cpu_dtype) : self;
}

// ---- operators whose own kernels ask others for everything ----

void own(CallFrame& frame) {
  frame.op->record().kernel(frame);
}

// ---- comparisons ----

bool equal(const Tensor& self, const Tensor& other) {
  static const OperatorHandle kEqual{"aten::eq", "Tensor"}, kAll{"aten::all", ""};
  WICK_CHECK(self.dtype() == other.dtype(), "Expected all tensors to have the dtype {}, got {}",
             toString(self.dtype()), toString(other.dtype()));
  if (!std::ranges::equal(self.sizes(), other.sizes())) return false;
  if (self.numel() == 0) return true;
  return Tensor(kAll(kEqual(here(self), here(other)))).item<bool>();
}
Tensor countNonzeroDims(const Tensor& self, const DimVector& dims) {
  static const OperatorHandle kNe{"aten::ne", "Scalar"};
  const Tensor there = kNe(self, Scalar(int64_t{0}));
  if (self.dim() == 0) return there.to(DType::Long);
  return dims.empty() ? ops::sum(there) : ops::sumDims(there, dims);
}
Tensor countNonzero(const Tensor& self, std::optional<int64_t> dim) {
  return countNonzeroDims(self, dim ? DimVector{*dim} : DimVector());
}
using Pair = std::tuple<Tensor, Tensor>;
Pair aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  static const OperatorHandle kAmin{"aten::amin", ""}, kAmax{"aten::amax", ""};
  // PyTorch keeps a dimension that a tensor without dimensions never had.
  const Tensor x = dim && keepdim && self.dim() == 0 ? self.unsqueeze(0) : self;
  const DimVector dims = dim ? DimVector{*dim} : DimVector();
  return {kAmin(x, dims, keepdim), kAmax(x, dims, keepdim)};
}
Pair aminmaxAll(const Tensor& self) {
  return aminmax(self, std::nullopt, false);
}
Pair aminmaxDim(const Tensor& self, int64_t dim, bool keepdim) {
  return aminmax(self, dim, keepdim);
}

// Of elements that are numbers. Integers all are.
using OptDims = std::optional<DimVector>;
IValue listOf(const OptDims& dims) {
  return dims ? IValue(makeIntList(IntSpan(*dims))) : IValue();
}
Tensor nansum(const Tensor& self, const OptDims& dims, bool keepdim, std::optional<DType> dtype) {
  static const OperatorHandle kNan{"aten::isnan", ""};
  WICK_CHECK(!isComplex(dtype.value_or(self.dtype())), "nansum does not support complex inputs");
  const Tensor x = dtype ? here(self).to(*dtype) : here(self);
  const Tensor numbers = isFloating(x.dtype()) ? Tensor(ops::maskedFill(x, kNan(x), Scalar(0))) : x;
  return ops::sumDims(numbers, listOf(dims), keepdim,
                      dtype ? IValue(static_cast<int64_t>(*dtype)) : IValue());
}
Tensor nanmean(const Tensor& self, const OptDims& dims, bool keepdim, std::optional<DType> dtype) {
  static const OperatorHandle kNan{"aten::isnan", ""}, kNot{"aten::logical_not", ""};
  WICK_CHECK(isFloating(self.dtype()),
             "nanmean(): expected input to have floating point dtype but got {}",
             scalarTypeName(self.dtype()));
  const Tensor x = dtype ? here(self).to(*dtype) : here(self);
  const DType wide = isReducedFloat(x.dtype()) ? DType::Float : x.dtype();
  const Tensor there = Tensor(kNot(kNan(x))).to(wide);
  const Tensor count = ops::sumDims(there, listOf(dims), keepdim, IValue());
  return Tensor(ops::div(nansum(x.to(wide), dims, keepdim, std::nullopt), count)).to(x.dtype());
}

// ---- tensors put together ----

Tensor combinations(const Tensor& self, int64_t r, bool repeat) {
  static const OperatorHandle kCombinations{"aten::combinations", ""},
      kIndexSelect{"aten::index_select", ""};
  WICK_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape {}", formatInts(self.sizes()));
  // Which elements, by their numbers.
  Tensor numbers = Tensor::empty(self.sizes(), DType::Long);
  for (int64_t i = 0; i < self.numel(); ++i) numbers.data<int64_t>()[i] = i;
  const Tensor places = kCombinations(numbers, r, repeat);
  if (places.numel() == 0) return Tensor::empty(places.sizes(), self.dtype(), self.device());
  const Tensor at = here(places.reshape(DimVector{-1}));
  return Tensor(kIndexSelect(self, int64_t{0}, at)).reshape(places.sizes());
}
Tensor cartesianProd(const std::vector<Tensor>& tensors) {
  static const OperatorHandle kMeshgrid{"aten::meshgrid", "indexing"};
  for (const Tensor& t : tensors) {
    WICK_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape {}", formatInts(t.sizes()));
  }
  if (tensors.size() == 1) return tensors[0];
  std::vector<IValue> columns;
  for (const Tensor& grid : kMeshgrid.all(tensors, std::string("ij"))[0].toTensors()) {
    columns.emplace_back(grid.reshape(DimVector{-1}));
  }
  return ops::stack(makeList(types::Tensor(), std::move(columns)), 1);
}
Tensor blockDiag(const std::vector<Tensor>& given) {
  WICK_CHECK(!given.empty(), "block_diag: expected one or more tensors");
  std::vector<Tensor> tensors;
  DType dtype = given[0].dtype();
  int64_t rows = 0, columns = 0;
  for (const Tensor& t : given) {
    WICK_CHECK(t.dim() <= 2,
               "block_diag: Input tensors must have 2 or fewer dimensions. Input has {} dimensions",
               t.dim());
    dtype = promoteTypes(dtype, t.dtype());
    tensors.push_back(t.dim() < 2 ? t.reshape(DimVector{1, t.numel()}) : t);
    rows += tensors.back().size(0);
    columns += tensors.back().size(1);
  }
  const Tensor out = Tensor::zeros(DimVector{rows, columns}, dtype, Device{kAhead, -1});
  int64_t r = 0, c = 0;
  for (const Tensor& t : tensors) {
    out.narrow(0, r, t.size(0)).narrow(1, c, t.size(1)).copyFrom(t);
    r += t.size(0);
    c += t.size(1);
  }
  return out;
}

// Base coordinates, which are known, times matrices.
Tensor affineGrid(const Tensor& theta, const DimVector& size, bool align) {
  static const OperatorHandle kGrid{"aten::affine_grid_generator", ""}, kMatmul{"aten::matmul", ""};
  WICK_CHECK(size.size() == 4 || size.size() == 5,
             "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  WICK_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == spatial &&
                 theta.size(2) == spatial + 1,
             "affine_grid_generator: Expected a batch of {}x{} affine matrices of shape {}x{}x{}, "
             "but got {}",
             spatial, spatial + 1, size[0], spatial, spatial + 1, formatInts(theta.sizes()));
  // The engine's grid of the matrix that changes nothing.
  const Tensor identity = Tensor::zeros(DimVector{1, spatial, spatial + 1}, DType::Double);
  for (int64_t d = 0; d < spatial; ++d) identity.select(0, 0).select(0, d).select(0, d).fill(1);
  DimVector one = size;
  one[0] = 1;
  const Tensor grid = kGrid(identity, one, align);
  const int64_t points = grid.numel() / spatial;
  const Tensor base = Tensor::full(DimVector{1, points, spatial + 1}, 1, DType::Double);
  base.narrow(2, 0, spatial).copyFrom(grid.reshape(DimVector{1, points, spatial}));
  DimVector sizes{size[0]};
  for (int64_t d = 0; d < spatial; ++d) sizes.push_back(size[static_cast<size_t>(2 + d)]);
  sizes.push_back(spatial);
  return Tensor(kMatmul(here(base.to(theta.dtype())), here(theta).transpose(1, 2))).view(sizes);
}

// Rows that indices name and that are longer than max_norm become that long.
Tensor embeddingRenorm(const Tensor& self, const Tensor& indices, double max_norm,
                       double norm_type) {
  static const OperatorHandle kNorm{"aten::linalg_vector_norm", ""}, kGreater{"aten::gt", "Scalar"},
      kReciprocal{"aten::reciprocal", ""}, kFill{"aten::index_fill", "int_Scalar"};
  WICK_CHECK(self.dim() == 2, "embedding_renorm_: 'self' must be 2-D");
  WICK_CHECK(isFloating(self.dtype()), "\"embedding_renorm_\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
  if (indices.numel() == 0) return self.clone();
  const Tensor rows = here(self);
  const DType wide = isReducedFloat(self.dtype()) ? DType::Float : self.dtype();
  const Tensor x = rows.to(wide);
  const Tensor norm = kNorm(x, Scalar(norm_type), DimVector{1}, true);
  const Tensor rounded = norm.to(self.dtype()).to(wide);
  const Tensor scale =
      ops::mulScalar(kReciprocal(ops::addScalar(rounded, Scalar(1e-7))), Scalar(max_norm));
  const Tensor scaled = ops::where(kGreater(norm, Scalar(max_norm)), ops::mul(x, scale), x);
  const Tensor none = Tensor::zeros(DimVector{self.size(0)}, DType::Bool, Device{kAhead, -1});
  const Tensor named =
      kFill(none, int64_t{0}, here(indices).to(DType::Long).reshape(DimVector{-1}), Scalar(1));
  return ops::where(named.unsqueeze(1), scaled.to(self.dtype()), rows);
}

const DeviceKernel kKernels[] = {
    {"aten::count_nonzero", WICK_KERNEL(countNonzero)},
    {"aten::count_nonzero.dim_IntList", WICK_KERNEL(countNonzeroDims)},
    {"aten::aminmax", WICK_KERNEL(aminmax)},
    {"aten::_aminmax", WICK_KERNEL(aminmaxAll)},
    {"aten::_aminmax.dim", WICK_KERNEL(aminmaxDim)},
    {"aten::combinations", WICK_KERNEL(combinations)},
    {"aten::cartesian_prod", WICK_KERNEL(cartesianProd)},
    {"aten::block_diag", WICK_KERNEL(blockDiag)},
    {"aten::affine_grid_generator", WICK_KERNEL(affineGrid)},
    {"aten::embedding_renorm", WICK_KERNEL(embeddingRenorm)},
    {"aten::frexp.Tensor_out", own},
    {"aten::prelu", own},
    {"aten::_prelu_kernel", own},
    {"aten::logit", own},
    {"aten::mvlgamma", own},
    {"aten::polygamma", own},
    {"aten::round.decimals", own},
    {"aten::norm_except_dim", own},
    {"aten::_weight_norm", own},
    {"aten::_weight_norm_interface", own},
    {"aten::_autocast_to_full_precision", WICK_KERNEL(toFullPrecision)},
    {"aten::_autocast_to_reduced_precision", WICK_KERNEL(toReducedPrecision)},
    {"aten::_debug_has_internal_overlap", own},
    {"aten::flatten_dense_tensors", own},
    {"aten::unflatten_dense_tensors", own},
};
const RegisterDeviceKernels registered(kAhead, kKernels);

const DeviceKernel kMixed[] = {
    {"aten::equal", WICK_KERNEL(equal)},
};
const RegisterDeviceKernels mixed(kAhead, kMixed, TableRule::Mixed);

// Where they have no loop form.
const DeviceKernel kLast[] = {
    {"aten::nansum", WICK_KERNEL(nansum)},
    {"aten::nanmean", WICK_KERNEL(nanmean)},
};
const RegisterDeviceKernels last(kAhead, kLast, TableRule::Last);

// Operators on lists of tensors call those on one tensor for each.
std::vector<DeviceKernel> ofLists() {
  // Kept as long as the process: tables hold the names.
  static std::vector<std::string>& names = *new std::vector<std::string>;
  const auto add = [&](std::string_view name, std::initializer_list<const char*> overloads) {
    for (const char* overload : overloads) {
      for (const char* form : {"", "_"}) {
        names.push_back("aten::_foreach_" + std::string(name) + form + overload);
      }
    }
  };
  for (const char* unary : {"abs",     "acos",  "asin",  "atan",  "ceil",  "cos",        "cosh",
                            "erf",     "erfc",  "exp",   "expm1", "floor", "frac",       "lgamma",
                            "log",     "log10", "log1p", "log2",  "neg",   "reciprocal", "round",
                            "sigmoid", "sin",   "sinh",  "sqrt",  "tan",   "tanh",       "trunc"}) {
    add(unary, {""});
  }
  for (const char* binary : {"add", "sub", "mul", "div"}) {
    add(binary, {".Scalar", ".List", ".ScalarList"});
  }
  for (const char* extreme : {"maximum", "minimum"}) add(extreme, {".List"});
  for (const char* ternary : {"addcdiv", "addcmul"}) add(ternary, {".Scalar", ".ScalarList"});
  std::vector<DeviceKernel> kernels;
  for (const std::string& name : names) kernels.push_back({name.c_str(), own});
  return kernels;
}
const RegisterDeviceKernels of_lists(kAhead, ofLists());

}  // namespace

}  // namespace wick::aot

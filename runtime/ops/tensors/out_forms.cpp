#include "runtime/ops/tensors/out_forms.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/device_kernels.h"
#include "runtime/ops/common.h"

namespace wick::ops {

namespace {

// How many arguments at the end are written.
size_t outputCount(const FunctionSchema& schema) {
  size_t n = 0;
  const auto& arguments = schema.arguments();
  while (n < arguments.size()) {
    const auto& alias = arguments[arguments.size() - 1 - n].alias;
    if (!alias || !alias->is_write) break;
    ++n;
  }
  return n;
}

// Whether `plain` has the first `count` arguments of the form, and behind them only some that may be
// left out.
bool isPlain(const FunctionSchema& plain, const FunctionSchema& form, size_t count) {
  const std::vector<Argument>& arguments = plain.arguments();
  if (arguments.size() < count) return false;
  for (size_t i = 0; i < count; ++i) {
    const Argument &x = arguments[i], &y = form.arguments()[i];
    if (x.name != y.name || x.type->str() != y.type->str() || x.alias) return false;
  }
  return std::all_of(arguments.begin() + static_cast<ptrdiff_t>(count), arguments.end(),
                     [](const Argument& a) { return a.default_value && !a.alias; });
}

// The overload without the outputs.
const Operator& plainOperator(const Operator& op, size_t inputs) {
  static std::mutex mutex;
  static std::unordered_map<const Operator*, const Operator*> known;
  std::lock_guard lock(mutex);
  auto [it, inserted] = known.try_emplace(&op, nullptr);
  if (!it->second) {
    for (const Operator* other : OperatorRegistry::instance().overloads(op.symbol())) {
      if (!isPlain(other->schema(), op.schema(), inputs)) continue;
      it->second = other;
      if (other->schema().arguments().size() == inputs) break;
    }
    WICK_ASSERT(it->second, "{} has no form without outputs", op.schema().str());
  }
  return *it->second;
}

}  // namespace

void outForm(CallFrame& frame) {
  const FunctionSchema& schema = frame.op->schema();
  const size_t outputs = outputCount(schema), inputs = frame.num_args - outputs;
  const Operator& plain = plainOperator(*frame.op, inputs);
  const std::vector<Argument>& formals = plain.schema().arguments();
  std::vector<IValue> args(frame.args, frame.args + inputs), results(outputs);
  for (size_t i = inputs; i < formals.size(); ++i) {
    const bool is_dtype = formals[i].name == "dtype";
    args.push_back(is_dtype ? boxing::box(frame.args[inputs].toTensor().dtype())
                            : *formals[i].default_value);
  }
  plain.call(args.data(), args.size(), results.data(), outputs);
  for (size_t i = 0; i < outputs; ++i) {
    const Tensor& out = frame.args[inputs + i].toTensor();
    markWritten(schema.name().c_str(), out);
    frame.results[i] = std::move(results[i]);
    finishDerived(*frame.op, out, frame.results[i]);
  }
}

namespace {

// Flags, and what follows them, go on behind the kernel.
#define WICK_OUT_FORM(schema, flags, ...) \
  { schema, &outForm, kNeutral | flags __VA_OPT__(, ) __VA_ARGS__ }

// The outputs at the end, which are the results.
#define WICK_WRITTEN2(x, y) \
  "Tensor(a!) " x ", Tensor(b!) " y ") -> (Tensor(a!) " x ", Tensor(b!) " y ")"
#define WICK_WRITTEN3(x, y, z)                                                                \
  "Tensor(a!) " x ", Tensor(b!) " y ", Tensor(c!) " z ") -> (Tensor(a!) " x ", Tensor(b!) " y \
  ", Tensor(c!) " z ")"

constexpr OperatorRecord kOutFormsRecords[] = {
    WICK_OUT_FORM("aten::_linalg_det.result(Tensor A, *, " WICK_WRITTEN3("result", "LU", "pivots"),
                  kOutSame),
    WICK_OUT_FORM("aten::_linalg_eigh.eigenvalues(Tensor A, str UPLO=\"L\", bool compute_v=True, "
                  "*, " WICK_WRITTEN2("eigenvalues", "eigenvectors"),
                  kOutSame),
    WICK_OUT_FORM("aten::_linalg_slogdet.sign(Tensor A, *, Tensor(a!) sign, Tensor(b!) logabsdet, "
                  "Tensor(c!) LU, Tensor(d!) pivots) -> (Tensor(a!) sign, Tensor(b!) logabsdet, "
                  "Tensor(c!) LU, Tensor(d!) pivots)",
                  kOutSame),
    WICK_OUT_FORM(
        "aten::_linalg_solve_ex.result(Tensor A, Tensor B, *, bool left=True, bool "
        "check_errors=False, Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info) "
        "-> (Tensor(a!) result, Tensor(b!) LU, Tensor(c!) pivots, Tensor(d!) info)",
        kOutSame),
    WICK_OUT_FORM("aten::_linalg_svd.U(Tensor A, bool full_matrices=False, bool compute_uv=True, "
                  "*, str? driver=None, " WICK_WRITTEN3("U", "S", "Vh"),
                  kOutSame),
    WICK_OUT_FORM("aten::adaptive_max_pool2d.out(Tensor self, int[2] output_size, *, Tensor(a!) "
                  "out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::adaptive_max_pool3d.out(Tensor self, int[3] output_size, *, Tensor(a!) "
                  "out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::fractional_max_pool2d.output(Tensor self, int[2] kernel_size, int[2] "
                  "output_size, Tensor random_samples, *, Tensor(a!) output, Tensor(b!) indices) "
                  "-> (Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::fractional_max_pool3d.output(Tensor self, int[3] kernel_size, int[3] "
                  "output_size, Tensor random_samples, *, Tensor(a!) output, Tensor(b!) indices) "
                  "-> (Tensor(a!), Tensor(b!))",
                  kNoFlags),
    WICK_OUT_FORM("aten::frexp.Tensor_out(Tensor self, *, " WICK_WRITTEN2("mantissa", "exponent"),
                  kOutSame),
    WICK_OUT_FORM("aten::geqrf.a(Tensor self, *, " WICK_WRITTEN2("a", "tau"), kNoFlags),
    WICK_OUT_FORM("aten::histogram.bin_ct_out(Tensor self, int bins=100, *, float[]? range=None, "
                  "Tensor? weight=None, bool density=False, " WICK_WRITTEN2("hist", "bin_edges"),
                  kOutSame),
    WICK_OUT_FORM("aten::histogram.bins_tensor_out(Tensor self, Tensor bins, *, Tensor? "
                  "weight=None, bool density=False, " WICK_WRITTEN2("hist", "bin_edges"),
                  kOutSame),
    WICK_OUT_FORM("aten::linalg_cholesky_ex.L(Tensor self, *, bool upper=False, bool "
                  "check_errors=False, " WICK_WRITTEN2("L", "info"),
                  kOutSame),
    WICK_OUT_FORM(
        "aten::linalg_eig.out(Tensor self, *, " WICK_WRITTEN2("eigenvalues", "eigenvectors"),
        kNoFlags),
    WICK_OUT_FORM("aten::linalg_eigh.eigvals(Tensor self, str UPLO=\"L\", *, Tensor(a!) eigvals, "
                  "Tensor(b!) eigvecs) -> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors)",
                  kOutSame),
    WICK_OUT_FORM(
        "aten::linalg_inv_ex.inverse(Tensor A, *, bool check_errors=False, " WICK_WRITTEN2(
            "inverse", "info"),
        kOutSame),
    WICK_OUT_FORM(
        "aten::linalg_ldl_factor.out(Tensor self, *, bool hermitian=False, " WICK_WRITTEN2(
            "LD", "pivots"),
        kOutSame),
    WICK_OUT_FORM("aten::linalg_ldl_factor_ex.out(Tensor self, *, bool hermitian=False, bool "
                  "check_errors=False, " WICK_WRITTEN3("LD", "pivots", "info"),
                  kOutSame),
    WICK_OUT_FORM("aten::linalg_lstsq.out(Tensor self, Tensor b, float? rcond=None, *, str? "
                  "driver=None, Tensor(a!) solution, Tensor(b!) residuals, Tensor(c!) rank, "
                  "Tensor(d!) singular_values) -> (Tensor(a!) solution, Tensor(b!) residuals, "
                  "Tensor(c!) rank, Tensor(d!) singular_values)",
                  kNoFlags),
    WICK_OUT_FORM("aten::linalg_lu.out(Tensor A, *, bool pivot=True, " WICK_WRITTEN3("P", "L", "U"),
                  kOutSame),
    WICK_OUT_FORM(
        "aten::linalg_lu_factor.out(Tensor A, *, bool pivot=True, " WICK_WRITTEN2("LU", "pivots"),
        kOutSame),
    WICK_OUT_FORM("aten::linalg_lu_factor_ex.out(Tensor A, *, bool pivot=True, bool "
                  "check_errors=False, " WICK_WRITTEN3("LU", "pivots", "info"),
                  kOutSame),
    WICK_OUT_FORM("aten::linalg_matrix_rank.out_tol_tensor(Tensor input, Tensor tol, bool "
                  "hermitian=False, *, Tensor(a!) out) -> Tensor(a!)",
                  kNoFlags),
    WICK_OUT_FORM("aten::linalg_pinv.out_rcond_tensor(Tensor self, Tensor rcond, bool "
                  "hermitian=False, *, Tensor(a!) out) -> Tensor(a!)",
                  kNoFlags),
    WICK_OUT_FORM("aten::linalg_qr.out(Tensor A, str mode=\"reduced\", *, " WICK_WRITTEN2("Q", "R"),
                  kOutSame),
    WICK_OUT_FORM("aten::linalg_slogdet.out(Tensor A, *, " WICK_WRITTEN2("sign", "logabsdet"),
                  kOutSame),
    WICK_OUT_FORM("aten::linalg_solve_ex.out(Tensor A, Tensor B, *, bool left=True, bool "
                  "check_errors=False, " WICK_WRITTEN2("result", "info"),
                  kOutSame),
    WICK_OUT_FORM(
        "aten::linalg_svd.U(Tensor A, bool full_matrices=True, *, str? driver=None, " WICK_WRITTEN3(
            "U", "S", "Vh"),
        kOutSame),
    WICK_OUT_FORM("aten::log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) "
                  "buffer) -> (Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::lu_unpack.out(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, "
                  "bool unpack_pivots=True, *, " WICK_WRITTEN3("P", "L", "U"),
                  kOutSame),
    WICK_OUT_FORM("aten::max.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
                  kNoFlags),
    WICK_OUT_FORM("aten::max_pool2d_with_indices.out(Tensor self, int[2] kernel_size, int[2] "
                  "stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False, *, "
                  "Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::max_pool3d_with_indices.out(Tensor self, int[3] kernel_size, int[3] "
                  "stride=[], int[3] padding=0, int[3] dilation=1, bool ceil_mode=False, *, "
                  "Tensor(a!) out, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::min.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
                  kNoFlags),
    WICK_OUT_FORM(
        "aten::multilabel_margin_loss_forward.output(Tensor self, Tensor target, int reduction, *, "
        "Tensor(a!) output, Tensor(b!) is_target) -> (Tensor(a!), Tensor(b!))",
        kOutSame),
    WICK_OUT_FORM("aten::native_batch_norm.out(Tensor input, Tensor? weight, Tensor? bias, Tensor? "
                  "running_mean, Tensor? running_var, bool training, float momentum, float eps, *, "
                  "Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd) -> (Tensor(a!), "
                  "Tensor(b!), Tensor(c!))",
                  kNoFlags, nullptr, nullptr, "running_mean running_var if training"),
    WICK_OUT_FORM("aten::nll_loss2d_forward.output(Tensor self, Tensor target, Tensor? weight, int "
                  "reduction, int ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> "
                  "(Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::nll_loss_forward.output(Tensor self, Tensor target, Tensor? weight, int "
                  "reduction, int ignore_index, *, Tensor(a!) output, Tensor(b!) total_weight) -> "
                  "(Tensor(a!), Tensor(b!))",
                  kOutSame),
    WICK_OUT_FORM("aten::qr.Q(Tensor self, bool some=True, *, " WICK_WRITTEN2("Q", "R"), kOutSame),
    WICK_OUT_FORM("aten::slogdet.out(Tensor self, *, " WICK_WRITTEN2("sign", "logabsdet"),
                  kOutSame),
    WICK_OUT_FORM(
        "aten::svd.U(Tensor self, bool some=True, bool compute_uv=True, *, " WICK_WRITTEN3("U", "S",
                                                                                           "V"),
        kNoFlags),
    WICK_OUT_FORM("aten::triangular_solve.X(Tensor self, Tensor A, bool upper=True, bool "
                  "transpose=False, bool unitriangular=False, *, Tensor(a!) X, Tensor(b!) M) -> "
                  "(Tensor(a!) solution, Tensor(b!) cloned_coefficient)",
                  kOutSame),
};

const RegisterOperators kOutFormsRegistered(kOutFormsRecords);

}  // namespace

}  // namespace wick::ops

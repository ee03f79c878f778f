// Calls operators on a GPU and on the CPU, and compares: results, and whether they raise.
//
//   bazel run -c opt //tests/cuda:check_operators
//
// Prints what differs, and what the GPU refuses by name; the exit code is 1 when results differ.
#include <fmt/core.h>

#include <cctype>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/device_backend.h"
#include "core/error.h"
#include "tests/codegen/check_fusion.h"
#include "wick.h"

namespace wick {
namespace {

// Expressions over the tensors of `tensors()`. Expanded ones stand for many elements with one in memory, as gradients of
// sums do.
constexpr const char* kCalls[] = {
    "torch.acos(V)",
    "torch.arccos(V)",
    "torch.arctan2(X, V)",
    "torch.greater(X, V)",
    "torch.multiply(X, V)",
    "torch.true_divide(X, 2)",
    "torch.fmax(X, V)",
    "torch.frac(X)",
    "torch.hardshrink(X)",
    "torch.hardsigmoid(X)",
    "torch.hardswish(X)",
    "torch.lcm(I, I + 1)",
    "torch.mish(X)",
    "torch.negative(X)",
    "torch.not_equal(X, V)",
    "torch.signbit(X)",
    "torch.softplus(X)",
    "torch.subtract(X, V)",
    "torch.angle(X)",
    "torch.sinc(X)",
    "torch.nextafter(X, V)",
    "abs(X)",
    "torch.copy(X, V)",
    "torch.std_mean(X)",
    "torch.std_mean(X, [1], True, True)",
    "torch.var_mean(X, [0])",
    "torch.median(X)",
    "torch.median(X, 1)",
    "torch.nanmedian(X)",
    "torch.mode(I, 1)",
    "torch.kthvalue(X, 2, 1)",
    "torch.topk(X, 2, 1)",
    "torch.native_norm(X)",
    "torch.vander(X[0])",
    "torch.view_as_real_copy(C)",
    "torch.view_as_complex_copy(torch.view_as_real(C))",
    "torch.nonzero_numpy(X)",
    "torch.resize(X, [2, 2])",
    "torch.resize_as(X, X[:2])",
    "torch.squeeze_copy(X[None], [0])",
    "torch.to_dense(X)",
    "torch.conv_tbc(S, torch.ones(3, 3, 4, device=S.device), torch.ones(4, device=S.device), 1)",
    "torch.native_layer_norm(X, [4], None, None, 1e-05)",
    "torch.nll_loss(X, I[:, 0])",
    "torch.nll_loss2d(IM, I[:2, :1].unsqueeze(2).expand(2, 6, 6).clamp(0, 2))",
    "torch.nll_loss_forward(X, I[:, 0], None, 1, -100)",
    "torch.log_sigmoid_forward(X)",
    "torch.max_pool2d_with_indices(IM, [2, 2])",
    "torch.adaptive_max_pool2d(IM, [2, 2])",
    "torch.fractional_max_pool2d(IM, [2, 2], [3, 3], torch.rand(2, 3, 2, device=IM.device) * 0 + "
    "0.3)",
    "torch._euclidean_dist(X, V)",
    "torch._masked_softmax(X, B)",
    "torch._masked_softmax(X, B, 1, 2)",
    "torch._log_softmax(X, 1, False)",
    "torch._softmax(X, 1, False)",
    "torch._logcumsumexp(X, 1)",
    "torch._trilinear(X, V, X, [], [], [], [0])",
    "torch._unique(I, True, True)",
    "torch._unsafe_view(X, [12])",
    "torch.affine_grid_generator(X[:2].expand(2, 4)[:, :3].unsqueeze(0).expand(2, 2, 3), [2, 3, 4, "
    "4], False)",
    "torch.batch_norm_update_stats(IM, None, None, 0.1)",
    "torch._batch_norm_impl_index(IM, None, None, None, None, True, 0.1, 1e-05, False)",
    "torch.rnn_relu_cell(X, X, Y[:, :4], Y[:, :4], None, None)",
    "torch._foreach_norm([X, V])",
    "torch._foreach_zero([X, V])",
    "torch._reshape_from_tensor(X, torch.tensor([2, 6]))",
    "torch._transform_bias_rescale_qkv(torch.ones(2, 3, 12, device=X.device), torch.ones(12, "
    "device=X.device), 2)",
    "torch.isin(2, I)",
    "torch.isin(I, I[0])",
    "torch._rowwise_prune(X, B[:, 0], torch.int)",
    "torch._standard_gamma_grad(V, V)",
    "torch._convert_indices_from_coo_to_csr(I[0].sort()[0], 3)",
    "torch._convert_indices_from_csr_to_coo(torch.tensor([0, 1, 3], device=X.device), "
    "torch.tensor([0, 0, 1], device=X.device))",
    "torch.embedding_renorm(X, I[0], 1.0, 2.0)",
    "torch.histogram(X, 4)",
    "torch.histc(X, 4)",
    "torch.linalg_eigvals(X[:3, :3]).abs().sort()[0]",
    "torch.linalg_ldl_factor(torch.eye(3, device=X.device))",
    "torch.linalg_lstsq(X[:3, :3], V[:3, :2])",
    "torch.rrelu_with_noise(X, torch.ones_like(X), 0.1, 0.3, False)",
    "torch.multilabel_margin_loss(X, I)",
    "torch.multi_margin_loss(X, I[:, 0])",
    "torch.is_strides_like_format(X, 0)",
    "torch._to_cpu([X])",
    "torch._assert_async(B.any())",
    "torch._tensor_to_list(I[0])",
    "torch.polygamma(1, V)",
    "X.clone().polygamma_(1)",
    "torch.digamma(V)",
    "X.unsqueeze(0).squeeze_([0])",
    "torch.dropout_(X.clone(), 0.0, True)",
    "torch.bernoulli(X, B.to(torch.float))",
    "torch.binomial(V * 0 + 3, V * 0 + 1)",
    "torch.zeros([3], out=X.new_empty([3]))",
    "torch.ones([3], out=X.new_empty([3]))",
    "torch.cummax(X, 1)",
    "torch.cummin(X, 0)",
    "torch.logcumsumexp(X, 1)",
    "torch.aminmax(X)",
    "torch.median(X, 1, False, values=X.new_empty([3]), indices=I.new_empty([3]))",
    "torch.topk(X, 2, 1, values=X.new_empty([3, 2]), indices=I.new_empty([3, 2]))",
    "torch.mode(I, 1, False, values=I.new_empty([3]), indices=I.new_empty([3]))",
    "torch.kthvalue(X, 2, 1, False, values=X.new_empty([3]), indices=I.new_empty([3]))",
    "torch.cummax(X, 1, values=X.new_empty([3, 4]), indices=I.new_empty([3, 4]))",
    "torch.aminmax(X, dim=1, min=X.new_empty([3]), max=X.new_empty([3]))",
    "torch.max_pool2d_with_indices(IM, [2, 2], out=X.new_empty([2, 3, 3, 3]), "
    "indices=I.new_empty([2, 3, 3, 3]))",
    "torch.logcumsumexp(C, 0)",
    "torch.sum(Z, [0])",
    "torch.sum(Z, [1])",
    "torch.count_nonzero(Z, 3)",
    "torch.mean(Z, [2])",
    "torch.amax(Z, [1])",
    "torch.max(Z, 1)",
    "torch.argmax(Z, 1)",
    "torch.softmax(Z, 1)",
    "torch.cumsum(Z, 1)",
    "torch.prod(Z, 1)",
    "torch.var(Z, [1])",
    "torch.norm(Z, 2, [1])",
    "torch.logsumexp(Z, [1])",
    "torch.all(Z, 1)",
    "torch.any(Z, 2)",
    "torch.argmin(Z, -2)",
    "torch.log_softmax(Z, 3)",
    "torch.cumprod(Z, 4)",
    "torch.cummax(Z, 1)",
    "torch.nansum(Z, [1])",
    "torch.flip(Z, [1])",
    "torch.sort(Z, 1)",
    "torch.unsqueeze(Z, 3)",
    "torch.roll(Z, [1], [1])",
    "torch.std_mean(Z, [1])",
    "torch.median(Z, 1)",
    "torch.linalg_vector_norm(Z, 2, [1])",
    "torch.index_select(Z, 1, I[0, :1])",
    "torch.gather(Z, 1, I[0, 0])",
    "torch.cat([Z, Z])",
    "torch.stack([Z, Z], 2)",
    "torch.argsort(Z, 1)",
    "torch.topk(Z, 1, 1)",
    "torch.renorm(Z, 1, 0, 1)",
    "torch.glu(Z, 0)",
    "torch.logcumsumexp(Z, 2)",
    "torch.threshold(X, 2j, 0)",
    "torch.index_add(I.to(torch.int8), 0, I[0, :3], I.to(torch.int8), alpha=0.5)",
    "torch.index_add(I[0].to(torch.int8), 0, I[0, :3], I[0, :3].to(torch.int8), alpha=0.5)",
    "torch.index_add(I, 1, I[1], I, alpha=2.7)",
    "torch.index_add(X, 1, I[1], X, alpha=2.7)",
    "torch.add(I, I, alpha=0.5)",
    "torch.conv_transpose2d(IM, W[:3, :2], None, [1, 2], [1, 1], [1, 3], 1, [2, 4])",
    "torch.conv_transpose1d(S, W[:2, :, :, 0], None, [2], [1], [2], 1, [3])",
    "torch.__interpolate(IM, None, 2.0)",
    "torch.__upsample(IM, [4, 4])",
    "torch.any(C, [0, 1])",
    "torch.flip(X, [-1, 1])",
    "torch.where(B)",
    "X[B]",
    "torch.special_softmax(X, 1)",
    "torch.special_log_softmax(X, 1)",
    "torch.special_logit(V)",
    "torch.special_multigammaln(V + 3, 2)",
    "torch.special_polygamma(1, V)",
    "torch.special_round(X, decimals=1)",
    "torch.special_psi(V)",
    "torch.special_entr(V)",
    "torch.special_xlogy(X, V)",
    "torch.special_zeta(V + 1, V)",
    "torch.special_i1(X)",
    "torch.special_chebyshev_polynomial_t(X, 3)",
    "torch.fake_quantize_per_tensor_affine(X, 0.1, 0, -128, 127)",
    "torch.fake_quantize_per_tensor_affine(X, Z, I[0, 0].to(torch.int), -128, 127)",
    "torch.fake_quantize_per_channel_affine(X, V[0], I[0].to(torch.int), 1, -8, 7)",
    "torch.bitwise_and(I, 1)",
    "I ^ 3",
    "I << 1",
    "torch.prod(X, 1)",
    "torch.std(X, 1)",
    "torch.var_mean(X, 1)",
    "torch.gcd(I, I + 2)",
    "torch.max(X, 1)",
    "torch.min(X, V)",
    "torch.max(X, V, out=X.new_empty([3, 4]))",
    "torch.sort(X, 1, True, values=X.new_empty([3, 4]), indices=I.new_empty([3, 4]))",
    "torch.full([2], 3.0, out=X.new_empty([2]))",
    "torch.masked_scatter(X, B, V)",
    "torch.masked_select(X, B)",
    "torch.index_put(X, [I[0, :3]], V, True)",
    "torch.scatter_reduce(X, 1, I, V, \"amax\")",
    "torch.scatter_reduce(X, 1, I, V.expand(3, 4), \"mean\", include_self=False)",
    "torch.index_add(X, 0, I[0, :3], V[:1].expand(3, 4))",
    "torch.index_reduce(X, 0, I[0, :3], V[:1].expand(3, 4), \"amax\")",
    "torch.put(X, I[0, :3], V[:1, :1].expand(1, 3), True)",
    "torch.scatter_add(X, 1, I, Z.expand(3, 4))",
    "torch.index_put(X, [I[0, :3], I[1, :3]], Z.expand(3), True)",
    "torch.bincount(I.flatten(), V.flatten()[:1].expand(12))",
    "torch.grid_sampler(IM, X[:2, :2].view(2, 1, 2, 1).expand(2, 3, 2, 2), 0, 0, False)",
    "torch.cumsum(Z.expand(3, 4), 1)",
    "torch.cummax(V[:1].expand(3, 4), 0)",
    "torch.sort(V[:1].expand(3, 4), 1)",
    "torch.topk(V[:1].expand(3, 4), 2)",
    "torch.unique_consecutive(V[:1].expand(3, 4), dim=0)",
    "torch.fft_fft(Z.expand(4))",
    "torch.linalg_solve(X[:3, :3], Z.expand(3))",
    "torch.conv2d(Z.expand(1, 3, 6, 6), W)",
    "torch.max_pool2d(Z.expand(1, 3, 6, 6), [2, 2])",
    "torch.embedding_bag(V[:1].expand(4, 4), I[0], I[0, :1], False, 0)",
    "torch.searchsorted(V[0].sort()[0].expand(3, 4), X)",
    "torch.histc(Z.expand(4), 3, 0, 2)",
    "torch.pad(V[:1].expand(3, 4).unsqueeze(0), [1, 1], \"reflect\")",
    "torch.upsample_bilinear2d(Z.expand(1, 3, 6, 6), [3, 3], False)",
    "torch.roll(V[:1].expand(3, 4), [1], [0])",
    "torch.kron(V[:1].expand(3, 4), X)",
    "torch.cdist(V[:1].expand(3, 4), X)",
    "torch.logcumsumexp(V[:1].expand(3, 4), 0)",
    "torch.segment_reduce(V[:1].expand(3, 4), \"sum\", lengths=I[2, :3] - 1)",
    "torch.ctc_loss(torch.log_softmax(Z.expand(5, 2, 4), 2), I[:2, :2] + 1, [5, 5], [2, 2], 0, 0, "
    "False)",
};

// Functions of X and I.
constexpr const char* kFunctions[] = {
    R"(def g1(X: Tensor, I: Tensor):
    a = torch.clone(torch.detach(X)).requires_grad_()
    p = torch.index(a, annotate(List[Optional[Tensor]], [I[:, 0]]))
    return torch.autograd.grad([torch.sum(p) * 2], [a])
)",
    R"(def g2(X: Tensor, I: Tensor):
    a = torch.clone(torch.detach(X)).requires_grad_()
    m = torch.index(a, annotate(List[Optional[Tensor]], [torch.gt(a, 0)]))
    return torch.autograd.grad([torch.sum(torch.pow(m, 3))], [a])
)",
    R"(def g3(X: Tensor, I: Tensor):
    a = torch.clone(torch.detach(X)).requires_grad_()
    c = torch.where(torch.gt(a, 0.3), a * a, torch.neg(a))
    return torch.autograd.grad([torch.sum(torch.index_select(c, 0, I[:, 0]))], [a])
)",
    R"(def g4(X: Tensor, I: Tensor):
    a = torch.clone(torch.detach(X)).requires_grad_()
    c = torch.where(torch.gt(a, 0.3), a * a, torch.neg(a))
    return torch.autograd.grad([torch.sum(c)], [a])
)",
    R"(def g5(X: Tensor, I: Tensor):
    return torch.where(torch.gt(torch.abs(X), -1), X + 5, X), torch.where(torch.gt(torch.abs(X * float('nan')), -1), X, X + 10)
)",
    R"(def g6(X: Tensor, I: Tensor):
    a = torch.abs(X * float('nan'))
    return torch.gt(a, -1), a >= -1.0, a < -1, a <= -2.0, a == -1, a != -1, torch.where(a > -1.0, X, -X), torch.where(a < -1.0, X, -X), torch.relu(X * float('nan')) > -1, torch.where((X*float('nan')).relu() >= -3, X, -X), torch.where(torch.exp(X*float('nan')) > -3.0, X, -X), torch.where(torch.square(X*float('nan')) > -3.0, X, -X)
)",
    R"(def g7(X: Tensor, I: Tensor):
    x = torch.ones([5, 2, 3], device=X.device)
    d, b = torch._pack_padded_sequence(x, torch.tensor([5, 3]), False)
    h = torch.zeros([1, 2, 4], device=X.device)
    w = torch.linspace(-1.0, 1.0, 48, device=X.device).view(16, 3)
    u = torch.linspace(-1.0, 1.0, 64, device=X.device).view(16, 4)
    lstm = torch.lstm(d, b, [h, h], [w, u], False, 1, 0.0, False, False)
    return lstm, torch.gru(d, b, h, [w[:12], u[:12]], False, 1, 0.0, False, False)
)",
    R"(def g8(X: Tensor, I: Tensor):
    a = torch.clone(torch.detach(X.view(1, 3, 4).expand(2, 3, 4))).requires_grad_()
    w = torch.linspace(-1.0, 1.0, 18, device=X.device).view(3, 2, 3).requires_grad_()
    y = torch.conv_transpose1d(a, w, None, [2], [1], [2], 1, [3])
    s = torch.sum(y * torch.arange(y.numel(), device=X.device).view(y.size()))
    return y, torch.autograd.grad([s], [a, w])
)",
};

using Tensors = std::map<std::string, Tensor>;

template <class Distribution = std::normal_distribution<float>>
Tensor drawn(const DimVector& sizes, std::mt19937& random, Distribution next = {}) {
  const Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = next(random);
  return t;
}

Tensors tensors() {
  std::mt19937 random(1);
  Tensors all = {{"X", drawn({3, 4}, random)},        {"Y", drawn({4, 5}, random)},
                 {"IM", drawn({2, 3, 6, 6}, random)}, {"S", drawn({5, 2, 3}, random)},
                 {"W", drawn({4, 3, 3, 3}, random)},  {"Z", Tensor::full({}, 1.5, DType::Float)}};
  all["V"] = drawn({3, 4}, random, std::uniform_real_distribution<float>(0, 1));
  const int64_t indices[] = {0, 2, 1, 1, 1, 0, 2, 0, 2, 2, 2, 1};
  all["I"] = Tensor::fromData(indices, {3, 4});
  const Tensor mask = Tensor::empty({3, 4}, DType::Bool), pairs = drawn({3, 4, 2}, random);
  for (int64_t i = 0; i < mask.numel(); ++i) {
    mask.data<bool>()[i] = all.at("X").data<float>()[i] > 0;
  }
  all["B"] = mask;
  const Program complex = compile("def f(x: Tensor):\n    return torch.view_as_complex(x)\n");
  all["C"] = complex.call("f", {IValue(pairs)}).toTensor();
  return all;
}

struct Outcome {
  std::vector<IValue> values;  // tensors, and values of other types
  std::string error;
};

// Lists and tuples flattened; tensors on the CPU.
void flatten(const IValue& value, std::vector<IValue>& into) {
  if (value.isTensor()) {
    into.emplace_back(moveTo(value.toTensor(), Device()).detach());
  } else if (value.isList() || value.isTuple()) {
    for (const IValue& item : value.elements()) flatten(item, into);
  } else {
    into.push_back(value);
  }
}

Outcome outcomeOf(const Program& program, const std::string& name,
                  const std::vector<std::string>& names, const Tensors& all, Device device) {
  std::vector<IValue> arguments;
  for (const std::string& n : names) arguments.emplace_back(moveTo(all.at(n), device));
  Outcome outcome;
  try {
    flatten(program.call(name, std::move(arguments)), outcome.values);
  } catch (const std::exception& e) {
    const auto* known = dynamic_cast<const RuntimeError*>(&e);
    outcome.error = known ? known->brief() : e.what();
  }
  return outcome;
}

std::string difference(const Outcome& got, const Outcome& expected) {
  if (got.error.empty() != expected.error.empty()) {
    return fmt::format("raises '{}', and '{}' on the CPU", got.error, expected.error);
  }
  if (got.values.size() != expected.values.size()) return "the number of results differs";
  for (size_t i = 0; i < got.values.size(); ++i) {
    const IValue &a = got.values[i], &b = expected.values[i];
    if (a.isTensor() != b.isTensor()) return "one result is a tensor, the other is not";
    std::string found;
    if (a.isTensor()) {
      found = differenceOf(a.toTensor(), b.toTensor(), 1e-4, false);
    } else if (a.isInt() && b.isInt() ? a.toInt() != b.toInt() : a.tagName() != b.tagName()) {
      found = "another value";
    }
    if (!found.empty()) return fmt::format("result {}: {}", i, found);
  }
  return {};
}

struct Counts {
  int equal = 0, refused = 0, different = 0;
};

void compare(const std::string& source, const std::vector<std::string>& names, const Tensors& all,
             Device device, Counts& counts) {
  const Program program = compile(source);
  const std::string name = program.functionNames().front();
  const Outcome expected = outcomeOf(program, name, names, all, Device());
  const Outcome got = outcomeOf(program, name, names, all, device);
  const std::string found = difference(got, expected);
  const bool refused = got.error.find("not available") != std::string::npos;
  ++(found.empty() ? counts.equal : refused ? counts.refused : counts.different);
  if (!found.empty()) fmt::print("{}{}\n", source, found);
}

// Whether the name stands alone in the expression.
bool uses(const std::string& expression, const std::string& name) {
  const auto isPart = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (size_t at = expression.find(name); at != std::string::npos;
       at = expression.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !isPart(expression[at - 1])) &&
        (end == expression.size() || !isPart(expression[end]))) {
      return true;
    }
  }
  return false;
}

int checkAll() {
  const Device device = placeOf({DeviceType::CUDA, -1});
  const Tensors all = tensors();
  Counts counts;
  for (const std::string expression : kCalls) {
    std::vector<std::string> names;
    std::string arguments;
    for (const auto& [name, tensor] : all) {
      if (!uses(expression, name)) continue;
      names.push_back(name);
      arguments += (arguments.empty() ? "" : ", ") + name + ": Tensor";
    }
    compare(fmt::format("def f({}):\n    return {}\n", arguments, expression), names, all, device,
            counts);
  }
  for (const char* source : kFunctions) compare(source, {"X", "I"}, all, device, counts);
  fmt::print("{} calls agree, {} are refused by name, {} differ\n", counts.equal, counts.refused,
             counts.different);
  return counts.different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace wick

int main() {
  return wick::checkAll();
}

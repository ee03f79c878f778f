// Operators on sparse tensors against what PyTorch 1.13 gives.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "wick.h"

namespace wick::values_test {
namespace {

struct Case {
  const char* expression;
  std::vector<double> expected;
};

const char* const kNames[] = {"s", "t", "c", "d", "h", "u"};
const char* const kMakers[] = {
    "x.to_sparse()",
    "y.to_sparse()",
    "x.to_sparse_csr()",
    "y.to_sparse_csr()",
    "w.to_sparse(2)",
    "torch.sparse_coo_tensor(torch.tensor([[0, 0, 2], [1, 1, 3]]), torch.tensor([1.0, 2.0, 3.0]), "
    "[3, 4])",
};

Tensor matrix(std::initializer_list<float> values) {
  return Tensor::from(values, IntSpan({3, 4}));
}
Tensor x() {
  return matrix({0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0});
}
Tensor y() {
  return matrix({1, 0, 0, 1, 0, 5, 0, 0, 3, 0, 0, 0});
}
Tensor ramp(IntSpan sizes, float step, float start) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i) * step + start;
  return t;
}
Tensor m() {
  return ramp({4, 3}, 0.25f, -1);
}
Tensor w() {
  Tensor t = ramp({3, 4, 2}, 0.5f, -3);
  t.select(0, 1).fill(0);
  return t;
}

std::vector<double> numbers(const Tensor& t) {
  const Tensor wide = t.to(DType::Double).contiguous();
  return {wide.data<double>(), wide.data<double>() + wide.numel()};
}

void expectNear(const std::vector<double>& got, const std::vector<double>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 2e-5) << what << " at " << i;
}

std::string source(const char* expression) {
  std::string text = "def f(x: Tensor, y: Tensor, m: Tensor, w: Tensor) -> Tensor:\n";
  for (size_t i = 0; i < std::size(kNames); ++i) {
    text += std::string("    ") + kNames[i] + " = " + kMakers[i] + "\n";
  }
  return text + "    return " + expression + "\n";
}

const Case kValues[] = {
    {"torch.dropout(s, 0.5, False).to_dense()[0]", {0, 2, 0, 1}},
    {"torch.nn.functional.dropout(c, 0.5, False).to_dense()[0]", {0, 2, 0, 1}},
    {"torch.sparse.mm(s, y.t())[0]", {1, 10, 0}},
    {"torch.sparse.sum(s, 0).to_dense()", {3, 2, -1, 1}},
    {"s.to_dense()", {0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0}},
    {"x.to_sparse(1).to_dense()", {0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0}},
    {"torch.nn.functional.linear(m.t().reshape([1, 3, 4]), c)",
     {0.75, 0, -3.5, 1.5, 0, -3, 2.25, 0, -2.5}},
    {"u.to_dense()", {0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}},
    {"u.coalesce().values()", {3, 3}},
    {"u.coalesce().indices()", {0, 2, 1, 3}},
    {"u.t().coalesce().indices()", {1, 3, 0, 2}},
    {"h.to_dense()", {-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 0, 0,   0, 0,
                      0,  0,    0,  0,    5,  5.5,  6, 6.5, 7, 7.5, 8, 8.5}},
    {"c.values()", {2, 1, 3, -1}},
    {"c.crow_indices()", {0, 2, 2, 4}},
    {"c.col_indices()", {1, 3, 0, 2}},
    {"x.to_sparse_csc().ccol_indices()", {0, 1, 2, 3, 4}},
    {"x.to_sparse_csc().row_indices()", {2, 0, 2, 0}},
    {"x.to_sparse_csc().values()", {3, 2, -1, 1}},
    {"x.to_sparse_bsr([3, 2]).values()", {0, 2, 0, 0, 3, 0, 0, 1, 0, 0, -1, 0}},
    {"x.to_sparse_bsr([3, 2]).col_indices()", {0, 1}},
    {"x.to_sparse_bsc([1, 2]).to_dense()", {0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0}},
    {"x.to_sparse_csc().to_sparse_csr().col_indices()", {1, 3, 0, 2}},
    {"s.to_sparse_csc().row_indices()", {2, 0, 2, 0}},
    {"c.to_sparse().indices()", {0, 0, 2, 2, 1, 3, 0, 2}},
    {"(s + t).to_dense()", {1, 2, 0, 2, 0, 5, 0, 0, 6, 0, -1, 0}},
    {"(s - t).to_dense()", {-1, 2, 0, 0, 0, -5, 0, 0, 0, 0, -1, 0}},
    {"torch.add(s, u, alpha=0.5).to_dense()", {0, 3.5, 0, 1, 0, 0, 0, 0, 3, 0, -1, 1.5}},
    {"torch.add(y, s, alpha=3)", {1, 6, 0, 4, 0, 5, 0, 0, 12, 0, -3, 0}},
    {"(s * t).to_dense()", {0, 0, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0}},
    {"(s * y).to_dense()", {0, 0, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0}},
    {"(s * 2.5).to_dense()", {0, 5, 0, 2.5, 0, 0, 0, 0, 7.5, 0, -2.5, 0}},
    {"(c * 2.5).to_dense()", {0, 5, 0, 2.5, 0, 0, 0, 0, 7.5, 0, -2.5, 0}},
    {"(s / 4).to_dense()", {0, 0.5, 0, 0.25, 0, 0, 0, 0, 0.75, 0, -0.25, 0}},
    {"torch.div(s, 0.3, rounding_mode=\"floor\").to_dense()",
     {0, 6, 0, 3, 0, 0, 0, 0, 9, 0, -4, 0}},
    {"torch.sin(u).to_dense()", {0, 0.14112, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.14112}},
    {"torch.expm1(c).to_dense()",
     {0, 6.389056, 0, 1.718282, 0, 0, 0, 0, 19.085537, 0, -0.632121, 0}},
    {"torch.pow(s, 2).to_dense()", {0, 4, 0, 1, 0, 0, 0, 0, 9, 0, 1, 0}},
    {"torch.sqrt(torch.abs(s)).to_dense()", {0, 1.414214, 0, 1, 0, 0, 0, 0, 1.732051, 0, 1, 0}},
    {"s.neg_().to_dense()", {0, -2, 0, -1, 0, 0, 0, 0, -3, 0, 1, 0}},
    {"s.add_(t).to_dense()", {1, 2, 0, 2, 0, 5, 0, 0, 6, 0, -1, 0}},
    {"torch.mm(s, m)", {0.75, 1.5, 2.25, 0, 0, 0, -3.5, -3, -2.5}},
    {"torch.mm(u, m)", {-0.75, 0, 0.75, 0, 0, 0, 3.75, 4.5, 5.25}},
    {"torch.mm(c, m)", {0.75, 1.5, 2.25, 0, 0, 0, -3.5, -3, -2.5}},
    {"torch.mm(x.to_sparse_csc(), m)", {0.75, 1.5, 2.25, 0, 0, 0, -3.5, -3, -2.5}},
    {"torch.mm(m, c)",
     {-1.5, -2, 0.5, -1, 0.75, -0.5, -0.25, -0.25, 3, 1, -1, 0.5, 5.25, 2.5, -1.75, 1.25}},
    {"torch.mm(s, t.t()).to_dense()", {1, 10, 0, 0, 0, 0, 3, 0, 9}},
    {"torch.mv(s, m[:, 0])", {0.75, 0, -3.5}},
    {"torch.matmul(u, m[:, 1])", {0, 0, 4.5}},
    {"torch.addmm(y[:, :3], s, m, beta=0.5, alpha=2.0)", {2, 3, 4.5, 0, 2.5, 0, -5.5, -6, -5}},
    {"torch.addmm(y[:, :3], c, m, beta=0.0, alpha=-1.0)",
     {-0.75, -1.5, -2.25, 0, 0, 0, 3.5, 3, 2.5}},
    {"torch.ops.aten._sparse_mm(s, m)", {0.75, 1.5, 2.25, 0, 0, 0, -3.5, -3, -2.5}},
    {"torch.ops.aten._sparse_addmm(y[:, :3], s, m, beta=2.0)",
     {2.75, 1.5, 2.25, 0, 10, 0, 2.5, -3, -2.5}},
    {"torch.smm(s, m).to_dense()", {0.75, 1.5, 2.25, 0, 0, 0, -3.5, -3, -2.5}},
    {"torch.hspmm(s, m).to_dense()", {0.75, 1.5, 2.25, 0, 0, 0, -3.5, -3, -2.5}},
    {"torch.sspaddmm(y[:, :3].to_sparse(), s, m, beta=0.5).to_dense()",
     {1.25, 1.5, 2.25, 0, 2.5, 0, -2, -3, -2.5}},
    {"torch.bmm(w.to_sparse(), torch.ones(3, 2, 2))",
     {-5.5, -5.5, -3.5, -3.5, -1.5, -1.5, 0.5,  0.5,  0,    0,    0,    0,
      0,    0,    0,    0,    10.5, 10.5, 12.5, 12.5, 14.5, 14.5, 16.5, 16.5}},
    {"torch.ops.aten.linear(m.t(), c)", {0.75, 0, -3.5, 1.5, 0, -3, 2.25, 0, -2.5}},
    {"torch._sparse_sum(s)", {5}},
    {"torch._sparse_sum(u, [0]).to_dense()", {0, 3, 0, 3}},
    {"torch._sparse_sum(h, [1]).to_dense()", {-6, -4, 0, 0, 26, 28}},
    {"torch._sparse_sum(h, [2]).to_dense()",
     {-5.5, -3.5, -1.5, 0.5, 0, 0, 0, 0, 10.5, 12.5, 14.5, 16.5}},
    {"torch._sparse_sum(h, [0, 1])", {20, 24}},
    {"torch._sparse_sum(h, [0, 2]).to_dense()", {5, 9, 13, 17}},
    {"torch._sparse_csr_sum(c, [0], True).to_dense()", {3, 2, -1, 1}},
    {"torch._sparse_csr_prod(c, [1], True).to_dense()", {2, 0, -3}},
    {"torch.sum(c)", {5}},
    {"torch.norm(u)", {4.24264}},
    {"torch.norm(s, 1)", {7}},
    {"torch.any(s)", {1}},
    {"torch.ops.aten._sparse_softmax(s, 0).to_dense()", {0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0}},
    {"torch.ops.aten._sparse_softmax(u, 1).to_dense()", {0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}},
    {"torch.ops.aten._sparse_softmax(h, 0).to_dense()",
     {0.000335, 0.000335, 0.000335, 0.000335, 0.000335, 0.000335, 0.000335, 0.000335,
      0,        0,        0,        0,        0,        0,        0,        0,
      0.999665, 0.999665, 0.999665, 0.999665, 0.999665, 0.999665, 0.999665, 0.999665}},
    {"torch.ops.aten._sparse_softmax(h, 2).to_dense()",
     {0.377541, 0.622459, 0.377541, 0.622459, 0.377541, 0.622459, 0.377541, 0.622459,
      0,        0,        0,        0,        0,        0,        0,        0,
      0.377541, 0.622459, 0.377541, 0.622459, 0.377541, 0.622459, 0.377541, 0.622459}},
    {"torch.ops.aten._sparse_log_softmax(s, 1).to_dense()",
     {0, -0.313262, 0, -1.313262, 0, 0, 0, 0, -0.01815, 0, -4.01815, 0}},
    {"s.t().to_dense()", {0, 0, 3, 2, 0, 0, 0, 0, -1, 1, 0, 0}},
    {"h.transpose(0, 1).to_dense()", {-3, -2.5, 0, 0, 5, 5.5, -2, -1.5, 0, 0, 6, 6.5,
                                      -1, -0.5, 0, 0, 7, 7.5, 0,  0.5,  0, 0, 8, 8.5}},
    {"w.to_sparse().permute([2, 0, 1]).to_dense()",
     {-3,   -2,   -1,   0,   0, 0, 0, 0, 5,   6,   7,   8,
      -2.5, -1.5, -0.5, 0.5, 0, 0, 0, 0, 5.5, 6.5, 7.5, 8.5}},
    {"c.t().to_dense()", {0, 0, 3, 2, 0, 0, 0, 0, -1, 1, 0, 0}},
    {"s.select(0, 2).to_dense()", {3, 0, -1, 0}},
    {"s.select(1, 1).to_dense()", {2, 0, 0}},
    {"h.select(2, 1).to_dense()", {-2.5, -1.5, -0.5, 0.5, 0, 0, 0, 0, 5.5, 6.5, 7.5, 8.5}},
    {"c.select(1, 3).to_dense()", {1, 0, 0}},
    {"s[0][1]", {2}},
    {"s.index_select(1, torch.tensor([3, 3, 0])).to_dense()", {1, 1, 0, 0, 0, 0, 0, 0, 3}},
    {"h.index_select(2, torch.tensor([1, 0, 1])).to_dense()",
     {-2.5, -3, -2.5, -1.5, -2, -1.5, -0.5, -1, -0.5, 0.5, 0, 0.5, 0,   0, 0,   0,   0, 0,
      0,    0,  0,    0,    0,  0,    5.5,  5,  5.5,  6.5, 6, 6.5, 7.5, 7, 7.5, 8.5, 8, 8.5}},
    {"torch.narrow_copy(s, 1, 1, 2).to_dense()", {2, 0, 0, 0, 0, -1}},
    {"s.unsqueeze(1).to_dense()", {0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0}},
    {"h.unsqueeze(3).to_dense()", {-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 0, 0,   0, 0,
                                   0,  0,    0,  0,    5,  5.5,  6, 6.5, 7, 7.5, 8, 8.5}},
    {"torch.cat([s, u], 1).to_dense()",
     {0, 2, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, -1, 0, 0, 0, 0, 3}},
    {"torch.cat([h, h], 2).to_dense()",
     {-3, -2.5, -3, -2.5, -2, -1.5, -2, -1.5, -1, -0.5, -1, -0.5, 0, 0.5, 0, 0.5,
      0,  0,    0,  0,    0,  0,    0,  0,    0,  0,    0,  0,    0, 0,   0, 0,
      5,  5.5,  5,  5.5,  6,  6.5,  6,  6.5,  7,  7.5,  7,  7.5,  8, 8.5, 8, 8.5}},
    {"torch.stack([s, t], -1).to_dense()",
     {0, 1, 2, 0, 0, 0, 1, 1, 0, 0, 0, 5, 0, 0, 0, 0, 3, 3, 0, 0, -1, 0, 0, 0}},
    {"x.sparse_mask(t).to_dense()", {0, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 0}},
    {"y.sparse_mask(c).to_dense()", {0, 0, 0, 1, 0, 0, 0, 0, 3, 0, 0, 0}},
    {"torch._sparse_broadcast_to(s, [2, 3, 4]).to_dense()",
     {0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0, 0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0}},
    {"torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)", {0, 2, 2, 3}},
    {"torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 3]), torch.tensor([1, 2, 0]))",
     {0, 0, 1, 1, 2, 0}},
    {"torch.ops.aten._spdiags(m, torch.tensor([0, -1, 1, 2]), [4, 3]).to_dense()",
     {-1, 0.75, 1.75, -0.25, -0.75, 1, 0, 0, -0.5, 0, 0, 0.25}},
    {"torch.zeros([2, 3], layout=torch.sparse_coo).to_dense()", {0, 0, 0, 0, 0, 0}},
    {"s.zero_().to_dense()", {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"s.copy_(u).to_dense()", {0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}},
    {"s.double().to_dense()", {0, 2, 0, 1, 0, 0, 0, 0, 3, 0, -1, 0}},
    {"torch.sparse_csr_tensor(torch.tensor([0, 2, 3]), torch.tensor([0, 2, 1]), m[:3, "
     "0].contiguous()).to_dense()",
     {-1, 0, -0.25, 0, 0.5, 0}},
    {"torch.sparse_bsr_tensor(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), w[:2, "
     ":2].contiguous(), [4, 4]).to_dense()",
     {0, 0, -3, -2.5, 0, 0, -2, -1.5, 0, 0, 0, 0, 0, 0, 0, 0}},
    {"torch.sparse_coo_tensor(torch.tensor([[1, 0, 1]]), w[0][:3], [2, 2]).to_dense()",
     {-2, -1.5, -4, -3}},
};

TEST(SparseValues, AsInPyTorch) {
  for (const Case& c : kValues) {
    try {
      Program program = compile(source(c.expression));
      // The first runs are observed, the later ones follow a plan.
      for (int i = 0; i < 3; ++i) {
        expectNear(numbers(program.call("f", {x(), y(), m(), w()}).toTensor()), c.expected,
                   c.expression);
      }
    } catch (const std::exception& e) {
      ADD_FAILURE() << c.expression << ": " << e.what();
    }
  }
}

// What PyTorch refuses is refused here.
TEST(SparseValues, Refusals) {
  const char* const kExpressions[] = {
      "torch.softmax(s, 0)",
      "s.view([12])",
      "s + x",
      "s + 1",
      "s / t",
      "torch.cos(s)",
      "torch.exp(c)",
      "torch.pow(s, 0)",
      "torch.mm(m, s)",
      "torch.mm(s, x)",
      "torch.cat([s, x])",
      "u.indices()",
      "u.values()",
      "c.indices()",
      "s.crow_indices()",
      "c.ccol_indices()",
      "x.indices()",
      "x.copy_(s)",
      "s.copy_(x)",
      "h.transpose(0, 2)",
      "h.copy_(s)",
      "x.to_sparse(0)",
      "x.to_sparse(3)",
      "x.to_sparse_bsr([2, 2])",
      "x.sparse_mask(u)",
      "s.select(0, 3)",
      "s.index_select(0, torch.tensor([3]))",
      "torch._sparse_sum(s, [0, 0])",
      "s.sparse_resize_([2, 2], 2, 0)",
      "torch.sum(c, [0])",
      "torch.bmm(s, m)",
  };
  for (const char* expression : kExpressions) {
    Program program = compile(source(expression));
    EXPECT_THROW(program.call("f", {x(), y(), m(), w()}), RuntimeError) << expression;
  }
}

// What says why.
TEST(SparseValues, MessagesOfRefusals) {
  const std::pair<const char*, const char*> kCases[] = {
      {"x.to_sparse_bsr([3, 2]) + x.to_sparse_bsr([3, 2])",
       "add: not available for tensors of layout SparseBsr"},
      {"x.to_sparse_bsr([3, 2]) * y", "mul: not available for tensors of layout SparseBsr"},
      {"s.sparse_mask(c)",
       "sparse_mask: the layouts Sparse and SparseCsr of the tensor and its mask differ"},
      {"x.to_sparse_bsr([3, 2]).sparse_mask(y.to_sparse_bsr([3, 2]))",
       "sparse_mask: not available for tensors of layout SparseBsr"},
      {"torch.nn.functional.linear(torch.tensor(1.0), s)",
       "linear: expected an input with dimensions"},
      {"x.to(torch.device(\"meta\")).to_sparse()",
       "to_sparse: sparse tensors exist on the CPU only, got a tensor on meta"},
      {"x.to(torch.device(\"meta\")).to_sparse_bsr([3, 2])",
       "to_sparse: sparse tensors exist on the CPU only, got a tensor on meta"},
      {"torch.mm(s, m.to(torch.device(\"meta\")))",
       "aten::mm: sparse tensors exist on the CPU only, and so must all others of the call, but "
       "one is on meta"},
      {"x.to(torch.device(\"meta\")) + s",
       "aten::add: sparse tensors exist on the CPU only, and so must all others of the call, but "
       "one is on meta"},
  };
  for (const auto& [expression, message] : kCases) {
    const Program program = compile(source(expression));
    try {
      program.call("f", {x(), y(), m(), w()});
      ADD_FAILURE() << expression;
    } catch (const RuntimeError& e) {
      EXPECT_EQ(e.brief(), message) << expression;
    }
  }
}

const Case kGradients[] = {
    {"torch.sparse_coo_tensor(i, v, [3, 4]).to_dense() * y", {0.0, 1.0, 0.0, 0.0}},
    {"torch.ops.aten._sparse_mm(torch.sparse_coo_tensor(i, v, [3, 4]), m)", {0.0, 4.5, 4.5, -2.25}},
    {"torch.ops.aten._sparse_mm(torch.sparse_coo_tensor(i, v, [3, 4]).coalesce(), m * v[0])",
     {0.0, 4.5, 4.5, -2.25}},
    {"torch.ops.aten._sparse_mm(torch.sparse_coo_tensor(i, v * v, [3, 4]), m)",
     {0.0, 18.0, -4.5, -13.5}},
    {"torch._sparse_sum(torch.sparse_coo_tensor(i, v, [3, 4]), [1]).to_dense() * m[:3, 2]",
     {-0.5, -0.5, 1.0, 0.25}},
    {"torch._sparse_sum(torch.sparse_coo_tensor(i, v, [3, 4]))", {1.0, 1.0, 1.0, 1.0}},
    {"torch.ops.aten._sparse_softmax(torch.sparse_coo_tensor(i, v, [3, 4]).coalesce(), "
     "1).to_dense() * y",
     {-0.196612, 0.196612, 0.0, 0.0}},
    {"torch.ops.aten._sparse_log_softmax(torch.sparse_coo_tensor(i, v, [3, 4]).coalesce(), "
     "0).to_dense() * y",
     {0.0, 0.075858, -0.075858, 0.0}},
    {"(torch.sparse_coo_tensor(i, v, [3, 4]) * 3).to_dense() * x", {6.0, 3.0, 0.0, 0.0}},
    {"torch.sparse_coo_tensor(i, v, [3, 4]).t().to_dense() * y.t()", {0.0, 1.0, 0.0, 0.0}},
    {"torch.sparse_coo_tensor(i, v, [3, 4]).coalesce().values() * m[:, 0]",
     {-1.0, -0.25, 1.25, 0.5}},
};

TEST(SparseGradients, AsInPyTorch) {
  const Tensor i = Tensor::from({int64_t{0}, int64_t{0}, int64_t{2}, int64_t{1}, int64_t{1},
                                 int64_t{3}, int64_t{3}, int64_t{0}},
                                {2, 4});
  const Tensor v = Tensor::from({1.f, 2.f, -0.5f, 3.f});
  for (const Case& c : kGradients) {
    Program program = compile(
        std::string("def f(i: Tensor, v: Tensor, x: Tensor, y: Tensor, m: Tensor) -> Tensor:\n"
                    "    v = v.detach().requires_grad_()\n"
                    "    r = ") +
        c.expression +
        "\n    g = torch.autograd.grad([r.sum()], [v])[0]\n"
        "    assert g is not None\n"
        "    return g\n");
    try {
      expectNear(numbers(program.call("f", {i, v, x(), y(), m()}).toTensor()), c.expected,
                 c.expression);
    } catch (const std::exception& e) {
      ADD_FAILURE() << c.expression << ": " << e.what();
    }
  }
}

}  // namespace
}  // namespace wick::values_test

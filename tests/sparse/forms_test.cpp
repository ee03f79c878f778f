// What sparse tensors are: their parts, their text, files; indices that a program gets wrong.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/sparse_form.h"
#include "wick.h"

namespace wick::forms_test {
namespace {

Tensor run(const std::string& body, std::vector<IValue> arguments = {}) {
  std::string signature;
  for (size_t i = 0; i < arguments.size(); ++i) {
    signature += (i == 0 ? "a" : ", b") + std::string(": Tensor");
  }
  Program program = compile("def f(" + signature + ") -> Tensor:\n" + body);
  return program.call("f", std::move(arguments)).toTensor();
}

Tensor longs(std::initializer_list<int64_t> values, IntSpan sizes) {
  return Tensor::from(values, sizes);
}

TEST(SparseForms, PartsAndText) {
  const Tensor s =
      makeSparseCoo(longs({0, 0, 1, 2}, {2, 2}), Tensor::from({1.5f, -2.f}), {2, 3}, false);
  EXPECT_EQ(s.kind(), TensorKind::Sparse);
  EXPECT_EQ(s.numel(), 6);
  EXPECT_FALSE(sparseFormOf("", s).coalesced);
  EXPECT_EQ(formatTensor(s),
            "[ SparseCPUFloatType{}\nindices:\n 0  0\n 1  2\n[ CPULongType{2,2} ]\nvalues:\n"
            " 1.5000\n-2.0000\n[ CPUFloatType{2} ]\nsize:\n[2, 3]\n]");
  EXPECT_THROW(s.rawData(), RuntimeError);
  const Tensor one = makeSparseCoo(longs({4}, {1, 1}), Tensor::from({1.f}), {5}, false);
  EXPECT_TRUE(sparseFormOf("", one).coalesced);
}

TEST(SparseForms, WrongIndicesAreErrors) {
  const Tensor two = Tensor::from({1.f, 2.f});
  const auto coo = [&](const Tensor& indices, const Tensor& values, IntSpan sizes) {
    return makeSparseCoo(indices, values, sizes, false);
  };
  EXPECT_THROW(coo(longs({0, 2}, {1, 2}), two, {2}), RuntimeError);
  EXPECT_THROW(coo(longs({0, -1}, {1, 2}), two, {2}), RuntimeError);
  EXPECT_THROW(coo(longs({0, INT64_MAX}, {1, 2}), two, {INT64_MAX}), RuntimeError);
  EXPECT_THROW(coo(longs({0, 1}, {2}), two, {2}), RuntimeError);
  EXPECT_THROW(coo(longs({0}, {1, 1}), two, {2}), RuntimeError);
  EXPECT_THROW(coo(longs({0, 1}, {1, 2}), two, {2, 2}), RuntimeError);
  EXPECT_THROW(coo(two.unsqueeze(0), two, {2}), RuntimeError);
  const auto csr = [&](const Tensor& rows, const Tensor& columns) {
    return makeSparseCompressed(SparseLayout::Csr, rows, columns, two, {2, 2});
  };
  EXPECT_NO_THROW(csr(longs({0, 1, 2}, {3}), longs({1, 0}, {2})));
  EXPECT_THROW(csr(longs({1, 1, 2}, {3}), longs({1, 0}, {2})), RuntimeError);
  EXPECT_THROW(csr(longs({0, 3, 2}, {3}), longs({1, 0}, {2})), RuntimeError);
  EXPECT_THROW(csr(longs({0, -9, 2}, {3}), longs({1, 0}, {2})), RuntimeError);
  EXPECT_THROW(csr(longs({0, 1, 1}, {3}), longs({1, 0}, {2})), RuntimeError);
  EXPECT_THROW(csr(longs({0, 1}, {2}), longs({1, 0}, {2})), RuntimeError);
  EXPECT_THROW(csr(longs({0, 1, 2}, {3}), longs({1, 2}, {2})), RuntimeError);
  EXPECT_THROW(csr(longs({0, 2, 2}, {3}), longs({1, 0}, {2})), RuntimeError);
  EXPECT_THROW(csr(longs({0, 2, 2}, {3}), longs({1, 1}, {2})), RuntimeError);
  const Tensor blocks = Tensor::zeros({1, 0, 2}, DType::Float);
  EXPECT_THROW(
      makeSparseCompressed(SparseLayout::Bsr, longs({0, 1}, {2}), longs({0}, {1}), blocks, {2, 2}),
      RuntimeError);
}

// Indices may be written to after they were checked; their shapes are the tensor's own.
TEST(SparseForms, IndicesThatChangeLater) {
  const Tensor i = longs({0, 1}, {1, 2});
  EXPECT_THROW(run("    s = torch.sparse_coo_tensor(a, torch.ones(2), [2])\n"
                   "    a.add_(1000000)\n"
                   "    return s.to_dense()\n",
                   {i.clone()}),
               RuntimeError);
  EXPECT_THROW(run("    s = torch.sparse_coo_tensor(a, torch.ones(2), [2])\n"
                   "    s._indices().fill_(-7)\n"
                   "    return torch.sparse_coo_tensor(torch.stack([a[0], a[0]]), torch.ones(2), "
                   "[2, 2]) + s.unsqueeze(0)\n",
                   {i.clone()}),
               RuntimeError);
  EXPECT_THROW(run("    s = a.to_sparse_csr()\n"
                   "    s.crow_indices().fill_(1 << 40)\n"
                   "    return torch.mm(s, a)\n",
                   {Tensor::full({3, 3}, 1, DType::Float)}),
               RuntimeError);
  const Tensor dense =
      run("    s = torch.sparse_coo_tensor(a, torch.ones(2), [2])\n"
          "    s._indices().resize_([1, 1])\n"
          "    s._values().resize_([0])\n"
          "    return s.to_dense()\n",
          {i.clone()});
  EXPECT_EQ(dense.span<float>()[0] + dense.span<float>()[1], 2.f);
}

TEST(SparseForms, ValuesAreShared) {
  const Tensor dense =
      run("    v = torch.ones(2)\n"
          "    s = torch.sparse_coo_tensor(a, v, [2])\n"
          "    v.mul_(3)\n"
          "    s._values().add_(1)\n"
          "    return s.to_dense()\n",
          {longs({1, 0}, {1, 2})});
  EXPECT_EQ(dense.span<float>()[0], 4.f);
  EXPECT_EQ(dense.span<float>()[1], 4.f);
}

TEST(SparseForms, SizesTooLargeAreErrors) {
  for (const char* body : {
           "    return torch.sparse_coo_tensor(a, torch.ones(1), [1 << 60]).to_dense()\n",
           "    return torch.sparse_coo_tensor([1 << 40, 1 << 40])\n",
           "    return torch.zeros([1 << 62, 2], layout=torch.sparse_coo)\n",
           "    return torch.sparse_coo_tensor(a, torch.ones(1), [1 << 50]).unsqueeze(1)"
           ".to_sparse_csr()\n",
           "    s = torch.sparse_coo_tensor(torch.cat([a, a]), torch.ones(1), [1 << 50, 4])\n"
           "    return torch.mm(s, torch.ones(4, 4))\n",
       }) {
    EXPECT_THROW(run(body, {longs({0}, {1, 1})}), RuntimeError) << body;
  }
}

TEST(SparseForms, DenseDestinationsKeepTheirMemory) {
  const Tensor out =
      run("    y = torch.ones([2, 2])\n"
          "    row = y[0]\n"
          "    y.add_(a.to_sparse())\n"
          "    y.mul_(a.to_sparse())\n"
          "    out = torch.zeros([2, 2])\n"
          "    part = out[1]\n"
          "    torch.mm(a.to_sparse(), a, out=out)\n"
          "    return torch.stack([row, part])\n",
          {Tensor::from({1.f, 2.f, 0.f, 3.f}, {2, 2})});
  const auto v = out.span<float>();
  EXPECT_EQ(std::vector<float>(v.begin(), v.end()), (std::vector<float>{2, 6, 0, 9}));
}

TEST(SparseForms, LayoutsAreAsked) {
  Program program = compile(
      "def f(a: Tensor):\n"
      "    s = a.to_sparse()\n"
      "    c = a.to_sparse_csr()\n"
      "    return [s.layout == torch.sparse_coo, c.layout == torch.sparse_csr, s.is_sparse,\n"
      "            c.is_sparse_csr, not c.is_sparse, a.layout == torch.strided,\n"
      "            s.is_coalesced(), s.sparse_dim() == 2, s._nnz() == 3, s.numel() == 4]\n");
  for (int i = 0; i < 3; ++i) {
    const IValue answers = program.call("f", {Tensor::from({1.f, 2.f, 0.f, 3.f}, {2, 2})});
    for (const IValue& answer : answers.elements()) EXPECT_TRUE(answer.toBool());
  }
}

}  // namespace
}  // namespace wick::forms_test

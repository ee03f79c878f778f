// Sparse tensors in files that PyTorch 1.13 wrote (make_data.py), and in those that Wick writes.
#include <gtest/gtest.h>

#include "serialization/torch_save.h"
#include "wick.h"

namespace wick::files_test {
namespace {

const std::string kData = "tests/sparse/data/";

std::vector<float> elements(const Tensor& t) {
  const Tensor dense =
      compile("def main(x: Tensor) -> Tensor:\n    return x.to_dense().contiguous()\n")
          .call("main", {t})
          .toTensor();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

void check(const IValue& tensors) {
  const Tensor dense = tensors["dense"].tensor();
  const std::vector<float> wanted(dense.data<float>(), dense.data<float>() + dense.numel());
  EXPECT_EQ(elements(tensors["coo"].tensor()), wanted);
  EXPECT_EQ(elements(tensors["csr"].tensor()), wanted);
  std::vector<float> few(24);
  few[1] = 3, few[8] = 3;
  EXPECT_EQ(elements(tensors["uncoalesced"].tensor()), few);
}

TEST(SparseFilesTest, TensorsOfPyTorch) {
  check(loadValue(kData + "tensors.pt"));
}

TEST(SparseFilesTest, TensorsThatWickWrote) {
  const std::string path = testing::TempDir() + "/tensors.pt";
  saveValue(loadValue(kData + "tensors.pt"), path);
  check(loadValue(path));
}

TEST(SparseFilesTest, ModulesKeepThem) {
  const std::string path = testing::TempDir() + "/module.pt";
  load(kData + "module.pt").save(path);
  const Tensor one = Tensor::full({6, 1}, 1.0, DType::Float);
  const Tensor a = load(kData + "module.pt")({one}).tensor(), b = load(path)({one}).tensor();
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]);
}

}  // namespace
}  // namespace wick::files_test

#include "runtime/kernels/openblas.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/error.h"
#include "core/tensor.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/lapack.h"

namespace wick {
namespace {

bool isLoaded() {
  void* handle = dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (handle) dlclose(handle);
  return handle != nullptr;
}

size_t threadsOfProcess() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// One test, for a process loads the library once.
TEST(OpenBlas, WaitsUntilARoutineIsCalled) {
  EXPECT_FALSE(isLoaded());
  EXPECT_EQ(threadsOfProcess(), 1u);
  Tensor a = Tensor::zeros({1, 2, 2}, DType::Float), b = Tensor::zeros({1, 2, 2}, DType::Float);
  batchedProduct("bmm", a, b);
  EXPECT_FALSE(isLoaded());

  Tensor c = Tensor::zeros({1, 2, 2}, DType::Double);
  for (int64_t i = 0; i < 4; ++i) c.data<double>()[i] = static_cast<double>(i + 1);
  Tensor product = batchedProduct("bmm", c, c);
  EXPECT_TRUE(isLoaded());
  EXPECT_EQ(product.data<double>()[0], 7);
  EXPECT_EQ(product.data<double>()[3], 22);

  // [4 2; 2 5] = L L^T with L = [2 0; 1 2].
  double m[] = {4, 2, 2, 5};
  EXPECT_EQ(lapack::potrf('L', 2, m), 0);
  EXPECT_EQ(m[0], 2);
  EXPECT_EQ(m[1], 1);
  EXPECT_EQ(m[3], 2);
  EXPECT_THROW(openBlasFunction("no_such_routine"), RuntimeError);
}

}  // namespace
}  // namespace wick

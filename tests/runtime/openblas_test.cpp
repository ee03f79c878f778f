#include "runtime/kernels/openblas.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/error.h"
#include "core/tensor.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/lapack.h"

namespace wick::openblas_test {
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

// The library as it is on a processor that it does not know: with kernels of 2004.
void loadWithOldKernels() {
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr);
  auto* const forget = reinterpret_cast<void (*)()>(dlsym(library, "gotoblas_dynamic_quit"));
  auto* const choose = reinterpret_cast<void (*)()>(dlsym(library, "gotoblas_dynamic_init"));
  ASSERT_TRUE(forget && choose);
  setenv("OPENBLAS_CORETYPE", "Prescott", 1);
  forget();
  choose();
  unsetenv("OPENBLAS_CORETYPE");
}

// One test, for a process loads the library once.
TEST(OpenBlas, WaitsUntilARoutineIsCalled) {
  unsetenv("OPENBLAS_CORETYPE");  // a choice of the user would stay
  EXPECT_FALSE(isLoaded());
  EXPECT_EQ(threadsOfProcess(), 1u);
  Tensor a = Tensor::zeros({1, 2, 2}, DType::Float), b = Tensor::zeros({1, 2, 2}, DType::Float);
  batchedProduct("bmm", a, b);
  EXPECT_FALSE(isLoaded());

  loadWithOldKernels();
  Tensor c = Tensor::zeros({1, 2, 2}, DType::Double);
  for (int64_t i = 0; i < 4; ++i) c.data<double>()[i] = static_cast<double>(i + 1);
  Tensor product = batchedProduct("bmm", c, c);
  EXPECT_TRUE(isLoaded());
  EXPECT_EQ(product.data<double>()[0], 7);
  EXPECT_EQ(product.data<double>()[3], 22);

  // Engines need AVX2, and so do the kernels that are chosen then.
  auto* const name = reinterpret_cast<char* (*)()>(openBlasFunction("openblas_get_corename"));
  EXPECT_THAT(std::string(name()), testing::AnyOf("Haswell", "SkylakeX"));
  EXPECT_EQ(getenv("OPENBLAS_CORETYPE"), nullptr);

  // [4 2; 2 5] = L L^T with L = [2 0; 1 2].
  double m[] = {4, 2, 2, 5};
  EXPECT_EQ(Lapack<double>::potrf('L', 2, m), 0);
  EXPECT_EQ(m[0], 2);
  EXPECT_EQ(m[1], 1);
  EXPECT_EQ(m[3], 2);
  EXPECT_THROW(openBlasFunction("no_such_routine"), RuntimeError);
}

}  // namespace
}  // namespace wick::openblas_test

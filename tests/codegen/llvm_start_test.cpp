#include <gtest/gtest.h>
#include <llvm/Support/CommandLine.h>

#include "codegen/llvm/jit.h"
#include "codegen/llvm/vector_limit.h"
#include "core/error.h"

namespace wick::codegen::llvm_start_test {
namespace {

// Most of LLVM's static initializers register an option.
bool initializersRan() {
  return llvm::cl::getRegisteredOptions().count("inline-threshold") != 0;
}

// The only test of its program, for a process starts LLVM once.
TEST(Llvm, StartsWhenCodeIsFirstAskedFor) {
  EXPECT_FALSE(initializersRan());
  EXPECT_EQ(jitStatistics().compiled, 0u);
  EXPECT_FALSE(initializersRan());
  setenv("WICK_VECTOR_BITS", "64", 1);
  EXPECT_THROW(vectorBitsLimit(), RuntimeError);
  EXPECT_FALSE(initializersRan());
  setenv("WICK_VECTOR_BITS", "128", 1);
  EXPECT_EQ(vectorBits(), 128u);
  EXPECT_TRUE(initializersRan());
}

}  // namespace
}  // namespace wick::codegen::llvm_start_test

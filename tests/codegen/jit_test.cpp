#include "codegen/llvm/jit.h"

#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "codegen/llvm/object_cache.h"
#include "codegen/llvm/target.h"

namespace wick::codegen::jit_test {
namespace {

// int64_t f(int64_t x) { return x * factor; }
CodeRequest scaleBy(int64_t factor, std::string content = "") {
  if (content.empty()) content = "scale " + std::to_string(factor);
  auto emit = [factor](llvm::Module& module) {
    llvm::IRBuilder<> b(module.getContext());
    auto* type = llvm::FunctionType::get(b.getInt64Ty(), {b.getInt64Ty()}, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", f));
    b.CreateRet(b.CreateMul(f->getArg(0), b.getInt64(factor)));
  };
  return {"scale", std::move(content), emit};
}

// int64_t f(int64_t x) { return NAME(x); }
CodeRequest callOf(const std::string& name) {
  auto emit = [name](llvm::Module& module) {
    llvm::IRBuilder<> b(module.getContext());
    auto* type = llvm::FunctionType::get(b.getInt64Ty(), {b.getInt64Ty()}, false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", f));
    b.CreateRet(b.CreateCall(module.getOrInsertFunction(name, type), {f->getArg(0)}));
  };
  return {"call", "call " + name, emit};
}

using Function = int64_t(int64_t);

TEST(Jit, CompilesAndCalls) {
  auto code = compile(scaleBy(3));
  EXPECT_EQ(code->function<Function>("f")(14), 42);
}

TEST(Jit, EqualContentIsCompiledOnceWhileItLives) {
  auto first = compile(scaleBy(5));
  uint64_t shared = jitStatistics().shared;
  EXPECT_EQ(compile(scaleBy(5)), first);
  EXPECT_EQ(jitStatistics().shared, shared + 1);
  EXPECT_NE(compile(scaleBy(6)), first);
}

TEST(Jit, CodeMayBeReleasedAndMadeAgain) {
  for (int i = 0; i < 100; ++i) {
    auto code = compile(scaleBy(1000 + i % 3));
    EXPECT_EQ(code->function<Function>("f")(2), 2 * (1000 + i % 3));
  }
}

TEST(Jit, ThreadsCompileTheSameContentOnce) {
  uint64_t before = jitStatistics().compiled + jitStatistics().from_disk;
  std::vector<std::shared_ptr<const MachineCode>> codes(8);
  std::vector<std::thread> threads;
  for (auto& code : codes) threads.emplace_back([&code] { code = compile(scaleBy(77)); });
  for (auto& thread : threads) thread.join();
  for (auto& code : codes) EXPECT_EQ(code, codes[0]);
  EXPECT_EQ(jitStatistics().compiled + jitStatistics().from_disk, before + 1);
}

int64_t twice(int64_t x) {
  return 2 * x;
}

TEST(Jit, CallsDefinedSymbols) {
  defineSymbol("wick_test_twice", reinterpret_cast<const void*>(&twice));
  defineSymbol("wick_test_twice", reinterpret_cast<const void*>(&twice));
  EXPECT_EQ(compile(callOf("wick_test_twice"))->function<Function>("f")(21), 42);
  int other = 0;
  EXPECT_THROW(defineSymbol("wick_test_twice", &other), CodegenError);
}

TEST(Jit, CallsTheProcess) {
  EXPECT_EQ(compile(callOf("llabs"))->function<Function>("f")(-7), 7);
}

TEST(Jit, ReportsUnknownSymbols) {
  EXPECT_THROW(compile(callOf("wick_nobody_defined_this"))->find("f"), CodegenError);
  EXPECT_THROW(compile(scaleBy(3))->find("g"), CodegenError);
}

TEST(Jit, ReportsMalformedModules) {
  CodeRequest request = scaleBy(1, "malformed");
  request.emit = [](llvm::Module& module) {
    auto* type = llvm::FunctionType::get(llvm::Type::getInt64Ty(module.getContext()), false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
    llvm::BasicBlock::Create(module.getContext(), "no_terminator", f);
  };
  uint64_t failed = jitStatistics().failed;
  EXPECT_THROW(compile(request), CodegenError);
  EXPECT_EQ(jitStatistics().failed, failed + 1);
  // The next attempt is a new one.
  EXPECT_EQ(compile(scaleBy(9, "malformed"))->function<Function>("f")(1), 9);
}

TEST(Jit, LightOptimizationTidiesUp) {
  CodeRequest request = scaleBy(8, "scale 8 lightly");
  request.optimization = Optimization::Light;
  EXPECT_EQ(compile(request)->function<Function>("f")(5), 40);
  EXPECT_NE(optimizedLlvmText(request).find("shl i64"), std::string::npos);
}

TEST(Jit, TimesWhatItCompiles) {
  size_t before = jitStatistics().compile_times.size();
  auto code = compile(scaleBy(77));
  JitStatistics after = jitStatistics();
  ASSERT_EQ(after.compile_times.size(), before + 1);
  EXPECT_EQ(after.compile_times.size(), after.compiled);
  EXPECT_GT(after.compile_times.back(), 0);
}

TEST(Jit, ShowsItsStages) {
  EXPECT_NE(llvmText(scaleBy(8)).find("mul i64"), std::string::npos);
  EXPECT_NE(optimizedLlvmText(scaleBy(8)).find("shl i64"), std::string::npos);
  EXPECT_NE(assemblyText(scaleBy(8)).find("f:"), std::string::npos);
}

class ObjectCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "wick_objects_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(ObjectCacheTest, KeepsObjects) {
  ObjectCache cache(folder_);
  std::string key = ObjectCache::keyOf("content");
  EXPECT_FALSE(cache.load(key));
  cache.store(key, "machine code");
  EXPECT_EQ(cache.load(key), "machine code");
  EXPECT_EQ(ObjectCache(folder_).load(key), "machine code");
  EXPECT_NE(ObjectCache::keyOf("other content"), key);
}

TEST_F(ObjectCacheTest, IgnoresDamagedFiles) {
  ObjectCache cache(folder_);
  cache.store("key", "machine code");
  {
    std::fstream file(folder_ + "/key", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file << 'E';
  }
  EXPECT_FALSE(cache.load("key"));
  std::filesystem::resize_file(folder_ + "/key", 5);
  EXPECT_FALSE(cache.load("key"));
}

TEST_F(ObjectCacheTest, IgnoresFilesUnderAnotherName) {
  ObjectCache cache(folder_);
  cache.store("key", "machine code");
  std::filesystem::copy_file(folder_ + "/key", folder_ + "/other");
  EXPECT_FALSE(cache.load("other"));
  EXPECT_EQ(cache.load("key"), "machine code");
}

TEST_F(ObjectCacheTest, ReadsOnlyFilesAndNoneBeyondItsLimit) {
  ObjectCache cache(folder_, /*limit_bytes=*/1000);
  cache.store("large", std::string(2000, 'x'));
  EXPECT_FALSE(cache.load("large"));
  cache.store("key", "machine code");
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(cache.load("pipe"));  // which nobody ever writes to
  EXPECT_EQ(cache.load("key"), "machine code");
}

TEST_F(ObjectCacheTest, IgnoresFoldersThatOthersMayWrite) {
  ObjectCache cache(folder_);
  cache.store("key", "machine code");
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  EXPECT_FALSE(cache.load("key"));
  cache.store("other", "machine code");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/other"));
}

TEST_F(ObjectCacheTest, RemovesTheOldestBeyondItsLimit) {
  ObjectCache cache(folder_, /*limit_bytes=*/100000);
  for (int i = 0; i < 300; ++i) cache.store("key" + std::to_string(i), std::string(1000, 'x'));
  size_t files = std::distance(std::filesystem::directory_iterator(folder_), {});
  EXPECT_LE(files, 100 + 64);
  EXPECT_TRUE(cache.load("key299"));
}

TEST(Jit, WhatIsNoObjectIsRefused) {
  for (const std::string text : {"", "machine code",
                                 "\x7f"
                                 "ELF and nothing more"}) {
    try {
      functionsOf(text);
      FAIL() << text;
    } catch (const CodegenError& e) {
      EXPECT_TRUE(std::string_view(e.what()).starts_with("unreadable object: ")) << e.what();
    }
  }
}

TEST_F(ObjectCacheTest, WithoutAFolderKeepsNothing) {
  ObjectCache cache("");
  cache.store("key", "machine code");
  EXPECT_FALSE(cache.load("key"));
}

}  // namespace
}  // namespace wick::codegen::jit_test

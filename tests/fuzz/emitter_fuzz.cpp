// Whatever compiles must verify, survive the pipeline and lowering, print to text that parses, and
// run to an end or an error within its limits.
#include <chrono>
#include <cstdlib>

#include "core/tensor.h"
#include "frontend/compile.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "runtime/call.h"
#include "runtime/executor/graph_executor.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/programs.h"
#include "tests/fuzz/random_program.h"

namespace wick {
namespace {

// Arguments for a declared type; none for types that no caller could make here.
std::optional<IValue> argumentFor(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::Int:
      return IValue(int64_t{3});
    case TypeKind::Float:
      return IValue(0.5);
    case TypeKind::Bool:
      return IValue(true);
    case TypeKind::String:
      return IValue("text");
    case TypeKind::Tensor:
      return IValue(Tensor::zeros(DimVector{2, 3}, DType::Float));
    case TypeKind::Optional:
      return IValue();
    default:
      return std::nullopt;
  }
}

void run(GraphFunction& function, const std::shared_ptr<CompilationUnit>& unit) {
  std::vector<IValue> arguments;
  for (const Argument& argument : function.schema().arguments()) {
    std::optional<IValue> value = argumentFor(argument.type);
    if (!value) return;
    arguments.push_back(std::move(*value));
  }
  RunOptions options;
  options.owner = unit;
  options.max_steps = 2000;
  options.max_depth = 50;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  try {
    callFunction(function, std::move(arguments), {}, options).repr();
  } catch (const InternalError&) {
    throw;
  } catch (const Error&) {
  }
}

void compileAndRun(const std::string& program) {
  std::shared_ptr<CompilationUnit> unit = compileSource(program, "fuzz.py");
  // By index: running may compile further functions.
  for (size_t i = 0; i < unit->functions().size(); ++i) {
    GraphFunction& function = *unit->functions()[i];
    verify(*function.graph());
    const Code& code = GraphExecutor::of(function).code();
    verify(*code.graph());
    function.graph()->str();
  }
  for (size_t i = 0; i < unit->functions().size(); ++i) run(*unit->functions()[i], unit);
}

class EmitterFuzz : public testing::Test {
 protected:
  void SetUp() override { setAllocationLimit(size_t{64} << 20); }
  void TearDown() override { setAllocationLimit(0); }
};

// A program that a target left behind, given by WICK_FUZZ_FILE.
TEST_F(EmitterFuzz, Replay) {
  const char* path = std::getenv("WICK_FUZZ_FILE");
  if (path == nullptr) GTEST_SKIP() << "WICK_FUZZ_FILE names no file";
  std::ifstream file(path);
  std::string program((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(failureOf(program, compileAndRun), "");
}

TEST_F(EmitterFuzz, RandomPrograms) {
  fuzzGenerated(
      fuzzShare(2'000, 3), [](std::mt19937_64& random) { return RandomProgram(random).make(); },
      compileAndRun);
}

// Programs that compile, with one or a few words exchanged, dropped or repeated.
TEST_F(EmitterFuzz, ChangedWords) {
  fuzzGenerated(
      fuzzShare(2'000, 17),
      [](std::mt19937_64& random) { return changeWords(RandomProgram(random).make(), random); },
      compileAndRun);
}

TEST_F(EmitterFuzz, ChangedBytes) {
  std::vector<std::string> seeds = seedPrograms();
  seeds.insert(seeds.end(), compilingPrograms().begin(), compilingPrograms().end());
  fuzz(seeds, fuzzShare(2'000, 80), compileAndRun);
}

}  // namespace
}  // namespace wick

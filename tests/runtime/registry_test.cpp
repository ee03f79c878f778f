// Walks the whole registry: no record may have a gap, and schemas of PyTorch's operators must be
// PyTorch's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "ir/operator.h"

namespace wick {
namespace {

std::vector<const Operator*> allOperators() {
  std::vector<const Operator*> all;
  OperatorRegistry& registry = OperatorRegistry::instance();
  for (const std::string& name : registry.names()) {
    for (const Operator* op : registry.overloads(Symbol::fromQualString(name))) all.push_back(op);
  }
  return all;
}

TEST(Registry, EveryRecordIsComplete) {
  std::vector<const Operator*> all = allOperators();
  EXPECT_GT(all.size(), 300u);
  for (const Operator* op : all) {
    const FunctionSchema& s = op->schema();
    EXPECT_NE(op->record().kernel, nullptr) << s.str();
    EXPECT_EQ(parseSchema(s.str()).str(), s.str());
    for (const Argument& a : s.arguments()) EXPECT_NE(a.type, nullptr) << s.str();
    if (op->form() != Operator::Form::Base) {
      ASSERT_EQ(s.returns().size(), 1u) << s.str();
      EXPECT_EQ(s.returns()[0].type->kind(), TypeKind::Tensor) << s.str();
    }
    if (op->form() == Operator::Form::Inplace) {
      EXPECT_EQ(s.arguments()[0].type->kind(), TypeKind::Tensor) << s.str();
    }
    for (const Argument& a : s.arguments()) {
      bool draws = a.type->str() == "Generator?" || a.type->str() == "Generator";
      EXPECT_TRUE(!draws || op->has(kNondeterministic)) << s.str();
    }
    // Nothing to return and nothing written: such an operator can only be there for its effect.
    bool has_result = !s.returns().empty() || s.isMutable();
    EXPECT_TRUE(has_result || op->has(kSideEffects)) << s.str();
  }
}

TEST(Registry, SchemasArePyTorchs) {
  std::ifstream file("tests/runtime/torch_schemas.txt");
  ASSERT_TRUE(file) << "run through Bazel, which brings the list";
  std::unordered_map<std::string, std::string> known;  // name.overload -> declaration
  for (std::string line; std::getline(file, line);) {
    known.emplace(line.substr(0, line.find('(')), parseSchema(line).str());
  }
  size_t compared = 0;
  for (const Operator* op : allOperators()) {
    if (op->form() != Operator::Form::Base) continue;  // derived forms follow from the base
    std::string text = op->schema().str();
    auto it = known.find(text.substr(0, text.find('(')));
    if (it == known.end()) continue;
    EXPECT_EQ(text, it->second);
    ++compared;
  }
  EXPECT_GT(compared, 250u);
}

// Families that are out of scope: gradients' own operators, other devices, sparse, quantized and
// nested layouts, what only PyTorch's optimizer inserts into graphs, and its own tests.
bool isOutOfScope(const std::string& name) {
  constexpr const char* kParts[] = {
      "backward", "_grad",       "_dual",   "_fw_",      "Autograd", "cudnn",      "cuda",
      "Cuda",     "mkldnn",      "MKLDNN",  "miopen",    "mps",      "vulkan",     "xla",
      "nnpack",   "fbgemm",      "triton",  "flash",     "thnn",     "sparse",     "csr",
      "crow",     "ccol",        "indices", "_values",   "values_",  "coalesce",   "quant",
      "q_",       "qscheme",     "nested",  "jagged",    "padded",   "TensorExpr", "Fusion",
      "Fused",    "Guard",       "BailO",   "Graph",     "profile",  "Static",     "MMTree",
      "MMBatch",  "VarC",        "VarS",    "Chunk",     "Check",    "Python",     "rpc",
      "owner",    "local_value", "to_here", "batch_dim", "names",    "rename",     "align",
      "sobol",    "_test_",      "foobar",  "_amp_",     "adam",     "sym_",       "symeig",
      "_ncf"};
  return std::ranges::any_of(
      kParts, [&](const char* part) { return name.find(part) != std::string::npos; });
}

// PyTorch's list names these as operators; here nodes of these kinds are instructions.
const std::set<std::string> kInstructions = {
    "prim::Print",
    "prim::TupleIndex",
    "prim::TupleUnpack",
    "prim::Uninitialized",
    "prim::tolist",
    "prim::unchecked_cast",
    "prim::unchecked_unwrap_optional",
};
// Streams of CUDA, and what PyTorch's own executors insert.
const std::set<std::string> kMissing = {
    "aten::record_stream",
    "prim::BailoutTemplate",
    "prim::flatten_copy",
};

// A new operator that PyTorch has and Wick lacks may not join them unnoticed, nor one that is there
// stay on the list.
TEST(Registry, OperatorsThatAreMissing) {
  std::ifstream file("tests/runtime/torch_schemas.txt");
  ASSERT_TRUE(file);
  std::set<std::string> missing;
  for (std::string line; std::getline(file, line);) {
    const std::string name = line.substr(0, line.find_first_of(".("));
    if (isOutOfScope(name) || kInstructions.contains(name)) continue;
    if (OperatorRegistry::instance().overloads(Symbol::fromQualString(name)).empty()) {
      missing.insert(name);
    }
  }
  EXPECT_EQ(missing, kMissing);
}

}  // namespace
}  // namespace wick

// Walks the whole registry: no record may have a gap, and schemas of PyTorch's operators must be
// PyTorch's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "ir/operator.h"

namespace wick::registry_test {
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

// name.overload -> declaration, by PyTorch 1.13 and 2.11.
using Schemas = std::unordered_map<std::string, std::string>;
constexpr const char* kFirstList = "tests/runtime/torch_schemas.txt";
constexpr const char* kNewerList = "tests/runtime/torch_schemas_2_11.txt";

Schemas readSchemas(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << "run through Bazel, which brings the list";
  Schemas known;
  for (std::string line; std::getline(file, line);) {
    known.emplace(line.substr(0, line.find('(')), line);
  }
  return known;
}

// An operator that both versions have may be declared as either does.
TEST(Registry, SchemasArePyTorchs) {
  const Schemas first = readSchemas(kFirstList), newer = readSchemas(kNewerList);
  size_t compared = 0;
  for (const Operator* op : allOperators()) {
    if (op->form() != Operator::Form::Base) continue;  // derived forms follow from the base
    const std::string text = op->schema().str();
    const std::string name = text.substr(0, text.find('('));
    std::string expected;
    bool fits = false;
    for (const Schemas* list : {&first, &newer}) {
      const auto it = list->find(name);
      if (it == list->end() || fits) continue;
      expected = parseSchema(it->second).str();
      fits = text == expected;
    }
    if (expected.empty()) continue;
    EXPECT_EQ(text, expected);
    ++compared;
  }
  EXPECT_GT(compared, 250u);
}

// Why Wick lacks what PyTorch has: the first reason whose part occurs in the name.
struct Reason {
  const char* part;
  const char* reason;
};

// A name that is missing needs a reason; a reason that no name needs any more goes.
void expectReasons(const std::set<std::string>& missing, std::span<const Reason> reasons) {
  std::set<const char*> needed;
  for (const std::string& name : missing) {
    const auto found = std::ranges::find_if(
        reasons, [&](const Reason& r) { return name.find(r.part) != std::string::npos; });
    if (found == reasons.end()) {
      ADD_FAILURE() << name << " is missing without a reason";
      continue;
    }
    needed.insert(found->part);
    std::printf("%s: %s\n", name.c_str(), found->reason);
  }
  for (const Reason& r : reasons) {
    EXPECT_TRUE(needed.contains(r.part)) << "nothing that is missing needs the reason " << r.part;
  }
}

// Of PyTorch 1.13.
constexpr Reason kFirstReasons[] = {
    {"cudnn", "for NVIDIA's devices"},
    {"_torch_cuda_", "for NVIDIA's devices"},
    {"Cuda", "for NVIDIA's devices"},
    {"triton", "for NVIDIA's devices"},
    {"_flash_", "for NVIDIA's devices"},
    {"record_stream", "for NVIDIA's devices"},
    {"miopen", "for AMD's devices"},
    {"mps", "for Apple's devices"},
    {"backward", "gradients are scripts here (docs/gradients.md)"},
    {"get_gradients", "gradients are scripts here (docs/gradients.md)"},
    {"_dirichlet_grad", "gradients are scripts here (docs/gradients.md)"},
    {"_grad_sum_to_size", "gradients are scripts here (docs/gradients.md)"},
    {"Autograd", "gradients are scripts here (docs/gradients.md)"},
    {"_fw_", "forward-mode differentiation"},
    {"_dual", "forward-mode differentiation"},
    {"batch_dim", "vmap, which is no TorchScript"},
    {"mkldnn", "inserted by PyTorch's optimizer"},
    {"MKLDNN", "inserted by PyTorch's optimizer"},
    {"nnpack", "inserted by PyTorch's optimizer"},
    {"Fusion", "inserted by PyTorch's optimizer"},
    {"Fused", "inserted by PyTorch's optimizer"},
    {"Graph", "inserted by PyTorch's optimizer"},
    {"Guard", "inserted by PyTorch's optimizer"},
    {"Check", "inserted by PyTorch's optimizer"},
    {"Chunk", "inserted by PyTorch's optimizer"},
    {"MMTree", "inserted by PyTorch's optimizer"},
    {"MMBatch", "inserted by PyTorch's optimizer"},
    {"Static", "inserted by PyTorch's optimizer"},
    {"TensorExpr", "inserted by PyTorch's optimizer"},
    {"VarConcat", "inserted by PyTorch's optimizer"},
    {"VarStack", "inserted by PyTorch's optimizer"},
    {"profile", "inserted by PyTorch's optimizer"},
    {"BailOut", "inserted by PyTorch's optimizer"},
    {"BailoutTemplate", "inserted by PyTorch's optimizer"},
    {"flatten_copy", "inserted by PyTorch's optimizer"},
    {"_ncf_", "inserted by PyTorch's optimizer"},
    {"Python", "calls of the interpreter of Python"},
    {"fbgemm", "weights packed as integers before PyTorch 1.4"},
    {"quantized_", "cells over weights packed as integers before PyTorch 1.4"},
    {"_thnn_", "fused cells for NVIDIA's devices"},
    {"fq_helper", "for PyTorch's compiler, which allows no writes"},
    {"_fused_adam", "steps of PyTorch's eager optimizers"},
    {"_sobol_engine", "parts of a class of Python"},
    {"_symeig_helper", "the part of symeig, which is there"},
    {"_test_", "PyTorch's own tests"},
    {"_foobar", "PyTorch's own tests"},
    {"align_", "named dimensions, which TorchScript refuses"},
    {"names", "named dimensions, which TorchScript refuses"},
    {"rename", "named dimensions, which TorchScript refuses"},
    {"owner", "remote calls"},
    {"local_value", "remote calls"},
    {"to_here", "remote calls"},
    {"rpc", "remote calls"},
    {"sym_", "for PyTorch's tracer of symbolic sizes"},
};
bool isOutOfScope(const std::string& name) {
  return std::ranges::any_of(
      kFirstReasons, [&](const Reason& r) { return name.find(r.part) != std::string::npos; });
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
// A new operator that PyTorch has and Wick lacks may not join them unnoticed, nor one that is there
// stay on the list.
TEST(Registry, OperatorsThatAreMissing) {
  std::ifstream file("tests/runtime/torch_schemas.txt");
  ASSERT_TRUE(file);
  std::set<std::string> missing;
  for (std::string line; std::getline(file, line);) {
    const std::string name = line.substr(0, line.find_first_of(".("));
    if (kInstructions.contains(name)) continue;
    if (OperatorRegistry::instance().overloads(Symbol::fromQualString(name)).empty()) {
      missing.insert(name);
    }
  }
  expectReasons(missing, kFirstReasons);
}

// Of PyTorch 2.11.
constexpr Reason kReasons[] = {
    {"backward", "gradients are scripts here (docs/gradients.md)"},
    {"cudnn", "for NVIDIA's devices"},
    {"_cslt_", "for NVIDIA's devices"},
    {"_efficient_attention", "for NVIDIA's devices"},
    {"_flash_attention", "for NVIDIA's devices"},
    {"_mem_eff_", "for NVIDIA's devices"},
    {"_fused_sdp_choice", "chooses among the kernels of NVIDIA's devices"},
    {"_scaled_grouped_mm", "for NVIDIA's devices"},
    {"_scaled_mm", "eight-bit floats, which Wick has not"},
    {"_mixed_dtypes_linear", "for NVIDIA's devices"},
    {"semi_structured", "for NVIDIA's devices"},
    {"miopen", "for AMD's devices"},
    {"mps", "for Apple's devices"},
    {"xla", "for other devices"},
    {"is_maia", "for other devices"},
    {"is_mtia", "for other devices"},
    {"oneDNN", "inserted by PyTorch's optimizer"},
    {"mkldnn", "inserted by PyTorch's optimizer"},
    {"scaled_dot_product", "the parts of scaled_dot_product_attention, which is there"},
    {"int4pack", "weights packed for language models by PyTorch's own tools"},
    {"int8pack", "weights packed for language models by PyTorch's own tools"},
    {"_dyn_quant", "weights packed for language models by PyTorch's own tools"},
    {"_wrapped_", "what PyTorch's compiler makes of quantized layers"},
    {"_int_mm", "what PyTorch's compiler makes of quantized layers"},
    {"quantized", "what PyTorch's compiler makes of quantized layers"},
    {"jagged", "jagged tensors, which are no TorchScript"},
    {"nested", "jagged tensors, which are no TorchScript"},
    {"sparse", "inside of PyTorch's own sparse operators"},
    {"spsolve", "inside of PyTorch's own sparse operators"},
    {"constrain_range", "for PyTorch's tracer of symbolic sizes"},
    {"sym_", "for PyTorch's tracer of symbolic sizes"},
    {"dep_token", "for PyTorch's tracer of symbolic sizes"},
    {"_functional", "for PyTorch's compiler, which allows no writes"},
    {"_test_", "PyTorch's own tests"},
    {"_fused_ad", "steps of PyTorch's eager optimizers"},
    {"_fused_sgd", "steps of PyTorch's eager optimizers"},
    {"_foreach_", "steps of PyTorch's eager optimizers"},
    {"awaitable", "an experiment that PyTorch does not document"},
    {"Generator", "generators as values of a script"},
    {"seed", "generators as values of a script"},
    {"owner", "remote calls"},
    {"_lazy_clone", "copies on write, inside of PyTorch"},
    {"_print", "what PyTorch's compiler prints with"},
    {"_get_cpu_capability", "what PyTorch was built for"},
    {"empty_permuted", "what PyTorch's compiler makes of other operators"},
    {"_reshape_copy", "what PyTorch's compiler makes of other operators"},
    {"_prelu_kernel", "the part of prelu, which is there"},
    {"_linalg_eigvals", "the part of linalg_eigvals, which is there"},
    {"powsum", "norms over several devices"},
    {"slice_inverse", "for PyTorch's compiler, which allows no writes"},
    {"hash_tensor", "of dtype uint64, which Wick has not"},
    {"_is_all_true", "checks of PyTorch's tracer"},
    {"_is_any_true", "checks of PyTorch's tracer"},
};

// A new name that PyTorch 2.11 has and Wick lacks needs a reason here; a reason that no name needs
// any more goes.
TEST(Registry, OperatorsOfPyTorch2ThatAreMissing) {
  const Schemas first = readSchemas(kFirstList);
  std::set<std::string> before, missing;
  for (const auto& [name, schema] : first) before.insert(name.substr(0, name.find('.')));
  for (const auto& [overload, schema] : readSchemas(kNewerList)) {
    const std::string name = overload.substr(0, overload.find('.'));
    if (before.contains(name) || kInstructions.contains(name)) continue;
    if (OperatorRegistry::instance().overloads(Symbol::fromQualString(name)).empty()) {
      missing.insert(name);
    }
  }
  expectReasons(missing, kReasons);
}

// Overloads that came later to operators that are there.
TEST(Registry, PrintsOverloadsOfPyTorch2ThatAreMissing) {
  OperatorRegistry& registry = OperatorRegistry::instance();
  size_t count = 0;
  for (const auto& [full, schema] : readSchemas(kNewerList)) {
    const size_t dot = full.find('.');
    const std::string name = full.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
    const Symbol symbol = Symbol::fromQualString(name);
    if (registry.overloads(symbol).empty() || registry.find(symbol, overload)) continue;
    if (overload.ends_with("out") || isOutOfScope(name)) continue;
    std::printf("%s\n", schema.c_str());
    ++count;
  }
  EXPECT_LT(count, 200u);
}

}  // namespace
}  // namespace wick::registry_test

#include "codegen/llvm/target.h"

#include <fmt/format.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>

#include "codegen/llvm/vector_limit.h"

// The static initializers of LLVM's files, see third_party/llvm.BUILD; none when LLVM was linked in
// another way, where they run by themselves.
extern "C" {
using WickLlvmInitializer = void (*)();
extern WickLlvmInitializer __start_wick_llvm_init[] __attribute__((weak, visibility("hidden")));
extern WickLlvmInitializer __stop_wick_llvm_init[] __attribute__((weak, visibility("hidden")));
}

namespace wick::codegen {

namespace {

struct Host {
  std::string triple;
  std::string cpu;
  std::string features;
  std::string description;
  const llvm::Target* target;
  unsigned vector_bits;
};

// What processors with registers of 512 bits have beyond those of 256.
bool isWide(llvm::StringRef feature) {
  return feature.starts_with("avx512") || feature.starts_with("avx10") ||
         feature.starts_with("amx") || feature == "evex512";
}

Host describeHost() {
  for (auto* i = __start_wick_llvm_init; i != __stop_wick_llvm_init; ++i) (*i)();
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::InitializeNativeTargetAsmParser();
  Host host;
  host.triple = llvm::sys::getProcessTriple();
  host.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
  auto available = llvm::sys::getHostCPUFeatures();
  const unsigned limit = vectorBitsLimit();
  for (auto& feature : available) {
    if (limit < 512 && isWide(feature.getKey())) feature.second = false;
    features.push_back((feature.getValue() ? "+" : "-") + feature.getKey().str());
  }
  // The map's order is arbitrary, but the text is part of cache keys.
  std::sort(features.begin(), features.end());
  host.features = fmt::format("{}", fmt::join(features, ","));
  host.description = fmt::format("{} {} {} {}", host.triple, host.cpu, host.features, limit);
  std::string error;
  host.target = llvm::TargetRegistry::lookupTarget(host.triple, error);
  if (!host.target)
    throw CodegenError(fmt::format("no code generator for {}: {}", host.triple, error));
  bool wide = available.lookup("avx512f") && available.lookup("avx512vl") &&
              available.lookup("avx512dq") && available.lookup("avx512bw");
  host.vector_bits = std::min(limit, wide ? 512u : available.lookup("avx2") ? 256u : 128u);
  return host;
}

const Host& host() {
  // Never destroyed: a thread may compile while the process ends.
  static const Host& described = *new Host(describeHost());
  return described;
}

// A target machine carries state of the compilation, so each compilation makes its own.
std::unique_ptr<llvm::TargetMachine> makeMachine() {
  const Host& h = host();
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  auto machine = std::unique_ptr<llvm::TargetMachine>(h.target->createTargetMachine(
      h.triple, h.cpu, h.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      llvm::CodeGenOptLevel::Default, /*JIT=*/true));
  if (!machine) throw CodegenError(fmt::format("no target machine for {}", h.description));
  return machine;
}

// What Optimization::Light means. Half of -O3's time goes to loops that it vectorizes and unrolls,
// and then to the machine code of these.
// Without more said, instcombine ends the process when one round was not enough.
constexpr const char* kLightPasses =
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
    "gvn,instcombine<no-verify-fixpoint>,simplifycfg,adce)";

std::string emit(llvm::Module& module, llvm::CodeGenFileType kind) {
  auto machine = makeMachine();
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, kind)) {
    throw CodegenError("LLVM cannot write files of this kind");
  }
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

const std::string& hostDescription() {
  return host().description;
}

unsigned hostVectorBits() {
  return host().vector_bits;
}

void prepareForHost(llvm::Module& module) {
  module.setTargetTriple(host().triple);
  module.setDataLayout(makeMachine()->createDataLayout());
}

void optimizeForHost(llvm::Module& module, Optimization optimization) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) {
    throw CodegenError(
        fmt::format("malformed module {}: {}", module.getName().str(), stream.str()));
  }
  std::string width = std::to_string(host().vector_bits);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", host().cpu);
    function.addFnAttr("target-features", host().features);
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("frame-pointer", "none");
  }
  auto machine = makeMachine();
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  llvm::PassBuilder builder(machine.get(), tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (optimization == Optimization::Full) {
    passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3);
  } else if (auto error = builder.parsePassPipeline(passes, kLightPasses)) {
    throw CodegenError(llvm::toString(std::move(error)));
  }
  passes.run(module, modules);
}

std::string emitObject(llvm::Module& module) {
  return emit(module, llvm::CodeGenFileType::ObjectFile);
}

std::string emitAssembly(llvm::Module& module) {
  return emit(module, llvm::CodeGenFileType::AssemblyFile);
}

std::vector<CodeSymbol> functionsOf(std::string_view object) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()), "object");
  auto file = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!file) throw CodegenError("unreadable object: " + llvm::toString(file.takeError()));
  std::vector<CodeSymbol> found;
  for (const llvm::object::ELFSymbolRef symbol : (*file)->symbols()) {
    auto type = symbol.getType();
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    bool defined = flags && !(*flags & llvm::object::SymbolRef::SF_Undefined);
    if (type && *type == llvm::object::SymbolRef::ST_Function && defined && name) {
      found.push_back({name->str(), symbol.getSize()});
    }
    if (!type) llvm::consumeError(type.takeError());
    if (!flags) llvm::consumeError(flags.takeError());
    if (!name) llvm::consumeError(name.takeError());
  }
  return found;
}

}  // namespace wick::codegen

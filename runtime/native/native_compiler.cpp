#include "runtime/native/native_compiler.h"

#include <mutex>

#include "codegen/llvm/jit.h"
#include "core/log.h"
#include "runtime/compile_queue.h"
#include "runtime/interpreter/scalar_semantics.h"
#include "runtime/jit_mode.h"
#include "runtime/native/translator.h"

namespace wick::native {
namespace {

// Part of every cache key: raise it when translation or the functions that it calls change.
constexpr int kTranslationVersion = 2;
constexpr uint64_t kThreshold = 20000;
constexpr size_t kMaxInstructions = 10000;
constexpr size_t kMaxEntries = 256;

double moduloOfFloats(double a, double b) {
  return scalar::modulo(a, b);
}

void defineSymbols() {
  auto define = [](const char* name, auto* function) {
    codegen::defineSymbol(name, reinterpret_cast<const void*>(function));
  };
  define(kRefuelSymbol, &nativeRefuel);
  define(kExecuteSymbol, &nativeExecute);
  define(kCallOperatorSymbol, &nativeCallOperator);
  define(kGuardsHoldSymbol, &nativeGuardsHold);
  define(kModuloSymbol, &moduloOfFloats);
}

std::string symbolOf(const Code& code) {
  std::string symbol = "wick_native_code_";
  for (char c : code.name()) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    symbol += plain ? c : '_';
  }
  return symbol;
}

// All that the translation of a Code depends on.
std::string contentOf(const Code& code, const std::string& symbol) {
  std::string content = fmt::format("native {} {} {}\n{} {} {}\n", kTranslationVersion, symbol,
                                    ObjectLayout::get().str(), code.numInputs(),
                                    code.numObjectRegisters(), code.numRegisters());
  for (const Value* input : code.graph()->inputs()) {
    content += fmt::format("{} ", static_cast<int>(input->type()->kind()));
  }
  auto out = std::back_inserter(content);
  for (const Instruction& i : code.instructions()) {
    fmt::format_to(out, "\n{} {} {} {} {}", opCodeName(i.op), i.extra, i.a, i.b, i.c);
  }
  content += '\n';
  for (uint32_t operand : code.operands()) fmt::format_to(out, "{} ", operand);
  content += '\n';
  for (const OperatorSite& site : code.operatorSites()) {
    fmt::format_to(out, "{}.{} ", site.op->schema().name(), site.op->schema().overload());
  }
  content += '\n';
  for (const IValue& constant : code.constants()) {
    fmt::format_to(out, "{}:{} ", static_cast<int>(constant.tag()),
                   constant.isCounted() ? 0 : constant.rawInt());
  }
  return content;
}

codegen::CodeRequest requestFor(const Code& code, const CodeAnalysis& analysis) {
  codegen::CodeRequest request;
  request.name = symbolOf(code);
  request.content = contentOf(code, request.name);
  request.emit = [&code, &analysis, symbol = request.name](llvm::Module& module) {
    Translator(code, analysis, module, symbol).run();
  };
  return request;
}

class Engine : public NativeCompiler {
 public:
  static Engine& instance() {
    // Never destroyed: programs may still run while the process ends.
    static Engine& engine = *new Engine;
    return engine;
  }

  void request(const Code& code) override;
  uint64_t heatThreshold() const override { return jitThreshold().value_or(kThreshold); }
  NativeStatistics statistics() {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

 private:
  void compile(const Code& code);
  bool wouldGain(const CodeAnalysis& analysis) const {
    return heatThreshold() == 0 || analysis.numInline() >= analysis.numOther();
  }
  void count(uint64_t NativeStatistics::*what) {
    std::lock_guard lock(mutex_);
    ++(statistics_.*what);
  }

  std::mutex mutex_;
  NativeStatistics statistics_;
};

void Engine::compile(const Code& code) {
  try {
    WICK_CHECK(code.instructions().size() <= kMaxInstructions,
               "{}: too large for machine code: {} instructions", code.name(),
               code.instructions().size());
    CodeAnalysis analysis(code);
    if (!wouldGain(analysis)) return count(&NativeStatistics::declined);
    WICK_CHECK(analysis.entries().size() <= kMaxEntries,
               "{}: too large for machine code: {} entries", code.name(),
               analysis.entries().size());
    defineSymbols();
    codegen::CodeRequest request = requestFor(code, analysis);
    auto memory = codegen::compile(request);
    auto native = std::make_unique<NativeCode>();
    native->function = memory->function<NativeFunction>(request.name);
    native->entries.assign(code.instructions().size(), kNoEntry);
    for (size_t i = 0; i < analysis.entries().size(); ++i) {
      uint32_t pc = analysis.entries()[i];
      bool reachable = analysis.blocks()[analysis.blockOf(pc)].reachable;
      if (reachable) native->entries[pc] = static_cast<uint32_t>(i);
    }
    native->memory = std::move(memory);
    code.setNative(std::move(native));
    count(&NativeStatistics::compiled);
  } catch (const std::exception& error) {
    GRAPH_DEBUG("{} stays in the interpreter: {}", code.name(), error.what());
    count(&NativeStatistics::failed);
  }
}

void Engine::request(const Code& code) {
  if (jitMode() == JitMode::Off) return;
  submitCompile([this, shared = code.shared_from_this()] { compile(*shared); });
}

const bool registered = [] {
  setNativeCompiler(&Engine::instance());
  return true;
}();

}  // namespace

NativeStatistics nativeStatistics() {
  return Engine::instance().statistics();
}

void finishBackgroundCompilation() {
  waitForCompiles();
}

std::string llvmText(const Code& code) {
  CodeAnalysis analysis(code);
  return codegen::llvmText(requestFor(code, analysis));
}

std::string assemblyText(const Code& code) {
  CodeAnalysis analysis(code);
  return codegen::assemblyText(requestFor(code, analysis));
}

}  // namespace wick::native

#include "runtime/cuda/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/llvm/object_cache.h"
#include "core/error.h"
#include "runtime/cuda/library.h"

namespace wick::cuda {

namespace {

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

struct ProgramObject;
using Program = ProgramObject*;

struct Nvrtc {
  int (*version)(int*, int*);
  int (*create)(Program*, const char* source, const char* name, int headers,
                const char* const* header_sources, const char* const* header_names);
  int (*compile)(Program, int options, const char* const* option);
  int (*cubinSize)(Program, size_t*);
  int (*cubin)(Program, char*);
  int (*ptxSize)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*logSize)(Program, size_t*);
  int (*log)(Program, char*);
  int (*destroy)(Program*);
  const char* (*errorText)(int);
};

void findAll(const Library& library, Nvrtc& f) {
  library.find("nvrtcVersion", f.version);
  library.find("nvrtcCreateProgram", f.create);
  library.find("nvrtcCompileProgram", f.compile);
  library.find("nvrtcGetCUBINSize", f.cubinSize);
  library.find("nvrtcGetCUBIN", f.cubin);
  library.find("nvrtcGetPTXSize", f.ptxSize);
  library.find("nvrtcGetPTX", f.ptx);
  library.find("nvrtcGetProgramLogSize", f.logSize);
  library.find("nvrtcGetProgramLog", f.log);
  library.find("nvrtcDestroyProgram", f.destroy);
  library.find("nvrtcGetErrorString", f.errorText);
}

const LibraryFunctions<Nvrtc>& library() {
  static const auto& found = *new LibraryFunctions<Nvrtc>(kNames, findAll);
  return found;
}
const Nvrtc& nvrtc() {
  return library().get();
}

std::atomic<uint64_t> compiled{0}, from_disk{0}, microseconds{0};

void checkCompiler(int result, const char* what) {
  WICK_CHECK(result == 0, "CUDA: {}: {}", what, nvrtc().errorText(result));
}

// The first lines of a log.
std::string beginningOf(std::string log) {
  constexpr size_t kMostLines = 12, kMostBytes = 2000;
  log.resize(std::min(log.size(), kMostBytes));
  size_t end = 0;
  for (size_t lines = 0; lines < kMostLines && end != std::string::npos; ++lines) {
    end = log.find('\n', end == 0 ? 0 : end + 1);
  }
  if (end != std::string::npos) log.resize(end);
  while (!log.empty() && log.back() == '\n') log.pop_back();
  return log;
}

// A compiled text, and what the compiler has to say about it.
class Compilation {
 public:
  Compilation(const std::string& text, int major, int minor, bool tells_resources) {
    checkCompiler(nvrtc_.create(&program_, text.c_str(), "kernel.cu", 0, nullptr, nullptr),
                  "making a program");
    const std::string arch = fmt::format("--gpu-architecture=sm_{}{}", major, minor);
    // Products and sums stay apart, so that results are those of the CPU.
    std::vector<const char*> options = {
        arch.c_str(),         "--std=c++17",
        "--fmad=false",       "--prec-div=true",
        "--prec-sqrt=true",   "--ftz=false",
        "--disable-warnings", "--device-as-default-execution-space"};
    if (tells_resources) options.push_back("--ptxas-options=--verbose");
    const int result = nvrtc_.compile(program_, static_cast<int>(options.size()), options.data());
    if (result == 0) return;
    const std::string said = log();
    nvrtc_.destroy(&program_);
    throwRuntimeError("CUDA: a kernel does not compile: {}\n{}", nvrtc_.errorText(result),
                      beginningOf(said));
  }
  ~Compilation() { nvrtc_.destroy(&program_); }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  std::string cubin() const { return part(nvrtc_.cubinSize, nvrtc_.cubin); }
  std::string ptx() const { return withoutEnd(part(nvrtc_.ptxSize, nvrtc_.ptx)); }
  std::string log() const { return withoutEnd(part(nvrtc_.logSize, nvrtc_.log)); }

 private:
  std::string part(int (*size_of)(Program, size_t*), int (*get)(Program, char*)) const {
    size_t size = 0;
    checkCompiler(size_of(program_, &size), "asking for machine code");
    std::string text(size, '\0');
    if (size > 0) checkCompiler(get(program_, text.data()), "asking for machine code");
    return text;
  }
  // Texts come with a null at the end.
  static std::string withoutEnd(std::string text) {
    while (!text.empty() && text.back() == '\0') text.pop_back();
    return text;
  }

  const Nvrtc& nvrtc_ = nvrtc();
  Program program_ = nullptr;
};

}  // namespace

std::string compilerVersion() {
  int major = 0, minor = 0;
  checkCompiler(nvrtc().version(&major, &minor), "asking for the version");
  return fmt::format("{}.{}", major, minor);
}
bool hasCompiler() {
  return library().works();
}

namespace {

// `make` takes what is wanted, told by `kind`, from the compilation, where the disk cache does not have it.
std::string cached(const char* kind, const std::string& text, int major, int minor,
                   std::string (Compilation::*make)() const) {
  static const std::string& version = *new std::string(compilerVersion());
  const codegen::ObjectCache& cache = codegen::ObjectCache::ofUser();
  const std::string key = codegen::ObjectCache::keyOf(
      fmt::format("{} {} sm_{}{}\n{}", kind, version, major, minor, text));
  if (std::optional<std::string> kept = cache.load(key)) {
    from_disk.fetch_add(1, std::memory_order_relaxed);
    return *std::move(kept);
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::string code = (Compilation(text, major, minor, false).*make)();
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  microseconds.fetch_add(static_cast<uint64_t>(took.count()), std::memory_order_relaxed);
  compiled.fetch_add(1, std::memory_order_relaxed);
  cache.store(key, code);
  return code;
}

}  // namespace

std::string compileText(const std::string& text, int major, int minor) {
  return cached("cuda", text, major, minor, &Compilation::cubin);
}
std::string compileToPtx(const std::string& text, int major, int minor) {
  return cached("ptx", text, major, minor, &Compilation::ptx);
}

KernelListing listText(const std::string& text, int major, int minor) {
  const Compilation made(text, major, minor, true);
  return {made.ptx(), made.cubin(), made.log()};
}

CompileStatistics compileStatistics() {
  return {compiled.load(), from_disk.load(), static_cast<double>(microseconds.load()) * 1e-6};
}

}  // namespace wick::cuda

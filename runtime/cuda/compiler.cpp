#include "runtime/cuda/compiler.h"

#include <fmt/format.h>

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
  int (*logSize)(Program, size_t*);
  int (*log)(Program, char*);
  int (*destroy)(Program*);
  const char* (*errorText)(int);
};

void findAll(const Library& library, Nvrtc& f) {
  const auto find = [&]<class F>(F& function, const char* name) {
    function = reinterpret_cast<F>(library.find(name));
  };
  find(f.version, "nvrtcVersion");
  find(f.create, "nvrtcCreateProgram");
  find(f.compile, "nvrtcCompileProgram");
  find(f.cubinSize, "nvrtcGetCUBINSize");
  find(f.cubin, "nvrtcGetCUBIN");
  find(f.logSize, "nvrtcGetProgramLogSize");
  find(f.log, "nvrtcGetProgramLog");
  find(f.destroy, "nvrtcDestroyProgram");
  find(f.errorText, "nvrtcGetErrorString");
}

const LibraryFunctions<Nvrtc>& library() {
  static const auto& found = *new LibraryFunctions<Nvrtc>(kNames, findAll);
  return found;
}
const Nvrtc& nvrtc() {
  return library().get();
}

std::atomic<uint64_t> compiled{0}, from_disk{0}, microseconds{0};

void check(int result, const char* what) {
  WICK_CHECK(result == 0, "CUDA: {}: {}", what, nvrtc().errorText(result));
}

std::string compile(const std::string& text, int major, int minor) {
  const Nvrtc& n = nvrtc();
  Program program = nullptr;
  check(n.create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr), "making a program");
  struct Destroyed {
    const Nvrtc& n;
    Program& program;
    ~Destroyed() { n.destroy(&program); }
  } destroyed{n, program};
  const std::string arch = fmt::format("--gpu-architecture=sm_{}{}", major, minor);
  // Products and sums stay apart, so that results are those of the CPU.
  const char* const options[] = {arch.c_str(),         "--std=c++17",
                                 "--fmad=false",       "--prec-div=true",
                                 "--prec-sqrt=true",   "--ftz=false",
                                 "--disable-warnings", "--device-as-default-execution-space"};
  const int result = n.compile(program, static_cast<int>(std::size(options)), options);
  if (result != 0) {
    size_t size = 0;
    std::string log;
    if (n.logSize(program, &size) == 0 && size > 0) {
      log.resize(size);
      n.log(program, log.data());
    }
    throwRuntimeError("CUDA: a kernel does not compile: {}\n{}", n.errorText(result), log);
  }
  size_t size = 0;
  check(n.cubinSize(program, &size), "asking for machine code");
  std::string cubin(size, '\0');
  check(n.cubin(program, cubin.data()), "asking for machine code");
  return cubin;
}

}  // namespace

std::string compilerVersion() {
  int major = 0, minor = 0;
  check(nvrtc().version(&major, &minor), "asking for the version");
  return fmt::format("{}.{}", major, minor);
}
bool hasCompiler() {
  return library().works();
}

std::string compileText(const std::string& text, int major, int minor) {
  static const std::string& version = *new std::string(compilerVersion());
  const codegen::ObjectCache& cache = codegen::ObjectCache::ofUser();
  const std::string key =
      codegen::ObjectCache::keyOf(fmt::format("cuda {} sm_{}{}\n{}", version, major, minor, text));
  if (std::optional<std::string> kept = cache.load(key)) {
    from_disk.fetch_add(1, std::memory_order_relaxed);
    return *std::move(kept);
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::string cubin = compile(text, major, minor);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  microseconds.fetch_add(static_cast<uint64_t>(took.count()), std::memory_order_relaxed);
  compiled.fetch_add(1, std::memory_order_relaxed);
  cache.store(key, cubin);
  return cubin;
}

CompileStatistics compileStatistics() {
  return {compiled.load(), from_disk.load(), static_cast<double>(microseconds.load()) * 1e-6};
}

}  // namespace wick::cuda

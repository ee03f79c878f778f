// Machine code for LLVM modules: the only place that talks to LLVM's ORC JIT.
//
// A client describes code by a text that determines it completely and a function that builds its
// LLVM module. The text is the key of the caches: code that this process has, or that an earlier
// process left on disk, is not built again.
//
// On disk an object is a file of the folder WICK_CACHE_DIR (else $XDG_CACHE_HOME/wick, else
// ~/.cache/wick), readable by its owner only; WICK_CACHE_DIR set to nothing turns the disk cache
// off. The key covers the text, the version of this engine and of LLVM, and the CPU with its
// features; a file whose key or checksum differs is ignored.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace llvm {
class Module;
}

namespace wick::codegen {

// Why no machine code could be made. Callers run the program in another way and count it.
class CodegenError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// How much of LLVM's optimization a module wants.
enum class Optimization {
  Full,   // -O3
  Light,  // the module has its vectors and its unrolled loops already: it is only tidied up
};

struct CodeRequest {
  // Names the code for debuggers and profilers; letters, digits and '_'.
  std::string name;
  // Determines what `emit` builds.
  std::string content;
  // Fills an empty module whose triple and data layout are set. Symbols that it declares and does
  // not define are looked up among those of defineSymbol() and of the process.
  std::function<void(llvm::Module&)> emit;
  // The same for all requests with this content.
  Optimization optimization = Optimization::Full;
};

// Loaded code. Its functions may be called as long as it lives.
class MachineCode {
 public:
  virtual ~MachineCode() = default;
  // The address of a function with external linkage; CodegenError when there is none.
  virtual void* find(std::string_view symbol) const = 0;
  template <class Signature>
  Signature* function(std::string_view symbol) const {
    return reinterpret_cast<Signature*>(find(symbol));
  }
};

struct JitStatistics {
  uint64_t compiled = 0;   // modules that went through LLVM
  uint64_t from_disk = 0;  // modules that the disk cache had
  uint64_t shared = 0;     // requests for code that was loaded already
  uint64_t failed = 0;     // requests that ended with CodegenError
  // Milliseconds that each compiled module took: building, optimizing, emitting and loading it.
  std::vector<double> compile_times;
};

// Loads the code of a request, compiling it unless a cache has it. Thread-safe; several threads
// compile at once, two threads that ask for the same content compile it once.
std::shared_ptr<const MachineCode> compile(const CodeRequest& request);

// What compile() would do, as text: the module before and after LLVM's optimization, and assembly.
std::string llvmText(const CodeRequest& request);
std::string optimizedLlvmText(const CodeRequest& request);
std::string assemblyText(const CodeRequest& request);

// Lets all code compiled afterwards call `address` by a name. Defining a name twice must give the
// same address.
void defineSymbol(std::string_view name, const void* address);

// Bits of the widest vector registers that are worth using on this CPU and that vectorBitsLimit()
// allows: 128, 256 or 512.
unsigned vectorBits();

JitStatistics jitStatistics();

}  // namespace wick::codegen

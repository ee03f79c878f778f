// CUDA C to machine code: NVRTC, opened when it is first needed, in front of it the disk cache.
#pragma once

#include <string>

namespace wick::cuda {

// A cubin for the compute capability. Throws RuntimeError with the compiler's log when the text does
// not compile, and when the compiler is absent, old or broken. Thread-safe.
std::string compileText(const std::string& text, int major, int minor);

// The virtual machine's code for this compute capability and later ones, which drivers compile. As compileText().
std::string compileToPtx(const std::string& text, int major, int minor);

// What the compiler makes of a text, for people who read it. Throws as compileText() does; nothing is
// kept.
struct KernelListing {
  std::string ptx;        // the virtual machine's code
  std::string cubin;      // the device's, for a disassembler
  std::string resources;  // registers, shared memory and spills, as the assembler tells them
};
KernelListing listText(const std::string& text, int major, int minor);

// Whether there is a compiler.
bool hasCompiler();
// "13.0"; throws as compileText() does.
std::string compilerVersion();

struct CompileStatistics {
  uint64_t compiled = 0;
  uint64_t from_disk = 0;
  double seconds = 0;  // of the compiler
};
CompileStatistics compileStatistics();

}  // namespace wick::cuda

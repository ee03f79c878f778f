// Libraries that are opened when they are first needed, so that the engine runs without them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/error_types.h"

namespace wick::cuda {

// A shared library, or why there is none. Never closed.
class Library {
 public:
  // Tries the file names one after the other, each by itself, in the folders that the environment
  // variables CUDA_HOME and CUDA_PATH name, and in /usr/local/cuda.
  explicit Library(std::span<const char* const> names);

  bool isOpen() const { return handle_ != nullptr; }
  // What the loader said, when it is not open.
  const std::string& error() const { return error_; }
  // Throws RuntimeError that names the library when it is absent or lacks the function.
  void* find(const char* function) const;
  template <class F>
  void find(const char* function, F*& found) const {
    found = reinterpret_cast<F*>(find(function));
  }

 private:
  void* handle_ = nullptr;
  std::string name_;
  std::string error_;
};

// What lists of a library's functions, _(member, name in the library, parameters), are unfolded with: the
// fields of a record, and finding them all. Each returns an int.
#define WICK_FUNCTION_FIELD(member, name, parameters) int(*member) parameters = nullptr;
#define WICK_FIND_FUNCTION(member, name, parameters) library.find(name, functions.member);

// A record of a library's functions, which `fill` finds once. Use makes one that is never destroyed.
template <class Functions>
class LibraryFunctions {
 public:
  LibraryFunctions(std::span<const char* const> names,
                   void (*fill)(const Library& library, Functions& functions)) {
    try {
      fill(Library(names), functions_);
    } catch (const RuntimeError& e) {
      error_ = e;
    }
  }
  // Throws, each time, what was wrong with the library.
  const Functions& get() const {
    if (error_) throw *error_;
    return functions_;
  }
  bool works() const { return !error_; }

 private:
  Functions functions_{};
  std::optional<RuntimeError> error_;
};

}  // namespace wick::cuda

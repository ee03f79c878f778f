// The errors of a program's functions and classes, one after the other.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "frontend/parser.h"

namespace wick {

class CompileErrors {
 public:
  // For compilations that fail: gives up after kMaxReportedErrors.
  CompileErrors() = default;
  // For tools that go on in spite of errors: gathers all of them.
  static CompileErrors unlimited() {
    CompileErrors out;
    out.most_ = out.most_tries_ = static_cast<size_t>(-1);
    return out;
  }

  // Runs `work` and keeps the CompileError that it throws, unless it was thrown before.
  template <class F>
  void collect(F&& work) {
    try {
      work();
    } catch (const CompileError& error) {
      add(error);
    }
  }
  bool enough() const { return all_.size() >= most_ || tries_ >= most_tries_; }
  const std::vector<CompileError>& all() const { return all_; }
  // Throws the first (of one text, that which stands first) with the others appended.
  void throwIfAny() const;

  // Keeps the error unless it was thrown before.
  void add(const CompileError& error);

 private:
  size_t most_ = kMaxReportedErrors;
  // Functions that fail because of what they call fail with the same error, and are compiled in
  // vain each time: for this many, at most.
  size_t most_tries_ = 100;
  size_t tries_ = 0;
  std::set<std::string> seen_;
  std::vector<CompileError> all_;
};

}  // namespace wick

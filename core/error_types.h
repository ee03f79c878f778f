// The exceptions that Wick throws. A user's mistake is a CompileError, RuntimeError, LoadError or
// UsageError; an InternalError alone means a bug of ours. what() is the whole message, ready to
// print.
//
// The destructors are defined in error.cpp, and the classes' type information with them: parts of
// the engine are built without any, and the linker must not take theirs.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "core/source_range.h"

#pragma GCC visibility push(default)

namespace wick {

class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  ~Error() override;
  const char* what() const noexcept override { return message_.c_str(); }
  const std::string& message() const { return message_; }

 protected:
  std::string message_;
};

// The program text is not valid TorchScript. what() is the message followed by range.highlight().
class CompileError : public Error {
 public:
  CompileError(SourceRange range, const std::string& message);
  ~CompileError() override;
  const SourceRange& range() const { return range_; }
  // The message without the source excerpt.
  const std::string& brief() const { return brief_; }
  // Adds another error of the same program to what(); range() and brief() stay the first error's.
  void append(const CompileError& other);

 private:
  SourceRange range_;
  std::string brief_;
};

// A running program raised, or an operator refused its arguments. The interpreter adds one frame of
// the script's call stack for each call that the error leaves.
class RuntimeError : public Error {
 public:
  struct Frame {
    std::string function;
    SourceRange range;
  };

  // `class_name` is what a script's `raise` named, e.g. "ValueError"; operators raise
  // "RuntimeError".
  explicit RuntimeError(std::string message, std::string class_name = "RuntimeError");
  ~RuntimeError() override;
  void addFrame(Frame frame);
  const std::vector<Frame>& frames() const { return frames_; }
  const std::string& className() const { return class_name_; }
  const std::string& brief() const { return brief_; }

 private:
  void rebuild();
  std::string brief_;
  std::string class_name_;
  std::vector<Frame> frames_;
};

// A file could not be read as what it claims to be. Messages name the file and the record within
// it.
class LoadError : public Error {
 public:
  using Error::Error;
  ~LoadError() override;
};

// The embedding API or the command line was called wrongly (no such method, wrong argument count).
class UsageError : public Error {
 public:
  using Error::Error;
  ~UsageError() override;
};

// An invariant of Wick itself is broken.
class InternalError : public Error {
 public:
  InternalError(const char* file, int line, const std::string& message);
  ~InternalError() override;
};

}  // namespace wick

#pragma GCC visibility pop

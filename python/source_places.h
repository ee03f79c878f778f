// Where in Python's files a call of the engine stands.
#pragma once

#include <memory>
#include <unordered_map>

#include "core/source_range.h"
#include "python/object.h"

namespace wick::python {

// Remembers what it has found. Needs the GIL throughout, also to end.
class SourcePlaces {
 public:
  SourcePlaces() = default;
  SourcePlaces(const SourcePlaces&) = delete;
  ~SourcePlaces();

  // The expression that the innermost frame outside of this package computes, or its line where the
  // columns are not known. No place where nothing of Python runs.
  SourceRange ofCaller();

 private:
  struct CodeInfo {
    bool own = false;  // stands in this package
    std::shared_ptr<const Source> source;
    std::unordered_map<int, SourceRange> ranges;  // by offset of the instruction
  };
  CodeInfo& infoOf(PyCodeObject* code);
  static SourceRange rangeIn(CodeInfo& info, PyCodeObject* code, int offset);

  std::unordered_map<PyCodeObject*, CodeInfo> codes_;  // owns references
};

}  // namespace wick::python

// Objects of ours that code objects own.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "capture/bytecode/object.h"

namespace wick::capture {

// The base of all that a code object may own. The code object's death, setCodeData() and
// resetCodes() end it; while a callback of the frame hook runs for the code, it is kept until the
// callback returned. The GIL guards all of this.
//
// A cycle (code, its data, an object that refers to the code) is invisible to Python's garbage
// collector, so such data live until resetCodes().
class CodeData {
 public:
  CodeData() = default;
  CodeData(const CodeData&) = delete;
  CodeData& operator=(const CodeData&) = delete;
  // May run Python code; an exception that is set stays set.
  virtual ~CodeData() = default;

 private:
  friend class CodeSlot;
  int owners_ = 1;
};

// The place for data that a code object has from the first setCodeData() or setSkipped() until it
// dies.
class CodeSlot {
 public:
  // Returns null if the code has none.
  static CodeSlot* find(PyCodeObject* code);
  CodeData* data() const { return data_; }
  bool skipped() const { return skipped_; }

  // For the frame hook.
  static CodeData* keep(CodeData* data) {
    if (data) ++data->owners_;
    return data;
  }
  static void release(CodeData* data);

 private:
  friend class CodeRegistry;
  CodeData* data_ = nullptr;
  PyCodeObject* code_ = nullptr;  // borrowed
  CodeSlot* previous_ = nullptr;  // neighbours in the list of all
  CodeSlot* next_ = nullptr;
  bool skipped_ = false;
};

// Prepares the interpreter for data of code objects; called by all that set them. Throws
// PythonError in a subinterpreter, and when other extensions have used all 255 indices up.
void prepareCodeData();

// Returns null if there are none.
CodeData* codeData(PyCodeObject* code);
// Replaces the data, and gives the old ones up afterwards; null removes them. Throws PythonError.
void setCodeData(PyCodeObject* code, std::unique_ptr<CodeData> data);

// Says whether the frame hook leaves the code alone for good. Throws PythonError.
void setSkipped(PyCodeObject* code, bool skipped);

// Calls a function for each living code object that has data or is skipped, in no certain order. It
// may do anything, also to the data: code objects are collected first, and are kept until the end.
void forEachCode(const std::function<void(PyCodeObject*, CodeData*)>& visit);

// Removes the data of all code objects, and lets none be skipped.
void resetCodes();

// Returns how many code objects have data.
size_t countCodeData();

}  // namespace wick::capture

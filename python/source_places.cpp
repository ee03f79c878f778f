#include "python/source_places.h"

#include <frameobject.h>

#include <algorithm>
#include <string>

namespace wick::python {
namespace {

const std::string& packageFolder() {
  static const std::string folder = [] {
    const Owned package = checked(PyImport_ImportModule("wick"));
    const Owned file = checked(PyObject_GetAttrString(package.get(), "__file__"));
    const char* text = PyUnicode_AsUTF8(file.get());
    const std::string path = text ? text : "";
    return path.substr(0, path.rfind('/') + 1);
  }();
  return folder;
}

// The file's text as Python knows it; empty when it has none.
std::string textOf(PyObject* file_name) {
  const Owned cache = checked(PyImport_ImportModule("linecache"));
  const Owned lines = checked(PyObject_CallMethod(cache.get(), "getlines", "O", file_name));
  const Owned separator = checked(PyUnicode_FromString(""));
  const Owned joined = checked(PyUnicode_Join(separator.get(), lines.get()));
  const char* text = PyUnicode_AsUTF8(joined.get());
  if (!text) {
    PyErr_Clear();
    return "";
  }
  return text;
}

// Where a line that is counted from 1 begins; the text's end when it has fewer.
size_t lineStart(std::string_view text, int line) {
  size_t at = 0;
  for (int i = 1; i < line; ++i) {
    const size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return text.size();
    at = end + 1;
  }
  return at;
}

}  // namespace

SourcePlaces::~SourcePlaces() {
  for (auto& [code, info] : codes_) Py_DECREF(code);
}

SourcePlaces::CodeInfo& SourcePlaces::infoOf(PyCodeObject* code) {
  const auto [at, added] = codes_.try_emplace(code);
  if (!added) return at->second;
  Py_INCREF(code);
  const char* name = PyUnicode_AsUTF8(code->co_filename);
  if (!name) {
    PyErr_Clear();
    name = "<unknown>";
  }
  const std::string file = name;
  at->second.own = file.starts_with(packageFolder());
  if (!at->second.own) {
    for (const auto& [other, info] : codes_) {
      if (info.source && info.source->name() == file) at->second.source = info.source;
    }
    if (!at->second.source) {
      at->second.source = std::make_shared<const Source>(textOf(code->co_filename), file);
    }
  }
  return at->second;
}

SourceRange SourcePlaces::rangeIn(CodeInfo& info, PyCodeObject* code, int offset) {
  const auto [at, added] = info.ranges.try_emplace(offset);
  if (!added) return at->second;
  int line = 0, column = 0, end_line = 0, end_column = 0;
  if (!PyCode_Addr2Location(code, offset, &line, &column, &end_line, &end_column)) return {};
  const std::string_view text = info.source->text();
  const size_t first = lineStart(text, line);
  size_t start = first, end = std::min(text.find('\n', first), text.size());
  if (column >= 0 && end_line >= line && end_column >= 0) {
    start = std::min(first + static_cast<size_t>(column), text.size());
    end = std::min(lineStart(text, end_line) + static_cast<size_t>(end_column), text.size());
  }
  at->second = SourceRange(info.source, start, std::max(start, end));
  return at->second;
}

SourceRange SourcePlaces::ofCaller() {
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  SourceRange found;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    CodeInfo& info = infoOf(code);
    Py_DECREF(code);  // infoOf holds one
    if (!info.own) {
      found = rangeIn(info, code, PyFrame_GetLasti(frame));
      break;
    }
    PyFrameObject* outer = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = outer;
  }
  Py_XDECREF(frame);
  return found;
}

}  // namespace wick::python

#include "capture/compiled_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "capture/attempt.h"
#include "capture/bytecode/code_data.h"
#include "capture/bytecode/frame_hook.h"
#include "capture/guards/numpy.h"
#include "capture/resume/continuation.h"
#include "core/log.h"

namespace wick::capture {
namespace {

constexpr int64_t kDefaultLimit = 8;
int64_t limit = kDefaultLimit;

Counters counted;

thread_local bool capturing = false;
PyObject* capturing_question = nullptr;

// The entries of one region for a code object.
struct RegionEntries {
  std::weak_ptr<Region> region;
  std::vector<std::unique_ptr<Entry>> entries;
  SizeHistory history;
  bool full = false;       // the limit was reached, and said
  bool capturing = false;  // a thread captures a frame of the code
};

class CompiledCode : public CodeData {
 public:
  RegionEntries& of(const std::shared_ptr<Region>& region) {
    for (const auto& each : all_) {
      if (each->region.lock() == region) return *each;
    }
    const auto dead = std::ranges::stable_partition(
        all_, [](const auto& each) { return !each->region.expired(); });
    // Their end may run Python code, and other threads that come here: all must be in order before.
    const std::vector<std::unique_ptr<RegionEntries>> given_up(
        std::make_move_iterator(dead.begin()), std::make_move_iterator(dead.end()));
    all_.erase(dead.begin(), dead.end());
    all_.push_back(std::make_unique<RegionEntries>());
    RegionEntries& made = *all_.back();
    made.region = region;
    return made;
  }
  const std::vector<std::unique_ptr<RegionEntries>>& all() const { return all_; }
  bool disabled = false;
  bool disables_callees = false;

 private:
  std::vector<std::unique_ptr<RegionEntries>> all_;
};

CompiledCode& compiledCode(PyCodeObject* code) {
  if (CodeData* known = codeData(code)) return static_cast<CompiledCode&>(*known);
  auto made = std::make_unique<CompiledCode>();
  CompiledCode& result = *made;
  setCodeData(code, std::move(made));
  return result;
}

bool isStrict() {
  static const bool strict = [] {
    const char* const text = std::getenv("WICK_CAPTURE");
    return text && std::string_view(text) == "strict";
  }();
  return strict;
}

void warn(const std::string& message) {
  if (PyErr_WarnEx(PyExc_RuntimeWarning, message.c_str(), 1) < 0) throw PythonError();
}

std::string nameOf(PyCodeObject* code) {
  const char* const name = PyUnicode_AsUTF8(code->co_qualname);
  const char* const file = PyUnicode_AsUTF8(code->co_filename);
  if (!name || !file) PyErr_Clear();
  return fmt::format("{} ({}:{})", name ? name : "?", file ? file : "?", code->co_firstlineno);
}

// Returns the bytecode of a continuation as text; empty for null.
std::string instructionsOf(const Object& code) {
  if (!code) return "";
  const PauseHook pause;
  const Object dis = Object::own(PyImport_ImportModule("dis"));
  const Object all =
      dis ? Object::own(PyObject_CallMethod(dis.get(), "Bytecode", "O", code.get())) : Object();
  const Object shown = all ? Object::own(PyObject_CallMethod(all.get(), "dis", nullptr)) : Object();
  const char* const text = shown ? PyUnicode_AsUTF8(shown.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? fmt::format("  continues with\n{}", text) : "";
}

// Writes the entry to the log under the name of the folder: WICK_LOG=capture.
void logEntry(PyCodeObject* code, const Entry& entry) {
  if (!detail::logging.load(std::memory_order_relaxed) ||
      !detail::isLogged("capture", LogLevel::Dump)) {
    return;
  }
  detail::writeLog(
      __FILE__, __LINE__, LogLevel::Dump,
      fmt::format("{}\n{}{}", nameOf(code), entry.text(), instructionsOf(entry.continuation)));
}

class CapturingScope {
 public:
  CapturingScope() : before_(std::exchange(capturing, true)) {}
  ~CapturingScope() { capturing = before_; }

 private:
  const bool before_;
};

// An error in capture itself: the function runs plainly, and says so once.
void reportInternal(const std::string& message, PyCodeObject* code) {
  if (isStrict()) {
    PyErr_Format(PyExc_SystemError, "wick.compile: internal error in %s: %s", nameOf(code).c_str(),
                 message.c_str());
    throw PythonError();
  }
  setSkipped(code, true);
  warn(fmt::format("wick.compile: internal error in {}, which runs as plain Python from now on: {}",
                   nameOf(code), message));
}

void raiseBreak(const Entry& entry) {
  PyErr_Format(PyExc_RuntimeError, "wick.compile(fullgraph=True): the graph breaks at %s:%d: %s",
               entry.break_file.c_str(), entry.break_line, entry.break_reason.c_str());
  throw PythonError();
}

class FrameRun {
 public:
  FrameRun(const std::shared_ptr<Region>& region, FrameView frame)
      : region_(region), world_(*region->world), frame_(frame), roots_(rootsOf(frame)) {}

  // `data` are those of the frame's code; null the first time.
  std::optional<PyObject*> run(CodeData* data) {
    PyCodeObject* const code = frame_.code();
    if (!data && (isSkippedFile(code) || isBreak(code))) {
      setSkipped(code, true);
      return std::nullopt;
    }
    CompiledCode& compiled = data ? static_cast<CompiledCode&>(*data) : compiledCode(code);
    if (compiled.disables_callees) return callAgain().leak();
    if (compiled.disabled || code->co_flags & CO_GENERATOR) return std::nullopt;
    RegionEntries& all = compiled.of(region_);
    std::vector<Object> registers;
    int num_wrong = 0;
    for (size_t i = 0; i < all.entries.size(); ++i) {
      if (all.entries[i]->isOftenWrong()) {
        // The last one comes first.
        if (num_wrong++ == 0) all.history.hints = all.entries[i]->graph->actualSizes();
        continue;
      }
      if (!all.entries[i]->matches(roots_, registers)) continue;
      if (!fitsSizes(*all.entries[i], registers)) continue;
      // The last one that was used comes first.
      if (i > 0)
        std::rotate(all.entries.begin(), all.entries.begin() + static_cast<ptrdiff_t>(i),
                    all.entries.begin() + static_cast<ptrdiff_t>(i) + 1);
      return use(*all.entries[0], registers);
    }
    constexpr int kMostWrong = 3;
    all.history.guesses = !region_->backend && num_wrong < kMostWrong;
    return capture(all, code);
  }

 private:
  // Returns whether an entry that matches may run with the open sizes of the call.
  bool fitsSizes(Entry& entry, const std::vector<Object>& registers) const {
    if (!entry.checks_sizes) return true;
    std::vector<int64_t> sizes = entry.guards.openSizes(registers.data());
    if (entry.checked_sizes.count(sizes) != 0) return true;
    const PauseHook pause;
    const CapturingScope scope;
    if (!isSameForSizes(world_, frame_, entry, sizes)) return false;
    constexpr size_t kMostChecked = 10'000;
    if (entry.checked_sizes.size() >= kMostChecked) entry.checked_sizes.clear();
    entry.checked_sizes.insert(std::move(sizes));
    return true;
  }

  static bool isBreak(PyCodeObject* code) {
    const ContinuationInfo* const info = Continuations::find(code);
    return info && info->kind == ContinuationInfo::Kind::kBreak;
  }

  // Files whose functions are never captured on their own: parts of Python and of numpy.
  static bool isSkippedFile(PyCodeObject* code) {
    const char* const file = PyUnicode_AsUTF8(code->co_filename);
    if (!file) {
      PyErr_Clear();
      return true;
    }
    const std::string_view name = file;
    static const std::string library = [] {
      const Object os = Object::own(PyImport_ImportModule("os"));
      const Object path = os ? Object::own(PyObject_GetAttrString(os.get(), "__file__")) : Object();
      const char* const text = path ? PyUnicode_AsUTF8(path.get()) : nullptr;
      if (!text) PyErr_Clear();
      const std::string all = text ? text : "";
      return all.substr(0, all.rfind('/') + 1);
    }();
    // The functions that users call in place of their own ones.
    if (name.ends_with("/wick/_compiled.py")) return true;
    if (name.starts_with("<frozen ") || isFileOfNumpy(name)) return true;
    if (library.empty() || !name.starts_with(library)) return false;
    const std::string_view rest = name.substr(library.size());
    return !rest.starts_with("site-packages/") && !rest.starts_with("dist-packages/");
  }

  std::optional<PyObject*> use(Entry& entry, std::vector<Object>& registers) {
    ++entry.hits;
    return entry.run(frame_, registers);
  }

  std::optional<PyObject*> capture(RegionEntries& all, PyCodeObject* code) {
    if (all.capturing || all.full) return std::nullopt;
    const bool own = region_->max_entries > 0;
    const int64_t most = own ? region_->max_entries : limit;
    if (static_cast<int64_t>(all.entries.size()) >= most) {
      all.full = true;
      warn(fmt::format(
          "wick.compile: {} has {} entries, the limit ({}); calls that none of them fits run as "
          "plain Python",
          nameOf(code), most, own ? "option max_entries" : "wick.compiler.cache_size_limit"));
      return std::nullopt;
    }
    std::unique_ptr<Entry> made;
    std::string problem;
    all.capturing = true;
    try {
      const PauseHook pause;
      const CapturingScope scope;
      made = captureFrame(world_, frame_, region_->open_sizes, all.history);
    } catch (const Error& error) {
      problem = error.what();
    } catch (...) {
      all.capturing = false;
      throw;
    }
    all.capturing = false;
    if (!made) {
      reportInternal(problem, code);
      return std::nullopt;
    }
    if (made->graph) {
      ++counted.graphs;
      counted.operators += made->graph->numOperators();
    }
    counted.plain += made->plain;
    counted.breaks += !made->plain && made->value < 0 && !made->raises;
    logEntry(code, *made);
    if (region_->observer) {
      const PauseHook pause;
      region_->observer(code, *made);
    }
    if (region_->full_graph && !made->raises && (made->plain || made->value < 0)) raiseBreak(*made);
    std::vector<Object> registers;
    if (!made->matches(roots_, registers)) {
      reportInternal(
          fmt::format("a new entry does not fit its own call: {}", made->guards.whyNot(roots_)),
          code);
      return std::nullopt;
    }
    if (made->checks_sizes) {
      made->checked_sizes.insert(made->guards.openSizes(registers.data()));
    }
    if (made->graph && region_->backend) {
      const std::vector<Object> examples = made->tensorsFrom(registers);
      const PauseHook pause;
      made->graph = region_->backend(made->graph, examples);
    }
    all.entries.insert(all.entries.begin(), std::move(made));
    return use(*all.entries[0], registers);
  }

  // Calls the frame's function with its arguments, without the hook.
  Object callAgain() const {
    PyCodeObject* const code = frame_.code();
    const int positional = code->co_argcount;
    int next = positional + code->co_kwonlyargcount;
    std::vector<PyObject*> given(frame_.slots(), frame_.slots() + positional);
    if (code->co_flags & CO_VARARGS) {
      PyObject* const more = frame_.slot(next++);
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(more); ++i) {
        given.push_back(PyTuple_GET_ITEM(more, i));
      }
    }
    const Object names = Object::checked(PyList_New(0));
    const auto add = [&](PyObject* name, PyObject* value) {
      if (PyList_Append(names.get(), name) < 0) throw PythonError();
      given.push_back(value);
    };
    const Object own = Object::checked(PyCode_GetVarnames(code));
    for (int i = positional; i < positional + code->co_kwonlyargcount; ++i) {
      add(PyTuple_GET_ITEM(own.get(), i), frame_.slot(i));
    }
    if (code->co_flags & CO_VARKEYWORDS) {
      PyObject *name = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(frame_.slot(next), &at, &name, &value);) add(name, value);
    }
    return callPlainly(reinterpret_cast<PyObject*>(frame_.function()), given,
                       Object::checked(PyList_AsTuple(names.get())).get());
  }

  const std::shared_ptr<Region>& region_;
  const World& world_;
  const FrameView frame_;
  const FrameRoots roots_;
};

std::optional<PyObject*> onFrame(void* context, FrameView frame, CodeData* data) {
  try {
    return FrameRun(*static_cast<std::shared_ptr<Region>*>(context), frame).run(data);
  } catch (const PythonError&) {
    return nullptr;
  }
}

}  // namespace

Object callCaptured(const std::shared_ptr<Region>& region, PyObject* function,
                    const std::vector<PyObject*>& arguments, PyObject* names) {
  std::shared_ptr<Region> own = region;
  const HookScope scope(onFrame, &own);
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  return Object::checked(
      PyObject_Vectorcall(function, arguments.data(), arguments.size() - named, names));
}

Object callPlainly(PyObject* function, const std::vector<PyObject*>& arguments, PyObject* names) {
  const PauseHook pause;
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  return Object::checked(
      PyObject_Vectorcall(function, arguments.data(), arguments.size() - named, names));
}

void disableCode(PyCodeObject* code, bool callees) {
  prepareCodeData();
  CompiledCode& compiled = compiledCode(code);
  compiled.disabled = true;
  compiled.disables_callees |= callees;
}

bool isDisabled(PyCodeObject* code) {
  const CodeData* const known = codeData(code);
  return known && static_cast<const CompiledCode*>(known)->disabled;
}

void resetCaptures() {
  prepareCodeData();
  std::vector<std::pair<Object, bool>> disabled;
  forEachCode([&](PyCodeObject* code, CodeData* data) {
    auto* const compiled = static_cast<CompiledCode*>(data);
    if (compiled && compiled->disabled) {
      disabled.emplace_back(Object::share(reinterpret_cast<PyObject*>(code)),
                            compiled->disables_callees);
    }
  });
  resetCodes();
  for (const auto& [code, callees] : disabled) {
    disableCode(reinterpret_cast<PyCodeObject*>(code.get()), callees);
  }
}

int64_t cacheSizeLimit() {
  return limit;
}

void setCacheSizeLimit(int64_t value) {
  limit = value;
}

const Counters& counters() {
  return counted;
}

bool isCapturing() {
  return capturing;
}

void setCapturingQuestion(PyObject* function) {
  capturing_question = Py_NewRef(function);
}

bool isCapturingQuestion(PyObject* function) {
  return function == capturing_question;
}

}  // namespace wick::capture

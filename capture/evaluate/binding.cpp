// Arguments of calls become parameters, and wrong ones TypeErrors.
#include <fmt/format.h>

#include <algorithm>

#include "capture/evaluate/capture.h"
#include "capture/evaluate/frame.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

const char* ending(size_t count) {
  return count == 1 ? "" : "s";
}

// Returns the names as a sentence has them: 'a', 'b', and 'c'.
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    const bool last = i + 1 == names.size();
    if (i > 0) text += names.size() == 2 ? " and " : last ? ", and " : ", ";
    text += fmt::format("'{}'", names[i]);
  }
  return text;
}

// Sets the slots of a frame to arguments, as calls of functions do.
class Binding {
 public:
  Binding(EvalFrame& frame, const Arguments& given)
      : frame_(frame),
        capture_(frame.capture),
        code_(*frame.code),
        given_(given),
        positional_(code_.argument_count),
        named_(positional_ + code_.keyword_only_count) {}

  void run() {
    const bool stars = (code_.flags & CO_VARARGS) != 0;
    const bool double_stars = (code_.flags & CO_VARKEYWORDS) != 0;
    const int count = static_cast<int>(given_.positional.size());
    for (int i = 0; i < std::min(count, positional_); ++i) {
      slot(i) = given_.positional[static_cast<size_t>(i)];
    }
    if (stars) {
      std::vector<Variable*> rest;
      if (count > positional_) {
        rest.assign(given_.positional.begin() + positional_, given_.positional.end());
      }
      slot(named_) = capture_.make<TupleVariable>(std::move(rest), &PyTuple_Type);
    }
    DictVariable* more = nullptr;
    if (double_stars) {
      more = capture_.make<DictVariable>(&PyDict_Type);
      slot(named_ + (stars ? 1 : 0)) = more;
    }
    bindKeywords(more);
    if (count > positional_ && !stars) tooMany();
    bindDefaults();
  }

 private:
  Variable*& slot(int index) { return frame_.slots[static_cast<size_t>(index)]; }

  std::string nameOf(int index) const {
    return PyUnicode_AsUTF8(code_.slots[static_cast<size_t>(index)].name.get());
  }

  [[noreturn]] void fail(const std::string& text) {
    capture_.raise(PyExc_TypeError,
                   fmt::format("{}() {}", frame_.function->nameForErrors(capture_), text));
  }

  void bindKeywords(DictVariable* more) {
    for (const auto& [name, value] : given_.keywords) {
      int found = -1;
      for (int i = code_.positional_only_count; i < named_ && found < 0; ++i) {
        if (PyUnicode_Compare(code_.slots[static_cast<size_t>(i)].name.get(), name.get()) == 0) {
          found = i;
        }
      }
      if (found < 0) {
        if (!more) unexpected(name.get());
        more->setItem(capture_, capture_.constant(name.get()), value);
        continue;
      }
      if (slot(found)) fail(fmt::format("got multiple values for argument '{}'", nameOf(found)));
      slot(found) = value;
    }
  }

  void bindDefaults() {
    const int first_default = positional_ - frame_.function->numDefaults(capture_);
    std::vector<std::string> missing;
    for (int i = 0; i < std::min(first_default, positional_); ++i) {
      if (!slot(i)) missing.push_back(nameOf(i));
    }
    if (!missing.empty()) lacks("positional", missing);
    for (int i = 0; i < positional_; ++i) {
      if (!slot(i)) slot(i) = frame_.function->defaultOf(capture_, i, positional_);
    }
    for (int i = positional_; i < named_; ++i) {
      if (slot(i)) continue;
      slot(i) = frame_.function->keywordDefaultOf(capture_,
                                                  code_.slots[static_cast<size_t>(i)].name.get());
      if (!slot(i)) missing.push_back(nameOf(i));
    }
    if (!missing.empty()) lacks("keyword-only", missing);
  }

  [[noreturn]] void lacks(const char* kind, const std::vector<std::string>& names) {
    fail(fmt::format("missing {} required {} argument{}: {}", names.size(), kind,
                     ending(names.size()), listed(names)));
  }

  [[noreturn]] void unexpected(PyObject* name) {
    std::string positional_only;
    for (int i = 0; i < code_.positional_only_count; ++i) {
      for (const auto& [each, value] : given_.keywords) {
        if (PyUnicode_Compare(code_.slots[static_cast<size_t>(i)].name.get(), each.get()) != 0) {
          continue;
        }
        positional_only += (positional_only.empty() ? "" : ", ") + nameOf(i);
      }
    }
    if (!positional_only.empty()) {
      fail(fmt::format("got some positional-only arguments passed as keyword arguments: '{}'",
                       positional_only));
    }
    fail(fmt::format("got an unexpected keyword argument '{}'", PyUnicode_AsUTF8(name)));
  }

  [[noreturn]] void tooMany() {
    const int defaults = frame_.function->numDefaults(capture_);
    const size_t count = given_.positional.size();
    size_t keyword_only = 0;
    for (int i = positional_; i < named_; ++i) keyword_only += slot(i) != nullptr;
    const std::string takes =
        defaults > 0 ? fmt::format("from {} to {}", positional_ - defaults, positional_)
                     : std::to_string(positional_);
    const bool plural = defaults > 0 || positional_ != 1;
    const std::string more =
        keyword_only == 0 ? ""
                          : fmt::format(" positional argument{} (and {} keyword-only argument{})",
                                        ending(count), keyword_only, ending(keyword_only));
    fail(fmt::format("takes {} positional argument{} but {}{} {} given", takes, plural ? "s" : "",
                     count, more, count == 1 && keyword_only == 0 ? "was" : "were"));
  }

  EvalFrame& frame_;
  Capture& capture_;
  const DecodedCode& code_;
  const Arguments& given_;
  const int positional_;
  const int named_;  // positional and keyword-only parameters
};

}  // namespace

void EvalFrame::bind(const Arguments& given) {
  Binding(*this, given).run();
}

}  // namespace wick::capture

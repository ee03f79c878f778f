#include "capture/values/variable.h"

#include <fmt/format.h>

#include "capture/evaluate/capture.h"
#include "capture/world.h"

namespace wick::capture {

void breakGraph(std::string reason) {
  throw GraphBreak{std::move(reason)};
}

std::string describe(const Variable& variable) {
  if (variable.source) {
    return fmt::format("{} ({})", variable.source->text(), variable.type()->tp_name);
  }
  return fmt::format("a {}", variable.type()->tp_name);
}

void Variable::setAttribute(Capture&, PyObject* name, Variable*) {
  breakGraph(
      fmt::format("setting the attribute '{}' of {}", PyUnicode_AsUTF8(name), describe(*this)));
}

Variable* Variable::call(Capture& capture, const Arguments&) {
  if (!type()->tp_call) {
    capture.raise(PyExc_TypeError, fmt::format("'{}' object is not callable", type()->tp_name));
  }
  breakGraph(fmt::format("a call of {}", describe(*this)));
}

Variable* Variable::item(Capture&, Variable*) {
  breakGraph(fmt::format("an item of {}", describe(*this)));
}

void Variable::setItem(Capture& capture, Variable*, Variable* value) {
  const auto* const mapping = type()->tp_as_mapping;
  const auto* const sequence = type()->tp_as_sequence;
  if (!(mapping && mapping->mp_ass_subscript) && !(sequence && sequence->sq_ass_item)) {
    capture.raise(PyExc_TypeError, fmt::format("'{}' object {}", type()->tp_name,
                                               value ? "does not support item assignment"
                                                     : "doesn't support item deletion"));
  }
  breakGraph(fmt::format("setting an item of {}", describe(*this)));
}

int64_t Variable::length(Capture&) {
  breakGraph(fmt::format("len() of {}", describe(*this)));
}

bool Variable::truth(Capture&) {
  breakGraph(fmt::format("the truth of {}", describe(*this)));
}

Variable* Variable::iterate(Capture&) {
  breakGraph(fmt::format("an iteration over {}", describe(*this)));
}

Variable* Variable::next(Capture&) {
  breakGraph(fmt::format("next() of {}", describe(*this)));
}

bool Variable::contains(Capture&, Variable*) {
  breakGraph(fmt::format("a search in {}", describe(*this)));
}

void Variable::replay(Capture&, Builder&) {
  breakGraph(fmt::format("{} was changed", describe(*this)));
}

}  // namespace wick::capture

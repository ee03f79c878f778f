#include "capture/evaluate/frame.h"

#include <fmt/format.h>

#include <unordered_map>

#include "capture/bytecode/decode.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/inline.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/builtin.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/generator.h"
#include "capture/values/instance.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

constexpr size_t kMaxKnown = 20'000;

}  // namespace

std::shared_ptr<const DecodedCode> decodedCode(PyCodeObject* code) {
  struct Known {
    Object owner;
    std::shared_ptr<const DecodedCode> decoded;
  };
  static auto& known = *new std::unordered_map<PyObject*, Known>;
  auto* const key = reinterpret_cast<PyObject*>(code);
  if (const auto found = known.find(key); found != known.end()) return found->second.decoded;
  if (known.size() >= kMaxKnown) known.clear();
  try {
    auto decoded = std::make_shared<DecodedCode>(decode(code));
    checkOperands(*decoded);
    known[key] = {Object::share(key), decoded};
    return decoded;
  } catch (const BytecodeError& error) {
    breakGraph(error.what());
  }
}

EvalFrame::EvalFrame(Capture& capture, FunctionVariable* function, EvalFrame* caller)
    : capture(capture), code(decodedCode(function->code())), function(function), caller(caller) {
  slots.resize(code->slots.size());
  globals = function->globals(capture);
  builtins = function->builtins(capture);
}

Variable* EvalFrame::pop() {
  if (stack.empty()) breakGraph("the stack is empty");
  Variable* const top = stack.back();
  stack.pop_back();
  return top;
}

Variable*& EvalFrame::peek(int depth) {
  if (depth < 1 || static_cast<size_t>(depth) > stack.size()) breakGraph("the stack is too short");
  return stack[stack.size() - static_cast<size_t>(depth)];
}

std::vector<Variable*> EvalFrame::popMany(size_t count) {
  if (count > stack.size()) breakGraph("the stack is too short");
  std::vector<Variable*> taken(stack.end() - static_cast<ptrdiff_t>(count), stack.end());
  stack.resize(stack.size() - count);
  return taken;
}

void EvalFrame::step() {
  capture.step();
  next = at + 1;
  EvalFrame* const outer = std::exchange(capture.frame, this);
  try {
    if (Variable* exception = std::exchange(raise_first, nullptr)) throw Raised{exception};
    execute(*this);
    capture.frame = outer;
  } catch (const Raised& raised) {
    capture.frame = outer;
    if (auto* exception = dynamic_cast<ExceptionVariable*>(raised.exception)) {
      if (exception->passed.empty() && !exception->context) {
        exception->raised_alone = !capture.handled;
        if (capture.handled != exception) exception->context = capture.handled;
      }
      exception->passed.push_back(
          {Object::share(function->codeObject()), instruction().location.line});
    }
    if (!handle(raised.exception)) throw;
  } catch (GraphBreak& reason) {
    capture.frame = outer;
    if (outer && reason.place.empty()) {
      reason.place =
          fmt::format("{} ({}:{})", PyUnicode_AsUTF8(function->code()->co_qualname),
                      PyUnicode_AsUTF8(code->filename.get()), instruction().location.line);
    }
    throw;
  } catch (...) {
    capture.frame = outer;
    throw;
  }
  at = next;
}

void EvalFrame::run() {
  status = Status::kRunning;
  while (status == Status::kRunning) step();
}

bool EvalFrame::handle(Variable* exception) {
  keyword_names = Object();
  for (const ExceptionRange& range : code->exception_ranges) {
    if (at < range.start || at >= range.end) continue;
    if (stack.size() < static_cast<size_t>(range.depth)) breakGraph("the stack is too short");
    stack.resize(static_cast<size_t>(range.depth));
    if (range.lasti) push(capture.make<MarkVariable>(MarkVariable::Kind::kOffset, nullptr, at));
    push(exception);
    next = range.target;
    return true;
  }
  return false;
}

PyTypeObject* EvalFrame::classOfMethod(Capture& capture) {
  for (size_t i = 0; i < code->slots.size(); ++i) {
    if (!(code->slots[i].kind & kFreeSlot)) continue;
    if (PyUnicode_CompareWithASCIIString(code->slots[i].name.get(), "__class__") != 0) continue;
    auto* const cell = dynamic_cast<CellVariable*>(slots[i]);
    Variable* const found = cell ? cell->contents(capture) : nullptr;
    auto* const type = found ? capture.as<ClassVariable>(found) : nullptr;
    return type ? type->classObject() : nullptr;
  }
  return nullptr;
}

Variable* EvalFrame::firstArgument(Capture& capture) {
  if (slots.empty() || !slots[0]) return nullptr;
  if (auto* cell = dynamic_cast<CellVariable*>(slots[0])) return cell->contents(capture);
  return slots[0];
}

// ---- parameters ----

namespace {

// Sets the slots of a frame to arguments, as calls of functions do.
class Binding {
 public:
  Binding(EvalFrame& frame, const Arguments& given)
      : frame_(frame), capture_(frame.capture), code_(*frame.code), given_(given) {}

  void run() {
    const int positional = code_.argument_count;
    const int named = positional + code_.keyword_only_count;
    const bool stars = (code_.flags & CO_VARARGS) != 0;
    const bool double_stars = (code_.flags & CO_VARKEYWORDS) != 0;
    const int count = static_cast<int>(given_.positional.size());
    for (int i = 0; i < std::min(count, positional); ++i) {
      frame_.slots[static_cast<size_t>(i)] = given_.positional[static_cast<size_t>(i)];
    }
    if (stars) {
      std::vector<Variable*> rest;
      if (count > positional) {
        rest.assign(given_.positional.begin() + positional, given_.positional.end());
      }
      frame_.slots[static_cast<size_t>(named)] =
          capture_.make<TupleVariable>(std::move(rest), &PyTuple_Type);
    }
    DictVariable* more = nullptr;
    if (double_stars) {
      more = capture_.make<DictVariable>(&PyDict_Type);
      frame_.slots[static_cast<size_t>(named + (stars ? 1 : 0))] = more;
    }
    bindKeywords(named, more);
    if (count > positional && !stars) wrong();
    for (int i = 0; i < positional; ++i) {
      Variable*& slot = frame_.slots[static_cast<size_t>(i)];
      if (!slot) slot = frame_.function->defaultOf(capture_, i, positional);
      if (!slot) wrong();
    }
    for (int i = positional; i < named; ++i) {
      Variable*& slot = frame_.slots[static_cast<size_t>(i)];
      if (!slot) {
        slot = frame_.function->keywordDefaultOf(capture_,
                                                 code_.slots[static_cast<size_t>(i)].name.get());
      }
      if (!slot) wrong();
    }
  }

 private:
  // The text of the error is long to make: the call is left to Python.
  [[noreturn]] void wrong() const {
    breakGraph(fmt::format("{}() is called with arguments that do not fit",
                           PyUnicode_AsUTF8(code_.name.get())));
  }

  void bindKeywords(int named, DictVariable* more) {
    for (const auto& [name, value] : given_.keywords) {
      int found = -1;
      for (int i = code_.positional_only_count; i < named && found < 0; ++i) {
        if (PyUnicode_Compare(code_.slots[static_cast<size_t>(i)].name.get(), name.get()) == 0) {
          found = i;
        }
      }
      if (found < 0) {
        if (!more) wrong();
        more->setItem(capture_, capture_.constant(name.get()), value);
        continue;
      }
      Variable*& slot = frame_.slots[static_cast<size_t>(found)];
      if (slot) wrong();
      slot = value;
    }
  }

  EvalFrame& frame_;
  Capture& capture_;
  const DecodedCode& code_;
  const Arguments& given_;
};

}  // namespace

void EvalFrame::bind(const Arguments& given) {
  Binding(*this, given).run();
}

Variable* inlineCall(Capture& capture, FunctionVariable& function, const Arguments& given) {
  constexpr int kOtherKinds = CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;
  if (function.code()->co_flags & kOtherKinds) breakGraph("an asynchronous function is called");
  if (capture.mustRunPlainly(function)) {
    breakGraph(fmt::format("a call of {}, which is not captured", describe(function)));
  }
  if (function.code()->co_flags & CO_GENERATOR) {
    auto frame = std::make_unique<EvalFrame>(capture, &function, capture.frame);
    frame->bind(given);
    auto* const made = capture.make<GeneratorVariable>(std::move(frame));
    capture.generators.push_back(made);
    return made;
  }
  EvalFrame frame(capture, &function, capture.frame);
  frame.bind(given);
  frame.run();
  return frame.value;
}

}  // namespace wick::capture

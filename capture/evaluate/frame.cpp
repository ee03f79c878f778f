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

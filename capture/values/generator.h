// Generators that the program made during the capture, and that are used up within it.
#pragma once

#include <memory>

#include "capture/evaluate/frame.h"
#include "capture/values/iterators.h"

namespace wick::capture {

class GeneratorVariable : public IteratorVariable {
 public:
  explicit GeneratorVariable(std::unique_ptr<EvalFrame> frame) : frame_(std::move(frame)) {}

  PyTypeObject* type() const override { return &PyGen_Type; }
  Variable* next(Capture& capture) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;

  // Returns whether the generator would run code when it dies.
  bool isPending() const;
  // Goes on with the value of the yield. Returns null at the end; `result` is what it returned.
  Variable* send(Capture& capture, Variable* sent);
  Variable* result = nullptr;

 private:
  Variable* resume(Capture& capture);
  Variable* throwInto(Capture& capture, Variable* exception);

  std::unique_ptr<EvalFrame> frame_;
  bool begun_ = false;
  bool running_ = false;
  bool ended_ = false;
};

}  // namespace wick::capture

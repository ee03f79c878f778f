// A graph decides by itself what it saves, so such a part is a call as all others, if nobody can tell how
// often it has run: it changes nothing, and draws the same random numbers.
#include "capture/evaluate/checkpoints.h"

#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/sequence.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

bool requiresGradient(Capture& capture, Variable* variable) {
  auto* const tensor = capture.as<TensorVariable>(variable);
  return tensor && capture.recording->requiresGradient(tensor->fake());
}

// Breaks the graph where not all results are tensors that the part has made and that require gradients:
// in plain execution all of them do.
void checkResults(Capture& capture, Variable* result, int64_t since) {
  std::vector<Variable*> all{capture.use(result)};
  if (auto* tuple = dynamic_cast<TupleVariable*>(result)) all = tuple->all(capture);
  for (Variable* each : all) {
    if (!requiresGradient(capture, each) || each->number < since) {
      breakGraph("a checkpoint gives more than tensors with gradients that it has made");
    }
  }
}

// While it lives, the program may change nothing that existed before.
class Part {
 public:
  Part(Capture& capture, bool reentrant)
      : capture_(capture), since_(capture.sides_since), part_(capture.part) {
    capture.recording->beginPart();
    capture.sides_since = capture.numVariables();
    capture.part = reentrant ? Capture::Part::kReentrant : Capture::Part::kCheckpoint;
  }
  // Ends it. Breaks the graph if a tensor from outside was written to.
  void end() {
    capture_.sides_since = since_;
    capture_.part = part_;
    capture_.recording->endPart();
  }

 private:
  Capture& capture_;
  const int64_t since_;
  const Capture::Part part_;
};

}  // namespace

Variable* callCheckpoint(Capture& capture, const Arguments& given, bool reentrant) {
  if (given.positional.size() < 2) breakGraph("a checkpoint with arguments that do not fit");
  const bool preserves = truthOf(capture, given.positional[1]);
  const Arguments rest{{given.positional.begin() + 2, given.positional.end()}, given.keywords};
  bool needed = false;
  for (Variable* each : rest.positional) needed |= requiresGradient(capture, each);
  if (reentrant && !needed) breakGraph("a checkpoint without an argument that requires a gradient");
  if (!capture.recording->gradMode()) return callVariable(capture, given.positional[0], rest);
  if (!preserves) breakGraph("a checkpoint that draws other random numbers again");
  const int64_t since = capture.numVariables();
  Part part(capture, reentrant);
  Variable* result = nullptr;
  try {
    result = callVariable(capture, given.positional[0], rest);
  } catch (const Raised&) {
    part.end();
    throw;
  }
  part.end();
  if (reentrant) checkResults(capture, result, since);
  return result;
}

}  // namespace wick::capture

// Graphs that wick.compile captured from PyTorch's tensors.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/world.h"
#include "python/captured_graph.h"
#include "python/torch_memory.h"

namespace wick::python {

class TorchLibrary;

struct TorchInput {
  TorchLayout layout;
  bool requires_grad = false;
  bool written = false;           // the graph writes to its memory
  std::vector<int> symbols = {};  // of open sizes, by dimension; -1 for others
};

// Results whose gradients come from operators that no other results' gradients come from.
struct TorchComponent {
  std::vector<size_t> outputs;
  std::vector<size_t> leaves;  // inputs that they depend on
  // Whether a backward pass of PyTorch's own operators would need a saved tensor.
  bool saves = true;
};

struct TorchControl;

// One call of the program, to be made again by PyTorch itself.
struct TorchCall {
  capture::Object function;
  std::vector<capture::Object> arguments;  // with fakes for tensors
  capture::Object names;
  capture::Object result;                      // with fakes; null where it is not looked at
  std::shared_ptr<TorchControl> control = {};  // a branch or a loop instead of all that
};

// A branch or a loop. All objects are fakes.
struct TorchControl {
  bool loop = false;
  bool again = true;  // a loop runs while the condition is this
  capture::Object condition;
  std::vector<TorchCall> sides[2];       // if true, if false; the body of a loop is the first
  std::vector<capture::Object> before;   // what a loop changes: before it,
  std::vector<capture::Object> inside;   // at the begin of an iteration
  std::vector<capture::Object> ends[2];  // of each side; of an iteration
  capture::Object next_condition;        // at the end of an iteration
  std::vector<capture::Object> results;
};

// A result that a function gave as one of several views of its first argument: PyTorch forbids writes
// to those that require a gradient, so the function must give it again.
struct TorchPart {
  TorchCall call;
  Py_ssize_t index = 0;  // in what the function gives
  bool of_input = false;
  size_t base = 0;  // the first argument, as an input or an output
};

// A recording, for all ways to run it.
struct TorchRecord {
  const TorchLibrary* library = nullptr;
  ScriptGraph script;
  std::vector<TorchInput> inputs;
  // Tensors that some results are views of follow the results that the program sees.
  std::vector<capture::Object> input_fakes, output_fakes;
  size_t num_results = 0;
  std::vector<TorchCall> calls;
  // Numbers in these calls that stand for expressions of open sizes.
  std::unordered_map<PyObject*, std::pair<capture::Object, capture::SizeExpression>> numbers;
  capture::SizeTable sizes;
  DType dtype = DType::Float;     // the default one
  bool grad_mode = true;          // at the start
  std::vector<bool> unrecorded;   // for each output: a view that has no history of its own
  std::vector<bool> plain_views;  // for each output: a view that was made with gradients on
  std::vector<bool>
      of_several;  // for each output: one of several views, which must not be written to
  std::unordered_map<size_t, TorchPart> parts;  // by output
  std::vector<TorchComponent> components;       // empty where no output requires a gradient
  bool own_derivatives = false;                 // functions of the program have them
};

// Returns the graph, run by Wick on the memory of PyTorch's tensors.
std::shared_ptr<capture::CapturedGraph> torchGraph(std::shared_ptr<const TorchRecord> record);

// Adds the parts of the graphs that python/wick/_torch_graph.py uses.
void addTorchGraphs(PyObject* module);

}  // namespace wick::python

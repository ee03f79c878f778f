// One attempt to capture a frame: everything that its evaluation shares.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "capture/guards/source.h"
#include "capture/open_sizes.h"
#include "capture/values/variable.h"
#include "capture/world.h"

namespace wick::capture {

class DictVariable;
class EvalFrame;
class FunctionVariable;
class GeneratorVariable;
class TensorVariable;

// A branch whose sides are evaluated.
struct OpenBranch {
  const EvalFrame* frame = nullptr;
  int at = 0;                          // the instruction
  const Variable* iterator = nullptr;  // of the loop around it
  std::vector<Variable*> slots;        // where it began
  bool isSameAs(const OpenBranch& o) const {
    return frame == o.frame && at == o.at && iterator == o.iterator;
  }
};

// An exception that the evaluated program raised.
struct Raised {
  Variable* exception;
};

class Capture {
 public:
  Capture(const World& world, const FrameRoots& roots, const SizeSettings& settings);
  ~Capture();
  Capture(const Capture&) = delete;

  const World& world;
  const FrameRoots roots;
  GuardTree guards;
  std::unique_ptr<Recording> recording;

  // ---- making variables ----

  // Owns the variable until the attempt ends.
  template <class T, class... Args>
  T* make(Args&&... args) {
    auto owned = std::make_unique<T>(std::forward<Args>(args)...);
    T* made = owned.get();
    made->born = root_step;
    made->number = numVariables();
    variables_.push_back(std::move(owned));
    return made;
  }
  // Returns how many there are.
  int64_t numVariables() const { return static_cast<int64_t>(variables_.size()); }
  // Returns the variable for an object that exists, as it was found at the source.
  Variable* read(Source* source, PyObject* object);
  // Returns the variable for the child of a variable with a source.
  Variable* readChild(Variable* parent, Access access, int64_t index, PyObject* key,
                      PyObject* object);
  // Returns the variable for a constant of the program.
  Variable* constant(PyObject* object);
  Variable* constantLong(int64_t number);
  Variable* constantBool(bool value);
  Variable* constantText(const char* text);
  // Returns the variable for an object that is the same in each call: part of a class whose version
  // is guarded, or of the interpreter.
  Variable* pinned(PyObject* object);
  // Returns the variable for a result of the recording.
  Variable* result(Object object);
  // Makes a variable the one for a fake that a function has given; returns it.
  TensorVariable* standFor(Object fake, TensorVariable* variable);
  // Keeps a fake as long as this; returns it.
  PyObject* keep(Object fake) {
    kept_.push_back(std::move(fake));
    return kept_.back().get();
  }

  // ---- using them ----

  // Returns the attributes of an object that exists. Breaks the graph where their dict is used
  // beside the object.
  DictVariable* attributesOf(Variable* holder);

  // Adds the guards of the variable. To be called before anything that depends on what it is.
  Variable* use(Variable* variable);
  template <class T>
  T* as(Variable* variable) {
    return dynamic_cast<T*>(use(variable));
  }
  // Notes that the variable's object will be changed when the call ends.
  void modify(Variable* variable);
  const std::vector<Variable*>& modified() const { return modified_; }
  // Returns the first variable of the same object that this was called for.
  Variable* firstWithId(Variable* variable) {
    return variable->object ? with_ids_.try_emplace(variable->object.get(), variable).first->second
                            : variable;
  }
  // Adds the guard that two variables are one and the same object, or not.
  void guardSame(Variable* a, Variable* b, bool same);
  // Returns the variables that were read from sources.
  const std::vector<Variable*>& known() const { return known_order_; }

  // ---- exceptions of the program ----

  [[noreturn]] void raise(PyObject* type, const std::string& message);
  [[noreturn]] void raiseWith(PyObject* type, std::vector<Variable*> arguments);
  // Turns the Python exception that is set into one of the program's.
  [[noreturn]] void raiseCurrent();
  // Runs the function, which uses Python's API on constants; its exceptions are the program's.
  template <class F>
  auto concretely(F&& f) {
    try {
      return f();
    } catch (const PythonError&) {
      raiseCurrent();
    }
  }

  // ---- tensors ----

  // Returns the fake of a tensor that becomes an input of the graph.
  Object addInput(Source* source, PyObject* tensor);
  // Returns the tensor on the memory of an array that becomes an input.
  TensorVariable* addArray(Source* source, PyObject* array);
  const std::vector<Source*>& inputs() const { return inputs_; }
  // Returns whether an input is an array of numpy.
  bool isArrayInput(Source* source) const { return arrays_.count(source) != 0; }
  // Returns the sizes of the inputs in this call, with the texts of their sources.
  const std::vector<std::pair<std::string, std::vector<int64_t>>>& inputSizes() const {
    return input_sizes_;
  }
  // Returns the symbol of each open size.
  const std::map<SizePlace, int>& openPlaces() const { return open_places_; }
  // Returns the expression of an int among the frame's arguments that is open as sizes are.
  SizeExpression openInteger(Source* source, PyObject* number);
  // Notes the value of one that is a constant.
  void noteInteger(Source* source, PyObject* number);
  // Returns the variable for an expression of open sizes.
  Variable* sizeVariable(const SizeExpression& expression);
  // Calls a function on fakes and constants, and returns the variable for its result.
  Variable* recorded(PyObject* function, const std::vector<PyObject*>& arguments,
                     PyObject* names = nullptr) {
    return result(recording->call(function, arguments, names));
  }
  // Does the same with a function of the module `operator` ("__add__").
  Variable* computed(const char* function, const std::vector<PyObject*>& arguments);
  // Returns the variable for an attribute of a tensor.
  Variable* attributeOf(Variable* tensor, PyObject* fake, PyObject* name);

  // Returns the object of a constant, a fake, or a container of these. Throws GraphBreak. Open sizes
  // get the value of this call for good.
  Object objectFor(Variable* variable);
  // Does the same with plain tuples, lists and dicts for those of derived classes.
  Object elementsFor(Variable* variable);
  // Does the same for a function that is recorded: open sizes stay open.
  Object argumentFor(Variable* variable);
  // Returns the number that stands for an expression of open sizes there.
  Object numberFor(const SizeExpression& expression);

  // ---- limits ----

  // Counts an instruction; breaks the graph beyond the limit.
  void step();
  int depth = 0;          // of inlined calls
  int64_t root_step = 0;  // the step of the root frame

  // Whether the graph writes to arrays of numpy that were there before, and whether its operators on arrays may fail.
  bool arrays_written = false, arrays_may_fail = false;

  // ---- the state of the thread of the program ----

  EvalFrame* frame = nullptr;   // the innermost one
  Variable* handled = nullptr;  // the exception that is being handled, or null
  // All that were made.
  std::vector<GeneratorVariable*> generators;

  // The branches on elements of tensors whose sides are evaluated, outermost first.
  std::vector<OpenBranch> open_branches;
  int num_branches = 0;      // all that were evaluated
  bool left_branch = false;  // by an exception, so that the recording is within a side
  // The first variable of the innermost one's side, -1 outside of all.
  int64_t sides_since = -1;
  // The part of the program that is evaluated: one that runs later, or again.
  enum class Part : uint8_t {
    kOrdinary,
    kCheckpoint,  // runs again in a backward pass
    kReentrant,   // the same, and runs with gradients off first
    kDerivative,  // of the program's own, runs in a backward pass
  };
  Part part = Part::kOrdinary;
  // Breaks the graph in such a derivative if `found` was read of a holder that others see and may be another object when
  // it runs: all but functions, classes and modules.
  void checkLasting(const Variable& holder, const Variable& found) const;
  // Returns whether the side that is evaluated has made the object.
  bool isMadeInSide(const Variable& variable) const {
    return variable.number >= sides_since && !variable.source && !variable.object;
  }
  // Returns whether the graph may suppose which way a branch goes.
  bool mayExpect() const;
  // Supposes the truth of a tensor, which the graph tells when it has run.
  void expect(TensorVariable& condition, bool truth);
  int numExpected() const { return num_expected_; }
  // Breaks the graph if a side of a branch would change an object that others see.
  void changeInSide(const Variable& variable) const;

  // Returns whether calls of the function are left to Python.
  bool mustRunPlainly(FunctionVariable& function);

  // Adds the guard for the class of an object; without a source the class is kept as it is.
  void guardType(Source* source, PyTypeObject* type);

 private:
  Variable* makeFor(Source* source, PyObject* object);
  InputSizes inputSizesOf(Source* source, PyObject* tensor);
  bool isOpen(const std::string& source, PyObject* tensor, size_t dim,
              const std::vector<int64_t>& sizes) const;
  bool isOpenInteger(Source* source, PyObject* number) const;
  int symbolFor(const SizePlace& place, int64_t size);

  std::vector<std::unique_ptr<Variable>> variables_;
  std::unordered_map<PyObject*, Variable*> known_;  // mutable objects by identity
  std::vector<Variable*> known_order_;
  std::unordered_map<PyObject*, Variable*> fakes_;  // tensors by their fakes
  std::unordered_map<PyObject*, Variable*> pinned_;
  std::unordered_map<PyObject*, Variable*> with_ids_;  // by their objects
  std::unordered_set<PyObject*> instance_dicts_;
  std::vector<Variable*> modified_;
  std::vector<Source*> inputs_;
  std::unordered_set<Source*> arrays_;
  std::vector<Object> kept_;
  const SizeSettings& settings_;
  std::vector<std::pair<std::string, std::vector<int64_t>>> input_sizes_;
  std::map<SizePlace, int> open_places_;
  std::unordered_map<int64_t, int> symbol_of_size_;
  std::unordered_set<int> graph_symbols_;  // those that are sizes of inputs
  int64_t steps_ = 0;
  int num_expected_ = 0;
};

}  // namespace wick::capture

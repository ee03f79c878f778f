// The library that tensors are of, as capture sees it. Capture knows no tensors itself: it runs the
// library's functions on fakes, tensors without memory, while the library records what they do.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capture/guards/graph_break.h"
#include "capture/guards/source.h"

namespace wick::capture {

[[noreturn]] void breakGraph(std::string reason);

// A graph that was captured, compiled or ready to be.
class CapturedGraph {
 public:
  CapturedGraph() = default;
  virtual ~CapturedGraph() = default;
  // Runs the graph. `inputs` are the tensors in the order of Recording::addInput(); the outputs are
  // appended. Throws PythonError; `touched` then says whether something has changed that can be seen.
  virtual void run(std::span<const Object> inputs, std::vector<Object>& outputs,
                   bool& touched) const = 0;
  virtual std::string text() const = 0;
  // Returns graph and constants as text: equal ones compute the same.
  virtual std::string contents() const = 0;
  // Returns whether it may write to memory, or draw random numbers.
  virtual bool isImpure() const = 0;
  // Returns whether it writes to memory of its inputs.
  virtual bool writes() const = 0;
  // Returns how many runs have failed because a guess was wrong.
  virtual int64_t numWrongGuesses() const { return 0; }
  // Returns the numbers that elements decide for these inputs, by symbol; -1 for others. Nothing that can be
  // seen changes. Throws PythonError.
  virtual std::vector<int64_t> measured(std::span<const Object> /*inputs*/) const { return {}; }
  // Returns the sizes of the last such run, by symbol; -1 for those that nothing depends on.
  virtual std::vector<int64_t> actualSizes() const { return {}; }
  virtual int numOperators() const = 0;
  // Returns a function of Python that runs the graph: it takes the tensors, and gives a tuple.
  virtual Object object() const = 0;
  // Returns a graph that does the same operator by operator, without any optimization; null where
  // the graph holds more than operators.
  virtual std::shared_ptr<CapturedGraph> operatorByOperator() const = 0;
  // Returns a graph that calls a function of Python instead: it gets the tensors, and gives a tuple
  // or list of tensors.
  virtual std::shared_ptr<CapturedGraph> calling(Object function) const = 0;
};

// How capture treats a function of the library.
enum class Callee : uint8_t {
  kUnknown,      // not a function of the library
  kOperator,     // runs on fakes and is recorded
  kPure,         // gives a constant for constants
  kGradMode,     // tells whether gradients are recorded
  kSetGradMode,  // changes it
  kItem,         // gives the element of a tensor as a number
  kAutocast,     // tells or changes what autocast casts
  kCheckpoint,   // calls a function that a backward pass calls again
  kApply,        // calls a function with a derivative of its own: its class, then the arguments
  kBreak,        // must run plainly
};

class World;

// The sizes of a tensor that becomes an input.
struct InputSizes {
  SizeTable* table = nullptr;
  std::vector<int> symbols;       // of each dimension; -1: a constant of the entry
  std::vector<int64_t> examples;  // the fake's

  bool is_array = false;  // an array of numpy, which operators on tensors must not write to

  bool isOpen(size_t dim) const { return dim < symbols.size() && symbols[dim] >= 0; }
  bool areAllClosed() const {
    for (const int each : symbols) {
      if (each >= 0) return false;
    }
    return true;
  }
};

class Recording {
 public:
  virtual ~Recording() = default;
  // Returns the world that the graph belongs to: the same one in the whole life of the recording, or
  // a narrower one from the first tensor or function of a library on.
  virtual const World& world() const = 0;
  // Tells that arrays of numpy are computed with, which may belong to either library: see world().
  virtual void enterArrays() {}
  // Says that the next operators are those of arrays, which may write to their memory, or that they are not.
  virtual void setWritesArrays(bool /*on*/) {}
  // Says that arrays belong to the other library than they did in a recording that ended because of that.
  virtual void preferOtherWorld() {}
  // Tells that a function of a library is called: see world().
  virtual void enter(PyObject* function) = 0;

  // Returns a fake for the tensor, of the same class. The table of sizes outlives the recording; all
  // inputs come with the same one.
  virtual Object addInput(PyObject* tensor, const InputSizes& sizes) = 0;
  // Returns the expression of sizes that a number stands for: a result of call() or attribute().
  // Nothing for ordinary numbers.
  virtual std::optional<SizeExpression> sizeOf(PyObject* number) const = 0;
  // Returns a number that stands for an expression, as an argument of call().
  virtual Object numberFor(const SizeExpression& expression) = 0;
  // A dimension of a tensor that the graph computes, its only element, or how many it has.
  struct Dimension {
    Object fake;  // null: none
    int64_t dim = 0;
    enum class Kind : uint8_t { kSize, kElement, kCount } kind = Kind::kSize;
  };
  // Returns the dimension, the element or the count that a symbol stands for; none for others than those that
  // elements decide.
  virtual Dimension dimensionOf(int symbol) = 0;
  // Returns the only element of a tensor that depends on no input; null for other tensors.
  virtual Object constantOf(PyObject* fake) = 0;
  // Returns the expression of the only element of a tensor of ints; nothing for other tensors.
  virtual std::optional<SizeExpression> elementOf(PyObject* fake) = 0;
  // Returns the class of the number that the element of a tensor without dimensions is, borrowed; null
  // for other tensors.
  virtual PyTypeObject* numberType(PyObject* fake) const = 0;
  // Returns whether a tensor is a number where it stands in a subscript of a tensor: an integer without dimensions. Bytes and
  // booleans are masks.
  virtual bool isIndexNumber(PyObject* fake) const = 0;
  virtual bool isFake(PyObject* object) const = 0;
  // Returns the class that the program sees of a tensor that the graph computes, borrowed.
  virtual PyTypeObject* typeOf(PyObject* fake) const = 0;
  // Calls the function with fakes and constants; `names` are those of the last arguments. It is one
  // of the library, of the module `operator`, `len` or `tuple`. Throws GraphBreak for everything
  // that does not work on fakes, errors too.
  virtual Object call(PyObject* function, const std::vector<PyObject*>& arguments,
                      PyObject* names) = 0;
  // Does the same with a function of the program, whose code is not looked at. Its results are fakes
  // and constants, in tuples and lists.
  virtual Object callOpaque(PyObject* function, const std::vector<PyObject*>& arguments,
                            PyObject* names) = 0;
  // Does the same with an attribute of a fake. Methods are bound: as methods of Python, or of C.
  virtual Object attribute(PyObject* fake, PyObject* name) = 0;

  // Begins a branch that a tensor decides, with the side for a true condition.
  // `step` is that of the root frame. All functions of branches and loops throw GraphBreak for what
  // they do not know.
  virtual void beginBranch(PyObject* condition, int64_t step) = 0;
  virtual void beginOtherSide() = 0;
  // Returns a fake for each pair of results, one of each side.
  virtual std::vector<Object> endBranch(
      const std::vector<std::pair<PyObject*, PyObject*>>& results) = 0;
  // Returns whether two fakes differ in nothing but their elements.
  virtual bool canJoin(PyObject* a, PyObject* b) const = 0;
  // Begins the body of a loop that runs while the condition is `again`. Returns
  // the fakes of `carried` at the begin of an iteration.
  virtual std::vector<Object> beginLoop(PyObject* condition, bool again,
                                        const std::vector<PyObject*>& carried, int64_t step) = 0;
  // Takes condition and `carried` at the end of an iteration; returns the fakes behind the loop.
  virtual std::vector<Object> endLoop(PyObject* condition,
                                      const std::vector<PyObject*>& carried) = 0;

  // Returns whether a fake takes part in gradients.
  virtual bool requiresGradient(PyObject* fake) const = 0;
  // Begins a part of the program that must not write to tensors from outside.
  virtual void beginPart() = 0;
  virtual void endPart() = 0;
  // Begins a function with a derivative of its own, which runs with gradients off.
  virtual void beginFunction() = 0;
  // Ends it and begins its derivative, which gets the `saved` tensors. Returns fakes for the gradients of
  // the results.
  virtual std::vector<Object> beginDerivative(const std::vector<PyObject*>& saved,
                                              const std::vector<PyObject*>& results) = 0;
  // All parts of such a function, as fakes.
  struct FunctionParts {
    std::vector<PyObject*> arguments, gradients;  // one for each argument; null: none
    std::vector<PyObject*> results, saved;
    std::vector<bool> differentiable;  // for each result
  };
  // Ends the derivative. Returns the fakes of the results behind the call. `step` is of the root frame.
  virtual std::vector<Object> endFunction(const FunctionParts& parts, int64_t step) = 0;

  // Says that the graph is right only where the truth of the tensor is this, and tells when it is not.
  virtual void expect(PyObject* condition, bool truth) = 0;

  // The gradient mode of the program, now and when the recording began.
  virtual bool initialGradMode() const = 0;
  virtual bool gradMode() const = 0;
  virtual void setGradMode(bool on) = 0;
  // Returns the state of autocast of the program, as World::autocast().
  virtual int64_t autocast() const = 0;
  // Returns whether autocast changes operators now.
  virtual bool isAutocastOn() const = 0;
  // Calls a function of the kind kAutocast for the program. Throws GraphBreak for arguments that it
  // does not know.
  virtual Object callAutocast(PyObject* function, const std::vector<PyObject*>& arguments) = 0;
  // Returns whether the graph depends on the state of autocast that the recording began with.
  virtual bool asksAutocast() const = 0;
  // Returns the state that the program leaves, for World::setAutocast(); nothing if that is the one
  // that it found.
  virtual std::optional<int64_t> leftAutocast() const = 0;
  virtual int numOperators() const = 0;
  // Ends the recording. The outputs are fakes.
  virtual std::shared_ptr<CapturedGraph> finish(const std::vector<PyObject*>& outputs) = 0;
};

class World {
 public:
  virtual ~World() = default;
  virtual bool isTensor(PyObject* object) const = 0;
  virtual bool isTensorType(PyTypeObject* type) const = 0;
  // Returns whether the class is the tuple that sizes of tensors come in, whose slices and sums are
  // of the same class.
  virtual bool isSizeType(PyTypeObject* type) const = 0;
  // Returns whether the object is a dtype, a device or their like: constants of the library.
  virtual bool isConstant(PyObject* object) const = 0;
  // Returns the guard for a tensor that becomes an input. Throws GraphBreak for tensors that
  // graphs do not take.
  // Open sizes are only checked to be at least 2.
  virtual std::shared_ptr<const TensorGuard> guardFor(PyObject* tensor,
                                                      const InputSizes& sizes) const = 0;
  // Returns the sizes of a tensor that becomes an input.
  virtual std::vector<int64_t> sizesOf(PyObject* tensor) const = 0;
  // Returns whether it is a parameter of a module, whose sizes do not change.
  virtual bool isParameter(PyObject* tensor) const = 0;
  // Returns the module of the functions of tensors.
  virtual Object library() const = 0;
  // Returns a tensor on the memory of an array of numpy. Throws PythonError.
  virtual Object tensorOn(PyObject* array) const = 0;
  virtual Callee calleeOf(PyObject* function) const = 0;
  // Returns whether the module belongs to the library, and looking up a name changes nothing.
  virtual bool isLibrary(PyObject* module) const = 0;
  virtual std::unique_ptr<Recording> record() const = 0;
  // Returns the state of the calling thread that all graphs depend on, as one number.
  virtual int64_t state() const = 0;
  virtual bool gradMode() const = 0;
  virtual void setGradMode(bool on) const = 0;
  // Returns the state of autocast of the calling thread, as one number.
  virtual int64_t autocast() const = 0;
  virtual void setAutocast(int64_t state) const = 0;
  // Returns an object that puts everything back at its end that recording may change: the gradient
  // mode, autocast, random numbers.
  virtual std::shared_ptr<void> keepState() const = 0;
};

}  // namespace wick::capture

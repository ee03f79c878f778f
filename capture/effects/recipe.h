// A recipe: the steps that make objects and replay the effects of captured code, on registers.
#pragma once

#include <string>
#include <vector>

#include "capture/bytecode/object.h"

namespace wick::capture {

class World;

enum class StepKind : uint8_t {
  kConstant,  // result = object
  kTuple,     // result = tuple(arguments)
  kList,      // result = list(arguments)
  kSet,       // result = set(arguments)
  kDict,      // result = dict of arguments in pairs
  kCall,   // result = arguments[0](*arguments[1:]), the last ones by the names in `object`; nothing
           // that it calls is captured if `number`
  kSlice,  // result = slice(arguments)
  kNew,    // result = object.__new__(arguments[0]) without any attribute
  kCell,   // result = cell, empty or with arguments[0]
  kMethod,     // result = method of arguments[0] bound to arguments[1]
  kFunction,   // result = function with the code `object`; the arguments are, as far as the bits of
               // `number` say: globals, qualified name, defaults, keyword defaults, closure,
               // annotations
  kAttribute,  // result = arguments[0].object by the class `object`'s generic rules
  kHandled,    // result = the exception that the thread handles, or None
  // Effects.
  kSetItem,             // arguments[0][arguments[1]] = arguments[2], of a dict
  kDeleteItem,          // del arguments[0][arguments[1]], of a dict
  kReplaceList,         // arguments[0][:] = arguments[1:]
  kSetInstanceItem,     // arguments[0].object = arguments[1] by object.__setattr__
  kDeleteInstanceItem,  // del arguments[0].object by object.__delattr__
  kContext,    // arguments[0], an exception without a context, gets that which the thread handles
  kTraceback,  // arguments[0], an exception, has passed the line `number` of the code `object`
  kSetCell,    // arguments[0].cell_contents = arguments[1]; without a second argument it is emptied
  kGradMode,   // gradients are recorded if `number`
  kAutocast,   // the state of autocast is `number`
  // arguments[0], with lru_cache, keeps arguments[1] as the result for the other arguments, the last
  // ones by the names in `object`
  kKeepResult,
};

struct Step {
  StepKind kind;
  int result = -1;
  std::vector<int> arguments;
  Object object;
  int64_t number = 0;
};

// The parts of a function that a step kFunction has arguments for, in this order.
enum FunctionPart : uint8_t {
  kHasDefaults = 1,
  kHasKeywordDefaults = 2,
  kHasClosure = 4,
  kHasAnnotations = 8,
};

struct Recipe {
  std::vector<Step> steps;
  int num_registers = 0;

  // Does all steps. `registers` holds what guards kept and the graph gave, and has room for
  // num_registers. Throws PythonError.
  void run(std::vector<Object>& registers, const World& world) const;
  // Returns a line for each step.
  std::vector<std::string> lines() const;
  // Returns whether a step changes, or may change, an object that was there before. The first
  // `num_kept` registers are those that guards keep.
  bool changesObjects(int num_kept) const;
};

}  // namespace wick::capture

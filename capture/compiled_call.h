// Calls with capture: frames that start within them are captured, or run by entries that were made
// before.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/entry.h"
#include "capture/world.h"

namespace wick::capture {

// The settings of one compiled function. All of its frames share them; the same code compiled with
// other settings has entries of its own.
class Region {
 public:
  explicit Region(std::shared_ptr<const World> world) : world(std::move(world)) {}

  const std::shared_ptr<const World> world;
  // A break is an error.
  bool full_graph = false;
  OpenSizes open_sizes = OpenSizes::kAutomatic;
  // The number of entries that a code object may have; 0 stands for cacheSizeLimit().
  int64_t max_entries = 0;
  // Makes the graph that runs of the one that was captured, with the tensors of its first call. Null
  // leaves it as it is. May throw PythonError.
  std::function<std::shared_ptr<CapturedGraph>(const std::shared_ptr<CapturedGraph>&,
                                               const std::vector<Object>& examples)>
      backend;
  // Called for each entry that is made, before its first run. May throw PythonError.
  std::function<void(PyCodeObject*, const Entry&)> observer;
};

// Calls the function. Throws PythonError for whatever the call raises.
Object callCaptured(const std::shared_ptr<Region>& region, PyObject* function,
                    const std::vector<PyObject*>& arguments, PyObject* names);

// Calls the function with all of its callees run plainly.
Object callPlainly(PyObject* function, const std::vector<PyObject*>& arguments, PyObject* names);

// Leaves the code, also where others call it, to Python for good; with `callees` all that it calls, too.
void disableCode(PyCodeObject* code, bool callees = false);
bool isDisabled(PyCodeObject* code);

// Gives up all entries.
void resetCaptures();

// The number of entries that a code object may have in one region; afterwards other calls run
// plainly.
int64_t cacheSizeLimit();
void setCacheSizeLimit(int64_t value);

// Counts since the process began.
struct Counters {
  int64_t graphs = 0;     // captured, of at least one operator
  int64_t operators = 0;  // in these
  int64_t breaks = 0;     // entries that end before their frame does
  int64_t plain = 0;      // entries that run their frame plainly
};
const Counters& counters();

// Returns whether the calling thread evaluates a program symbolically.
bool isCapturing();
// Lets captured code see that it is captured: a call of the function is True there. It is kept.
void setCapturingQuestion(PyObject* function);
bool isCapturingQuestion(PyObject* function);

}  // namespace wick::capture

// Origins of the objects that a captured call reads, and the checks on them: a tree whose roots
// are the frame that starts, its function, and objects that are kept.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/bytecode/object.h"
#include "capture/guards/sizes.h"

namespace wick::capture {

// The way from an object to one that it holds.
enum class Access : uint8_t {
  // Roots.
  kSlot,      // slot `index` of the frame
  kFunction,  // the function of the frame
  kGlobals,   // the globals of the frame's function, a dict
  kBuiltins,  // the builtins of the frame, a dict
  kPinned,    // the object `key` itself
  // An attribute in the instance's own dict.
  kInstanceItem,
  // A slot or a C member of the class, which runs no code of Python.
  kMember,
  kTypeItem,  // an attribute of a class, looked up in the classes that it is derived from
  kListItem,
  kTupleItem,
  kDictItem,  // the value of the key `key`
  kDequeItem,
  kCellContents,
  kFunctionGlobals,
  kFunctionDefault,
  kFunctionKeywordDefault,
  kFunctionClosure,
  kMethodSelf,
  kMethodFunction,
  kKept,  // the result that a function with lru_cache keeps under the key `key`
};

// A fact about one tensor that a graph depends on; made by the world that the tensor is of.
class TensorGuard {
 public:
  virtual ~TensorGuard() = default;
  // Returns whether a call with this object may use the entry. Runs no code of Python, sets no
  // exception.
  virtual bool matches(PyObject* tensor) const = 0;
  virtual std::string text() const = 0;
  // Returns a size of a tensor that matches.
  virtual int64_t size(PyObject* tensor, int dim) const = 0;
};

struct Check {
  enum class Kind : uint8_t {
    kType,          // the class is exactly `object`, and its version is `number` unless that is 0
    kIdentity,      // the object is `object`, a class of the version `number` unless that is 0
    kEqual,         // the same class as `object`, and the same value, bit for bit
    kLength,        // a list, tuple, dict, set, deque or str of `number` elements
    kLacks,         // a dict, module or instance without the key `object`
    kLacksOwn,      // an object without the attribute `object` of its own
    kKeys,          // a dict whose keys are those of the tuple `object`, in this order
    kCode,          // a function with the code `object`
    kNoDefaults,    // a function without defaults
    kNumDefaults,   // a function with `number` defaults
    kLacksDefault,  // a function without a default for the keyword `object`
    kTensor,
    kPresent,      // there is an object at all
    kSetTable,     // a set whose table has the mask `number`, and nothing was taken out of it
    kHandlesNone,  // the thread handles no exception, whatever the object is
    kLacksKept,    // a function with lru_cache that keeps no result under the key `object`
    // Classes were registered with abstract ones `number` times, whatever the object is.
    kAbstractToken,
  };
  Kind kind;
  Object object;
  int64_t number = 0;
  std::shared_ptr<const TensorGuard> tensor;
};

struct Source {
  Access access = Access::kPinned;
  Source* parent = nullptr;
  int64_t index = 0;
  Object key;
  std::vector<Source*> children;
  std::vector<Check> checks;
  // The register that gets the object, -1 for none.
  int keep = -1;
  bool distinct = false;  // no other source with this mark holds the same object

  // Returns an expression for messages, for example `self.weight`.
  std::string text() const;
  // Returns the number of accesses from the root.
  int depth() const { return parent ? parent->depth() + 1 : 0; }
};

// A pair of objects that must be one and the same, or must not be.
struct PairCheck {
  int left = -1, right = -1;  // registers
  bool same = false;
};

// The frame that a call starts with. All are borrowed.
struct FrameRoots {
  PyObject* const* slots = nullptr;
  PyObject* function = nullptr;
  PyObject* globals = nullptr;
  PyObject* builtins = nullptr;
};

// All sources of one entry, and the checks on them. Not thread-safe: the caller holds the GIL.
class GuardTree {
 public:
  GuardTree() = default;
  GuardTree(const GuardTree&) = delete;

  // Returns the source, the same one for the same way.
  Source* root(Access access, int64_t index = 0, PyObject* key = nullptr);
  Source* child(Source* parent, Access access, int64_t index, PyObject* key);
  // Adds a check unless it is there.
  void add(Source* source, Check check);
  void addPair(Source* left, Source* right, bool same);
  // Adds the source to those that must hold an object each.
  void addDistinct(Source* source);
  // Gives the source a register, and returns it.
  int keep(Source* source);
  int numRegisters() const { return num_registers_; }

  // The open sizes of the entry.
  SizeTable& sizes() { return sizes_; }
  const SizeTable& sizes() const { return sizes_; }
  // Says that a symbol is the size of a tensor, or without a guard an int.
  // All sizes of one symbol must be equal.
  void addOpenSize(Source* source, std::shared_ptr<const TensorGuard> guard, int dim, int symbol);
  // Returns the register that gets the value of an expression, an int.
  int keepSize(const SizeExpression& expression);
  // Returns the open sizes of the call whose objects are in the registers.
  std::vector<int64_t> openSizes(const Object* registers) const;

  // Gives up the sources that nothing checks and nobody keeps.
  void finish();
  // Takes everything from another tree, which is empty then.
  void take(GuardTree& other);
  // Returns whether all checks hold, with the kept objects in `registers` (numRegisters() of
  // them). Runs no code of Python, and leaves no exception.
  bool matches(const FrameRoots& roots, Object* registers) const;
  // Returns the first check that fails as text, or an empty one.
  std::string whyNot(const FrameRoots& roots) const;

  // Returns a line for each check.
  std::vector<std::string> lines() const;
  int numChecks() const;

 private:
  Source* find(Source* parent, Access access, int64_t index, PyObject* key) const;
  Source* make(Source* parent, Access access, int64_t index, PyObject* key);
  struct OpenSize {
    int64_t valueOf(const Object* registers) const;

    int at = -1;  // register of the tensor or int
    const Source* source = nullptr;
    std::shared_ptr<const TensorGuard> guard;
    int dim = 0, symbol = 0;
  };

  bool findSizes(Object* registers, std::string* why) const;
  bool visitAll(const FrameRoots& roots, Object* registers, std::string* why) const;

  std::deque<Source> sources_;
  std::vector<Source*> roots_;
  // Sources and checks by hashes of the ways to them, until finish().
  std::unordered_multimap<size_t, Source*> sources_by_hash_;
  std::unordered_multimap<size_t, std::pair<const Source*, size_t>> checks_by_hash_;
  std::vector<PairCheck> pairs_;
  std::vector<int> distinct_;  // registers
  SizeTable sizes_;
  std::vector<OpenSize> open_sizes_;
  std::vector<std::pair<int, SizeExpression>> kept_sizes_;  // by register
  int num_registers_ = 0;
};

// Returns the object that the access leads to; null without an exception where there is none. For
// roots, `parent` is ignored.
Object fetch(const Source& source, PyObject* parent, const FrameRoots& roots);

}  // namespace wick::capture

// What the names of a function mean while it is being compiled.
//
// A stack of frames, one a block. First-class values live in the graph: setting one emits
// prim::Store, reading one emits prim::Load, and the frame remembers only its type (conversion to
// SSA removes both). Everything else (modules, functions, classes) lives in the frame itself and
// cannot be assigned again from an inner block, because which one holds would depend on control
// flow.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/keyed_hash.h"
#include "frontend/resolver.h"
#include "frontend/sugared_value.h"

namespace wick {

// The Value of a SimpleValue; null for other sugared values.
Value* asSimple(const SugaredValuePtr& value);

// CompileError for a type that nests too deeply: statement by statement (`a = [a]`) a program can
// make types that could not be walked or printed.
void checkTypeSize(const SourceRange& range, const TypePtr& type);

class Environment : public std::enable_shared_from_this<Environment> {
 public:
  // `names` is shared by all frames of a function and numbers what declareLocal() declares; a frame
  // without a parent that belongs to a function all the same is given it.
  Environment(GraphFunction& fn, ResolverPtr resolver, Block* block,
              std::shared_ptr<Environment> parent, std::shared_ptr<size_t> names = nullptr);

  Block* block() const { return block_; }
  const std::shared_ptr<Environment>& parent() const { return parent_; }

  // Begins a scope: what Python's functions, lambdas and comprehensions have, and blocks have not.
  void beginScope() { scope_ = this; }
  // The frame that began the scope to which this one belongs.
  const Environment* scope() const { return scope_; }
  // Names that begin a life of their own in this frame: targets of a comprehension, parameters of a
  // local function.
  void declareLocal(const std::string& name);
  const std::shared_ptr<size_t>& names() const { return names_; }

  // `annotated` is the declared type when the assignment carries one. CompileError when the
  // variable lives in an outer block with another type.
  void set(const SourceRange& range, const std::string& name, const SugaredValuePtr& value,
           const TypePtr& annotated = nullptr);
  void set(const SourceRange& range, const std::string& name, Value* value);
  // A condition proved that the variable is of the narrower type of `value`. Inner blocks may still
  // assign what fits the type `before`, but for the bodies of loops, which run again.
  void refine(const SourceRange& range, const std::string& name, Value* value,
              const TypePtr& before);
  // This frame is the body of a loop.
  void setLoop() { loop_ = true; }
  // After an If: the variable was stored in both branches and has this type from now on. `wider` is
  // given when it was refined.
  void setType(const std::string& name, TypePtr type, const TypePtr& wider = nullptr);
  // Reading the variable reports this: it is not defined on every path, or not with one type. Both
  // messages show `where`, too.
  void setError(const SourceRange& where, const std::string& name, std::string message);
  // The same, if nothing else has the name: a builtin or a global may.
  void setHint(const SourceRange& where, const std::string& name, std::string message);
  void remove(const SourceRange& range, const std::string& name);

  // The type that an inner block's assignment to a refined variable has to fit; null when there is
  // none.
  TypePtr widerType(const std::string& name) const;
  SugaredValuePtr findInThisFrame(const std::string& name);
  SugaredValuePtr findInParentFrame(const std::string& name);
  SugaredValuePtr findInAnyFrame(const std::string& name);
  // What findInAnyFrame() would find, if it is no first-class value; leaves the graph alone.
  const SugaredValue* findSugared(const std::string& name) const;
  // The type of the first-class variable that findInAnyFrame() would find, or null; leaves the
  // graph alone.
  TypePtr typeOf(const std::string& name) const;
  // Whether this frame stores the first-class variable.
  bool definesVariable(const std::string& name) const { return types_.contains(name); }
  // Whether this frame has the variable only because a condition proved something about it.
  bool isOnlyRefined(const std::string& name) const { return refined_.contains(name); }
  // Whether findInAnyFrame() would find it; leaves the graph alone.
  bool isVisible(const std::string& name) const;
  // The name under which an enclosing frame stores the variable.
  std::string storeName(const std::string& name) const;
  // The variable, else a builtin or global. Null when there is none and it is not `required`.
  SugaredValuePtr get(const SourceRange& range, const std::string& name, bool required = true);
  Value* getValue(const SourceRange& range, const std::string& name);

  // First-class variables stored in this frame, in a fixed order.
  std::set<std::string> definedVariables() const;
  // Names that a reader may have meant instead.
  std::set<std::string> visibleNames() const;
  const KeyedMap<std::string, SugaredValuePtr>& sugared() const { return values_; }
  const ResolverPtr& resolver() const { return resolver_; }

 private:
  [[noreturn]] void failUndefined(const SourceRange& range, const std::string& name);
  // Why a name has no value, and the statement that did it.
  struct Absence {
    SourceRange where;
    std::string message;
  };
  using Absences = KeyedMap<std::string, Absence>;
  const Absence* findAbsence(Absences Environment::*kind, const std::string& name) const;
  bool isBoundary(const std::string& name) const {
    return !locals_.empty() && locals_.count(name) != 0;
  }
  // The frame outside of this one in which to look for the name next.
  Environment* outside(const std::string& name) const {
    return far_ && !far_->names.contains(name) ? far_->next : outer_;
  }
  void noteFarFrames();
  bool isEmpty() const {
    return values_.empty() && types_.empty() && errors_.empty() && hints_.empty() &&
           locals_.empty() && !loop_;
  }

  GraphFunction& fn_;
  ResolverPtr resolver_;
  Block* block_;
  std::shared_ptr<Environment> parent_;
  std::shared_ptr<size_t> names_;
  const Environment* scope_;
  // The nearest frame outside that held anything when this one was made: lookups pass over the
  // empty frames of a long chain of `elif`.
  Environment* outer_;
  // In a deep chain some frames know what those between them and one far outside mention, so that
  // a lookup need not ask each of them. They do not change while this frame is looked at.
  struct Far {
    KeyedSet<std::string> names;
    bool loops = false;  // whether one of them is the body of a loop
    Environment* next = nullptr;
  };
  size_t depth_ = 0;  // of frames outer_
  std::unique_ptr<Far> far_;
  KeyedMap<std::string, SugaredValuePtr> values_;
  KeyedMap<std::string, TypePtr> types_;
  KeyedMap<std::string, TypePtr> wider_;  // of refined variables, before
  KeyedSet<std::string> refined_;         // of types_, those that nothing else has set
  bool loop_ = false;
  Absences errors_;
  Absences hints_;
  std::map<std::string, std::string> locals_;  // name -> the name it is stored under
};

}  // namespace wick

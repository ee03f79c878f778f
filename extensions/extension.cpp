#include "extensions/extension.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>

#include "autograd/formula.h"
#include "core/conform.h"
#include "core/error.h"
#include "core/native_class.h"
#include "ir/graph.h"
#include "ir/operator.h"
#include "ir/shape_facts.h"

namespace wick {

namespace {

// What a call needs beside what every operator has.
struct ExtensionRecord : OperatorRecord {
  std::string text;
  ExtensionFunction function;
  OperatorTraits traits;
  std::optional<size_t> like;
  // How many more calls look whether the rule told the truth.
  mutable std::atomic<int> checks{kChecks};
  static constexpr int kChecks = 64;
};

// ---- classes by their C++ types ----

struct TypeTable {
  std::shared_mutex mutex;
  std::vector<std::pair<detail::TypeKey, std::string>> names;
};
TypeTable& typeTable() {
  static TypeTable* const made = new TypeTable;
  return *made;
}
std::string classNameOf(const detail::TypeKey& type) {
  TypeTable& table = typeTable();
  std::shared_lock lock(table.mutex);
  const auto found =
      std::ranges::find(table.names, type, &std::pair<detail::TypeKey, std::string>::first);
  return found == table.names.end() ? "" : found->second;
}

// ---- shape rules ----

const ExtensionRecord& recordOf(const Operator& op) {
  return static_cast<const ExtensionRecord&>(op.record());
}

TensorType::Facts sharedFacts(const TensorType::Facts& of) {
  TensorType::Facts facts;
  facts.dtype = of.dtype;
  facts.device = of.device;
  facts.dim = of.dim;
  facts.sizes = of.sizes;
  return facts;
}

// The rule's answer, which must suit the schema.
std::vector<TypePtr> askRule(const Operator& op, std::span<const KnownArgument> arguments) {
  std::vector<TypePtr> types = recordOf(op).traits.shape(arguments);
  const std::vector<Argument>& returns = op.schema().returns();
  WICK_CHECK(types.size() == returns.size(), "{}: its shape rule gave {} types, expected {}",
             op.schema().name(), types.size(), returns.size());
  for (size_t i = 0; i < types.size(); ++i) {
    WICK_CHECK(types[i] && types[i]->isSubtypeOf(*returns[i].type),
               "{}: its shape rule gave {} for result {}, expected {}", op.schema().name(),
               types[i] ? types[i]->str() : "no type", i, returns[i].type->str());
  }
  return types;
}

std::vector<TypePtr> typesOfResults(const Node& node) {
  const Operator& op = *node.maybeOperator();
  const ExtensionRecord& record = recordOf(op);
  if (record.like) {
    const TensorType::Facts* facts = factsOf(node.input(*record.like));
    std::vector<TypePtr> types = nothingKnown(node);
    if (facts) types[0] = TensorType::create(sharedFacts(*facts));
    return types;
  }
  std::vector<KnownArgument> arguments;
  for (const Value* input : node.inputs()) arguments.push_back({input->type(), constantOf(input)});
  return askRule(op, arguments);
}

std::string shapeText(const Tensor& t) {
  return fmt::format("{}[{}]", toString(t.dtype()), fmt::join(t.sizes(), ", "));
}

void checkLike(const Operator& op, const IValue& argument, const IValue& result) {
  if (!argument.isTensor() || !result.isTensor()) return;
  const Tensor wanted = argument.toTensor();
  const Tensor found = result.toTensor();
  WICK_CHECK(wanted.dtype() == found.dtype() && std::ranges::equal(wanted.sizes(), found.sizes()) &&
                 wanted.device() == found.device(),
             "{}: the result is {}, but it was registered as like '{}', which is {}",
             op.schema().name(), shapeText(found), op.schema().arguments()[*recordOf(op).like].name,
             shapeText(wanted));
}

// What is true of a tensor, as a rule would say it.
TypePtr typeOf(const IValue& v, const TypePtr& declared) {
  if (!v.isTensor() || declared->kind() != TypeKind::Tensor) return declared;
  const Tensor t = v.toTensor();
  TensorType::Facts facts;
  facts.dtype = t.dtype();
  facts.device = t.device();
  facts.dim = t.sizes().size();
  facts.sizes.emplace(t.sizes().begin(), t.sizes().end());
  return TensorType::create(std::move(facts));
}

void checkRule(const Operator& op, std::span<const TypePtr> claimed,
               std::span<const IValue> results) {
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].isTensor()) continue;
    const auto* type = claimed[i]->as<TensorType>();
    if (!type) continue;
    const TensorType::Facts& facts = type->facts();
    const Tensor t = results[i].toTensor();
    bool right = (!facts.dtype || *facts.dtype == t.dtype()) &&
                 (!facts.dim || *facts.dim == t.sizes().size());
    for (size_t d = 0; right && facts.sizes && d < facts.sizes->size(); ++d) {
      const std::optional<int64_t>& size = (*facts.sizes)[d];
      right = !size || *size < 0 || *size == t.sizes()[d];
    }
    WICK_CHECK(right, "{}: its shape rule said {} for result {}, which is {}", op.schema().name(),
               claimed[i]->str(), i, shapeText(t));
  }
}

// ---- calls ----

template <class F>
decltype(auto) guarded(const std::string& name, F&& f) {
  try {
    return f();
  } catch (const RuntimeError&) {
    throw;
  } catch (const InternalError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& e) {
    throwRuntimeError("{}: {}", name, e.what());
  } catch (...) {
    throwRuntimeError("{}: an exception of unknown type", name);
  }
}

void callExtension(CallFrame& frame) {
  const Operator& op = *frame.op;
  const ExtensionRecord& record = recordOf(op);
  const std::span<const IValue> arguments(frame.args, frame.num_args);
  const std::span<IValue> results(frame.results, frame.num_results);
  std::vector<TypePtr> claimed;
  if (record.traits.shape && record.checks.load(std::memory_order_relaxed) > 0) {
    record.checks.fetch_sub(1, std::memory_order_relaxed);
    std::vector<KnownArgument> known;
    for (size_t i = 0; i < arguments.size(); ++i) {
      known.push_back({typeOf(arguments[i], op.schema().arguments()[i].type), arguments[i]});
    }
    claimed = askRule(op, known);
  }
  guarded(op.schema().name(), [&] { record.function(arguments, results); });
  for (size_t i = 0; i < results.size(); ++i) {
    const TypePtr& declared = op.schema().returns()[i].type;
    if (declared->kind() == TypeKind::Tensor && results[i].isTensor()) continue;
    try {
      results[i] = conform(std::move(results[i]), declared);
    } catch (const RuntimeError& error) {
      throwRuntimeError("{}: result {}: {}", op.schema().name(), i, error.brief());
    }
  }
  if (record.like) checkLike(op, frame.args[*record.like], results[0]);
  if (!claimed.empty()) checkRule(op, claimed, results);
}

// ---- what is registered ----

bool isIdentifier(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// Whether a function with parameters of type `function` takes what is declared as `schema`.
bool suits(const TypePtr& function, const TypePtr& schema) {
  return function->kind() == TypeKind::Any || sameType(function, schema);
}

void checkSignature(const FunctionSchema& schema, const detail::Signature& signature) {
  const auto check = [&](const char* what, const std::vector<TypePtr>& found,
                         const std::vector<Argument>& declared) {
    if (found.size() != declared.size()) {
      throw UsageError(fmt::format("{}: its function has {} {}s, the schema {}", schema.str(),
                                   found.size(), what, declared.size()));
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (suits(found[i], declared[i].type)) continue;
      throw UsageError(fmt::format("{}: {} {}{} is declared as {}, but the function has {}",
                                   schema.str(), what, i,
                                   declared[i].name.empty() ? "" : " '" + declared[i].name + "'",
                                   declared[i].type->str(), found[i]->str()));
    }
  };
  check("argument", signature.arguments, schema.arguments());
  check("result", signature.results, schema.returns());
}

// Returns the flags of a record that the traits of an operator ask for.
uint64_t flagsOf(const OperatorTraits& traits) {
  uint64_t flags = kNoFlags;
  if (traits.random) flags |= kNondeterministic;
  if (traits.side_effects) flags |= kSideEffects;
  if (traits.raises_by_elements) flags |= kRaisesByElements;
  if (traits.reads_strides) flags |= kReadsStrides;
  if (traits.row_major) flags |= kRowMajor;
  if (traits.autocast == AutocastTrait::Reduced) flags |= kCastReduced;
  if (traits.autocast == AutocastTrait::Full) flags |= kCastFull;
  if (traits.autocast == AutocastTrait::Widest) flags |= kCastWidest;
  return flags;
}

bool holdsObject(const TypePtr& type) {
  return type->kind() == TypeKind::Class || std::ranges::any_of(type->contained(), holdsObject);
}
bool makesObjects(const FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(),
                             [](const Argument& result) { return holdsObject(result.type); });
}

FunctionSchema schemaOf(const std::string& text) {
  try {
    return parseSchema(text);
  } catch (const RuntimeError& error) {
    throw UsageError(fmt::format("the schema {} cannot be read: {}", text, error.brief()));
  }
}

// One registration at a time.
std::mutex& registrationMutex() {
  static auto* const made = new std::mutex;
  return *made;
}

// Records live as long as the process.
std::deque<ExtensionRecord>& keptRecords() {
  static auto* const made = new std::deque<ExtensionRecord>;
  return *made;
}

}  // namespace

namespace detail {

HeldObject::~HeldObject() {
  destroy_(object_);
}

// GCC: "… of() [with T = mylib::Counter]", clang: "… of() [T = mylib::Counter]".
std::string TypeKey::name() const {
  std::string_view text = text_;
  constexpr std::string_view kBefore = "T = ";
  if (const size_t at = text.find(kBefore); at != text.npos)
    text.remove_prefix(at + kBefore.size());
  if (text.ends_with(']')) text.remove_suffix(1);
  return std::string(text);
}

TypePtr classOfType(const TypeKey& type) {
  if (TypePtr found = findNativeClass(classNameOf(type))) return found;
  throw UsageError(fmt::format("the C++ type {} is no class of an extension", type.name()));
}

IValue makeHeld(const TypeKey& type, Ref<RefCounted> held) {
  const std::string name = classNameOf(type);
  WICK_CHECK(!name.empty(), "the C++ type {} is no class of an extension", type.name());
  return makeNative(name, std::move(held));
}

void* heldObject(const TypeKey& type, const IValue& object) {
  if (!object.isObject()) throwExpected(classOfType(type)->annotation(), object);
  const auto* held = dynamic_cast<HeldObject*>(&heldBy("extension", object));
  if (!held || held->type() != type) throwExpected(classOfType(type)->annotation(), object);
  return held->object();
}

void holdObject(const IValue& object, Ref<RefCounted> held) {
  WICK_CHECK(object.isObject() && nativeClassOf(*object.toObject().type()),
             "expected an object of an extension's class, got {}", object.tagName());
  // Methods that run at the time may use what it holds.
  WICK_CHECK(!object.toObject().slot(0).isCapsule(), "{}: the object has been made already",
             object.toObject().type()->annotation());
  object.toObject().setSlot(0, IValue::capsule(std::move(held)));
}

}  // namespace detail

struct Extension::State {
  struct Definition {
    std::string text;  // the schema with the namespace
    ExtensionFunction function;
    OperatorTraits traits;
    std::function<detail::Signature()> signature;
  };
  explicit State(std::string n) : name(std::move(n)) {}

  std::string name;
  std::deque<Definition> definitions;
  std::vector<std::unique_ptr<ClassDefinition>> classes;
  bool added = false;

  std::string qualified(const std::string& class_name) const {
    return std::string(kNativeClassPrefix) + name + "." + class_name;
  }
  std::string operatorOf(const std::string& class_name, const std::string& method) const {
    return name + "::" + class_name + "__" + method;
  }
  void addClasses(std::vector<std::string>& taken_back);
  void addMethods(const std::string& class_name, std::vector<ClassDefinition::Method>& methods,
                  NativeClass& native);
  void addOperators();
  FunctionSchema checkedSchema(const Definition& definition,
                               const std::vector<std::string>& known) const;
};

namespace {

// "push(int x) -> ()" with the object in front: "mylib::Stack__push(CLASS self, int x) -> ()".
std::string withObject(const std::string& declaration, const std::string& op,
                       const std::string& class_name) {
  const size_t open = declaration.find('(');
  const size_t after = declaration.find_first_not_of(' ', open + 1);
  const bool alone = after != std::string::npos && declaration[after] == ')';
  return op + "(" + class_name + " self" + (alone ? "" : ", ") + declaration.substr(open + 1);
}

// The schema that the function's own types give.
std::string declarationOf(const std::string& method, const detail::Signature& signature) {
  std::string text = method + "(";
  for (size_t i = 1; i < signature.arguments.size(); ++i) {
    text += fmt::format("{}{} _{}", i == 1 ? "" : ", ", signature.arguments[i]->str(), i - 1);
  }
  text += ") -> ";
  std::string results;
  for (const TypePtr& type : signature.results) {
    results += (results.empty() ? "" : ", ") + type->str();
  }
  return text + (signature.results.size() == 1 ? results : "(" + results + ")");
}

}  // namespace

Extension::Extension(std::string name_space)
    : state_(std::make_unique<State>(std::move(name_space))) {
  if (!isIdentifier(state_->name) || state_->name == "aten" || state_->name == "prim") {
    throw UsageError(
        fmt::format("'{}' cannot be the namespace of an extension: expected an "
                    "identifier other than aten and prim",
                    state_->name));
  }
}
Extension::~Extension() = default;

Extension& Extension::opOf(std::string schema, ExtensionFunction function, OperatorTraits traits,
                           std::function<detail::Signature()> signature) {
  state_->definitions.push_back({state_->name + "::" + std::move(schema), std::move(function),
                                 std::move(traits), std::move(signature)});
  return *this;
}

void Extension::keep(std::unique_ptr<ClassDefinition> definition) {
  state_->classes.push_back(std::move(definition));
}

Extension& Extension::objectOf(std::string name, std::vector<PlainMethod> methods,
                               std::function<IValue(const RefCounted&)> get_state,
                               std::function<Ref<RefCounted>(const IValue&)> set_state) {
  auto made = std::make_unique<ClassDefinition>(std::move(name));
  for (PlainMethod& m : methods) {
    made->methods_.push_back({std::move(m.declaration), std::move(m.function), {}});
  }
  made->get_state_ = std::move(get_state);
  made->set_state_ = std::move(set_state);
  keep(std::move(made));
  return *this;
}

// Their operators are written down, and checked with all others.
void Extension::State::addMethods(const std::string& class_name,
                                  std::vector<ClassDefinition::Method>& methods,
                                  NativeClass& native) {
  for (ClassDefinition::Method& m : methods) {
    const std::string method(m.declaration.substr(0, m.declaration.find('(')));
    if (!isIdentifier(method)) {
      throw UsageError(
          fmt::format("'{}' cannot be the name of a method of {}", method, class_name));
    }
    const auto same = [&](const NativeMethod& n) { return n.name == method; };
    if (std::ranges::any_of(native.methods, same)) {
      throw UsageError(fmt::format("{} has two methods {}", class_name, method));
    }
    native.methods.push_back({method, operatorOf(class_name, method)});
  }
}

void Extension::State::addClasses(std::vector<std::string>& taken_back) {
  for (const auto& made : classes) {
    ClassDefinition& c = *made;
    if (!isIdentifier(c.name_)) {
      throw UsageError(fmt::format("'{}' cannot be the name of a class", c.name_));
    }
    NativeClass native;
    native.name = qualified(c.name_);
    native.get_state = c.get_state_;
    if (c.set_state_) {
      native.set_state = [set = c.set_state_, name = native.name](const IValue& state) {
        return guarded(name, [&] { return set(state); });
      };
    }
    addMethods(c.name_, c.methods_, native);
    if (c.type_ && !classNameOf(*c.type_).empty()) {
      throw UsageError(fmt::format("{}: its C++ type is already the class {}", native.name,
                                   classNameOf(*c.type_)));
    }
    const std::string name = native.name;
    registerNativeClass(std::move(native));
    taken_back.push_back(name);
    if (c.type_) {
      std::unique_lock lock(typeTable().mutex);
      typeTable().names.emplace_back(*c.type_, name);
    }
  }
  // With all classes known, what methods take and give.
  for (const auto& made : classes) {
    for (ClassDefinition::Method& m : made->methods_) {
      const std::string method(m.declaration.substr(0, m.declaration.find('(')));
      const bool plain = m.declaration.find('(') == std::string::npos;
      if (plain && !m.signature) {
        throw UsageError(fmt::format("{}.{}: expected a schema, such as \"{}(int x) -> int\"",
                                     made->name_, method, method));
      }
      const std::string declaration = plain ? declarationOf(method, m.signature()) : m.declaration;
      OperatorTraits traits;
      traits.side_effects = true;    // objects change
      traits.derivative = "others";  // what a method computes by operators, these record
      definitions.push_back(
          {withObject(declaration, operatorOf(made->name_, method), qualified(made->name_)),
           m.function, std::move(traits), m.signature});
    }
  }
}

FunctionSchema Extension::State::checkedSchema(const Definition& d,
                                               const std::vector<std::string>& known) const {
  FunctionSchema schema = schemaOf(d.text);
  if (!schema.name().starts_with(name + "::") ||
      !isIdentifier(std::string_view(schema.name()).substr(name.size() + 2))) {
    throw UsageError(
        fmt::format("{}: expected a schema without a namespace, and a name that is an "
                    "identifier",
                    d.text));
  }
  if (schema.isVararg() || schema.isVarret()) {
    throw UsageError(fmt::format("{}: the number of arguments and results must be said", d.text));
  }
  if (std::ranges::binary_search(known, schema.name())) {
    throw UsageError(fmt::format("there is already an operator {}", schema.name()));
  }
  if (!d.function) throw UsageError(fmt::format("{}: it has no function", d.text));
  if (d.signature) checkSignature(schema, d.signature());
  const std::string& like = d.traits.result_like;
  if (!like.empty() && d.traits.shape) {
    throw UsageError(fmt::format("{}: result_like and shape exclude each other", d.text));
  }
  if (!like.empty()) {
    const std::optional<size_t> index = schema.argumentIndex(like);
    if (!index || schema.arguments()[*index].type->kind() != TypeKind::Tensor ||
        schema.returns().empty() || schema.returns()[0].type->kind() != TypeKind::Tensor) {
      throw UsageError(
          fmt::format("{}: '{}' must be an argument that is a Tensor, and the first "
                      "result a Tensor",
                      d.text, like));
    }
  }
  return schema;
}

void Extension::State::addOperators() {
  const std::vector<std::string> known = OperatorRegistry::instance().names();
  std::vector<FunctionSchema> schemas;
  std::set<std::string> own;
  for (const Definition& d : definitions) {
    schemas.push_back(checkedSchema(d, known));
    const std::string full = schemas.back().name() + "." + schemas.back().overload();
    if (!own.insert(full).second) {
      throw UsageError(fmt::format("{} is defined twice", schemas.back().name()));
    }
  }
  // Records first as nobody knows them, so that derivatives can be tried.
  std::deque<ExtensionRecord> records;
  for (size_t i = 0; i < definitions.size(); ++i) {
    Definition& d = definitions[i];
    ExtensionRecord& record = records.emplace_back();
    record.text = d.text;
    record.schema = record.text.c_str();
    record.kernel = &callExtension;
    record.function = d.function;
    record.traits = d.traits;
    record.like = schemas[i].argumentIndex(d.traits.result_like);
    if (record.like || record.traits.shape) record.shape = &typesOfResults;
    // An object that a call makes is another one each time, for programs may change it.
    record.flags |= flagsOf(d.traits);
    if (makesObjects(schemas[i])) record.flags |= kNondeterministic;
    if (d.traits.derivative.empty()) continue;
    const Operator tried(schemas[i], Symbol::fromQualString(schemas[i].name()), record,
                         Operator::Form::Base);
    const std::string wrong = autograd::formulaError(tried, d.traits.derivative);
    if (!wrong.empty()) throw UsageError(fmt::format("the derivative of {}: {}", d.text, wrong));
  }
  // Nothing can go wrong from here on but memory.
  for (size_t i = 0; i < records.size(); ++i) {
    ExtensionRecord& kept = keptRecords().emplace_back();
    static_cast<OperatorRecord&>(kept) = records[i];
    kept.text = std::move(records[i].text);
    kept.schema = kept.text.c_str();
    kept.function = std::move(records[i].function);
    kept.traits = std::move(records[i].traits);
    kept.like = records[i].like;
    if (!kept.traits.derivative.empty()) {
      const std::string& overload = schemas[i].overload();
      autograd::addFormula(schemas[i].name() + (overload.empty() ? "" : "." + overload),
                           kept.traits.derivative);
    }
    OperatorRegistry::instance().add(std::span(static_cast<const OperatorRecord*>(&kept), 1));
  }
}

void Extension::add() {
  if (state_->added) throw UsageError(fmt::format("{} was added before", state_->name));
  std::lock_guard lock(registrationMutex());
  std::vector<std::string> taken_back;
  const size_t plain = state_->definitions.size();
  try {
    state_->addClasses(taken_back);
    state_->addOperators();
    state_->added = true;
  } catch (...) {
    state_->definitions.resize(plain);
    std::unique_lock types(typeTable().mutex);
    std::erase_if(typeTable().names, [&](const auto& entry) {
      return std::ranges::find(taken_back, entry.second) != taken_back.end();
    });
    for (const std::string& name : taken_back) withdrawNativeClass(name);
    throw;
  }
}

}  // namespace wick

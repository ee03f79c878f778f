#include "ir/operator.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/memory_overlap.h"
#include "ir/device_kernels.h"
#include "ir/graph.h"

namespace wick {

namespace {

// "aten::add" of "aten::add.Tensor(Tensor self, …".
std::string_view recordName(std::string_view schema) {
  return schema.substr(0, schema.find_first_of(".("));
}

// The alias set of a derived form's written argument; lower-case letters are the schemas' own.
std::shared_ptr<const AliasInfo> writtenAlias() {
  auto alias = std::make_shared<AliasInfo>();
  alias->is_write = true;
  alias->before = alias->after = {"a"};
  return alias;
}

// name_(Tensor(a!) self, …) -> Tensor(a!)
FunctionSchema inplaceSchema(const FunctionSchema& base) {
  std::vector<Argument> arguments = base.arguments();
  arguments.at(0).alias = writtenAlias();
  std::vector<Argument> returns = base.returns();
  returns.at(0).alias = arguments[0].alias;
  return FunctionSchema(base.name() + "_", base.overload(), std::move(arguments),
                        std::move(returns));
}

// name.overload_out(…, *, Tensor(a!) out) -> Tensor(a!). The overload of an unnamed base is "out",
// and that of a base named Tensor too unless it is taken.
FunctionSchema outSchema(const FunctionSchema& base, bool out_taken) {
  std::vector<Argument> arguments = base.arguments();
  Argument out;
  out.name = "out";
  out.type = types::Tensor();
  out.kwarg_only = true;
  out.alias = writtenAlias();
  std::vector<Argument> returns = base.returns();
  returns.at(0).alias = out.alias;
  arguments.push_back(std::move(out));
  std::string overload = base.overload().empty()                     ? "out"
                         : base.overload() == "Tensor" && !out_taken ? "out"
                                                                     : base.overload() + "_out";
  return FunctionSchema(base.name(), std::move(overload), std::move(arguments), std::move(returns));
}

}  // namespace

namespace {

std::atomic<Operator::Recorder> set_recorder{nullptr};

// Returns what the record says of the dtypes of out= arguments.
OutputRule outputRuleOf(const OperatorRecord& record) {
  if (record.flags & kOutSame) return OutputRule::Same;
  if (record.flags & kOutAny) return OutputRule::Any;
  if (record.flags & kOutReal) return OutputRule::Real;
  return record.flags & kOutBoolean ? OutputRule::Boolean : OutputRule::Castable;
}

// Tensor, Tensor?, and lists of them.
bool holdsTensors(const TypePtr& type) {
  if (const auto* optional = type->as<OptionalType>()) return holdsTensors(optional->element());
  if (const auto* list = type->as<ListType>()) return holdsTensors(list->element());
  return type->kind() == TypeKind::Tensor;
}

}  // namespace

void Operator::setRecorder(Recorder recorder) {
  set_recorder.store(recorder, std::memory_order_release);
}

bool Operator::listHasHistory(const IValue& list) {
  const std::vector<IValue>& elements = list.elements();
  // The elements of a list are of one kind.
  if (elements.empty() || !(elements[0].isTensor() || elements[0].isNone())) return false;
  return std::ranges::any_of(elements,
                             [](const IValue& e) { return e.isTensor() && hasHistory(e); });
}

void Operator::record(IValue* args, size_t num_args, IValue* results, size_t num_results,
                      uint64_t borrowed) const {
  if (const Recorder found = set_recorder.load(std::memory_order_acquire)) {
    found(*this, args, num_args, results, num_results, borrowed);
  } else {
    callKernel(args, num_args, results, num_results, borrowed);
  }
}

Operator::Operator(FunctionSchema schema, Symbol symbol, const OperatorRecord& record, Form form)
    : schema_(std::move(schema)), symbol_(symbol), record_(record), form_(form) {
  for (size_t i = 0; i < std::min<size_t>(schema_.arguments().size(), 64); ++i) {
    const auto& alias = schema_.arguments()[i].alias;
    if (alias && (alias->is_write || (!alias->contained.empty() && alias->contained[0].is_write))) {
      written_ |= uint64_t{1} << i;
    }
  }
  if (written_ != 0 && form_ != Form::Inplace) output_rule_ = outputRuleOf(record_);
  if (record_.writes) readUnannotatedWrites();
  findKernelsOfKinds();
  for (size_t i = 0; i < std::min<size_t>(schema_.arguments().size(), 64); ++i) {
    if (holdsTensors(schema_.arguments()[i].type)) tensors_ |= uint64_t{1} << i;
  }
  for (const Argument& result : schema_.returns()) {
    makes_views_ |= !has(kNotDifferentiable) && tensors_ != 0 && result.alias && written_ == 0 &&
                    holdsTensors(result.type);
  }
}

void Operator::readUnannotatedWrites() {
  bool condition = false;
  std::string_view rest = record_.writes;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (word == "if") {
      condition = true;
      continue;
    }
    const std::optional<size_t> index = schema_.argumentIndex(word);
    WICK_ASSERT(index && *index < 64, "{} has no argument {}", schema_.str(), word);
    if (condition) {
      write_condition_ = index;
    } else {
      unannotated_ |= uint64_t{1} << *index;
    }
  }
}

uint64_t Operator::unannotatedInCall(const Node& node) const {
  const std::vector<Value*>& inputs = node.inputs();
  if (write_condition_ && *write_condition_ < inputs.size()) {
    const std::optional<IValue> condition = constantOf(inputs[*write_condition_]);
    if (condition && condition->isBool() && !condition->toBool()) return 0;
  }
  uint64_t written = unannotated_;
  for (size_t i = 0; i < std::min<size_t>(inputs.size(), 64); ++i) {
    if ((written >> i & 1) == 0) continue;
    const std::optional<IValue> constant = constantOf(inputs[i]);
    if (constant && constant->isNone()) written &= ~(uint64_t{1} << i);
  }
  return written;
}

// Before the kernel runs, because it may move out of its arguments.
void Operator::bumpWritten(const IValue* args, size_t num_args) const {
  if (has(kChangesHistory)) return;
  auto bump = [](const IValue& v) {
    if (!v.isTensor()) return;
    static_cast<TensorImpl*>(v.rawObject())->storage->bumpVersion();
  };
  for (uint64_t rest = written_; rest != 0; rest &= rest - 1) {
    size_t i = static_cast<size_t>(std::countr_zero(rest));
    if (i >= num_args) break;
    bump(args[i]);
    // t[](a!) is a list that is written, Tensor(a!)[] one of tensors that are.
    const auto& contained = schema_.arguments()[i].alias->contained;
    if (args[i].isList() && !contained.empty() && contained[0].is_write) {
      for (const IValue& e : args[i].elements()) bump(e);
    }
  }
}

void Operator::checkOverlap(const IValue* args, size_t num_args) const {
  const size_t written = form_ == Form::Out ? num_args - 1 : 0;
  if (!args[written].isTensor() || !args[written].toTensor().defined()) return;
  const Tensor destination = args[written].toTensor();
  // The out= form of what writes into self copies self first.
  const bool takes_self = has(kRefusesPartialOverlap) || has(kInplaceForm);
  for (size_t i = 0; i < num_args; ++i) {
    if (i == written) continue;
    const auto check = [&](const IValue& v) {
      if (!v.isTensor() || !v.toTensor().defined()) return;
      if (has(kRefusesPartialOverlap) || (i == 0 && takes_self)) {
        checkNoPartialOverlap(destination, v.toTensor());
      } else {
        checkNoOverlap(destination, v.toTensor());
      }
    };
    check(args[i]);
    if (!args[i].isList()) continue;
    for (const IValue& e : args[i].elements()) {
      // A mask is read before anything is written.
      const bool mask =
          has(kInplaceForm) && e.isTensor() && e.toTensor().defined() &&
          (e.toTensor().dtype() == DType::Bool || e.toTensor().dtype() == DType::Byte);
      if (!mask) check(e);
    }
  }
}

void Operator::callKernel(IValue* args, size_t num_args, IValue* results, size_t num_results,
                          uint64_t borrowed) const {
  if (written_ != 0) {
    if (has(kRefusesPartialOverlap) || has(kRefusesOverlap)) checkOverlap(args, num_args);
    bumpWritten(args, num_args);
  }
  if (kindsInUse()) [[unlikely]] {
    if (const TensorKind kind = kindOfArguments(args, num_args); kind != TensorKind::Dense) {
      callForKind(kind, args, num_args, results, num_results, borrowed);
      return;
    }
    if (const DeviceType type = deviceOfArguments(*this, args, num_args); type != DeviceType::CPU) {
      callOnDevice(type, {args, num_args, results, num_results, this, borrowed});
      return;
    }
    if (tensors_ != 0 && !defaultDevice().isCpu()) {
      const OnCpuScope here;
      if (form_ != Form::Base) return callDerived(args, num_args, results, num_results, borrowed);
      CallFrame frame{args, num_args, results, num_results, this, borrowed};
      return record_.kernel(frame);
    }
  }
  if (form_ != Form::Base) {
    callDerived(args, num_args, results, num_results, borrowed);
    return;
  }
  CallFrame frame{args, num_args, results, num_results, this, borrowed};
  record_.kernel(frame);
}

namespace {

// Whether nothing but this dtype comes of the arguments: one has it, and none a wider one.
bool computesIn(DType dtype, std::span<const IValue> args) {
  bool found = false, wider = false;
  auto look = [&](const IValue& v) {
    if (!v.isTensor() || !v.toTensor().defined()) return;
    const DType own = v.toTensor().dtype();
    found |= own == dtype;
    wider |= own != dtype && promoteTypes(own, dtype) != dtype;
  };
  for (const IValue& v : args) {
    look(v);
    if (v.isList()) std::ranges::for_each(v.elements(), look);
  }
  return found && !wider;
}

}  // namespace

void Operator::callDerived(IValue* args, size_t num_args, IValue* results, size_t num_results,
                           uint64_t borrowed) const {
  Tensor destination = args[form_ == Form::Inplace ? 0 : num_args - 1].toTensor();
  WICK_CHECK(destination.defined(), "{}: expected a tensor to write to, got None", schema_.name());
  WICK_CHECK(destination.storage()->writable(), "{}: the destination's memory is read-only",
             schema_.name());
  const size_t num_taken = form_ == Form::Out ? num_args - 1 : num_args;
  // A kernel casts what it writes; where the result's dtype decides, it must be seen first.
  // Where any dtype will do, integers also take what no cast permits: the kernel would refuse it.
  const bool copied =
      output_rule_ == OutputRule::Any && isIntegral(destination.dtype(), /*include_bool=*/true);
  const bool direct = form_ == Form::Inplace || output_rule_ == OutputRule::Castable ||
                      (!copied && computesIn(destination.dtype(), {args, num_taken}));
  CallFrame frame{
      args, num_taken, results, num_results, this, borrowed, direct ? &destination : nullptr};
  record_.kernel(frame);
  finishDerived(*this, destination, results[0]);
}

void finishDerived(const Operator& op, const Tensor& destination, IValue& result) {
  const Tensor given = result.toTensor();
  if (given.isSame(destination)) return;
  if (op.form() == Operator::Form::Inplace) {
    WICK_CHECK(std::ranges::equal(destination.sizes(), given.sizes()),
               "{}: the output of shape {} does not match the broadcast shape {}",
               op.schema().name(), formatInts(destination.sizes()), formatInts(given.sizes()));
  }
  checkOutput(op.schema().name(), op.outputRule(), given.dtype(), destination.dtype());
  if (!std::ranges::equal(destination.sizes(), given.sizes())) {
    destination.resize(given.sizes());
  }
  destination.copyFrom(given);
  result = IValue(destination);
}

// Names are indexed as tables arrive; schemas are parsed when a name is first asked for.
struct OperatorRegistry::State {
  struct Entry {
    std::vector<std::pair<const OperatorRecord*, Operator::Form>> records;
    std::vector<const Operator*> operators;
    bool parsed = false;
  };
  std::shared_mutex mutex;
  std::map<std::string, Entry, std::less<>> entries;
  std::vector<OperatorAlias> aliases;
  std::deque<Operator> storage;
  std::unordered_map<Symbol, const Entry*> ready;
  const std::vector<const Operator*> none{};

  // Both called with the mutex held exclusively.
  const Entry* parsedEntry(const std::string& name);
  void parse(const std::string& name, Entry& entry);
};

void OperatorRegistry::State::parse(const std::string& name, Entry& entry) {
  entry.parsed = true;
  Symbol symbol = Symbol::fromQualString(name);
  auto rename = [&](FunctionSchema s) {
    return s.name() == name ? s
                            : FunctionSchema(name, s.overload(), s.arguments(), s.returns(),
                                             s.isVararg(), s.isVarret());
  };
  auto hasOverload = [&](std::string_view overload) {
    return std::any_of(entry.operators.begin(), entry.operators.end(),
                       [&](const Operator* o) { return o->schema().overload() == overload; });
  };
  for (auto [record, form] : entry.records) {
    FunctionSchema base = parseSchema(record->schema);
    FunctionSchema schema = form == Operator::Form::Base      ? std::move(base)
                            : form == Operator::Form::Inplace ? inplaceSchema(base)
                                                              : outSchema(base, hasOverload("out"));
    bool taken = hasOverload(schema.overload());
    // A form written out in a table wins over the derived one.
    if (taken && form != Operator::Form::Base) continue;
    WICK_ASSERT(!taken, "the operator {} is registered twice", schema.str());
    storage.emplace_back(rename(std::move(schema)), symbol, *record, form);
    entry.operators.push_back(&storage.back());
  }
}

const OperatorRegistry::State::Entry* OperatorRegistry::State::parsedEntry(
    const std::string& name) {
  auto it = entries.find(name);
  if (it == entries.end()) return nullptr;
  if (!it->second.parsed) parse(name, it->second);
  return &it->second;
}

OperatorRegistry::OperatorRegistry() : state_(std::make_unique<State>()) {}

OperatorRegistry& OperatorRegistry::instance() {
  static OperatorRegistry* registry =
      new OperatorRegistry;  // never destroyed: threads may outlive main
  return *registry;
}

void OperatorRegistry::add(std::span<const OperatorRecord> records,
                           std::span<const OperatorAlias> aliases) {
  std::unique_lock lock(state_->mutex);
  auto index = [&](const std::string& name, const OperatorRecord& r, Operator::Form form) {
    State::Entry& entry = state_->entries[name];
    WICK_ASSERT(!entry.parsed, "{} is registered after its first use", name);
    // Written-out forms come first, so that a derived one is known to be superfluous.
    auto at = form == Operator::Form::Base
                  ? std::find_if(entry.records.begin(), entry.records.end(),
                                 [](const auto& e) { return e.second != Operator::Form::Base; })
                  : entry.records.end();
    entry.records.insert(at, {&r, form});
  };
  for (const OperatorRecord& r : records) {
    std::string name(recordName(r.schema));
    index(name, r, Operator::Form::Base);
    if (r.flags & kInplaceForm) index(name + "_", r, Operator::Form::Inplace);
    if (r.flags & kOutForm) index(name, r, Operator::Form::Out);
  }
  state_->aliases.insert(state_->aliases.end(), aliases.begin(), aliases.end());
}

const std::vector<const Operator*>& OperatorRegistry::overloads(Symbol name) {
  {
    std::shared_lock lock(state_->mutex);
    if (auto it = state_->ready.find(name); it != state_->ready.end()) return it->second->operators;
  }
  std::unique_lock lock(state_->mutex);
  std::string text(name.qualString());
  auto it = state_->entries.find(text);
  if (it == state_->entries.end()) {
    // An alias takes over the overloads of the other name, its in-place form those of name_.
    for (const OperatorAlias& alias : state_->aliases) {
      bool inplace = text == std::string(alias.alias) + "_";
      if (!inplace && text != alias.alias) continue;
      auto target = state_->entries.find(std::string(alias.name) + (inplace ? "_" : ""));
      if (target == state_->entries.end()) continue;
      it = state_->entries.emplace(text, State::Entry{target->second.records, {}, false}).first;
      break;
    }
    if (it == state_->entries.end()) return state_->none;
  }
  const State::Entry* entry = state_->parsedEntry(text);
  state_->ready.emplace(name, entry);
  return entry->operators;
}

const Operator* OperatorRegistry::find(Symbol name, std::string_view overload) {
  for (const Operator* op : overloads(name)) {
    if (op->schema().overload() == overload) return op;
  }
  return nullptr;
}

std::vector<std::string> OperatorRegistry::names() {
  std::shared_lock lock(state_->mutex);
  std::vector<std::string> out;
  for (const auto& [name, entry] : state_->entries) out.push_back(name);
  for (const OperatorAlias& alias : state_->aliases) {
    out.emplace_back(alias.alias);
    if (state_->entries.count(std::string(alias.name) + "_")) out.push_back(out.back() + "_");
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace wick

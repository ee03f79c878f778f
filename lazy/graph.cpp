#include "lazy/graph.h"

#include <pthread.h>

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "ir/dot.h"
#include "lazy/base.h"
#include "lazy/counting.h"
#include "lazy/device_below.h"
#include "lazy/effects.h"
#include "lazy/frozen_step.h"
#include "lazy/lazy.h"
#include "lazy/places.h"
#include "lazy/program.h"
#include "lazy/rolling.h"

namespace wick::lazy {

namespace {
// A graph of more records runs without being asked: keys and memory stay bounded.
constexpr size_t kMaxRecords = 4096;
}  // namespace

std::recursive_mutex& mutex() {
  static std::recursive_mutex& made = *new std::recursive_mutex;  // threads may outlive main
  // A process that is forked while another thread runs a graph would wait for that thread for ever. So
  // forks wait for the graph, and the child, which has another thread than the owner, gets a new mutex.
  static const int forks = pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); },
                                          [] { new (&mutex()) std::recursive_mutex; });
  static_cast<void>(forks);
  return made;
}

const Operator& operatorNamed(const char* name, const char* overload) {
  const Operator* op = OperatorRegistry::instance().find(Symbol::fromQualString(name), overload);
  WICK_ASSERT(op, "no operator {}.{}", name, overload);
  return *op;
}

Operand valueOperand(ValueId value) {
  return {Operand::Kind::Value, IValue(), ValueIds(value)};
}
Operand constantOperand(const IValue& value) {
  return {Operand::Kind::Constant, value, {}};
}
Operand intsOperand(IntSpan numbers) {
  return {Operand::Kind::Ints, IValue(makeIntList(numbers)), {}};
}
Operand numberOperand(const IValue& number) {
  const bool plain = number.isInt()      ? !isParameter(number.toInt())
                     : number.isDouble() ? number.toDouble() == 0 || number.toDouble() == 1
                                         : true;
  return {plain ? Operand::Kind::Constant : Operand::Kind::Number, number, {}};
}

bool sameConstant(const IValue& a, const IValue& b) {
  if (a.tag() != b.tag()) return false;
  switch (a.tag()) {
    case IValue::Tag::None:
      return true;
    case IValue::Tag::Int:
      return a.toInt() == b.toInt();
    case IValue::Tag::Bool:
      return a.toBool() == b.toBool();
    case IValue::Tag::Double:
      return std::bit_cast<uint64_t>(a.toDouble()) == std::bit_cast<uint64_t>(b.toDouble());
    case IValue::Tag::Complex:
      return a.toComplex() == b.toComplex();
    case IValue::Tag::Device:
      return a.toDevice() == b.toDevice();
    case IValue::Tag::String:
      return a.toString() == b.toString();
    case IValue::Tag::List:
      return std::ranges::equal(a.elements(), b.elements(), sameConstant);
    default:
      return false;
  }
}

Graph::Graph() = default;
Graph::~Graph() = default;

const std::shared_ptr<Graph>& Graph::current() {
  static thread_local const std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  return graph;
}

ValueId Graph::input(const Tensor& data) {
  const Geometry view = Geometry::of(data);
  const auto [first, last] = known_inputs_.equal_range(data.storage().get());
  for (auto at = first; at != last; ++at) {
    if (Geometry::of(inputs_[at->second.index]) == view) return at->second.id;
  }
  const auto index = static_cast<uint32_t>(inputs_.size());
  auto id = static_cast<ValueId>(origins_.size());
  if (isFollowing()) {
    if (const char* why = frozen_->input(data, index, id)) breakPromise(why);
  } else {
    origins_.push_back({kInput, index});
  }
  inputs_.push_back(data);
  known_inputs_.emplace(data.storage().get(), KnownInput{id, index});
  return id;
}

bool Graph::isFollowing() const {
  return frozen_ && !frozen_->isFirst();
}
size_t Graph::size() const {
  return isFollowing() ? frozen_->size() : records_.size();
}

ValueId Graph::follow(const Operator& op, std::span<const IValue> args,
                      std::span<const ValueId> values, uint64_t cloned, IntSpan results) {
  ValueId id = kNoValue;
  if (const char* why = frozen_->call(op, args, values, cloned, results, id)) {
    breakPromise(fmt::format("{}; this is {}", why, op.schema().name()));
  }
  countRecorded();
  if (hasRecordedEffects(op)) effects_.push_back(id);
  return id;
}

ValueId Graph::append(Record record, uint32_t count) {
  if (isFollowing()) {
    ValueId id = kNoValue;
    if (const char* why = frozen_->call(record, id)) {
      breakPromise(fmt::format("{}; this is {}", why, record.op->schema().name()));
    }
    countRecorded();
    return id;
  }
  record.first = static_cast<ValueId>(origins_.size());
  record.count = count;
  if (hasRecordedEffects(*record.op)) effects_.push_back(record.first);
  for (uint32_t i = 0; i < count; ++i) {
    origins_.push_back({static_cast<uint32_t>(records_.size()), i});
  }
  records_.push_back(std::move(record));
  countRecorded();
  return records_.back().first;
}

ValueId Graph::emit(const Operator& op, std::vector<Operand> operands) {
  Record record;
  record.op = &op;
  record.operands = std::move(operands);
  record.results = {Record::kOne};
  if (!records_.empty()) record.place = records_.back().place;
  return append(std::move(record), 1);
}

void Graph::expect(Base* base) {
  base->place = pending_.size();
  pending_.push_back(base);
}
void Graph::forget(Base* base) {
  WICK_ASSERT(base->place < pending_.size() && pending_[base->place] == base,
              "a graph forgets what it does not expect");
  pending_[base->place] = pending_.back();
  pending_[base->place]->place = base->place;
  pending_.pop_back();
}

std::vector<ValueId> Graph::outputs() const {
  std::vector<ValueId> made;
  for (const Base* base : pending_) made.push_back(base->value());
  made.insert(made.end(), effects_.begin(), effects_.end());
  std::ranges::sort(made);
  made.erase(std::ranges::unique(made).begin(), made.end());
  return made;
}

Targets Graph::targets() const {
  Targets made;
  for (const Base* base : pending_) made.emplace_back(base->value(), base);
  return made;
}

Graph::Plan Graph::plan() const {
  Plan plan;
  plan.outputs = outputs();
  std::vector<bool> needed(records_.size());
  const auto need = [&](ValueId id) {
    if (origins_[id].record != kInput) needed[origins_[id].record] = true;
  };
  for (const ValueId id : plan.outputs) need(id);
  for (size_t r = records_.size(); r-- > 0;) {
    if (needed[r]) records_[r].forValues(need);
  }
  for (size_t r = 0; r < records_.size(); ++r) {
    if (needed[r]) plan.records.push_back(static_cast<uint32_t>(r));
  }
  return plan;
}

namespace {

// Errors that say nothing of the graph: the run was stopped, and may be tried again.
bool isInterruption(const RuntimeError& error) {
  return error.className() == "TimeoutError" || error.className() == "MemoryError" ||
         error.className() == "KeyboardInterrupt";
}

}  // namespace

void Graph::evaluate(const char* cause, bool ends_step) {
  const std::lock_guard lock(mutex());
  // What is empty is no part of a frozen step.
  if (!empty() || !pending_.empty()) {
    evaluateNow(cause, ends_step);
  } else if (isFollowing()) {
    frozen_->forgetInputs();
  }
  reset();
  if (!ends_step || !frozen_) return;
  if (frozen_->isFirst()) return frozen_->endFirst();
  if (frozen_->isUntouched()) return;
  if (const char* why = frozen_->endStep()) breakPromise(why);
}

void Graph::evaluateNow(const char* cause, bool ends_step) {
  const bool following = isFollowing();
  if (following) {
    if (const char* why = frozen_->endGraph(outputs())) breakPromise(why);
  }
  if (pending_.empty() && effects_.empty()) {
    if (following) frozen_->nextGraph();
    if (frozen_ && !following) frozen_->keep(*this, {}, nullptr);
    return;
  }
  const std::vector<Base*> bases(pending_.begin(), pending_.end());
  const Plan wanted = following ? frozen_->plan() : plan();
  std::vector<IValue> results;
  bool let_go = false;
  try {
    results = run(wanted, cause, ends_step, let_go);
  } catch (const RuntimeError& error) {
    if (let_go) {
      // The machine has no memory left: what began is lost.
      for (Base* base : bases) base->fail(std::current_exception());
      if (frozen_) thaw();
      reset();
      throw;
    }
    if (isInterruption(error)) throw;
    // The next step is followed, or kept, from its beginning.
    if (following) {
      frozen_->restore(records_, origins_);
      frozen_->restart();
    } else if (frozen_) {
      frozen_ = std::make_unique<FrozenStep>();
    }
    const std::exception_ptr found = runCarefully(wanted, bases);
    reset();
    if (found) std::rethrow_exception(found);
    throw;
  }
  for (Base* base : bases) {
    const auto at =
        std::ranges::lower_bound(wanted.outputs, base->value()) - wanted.outputs.begin();
    base->become(results[static_cast<size_t>(at)].toTensor());
  }
  if (following) frozen_->nextGraph();
}

namespace {

// What ends a step asks for no value.
SourceRange placeOfCause(bool ends_step) {
  return ends_step ? SourceRange() : placeOfCall();
}

}  // namespace

// The values that the plan asks for. `let_go`: the inputs are gone.
std::vector<IValue> Graph::run(const Plan& plan, const char* cause, bool ends_step, bool& let_go) {
  const auto forget = [&] {
    let_go = true;
    inputs_.clear();
    known_inputs_.clear();
  };
  if (isFollowing()) {
    countFollowed(cause, placeOfCause(ends_step));
    return frozen_->program()->run(frozen_->arguments(inputs_), forget);
  }
  const bool donates = ends_step && writesOverBelow();
  const std::vector<bool> spare = donates ? spareInputs() : std::vector<bool>();
  // Frozen steps are not described again, so they gain nothing from loops.
  std::unique_ptr<Rolled> rolled = frozen_ || !rolls() ? nullptr : Rolled::roll(*this, plan);
  const Graph& graph = rolled ? rolled->graph : *this;
  const Plan& what = rolled ? rolled->plan : plan;
  Description description = Program::describe(graph, what, spare);
  const Targets wanted = !description.donates ? Targets() : rolled ? rolled->targets : targets();
  bool compiled = false;
  const auto program = Program::find(graph, what, spare, wanted, description.key, compiled);
  countEvaluation(cause, compiled, placeOfCause(ends_step));
  // Before inputs are forgotten.
  if (frozen_) frozen_->keep(*this, plan, program);
  if (!rolled) return program->run(std::move(description.arguments), forget);
  countRolled(rolled->loops);
  const std::vector<Rolled::Output> outputs = std::move(rolled->outputs);
  rolled.reset();  // it holds the inputs
  return Rolled::unpack(program->run(std::move(description.arguments), forget), outputs);
}

std::vector<bool> Graph::spareInputs() const {
  std::vector<bool> made(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& t = inputs_[i];
    const Storage& memory = *t.storage();
    made[i] = memory.ownsMemory() && memory.writable() && t.impl()->useCount() == 1 &&
              memory.useCount() == known_inputs_.count(&memory) &&
              std::ranges::any_of(pending_, [&](const Base* base) {
                return base->layout().dtype == t.dtype() &&
                       std::ranges::equal(base->layout().sizes, t.sizes());
              });
  }
  return made;
}

void Graph::freeze() {
  const std::lock_guard lock(mutex());
  thaw();
  evaluate("freeze_step");
  frozen_ = std::make_unique<FrozenStep>();
}

void Graph::thaw() {
  const std::lock_guard lock(mutex());
  if (isFollowing()) frozen_->restore(records_, origins_);
  frozen_.reset();
}

void Graph::breakPromise(const std::string& why) {
  const std::string expected = frozen_->expected();
  thaw();
  throwRuntimeError(
      "freeze_step: the step is not the same computation as before: {}. What came here before was "
      "{}. Steps are no longer frozen",
      why, expected);
}

namespace {

struct Found {
  Tensor tensor;
  std::exception_ptr error;
};

// The record's call on its own. The results, and behind them the copies that it wrote to.
std::vector<Tensor> callRecord(const Record& record, const std::vector<Found>& found) {
  std::vector<IValue> arguments;
  for (const Operand& operand : record.operands) {
    switch (operand.kind) {
      case Operand::Kind::Value:
        arguments.emplace_back(found[operand.values[0]].tensor);
        break;
      case Operand::Kind::Values: {
        std::vector<IValue> elements;
        for (const ValueId id : operand.values) {
          elements.push_back(id == kNoValue ? IValue() : IValue(found[id].tensor));
        }
        arguments.emplace_back(makeList(types::Tensor(), std::move(elements)));
        break;
      }
      default:
        arguments.push_back(operand.value);
    }
  }
  std::vector<Tensor> copies;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if ((record.cloned >> i & 1) == 0) continue;
    copies.push_back(arguments[i].toTensor().clone());
    arguments[i] = IValue(copies.back());
  }
  std::vector<IValue> results(record.results.size());
  record.op->callKernel(arguments.data(), arguments.size(), results.data(), results.size());
  std::vector<Tensor> made;
  for (size_t r = 0; r < results.size(); ++r) {
    if (record.results[r] == Record::kOne) {
      made.push_back(results[r].toTensor());
    } else {
      for (const IValue& e : results[r].elements()) made.push_back(e.toTensor());
    }
  }
  made.insert(made.end(), copies.begin(), copies.end());
  WICK_CHECK(made.size() == record.count, "{}: gave {} tensors, {} were expected",
             record.op->schema().name(), made.size(), record.count);
  return made;
}

}  // namespace

// One record after the other, so that only what depends on a wrong one is lost. The first error.
std::exception_ptr Graph::runCarefully(const Plan& plan, const std::vector<Base*>& bases) const {
  const ComputeScope scope;
  std::vector<Found> found(origins_.size());
  for (size_t id = 0; id < origins_.size(); ++id) {
    if (origins_[id].record == kInput) found[id].tensor = inputs_[origins_[id].index];
  }
  std::exception_ptr first;
  for (const uint32_t at : plan.records) {
    const Record& record = records_[at];
    std::exception_ptr error;
    record.forValues([&](ValueId id) {
      if (found[id].error) error = found[id].error;
    });
    if (!error && hasRecordedEffects(*record.op)) {
      error = std::make_exception_ptr(RuntimeError(
          fmt::format("{}: an error elsewhere in the step ended it", record.op->schema().name())));
    }
    if (!error) {
      try {
        const std::vector<Tensor> made = callRecord(record, found);
        for (uint32_t i = 0; i < record.count; ++i) found[record.first + i].tensor = made[i];
        continue;
      } catch (RuntimeError& raised) {
        if (isInterruption(raised)) throw;
        if (record.place.valid()) raised.addFrame({"<lazy graph>", record.place});
        error = std::make_exception_ptr(raised);
      }
    }
    if (!first) first = error;
    for (uint32_t i = 0; i < record.count; ++i) found[record.first + i].error = error;
  }
  for (Base* base : bases) {
    const Found& result = found[base->value()];
    result.error ? base->fail(result.error) : base->become(result.tensor);
  }
  return first;
}

void Graph::reset() {
  records_.clear();
  origins_.clear();
  inputs_.clear();
  known_inputs_.clear();
  effects_.clear();
}

namespace {

std::string nameOf(ValueId id) {
  return id == kNoValue ? "None" : fmt::format("%{}", id);
}

}  // namespace

std::string Graph::text() const {
  if (isFollowing()) {
    Graph plain;
    plain.inputs_ = inputs_;
    frozen_->restore(plain.records_, plain.origins_);
    return plain.text();
  }
  std::string out;
  for (size_t id = 0; id < origins_.size(); ++id) {
    if (origins_[id].record != kInput) continue;
    out += fmt::format("%{} = {}\n", id, inputs_[origins_[id].index].describe());
  }
  for (const Record& record : records_) {
    for (uint32_t i = 0; i < record.count; ++i) {
      out += (i == 0 ? "" : ", ") + nameOf(record.first + i);
    }
    out += fmt::format(" = {}(", record.op->schema().name());
    for (size_t i = 0; i < record.operands.size(); ++i) {
      const Operand& operand = record.operands[i];
      if (i > 0) out += ", ";
      if (operand.kind == Operand::Kind::Value) {
        out += nameOf(operand.values[0]);
      } else if (operand.kind == Operand::Kind::Values) {
        out += '[';
        for (size_t k = 0; k < operand.values.size(); ++k) {
          out += (k == 0 ? "" : ", ") + nameOf(operand.values[k]);
        }
        out += ']';
      } else {
        out += operand.value.repr();
      }
    }
    out += ')';
    if (record.place.valid()) out += "  # " + record.place.location();
    out += '\n';
  }
  return out;
}

std::string Graph::dot() const {
  if (isFollowing()) {
    Graph plain;
    plain.inputs_ = inputs_;
    plain.pending_ = pending_;
    frozen_->restore(plain.records_, plain.origins_);
    return plain.dot();
  }
  return printDot(*Program::build(*this, plan()));
}

void markStep() {
  Graph::current()->evaluate("mark_step", /*ends_step=*/true);
}

void freezeStep() {
  Graph::current()->freeze();
}
void thawStep() {
  Graph::current()->thaw();
}
bool wantsPlaces() {
  return inUse() && !Graph::current()->isFollowing();
}

std::string dump() {
  const std::lock_guard lock(mutex());
  return Graph::current()->text();
}
std::string dumpDot() {
  const std::lock_guard lock(mutex());
  return Graph::current()->dot();
}

void setCacheSize(size_t graphs) {
  if (graphs == 0) throw UsageError("setCacheSize: expected at least one graph");
  setProgramCacheSize(graphs);
}

// Bounds what a thread may record.
bool isFull(const Graph& graph) {
  return graph.size() >= kMaxRecords;
}

}  // namespace wick::lazy

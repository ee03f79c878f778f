#include "lazy/rolling.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <tuple>

#include "core/error.h"
#include "lazy/base.h"
#include "lazy/lazy.h"
#include "lazy/repetitions.h"

namespace wick::lazy {

namespace {

std::atomic<bool> rolling{true};

// Whether operators take lists of just tensors there.
bool takesTensors(const Operator& op, size_t argument) {
  const auto* list = op.schema().arguments()[argument].type->as<ListType>();
  return list && list->element()->kind() == TypeKind::Tensor;
}

}  // namespace

void setRolling(bool on) {
  rolling.store(on, std::memory_order_relaxed);
}
bool rolls() {
  return rolling.load(std::memory_order_relaxed);
}

class Roller {
 public:
  Roller(const Graph& from, const Graph::Plan& plan)
      : from_(from),
        plan_(plan),
        made_(std::make_unique<Rolled>()),
        to_(made_->graph),
        where_(from.origins_.size()) {}

  std::unique_ptr<Rolled> run() {
    const std::vector<Repetition> found =
        findRepetitions(from_.records_, from_.origins_, plan_.records);
    if (found.empty()) return nullptr;
    to_.inputs_ = from_.inputs_;
    findLastUses();
    size_t next = 0;
    for (size_t at = 0; at < plan_.records.size();) {
      if (next < found.size() && found[next].begin == at) {
        const size_t trips = addLoop(found[next]);
        at += trips * found[next].period;
        ++next;
        if (trips > 0) continue;
      }
      addRecord(from_.records_[plan_.records[at++]]);
    }
    if (made_->loops == 0) return nullptr;
    addOutputs();
    return std::move(made_);
  }

 private:
  // Where a value of the old graph is in the new one.
  struct Where {
    ValueId id = kNoValue;    // itself
    ValueId list = kNoValue;  // or a list, and which element
    int64_t index = 0, size = 0;
    bool isElement() const { return list != kNoValue; }
  };
  // A parameter of a loop, with the operand that it belongs to.
  struct Parameters {
    std::vector<Loop::Parameter> all;
    std::vector<Operand> operands;
    std::map<ValueId, uint32_t> same;
    std::map<std::tuple<uint32_t, uint32_t, ValueId>, uint32_t> carried;
    std::map<std::vector<ValueId>, uint32_t> each;
    uint32_t add(Loop::Parameter parameter, Operand operand) {
      all.push_back(parameter);
      operands.push_back(std::move(operand));
      return static_cast<uint32_t>(all.size() - 1);
    }
  };
  using Role = Loop::Parameter::Role;

  void findLastUses() {
    last_use_.assign(from_.origins_.size(), 0);
    for (size_t p = 0; p < plan_.records.size(); ++p) {
      from_.records_[plan_.records[p]].forValues([&](ValueId id) { last_use_[id] = p; });
    }
    for (const ValueId id : plan_.outputs) last_use_[id] = SIZE_MAX;
  }

  // ---- records ----

  ValueId append(Record record, uint32_t count) {
    record.first = static_cast<ValueId>(to_.origins_.size());
    record.count = count;
    const auto at = static_cast<uint32_t>(to_.records_.size());
    for (uint32_t i = 0; i < count; ++i) to_.origins_.push_back({at, i});
    made_->plan.records.push_back(at);
    to_.records_.push_back(std::move(record));
    return to_.records_.back().first;
  }
  // A call of an operator on lists.
  ValueId emit(const char* name, const char* overload, std::vector<Operand> operands,
               int64_t result) {
    Record record;
    record.op = &operatorNamed(name, overload);
    record.operands = std::move(operands);
    record.results = {result};
    return append(std::move(record), 1);
  }

  ValueId valueOf(ValueId old) {
    if (old == kNoValue) return kNoValue;
    Where& where = where_[old];
    if (where.id != kNoValue) return where.id;
    if (where.isElement()) {
      // Counted from the nearer end, so that the text is the same for lists of other lengths.
      const int64_t index = where.index < where.size / 2 ? where.index : where.index - where.size;
      where.id = emit("aten::__getitem__", "t",
                      {valueOperand(where.list), constantOperand(IValue(index))}, Record::kOne);
      return where.id;
    }
    const Graph::Origin& origin = from_.origins_[old];
    WICK_ASSERT(origin.record == Graph::kInput, "a value is read before it is made");
    where.id = static_cast<ValueId>(to_.origins_.size());
    to_.origins_.push_back(origin);
    return where.id;
  }

  void addRecord(const Record& old) {
    Record record = old;
    for (size_t i = 0; i < record.operands.size(); ++i) {
      Operand& operand = record.operands[i];
      if (operand.kind == Operand::Kind::Value) {
        operand.values = ValueIds(valueOf(operand.values[0]));
      } else if (operand.kind == Operand::Kind::Values) {
        operand = takesTensors(*record.op, i)
                      ? listOperand(operand.values)
                      : valuesOperand(operand.values, 0, operand.values.size());
      }
    }
    // A long list stays one, for loops that take an element in each trip.
    const bool list = record.results.size() == 1 && record.cloned == 0 &&
                      record.results[0] >= static_cast<int64_t>(kMinTrips);
    if (list) record.results = {Record::kList};
    const ValueId first = append(std::move(record), list ? 1 : old.count);
    for (uint32_t i = 0; i < old.count; ++i) {
      where_[old.first + i] = list ? Where{kNoValue, first, i, old.count} : Where{first + i};
    }
  }

  Operand valuesOperand(const ValueIds& values, size_t from, size_t to) {
    Operand made;
    made.kind = Operand::Kind::Values;
    for (size_t i = from; i < to; ++i) made.values.push_back(valueOf(values[i]));
    return made;
  }

  // How many values from `at` on are neighbors in a list.
  size_t runOf(const ValueIds& values, size_t at) const {
    size_t run = 0;
    while (at + run < values.size() && values[at + run] != kNoValue) {
      const Where &first = where_[values[at]], &here = where_[values[at + run]];
      if (!here.isElement() || here.list != first.list ||
          here.index != first.index + static_cast<int64_t>(run)) {
        break;
      }
      ++run;
    }
    return run;
  }

  // A list of tensors, made of parts of lists where they are long.
  Operand listOperand(const ValueIds& values) {
    std::vector<Operand> parts;
    size_t done = 0;  // of the values
    for (size_t at = 0; at < values.size();) {
      const size_t run = runOf(values, at);
      if (run < kMinTrips) {
        ++at;
        continue;
      }
      if (done < at) parts.push_back(valuesOperand(values, done, at));
      parts.push_back(valueOperand(partOf(where_[values[at]], static_cast<int64_t>(run))));
      at += run;
      done = at;
    }
    if (parts.empty() || done < values.size()) {
      parts.push_back(valuesOperand(values, done, values.size()));
    }
    Operand whole = std::move(parts[0]);
    for (size_t p = 1; p < parts.size(); ++p) {
      whole = valueOperand(
          emit("aten::add", "t", {std::move(whole), std::move(parts[p])}, Record::kList));
    }
    return whole;
  }
  ValueId partOf(const Where& first, int64_t count) {
    if (count == first.size) return first.list;
    const int64_t behind = first.index + count - first.size;
    return emit("aten::slice", "t",
                {valueOperand(first.list), constantOperand(IValue(first.index)),
                 constantOperand(behind == 0 ? IValue() : IValue(behind)),
                 constantOperand(IValue(int64_t{1}))},
                Record::kList);
  }

  // ---- loops ----

  const Record& recordOf(const Repetition& found, size_t trip, size_t j) const {
    return from_.records_[plan_.records[found.begin + trip * found.period + j]];
  }

  // Of the values that differ from trip to trip how many, from the first on, are inputs that are
  // alike, or elements of a list in order.
  size_t sameKind(const std::vector<ValueId>& values) const {
    const Where& first = where_[values[0]];
    size_t count = 1;
    if (first.isElement()) {
      const int64_t step = where_[values[1]].index - first.index;
      for (; step != 0 && count < values.size(); ++count) {
        const Where& here = where_[values[count]];
        if (here.list != first.list ||
            here.index != first.index + step * static_cast<int64_t>(count)) {
          break;
        }
      }
      return count;
    }
    const auto input = [&](ValueId id) {
      const Graph::Origin& origin = from_.origins_[id];
      return origin.record == Graph::kInput ? &from_.inputs_[origin.index] : nullptr;
    };
    const Tensor* one = input(values[0]);
    for (; one && count < values.size(); ++count) {
      const Tensor* other = input(values[count]);
      if (!other || other->dtype() != one->dtype() ||
          !std::ranges::equal(other->sizes(), one->sizes())) {
        break;
      }
    }
    return count;
  }

  // Calls f(j, operand, element) for each value that a block reads.
  template <class F>
  void forReads(const Repetition& found, F&& f) const {
    for (size_t j = 0; j < found.period; ++j) {
      const Record& record = recordOf(found, 0, j);
      for (size_t i = 0; i < record.operands.size(); ++i) {
        const Operand& operand = record.operands[i];
        if (operand.kind != Operand::Kind::Value && operand.kind != Operand::Kind::Values) continue;
        for (size_t e = 0; e < operand.values.size(); ++e) f(j, i, e);
      }
    }
  }
  std::vector<ValueId> valuesOf(const Repetition& found, size_t j, size_t i, size_t e) const {
    std::vector<ValueId> made;
    for (size_t t = 0; t < found.trips; ++t) {
      made.push_back(recordOf(found, t, j).operands[i].values[e]);
    }
    return made;
  }

  // Lowers the trips to those whose values can be had. False: these are too few.
  bool cut(Repetition& found) const {
    size_t next = 0;
    forReads(found, [&](size_t j, size_t i, size_t e) {
      if (found.reads[next++].from != Read::From::Each) return;
      found.trips = std::min(found.trips, sameKind(valuesOf(found, j, i, e)));
    });
    return found.trips >= kMinTrips;
  }

  uint32_t parameterFor(const Repetition& found, const Read& read, size_t j, size_t i, size_t e,
                        Parameters& parameters) {
    if (read.from == Read::From::Same) {
      const auto known = parameters.same.find(read.first);
      if (known != parameters.same.end()) return known->second;
      return parameters.same[read.first] = parameters.add({}, valueOperand(valueOf(read.first)));
    }
    if (read.from == Read::From::Before) {
      const std::tuple key(read.record, read.index, read.first);
      const auto known = parameters.carried.find(key);
      if (known != parameters.carried.end()) return known->second;
      Loop::Parameter made;
      made.role = Role::Carried;
      return parameters.carried[key] = parameters.add(made, valueOperand(valueOf(read.first)));
    }
    std::vector<ValueId> values = valuesOf(found, j, i, e);
    const auto known = parameters.each.find(values);
    if (known != parameters.each.end()) return known->second;
    Loop::Parameter made;
    made.role = Role::Each;
    Operand operand;
    const Where& first = where_[values[0]];
    if (first.isElement()) {
      made.step = where_[values[1]].index - first.index;
      made.start = made.step > 0 ? first.index : first.index - first.size;
      operand = valueOperand(first.list);
    } else {
      std::vector<IValue> tensors;
      for (const ValueId id : values) {
        tensors.emplace_back(from_.inputs_[from_.origins_[id].index]);
      }
      operand = sequenceOperand(types::Tensor(), std::move(tensors));
    }
    return parameters.each[std::move(values)] = parameters.add(made, std::move(operand));
  }
  static Operand sequenceOperand(const TypePtr& type, std::vector<IValue> elements) {
    return {Operand::Kind::Sequence, IValue(makeList(type, std::move(elements))), {}};
  }

  static uint32_t numberFor(Numbers numbers, std::vector<IValue> of_trips, Parameters& parameters) {
    Loop::Parameter made;
    made.is_number = true;
    if (numbers == Numbers::Same) {
      return parameters.add(made, {Operand::Kind::Number, of_trips[0], {}});
    }
    made.role = Role::Each;
    const TypePtr type = of_trips[0].isInt() ? types::Int() : types::Float();
    return parameters.add(made, sequenceOperand(type, std::move(of_trips)));
  }

  // An operand that holds no values, in the block. False: the trips do not fit.
  bool addOther(std::span<const Operand* const> trips, Operand& made, Parameters& parameters) {
    made.kind = trips[0]->kind;
    made.value = trips[0]->value;
    const auto collect = [&](auto&& numberOf) {
      std::vector<IValue> all;
      for (const Operand* operand : trips) all.push_back(numberOf(*operand));
      return all;
    };
    if (made.kind != Operand::Kind::Ints) {
      const Numbers numbers = compareNumbers(trips);
      if (numbers == Numbers::Wrong) return false;
      if (numbers == Numbers::Text) return true;
      made.kind = Operand::Kind::Number;
      made.values = ValueIds(
          numberFor(numbers, collect([](const Operand& o) { return o.value; }), parameters));
      return true;
    }
    for (size_t e = 0; e < made.value.elements().size(); ++e) {
      const Numbers numbers = compareInts(trips, e);
      if (numbers == Numbers::Wrong) return false;
      made.values.push_back(
          numbers == Numbers::Text
              ? kNoValue
              : numberFor(numbers, collect([e](const Operand& o) { return o.value.elements()[e]; }),
                          parameters));
    }
    return true;
  }

  // The block's records. What they read of the block itself is filled in when it is numbered.
  bool addBlock(const Repetition& found, Loop& loop, Parameters& parameters) {
    std::vector<const Operand*> trips(found.trips);
    size_t next = 0;
    for (size_t j = 0; j < found.period; ++j) {
      const Record& old = recordOf(found, 0, j);
      Record record;
      record.op = old.op;
      record.results = old.results;
      record.cloned = old.cloned;
      record.count = old.count;
      record.place = old.place;
      for (size_t i = 0; i < old.operands.size(); ++i) {
        Operand& made = record.operands.emplace_back();
        for (size_t t = 0; t < found.trips; ++t) trips[t] = &recordOf(found, t, j).operands[i];
        made.kind = old.operands[i].kind;
        if (made.kind != Operand::Kind::Value && made.kind != Operand::Kind::Values) {
          if (!addOther(trips, made, parameters)) return false;
          continue;
        }
        for (size_t e = 0; e < old.operands[i].values.size(); ++e) {
          const Read& read = found.reads[next++];
          const bool inside = read.from == Read::From::Block || read.from == Read::From::Nothing;
          made.values.push_back(inside ? kNoValue : parameterFor(found, read, j, i, e, parameters));
        }
      }
      loop.block.push_back(std::move(record));
    }
    return true;
  }

  // Numbers the values of the block, behind the parameters.
  static void number(const Repetition& found, Loop& loop, const Parameters& parameters) {
    auto next = static_cast<ValueId>(loop.parameters.size());
    for (Record& record : loop.block) {
      record.first = next;
      next += record.count;
    }
    loop.values = next;
    const auto inside = [&](uint32_t record, uint32_t index) {
      return loop.block[record].first + index;
    };
    for (const auto& [key, parameter] : parameters.carried) {
      loop.parameters[parameter].next = inside(std::get<0>(key), std::get<1>(key));
    }
    size_t read = 0;
    for (Record& record : loop.block) {
      for (Operand& operand : record.operands) {
        if (operand.kind != Operand::Kind::Value && operand.kind != Operand::Kind::Values) continue;
        ValueIds values;
        for (const ValueId id : operand.values) {
          const Read& from = found.reads[read++];
          values.push_back(from.from == Read::From::Block ? inside(from.record, from.index) : id);
        }
        operand.values = std::move(values);
      }
    }
  }

  // What the loop gives: the values that are read behind it.
  void addResults(const Repetition& found, Loop& loop, DimVector& results) {
    const auto isRead = [&](size_t trip, size_t j, uint32_t c) {
      return last_use_[recordOf(found, trip, j).first + c] >= found.end();
    };
    const auto next = static_cast<ValueId>(to_.origins_.size());
    const auto add = [&](Loop::Result result, int64_t kind) {
      loop.results.push_back(result);
      results.push_back(kind);
      return next + static_cast<ValueId>(loop.results.size() - 1);
    };
    const size_t last = found.trips - 1;
    for (size_t j = 0; j < found.period; ++j) {
      for (uint32_t c = 0; c < loop.block[j].count; ++c) {
        bool all = false;
        for (size_t t = 0; t < last && !all; ++t) all = isRead(t, j, c);
        const bool end = isRead(last, j, c);
        const ValueId inside = loop.block[j].first + c;
        const auto carried = std::ranges::find_if(loop.parameters, [&](const auto& p) {
          return p.role == Role::Carried && p.next == inside;
        });
        const bool is_carried = carried != loop.parameters.end();
        if (all || (end && !is_carried)) {
          const ValueId list = add({inside, 0}, Record::kList);
          for (size_t t = 0; t < found.trips; ++t) {
            where_[recordOf(found, t, j).first + c] = {kNoValue, list, static_cast<int64_t>(t),
                                                       static_cast<int64_t>(found.trips)};
          }
        }
        if (end && is_carried) {
          where_[recordOf(found, last, j).first + c].id = add(
              {kNoValue, static_cast<uint32_t>(carried - loop.parameters.begin())}, Record::kOne);
        }
      }
    }
  }

  // How many trips became one.
  size_t addLoop(Repetition found) {
    if (!cut(found)) return 0;
    auto loop = std::make_shared<Loop>();
    Parameters parameters;
    if (!addBlock(found, *loop, parameters)) return 0;
    loop->parameters = std::move(parameters.all);
    number(found, *loop, parameters);
    Record record;
    record.place = recordOf(found, 0, 0).place;
    addResults(found, *loop, record.results);
    record.operands = std::move(parameters.operands);
    record.operands.insert(
        record.operands.begin(),
        Operand{Operand::Kind::Number, IValue(static_cast<int64_t>(found.trips)), {}});
    const auto count = static_cast<uint32_t>(loop->results.size());
    record.loop = std::move(loop);
    append(std::move(record), count);
    ++made_->loops;
    return found.trips;
  }

  void addOutputs() {
    std::vector<std::pair<ValueId, size_t>> places;
    for (const ValueId old : plan_.outputs) {
      const Where& where = where_[old];
      const bool element = where.id == kNoValue && where.isElement();
      places.emplace_back(element ? where.list : valueOf(old),
                          element ? static_cast<size_t>(where.index) : Rolled::Output::kWhole);
      made_->plan.outputs.push_back(places.back().first);
    }
    std::vector<ValueId>& outputs = made_->plan.outputs;
    std::ranges::sort(outputs);
    outputs.erase(std::ranges::unique(outputs).begin(), outputs.end());
    for (const auto& [id, element] : places) {
      const auto at = std::ranges::lower_bound(outputs, id) - outputs.begin();
      made_->outputs.push_back({static_cast<size_t>(at), element});
    }
    for (const Base* base : from_.pending_) {
      const Where& where = where_[base->value()];
      if (where.id != kNoValue) made_->targets.emplace_back(where.id, base);
    }
  }

  const Graph& from_;
  const Graph::Plan& plan_;
  std::unique_ptr<Rolled> made_;
  Graph& to_;
  std::vector<Where> where_;      // by old value
  std::vector<size_t> last_use_;  // in the plan, by old value; SIZE_MAX: an output
};

std::unique_ptr<Rolled> Rolled::roll(const Graph& graph, const Graph::Plan& plan) {
  return Roller(graph, plan).run();
}

std::vector<IValue> Rolled::unpack(const std::vector<IValue>& results,
                                   const std::vector<Output>& outputs) {
  std::vector<IValue> made;
  made.reserve(outputs.size());
  for (const Output& output : outputs) {
    const IValue& result = results[output.output];
    made.push_back(output.element == Output::kWhole ? result : result.elements()[output.element]);
  }
  return made;
}

}  // namespace wick::lazy

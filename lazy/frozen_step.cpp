#include "lazy/frozen_step.h"

#include <algorithm>

#include "lazy/device_below.h"
#include "lazy/immediate.h"

namespace wick::lazy {

void FrozenStep::keep(const Graph& graph, const Graph::Plan& plan,
                      std::shared_ptr<Program> program) {
  Segment kept;
  kept.records = graph.records_;
  kept.origins = graph.origins_;
  for (const Tensor& t : graph.inputs_) kept.inputs.push_back({t.dtype(), t.dim()});
  kept.plan = plan;
  if (program) kept.sources = Program::sources(graph, plan);
  kept.program = std::move(program);
  segments_.push_back(std::move(kept));
}

const Record* FrozenStep::next() const {
  if (at_ >= segments_.size() || records_done_ >= segments_[at_].records.size()) return nullptr;
  return &segments_[at_].records[records_done_];
}

std::string FrozenStep::expected() const {
  const Record* record = next();
  if (!record) return at_ < segments_.size() ? "the end of its graph" : "the end of the step";
  std::string text = record->op->schema().name();
  if (record->place.valid()) text += " at " + record->place.location();
  return text;
}

const char* FrozenStep::input(const Tensor& data, size_t inputs, ValueId& id) {
  if (at_ >= segments_.size()) return "it goes on behind its end";
  const Segment& segment = segments_[at_];
  const bool known = values_done_ < segment.origins.size() &&
                     segment.origins[values_done_].record == Graph::kInput;
  if (!known) return "it reads other data";
  const Segment::Kind& kind = segment.inputs[inputs];
  if (kind.dtype != data.dtype() || kind.dim != data.dim()) {
    return "it reads data of another dtype or number of dimensions";
  }
  id = static_cast<ValueId>(values_done_++);
  return nullptr;
}

const char* FrozenStep::operand(const Operand& was, const IValue& v,
                                std::span<const ValueId> values) {
  constexpr const char* kOther = "an argument is something else";
  switch (was.kind) {
    case Operand::Kind::Value:
    case Operand::Kind::Values:
      return std::ranges::equal(was.values, values) ? nullptr : "an argument is another tensor";
    case Operand::Kind::Constant:
      if (!values.empty()) return kOther;
      // Records say the device below.
      return sameConstant(was.value, v.isDevice() ? deviceOperand().value : v)
                 ? nullptr
                 : "an argument is another constant";
    case Operand::Kind::Number:
      if (v.tag() != was.value.tag()) return kOther;
      numbers_.push_back(v);
      return nullptr;
    case Operand::Kind::Ints: {
      if (!v.isList() || v.elements().size() != was.value.elements().size()) return kOther;
      for (size_t i = 0; i < v.elements().size(); ++i) {
        const IValue &before = was.value.elements()[i], &now = v.elements()[i];
        if (!now.isInt()) return kOther;
        if (isParameter(before.toInt())) {
          numbers_.push_back(now);
        } else if (before.toInt() != now.toInt()) {
          return "a size or position that was 0, 1 or -1 is another";
        }
      }
      return nullptr;
    }
    case Operand::Kind::Sequence:
      break;  // frozen steps have no loops
  }
  return kOther;
}

template <class F>
const char* FrozenStep::follow(const Operator& op, uint64_t cloned, IntSpan results,
                               size_t operands, ValueId& id, F&& compare) {
  const Record* record = next();
  const bool same = record && record->first == values_done_ && record->op == &op &&
                    record->cloned == cloned && std::ranges::equal(record->results, results) &&
                    record->operands.size() == operands;
  if (!same) return "it goes on with another call";
  const size_t numbers = numbers_.size();
  for (size_t i = 0; i < operands; ++i) {
    if (const char* why = compare(i, record->operands[i])) {
      numbers_.resize(numbers);
      return why;
    }
  }
  id = record->first;
  ++records_done_;
  values_done_ += record->count;
  return nullptr;
}

const char* FrozenStep::call(const Operator& op, std::span<const IValue> args,
                             std::span<const ValueId> values, uint64_t cloned, IntSpan results,
                             ValueId& id) {
  size_t at = 0;  // in `values`
  return follow(op, cloned, results, args.size(), id, [&](size_t i, const Operand& was) {
    const IValue& v = args[i];
    const size_t count = v.isTensor() ? 1 : isTensorList(v) ? v.elements().size() : 0;
    const auto own = values.subspan(at, count);
    at += count;
    // In a graph all is on the device below.
    return operand(was, v.isDevice() ? IValue() : v, own);
  });
}

const char* FrozenStep::call(const Record& made, ValueId& id) {
  return follow(*made.op, made.cloned, made.results, made.operands.size(), id,
                [&](size_t i, const Operand& was) {
                  return operand(was, made.operands[i].value, made.operands[i].values);
                });
}

const char* FrozenStep::endGraph(const std::vector<ValueId>& outputs) const {
  if (at_ >= segments_.size()) return "it goes on behind its end";
  const Segment& segment = segments_[at_];
  if (records_done_ != segment.records.size() || values_done_ != segment.origins.size()) {
    return "a value is looked at, or the step ends, before all calls are made";
  }
  return std::ranges::includes(segment.plan.outputs, outputs)
             ? nullptr
             : "a tensor lives at its end that did not live before";
}

const char* FrozenStep::endStep() {
  if (at_ != segments_.size()) return "the step ends before all calls are made";
  restart();
  return nullptr;
}

void FrozenStep::nextGraph() {
  ++at_;
  records_done_ = values_done_ = 0;
  numbers_.clear();
}

void FrozenStep::restart() {
  nextGraph();
  at_ = 0;
}

std::vector<IValue> FrozenStep::arguments(const std::vector<Tensor>& inputs) const {
  std::vector<IValue> made;
  made.reserve(segments_[at_].sources.size());
  for (const ArgumentSource& source : segments_[at_].sources) {
    if (source.kind == ArgumentSource::Kind::Input) {
      made.emplace_back(inputs[source.index]);
    } else {
      made.push_back(numbers_[source.index]);
    }
  }
  return made;
}

void FrozenStep::restore(std::vector<Record>& records, std::vector<Graph::Origin>& origins) const {
  if (at_ >= segments_.size()) return;
  const Segment& segment = segments_[at_];
  records.assign(segment.records.begin(),
                 segment.records.begin() + static_cast<ptrdiff_t>(records_done_));
  origins.assign(segment.origins.begin(),
                 segment.origins.begin() + static_cast<ptrdiff_t>(values_done_));
  size_t next = 0;
  for (Record& record : records) {
    for (Operand& operand : record.operands) {
      if (operand.kind == Operand::Kind::Number) operand.value = numbers_[next++];
      if (operand.kind != Operand::Kind::Ints) continue;
      std::vector<IValue> elements = operand.value.elements();
      for (IValue& e : elements) {
        if (isParameter(e.toInt())) e = numbers_[next++];
      }
      operand.value = IValue(makeList(types::Int(), std::move(elements)));
    }
  }
}

}  // namespace wick::lazy

// Optimizer::stateDict and Optimizer::loadStateDict: the form of torch.optim's state_dict().
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "training/optimizer.h"
#include "training/settings.h"

namespace wick {
namespace {

Ref<DictObject> newDict(TypePtr key) {
  return makeRef<DictObject>(std::move(key), types::Any());
}

[[noreturn]] void refuse(const std::string& reason) {
  throw UsageError("loadStateDict: " + reason);
}

const DictObject& asDict(const IValue& value, const char* what) {
  if (!value.isDict()) refuse(fmt::format("{} is {}, expected a dict", what, value.tagName()));
  return value.toDict();
}

const IValue& entry(const DictObject& dict, const char* key, const char* where) {
  const IValue* found = dict.find(IValue(key));
  if (!found) refuse(fmt::format("{} has no '{}'", where, key));
  return *found;
}

double numberOf(const IValue& value, const char* name) {
  if (value.isInt()) return static_cast<double>(value.toInt());
  if (value.isDouble()) return value.toDouble();
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().numel() == 1) {
    return value.toTensor().item<double>();
  }
  refuse(fmt::format("'{}' is {}, expected a number", name, value.tagName()));
}

void read(const IValue& value, const char* name, double& field) {
  field = numberOf(value, name);
}
void read(const IValue& value, const char* name, bool& field) {
  if (!value.isBool()) refuse(fmt::format("'{}' is {}, expected a bool", name, value.tagName()));
  field = value.toBool();
}
void read(const IValue& value, const char* name, std::array<double, 2>& field) {
  if ((!value.isTuple() && !value.isList()) || value.elements().size() != 2) {
    refuse(fmt::format("'{}' is {}, expected two numbers", name, value.tagName()));
  }
  const std::vector<IValue>& elements = value.elements();
  for (size_t i = 0; i < 2; ++i) field[i] = numberOf(elements[i], name);
}

IValue written(double value) {
  return value;
}
IValue written(bool value) {
  return value;
}
IValue written(const std::array<double, 2>& value) {
  return makeTuple({value[0], value[1]});
}

// RMSprop counts its steps with an int, the others with a float32 tensor.
IValue stepValue(int64_t step, const UpdateRule& rule) {
  if (std::holds_alternative<RmsProp>(rule)) return step;
  return Tensor::scalar(static_cast<float>(step));
}

}  // namespace

// What is made of a state before anything is changed.
struct OptimizerState {
  std::vector<ParameterGroup> groups;
  std::vector<Optimizer::Memory> memories;

  static IValue write(const Optimizer& optimizer);
  void readGroup(const IValue& saved, std::map<int64_t, size_t>& places, size_t& next,
                 size_t number);
  void readMemory(const IValue& saved, const UpdateRule& rule, const Tensor& parameter,
                  size_t index);
};

IValue OptimizerState::write(const Optimizer& optimizer) {
  auto state = newDict(types::Int());
  auto groups = makeList(types::Any());
  int64_t index = 0;
  std::vector<IValue> written_groups;
  for (const ParameterGroup& group : optimizer.groups_) {
    auto entries = newDict(types::String());
    std::visit(
        [&](const auto& rule) {
          training::forEachSetting(rule, [&](const char* name, const auto& field) {
            entries->set(IValue(name), written(field));
          });
        },
        group.rule);
    for (const auto& [name, value] : group.others) entries->set(IValue(name), value);
    if (group.initial_lr) entries->set(IValue("initial_lr"), *group.initial_lr);
    std::vector<IValue> numbers;
    const std::array<const char*, 3> names = training::bufferNames(group.rule);
    const bool counts = !std::holds_alternative<Sgd>(group.rule);
    for (size_t i = 0; i < group.parameters.size(); ++i, ++index) {
      numbers.emplace_back(index);
      const Optimizer::Memory& memory = optimizer.memories_[static_cast<size_t>(index)];
      auto of = newDict(types::String());
      if (counts) of->set(IValue("step"), stepValue(memory.step, group.rule));
      bool any = memory.step > 0;
      for (size_t k = 0; k < names.size(); ++k) {
        if (!memory.buffers[k].defined()) continue;
        of->set(IValue(names[k]), memory.buffers[k]);
        any = true;
      }
      if (any) state->set(index, IValue(std::move(of)));
    }
    entries->set(IValue("params"), IValue(makeList(types::Int(), std::move(numbers))));
    written_groups.emplace_back(IValue(std::move(entries)));
  }
  auto all = newDict(types::String());
  all->set(IValue("state"), IValue(std::move(state)));
  all->set(IValue("param_groups"), IValue(makeList(types::Any(), std::move(written_groups))));
  return IValue(std::move(all));
}

void OptimizerState::readGroup(const IValue& saved, std::map<int64_t, size_t>& places, size_t& next,
                               size_t number) {
  const std::string where = fmt::format("group {}", number);
  const DictObject& entries = asDict(saved, where.c_str());
  ParameterGroup& group = groups[number];
  const IValue& params = entry(entries, "params", where.c_str());
  if (!params.isList() && !params.isTuple()) {
    refuse(fmt::format("{}: 'params' is {}, expected a list", where, params.tagName()));
  }
  const auto numbers = params.elements();
  if (numbers.size() != group.parameters.size()) {
    refuse(fmt::format("{} has {} parameters, that of the optimizer has {}", where, numbers.size(),
                       group.parameters.size()));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    const IValue& n = numbers[i];
    if (!n.isInt()) {
      refuse(fmt::format("{}: 'params' holds {}, expected numbers", where, n.tagName()));
    }
    if (!places.emplace(n.toInt(), next++).second) {
      refuse(fmt::format("{}: parameter {} occurs twice", where, n.toInt()));
    }
  }
  std::visit(
      [&](auto& rule) {
        training::forEachSetting(rule, [&]<class T>(const char* name, T& field) {
          const IValue* value = entries.find(IValue(name));
          if (value) {
            read(*value, name, field);
          } else if constexpr (std::is_same_v<T, bool>) {
            field = false;  // older versions had no such flag
          } else {
            refuse(
                fmt::format("{} has no '{}': it is not of {}", where, name, ruleName(group.rule)));
          }
        });
      },
      group.rule);
  training::checkSettings(group.rule);
  group.others.clear();
  group.initial_lr.reset();
  for (const auto& [key, value] : entries.items()) {
    if (!key.isString() || key.toString() == "params") continue;
    const std::string name = std::string(key.toString());
    if (name == "initial_lr") {
      group.initial_lr = numberOf(value, "initial_lr");
      continue;
    }
    bool known = false;
    std::visit(
        [&](auto& rule) {
          training::forEachSetting(rule,
                                   [&](const char* setting, auto&) { known |= name == setting; });
        },
        group.rule);
    if (!known) group.others.emplace_back(name, value);
  }
}

void OptimizerState::readMemory(const IValue& saved, const UpdateRule& rule,
                                const Tensor& parameter, size_t index) {
  const std::string where = fmt::format("the state of parameter {}", index);
  const DictObject& entries = asDict(saved, where.c_str());
  Optimizer::Memory memory;
  const std::array<const char*, 3> names = training::bufferNames(rule);
  for (const auto& [key, value] : entries.items()) {
    if (!key.isString()) {
      refuse(fmt::format("{} has the key {}, expected a string", where, key.shortRepr()));
    }
    const std::string name = std::string(key.toString());
    if (name == "step") {
      const double step = numberOf(value, "step");
      if (!(step >= 0 && step < 0x1p53)) {
        refuse(fmt::format("{}: 'step' is {}, expected a count", where, step));
      }
      memory.step = static_cast<int64_t>(step);
      continue;
    }
    const auto at =
        std::ranges::find_if(names, [&](const char* known) { return known && name == known; });
    if (at == names.end()) {
      refuse(fmt::format("{} has '{}', which {} does not know", where, name, ruleName(rule)));
    }
    if (value.isNone()) continue;  // no momentum
    if (!value.isTensor() || !value.toTensor().isStrided()) {
      refuse(fmt::format("{}: '{}' is {}, expected a dense tensor", where, name,
                         value.isTensor() ? value.toTensor().describe() : value.tagName()));
    }
    const Tensor& tensor = value.toTensor();
    if (!std::ranges::equal(tensor.sizes(), parameter.sizes())) {
      refuse(fmt::format("{}: '{}' is {}, the parameter {}", where, name, tensor.describe(),
                         parameter.describe()));
    }
    const Tensor copy = Tensor::emptyLike(parameter, parameter.dtype());
    copy.copyFrom(tensor.detach());
    memory.buffers[static_cast<size_t>(at - names.begin())] = copy;
  }
  memories[index] = std::move(memory);
}

IValue Optimizer::stateDict() const {
  return OptimizerState::write(*this);
}

void Optimizer::loadStateDict(const IValue& state) {
  const DictObject& all = asDict(state, "the state");
  const IValue& saved_groups = entry(all, "param_groups", "the state");
  const IValue& saved = entry(all, "state", "the state");
  asDict(saved, "'state'");
  if (!saved_groups.isList() && !saved_groups.isTuple()) {
    refuse(fmt::format("'param_groups' is {}, expected a list", saved_groups.tagName()));
  }
  const auto elements = saved_groups.elements();
  if (elements.size() != groups_.size()) {
    refuse(
        fmt::format("the state has {} groups, the optimizer {}", elements.size(), groups_.size()));
  }
  OptimizerState made;
  made.groups = groups_;
  made.memories.resize(memories_.size());
  std::map<int64_t, size_t> places;  // numbers of the state to places among the parameters
  size_t next = 0;
  for (size_t g = 0; g < groups_.size(); ++g) made.readGroup(elements[g], places, next, g);
  const std::vector<Tensor> all_parameters = parameters();
  std::vector<const UpdateRule*> rules;
  for (const ParameterGroup& group : made.groups) {
    rules.insert(rules.end(), group.parameters.size(), &group.rule);
  }
  for (const auto& [key, value] : saved.toDict().items()) {
    if (!key.isInt() || !places.contains(key.toInt())) {
      refuse(fmt::format("'state' has an entry {}, which is the number of no parameter",
                         key.shortRepr()));
    }
    const size_t at = places.at(key.toInt());
    made.readMemory(value, *rules[at], all_parameters[at], at);
  }
  groups_ = std::move(made.groups);
  memories_ = std::move(made.memories);
}

}  // namespace wick

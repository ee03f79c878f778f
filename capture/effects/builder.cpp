#include "capture/effects/builder.h"

#include <algorithm>

#include "capture/values/variable.h"
#include "capture/world.h"

namespace wick::capture {
namespace {

// Numbers of registers until finish().
constexpr int kOutputs = 1 << 24;
constexpr int kMade = 1 << 26;

}  // namespace

int Builder::build(Variable* variable) {
  if (const auto known = made_.find(variable); known != made_.end()) return known->second;
  if (variable->source) return made_[variable] = guards_.keep(variable->source);
  if (std::ranges::find(open_, variable) != open_.end()) {
    breakGraph("an object that holds itself would have to be made again");
  }
  open_.push_back(variable);
  int at = 0;
  try {
    at = variable->build(*this);
  } catch (GraphBreak& reason) {
    if (reason.born < 0) reason.born = variable->born;
    throw;
  }
  open_.pop_back();
  return made_[variable] = at;
}

std::vector<int> Builder::buildAll(const std::vector<Variable*>& variables) {
  std::vector<int> registers;
  registers.reserve(variables.size());
  for (Variable* each : variables) registers.push_back(build(each));
  return registers;
}

Object Builder::addArguments(std::vector<int>& arguments, const Arguments& given) {
  for (const int each : buildAll(given.positional)) arguments.push_back(each);
  Object names;
  if (!given.keywords.empty()) {
    names = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(given.keywords.size())));
    for (size_t i = 0; i < given.keywords.size(); ++i) {
      const auto& [name, value] = given.keywords[i];
      PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), Py_NewRef(name.get()));
      arguments.push_back(build(value));
    }
  }
  return names;
}

int Builder::buildCall(int callee, const Arguments& given) {
  std::vector<int> arguments{callee};
  Object names = addArguments(arguments, given);
  return make(StepKind::kCall, std::move(arguments), std::move(names));
}

void Builder::buildKeep(int function, int result, const Arguments& given) {
  std::vector<int> arguments{function, result};
  Object names = addArguments(arguments, given);
  effect(StepKind::kKeepResult, std::move(arguments), std::move(names));
}

int Builder::constant(PyObject* object) {
  const auto known = constant_of_.find(object);
  if (known != constant_of_.end()) return known->second;
  return constant_of_[object] = make(StepKind::kConstant, {}, Object::share(object));
}

int Builder::output(PyObject* fake) {
  const auto [at, added] =
      output_of_.try_emplace(fake, kOutputs + static_cast<int>(outputs_.size()));
  if (added) outputs_.push_back(fake);
  return at->second;
}

int Builder::make(StepKind kind, std::vector<int> arguments, Object object, int64_t number) {
  const int at = kMade + num_made_++;
  steps_.push_back({kind, at, std::move(arguments), std::move(object), number});
  return at;
}

void Builder::effect(StepKind kind, std::vector<int> arguments, Object object, int64_t number) {
  steps_.push_back({kind, -1, std::move(arguments), std::move(object), number});
}

Recipe Builder::finish(std::vector<int*> wanted) {
  const int first_output = guards_.numRegisters();
  const int first_made = first_output + static_cast<int>(outputs_.size());
  const auto renumber = [&](int& at) {
    if (at >= kMade) {
      at += first_made - kMade;
    } else if (at >= kOutputs) {
      at += first_output - kOutputs;
    }
  };
  for (Step& step : steps_) {
    renumber(step.result);
    for (int& argument : step.arguments) renumber(argument);
  }
  for (int* each : wanted) renumber(*each);
  return {std::move(steps_), first_made + num_made_};
}

}  // namespace wick::capture

#include "training/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/anomaly.h"
#include "autograd/tape.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ir/function.h"
#include "runtime/autocast.h"
#include "runtime/call.h"
#include "runtime/ops/common_calls.h"
#include "training/backward.h"
#include "training/clip.h"

namespace wick::training {
namespace {

// Well mixed numbers from any two (splitmix64).
uint64_t mixed(uint64_t seed, uint64_t number) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + number + 0x632BE59BD9B4E019u;
  for (int i = 0; i < 2; ++i) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
  }
  return z;
}

// What the numbers of a seed are for.
enum class Draw : uint64_t { Step = 0, Order = 1, Split = 2 };

uint64_t seedFor(uint64_t seed, Draw draw, int64_t number) {
  return mixed(mixed(seed, static_cast<uint64_t>(draw)), static_cast<uint64_t>(number));
}

void shuffle(std::vector<int64_t>& places, uint64_t seed) {
  GeneratorObject generator(seed);
  for (size_t i = places.size(); i > 1; --i) {
    std::swap(places[i - 1], places[generator.next64() % i]);
  }
}

// The largest batch that the loops below make an index for.
Tensor indexOf(std::span<const int64_t> places) {
  return Tensor::from(places);
}

std::vector<Tensor> trainable(const Module& module) {
  std::vector<Tensor> parameters = distinctParameters(module);
  std::string name = module.type()->name();
  name.erase(0, name.rfind('.') + 1);
  if (parameters.empty()) {
    throw UsageError(name + " has no parameters to train; in a frozen module they are constants");
  }
  if (std::ranges::none_of(parameters, [](const Tensor& p) { return p.requiresGrad(); })) {
    throw UsageError(fmt::format("none of the {} parameters of {} requires a gradient",
                                 parameters.size(), name));
  }
  return parameters;
}

void checkSettings(const TrainerSettings& settings) {
  const auto refuse = [](const char* what, auto found, const char* expected) {
    throw UsageError(fmt::format("{} is {}, expected {}", what, found, expected));
  };
  if (settings.epochs < 1) refuse("the number of epochs", settings.epochs, "at least 1");
  if (settings.batch_size < 1) refuse("the size of batches", settings.batch_size, "at least 1");
  if (!(settings.validation >= 0 && settings.validation < 1)) {
    refuse("the share for validation", settings.validation, "a number from 0 to below 1");
  }
  for (const double limit : {settings.clip_norm, settings.clip_value}) {
    if (!(limit >= 0)) refuse("a limit of gradients", limit, "at least 0");
  }
}

// Errors that are not the model's.
bool isLimit(const RuntimeError& error) {
  const std::string& name = error.className();
  return name == "TimeoutError" || name == "MemoryError" || name == "KeyboardInterrupt";
}

// Whether a pickle that Python reads holds the value, so that a state may.
bool isPlain(const IValue& value, int depth = 0) {
  if (value.isNone() || value.isInt() || value.isDouble() || value.isBool() || value.isString()) {
    return true;
  }
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().isStrided();
  if (depth > 100) return false;
  if (value.isList() || value.isTuple()) {
    return std::ranges::all_of(value.elements(),
                               [&](const IValue& v) { return isPlain(v, depth + 1); });
  }
  return value.isDict() && value.toDict().all([&](const IValue& k, const IValue& v) {
    return isPlain(k, depth + 1) && isPlain(v, depth + 1);
  });
}

Tensor onCpu(const Tensor& t) {
  return t.defined() && !t.device().isCpu() ? moveTo(t, Device()) : t;
}

// A state whose tensors are all on the CPU.
IValue onCpu(const IValue& value) {
  if (value.isTensor()) return IValue(onCpu(value.toTensor()));
  if (value.isDict()) {
    const DictObject& from = value.toDict();
    auto made = makeRef<DictObject>(from.key_type, from.value_type);
    for (const auto& [key, held] : from.items()) made->set(key, onCpu(held));
    return IValue(std::move(made));
  }
  if (!value.isList() && !value.isTuple()) return value;
  std::vector<IValue> elements;
  for (const IValue& e : value.elements()) elements.push_back(onCpu(e));
  return value.isList() ? IValue(makeList(value.toList().element_type, std::move(elements)))
                        : IValue(makeTuple(std::move(elements), value.toTuple().named));
}

// As losses within autocast take it.
IValue inFullPrecision(IValue output) {
  if (!output.isTensor() || !isReducedFloat(output.toTensor().dtype())) return output;
  return IValue(
      ops::toDType(output.toTensor(), DType::Float, false, false, std::optional<MemoryFormat>()));
}

const IValue& entry(const IValue& state, const char* name) {
  const IValue* found = state.isDict() ? state.toDict().find(IValue(name)) : nullptr;
  if (!found) throw UsageError(fmt::format("the state of a training has no '{}'", name));
  return *found;
}

int64_t countIn(const IValue& state, const char* name) {
  const IValue& value = entry(state, name);
  if (!value.isInt() || value.toInt() < 0) {
    throw UsageError(fmt::format("the state of a training: '{}' is {}, expected a count", name,
                                 value.shortRepr()));
  }
  return value.toInt();
}

}  // namespace

Trainer::Trainer(Module module, DataSet data, Objective objective, TrainerSettings settings)
    : module_(std::move(module)),
      data_(std::move(data)),
      objective_(std::move(objective)),
      settings_(std::move(settings)),
      optimizer_(trainable(module_), settings_.rule) {
  checkSettings(settings_);
  device_ = optimizer_.groups()[0].parameters[0].device();
  module_.train();
  if (settings_.autocast) {
    if (settings_.method.empty() && module_.hasHooks()) {
      throw UsageError(
          "mixed precision does not reach the hooks of a module; name the method to train");
    }
    cast_ = withAutocast(module_.method(methodName()), optimizer_.parameters()[0].device().type,
                         settings_.autocast);
    if (*settings_.autocast == DType::Half) scaler_.emplace();
  }
  if (device_.isCuda() && settings_.repeat) prepareRepeats();
  std::vector<int64_t> places(static_cast<size_t>(data_.size()));
  std::iota(places.begin(), places.end(), 0);
  if (settings_.shuffle) shuffle(places, seedFor(settings_.seed, Draw::Split, 0));
  const auto kept =
      static_cast<size_t>(std::llround(settings_.validation * static_cast<double>(places.size())));
  if (kept >= places.size()) throw UsageError("the share for validation leaves no sample to train");
  validation_.assign(places.end() - static_cast<ptrdiff_t>(kept), places.end());
  places.resize(places.size() - kept);
  train_ = std::move(places);
  // The order within an epoch begins with that of the file.
  std::ranges::sort(train_);
  std::ranges::sort(validation_);
  const auto samples = static_cast<int64_t>(train_.size());
  epoch_steps_ = settings_.drop_last ? samples / settings_.batch_size
                                     : (samples - 1) / settings_.batch_size + 1;
  if (epoch_steps_ == 0) {
    throw UsageError(fmt::format("{} samples are no batch of {}", samples, settings_.batch_size));
  }
  if (settings_.epochs > (int64_t{1} << 50) / epoch_steps_) throw UsageError("too many epochs");
  if (settings_.schedule) {
    TrainerSettings::Plan plan = settings_.schedule(epoch_steps_, allSteps());
    schedule_.emplace(optimizer_, std::move(plan.rules), std::move(plan.milestones));
  }
}

void Trainer::prepareRepeats() {
  std::string refusal;
  if (settings_.detect_anomaly) refusal = "anomalies are looked for";
  if (scaler_) refusal = "the loss is scaled";
  if (!cast_ && settings_.method.empty() && module_.hasHooks()) refusal = "the model has hooks";
  if (!settings_.model_gives_loss && !objective_.isKnown()) {
    refusal = "the loss is a function of the application";
  }
  repeated_.emplace(module_, module_.method(methodName()), optimizer_.parameters(), device_,
                    std::move(refusal));
}

void Trainer::setValidation(DataSet data) {
  other_validation_ = std::move(data);
}

int64_t Trainer::validationSamples() const {
  return other_validation_ ? other_validation_->size() : static_cast<int64_t>(validation_.size());
}

std::vector<int64_t> Trainer::batchOf(int64_t step) {
  const int64_t epoch = step / epoch_steps_;
  if (order_epoch_ != epoch) {
    order_ = train_;
    if (settings_.shuffle) shuffle(order_, seedFor(settings_.seed, Draw::Order, epoch));
    order_epoch_ = epoch;
  }
  const int64_t begin = step % epoch_steps_ * settings_.batch_size;
  const int64_t end =
      std::min<int64_t>(begin + settings_.batch_size, static_cast<int64_t>(order_.size()));
  return {order_.begin() + begin, order_.begin() + end};
}

void Trainer::failAt(const DataSet& batch, const RuntimeError& error) const {
  if (isLimit(error)) throw;
  std::string hint;
  for (const auto& [name, input] : batch.inputs) {
    for (const Tensor& p : optimizer_.groups()[0].parameters) {
      if (!isFloating(input.dtype()) || !isFloating(p.dtype()) || input.dtype() == p.dtype()) {
        continue;
      }
      hint = fmt::format("\nhint: an input is {}, the parameters are {}", toString(input.dtype()),
                         toString(p.dtype()));
      break;
    }
  }
  // With the lines of the program, where it was one that raised.
  const std::string what =
      error.frames().empty() ? error.brief() : std::string("\n") + error.what();
  throw RuntimeError(fmt::format("step {} with {}: {}{}", steps_ + 1, batch.describe(), what, hint),
                     error.className());
}

IValue Trainer::runModel(const DataSet& batch, const RunOptions& options) {
  const std::string method = methodName();
  const FunctionSchema& schema = module_.method(method).schema();
  Arguments arguments = argumentsFor(batch, schema, 1, settings_.model_gives_loss);
  try {
    if (cast_) {
      return inFullPrecision(callMethod(module_.object(), *cast_, std::move(arguments.positional),
                                        std::move(arguments.named), options));
    }
    return settings_.method.empty()
               ? module_(std::move(arguments.positional), std::move(arguments.named), options)
               : module_.run(method, std::move(arguments.positional), std::move(arguments.named),
                             options);
  } catch (const RuntimeError& error) {
    failAt(batch, error);
  }
}

Tensor Trainer::lossOf(const DataSet& batch, const IValue& output) const {
  if (!settings_.model_gives_loss) return objective_.loss(output, batch.targets);
  WICK_CHECK(output.isTensor() && output.toTensor().defined(),
             "the model gives {} as its loss, expected one Tensor", output.tagName());
  const Tensor& loss = output.toTensor();
  WICK_CHECK(loss.numel() == 1 && isFloating(loss.dtype()),
             "the model gives {} as its loss, expected one floating-point number", loss.describe());
  return loss;
}

Trainer::Step Trainer::step() {
  if (steps_ % epoch_steps_ == 0) {
    loss_sum_ = 0;
    samples_ = right_ = decisions_ = 0;
  }
  const std::vector<int64_t> places = batchOf(steps_);
  const Tensor index = indexOf(places);
  DataSet batch = data_.at(index).on(device_);
  defaultGenerator().seed(seedFor(settings_.seed, Draw::Step, steps_));
  optimizer_.zeroGrad();
  const GradModeGuard recorded(true);
  std::optional<autograd::AnomalyMode> anomalies;
  RunOptions options;
  if (settings_.detect_anomaly) options.observer = anomalies.emplace().observer();
  Step done;
  Tensor loss, right;
  std::optional<Objective::Count> count;
  const auto look = [&] {
    count = Objective::countOf(right, batch.targets);
    done.loss = onCpu(loss.detach()).to(DType::Double).item<double>();
    if (std::isfinite(done.loss)) return;
    throwRuntimeError(
        "the loss is {} (epoch {}, rate {}); a smaller rate or clipped gradients may "
        "help{}",
        done.loss, steps_ / epoch_steps_ + 1, optimizer_.groups()[0].lr(),
        settings_.detect_anomaly ? "" : ", --detect-anomaly names an operator");
  };
  // A lazy device computes the whole step at once where no value is looked at before its end.
  const bool at_end = device_.type == kLazy && !scaler_;
  // There and back.
  const auto walk = [&](const DataSet& given, const IValue& output) {
    RepeatedStep::Result result{lossOf(given, output), {}};
    WICK_CHECK(autograd::requiresGradient(result.loss),
               "the loss depends on no parameter that requires a gradient");
    // Values are looked at behind the walk back: where a loss is not finite, the walk names where it
    // became so.
    backward(scaler_ ? scaler_->scale(result.loss) : result.loss);
    if (!settings_.model_gives_loss) result.right = objective_.right(output, given.targets);
    return result;
  };
  std::optional<RepeatedStep::Result> result;
  if (repeated_ && fitted_) {
    result = repeated_->repeat(
        batch, [&](const DataSet& given) { return walk(given, runModel(given, options)); });
  }
  const IValue output = result ? IValue() : runModel(batch, options);
  try {
    if (!fitted_ && !settings_.model_gives_loss) {
      data_.targets = objective_.fittedTargets(output, data_.targets);
      batch.targets = data_.at(index).on(device_).targets;
    }
    fitted_ = true;
    if (!result) result = walk(batch, output);
    loss = result->loss;
    right = result->right;
    if (!at_end) look();
    if (scaler_) scaler_->unscale(optimizer_);
  } catch (const RuntimeError& error) {
    failAt(batch, error);
  }
  if (settings_.clip_value > 0) clipGradValue(optimizer_.parameters(), settings_.clip_value);
  Tensor norm;
  if (settings_.clip_norm > 0 && at_end) {
    norm = clipGradNormThere(optimizer_.parameters(), settings_.clip_norm);
  } else if (settings_.clip_norm > 0) {
    done.norm = clipGradNorm(optimizer_.parameters(), settings_.clip_norm);
  }
  done.rate = optimizer_.groups()[0].lr();
  if (scaler_) {
    done.left_out = !scaler_->step(optimizer_);
    scaler_->update();
  } else {
    optimizer_.step();
  }
  try {
    if (settings_.end_step) settings_.end_step();
    if (at_end) look();
  } catch (const RuntimeError& error) {
    failAt(batch, error);
  }
  if (norm.defined()) done.norm = onCpu(norm).to(DType::Double).item<double>();
  if (schedule_) schedule_->step();

  done.epoch = steps_ / epoch_steps_ + 1;
  done.number = ++steps_;
  done.samples = static_cast<int64_t>(places.size());
  loss_sum_ += done.loss * static_cast<double>(done.samples);
  samples_ += done.samples;
  if (count) {
    right_ += count->right;
    decisions_ += count->decisions;
  }
  return done;
}

Trainer::Result Trainer::epochSoFar() const {
  Result result{samples_ ? loss_sum_ / static_cast<double>(samples_) : 0, std::nullopt, samples_};
  if (decisions_ > 0) {
    result.accuracy = static_cast<double>(right_) / static_cast<double>(decisions_);
  }
  return result;
}

std::optional<Trainer::Result> Trainer::validate() {
  const int64_t all = validationSamples();
  if (all == 0) return std::nullopt;
  DataSet& data = other_validation_ ? *other_validation_ : data_;
  const GradModeGuard unrecorded(false);
  defaultGenerator().seed(seedFor(settings_.seed, Draw::Step, -1));
  module_.eval();
  // Also when the model raises.
  struct Back {
    const Module& module;
    ~Back() { module.train(); }
  } const back{module_};
  Result result;
  Objective::Count sum;
  bool fitted = !other_validation_;
  for (int64_t begin = 0; begin < all; begin += settings_.batch_size) {
    const int64_t end = std::min(all, begin + settings_.batch_size);
    std::vector<int64_t> places(static_cast<size_t>(end - begin));
    std::iota(places.begin(), places.end(), begin);
    if (!other_validation_) {
      for (int64_t& place : places) place = validation_[static_cast<size_t>(place)];
    }
    const Tensor index = indexOf(places);
    DataSet batch = data.at(index).on(device_);
    const IValue output = runModel(batch, {});
    if (!fitted && !settings_.model_gives_loss) {
      data.targets = objective_.fittedTargets(output, data.targets);
      batch.targets = data.at(index).on(device_).targets;
      fitted = true;
    }
    const double loss = onCpu(lossOf(batch, output)).to(DType::Double).item<double>();
    result.loss += loss * static_cast<double>(end - begin);
    if (settings_.model_gives_loss) continue;
    const Tensor right = objective_.right(output, batch.targets);
    if (const auto count = Objective::countOf(right, batch.targets)) {
      sum.right += count->right;
      sum.decisions += count->decisions;
    }
  }
  result.loss /= static_cast<double>(all);
  result.samples = all;
  if (sum.decisions > 0) {
    result.accuracy = static_cast<double>(sum.right) / static_cast<double>(sum.decisions);
  }
  return result;
}

IValue Trainer::state() const {
  auto attributes = makeRef<DictObject>(types::String(), types::Any());
  const IValue tensors = module_.stateDict();
  for (const auto& [name, value] : module_.attributes()) {
    const bool is_mode = name == "training" || name.ends_with(".training");
    if (is_mode || tensors.toDict().find(IValue(name)) || !isPlain(value)) continue;
    attributes->set(IValue(name), value);
  }
  auto state = makeRef<DictObject>(types::String(), types::Any());
  state->set(IValue("model"), tensors);
  state->set(IValue("attributes"), IValue(std::move(attributes)));
  state->set(IValue("optimizer"), optimizer_.stateDict());
  state->set(IValue("schedule"), schedule_ ? schedule_->stateDict() : IValue());
  if (scaler_) state->set(IValue("scaler"), scaler_->stateDict());
  state->set(IValue("steps"), steps_);
  state->set(IValue("epoch_loss"), loss_sum_);
  state->set(IValue("epoch_samples"), samples_);
  state->set(IValue("epoch_right"), right_);
  state->set(IValue("epoch_decisions"), decisions_);
  return onCpu(IValue(std::move(state)));
}

void Trainer::loadState(const IValue& state) {
  const int64_t steps = countIn(state, "steps");
  if (steps > allSteps()) {
    throw UsageError(
        fmt::format("the state is of step {}, the training has {}", steps, allSteps()));
  }
  const IValue& attributes = entry(state, "attributes");
  const IValue& loss = entry(state, "epoch_loss");
  if (!attributes.isDict() || !loss.isDouble()) {
    throw UsageError(
        fmt::format("the state of a training: expected a dict as 'attributes' and a number as "
                    "'epoch_loss', found {} and {}",
                    attributes.tagName(), loss.tagName()));
  }
  // Read before anything changes.
  const int64_t samples = countIn(state, "epoch_samples"), right = countIn(state, "epoch_right"),
                decisions = countIn(state, "epoch_decisions");
  optimizer_.loadStateDict(entry(state, "optimizer"));
  if (schedule_) schedule_->loadStateDict(entry(state, "schedule"));
  if (scaler_) scaler_->loadStateDict(entry(state, "scaler"));
  module_.loadStateDict(entry(state, "model"));
  if (repeated_) repeated_->forget();
  for (const auto& [key, value] : attributes.toDict().items()) {
    const std::string name = key.to<std::string>();
    const size_t dot = name.rfind('.');
    Module holder = dot == std::string::npos ? module_ : module_.submodule(name.substr(0, dot));
    const std::string last = dot == std::string::npos ? name : name.substr(dot + 1);
    if (!holder.attr(last).equals(value)) holder.setAttr(last, value);
  }
  steps_ = steps;
  loss_sum_ = loss.toDouble();
  samples_ = samples;
  right_ = right;
  decisions_ = decisions;
}

}  // namespace wick::training

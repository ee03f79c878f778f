#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/grad_mode.h"
#include "core/output_file.h"
#include "core/value_conversions.h"
#include "lazy/lazy.h"
#include "runtime/call.h"
#include "runtime/device_moves.h"
#include "runtime/jit_mode.h"
#include "serialization/export.h"
#include "serialization/file_kind.h"
#include "serialization/torch_save.h"
#include "tools/report.h"
#include "tools/samples.h"
#include "tools/terminal.h"
#include "tools/training_record.h"
#include "tools/verbs.h"
#include "training/trainer.h"

namespace wick::cli {
namespace {

using training::DataSet;
using training::Objective;
using training::Trainer;
using training::TrainerSettings;
using Clock = std::chrono::steady_clock;

// ---- from the command line to settings ----

// Takes a number over when it was given; refuses it where the rule has no such setting.
template <class Rule>
UpdateRule ruleWith(Rule rule, const TrainOptions& train) {
  const auto refuse = [&](const char* flag) {
    throw CommandLineError(fmt::format("{}: {} has no such setting", flag, train.optimizer));
  };
#define WICK_SETTING(flag, option, field)         \
  if constexpr (requires { rule.field; }) {       \
    if (train.option) rule.field = *train.option; \
  } else if (train.option) {                      \
    refuse(flag);                                 \
  }
#define WICK_SWITCH(flag, field)            \
  if constexpr (requires { rule.field; }) { \
    rule.field = train.field;               \
  } else if (train.field) {                 \
    refuse(flag);                           \
  }
  WICK_SETTING("--lr", lr, lr)
  WICK_SETTING("--momentum", momentum, momentum)
  WICK_SETTING("--dampening", dampening, dampening)
  WICK_SETTING("--weight-decay", weight_decay, weight_decay)
  WICK_SETTING("--eps", eps, eps)
  WICK_SETTING("--alpha", alpha, alpha)
  WICK_SETTING("--lr-decay", lr_decay, lr_decay)
  WICK_SWITCH("--nesterov", nesterov)
  WICK_SWITCH("--amsgrad", amsgrad)
  WICK_SWITCH("--centered", centered)
#undef WICK_SETTING
#undef WICK_SWITCH
  if constexpr (requires { rule.betas; }) {
    if (!train.betas.empty()) rule.betas = {train.betas[0], train.betas[1]};
  } else if (!train.betas.empty()) {
    refuse("--betas");
  }
  return rule;
}

UpdateRule ruleOf(const TrainOptions& train) {
  const std::string& name = train.optimizer;
  if (name == "sgd") {
    if (!train.lr) throw CommandLineError("--lr: sgd needs a rate");
    return ruleWith(Sgd(), train);
  }
  if (name == "adam") return ruleWith(Adam(), train);
  if (name == "adamw") return ruleWith(AdamW(), train);
  if (name == "rmsprop") return ruleWith(RmsProp(), train);
  return ruleWith(Adagrad(), train);
}

// All schedules count steps; what the command line says in epochs is multiplied.
TrainerSettings::Plan planOf(const TrainOptions& train, double lr, int64_t epoch_steps,
                             int64_t all_steps) {
  TrainerSettings::Plan plan;
  const int64_t warm_up = std::min(train.warm_up, all_steps);
  if (warm_up > 0) {
    // The first step has the rate 1/n, the n-th nearly the whole.
    plan.rules.push_back(LinearLr{.start_factor = 1.0 / static_cast<double>(warm_up + 1),
                                  .end_factor = 1,
                                  .total_iters = warm_up});
    plan.milestones.push_back(warm_up);
  }
  const int64_t rest = std::max<int64_t>(all_steps - warm_up, 1);
  if (train.schedule == "step") {
    plan.rules.push_back(StepLr{train.step_size * epoch_steps, train.gamma});
  } else if (train.schedule == "multistep") {
    MultiStepLr rule{{}, train.gamma};
    for (int64_t epoch : train.milestones) rule.milestones.push_back(epoch * epoch_steps - warm_up);
    plan.rules.push_back(std::move(rule));
  } else if (train.schedule == "exponential") {
    plan.rules.push_back(StepLr{epoch_steps, train.gamma});
  } else if (train.schedule == "cosine") {
    plan.rules.push_back(CosineAnnealingLr{rest, train.min_lr});
  } else if (train.schedule == "linear") {
    plan.rules.push_back(PolynomialLr{rest, 1});
  } else if (train.schedule == "onecycle") {
    plan.rules.push_back(OneCycleLr{.max_lr = lr, .total_steps = rest, .cycle_momentum = false});
  } else {
    plan.rules.push_back(ConstantLr{1, 0});
  }
  return plan;
}

TrainerSettings settingsOf(const Options& options) {
  const TrainOptions& train = options.train;
  TrainerSettings settings;
  settings.rule = ruleOf(train);
  const double lr = std::visit([](const auto& rule) { return rule.lr; }, settings.rule);
  if (train.schedule != "constant" || train.warm_up > 0) {
    if (train.schedule == "onecycle" && train.warm_up > 0) {
      throw CommandLineError("--warm-up: onecycle has a warm-up of its own");
    }
    settings.schedule = [train, lr](int64_t epoch_steps, int64_t all_steps) {
      return planOf(train, lr, epoch_steps, all_steps);
    };
  }
  settings.method = options.method;
  settings.model_gives_loss = train.loss == "model";
  settings.epochs = train.epochs;
  settings.batch_size = train.batch_size;
  settings.seed = options.seed.value_or(0);
  settings.shuffle = !train.no_shuffle;
  settings.drop_last = train.drop_last;
  settings.validation = train.validation;
  settings.clip_norm = train.clip_norm;
  settings.clip_value = train.clip_value;
  settings.detect_anomaly = train.detect_anomaly;
  if (!options.device.empty() && defaultDevice().type == kLazy) settings.end_step = lazy::markStep;
  if (!options.autocast.empty()) {
    settings.autocast = options.autocast == "float16" ? DType::Half : DType::BFloat16;
  }
  return settings;
}

Objective lossOf(const Options& options) {
  if (options.train.loss == "model") {
    return Objective([](const IValue&, const Tensor&) { return Tensor(); });
  }
  return objectiveOf(options.train.loss, options.function);
}

DataSet dataOf(const std::vector<std::string>& paths, const Options& options) {
  return samplesOf(paths, options.train.target, options.dtype, "--target");
}

// ---- checkpoints ----

constexpr const char* kFormat = "wick training 1";

// All that the numbers depend on besides the files' contents. A training goes on only with the
// same.
std::map<std::string, std::string> identity(const Options& options, const DataSet& data) {
  const TrainOptions& t = options.train;
  std::map<std::string, std::string> all;
  const auto number = [](const std::optional<double>& v) {
    return v ? fmt::format("{}", *v) : std::string("default");
  };
  all["--data"] = data.describe();
  all["--loss"] = t.loss;
  all["--optimizer"] = fmt::format("{}{}{}{}", t.optimizer, t.nesterov ? " nesterov" : "",
                                   t.amsgrad ? " amsgrad" : "", t.centered ? " centered" : "");
  all["--lr"] = number(t.lr);
  all["--momentum"] = number(t.momentum);
  all["--dampening"] = number(t.dampening);
  all["--weight-decay"] = number(t.weight_decay);
  all["--eps"] = number(t.eps);
  all["--alpha"] = number(t.alpha);
  all["--lr-decay"] = number(t.lr_decay);
  all["--betas"] = fmt::format("{}", fmt::join(t.betas, " "));
  all["--schedule"] =
      fmt::format("{} of {} steps, {} and {}, gamma {}, to {}", t.schedule, t.warm_up, t.step_size,
                  fmt::join(t.milestones, " "), t.gamma, t.min_lr);
  all["--batch-size"] = std::to_string(t.batch_size);
  all["--seed"] = std::to_string(options.seed.value_or(0));
  all["--no-shuffle"] = t.no_shuffle ? "yes" : "no";
  all["--drop-last"] = t.drop_last ? "yes" : "no";
  all["--validation"] = fmt::format("{}", t.validation);
  all["--clip-norm"] = fmt::format("{}", t.clip_norm);
  all["--clip-value"] = fmt::format("{}", t.clip_value);
  all["--dtype"] = options.dtype;
  if (!options.device.empty()) all["--device"] = options.device;
  all["--autocast"] = options.autocast;
  all["--method"] = options.method;
  // Where rates depend on the end.
  const bool to_the_end =
      t.schedule == "cosine" || t.schedule == "linear" || t.schedule == "onecycle";
  if (to_the_end) all["--epochs"] = std::to_string(t.epochs);
  return all;
}

void writeCheckpoint(const std::string& path, const Trainer& trainer, const TrainingRecord& record,
                     const std::map<std::string, std::string>& settings) {
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  dict->set(IValue("format"), IValue(kFormat));
  dict->set(IValue("settings"), IValue(settings));
  dict->set(IValue("trainer"), trainer.state());
  dict->set(IValue("record"), record.state());
  saveValue(IValue(std::move(dict)), path);
}

TrainingRecord readCheckpoint(const std::string& path, Trainer& trainer,
                              const std::map<std::string, std::string>& settings) {
  const IValue value = [&] {
    try {
      return loadValue(path, {}, Device());
    } catch (const LoadError& error) {
      throw LoadError(fmt::format("{} is no checkpoint of a training: {}", path,
                                  messageFor(error, Interface::CommandLine)));
    }
  }();
  const auto part = [&](const char* name) -> IValue {
    const IValue* found = value.isDict() ? value.toDict().find(IValue(name)) : nullptr;
    if (!found) throw LoadError(path + " is no checkpoint of a training");
    return *found;
  };
  const IValue format = part("format");
  if (!format.isString() || format.to<std::string>() != kFormat) {
    throw LoadError(path + " is no checkpoint of a training");
  }
  // What does not fit is the file's fault, whatever noticed it; but not that time or memory is
  // over.
  const auto from_file = [&](auto read) {
    try {
      return read();
    } catch (const UsageError& error) {
      throw UsageError(path + ": " + error.what());
    } catch (const RuntimeError& error) {
      if (error.className() != "RuntimeError") throw;
      throw UsageError(path + ": " + error.brief());
    }
  };
  const auto saved =
      from_file([&] { return part("settings").to<std::map<std::string, std::string>>(); });
  for (const auto& [name, now] : settings) {
    const auto at = saved.find(name);
    const std::string then = at == saved.end() ? "nothing" : at->second;
    if (then != now) {
      throw UsageError(
          fmt::format("{}: {} was '{}' and is '{}'; go on with the same, or begin "
                      "without --resume",
                      path, name, then, now));
    }
  }
  return from_file([&] {
    trainer.loadState(part("trainer"));
    return TrainingRecord::from(part("record"));
  });
}

// ---- what is shown ----

// On a terminal a line that is written over; elsewhere a line now and then.
class Progress {
 public:
  void show(const Trainer& trainer, const Trainer::Step& step, double samples_per_second,
            double seconds_left) {
    const auto text = [&] {
      return fmt::format("epoch {} step {}/{}: loss {:.4g}, {:.0f} samples/s, {} left", step.epoch,
                         step.number, trainer.allSteps(), step.loss, samples_per_second,
                         formatDuration(seconds_left));
    };
    if (terminal_) return line_.show(text);
    const auto now = Clock::now();
    if (now - last_ < std::chrono::seconds(20)) return;
    last_ = now;
    print(text() + "\n");
  }
  void line(const std::string& text) {
    clear();
    print(text + "\n");
  }
  void clear() { line_.clear(); }

 private:
  const bool terminal_ = ProgressLine::hasTerminal();
  ProgressLine line_{terminal_};
  Clock::time_point last_ = Clock::now();
};

std::string describeEpoch(int64_t number, int64_t all, const Evaluated& e, double rate) {
  std::string text = fmt::format("epoch {}/{}: loss {:.4g}", number, all, e.train_loss);
  if (e.train_accuracy) text += fmt::format(", accuracy {:.4f}", *e.train_accuracy);
  if (e.loss) text += fmt::format(", validation loss {:.4g}", *e.loss);
  if (e.accuracy) text += fmt::format(", validation accuracy {:.4f}", *e.accuracy);
  return text + fmt::format(", {:.0f} samples/s", rate);
}

// ---- the run ----

class TrainingRun {
 public:
  TrainingRun(const Options& options, const LoadedFile& program, DataSet data)
      : options_(options),
        train_(options.train),
        unit_(program.unit()),
        identity_(identity(options, data)),
        trainer_(program.module(), std::move(data), lossOf(options), settingsOf(options)) {
    if (!train_.validation_data.empty()) {
      trainer_.setValidation(dataOf(train_.validation_data, options));
    }
    resume();
    if (!train_.log.empty()) log_.emplace(train_.log, trainer_.stepsDone());
  }

  void run() {
    begin_ = Clock::now();
    while (!trainer_.finished() && !outOfTime()) {
      const auto before = Clock::now();
      const Trainer::Step step = trainer_.step();
      const double took = since(before);
      longest_ = std::max(longest_, took);
      // Of the last steps: the first ones compile.
      recent_ = ++steps_here_ == 1 ? took : 0.95 * recent_ + 0.05 * took;
      epoch_samples_ += step.samples;
      record_.losses.push_back(step.loss);
      if (log_) log_->step(step, seconds());
      progress_.show(trainer_, step, static_cast<double>(step.samples) / std::max(recent_, 1e-9),
                     recent_ * static_cast<double>(trainer_.allSteps() - step.number));
      if (trainer_.endOfEpoch()) endEpoch();
      const bool due = train_.checkpoint_every > 0 ? step.number % train_.checkpoint_every == 0
                                                   : trainer_.endOfEpoch();
      if (due || trainer_.finished()) checkpoint();
    }
    progress_.clear();
    if (!trainer_.finished()) stopEarly();
    trainer_.module().eval();
    fetchModule();
    saveModule(trainer_.module(), options_.output_file);
    tellRepeats();
    progress_.line(
        fmt::format("{}: written after {} steps", options_.output_file, trainer_.stepsDone()));
  }

 private:
  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  double seconds() const { return record_.seconds + since(begin_); }

  void resume() {
    if (!train_.resume) return;
    if (!std::filesystem::exists(train_.checkpoint)) {
      progress_.line(train_.checkpoint + ": there is no checkpoint yet; the training begins");
      return;
    }
    record_ = readCheckpoint(train_.checkpoint, trainer_, identity_);
    progress_.line(fmt::format("{}: goes on after step {} of {}", train_.checkpoint,
                               trainer_.stepsDone(), trainer_.allSteps()));
  }

  // A step that the time limit interrupts would be lost, so the last one ends before.
  bool outOfTime() const {
    const Budget* budget = currentBudget();
    if (!budget || steps_here_ == 0) return false;
    const int64_t left = budget->timeLeft();
    if (left == INT64_MAX) return false;
    constexpr double kToWrite = 0.2;
    return static_cast<double>(left) * 1e-9 < 2 * longest_ + 2 * longest_writing_ + kToWrite;
  }

  void stopEarly() {
    checkpoint();
    progress_.line(fmt::format("stopped by the time limit after step {} of {}{}",
                               trainer_.stepsDone(), trainer_.allSteps(),
                               train_.checkpoint.empty() ? "" : "; --resume goes on"));
  }

  // On devices that repeat steps.
  void tellRepeats() {
    const std::string why = trainer_.whyNotRepeated();
    const int64_t repeated = trainer_.repeatedSteps();
    if (repeated == 0 && !why.empty()) {
      progress_.line("no step was repeated as one graph: " + why);
    } else if (repeated > 0) {
      progress_.line(
          fmt::format("{} of {} steps were repeated as one graph", repeated, steps_here_));
    }
  }

  // Files are written from the CPU.
  void fetchModule() {
    if (options_.device.empty()) return;
    fetchResult(options_, IValue(trainer_.module().object()));
    moveConstants(unit_, Device());
  }

  void endEpoch() {
    const auto before = Clock::now();
    const Trainer::Result train = trainer_.epochSoFar();
    Evaluated e{trainer_.stepsDone(), train.loss, train.accuracy, std::nullopt, std::nullopt};
    const double rate = static_cast<double>(epoch_samples_) / std::max(since(epoch_begin_), 1e-9);
    if (const auto result = trainer_.validate()) {
      e.loss = result->loss;
      e.accuracy = result->accuracy;
    }
    record_.epochs.push_back(e);
    if (log_) log_->epoch(trainer_.epoch(), e, rate, seconds());
    progress_.line(describeEpoch(trainer_.epoch(), train_.epochs, e, rate));
    if (!train_.plot.empty()) writeFile(train_.plot, lossPicture(record_, options_.file));
    longest_writing_ = std::max(longest_writing_, since(before));
    epoch_samples_ = 0;
    epoch_begin_ = Clock::now();
  }

  void checkpoint() {
    if (train_.checkpoint.empty()) return;
    const auto before = Clock::now();
    TrainingRecord record = record_;
    record.seconds = seconds();
    writeCheckpoint(train_.checkpoint, trainer_, record, identity_);
    longest_writing_ = std::max(longest_writing_, since(before));
  }

  const Options& options_;
  const TrainOptions& train_;
  const CompilationUnit& unit_;
  std::map<std::string, std::string> identity_;
  Trainer trainer_;
  TrainingRecord record_;
  std::optional<TrainingLog> log_;
  Progress progress_;
  Clock::time_point begin_ = Clock::now(), epoch_begin_ = Clock::now();
  double longest_ = 0, longest_writing_ = 0, recent_ = 0;  // seconds
  int64_t steps_here_ = 0, epoch_samples_ = 0;
};

void checkFlags(const Options& options) {
  const TrainOptions& train = options.train;
  if (train.resume && train.checkpoint.empty()) {
    throw CommandLineError("--resume needs a --checkpoint to go on from");
  }
  if (train.checkpoint_every > 0 && train.checkpoint.empty()) {
    throw CommandLineError("--checkpoint-every needs a --checkpoint to write");
  }
  if (!train.validation_data.empty() && train.validation > 0) {
    throw CommandLineError("--validation and --validation-data exclude each other");
  }
  checkLoss(train.loss, "model");
}

}  // namespace

void trainVerb(const Options& options) {
  checkFlags(options);
  applySettings(options);
  setGradEnabled(true);
  // Machine code may round sums otherwise than operators do. Where a training may be interrupted
  // and must give the same numbers all the same, code is there from the first step on, not when it
  // happens to be compiled.
  if (!options.train.checkpoint.empty() && jitMode() != JitMode::Off) {
    setJitMode(JitMode::Sync);
    setJitThreshold(0);
  }
  // Whether files can be written shows before the work.
  for (const std::string& path :
       {options.output_file, options.train.checkpoint, options.train.plot}) {
    if (!path.empty()) const OutputFile probe(path);
  }
  const LoadedFile program = LoadedFile::load(options.file, devicesOf(options));
  if (!program.isArchive()) {
    throw UsageError(options.file + ": a script has no parameters to train; expected an archive");
  }
  if (!options.dtype.empty()) program.module().to(dtypeOf(options.dtype));
  if (!options.weights.empty()) loadWeights(program, options.weights);
  placeOnDevice(options, program, {});
  TrainingRun(options, program, dataOf(options.train.data, options)).run();
}

}  // namespace wick::cli

// A model over a set of samples with labels: how often it is right, and its loss. Batches come in the order of the
// samples, in evaluation mode and without gradients, as train validates.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "core/budget.h"
#include "core/device_backend.h"
#include "runtime/call.h"
#include "tools/json_text.h"
#include "tools/report.h"
#include "tools/samples.h"
#include "tools/terminal.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

using training::DataSet;
using training::Objective;
using Clock = std::chrono::steady_clock;

constexpr int64_t kMost = 5;  // classes among which the right one may be

double secondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Counts {
  int64_t right = 0;
  int64_t among = 0;  // the kMost largest
  int64_t decisions = 0;
  double share(int64_t count) const {
    return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(decisions, 1));
  }
};

struct Evaluation {
  std::optional<Counts> counts;  // none: the loss decides nothing
  bool among = false;            // it decides among more classes than kMost
  std::optional<double> loss;    // when it was asked for
  int64_t samples = 0;
  double seconds = 0;
};

class Evaluator {
 public:
  Evaluator(const Options& options, const LoadedFile& program, GraphFunction& function,
            std::shared_ptr<GraphFunction> prepared)
      : options_(options),
        program_(program),
        function_(function),
        prepared_(std::move(prepared)),
        data_(dataOf(options)),
        // Labels of classes are the usual ones.
        objective_(objectiveOf(options.train.loss.empty() ? "cross_entropy" : options.train.loss,
                               options.loss_function)) {
    if (options.train.loss.empty() && !isIntegral(data_.targets.dtype(), false)) {
      throw UsageError(
          fmt::format("the labels are {}; accuracy needs the number of a class for each sample. "
                      "For others name "
                      "a loss: --loss mse",
                      data_.targets.describe()));
    }
  }

  Evaluation run() {
    ProgressLine progress(!options_.json && ProgressLine::hasTerminal());
    const auto begin = Clock::now();
    const int64_t all = data_.size(), size = options_.train.batch_size;
    for (int64_t at = 0; at < all; at += size) {
      checkBudget();
      batch(at, std::min(all, at + size));
      result_.seconds = secondsSince(begin);
      progress.show([&] {
        const auto done = static_cast<double>(result_.samples);
        return fmt::format(
            "{} of {} samples{}, {} left", result_.samples, all, soFar(),
            formatDuration(result_.seconds * (static_cast<double>(all) - done) / done));
      });
    }
    if (!options_.train.loss.empty()) result_.loss = loss_sum_ / static_cast<double>(all);
    return result_;
  }

 private:
  static DataSet dataOf(const Options& options) {
    // Labels may lie in a file of their own, behind those of the inputs.
    std::vector<std::string> paths = options.train.data;
    const bool is_file = options.train.target.ends_with(".npy");
    if (is_file) paths.push_back(options.train.target);
    return samplesOf(paths, is_file ? "" : options.train.target, options.dtype, "--labels");
  }

  std::string soFar() const {
    if (!result_.counts) return "";
    return fmt::format(", top-1 {:.4f}", result_.counts->share(result_.counts->right));
  }

  IValue call(const DataSet& samples) {
    training::Arguments arguments =
        training::argumentsFor(samples, function_.schema(), program_.numBound(), false);
    IValue output = prepared_ ? callFunction(*prepared_, std::move(arguments.positional),
                                             std::move(arguments.named))
                              : program_.call(options_, function_, std::move(arguments.positional),
                                              std::move(arguments.named));
    fetchResult(options_, output);
    return output;
  }

  void batch(int64_t begin, int64_t end) {
    std::vector<int64_t> places(static_cast<size_t>(end - begin));
    std::iota(places.begin(), places.end(), begin);
    const Tensor index = Tensor::fromData(places.data(), {end - begin});
    const IValue output = call(data_.at(index).on(defaultDevice()));
    if (!fitted_) {
      data_.targets = objective_.fittedTargets(output, data_.targets);
      fitted_ = true;
    }
    const Tensor targets = data_.at(index).targets;
    if (!options_.train.loss.empty()) {
      loss_sum_ += objective_.loss(output, targets).to(DType::Double).item<double>() *
                   static_cast<double>(end - begin);
    }
    count(output, targets);
    result_.samples += end - begin;
  }

  void count(const IValue& output, const Tensor& targets) {
    const auto right = Objective::countOf(objective_.right(output, targets), targets);
    if (!right) return;
    if (!result_.counts) result_.counts.emplace();
    result_.counts->right += right->right;
    result_.counts->decisions += right->decisions;
    const Tensor& shape = output.toTensor();
    if (shape.dim() < 2 || shape.size(1) <= kMost) return;
    const auto among = Objective::countOf(objective_.rightAmong(output, targets, kMost), targets);
    if (!among) return;
    result_.among = true;
    result_.counts->among += among->right;
  }

  const Options& options_;
  const LoadedFile& program_;
  GraphFunction& function_;
  const std::shared_ptr<GraphFunction> prepared_;
  DataSet data_;
  const Objective objective_;
  bool fitted_ = false;
  double loss_sum_ = 0;
  Evaluation result_;
};

std::string jsonOf(const Options& options, const Evaluation& e) {
  nlohmann::ordered_json row = {{"model", options.file},
                                {"samples", e.samples},
                                {"batch_size", options.train.batch_size},
                                {"seconds", e.seconds}};
  if (e.counts) {
    row["decisions"] = e.counts->decisions;
    row["top1"] = e.counts->share(e.counts->right);
    if (e.among) row["top5"] = e.counts->share(e.counts->among);
  }
  if (e.loss) {
    row["loss_name"] = options.train.loss;
    row["loss"] = *e.loss;
  }
  return jsonLine(row);
}

std::string textOf(const Options& options, const Evaluation& e) {
  std::string text = fmt::format("{}: {} samples in batches of {}, {:.0f} samples/s\n",
                                 options.file, e.samples, options.train.batch_size,
                                 static_cast<double>(e.samples) / std::max(e.seconds, 1e-9));
  if (e.counts) {
    const auto line = [&](const char* name, int64_t count) {
      text += fmt::format("{:<15} {:.4f}  ({} of {})\n", name, e.counts->share(count), count,
                          e.counts->decisions);
    };
    line(e.among ? "top-1 accuracy" : "accuracy", e.counts->right);
    if (e.among) line("top-5 accuracy", e.counts->among);
  }
  if (e.loss) text += fmt::format("{:<15} {:.6g}\n", options.train.loss, *e.loss);
  return text;
}

}  // namespace

void evaluateVerb(const Options& options) {
  if (!options.train.loss.empty()) checkLoss(options.train.loss);
  applySettings(options);
  const LoadedFile program = LoadedFile::load(options.file);
  if (program.isArchive()) {
    program.module().eval();
    if (!options.dtype.empty()) program.module().to(dtypeOf(options.dtype));
  }
  const std::shared_ptr<GraphFunction> function = functionFor(options, program);
  placeOnDevice(options, program, {});
  const Evaluation result =
      Evaluator(options, program, *function, preparedFor(options, program, *function)).run();
  tellFallbacks(options);
  print(options.json ? jsonOf(options, result) : textOf(options, result));
}

}  // namespace wick::cli

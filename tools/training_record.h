// What a training has been: its losses, for the log, the picture and the checkpoint.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "core/ivalue.h"
#include "training/trainer.h"

namespace wick::cli {

struct Evaluated {
  int64_t step = 0;
  double train_loss = 0;
  std::optional<double> train_accuracy;
  std::optional<double> loss;  // of validation
  std::optional<double> accuracy;
};

struct TrainingRecord {
  std::vector<double> losses;  // of every step
  std::vector<Evaluated> epochs;
  double seconds = 0;  // that the steps before this process took

  IValue state() const;
  // UsageError when it is no such state.
  static TrainingRecord from(const IValue& state);
};

// A picture of the losses over the steps, as SVG.
std::string lossPicture(const TrainingRecord& record, const std::string& title);

// A file of JSON lines, one a step and one an epoch, each written at once.
class TrainingLog {
 public:
  // Begins the file anew, or goes on behind the lines of the first `steps` steps: what was written
  // later is taken away, for those steps are done again. RuntimeError when it cannot be written.
  TrainingLog(std::string path, int64_t steps);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;
  void step(const training::Trainer::Step& step, double seconds);
  void epoch(int64_t number, const Evaluated& result, double samples_per_second, double seconds);

 private:
  void line(const std::string& text);
  std::string path_;
  FILE* file_;
};

}  // namespace wick::cli

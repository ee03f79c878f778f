// Compares trainings on a GPU whose steps are repeated as graphs with those whose steps are run operator
// by operator: archives, random samples, SGD with momentum. Needs a GPU:
//
//   check_steps 64 model.pt 784 [model.pt 3x224x224 …]      a batch of 64; sizes of one sample
//
// The models give scores of at least ten classes. Prints how many steps were repeated, the largest
// difference between the losses, and the median time of a step each way. The exit code is 1 when no
// step of a model was repeated, or losses are apart.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/device_backend.h"
#include "runtime/device_moves.h"
#include "serialization/import.h"
#include "training/trainer.h"

namespace wick::training {
namespace {

constexpr int kSteps = 60;
constexpr int64_t kBatches = 4;
constexpr double kTolerance = 1e-3;  // sums of some gradients are in no fixed order

struct Course {
  std::vector<double> losses, milliseconds;
  int64_t repeated = 0;
  std::string why_not;
};

Course courseOf(const std::string& path, const DataSet& data, int64_t batch, bool repeat) {
  const Module module = loadModule(path);
  const IValue object(module.object());
  moveTensors({&object, 1}, placeOf({DeviceType::CUDA, -1}));
  TrainerSettings settings;
  settings.rule = Sgd{.lr = 1e-3, .momentum = 0.9};
  settings.batch_size = batch;
  settings.epochs = kSteps / kBatches;
  settings.repeat = repeat;
  Trainer trainer(module, data, Objective("cross_entropy"), settings);
  Course course;
  while (!trainer.finished()) {
    const auto begin = std::chrono::steady_clock::now();
    course.losses.push_back(trainer.step().loss);  // waits for the device
    const auto end = std::chrono::steady_clock::now();
    course.milliseconds.push_back(std::chrono::duration<double, std::milli>(end - begin).count());
  }
  course.repeated = trainer.repeatedSteps();
  course.why_not = trainer.whyNotRepeated();
  return course;
}

double medianOf(std::vector<double> values) {
  values.erase(values.begin(), values.begin() + static_cast<int64_t>(values.size() / 2));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

bool check(const std::string& path, const std::string& sizes_text, int64_t batch) {
  DimVector sizes{batch * kBatches};
  std::istringstream words(sizes_text);
  for (std::string word; std::getline(words, word, 'x');) sizes.push_back(std::stoll(word));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  DataSet data;
  data.inputs.emplace_back("", Tensor::empty(sizes, DType::Float));
  const Tensor& x = data.inputs[0].second;
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = normal(random);
  data.targets = Tensor::empty(DimVector{sizes[0]}, DType::Long);
  for (int64_t i = 0; i < sizes[0]; ++i) {
    data.targets.data<int64_t>()[i] = static_cast<int64_t>(random() % 10);
  }
  const Course one = courseOf(path, data, batch, false), other = courseOf(path, data, batch, true);
  double difference = 0;
  for (size_t i = 0; i < one.losses.size(); ++i) {
    difference = std::max(difference, std::abs(one.losses[i] - other.losses[i]));
  }
  fmt::print(
      "{}: {} of {} steps repeated{}{}; losses {:.5f} to {:.5f}, apart by {:.2g}; {:.3f} ms "
      "by operators, {:.3f} ms repeated\n",
      path, other.repeated, other.losses.size(), other.why_not.empty() ? "" : ": ", other.why_not,
      other.losses.front(), other.losses.back(), difference, medianOf(one.milliseconds),
      medianOf(other.milliseconds));
  return other.repeated > 0 && difference <= kTolerance;
}

}  // namespace
}  // namespace wick::training

int main(int argc, char** argv) {
  bool right = argc >= 4;
  for (int i = 2; i + 1 < argc; i += 2) {
    right &= wick::training::check(argv[i], argv[i + 1], std::stoll(argv[1]));
  }
  return right ? 0 : 1;
}

// What the command line says of a training (torchscript-cli train).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wick::cli {

struct TrainOptions {
  std::vector<std::string> data;             // one file of named tensors, or several .npy
  std::vector<std::string> validation_data;  // the same
  std::string target;                        // name of the targets; empty: the usual ones
  std::string loss;                          // a name, "model", or a script
  std::string optimizer = "adamw";
  // Settings of the optimizer; those that are not given are PyTorch's.
  std::optional<double> lr, momentum, dampening, weight_decay, eps, alpha, lr_decay;
  std::vector<double> betas;
  bool nesterov = false;
  bool amsgrad = false;
  bool centered = false;
  std::string schedule = "constant";
  int64_t step_size = 1;            // epochs
  std::vector<int64_t> milestones;  // epochs
  double gamma = 0.1;
  double min_lr = 0;
  int64_t warm_up = 0;  // steps
  int64_t epochs = 1;
  int64_t batch_size = 32;
  bool no_shuffle = false;
  bool drop_last = false;
  double validation = 0;
  double clip_norm = 0;
  double clip_value = 0;
  std::string checkpoint;        // empty: none is written
  int64_t checkpoint_every = 0;  // steps; 0: epochs
  bool resume = false;
  std::string log;
  std::string plot;
  bool detect_anomaly = false;
};

}  // namespace wick::cli

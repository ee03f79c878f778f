// Compares optimizers on a GPU with those of the CPU, bit for bit: every rule, dtypes, layouts, numbers
// of parameters. NaN equals NaN, whatever its bits: float16 has many, because epsilon and small squares
// are 0 there, and processors give them other bits than GPUs. With "time", also what a step of many
// parameters takes. Needs a GPU:
//   bazel run -c opt //tests/cuda:check_updates -- [time]
// The exit code is 1 when a number differs.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string_view>

#include "autograd/tape.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "training/optimizer.h"

namespace wick {
namespace {

constexpr Device kCuda{DeviceType::CUDA, -1};

std::mt19937 random_numbers(7);

Tensor numbers(DimVector sizes, DType dtype) {
  std::normal_distribution<float> normal;
  const Tensor made = Tensor::zeros(sizes, DType::Float);
  float* const at = made.data<float>();
  for (int64_t i = 0; i < made.numel(); ++i) at[i] = normal(random_numbers);
  return made.to(dtype);
}

Tensor parameter(const Tensor& t, Device device) {
  const Tensor made = device.isCpu() ? t.clone() : moveTo(t, device);
  made.setRequiresGrad(true);
  return made;
}

bool sameNumbers(const Tensor& a, const Tensor& b) {
  const Tensor x = a.detach().contiguous(), y = moveTo(b.detach(), Device()).contiguous();
  return dispatchAll(x.dtype(), [&]<class T>() {
    return std::equal(x.data<T>(), x.data<T>() + x.numel(), y.data<T>(), [](T p, T q) {
      return std::memcmp(&p, &q, sizeof p) == 0 || (p != p && q != q);
    });
  });
}

// How many of the parameters differ after five steps.
int differing(const UpdateRule& rule, DType dtype) {
  std::vector<Tensor> here, there;
  for (int i = 0; i < 150; ++i) {
    const int64_t n = i % 13 == 12 ? 70'000 + i : 1 + i * i % 3'000;
    Tensor t = numbers({n}, dtype);
    if (i % 10 == 3) t = numbers({n, 3}, dtype).transpose(0, 1);
    if (i == 20) t = numbers({0}, dtype);
    here.push_back(parameter(t, Device()));
    there.push_back(parameter(t, kCuda));
  }
  Optimizer cpu(here, rule), cuda(there, rule);
  for (int step = 0; step < 5; ++step) {
    for (size_t i = 0; i < here.size(); ++i) {
      const Tensor g = numbers(DimVector(here[i].sizes()), dtype);
      autograd::setGradient(here[i], g);
      autograd::setGradient(there[i], moveTo(g, kCuda));
    }
    cpu.step();
    cuda.step();
  }
  int found = 0;
  for (size_t i = 0; i < here.size(); ++i) found += !sameNumbers(here[i], there[i]);
  return found;
}

void timeSteps(const UpdateRule& rule, const char* name, int count, int64_t size) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) {
    const Tensor t = Tensor::zeros({size}, DType::Float);
    all.push_back(parameter(t, kCuda));
    autograd::setGradient(all.back(), moveTo(t, kCuda));
  }
  Optimizer optimizer(all, rule);
  DeviceBackend& backend = deviceBackend(DeviceType::CUDA);
  for (int i = 0; i < 10; ++i) optimizer.step();
  backend.synchronize(all[0].device());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) optimizer.step();
  const auto queued = std::chrono::steady_clock::now();
  backend.synchronize(all[0].device());
  const auto end = std::chrono::steady_clock::now();
  const auto micros = [&](auto until) {
    return std::chrono::duration<double, std::micro>(until - begin).count() / 100;
  };
  fmt::print("{}: {} parameters of {}: {:.1f} us a step, the CPU {:.1f} of them\n", name, count,
             size, micros(end), micros(queued));
}

int run(bool times) {
  const std::vector<UpdateRule> rules = {
      Sgd{},
      Sgd{.momentum = 0.9},
      Sgd{.momentum = 0.9, .dampening = 0.1, .weight_decay = 0.1},
      Sgd{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .maximize = true},
      Adam{},
      Adam{.weight_decay = 0.1, .amsgrad = true},
      AdamW{},
      AdamW{.amsgrad = true, .maximize = true},
      RmsProp{},
      RmsProp{.weight_decay = 0.1, .momentum = 0.9, .centered = true},
      Adagrad{},
      Adagrad{.lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.2},
  };
  int bad = 0;
  for (size_t r = 0; r < rules.size(); ++r) {
    for (const DType dtype : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
      const int found = differing(rules[r], dtype);
      if (found)
        fmt::print("rule {} ({}), {}: {} differ\n", r, ruleName(rules[r]), toString(dtype), found);
      bad += found;
    }
  }
  fmt::print("{} rules, 4 dtypes, 150 parameters, 5 steps: {} differ\n", rules.size(), bad);
  if (times) {
    timeSteps(Sgd{.momentum = 0.9}, "SGD", 60, 180'000);
    timeSteps(AdamW{}, "AdamW", 160, 150'000);
    timeSteps(AdamW{}, "AdamW", 4, 16'000'000);
    timeSteps(AdamW{}, "AdamW", 60, 500);
  }
  return bad ? 1 : 0;
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  return wick::run(argc > 1 && std::string_view(argv[1]) == "time");
}

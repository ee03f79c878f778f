// Trains on a GPU, on lazy tensors whose data are there, and with several processes that have a GPU each.
//
//   bazel run -c opt //tests/cuda:check_training
// compares losses and weights of lazy trainings with those on the GPU itself, counts the programs that
// were compiled, and prints what a step takes.
//   bazel-bin/tests/cuda/check_training in several processes, with RANK and WORLD_SIZE
// (tests/cuda/check_training.sh 2) compares with one process that has all batches, and prints how much of a
// process's speed is left when it trains with others.
//
// The exit code is 1 when numbers differ by more than rounding, or when a lazy step is not one program
// that the cache finds. With "cpu" it tries the program out, on a machine without a GPU.
#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "core/device_backend.h"
#include "distributed/gradient_exchange.h"
#include "distributed/init.h"
#include "distributed/tcp.h"
#include "lazy/lazy.h"
#include "passes/pipeline.h"
#include "runtime/cuda/device.h"
#include "training/backward.h"
#include "training/optimizer.h"
#include "wick.h"

namespace wick {
namespace {

// The GPU, or the CPU.
Device there{DeviceType::CUDA, -1};
constexpr Device kLazily{kLazy, -1};
int steps = 60, timed = 40;

constexpr const char* kPrograms = R"(
def mlp(x: Tensor, y: Tensor, w: List[Tensor]) -> Tensor:
    h = torch.relu(torch.nn.functional.linear(x, w[0], w[1]))
    h = torch.relu(torch.nn.functional.linear(h, w[2], w[3]))
    return torch.nn.functional.cross_entropy(torch.nn.functional.linear(h, w[4], w[5]), y)

def block(x: Tensor, w: List[Tensor], at: int) -> Tensor:
    batch, length, width = x.size(0), x.size(1), x.size(2)
    h = torch.nn.functional.layer_norm(x, [width], w[at], w[at + 1])
    qkv = torch.nn.functional.linear(h, w[at + 2], w[at + 3])
    q, k, v = qkv.view(batch, length, 3, 8, width // 8).permute(2, 0, 3, 1, 4).unbind(0)
    scores = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * 0.17, -1)
    h = torch.matmul(scores, v).transpose(1, 2).reshape(batch, length, width)
    x = x + torch.nn.functional.linear(h, w[at + 4], w[at + 5])
    h = torch.nn.functional.layer_norm(x, [width], w[at + 6], w[at + 7])
    h = torch.nn.functional.gelu(torch.nn.functional.linear(h, w[at + 8], w[at + 9]))
    return x + torch.nn.functional.linear(h, w[at + 10], w[at + 11])

def transformer(x: Tensor, y: Tensor, w: List[Tensor]) -> Tensor:
    h = x
    for i in range(4):
        h = block(h, w, 2 + 12 * i)
    h = torch.nn.functional.linear(h.mean(1), w[0], w[1])
    return torch.nn.functional.cross_entropy(h, y)

def convolutions(x: Tensor, y: Tensor, w: List[Tensor]) -> Tensor:
    h = torch.relu(torch.conv2d(x, w[0], w[1], padding=[1, 1]))
    h = torch.max_pool2d(torch.relu(torch.conv2d(h, w[2], w[3], padding=[1, 1])), [2, 2])
    h = torch.max_pool2d(torch.relu(torch.conv2d(h, w[4], w[5], padding=[1, 1])), [2, 2])
    h = torch.nn.functional.linear(h.flatten(1), w[6], w[7])
    return torch.nn.functional.cross_entropy(h, y)

def normalized(x: Tensor, w: List[Tensor], at: int, stride: int) -> Tensor:
    padding = w[at].size(2) // 2
    h = torch.conv2d(x, w[at], None, [stride, stride], [padding, padding])
    return torch.nn.functional.batch_norm(h, None, None, w[at + 1], w[at + 2], True)

def bottleneck(x: Tensor, w: List[Tensor], at: int, stride: int, widens: bool) -> Tensor:
    h = torch.relu(normalized(x, w, at, 1))
    h = torch.relu(normalized(h, w, at + 3, stride))
    h = normalized(h, w, at + 6, 1)
    if widens:
        x = normalized(x, w, at + 9, stride)
    return torch.relu(h + x)

def resnet50(x: Tensor, y: Tensor, w: List[Tensor]) -> Tensor:
    h = torch.max_pool2d(torch.relu(normalized(x, w, 2, 2)), [3, 3], [2, 2], [1, 1])
    at = 5
    for stage, blocks in enumerate([3, 4, 6, 3]):
        for i in range(blocks):
            h = bottleneck(h, w, at, 2 if i == 0 and stage > 0 else 1, i == 0)
            at += 12 if i == 0 else 9
    return torch.nn.functional.cross_entropy(torch.nn.functional.linear(h.mean([2, 3]), w[0], w[1]), y)
)";

struct Model {
  const char* name;
  std::vector<DimVector> weights;
  DimVector input;
  // Norms over a batch make other numbers of other batches.
  bool depends_on_batch = false;
  std::string function() const { return input.size() == 3 ? "transformer" : name; }
};

Model transformer(const char* name, int64_t batch, int64_t length, int64_t width) {
  Model made{name, {{10, width}, {10}}, {batch, length, width}};
  for (int i = 0; i < 4; ++i) {
    for (const DimVector& sizes : {DimVector{width},
                                   {width},
                                   {3 * width, width},
                                   {3 * width},
                                   {width, width},
                                   {width},
                                   {width},
                                   {width},
                                   {4 * width, width},
                                   {4 * width},
                                   {width, 4 * width},
                                   {width}}) {
      made.weights.push_back(sizes);
    }
  }
  return made;
}
Model resnet50(int64_t batch) {
  Model made{"resnet50", {{1000, 2048}, {1000}}, {batch, 3, 224, 224}, true};
  const auto add = [&](int64_t out, int64_t in, int64_t size) {
    for (const DimVector& sizes : {DimVector{out, in, size, size}, {out}, {out}}) {
      made.weights.push_back(sizes);
    }
  };
  add(64, 3, 7);
  int64_t in = 64, width = 64;
  for (const int blocks : {3, 4, 6, 3}) {
    for (int i = 0; i < blocks; ++i) {
      add(width, in, 1);
      add(width, width, 3);
      add(4 * width, width, 1);
      if (i == 0) add(4 * width, in, 1);
      in = 4 * width;
    }
    width *= 2;
  }
  return made;
}
std::vector<Model> models() {
  return {
      {"mlp", {{1024, 784}, {1024}, {1024, 1024}, {1024}, {10, 1024}, {10}}, {256, 784}},
      transformer("transformer", 32, 64, 192),
      {"convolutions",
       {{32, 3, 3, 3}, {32}, {64, 32, 3, 3}, {64}, {64, 64, 3, 3}, {64}, {10, 4096}, {10}},
       {64, 3, 32, 32}},
  };
}

Tensor draw(const DimVector& sizes, int seed, double scale) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  const Tensor t = Tensor::empty(sizes, DType::Float);
  for (float& v : t.span<float>()) v = static_cast<float>(scale) * normal(random);
  return t;
}

struct Run {
  std::vector<double> losses;
  std::vector<Tensor> weights;  // on the CPU
  double micros = 0;            // of a step
  lazy::Counters counters;
};

struct Settings {
  Device device;
  bool frozen = false;
  UpdateRule rule = AdamW{.lr = 1e-3};
  // Of this process's samples: a part of all.
  int part = 0, parts = 1;
  bool exchanges = false;
};

Run train(const Model& model, const Program& program, const Settings& settings) {
  const Device device = settings.device;
  std::vector<Tensor> weights;
  int seed = 1;
  for (const DimVector& sizes : model.weights) {
    const bool gain = sizes.size() == 1;
    const double fan = gain ? 1 : static_cast<double>(checkedNumel(sizes) / sizes[0]);
    Tensor w = draw(sizes, seed++, gain ? 0.02 : 1 / std::sqrt(fan));
    weights.push_back(moveTo(w, device));
    weights.back().setRequiresGrad(true);
  }
  Optimizer optimizer(weights, settings.rule);
  std::optional<distributed::GradientExchange> exchange;
  if (settings.exchanges) exchange.emplace(weights);
  const auto ownPart = [&](const Tensor& all) {
    const int64_t rows = all.size(0) / settings.parts;
    return moveTo(all.slice(0, settings.part * rows, (settings.part + 1) * rows).contiguous(),
                  device);
  };
  const Tensor x = ownPart(draw(model.input, 77, 1));
  std::mt19937 random(5);
  const Tensor labels = Tensor::empty({model.input[0]}, DType::Long);
  for (int64_t& label : labels.span<int64_t>()) label = static_cast<int64_t>(random() % 10);
  const Tensor y = ownPart(labels);
  const bool lazily = device.type == kLazy;
  Run made;
  lazy::resetCounters();
  std::chrono::steady_clock::time_point begin;
  const auto wait = [] { deviceBackend(there.type).synchronize(placeOf(there)); };
  for (int step = 0; step < steps; ++step) {
    if (step == steps - timed) {
      wait();
      begin = std::chrono::steady_clock::now();
    }
    optimizer.zeroGrad();
    const Tensor loss =
        program.call(model.function(), {x, y, IValue(makeTensorList(weights))}).tensor();
    backward(loss);
    if (exchange) exchange->finish();
    optimizer.step();
    if (lazily) lazy::markStep();
    if (settings.frozen && step == 1) lazy::freezeStep();
    if (step % 10 == 9 || step == steps - 1) {
      made.losses.push_back(moveTo(loss.detach(), Device()).item<double>());
    }
  }
  wait();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  made.micros = took.count() / timed;
  made.counters = lazy::counters();
  if (settings.frozen) lazy::thawStep();
  for (const Tensor& w : weights) made.weights.push_back(moveTo(w.detach(), Device()).clone());
  return made;
}

double largestDifference(const Run& a, const Run& b) {
  double found = 0;
  for (size_t i = 0; i < a.weights.size(); ++i) {
    const Tensor p = a.weights[i].contiguous(), q = b.weights[i].contiguous();
    for (size_t k = 0; k < p.span<float>().size(); ++k) {
      const double d = std::abs(p.span<float>()[k] - q.span<float>()[k]);
      found = d <= found ? found : d;
    }
  }
  return found;
}

std::string textOf(const std::vector<double>& losses) {
  std::string text;
  for (const double loss : losses) text += fmt::format(" {:.6f}", loss);
  return text;
}

bool isOneProgram(const lazy::Counters& seen) {
  return seen.evaluations <= static_cast<uint64_t>(steps) + 2 && seen.compiled <= 3 &&
         seen.immediate.empty();
}

int runAlone() {
  int bad = 0;
  for (const Model& model : models()) {
    setOptimizationLevel(OptimizationLevel::None);
    const Run eager = train(model, compile(kPrograms), {.device = there});
    setOptimizationLevel(OptimizationLevel::Default);
    const Run scripted = train(model, compile(kPrograms), {.device = there});
    const Run lazily = train(model, compile(kPrograms), {.device = kLazily});
    const lazy::Counters seen = lazily.counters;
    fmt::print("{}", seen.immediate.empty() ? "" : lazy::report());
    const Run frozen = train(model, compile(kPrograms), {.device = kLazily, .frozen = true});
    fmt::print("{}: us a step: {:.0f} eager, {:.0f} scripted, {:.0f} lazy, {:.0f} frozen\n",
               model.name, eager.micros, scripted.micros, lazily.micros, frozen.micros);
    fmt::print("  losses eager{}\n  losses lazy {}\n", textOf(eager.losses), textOf(lazily.losses));
    fmt::print("  {} graphs run, {} compiled; weights differ by {:.2g} at most, scripted {:.2g}\n",
               seen.evaluations, seen.compiled, largestDifference(eager, lazily),
               largestDifference(eager, scripted));
    const double last = std::abs(eager.losses.back() - lazily.losses.back());
    const bool same = last < 1e-3 * (1 + std::abs(eager.losses.back())) &&
                      largestDifference(lazily, frozen) < 1e-3;
    const bool one = seen.evaluations <= static_cast<uint64_t>(steps) + 1 && seen.compiled <= 3 &&
                     seen.immediate.empty();
    if (!same) fmt::print("  numbers differ\n");
    if (!one) fmt::print("  not one program a step\n");
    bad += !same || !one;
  }
  return bad == 0 ? 0 : 1;
}

// All processes have the same bits.
bool isSameEverywhere(const Run& run) {
  for (const Tensor& w : run.weights) {
    const Tensor first = w.clone();
    distributed::theGroup()->broadcast(first, 0);
    if (std::memcmp(first.rawData(), w.rawData(), static_cast<size_t>(w.numel()) * sizeof(float)) !=
        0) {
      return false;
    }
  }
  return true;
}

int runTogether() {
  const int rank = distributed::theGroup()->rank(), size = distributed::theGroup()->size();
  std::vector<Model> all = models();
  if (!there.isCpu()) all.push_back(transformer("large transformer", 16, 256, 768));
  all.push_back(resnet50(there.isCpu() ? 2 : 32));
  int bad = 0;
  for (Model& model : all) {
    model.input[0] *= size;
    Settings settings{.device = there, .rule = Sgd{.lr = 0.01, .momentum = 0.9}};
    const Run want = train(model, compile(kPrograms), settings);
    settings.part = rank;
    settings.parts = size;
    distributed::theGroup()->barrier();
    const Run alone = train(model, compile(kPrograms), settings);
    settings.exchanges = true;
    distributed::theGroup()->barrier();
    const Run got = train(model, compile(kPrograms), settings);
    settings.device = kLazily;
    settings.exchanges = false;
    const Run lazily_alone = train(model, compile(kPrograms), settings);
    settings.exchanges = true;
    distributed::theGroup()->barrier();
    const Run lazily = train(model, compile(kPrograms), settings);
    const bool same = isSameEverywhere(got) && isSameEverywhere(lazily);
    const double far = std::max(largestDifference(want, got), largestDifference(want, lazily));
    // Libraries compute convolutions of other batch sizes in other ways.
    const bool near = model.depends_on_batch || far <= 2e-3;
    bad += !same || !near || !isOneProgram(lazily.counters);
    if (rank != 0) continue;
    fmt::print(
        "{}, {} processes: us a step: {:.0f} alone, {:.0f} together ({:.1f} %); lazily {:.0f}, "
        "{:.0f} ({:.1f} %)\n",
        model.name, size, alone.micros, got.micros, 100 * alone.micros / got.micros,
        lazily_alone.micros, lazily.micros, 100 * lazily_alone.micros / lazily.micros);
    fmt::print("  losses{}\n", textOf(got.losses));
    fmt::print("  weights differ by {:.2g}, lazily {:.2g}, from those of one process, {}\n",
               largestDifference(want, got), largestDifference(want, lazily),
               same ? "and are the same everywhere" : "AND ARE NOT THE SAME EVERYWHERE");
    fmt::print("  {} lazy graphs, {} compiled\n", lazily.counters.evaluations,
               lazily.counters.compiled);
  }
  distributed::shutdown();
  return bad == 0 ? 0 : 1;
}

int run() {
  const bool together = distributed::tcpPlaceOfEnvironment().has_value();
  if (together) {
    const auto group = distributed::init();
    if (!there.isCpu()) cuda::setCurrentDevice(group->rank());
  }
  there = placeOf(there);
  lazy::setDevice(there);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return together ? runTogether() : runAlone();
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "cpu") {
    wick::there = wick::Device();
    wick::steps = 4;
    wick::timed = 2;
  }
  return wick::run();
}

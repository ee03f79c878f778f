#include "runtime/cuda/loop_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <unordered_map>
#include <utility>

#include "codegen/loop/lowering.h"
#include "core/error.h"
#include "core/log.h"
#include "runtime/cuda/compiler.h"
#include "runtime/cuda/joint_launches.h"

namespace wick::cuda {

namespace {

using codegen::CudaLayout;
using codegen::CudaWords;
using loop::LaneStep;

constexpr int kBlock = 256;
constexpr int kVectorBytes = 16;  // what one instruction moves at most
// Of a row that a thread keeps in registers between passes.
constexpr int kMaxKeptElements = 32;

int64_t itemOf(const loop::Access& access) {
  return access.isIndex() ? 1 : static_cast<int64_t>(itemSize(access.dtype));
}

LaneStep stepOf(const loop::Kernel& kernel, const Walk& walk, size_t a) {
  const int64_t step = walk.element_steps[a];
  if (step == 0) return LaneStep::Zero;
  return step == itemOf(kernel.accesses[a]) ? LaneStep::Unit : LaneStep::Other;
}

bool hasRows(const Walk& walk) {
  return walk.outer > 1 || walk.sizes[0] != 1;
}

// How many neighbours one thread can take at once.
int vectorFor(const loop::Kernel& kernel, const Walk& walk, std::span<const Touch> touches,
              std::span<const LaneStep> steps) {
  int64_t largest = 0;
  for (size_t a = 0; a < touches.size(); ++a) {
    if (steps[a] == LaneStep::Unit && !kernel.accesses[a].isIndex()) {
      largest = std::max(largest, itemOf(kernel.accesses[a]));
    }
  }
  if (largest == 0) return 1;
  const auto fits = [&](int64_t vector) {
    if (walk.elements % vector != 0) return false;
    for (size_t a = 0; a < touches.size(); ++a) {
      if (steps[a] != LaneStep::Unit || kernel.accesses[a].isIndex()) continue;
      const int64_t bytes = std::min<int64_t>(vector * itemOf(kernel.accesses[a]), kVectorBytes);
      if (reinterpret_cast<intptr_t>(touches[a].base) % bytes != 0) return false;
      for (int d = 0; d < walk.outer; ++d) {
        const auto i = static_cast<size_t>(d);
        if (walk.sizes[i] > 1 && walk.steps[i][a] % bytes != 0) return false;
      }
      for (int l = 0; l < walk.nested; ++l) {
        if (walk.nested_steps[static_cast<size_t>(l)][a] % bytes != 0) return false;
      }
    }
    return true;
  };
  int64_t vector = std::max<int64_t>(1, kVectorBytes / largest);
  while (vector > 1 && !fits(vector)) vector /= 2;
  return static_cast<int>(vector);
}

int powerAbove(int64_t n, int least, int most) {
  const auto power =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
  return static_cast<int>(std::clamp<int64_t>(power, least, most));
}

void layRows(const loop::Kernel& kernel, const Walk& walk, int multiprocessors,
             CudaLayout& layout) {
  const int64_t rows = walk.rows();
  const int64_t points = walk.pointsOfRow();
  if (layout.columns) {
    layout.vector = 1;
    const int64_t warps = rows / 32;
    if (points >= 32 && warps < int64_t{multiprocessors} * 16) {
      layout.threads = points >= 1024 && warps < int64_t{multiprocessors} * 4 ? 32 : 8;
    }
    layout.block = layout.threads == 32 ? 1024 : kBlock;
    return;
  }
  const int64_t chunks = points / layout.vector;
  const bool many = rows >= int64_t{multiprocessors} * 8;
  layout.threads = many ? powerAbove((chunks + 3) / 4, 1, 256) : powerAbove(chunks, 1, 1024);
  const loop::Schedule schedule = loop::makeSchedule(kernel);
  if (schedule.passes > 1) {
    const auto keeps = [&](int threads) {
      const int64_t each = (chunks + threads - 1) / threads;
      return each * layout.vector <= kMaxKeptElements && each <= 8;
    };
    while (layout.threads < 1024 && !keeps(layout.threads)) layout.threads *= 2;
    if (keeps(layout.threads)) {
      layout.kept = powerAbove((chunks + layout.threads - 1) / layout.threads, 1, 8);
    }
  }
  layout.block = std::max(kBlock, layout.threads);
}

// All that a walk touches of an access.
MemoryRange rangeOf(const Walk& walk, size_t a, const Touch& touch, int64_t item) {
  const auto base = reinterpret_cast<intptr_t>(touch.base);
  MemoryRange range{base, base + item};
  const auto reach = [&](int64_t step, int64_t count) {
    (step < 0 ? range.first : range.last) += step * (count - 1);
  };
  reach(walk.element_steps[a], walk.elements);
  for (int l = 0; l < walk.nested; ++l) {
    reach(walk.nested_steps[static_cast<size_t>(l)][a], walk.nested_sizes[static_cast<size_t>(l)]);
  }
  for (int d = 0; d < walk.outer; ++d) {
    reach(walk.steps[static_cast<size_t>(d)][a], walk.sizes[static_cast<size_t>(d)]);
  }
  return range;
}

std::string symbolOf(const std::string& name) {
  std::string symbol = "wick_";
  for (const char c : name) symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return symbol;
}

}  // namespace

bool overlap(std::span<const MemoryRange> a, std::span<const MemoryRange> b) {
  return std::ranges::any_of(a, [&](const MemoryRange& x) {
    return std::ranges::any_of(
        b, [&](const MemoryRange& y) { return x.first < y.last && y.first < x.last; });
  });
}

CudaLayout chooseLayout(const loop::Kernel& kernel, const Walk& walk,
                        std::span<const Touch> touches, int multiprocessors) {
  CudaLayout layout;
  layout.outer = hasRows(walk) ? walk.outer : 0;
  layout.nested = walk.nested;
  layout.columns = kernel.reduced != 0 && walk.across_rows;
  for (size_t a = 0; a < touches.size(); ++a) layout.steps.push_back(stepOf(kernel, walk, a));
  layout.vector = vectorFor(kernel, walk, touches, layout.steps);
  layout.block = kBlock;
  constexpr int64_t kCountedNarrow = int64_t{1} << 30;
  const int64_t rows = walk.rows();
  if (kernel.reduced == 0) {
    // Few elements go to as many threads as there are: what one computes takes longer than its loads.
    const int64_t points = walk.elements * std::min(rows, kCountedNarrow);
    while (layout.vector > 1 && points / layout.vector < int64_t{multiprocessors} * kBlock) {
      layout.vector /= 2;
    }
    layout.wide = rows > kCountedNarrow / std::max<int64_t>(walk.elements, 1);
  } else {
    layout.wide = rows > kCountedNarrow;
    layRows(kernel, walk, multiprocessors, layout);
  }
  return layout;
}

namespace {

struct KnownFunctions {
  std::mutex mutex;
  std::unordered_map<std::string, Function> functions;
};
KnownFunctions& knownFunctions() {
  static KnownFunctions& known = *new KnownFunctions;
  return known;
}
std::string keyOf(CudaDevice& device, const std::string& text, const std::string& name) {
  return fmt::format("{} {} {}\n{}", driverGeneration(), device.index(), name, text);
}

}  // namespace

Function knownFunction(CudaDevice& device, const std::string& text, const std::string& name) {
  KnownFunctions& known = knownFunctions();
  std::lock_guard lock(known.mutex);
  const auto it = known.functions.find(keyOf(device, text, name));
  return it == known.functions.end() ? nullptr : it->second;
}

Function functionOf(CudaDevice& device, const std::string& text, const std::string& name) {
  if (const Function found = knownFunction(device, text, name)) return found;
  refuseWhileCapturing("compiling a kernel");
  const std::string cubin = compileText(text, device.facts().major, device.facts().minor);
  Module module = nullptr;
  Function function = nullptr;
  check(driver().loadModule(&module, cubin.data()), "loading a kernel");
  check(driver().findFunction(&function, module, name.c_str()), "loading a kernel");
  KnownFunctions& known = knownFunctions();
  std::lock_guard lock(known.mutex);
  return known.functions.emplace(keyOf(device, text, name), function).first->second;
}

void launch(Function function, unsigned grid, unsigned block, void* parameters, const char* name) {
  launch(function, grid, block, parameters, name, currentStream());
}
void launch(Function function, unsigned grid, unsigned block, void* parameters, const char* name,
            Stream stream) {
  void* list[] = {parameters};
  const Result result =
      driver().launch(function, grid, 1, 1, block, 1, 1, 0, stream, list, nullptr);
  if (result != 0) [[unlikely]] {
    char buffer[256];
    throwRuntimeError("CUDA: launching {}: {}", name, describeError(result, buffer, sizeof buffer));
  }
  noteLaunch(name);
}

namespace {
thread_local CompileFailures* failures = nullptr;
}  // namespace

CompileFailures::CompileFailures() : outer_(std::exchange(failures, this)) {}
CompileFailures::~CompileFailures() {
  failures = outer_;
}
void CompileFailures::note(const std::string& error) {
  if (failures && failures->first_.empty()) failures->first_ = error;
}

LoopKernel::LoopKernel(std::string name, const loop::Kernel& kernel)
    : name_(symbolOf(name)), kernel_(kernel) {}

LoopKernel::Found LoopKernel::functionFor(CudaDevice& device, const CudaLayout& layout) {
  std::lock_guard lock(mutex_);
  const Place place{driverGeneration(), device.index()};
  for (const Compiled& c : compiled_) {
    if (c.place == place && c.layout == layout) {
      if (c.found.function) return c.found;
      CompileFailures::note(c.error);
      throw loop::Unsupported(c.error);
    }
  }
  Found found;
  std::string error;
  try {
    found.function = functionOf(device, codegen::cudaKernelText(name_, kernel_, layout), name_);
  } catch (const codegen::NoCudaText& e) {
    error = e.what();
  } catch (const RuntimeError& e) {
    error = e.brief();
    GRAPH_DEBUG("{}: {}", name_, error);
    // Without a compiler nothing can be computed, and whoever asked should hear why.
    if (!hasCompiler()) throw;
  }
  if (found.function && !kernel_.checks.empty()) {
    found.complaint =
        device.complaint(fmt::format("{}: an index is out of bounds", name_.substr(5)));
  }
  compiled_.push_back({layout, place, found, error});
  if (found.function) return found;
  CompileFailures::note(error);
  throw loop::Unsupported(error);
}

std::optional<LaunchShape> shapeOf(const loop::Kernel& kernel, const Walk& walk,
                                   std::span<const Touch> touches, std::span<const int64_t> numbers,
                                   int multiprocessors) {
  const int64_t rows = walk.rows();
  if (rows == 0 || walk.elements == 0) {
    if (kernel.reduced == 0 || rows == 0) return std::nullopt;
  }
  LaunchShape shape;
  shape.layout = chooseLayout(kernel, walk, touches, multiprocessors);
  const CudaLayout& layout = shape.layout;
  const CudaWords words(kernel, layout);
  std::vector<int64_t>& w = shape.words;
  w.assign(words.count, 0);
  w[CudaWords::kElements] = walk.elements;
  w[CudaWords::kRows] = rows;
  for (int d = 0; d < layout.outer; ++d) {
    w[words.outerSize(d)] = walk.sizes[static_cast<size_t>(d)];
  }
  for (int l = 0; l < layout.nested; ++l) {
    w[words.nestedSize(l)] = walk.nested_sizes[static_cast<size_t>(l)];
  }
  for (size_t a = 0; a < touches.size(); ++a) {
    w[words.base(a)] = reinterpret_cast<int64_t>(touches[a].base);
    w[words.elementStep(a)] = walk.element_steps[a];
    for (int d = 0; d < layout.outer; ++d) {
      w[words.outerStep(a, d)] = walk.steps[static_cast<size_t>(d)][a];
    }
    for (int l = 0; l < layout.nested; ++l) {
      w[words.nestedStep(a, l)] = walk.nested_steps[static_cast<size_t>(l)][a];
    }
  }
  std::copy(numbers.begin(), numbers.end(), w.begin() + static_cast<int64_t>(words.numbers));
  const int64_t units =
      kernel.reduced == 0 ? rows * (walk.elements / layout.vector) : rows * layout.threads;
  const int64_t blocks = (units + layout.block - 1) / layout.block;
  shape.grid = static_cast<unsigned>(std::min<int64_t>(blocks, int64_t{multiprocessors} * 256));
  shape.block = static_cast<unsigned>(layout.block);
  return shape;
}

LoopKernel::Ready LoopKernel::prepare(CudaDevice& device, const Walk& walk,
                                      std::span<const Touch> touches,
                                      std::span<const int64_t> numbers) {
  Ready ready;
  std::optional<LaunchShape> shape =
      shapeOf(kernel_, walk, touches, numbers, device.facts().multiprocessors);
  if (!shape) return ready;
  const Found found = functionFor(device, shape->layout);
  ready.function = found.function;
  ready.grid = shape->grid;
  ready.block = shape->block;
  ready.words = std::move(shape->words);
  if (!kernel_.checks.empty()) {
    const CudaWords words(kernel_, shape->layout);
    ready.words[words.flag] = static_cast<int64_t>(device.flagAddress());
    ready.words[words.flag + 1] = found.complaint;
  }
  // Where checks decide what is read, the walk does not tell.
  if (JointLaunches::current() && kernel_.checks.empty()) {
    ready.layout = std::move(shape->layout);
    const size_t first_store = touches.size() - kernel_.stores.size();
    for (size_t a = 0; a < touches.size(); ++a) {
      if (kernel_.accesses[a].isIndex()) continue;
      (a < first_store ? ready.reads : ready.writes)
          .push_back(rangeOf(walk, a, touches[a], itemOf(kernel_.accesses[a])));
    }
  }
  return ready;
}

void LoopKernel::queue(Ready& ready) {
  if (!ready.function) return;
  if (JointLaunches* joint = JointLaunches::current(); joint && !ready.writes.empty()) {
    joint->add(*this, std::move(ready));
  } else {
    launch(ready.function, ready.grid, ready.block, ready.words.data(), name_.c_str());
  }
}

}  // namespace wick::cuda

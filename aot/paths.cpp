// The first call is told true wherever it asks. What lies behind each question for false is then
// recorded by a call that gets the same answers up to there:
//
//   a                      a
//   x.any()? → true        if (x.any()) { b } else { c }
//   b
//
// The calls repeat the steps in front of the question, on buffers of their own; those are renamed to
// the buffers of the first call and the repetition is dropped. What follows behind an `if` is
// recorded once for each side of it.
#include "aot/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "aot/device.h"

namespace wick::aot {

namespace {

constexpr int kMostPaths = 256;

// A number as a tensor without dimensions, undefined for all else.
Tensor numberAsTensor(const IValue& value) {
  if (value.isBool()) return Tensor::scalar(value.toBool());
  if (value.isInt()) return Tensor::scalar(value.toInt());
  if (value.isDouble()) return Tensor::scalar(value.toDouble());
  return {};
}

struct Result {
  std::string name;
  Tensor tensor;
};

// Tensors and numbers of a result, in order.
void collect(const IValue& value, const std::string& name, std::vector<Result>& results) {
  if (const Tensor number = numberAsTensor(value); number.defined()) {
    results.push_back({name, number});
  } else if (value.isTensor() && value.toTensor().defined()) {
    results.push_back({name, value.toTensor()});
  } else if (value.isTuple() || value.isList()) {
    size_t i = 0;
    for (const IValue& e : value.elements()) collect(e, fmt::format("{}{}", name, i++), results);
  } else {
    throw NotAhead(fmt::format(
        "the result {} is of type {}; results of compiled models are tensors, numbers, and "
        "tuples and lists of them",
        name, value.tagName()));
  }
}

// Whether the program's own text raised this, and no operator.
bool isRaised(const RuntimeError& e) {
  if (e.frames().empty()) return false;
  const std::string_view text = e.frames().front().range.text();
  return text.starts_with("raise") || text.starts_with("assert");
}

class Paths {
 public:
  Paths(Recording& recording, const std::string& name, const std::function<IValue()>& call)
      : recording_(recording), name_(name), call_(call) {}

  void record() {
    Path first = walk({});
    if (first.decisions.empty()) {
      recording_.setSteps(std::move(first.steps));
      for (const Result& r : first.results) recording_.addOutput(r.name, r.tensor);
      return;
    }
    join(first, 0);
    if (outputs_.empty()) {
      throw NotAhead("the program raises whatever the elements of its arguments are");
    }
    recording_.setSteps(std::move(steps_));
    for (const Result& r : outputs_) recording_.addOutput(r.name, r.tensor);
  }

 private:
  // One call.
  struct Path {
    std::vector<Step> steps;
    std::vector<Recording::Decision> decisions;
    std::vector<Result> results;
    std::optional<std::string> raised;
  };

  Path walk(std::vector<bool> assumed) {
    if (++walked_ > kMostPaths) {
      throw NotAhead(fmt::format(
          "the elements of tensors decide between more than {} ways through the program",
          kMostPaths));
    }
    recording_.restart(std::move(assumed));
    Path path;
    try {
      collect(call_(), name_, path.results);
    } catch (const RuntimeError& e) {
      if (recording_.decisions().empty() || !isRaised(e)) throw;
      path.raised = e.brief();
    }
    if (recording_.openLoop()) {
      throw NotAhead("the program ends within a loop that stays one");
    }
    path.decisions = recording_.decisions();
    if (!path.decisions.empty() && !path.raised) bind(path.results);
    path.steps = recording_.takeSteps();
    return path;
  }

  // Lets the results of all paths lie in the same memory.
  void bind(const std::vector<Result>& results) {
    if (outputs_.empty()) {
      for (const Result& r : results) {
        outputs_.push_back(
            {r.name, Tensor::empty(r.tensor.sizes(), r.tensor.dtype(), Device{kAhead, -1})});
      }
    }
    bool same = outputs_.size() == results.size();
    for (size_t i = 0; same && i < results.size(); ++i) {
      const Tensor &a = outputs_[i].tensor, &b = results[i].tensor;
      same = a.dtype() == b.dtype() && std::ranges::equal(a.sizes(), b.sizes());
    }
    if (!same) {
      throw NotAhead("the elements of tensors decide about the dtypes or sizes of the results");
    }
    for (size_t i = 0; i < results.size(); ++i) {
      recording_.assign(outputs_[i].tensor, results[i].tensor);
    }
  }

  // Appends what follows behind the path's decision number `depth` - 1.
  void join(Path& path, size_t depth) {
    const size_t begin = depth == 0 ? 0 : path.decisions[depth - 1].position;
    const bool ends = depth == path.decisions.size();
    const size_t end = ends ? path.steps.size() : path.decisions[depth].position;
    steps_.insert(steps_.end(), path.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                  path.steps.begin() + static_cast<std::ptrdiff_t>(end));
    if (ends) {
      if (path.raised) steps_.push_back({RaiseStep{*path.raised}, "raise", ""});
      return;
    }
    steps_.push_back({BranchStep{path.decisions[depth].place}, "if", ""});
    std::vector<bool> assumed;
    for (size_t i = 0; i < depth; ++i) assumed.push_back(path.decisions[i].value);
    assumed.push_back(false);
    join(path, depth + 1);
    steps_.push_back({OtherwiseStep{}, "", ""});
    Path other = walk(std::move(assumed));
    useBuffersOf(path, end, other);
    join(other, depth + 1);
    steps_.push_back({EndStep{}, "", ""});
  }

  // The first `count` steps are the same computations in both: the other's buffers become the path's.
  static void useBuffersOf(const Path& path, size_t count, Path& other) {
    std::unordered_map<uint32_t, uint32_t> names;
    bool same = other.steps.size() >= count;
    for (size_t i = 0; same && i < count; ++i) {
      const std::vector<Use> a = usesOf(path.steps[i]), b = usesOf(other.steps[i]);
      same = path.steps[i].what.index() == other.steps[i].what.index() && a.size() == b.size();
      for (size_t u = 0; same && u < a.size(); ++u) {
        same = names.try_emplace(b[u].buffer, a[u].buffer).first->second == a[u].buffer;
      }
    }
    if (!same) throw NotAhead("two calls of the program computed different things");
    for (Step& step : other.steps) renameBuffers(step, names);
    for (Recording::Decision& d : other.decisions) {
      const auto it = names.find(d.place.buffer);
      if (it != names.end()) d.place.buffer = it->second;
    }
  }

  Recording& recording_;
  const std::string name_;
  const std::function<IValue()>& call_;
  std::vector<Step> steps_;
  std::vector<Result> outputs_;
  int walked_ = 0;
};

}  // namespace

void recordPaths(Recording& recording, const std::string& name,
                 const std::function<IValue()>& call) {
  Paths(recording, name, call).record();
}

}  // namespace wick::aot

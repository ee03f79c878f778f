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
#include <cctype>
#include <optional>
#include <unordered_map>

#include "aot/device.h"
#include "core/error.h"

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

// A dict's name is followed by the key where it is a word, which may stand in comments of C, else its number.
std::string keyName(const IValue& key, size_t number) {
  constexpr size_t kLongest = 64;
  const auto isWordChar = [](unsigned char c) { return c == '_' || std::isalnum(c) != 0; };
  const bool word = key.isString() && !key.toString().empty() &&
                    key.toString().size() <= kLongest &&
                    std::ranges::all_of(key.toString(), isWordChar);
  return word ? "_" + key.toString() : std::to_string(number);
}

// Tensors and numbers of a result, in order. A list may hold itself, or the same list often.
class Results {
 public:
  explicit Results(std::vector<Result>& found) : found_(found) {}

  void collect(const IValue& value, const std::string& name, int depth = 0) {
    if (depth > kMaxDepth || ++looked_at_ > kMostValues) {
      throw NotAhead(fmt::format("the result nests deeper than {} levels or has more than {} parts",
                                 kMaxDepth, kMostValues));
    }
    if (const Tensor number = numberAsTensor(value); number.defined()) {
      found_.push_back({name, number});
    } else if (value.isTensor() && value.toTensor().defined()) {
      found_.push_back({name, value.toTensor()});
    } else if (value.isTuple() || value.isList()) {
      size_t i = 0;
      for (const IValue& e : value.elements()) {
        collect(e, fmt::format("{}{}", name, i++), depth + 1);
      }
    } else if (value.isDict()) {
      size_t i = 0;
      for (const auto& [key, e] : value.toDict().items()) {
        collect(e, name + keyName(key, i++), depth + 1);
      }
    } else {
      throw NotAhead(fmt::format(
          "a part of the result ({}) is of type {}; results of compiled models are tensors, "
          "numbers, and tuples, lists and dicts of them",
          name, value.tagName()));
    }
  }

 private:
  static constexpr int kMaxDepth = 100;
  static constexpr int kMostValues = 10'000;
  std::vector<Result>& found_;
  int looked_at_ = 0;
};

// Whether the program's own text raised this, and no operator.
bool isRaised(const RuntimeError& e) {
  if (e.frames().empty()) return false;
  const std::string_view text = e.frames().front().range.text();
  return text.starts_with("raise") || text.starts_with("assert");
}

// Whether calls of such sizes end with this error: what the engine itself raises for them, and what is not available for
// tensors without elements, where a size that elements decide is zero.
bool isOfSizes(const RuntimeError& e, const std::vector<Recording::Decision>& decisions) {
  const bool sized = std::ranges::any_of(
      decisions, [](const Recording::Decision& d) { return d.size.has_value(); });
  const bool empty =
      std::ranges::any_of(decisions, [](const Recording::Decision& d) { return d.size == 0; });
  const std::string_view text = e.what();
  if (isNotAhead(e)) {
    return empty && text.find("without elements") != std::string_view::npos;
  }
  return text.find("not available on device") == std::string_view::npos ? sized : empty;
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
    join(first, 0, "");
    const bool sized = !recording_.asks().empty();
    if (outputs_.empty() && !sized) {
      throw NotAhead("the program raises whatever the elements of its arguments are");
    }
    const auto last_size = std::ranges::find_if(steps_.rbegin(), steps_.rend(), [](const Step& s) {
      return std::holds_alternative<SizeStep>(s.what);
    });
    // What stands in front of a size is the same whatever it is, even if nobody needs it for this one.
    for (auto step = last_size; step != steps_.rend(); ++step) step->kept = true;
    const bool decided =
        std::ranges::any_of(outputs_, [](const Output& o) { return o.decided != 0; });
    if (!sized && !decided) {
      std::erase_if(steps_, [](const Step& step) {
        return std::holds_alternative<ResultSizesStep>(step.what);
      });
    }
    recording_.setSteps(std::move(steps_));
    for (size_t i = 0; i < outputs_.size(); ++i) addOutput(i);
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
      Results(path.results).collect(call_(), name_);
    } catch (const RuntimeError& e) {
      if (recording_.decisions().empty() ||
          !(recording_.isImpossible() || isRaised(e) || isOfSizes(e, recording_.decisions()))) {
        throw;
      }
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

  // A result of the call. Ways that lead to other sizes write to memory of their own, which is the caller's in the
  // compiled model.
  struct Output {
    std::string name;
    std::vector<Tensor> variants{};
    DimVector most{};
    uint32_t decided = 0;
  };

  // Lets the results of all paths lie in the same memory.
  void bind(const std::vector<Result>& results) {
    const bool first = outputs_.empty();
    if (first) {
      for (const Result& r : results) outputs_.push_back({r.name, {}, DimVector(r.tensor.sizes())});
    }
    bool same = outputs_.size() == results.size();
    for (size_t i = 0; same && !first && i < results.size(); ++i) {
      const Tensor &a = outputs_[i].variants[0], &b = results[i].tensor;
      same = a.dtype() == b.dtype() && a.dim() == b.dim();
    }
    if (!same) {
      throw NotAhead(
          "the elements of tensors decide about the number, dtypes or ranks of the results");
    }
    ResultSizesStep sizes;
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor& result = results[i].tensor;
      Output& output = outputs_[i];
      auto variant = std::ranges::find_if(output.variants, [&](const Tensor& t) {
        return std::ranges::equal(t.sizes(), result.sizes());
      });
      if (variant == output.variants.end()) {
        output.variants.push_back(
            Tensor::empty(result.sizes(), result.dtype(), Device{kAhead, -1}));
        variant = output.variants.end() - 1;
      }
      recording_.assign(*variant, result);
      sizes.sizes.emplace_back(result.sizes());
      for (size_t d = 0; d < output.most.size(); ++d) {
        const int64_t size = result.sizes()[d];
        if (size != output.variants[0].sizes()[d]) output.decided |= uint32_t{1} << d;
        output.most[d] = std::max(output.most[d], size);
      }
    }
    recording_.add("sizes of results", std::move(sizes));
  }

  void addOutput(size_t i) {
    const Output& output = outputs_[i];
    auto main =
        std::ranges::find_if(output.variants, [](const Tensor& t) { return t.numel() > 0; });
    if (main == output.variants.end()) main = output.variants.begin();
    recording_.addOutput(output.name, *main);
    recording_.noteSizes(i, output.most, output.decided);
    for (auto other = output.variants.begin(); other != output.variants.end(); ++other) {
      if (other != main) recording_.addAlternate(i, *other);
    }
  }

  // Appends what follows behind the path's decision number `depth` - 1; `key` tells all answers up to there.
  void join(Path& path, size_t depth, const std::string& key) {
    const size_t begin = depth == 0 ? 0 : path.decisions[depth - 1].position;
    const bool ends = depth == path.decisions.size();
    const size_t end = ends ? path.steps.size() : path.decisions[depth].position;
    steps_.insert(steps_.end(), path.steps.begin() + static_cast<std::ptrdiff_t>(begin),
                  path.steps.begin() + static_cast<std::ptrdiff_t>(end));
    if (ends) {
      if (path.raised) steps_.push_back({RaiseStep{*path.raised}, "raise"});
      return;
    }
    const Recording::Decision& decision = path.decisions[depth];
    if (decision.size) {
      steps_.push_back(
          {SizeStep{decision.place, decision.most, decision.by, key + "s"}, decision.by});
      return join(path, depth + 1, key + "s");
    }
    steps_.push_back({BranchStep{decision.place}, "if"});
    std::vector<bool> assumed;
    for (size_t i = 0; i < depth; ++i) assumed.push_back(path.decisions[i].value);
    assumed.push_back(false);
    join(path, depth + 1, key + "t");
    steps_.push_back({OtherwiseStep{}, ""});
    Path other = walk(std::move(assumed));
    useBuffersOf(path, end, other);
    join(other, depth + 1, key + "f");
    steps_.push_back({EndStep{}, ""});
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
  std::vector<Output> outputs_;
  int walked_ = 0;
};

}  // namespace

void recordPaths(Recording& recording, const std::string& name,
                 const std::function<IValue()>& call) {
  Paths(recording, name, call).record();
}

}  // namespace wick::aot

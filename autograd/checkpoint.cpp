// The part is recorded when it runs, and the recording is dropped at once: what it shows is where
// the part's gradients go, whatever tensors it reads. The walk back records the part again, and
// walks it from the results to just these edges.
#include "autograd/checkpoint.h"

#include <mutex>
#include <optional>

#include "autograd/anomaly.h"
#include "autograd/engine.h"
#include "autograd/saved_value.h"
#include "core/error.h"
#include "core/generator_state.h"
#include "core/grad_mode.h"

namespace wick::autograd {

namespace {

using Part = std::function<IValue(std::vector<IValue>)>;
constexpr int kMaxDepth = 64;

// The tensors of a value, in order. What stands in it twice is looked at twice, so that each part of
// a value has its position.
void collect(const IValue& value, std::vector<Tensor>& tensors, size_t& parts, int depth = 0) {
  constexpr size_t kMostParts = size_t{1} << 20;
  WICK_CHECK(depth < kMaxDepth, "checkpoint: the result is nested too deeply");
  WICK_CHECK(++parts < kMostParts, "checkpoint: the result has more than {} parts", kMostParts);
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isList() || value.isTuple()) {
    for (const IValue& e : value.elements()) collect(e, tensors, parts, depth + 1);
  } else if (value.isDict()) {
    for (const IValue& e : value.toDict().values()) collect(e, tensors, parts, depth + 1);
  }
}
std::vector<Tensor> tensorsOf(const IValue& value) {
  std::vector<Tensor> tensors;
  size_t parts = 0;
  collect(value, tensors, parts);
  return tensors;
}

// The value with other tensors, which stand in the order of tensorsOf(). What holds none that is
// other stays itself.
IValue replaced(const IValue& value, const std::vector<Tensor>& tensors, size_t& next) {
  if (value.isTensor()) return IValue(tensors.at(next++));
  bool other = false;
  const auto replaceOne = [&](const IValue& e) {
    IValue now = replaced(e, tensors, next);
    other |= now.tag() != e.tag() || (now.isCounted() && now.rawObject() != e.rawObject());
    return now;
  };
  if (value.isList() || value.isTuple()) {
    std::vector<IValue> elements;
    for (const IValue& e : value.elements()) elements.push_back(replaceOne(e));
    if (!other) return value;
    if (value.isList()) {
      return IValue(makeList(value.toList().element_type, std::move(elements)));
    }
    return IValue(makeTuple(std::move(elements), value.toTuple().named));
  }
  if (value.isDict()) {
    const DictObject& dict = value.toDict();
    DictRef copy = makeRef<DictObject>(dict.key_type, dict.value_type);
    for (const auto& [key, e] : dict.items()) copy->set(key, replaceOne(e));
    if (other) return IValue(std::move(copy));
  }
  return value;
}

class CheckpointNode : public Node {
 public:
  CheckpointNode(Part part, const std::vector<IValue>& inputs,
                 std::optional<GeneratorState> random_state)
      : part_(std::move(part)), random_state_(std::move(random_state)) {
    for (const IValue& v : inputs) inputs_.push_back(SavedValue::argument(v));
  }
  std::string name() const override { return "CheckpointBackward"; }

  // Tensor `place` of the value is the node's next result.
  void addPlace(size_t place) { places_.push_back(place); }
  void setCount(size_t count) { count_ = count; }

  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    const bool again = gradEnabled();
    std::vector<Tensor> outputs;
    {
      const GradModeGuard on(true);
      std::vector<IValue> inputs;
      {
        std::lock_guard lock(mutex_);
        WICK_CHECK(!released_, "{}", kAlreadyReleased);
        for (const SavedValue& v : inputs_) inputs.push_back(v.unpack(*this));
      }
      std::optional<DefaultGeneratorGuard> random;
      if (random_state_) random.emplace(*random_state_);
      const std::vector<Tensor> all = tensorsOf(part_(std::move(inputs)));
      WICK_CHECK(all.size() == count_,
                 "checkpoint: the second run gave {} tensors, the first {}; what is computed again "
                 "must do the same",
                 all.size(), count_);
      for (size_t i = 0; i < places_.size(); ++i) {
        outputs.push_back(all[places_[i]]);
        WICK_CHECK(std::ranges::equal(outputs[i].sizes(), shapes()[i].sizes),
                   "checkpoint: the second run gave a tensor of sizes {}, the first one of {}; "
                   "what is computed again must do the same",
                   formatInts(outputs[i].sizes()), formatInts(shapes()[i].sizes));
      }
    }
    return gradientsAt(next(), outputs, gradients, {again, again});
  }

  void releaseSaved() override {
    std::vector<SavedValue> dropped;  // without the mutex
    std::lock_guard lock(mutex_);
    dropped.swap(inputs_);
    released_ = true;
  }

 private:
  const Part part_;
  const std::optional<GeneratorState> random_state_;
  std::mutex mutex_;  // several threads may walk here
  std::vector<SavedValue> inputs_;
  std::vector<size_t> places_;
  size_t count_ = 0;
  bool released_ = false;
};

bool isMadeSince(const Edge& edge, uint64_t since) {
  return edge && edge.node->sequence() >= since && !dynamic_cast<Leaf*>(edge.node.get());
}

}  // namespace

IValue checkpointValues(Part function, std::vector<IValue> inputs,
                        const CheckpointOptions& options) {
  WICK_CHECK(function, "checkpoint: there is no function");
  if (!gradEnabled()) return function(std::move(inputs));
  std::optional<GeneratorState> random;
  if (options.preserve_random_state) random = GeneratorState::of(defaultGenerator());
  // Made before the part runs: it keeps the inputs as they are now.
  Ref<CheckpointNode> node = makeRef<CheckpointNode>(function, inputs, std::move(random));
  const uint64_t since = Node::nextSequence();
  IValue result = function(std::move(inputs));
  std::vector<Tensor> tensors = tensorsOf(result), made;
  std::vector<size_t> places;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!isMadeSince(gradientEdge(tensors[i]), since)) continue;
    made.push_back(tensors[i]);
    places.push_back(i);
  }
  if (made.empty()) return result;
  node->setNext(edgesOutOf(made, since));
  node->setCount(tensors.size());
  for (const size_t place : places) {
    Tensor& t = tensors[place];
    const Tensor base = baseOf(t);
    t = withoutHistory(t);
    node->addPlace(place);
    // A view of what was there before must not be written to, for the part made it.
    if (base.defined() && !isMadeSince(gradientEdge(base), since)) {
      setViewOf(t, base, ViewOrigin::Custom);
    }
    setHistory(t, node);
  }
  if (detectsAnomaly()) noteRecorded(*node);
  size_t next = 0;
  return replaced(result, tensors, next);
}

std::vector<Tensor> checkpoint(
    std::function<std::vector<Tensor>(const std::vector<Tensor>&)> function,
    std::vector<Tensor> inputs, const CheckpointOptions& options) {
  WICK_CHECK(function, "checkpoint: there is no function");
  std::vector<IValue> values(inputs.begin(), inputs.end());
  const IValue found = checkpointValues(
      [function = std::move(function)](std::vector<IValue> arguments) {
        std::vector<Tensor> tensors;
        for (const IValue& v : arguments) tensors.push_back(v.toTensor());
        std::vector<IValue> out;
        for (Tensor& t : function(tensors)) out.emplace_back(std::move(t));
        return IValue(makeList(types::Tensor(), std::move(out)));
      },
      std::move(values), options);
  std::vector<Tensor> out;
  for (const IValue& v : found.elements()) out.push_back(v.toTensor());
  return out;
}

}  // namespace wick::autograd

#include "autograd/engine.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "autograd/anomaly.h"
#include "autograd/gradients.h"
#include "core/budget.h"
#include "core/counted_vector.h"
#include "core/error.h"
#include "core/grad_mode.h"

namespace wick::autograd {

namespace {

struct Root {
  Edge edge;
  Tensor gradient;
};

class Walk {
 public:
  explicit Walk(const WalkOptions& options) : options_(options) {}

  // The gradient that arrives there is kept instead of going on, unless others need what is behind.
  void capture(const Edge& edge, size_t slot) {
    captures_[edge.node.get()].push_back({edge.index, slot});
    captures_only_ = true;
  }

  // Captured edges are ends: what is behind is not walked.
  void endAtCaptures() { ends_ = true; }

  std::vector<Tensor> run(std::vector<Root> roots, size_t num_captured) {
    captured_.resize(num_captured);
    if (ends_) {
      std::erase_if(roots, [&](const Root& root) { return catchAtEnd(root.edge, root.gradient); });
    }
    countDependencies(roots);
    const GradModeGuard mode(options_.create_graph);
    std::optional<BelowRecorder> below;
    if (!options_.create_graph) below.emplace();
    for (const Root& root : roots) deliver(root.edge, root.gradient);
    // Nodes that nobody waits for: roots that are not also reached from others.
    for (const Root& root : roots) {
      Task& task = tasks_.at(root.edge.node.get());
      if (task.needed && task.waits_for == 0 && !std::exchange(task.queued, true)) {
        ready_.push(root.edge.node);
      }
    }
    while (!ready_.empty()) {
      checkBudget();
      const Ref<Node> node = ready_.top();
      ready_.pop();
      step(*node);
    }
    return std::move(captured_);
  }

 private:
  // The parts of a graph that a walk with captures wants.
  struct Part {
    std::vector<bool> edges;    // of each of next()
    std::vector<bool> leading;  // of each result, whether its gradient goes on to one of these
    std::vector<bool> needed;   // or is captured
  };
  struct Task {
    size_t waits_for = 0;  // edges from nodes that were not run
    bool needed = true;
    bool queued = false;
    bool reached = false;        // with captures, by edges along which gradients will come
    std::unique_ptr<Part> part;  // null: all
    std::vector<Tensor> gradients;
  };
  struct Capture {
    uint32_t index;
    size_t slot;
  };
  struct Older {
    bool operator()(const Ref<Node>& a, const Ref<Node>& b) const {
      return a->sequence() < b->sequence();
    }
  };

  // Finds all nodes below the roots, and with captures those that lead to one.
  void countDependencies(const std::vector<Root>& roots) {
    struct Visit {
      Node* node;
      size_t next;
    };
    CountedVector<Visit> path;
    const auto enter = [&](Node* node) {
      if (tasks_.try_emplace(node).second) path.push_back({node, 0});
    };
    for (const Root& root : roots) {
      enter(root.edge.node.get());
      while (!path.empty()) {
        pace_.step(8);
        Visit& visit = path.back();
        Node* const node = visit.node;
        if (visit.next < node->next().size()) {
          const Edge& edge = node->next()[visit.next++];
          if (edge && !isEnd(edge)) enter(edge.node.get());
          continue;
        }
        path.pop_back();
        leave(*node);
      }
    }
    if (captures_only_) countWanted(roots);
  }

  // Counts the edges that gradients will come along. A graph may lead to a capture from a result that
  // the walk does not come to, so that it will not be run, and nobody may wait for it.
  void countWanted(const std::vector<Root>& roots) {
    CountedVector<Node*> reached;
    const auto reach = [&](const Edge& edge) {
      if (!std::exchange(tasks_.at(edge.node.get()).reached, true)) {
        reached.push_back(edge.node.get());
      }
    };
    for (const Root& root : roots) {
      if (leadsOn(root.edge)) reach(root.edge);
    }
    while (!reached.empty()) {
      pace_.step(8);
      Node* const node = reached.back();
      reached.pop_back();
      for (const Edge& edge : node->next()) {
        if (!leadsOn(edge) || isEnd(edge)) continue;
        ++tasks_.at(edge.node.get()).waits_for;
        reach(edge);
      }
    }
  }

  void leave(Node& node) {
    Task& task = tasks_.at(&node);
    if (captures_only_) {
      const auto captured = ends_ ? captures_.end() : captures_.find(&node);
      const bool leads =
          std::ranges::any_of(node.next(), [&](const Edge& e) { return leadsOn(e); });
      task.needed = leads || captured != captures_.end();
      // A captured result wants nothing of the graph's other results.
      if (GraphNode* const graph = task.needed ? node.asGraph() : nullptr) {
        task.part = std::make_unique<Part>();
        for (const Edge& edge : node.next()) task.part->edges.push_back(leadsOn(edge));
        task.part->leading = graph->resultsLeadingTo(task.part->edges);
        task.part->needed = task.part->leading;
        if (captured != captures_.end()) {
          for (const Capture& c : captured->second) task.part->needed.at(c.index) = true;
        }
      }
    }
    if (captures_only_) return;
    for (const Edge& edge : node.next()) {
      if (edge && !isEnd(edge)) ++tasks_.at(edge.node.get()).waits_for;
    }
  }

  // Returns whether a gradient along the edge is wanted, when the nodes behind it were seen.
  bool leadsOn(const Edge& edge) const {
    if (!edge) return false;
    if (isEnd(edge)) return true;
    const Task& task = tasks_.at(edge.node.get());
    return task.needed && (!task.part || task.part->needed.at(edge.index));
  }

  const Capture* endAt(const Edge& edge) const {
    if (!ends_) return nullptr;
    const auto found = captures_.find(edge.node.get());
    if (found == captures_.end()) return nullptr;
    for (const Capture& c : found->second) {
      if (c.index == edge.index) return &c;
    }
    return nullptr;
  }
  bool isEnd(const Edge& edge) const { return endAt(edge) != nullptr; }
  bool catchAtEnd(const Edge& edge, const Tensor& gradient) {
    const Capture* const end = endAt(edge);
    if (!end) return false;
    captured_[end->slot] = sumOfGradients(captured_[end->slot], gradient);
    return true;
  }

  void deliver(const Edge& edge, const Tensor& gradient) {
    Task& task = tasks_.at(edge.node.get());
    if (!task.needed || (task.part && !task.part->needed.at(edge.index))) return;
    if (task.gradients.empty()) task.gradients.resize(edge.node->shapes().size());
    addGradient(task.gradients.at(edge.index), gradient);
  }

  void step(Node& node) {
    Task& task = tasks_.at(&node);
    std::vector<Tensor> gradients = std::move(task.gradients);
    gradients.resize(node.shapes().size());
    if (const auto found = captures_.find(&node); found != captures_.end() && !ends_) {
      for (const Capture& c : found->second) captured_[c.slot] = gradients.at(c.index);
    }
    const bool goes_on = !captures_only_ || std::ranges::any_of(node.next(), [&](const Edge& e) {
      return leadsOn(e);
    });
    for (size_t i = 0; task.part && i < gradients.size(); ++i) {
      if (!task.part->leading[i]) gradients[i] = Tensor();
    }
    const bool any = std::ranges::any_of(gradients, [](const Tensor& g) { return g.defined(); });
    const std::vector<Tensor> results =
        any && goes_on ? apply(node, task.part.get(), std::move(gradients)) : std::vector<Tensor>();
    for (size_t i = 0; i < node.next().size(); ++i) {
      const Edge& edge = node.next()[i];
      if (!edge) continue;
      if (i < results.size() && results[i].defined()) {
        const Tensor gradient = fitted(results[i], edge.node->shapes().at(edge.index), node.name());
        if (!catchAtEnd(edge, gradient)) deliver(edge, gradient);
      }
      if (isEnd(edge) || (captures_only_ && !leadsOn(edge))) continue;
      Task& next = tasks_.at(edge.node.get());
      if (--next.waits_for == 0 && next.needed && !std::exchange(next.queued, true)) {
        ready_.push(edge.node);
      }
    }
  }

  // What the node makes of the gradients of its results, when all of these are complete.
  std::vector<Tensor> apply(Node& node, const Part* part, std::vector<Tensor> gradients) {
    for (uint32_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) gradients[i] = node.passGradient(i, std::move(gradients[i]));
    }
    const auto run = [&]() -> std::vector<Tensor> {
      const bool last = !options_.retain_graph;
      if (part) return node.asGraph()->applyFor(gradients, &part->edges, last);
      return last ? node.applyLast(gradients) : node.apply(gradients);
    };
    std::vector<Tensor> results = detectsAnomaly() ? applyWatched(node, run) : run();
    WICK_ASSERT(results.size() <= node.next().size(), "{} returned too many gradients",
                node.name());
    return results;
  }

  const WalkOptions options_;
  bool captures_only_ = false;
  bool ends_ = false;
  using CountedTask = CountedAllocator<std::pair<Node* const, Task>>;
  std::unordered_map<Node*, Task, std::hash<Node*>, std::equal_to<>, CountedTask> tasks_;
  Pace pace_;
  std::unordered_map<Node*, std::vector<Capture>> captures_;
  std::priority_queue<Ref<Node>, std::vector<Ref<Node>>, Older> ready_;
  std::vector<Tensor> captured_;
};

std::vector<Root> rootsOf(const std::vector<Tensor>& outputs,
                          const std::vector<Tensor>& gradients) {
  WICK_CHECK(gradients.empty() || gradients.size() == outputs.size(),
             "got {} tensors and {} gradients", outputs.size(), gradients.size());
  std::vector<Root> roots;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    WICK_CHECK(requiresGradient(output),
               "element {} of tensors does not require grad and does not have a grad_fn", i);
    Tensor gradient = i < gradients.size() ? gradients[i] : Tensor();
    if (!gradient.defined()) {
      WICK_CHECK(output.numel() == 1, "grad can be implicitly created only for scalar outputs");
      WICK_CHECK(!isComplex(output.dtype()),
                 "grad can be implicitly created only for real scalar outputs but got {}",
                 toString(output.dtype()));
      gradient = Tensor::full(output.sizes(), 1, output.dtype(), output.device());
    }
    WICK_CHECK(
        isComplex(gradient.dtype()) == isComplex(output.dtype()),
        "For complex Tensors, both grad_output and output are required to have the same dtype. "
        "Mismatch in dtype: grad_output[{}] has a dtype of {} and output[{}] has a dtype of {}.",
        i, toString(gradient.dtype()), i, toString(output.dtype()));
    // What is larger in the way of broadcasting is summed, as by PyTorch.
    WICK_CHECK(broadcastsTo(output.sizes(), gradient.sizes()),
               "invalid gradient at index {} - got {} but expected shape compatible with {}", i,
               formatInts(gradient.sizes()), formatInts(output.sizes()));
    const Edge edge = gradientEdge(output);
    roots.push_back({edge, fitted(gradient, edge.node->shapes().at(edge.index), "grad_outputs")});
  }
  return roots;
}

}  // namespace

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
              const WalkOptions& options) {
  if (outputs.empty()) return;
  Walk(options).run(rootsOf(outputs, gradients), 0);
}

std::vector<Tensor> gradientsOf(const std::vector<Tensor>& outputs,
                                const std::vector<Tensor>& inputs,
                                const std::vector<Tensor>& gradients, const WalkOptions& options,
                                bool allow_unused) {
  Walk walk(options);
  std::vector<Edge> edges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    WICK_CHECK(requiresGradient(inputs[i]),
               "One of the differentiated Tensors does not require grad");
    edges.push_back(gradientEdge(inputs[i]));
    walk.capture(edges.back(), i);
  }
  std::vector<Tensor> found = walk.run(rootsOf(outputs, gradients), inputs.size());
  WICK_CHECK(
      allow_unused || std::ranges::all_of(found, [](const Tensor& t) { return t.defined(); }),
      "One of the differentiated Tensors appears to not have been used in the graph. Set "
      "allow_unused=True if this is the desired behavior.");
  return found;
}

std::vector<Tensor> gradientsAt(const std::vector<Edge>& ends, const std::vector<Tensor>& outputs,
                                const std::vector<Tensor>& gradients, const WalkOptions& options) {
  Walk walk(options);
  walk.endAtCaptures();
  for (size_t i = 0; i < ends.size(); ++i) walk.capture(ends[i], i);
  std::vector<Root> roots;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!gradients.at(i).defined() || !requiresGradient(outputs[i])) continue;
    const Edge edge = gradientEdge(outputs[i]);
    roots.push_back(
        {edge, fitted(gradients[i], edge.node->shapes().at(edge.index), "the gradient")});
  }
  return walk.run(std::move(roots), ends.size());
}

std::vector<Edge> edgesOutOf(const std::vector<Tensor>& outputs, uint64_t since) {
  std::vector<Edge> found;
  std::unordered_map<Node*, std::vector<uint32_t>> taken;
  std::unordered_set<Node*> seen;
  std::vector<Node*> pending;
  const auto follow = [&](const Edge& edge) {
    if (!edge) return;
    Node* const node = edge.node.get();
    if (node->sequence() < since || dynamic_cast<Leaf*>(node)) {
      std::vector<uint32_t>& indices = taken[node];
      if (std::ranges::find(indices, edge.index) != indices.end()) return;
      indices.push_back(edge.index);
      found.push_back(edge);
    } else if (seen.insert(node).second) {
      pending.push_back(node);
    }
  };
  for (const Tensor& output : outputs) {
    if (requiresGradient(output)) follow(gradientEdge(output));
  }
  while (!pending.empty()) {
    const Node* const node = pending.back();
    pending.pop_back();
    for (const Edge& edge : node->next()) follow(edge);
  }
  return found;
}

}  // namespace wick::autograd

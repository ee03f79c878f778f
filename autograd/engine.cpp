#include "autograd/engine.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "autograd/gradients.h"
#include "core/budget.h"
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

  std::vector<Tensor> run(const std::vector<Root>& roots, size_t num_captured) {
    captured_.resize(num_captured);
    countDependencies(roots);
    const GradModeGuard mode(options_.create_graph);
    for (const Root& root : roots) deliver(root.edge, root.gradient);
    // Nodes that nobody waits for: roots that are not also reached from others.
    for (const Root& root : roots) {
      Task& task = tasks_.at(root.edge.node.get());
      if (task.waits_for == 0 && !std::exchange(task.queued, true)) ready_.push(root.edge.node);
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
  struct Task {
    size_t waits_for = 0;  // edges from nodes that were not run
    bool needed = true;
    bool queued = false;
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
    std::vector<Visit> path;
    const auto enter = [&](Node* node) {
      if (tasks_.try_emplace(node).second) path.push_back({node, 0});
    };
    for (const Root& root : roots) {
      enter(root.edge.node.get());
      while (!path.empty()) {
        Visit& visit = path.back();
        Node* const node = visit.node;
        if (visit.next < node->next().size()) {
          Node* const next = node->next()[visit.next++].node.get();
          if (!next) continue;
          enter(next);
          continue;
        }
        path.pop_back();
        leave(*node);
      }
    }
  }

  void leave(Node& node) {
    bool leads = captures_.count(&node) != 0;
    for (const Edge& edge : node.next()) {
      if (edge) leads |= captures_only_ && tasks_.at(edge.node.get()).needed;
    }
    Task& task = tasks_.at(&node);
    task.needed = !captures_only_ || leads;
    // A node that leads nowhere is not run, and nobody waits for it.
    if (!task.needed) return;
    for (const Edge& edge : node.next()) {
      if (edge) ++tasks_.at(edge.node.get()).waits_for;
    }
  }

  void deliver(const Edge& edge, const Tensor& gradient) {
    Task& task = tasks_.at(edge.node.get());
    if (!task.needed) return;
    if (task.gradients.empty()) task.gradients.resize(edge.node->shapes().size());
    Tensor& sum = task.gradients.at(edge.index);
    sum = sumOfGradients(sum, gradient);
  }

  void step(Node& node) {
    Task& task = tasks_.at(&node);
    std::vector<Tensor> gradients = std::move(task.gradients);
    gradients.resize(node.shapes().size());
    bool any = false;
    for (uint32_t i = 0; i < gradients.size(); ++i) {
      any |= gradients[i].defined();
      if (!gradients[i].defined()) continue;
      for (const Ref<Leaf>& sink : node.sinksOf(i)) sink->accumulate(gradients[i]);
    }
    if (const auto found = captures_.find(&node); found != captures_.end()) {
      for (const Capture& c : found->second) captured_[c.slot] = gradients.at(c.index);
    }
    const bool goes_on = !captures_only_ || std::ranges::any_of(node.next(), [&](const Edge& edge) {
      return edge && tasks_.at(edge.node.get()).needed;
    });
    std::vector<Tensor> results;
    if (any && goes_on) {
      results = node.apply(gradients);
      if (!options_.retain_graph) node.releaseSaved();
      WICK_ASSERT(results.size() <= node.next().size(), "{} returned too many gradients",
                  node.name());
    }
    for (size_t i = 0; i < node.next().size(); ++i) {
      const Edge& edge = node.next()[i];
      if (!edge) continue;
      if (i < results.size() && results[i].defined()) {
        deliver(edge, fitted(results[i], edge.node->shapes().at(edge.index), node.name()));
      }
      Task& next = tasks_.at(edge.node.get());
      if (--next.waits_for == 0 && next.needed && !std::exchange(next.queued, true)) {
        ready_.push(edge.node);
      }
    }
  }

  const WalkOptions options_;
  bool captures_only_ = false;
  std::unordered_map<Node*, Task> tasks_;
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
      gradient = Tensor::full(output.sizes(), 1, output.dtype());
    }
    WICK_CHECK(std::ranges::equal(gradient.sizes(), output.sizes()),
               "Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of "
               "{}.",
               i, formatInts(gradient.sizes()), i, formatInts(output.sizes()));
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

}  // namespace wick::autograd

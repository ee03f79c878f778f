// Code: a Graph lowered to register instructions. Immutable once built (its call sites remember
// what they found, and the Code its machine code, atomically); any number of threads may run one
// Code at a time.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/function.h"
#include "ir/graph.h"
#include "ir/operator.h"
#include "runtime/interpreter/instruction.h"
#include "runtime/interpreter/native_code.h"
#include "runtime/interpreter/speculation.h"

namespace wick {

class FusionSite;
class GraphExecutor;

// A place that calls an operator.
struct OperatorSite {
  const Operator* op;
};

// A place that calls a script function. The executor is looked up at the first call.
struct FunctionSite {
  explicit FunctionSite(GraphFunction* function) : function(function) {}
  GraphFunction* const function;
  std::atomic<GraphExecutor*> executor{nullptr};
};

// A place that calls a method of an interface: the class decides which. The first kMostEntries
// classes are remembered; the methods of others are looked up in each call.
struct MethodSite {
  static constexpr uint32_t kMostEntries = 16;
  explicit MethodSite(std::string name) : name(std::move(name)) {}
  ~MethodSite();
  struct Entry {
    // Kept alive, so that no other class comes to lie at its address.
    ClassTypePtr type;
    GraphExecutor* executor;
    Entry* older;
    uint32_t count;  // with the older ones
  };
  const std::string name;
  std::atomic<Entry*> last{nullptr};  // entries are only added, and freed with the site
};

// A place that forks. What it runs is a function of its own, with plans of its own.
struct ForkSite {
  ForkSite(std::string name, const Node* node)
      : node(node), function(std::move(name), node->subgraph(attr::Subgraph)), site(&function) {}
  const Node* const node;
  GraphFunction function;
  FunctionSite site;
  // Whether a device may do its work beside that of its caller (runtime/repeats.h). Found out when it is
  // first asked for, because few ask.
  std::once_flag asked;
  bool beside = false;
};

class Code : public std::enable_shared_from_this<Code> {
 public:
  ~Code();
  // Lowers `graph`, which the Code keeps and which must not change any more. `name` is what error
  // traces call the function. Throws RuntimeError for a node that is no instruction, call or
  // registered operator. A graph with prim::profile or prim::BailOut nodes needs `speculation`.
  static std::shared_ptr<const Code> build(std::shared_ptr<const Graph> graph, std::string name,
                                           std::shared_ptr<Speculation> speculation = nullptr);

  const std::string& name() const { return name_; }
  const std::shared_ptr<const Graph>& graph() const { return graph_; }
  size_t numInputs() const { return num_inputs_; }
  size_t numOutputs() const { return graph_->outputs().size(); }
  // Whether the first argument, a module, stays in its register until the frame ends.
  bool keepsFirst() const { return keeps_first_; }
  // Registers 0 .. numInputs()-1 receive the arguments; those below numObjectRegisters() are
  // initialized when a frame starts and destroyed when it ends, the others are scalars.
  size_t numObjectRegisters() const { return num_object_registers_; }
  size_t numRegisters() const { return num_registers_; }
  // Room that the frame needs beyond its registers for arguments and results of operators.
  size_t scratchSize() const { return scratch_size_; }

  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<uint32_t>& operands() const { return operands_; }
  const std::vector<IValue>& constants() const { return constants_; }
  // To be called by who runs the Code. When a second thread does, the constants that are tensors
  // are pinned (core/ref.h), for kernels hold them now and then.
  void noteThread() const {
    if (threads_.isSecond()) [[unlikely]]
      pinConstants();
  }
  const std::vector<TypePtr>& types() const { return types_; }
  const std::vector<std::vector<TypePtr>>& typeLists() const { return type_lists_; }
  const std::vector<OperatorSite>& operatorSites() const { return operator_sites_; }
  const std::vector<std::unique_ptr<FunctionSite>>& functionSites() const {
    return function_sites_;
  }
  const std::vector<std::unique_ptr<MethodSite>>& methodSites() const { return method_sites_; }
  const std::vector<std::unique_ptr<FusionSite>>& fusionSites() const { return fusion_sites_; }
  const std::vector<std::unique_ptr<ForkSite>>& forkSites() const { return fork_sites_; }
  const std::vector<GuardSite>& guardSites() const { return guard_sites_; }
  Speculation* speculation() const { return speculation_.get(); }
  // The node that an instruction came from; null for the final return.
  const Node* nodeOf(size_t instruction) const { return nodes_[instruction]; }
  // The call stack within this Code at an instruction, innermost first: more than one frame when
  // the node was inlined.
  std::vector<RuntimeError::Frame> framesAt(size_t instruction) const;

  // A listing: one instruction a line, constants and callees shown.
  std::string str() const;

  // Machine code for this Code; null until there is some. It lives as long as the Code.
  const NativeCode* native() const { return native_.load(std::memory_order_acquire); }
  // Once.
  void setNative(std::unique_ptr<const NativeCode> native) const;
  // Notes that the Code was busy, and asks for machine code when it was so often enough.
  void addHeat(uint64_t amount, NativeCompiler& compiler) const {
    if (requested_.load(std::memory_order_relaxed)) return;
    // An increment that is lost to another thread does not matter.
    uint64_t heat = heat_.load(std::memory_order_relaxed) + amount;
    heat_.store(heat, std::memory_order_relaxed);
    if (heat >= compiler.heatThreshold() && !requested_.exchange(true)) compiler.request(*this);
  }

 private:
  friend class Lowering;
  friend class RegisterAllocation;
  Code() = default;
  void pinConstants() const;

  std::string name_;
  std::shared_ptr<const Graph> graph_;
  size_t num_inputs_ = 0;
  bool keeps_first_ = false;
  size_t num_object_registers_ = 0;
  size_t num_registers_ = 0;
  size_t scratch_size_ = 0;
  std::vector<Instruction> instructions_;
  std::vector<uint32_t> operands_;
  std::vector<const Node*> nodes_;  // one an instruction
  std::vector<IValue> constants_;
  std::vector<TypePtr> types_;
  std::vector<std::vector<TypePtr>> type_lists_;
  std::vector<OperatorSite> operator_sites_;
  std::vector<std::unique_ptr<FunctionSite>> function_sites_;
  std::vector<std::unique_ptr<MethodSite>> method_sites_;
  std::vector<std::unique_ptr<FusionSite>> fusion_sites_;
  std::vector<std::unique_ptr<ForkSite>> fork_sites_;
  std::vector<GuardSite> guard_sites_;
  std::shared_ptr<Speculation> speculation_;
  mutable ThreadsSeen threads_;
  mutable std::atomic<uint64_t> heat_{0};
  mutable std::atomic<bool> requested_{false};
  mutable std::atomic<const NativeCode*> native_{nullptr};
  mutable std::unique_ptr<const NativeCode> owned_native_;
};

}  // namespace wick

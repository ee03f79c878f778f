// First every value of the body gets a shape and a dtype (Analysis). Then outputs that share a
// domain become one kernel (KernelBuilder). A kernel has one set of reduced dimensions; what cannot
// be computed where it is needed, such as a reduction over other dimensions, gets a kernel of its
// own in front, and everything is built once more.
#include "codegen/loop/lowering.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loop/kernel_builder.h"
#include "codegen/loop/writes.h"

namespace wick::loop {

namespace {

class Lowering {
 public:
  // `joins`: whether what a kernel stores is computed once more for others that it stores.
  // `written`: the arguments that the last outputs are written to.
  Lowering(const Graph& body, const Analysis& analysis, std::span<const uint32_t> written,
           const std::set<const Value*>& separate, bool joins, FunctionForm functions)
      : body_(body),
        analysis_(analysis),
        written_(written),
        separate_(separate),
        joins_(joins),
        common_{analysis, lowered_, functions} {}

  LoweredGroup run() {
    lowered_.steps = analysis_.steps();
    lowered_.checks = analysis_.checks();
    lowered_.number_checks = analysis_.numberChecks();
    lowered_.formats = analysis_.formats();
    lowered_.results = body_.outputs().size();
    lowered_.follow = !analysis_.isPlain() || !separate_.empty();
    for (size_t i = 0; i < analysis_.numArguments(); ++i) {
      lowered_.sources.push_back({static_cast<uint32_t>(i), {}, static_cast<int32_t>(i), -1});
    }
    for (const Value* output : body_.outputs()) {
      const ValueInfo& info = analysis_.of(output);
      if (!info.is_tensor || info.root >= 0) refuse("an output that is not computed");
      stored_.push_back(output);
    }
    // Tensors between kernels, in the order of the body.
    for (const Node* node : body_.nodes()) {
      for (const Value* v : node->outputs()) addSeparate(v);
    }
    for (const Value* v : body_.inputs()) addSeparate(v);
    lowered_.outputs.resize(stored_.size());
    assignKernels();
    for (size_t k = 0; k < groups_.size(); ++k) build(k);
    for (size_t i = 0; i < lowered_.results; ++i) findOver(lowered_.outputs[i]);
    lowered_.written = written_.size();
    for (size_t i = 0; i < written_.size(); ++i) {
      write(lowered_.outputs[lowered_.results - written_.size() + i], written_[i]);
    }
    return std::move(lowered_);
  }

 private:
  // Some kernels, with what they store.
  struct Domain {
    const Value* shape;
    uint32_t reduced;  // bit k: from the end
    std::vector<size_t> stores;
  };

  void addSeparate(const Value* v) {
    if (separate_.count(v) == 0) return;
    auto it = std::find(stored_.begin(), stored_.end(), v);
    common_.kept[v] = static_cast<uint32_t>(it - stored_.begin());
    if (it == stored_.end()) stored_.push_back(v);
  }

  bool sameDomain(const Domain& a, const Domain& b) const {
    const TensorLayout& x = analysis_.layoutOf(a.shape);
    const TensorLayout& y = analysis_.layoutOf(b.shape);
    return x.rank == y.rank &&
           std::equal(x.sizes.begin(), x.sizes.begin() + x.rank, y.sizes.begin());
  }

  // The first reduction among a value's producers within a kernel.
  const Value* reductionBehind(const Value* v, const Value* root,
                               std::map<const Value*, const Value*>& seen) const {
    if (!analysis_.knows(v)) return nullptr;
    if (auto it = seen.find(v); it != seen.end()) return it->second;
    const ValueInfo& info = analysis_.of(v);
    const Value* found = nullptr;
    if (v != root && common_.kept.count(v) != 0) {
      found = nullptr;
    } else if (info.what == What::Pointwise) {
      for (const Operand& operand : info.call.operands) {
        if (!found && operand.value) found = reductionBehind(operand.value, root, seen);
      }
    } else if (info.what == What::View || isGathered(info.what) || isPlaced(info.what)) {
      found = reductionBehind(info.operands[0], root, seen);
    } else if (isReduced(info.what)) {
      found = v;
    }
    seen.emplace(v, found);
    return found;
  }
  // The first kernel that can compute `v`: it comes after the kernels that store what `v` reads. A
  // kernel over the same domain need not come after them, because it computes that again.
  size_t firstKernel(const Value* v, const Value* root, const Domain& domain,
                     std::set<const Value*>& seen) const {
    if (!analysis_.knows(v) || !seen.insert(v).second) return 0;
    if (v != root) {
      if (auto it = common_.kept.find(v); it != common_.kept.end()) {
        const size_t k = kernel_of_.at(it->second);
        const bool same =
            joins_ && groups_[k].reduced == domain.reduced && sameDomain(groups_[k], domain);
        return same ? k : k + 1;
      }
    }
    const ValueInfo& info = analysis_.of(v);
    size_t first = 0;
    for (const Operand& operand : info.call.operands) {
      if (operand.value) first = std::max(first, firstKernel(operand.value, root, domain, seen));
    }
    for (const Value* operand : info.operands) {
      first = std::max(first, firstKernel(operand, root, domain, seen));
    }
    for (const Value* operand : {info.weight, info.bias}) {
      if (operand) first = std::max(first, firstKernel(operand, root, domain, seen));
    }
    return first;
  }

  // Those between kernels first; then outputs behind reductions, which others may join.
  void assignKernels() {
    std::vector<size_t> order;
    for (size_t i = lowered_.results; i < stored_.size(); ++i) order.push_back(i);
    std::vector<const Value*> reduction_of;
    for (const Value* v : stored_) {
      std::map<const Value*, const Value*> seen;
      reduction_of.push_back(reductionBehind(v, v, seen));
    }
    // Outputs that other kernels read stand where they are computed.
    for (const Node* node : body_.nodes()) {
      for (const Value* v : node->outputs()) {
        auto it = common_.kept.find(v);
        if (it != common_.kept.end() && it->second < lowered_.results) {
          order.push_back(it->second);
        }
      }
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return analysis_.of(stored_[a]).tensor < analysis_.of(stored_[b]).tensor;
    });
    for (bool reduced : {true, false}) {
      for (size_t i = 0; i < lowered_.results; ++i) {
        const bool placed = std::find(order.begin(), order.end(), i) != order.end();
        if (!placed && (reduction_of[i] != nullptr) == reduced) order.push_back(i);
      }
    }
    for (size_t i : order) assign(i, reduction_of[i]);
  }
  // Whether the domain's shape is another one of the same elements.
  bool isReshaped(const Value* v, const Value* domain) const {
    const TensorLayout& to = analysis_.layoutOf(v);
    const What what = analysis_.of(v).what;
    return (what == What::Pointwise || what == What::View) && isRowMajor(to) &&
           numelOf(to) == numelOf(analysis_.layoutOf(domain)) && numelOf(to) > 1;
  }
  void assign(size_t i, const Value* reduction) {
    const Value* v = stored_[i];
    Domain domain{v, 0, {i}};
    if (reduction) {
      const ValueInfo& info = analysis_.of(reduction);
      domain.shape = info.operands[0];
      domain.reduced = info.dims;
      // The result must have the domain's shape; else the reduction is read as a tensor.
      if (!KernelBuilder(common_, domain.shape, domain.reduced).mapOf(v)) {
        if (!isReshaped(v, domain.shape)) throw NeedsKernel{reduction};
        reshaped_.insert(i);
      }
    }
    std::set<const Value*> seen;
    const size_t first = firstKernel(v, v, domain, seen);
    for (size_t k = first; k < groups_.size(); ++k) {
      if (!sameDomain(groups_[k], domain)) continue;
      if (groups_[k].reduced != domain.reduced && reduction) continue;
      groups_[k].stores.push_back(i);
      kernel_of_[i] = k;
      return;
    }
    kernel_of_[i] = groups_.size();
    groups_.push_back(std::move(domain));
  }

  void build(size_t k) {
    const Domain& domain = groups_[k];
    std::set<const Value*> own;
    for (size_t i : domain.stores) {
      if (joins_) own.insert(stored_[i]);
    }
    KernelBuilder builder(common_, domain.shape, domain.reduced, std::move(own));
    for (size_t i : domain.stores) {
      const Value* v = stored_[i];
      const ValueInfo& info = analysis_.of(v);
      if (reshaped_.count(i) != 0) {
        const int32_t view = builder.storeReshaped(v, static_cast<uint32_t>(i));
        lowered_.follow = true;  // the view needs the domain's shape
        lowered_.outputs[i] = {info.dtype,
                               static_cast<uint8_t>(info.shape.rank),
                               static_cast<uint32_t>(k),
                               {},
                               info.tensor,
                               view};
        lowered_.outputs[i].dims.fill(-1);
        continue;
      }
      auto map = builder.mapOf(v);
      if (!map) refuse("an output of another shape than its domain");
      builder.store(v, static_cast<uint32_t>(i), *map);
      OutputInfo& out = lowered_.outputs[i];
      out = {info.dtype,
             static_cast<uint8_t>(info.shape.rank),
             static_cast<uint32_t>(k),
             {},
             info.tensor};
      out.dims.fill(-1);
      for (int d = 0; d < info.shape.rank; ++d) {
        int from_end = info.shape.rank - 1 - d;
        if (!info.shape.isOne(from_end)) {
          out.dims[static_cast<size_t>(d)] = (*map)[static_cast<size_t>(from_end)];
        }
      }
    }
    lowered_.kernels.push_back(builder.take());
    lowered_.domains.push_back(analysis_.of(domain.shape).tensor);
  }

  // The argument becomes what the output is.
  void write(OutputInfo& output, uint32_t argument) const {
    const Value* v = stored_[static_cast<size_t>(&output - lowered_.outputs.data())];
    const ValueInfo& info = analysis_.of(v);
    const TensorLayout& to = analysis_.layouts()[argument];
    const TensorLayout& from = analysis_.layouts()[info.tensor];
    const bool same = to.rank == from.rank &&
                      std::equal(to.sizes.begin(), to.sizes.begin() + to.rank, from.sizes.begin());
    const bool read_elsewhere =
        std::find(output.over.begin(), output.over.end(), argument) == output.over.end();
    if (!same || analysis_.of(body_.inputs()[argument]).dtype != output.dtype || output.view >= 0 ||
        read_elsewhere) {
      refuse("what an argument cannot become");
    }
    output.into = static_cast<int32_t>(argument);
  }

  // A call whose checks fail starts again from its arguments.
  void findOver(OutputInfo& output) const {
    const auto has_checks = [](const Kernel& kernel) { return !kernel.checks.empty(); };
    const Kernel& kernel = lowered_.kernels[output.kernel];
    if (std::any_of(lowered_.kernels.begin(), lowered_.kernels.end(), has_checks)) return;
    const size_t i = static_cast<size_t>(&output - lowered_.outputs.data());
    const auto store =
        std::find_if(kernel.stores.begin(), kernel.stores.end(),
                     [&](const Store& s) { return kernel.accesses[s.access].argument == i; });
    const Access& stored = kernel.accesses[store->access];
    const auto number = static_cast<size_t>(store - kernel.stores.begin());
    const Schedule schedule = makeSchedule(kernel);
    for (const Schedule::Waiting& w : schedule.waiting) output.waits |= w.store == number;
    for (uint32_t argument = 0; argument < analysis_.numArguments(); ++argument) {
      bool read = false, fits = true;
      for (size_t k = output.kernel; k < lowered_.kernels.size(); ++k) {
        const Kernel& reader = lowered_.kernels[k];
        for (const Leaf& leaf : reader.leaves) {
          if (leaf.kind != Leaf::Kind::Load) continue;
          const Access& load = reader.accesses[leaf.index];
          if (lowered_.sources[load.argument].argument != static_cast<int32_t>(argument)) continue;
          read = true;
          fits = fits && k == output.kernel && load.argument == argument && !leaf.offset.valid() &&
                 !leaf.mask.valid() && load.dtype == stored.dtype && load.dims == stored.dims &&
                 mayStoreOver(kernel, schedule, number, leaf.index);
        }
      }
      if (read && fits) output.over.push_back(argument);
    }
  }

  const Graph& body_;
  const Analysis& analysis_;
  const std::span<const uint32_t> written_;
  const std::set<const Value*>& separate_;
  const bool joins_;
  LoweredGroup lowered_;
  Common common_;
  std::vector<const Value*> stored_;
  std::vector<Domain> groups_;
  std::map<size_t, size_t> kernel_of_;
  std::set<size_t> reshaped_;  // of stored_: in a domain of another shape
};

}  // namespace

ArgumentInfo ArgumentInfo::tensor(DType dtype, const TensorLayout& layout) {
  ArgumentInfo info{.dtype = dtype, .rank = static_cast<uint8_t>(layout.rank), .layout = layout};
  for (int d = 0; d < layout.rank; ++d) {
    if (layout.sizes[static_cast<size_t>(d)] == 1) {
      info.ones |= static_cast<uint8_t>(1u << (layout.rank - 1 - d));
    }
  }
  return info;
}

std::vector<const Value*> tensorConstants(const Graph& body) {
  std::vector<const Value*> constants;
  for (const Node* node : body.nodes()) {
    if (node->kind() != prim::Constant) continue;
    auto value = constantOf(node->output());
    if (value && value->isTensor()) constants.push_back(node->output());
  }
  return constants;
}

LoweredGroup lowerGroup(const Graph& group, std::span<const ArgumentInfo> arguments,
                        FunctionForm functions) {
  const std::shared_ptr<Graph> own = group.copy();
  Graph& body = *own;
  std::vector<uint32_t> written = separateWrites(body);
  Analysis analysis(body, arguments);
  written.insert(written.end(), analysis.written().begin(), analysis.written().end());
  std::set<const Value*> separate = analysis.apart();
  bool joins = true;
  for (;;) {
    try {
      return Lowering(body, analysis, written, separate, joins, functions).run();
    } catch (const NeedsKernel& needs) {
      // It has a kernel: what asks for it in another way must not be stored there too.
      const bool known = !separate.insert(needs.value).second;
      if (known && !joins) refuse("a value that no kernel can compute");
      if (known) joins = false;
    }
  }
}

}  // namespace wick::loop

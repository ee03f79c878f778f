#include "codegen/loop/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/loop/emission.h"

namespace wick::loop {

namespace {

template <class T>
uint32_t indexOf(std::vector<T>& list, const T& item) {
  auto it = std::find(list.begin(), list.end(), item);
  if (it == list.end()) it = list.insert(it, item);
  return static_cast<uint32_t>(it - list.begin());
}

std::string formatAccess(const Kernel& kernel, const Access& access, char prefix) {
  std::string text = access.isIndex() ? "index[" : fmt::format("{}{}[", prefix, access.argument);
  bool first = true;
  for (int d = 0; d < kernel.rank; ++d) {
    if (!access.varies(d)) continue;
    text += first ? "" : ", ";
    if (!access.isIndex()) text += fmt::format("{}:", access.dims[static_cast<size_t>(d)]);
    text += fmt::format("i{}", d);
    first = false;
  }
  return text + (access.larger ? "…]" : "]");
}

std::string formatNumber(const Number& number) {
  switch (number.kind) {
    case Number::Kind::Size:
      return fmt::format("size t{}:{}", number.argument, number.dim);
    case Number::Kind::Stride:
      return fmt::format("stride x{}:{}", number.argument, number.dim);
    case Number::Kind::Points:
      return "points";
    default:
      return fmt::format("number n{}", number.argument);
  }
}

std::string formatLeaf(const Kernel& kernel, const Leaf& leaf) {
  switch (leaf.kind) {
    case Leaf::Kind::Load: {
      std::string text = "load " + formatAccess(kernel, kernel.accesses[leaf.index], 'x');
      if (leaf.offset.valid()) text += fmt::format(" + %{}", leaf.offset.id);
      if (leaf.mask.valid()) text += fmt::format(" if %{}", leaf.mask.id);
      return text;
    }
    case Leaf::Kind::Index:
      return formatAccess(kernel, kernel.accesses[leaf.index], 'x');
    case Leaf::Kind::Number:
      return formatNumber(kernel.numbers[leaf.index]);
    case Leaf::Kind::Reduction:
      return fmt::format("reduction r{}", leaf.index);
    case Leaf::Kind::Count:
      return "count";
  }
  return "?";
}

// For each output the most expensive value that an earlier pass has computed for a reduction.
void planWaiting(const Kernel& kernel, Schedule& schedule) {
  constexpr int64_t kMinNodes = 12;
  const auto& nodes = kernel.expression.nodes();
  std::vector<Schedule::Waiting> planned;
  for (size_t s = 0; s < kernel.stores.size(); ++s) {
    const Store& store = kernel.stores[s];
    const int last = schedule.passOf(store.value);
    const DType type = kernel.accesses[store.access].dtype;
    if (store.per_row || last == 0) continue;
    const std::vector<bool> needed = neededFor(kernel, std::array{store.value});
    int64_t most = kMinNodes - 1;
    ScalarExpr best;
    for (const Reduction& reduction : kernel.reductions) {
      const std::vector<bool> computed = neededFor(kernel, std::array{reduction.operand});
      const int pass = schedule.passOf(reduction.operand);
      for (size_t i = 0; i < nodes.size() && pass < last; ++i) {
        if (!needed[i] || !computed[i] || !schedule.varies[i] || nodes[i].type != type) continue;
        if (schedule.pass_of_node[i] != pass) continue;
        const ScalarExpr node{static_cast<int32_t>(i)};
        const std::vector<bool> below = neededFor(kernel, std::array{node});
        const int64_t cost = std::count(below.begin(), below.end(), true);
        if (cost > most) {
          most = cost;
          best = node;
        }
      }
    }
    const auto taken = [&](const Schedule::Waiting& w) { return w.value == best; };
    if (best.valid() && std::none_of(planned.begin(), planned.end(), taken)) {
      planned.push_back({best, static_cast<uint32_t>(s), last});
    }
  }
  schedule.waiting = std::move(planned);
}

}  // namespace

std::string_view toString(ReduceOp op) {
  constexpr std::string_view kNames[] = {"sum", "prod", "min", "max", "any", "all"};
  return kNames[static_cast<size_t>(op)];
}

ScalarExpr Kernel::leaf(const Leaf& leaf) {
  return expression.input(indexOf(leaves, leaf), leaf.type);
}
uint32_t Kernel::access(const Access& access) {
  return indexOf(accesses, access);
}
uint32_t Kernel::number(const Number& number) {
  return indexOf(numbers, number);
}

size_t Kernel::operandsOf(ScalarExpr e, std::array<ScalarExpr, 3>& operands) const {
  const ScalarNode& node = expression[e];
  size_t n = 0;
  if (node.op == ScalarOp::Input) {
    const Leaf& leaf = leaves[node.payload];
    if (leaf.offset.valid()) operands[n++] = leaf.offset;
    if (leaf.mask.valid()) operands[n++] = leaf.mask;
    return n;
  }
  n = static_cast<size_t>(operandCount(node.op, node.function));
  std::copy_n(node.operands.begin(), n, operands.begin());
  return n;
}

const Schedule::Waiting* Schedule::waitingFor(ScalarExpr e, int pass) const {
  const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const Waiting& w) {
    return w.value == e && passOf(e) < pass && pass <= w.last_pass;
  });
  return found == waiting.end() ? nullptr : &*found;
}

Schedule makeSchedule(const Kernel& kernel) {
  Schedule schedule;
  const auto& nodes = kernel.expression.nodes();
  schedule.pass_of_node.resize(nodes.size());
  schedule.varies.resize(nodes.size());
  schedule.pass_of_reduction.resize(kernel.reductions.size());
  // A reduction's operand stands before the leaf that reads its result.
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ScalarNode& node = nodes[i];
    int pass = 0;
    bool varies = false;
    if (node.op == ScalarOp::Input) {
      const Leaf& leaf = kernel.leaves[node.payload];
      if (leaf.kind == Leaf::Kind::Reduction) {
        const auto operand = static_cast<size_t>(kernel.reductions[leaf.index].operand.id);
        schedule.pass_of_reduction[leaf.index] = schedule.pass_of_node[operand];
        pass = schedule.pass_of_node[operand] + 1;
      } else if (leaf.kind == Leaf::Kind::Load || leaf.kind == Leaf::Kind::Index) {
        for (int d = 0; d < kernel.rank; ++d) {
          bool along = kernel.reduced == 0 || (kernel.reduced >> d & 1) != 0;
          varies |= along && kernel.accesses[leaf.index].varies(d);
        }
      }
    }
    std::array<ScalarExpr, 3> operands;
    const size_t count = kernel.operandsOf({static_cast<int32_t>(i)}, operands);
    for (size_t k = 0; k < count; ++k) {
      const auto operand = static_cast<size_t>(operands[k].id);
      pass = std::max(pass, schedule.pass_of_node[operand]);
      varies = varies || schedule.varies[operand];
    }
    schedule.pass_of_node[i] = pass;
    schedule.varies[i] = varies;
  }
  for (int pass : schedule.pass_of_reduction) schedule.passes = std::max(schedule.passes, pass + 1);
  for (ScalarExpr check : kernel.checks) {
    schedule.passes =
        std::max(schedule.passes, schedule.pass_of_node[static_cast<size_t>(check.id)] + 1);
  }
  for (const Store& store : kernel.stores) {
    int pass = schedule.pass_of_node[static_cast<size_t>(store.value.id)];
    if (!store.per_row) schedule.passes = std::max(schedule.passes, pass + 1);
  }
  if (schedule.passes > 1) planWaiting(kernel, schedule);
  return schedule;
}

bool mayStoreOver(const Kernel& kernel, const Schedule& schedule, size_t number, uint32_t access) {
  const Store& store = kernel.stores[number];
  // Along a dimension in which the stored elements do not vary, each is computed again for every
  // point, and would read what it has stored; unless nothing varies, because then there is one
  // point.
  for (int d = 0; d < kernel.rank; ++d) {
    const bool once = store.per_row && (kernel.reduced >> d & 1) != 0;
    if (once || kernel.accesses[store.access].varies(d)) continue;
    const auto varies = [d](const Access& access) { return access.varies(d); };
    if (std::any_of(kernel.accesses.begin(), kernel.accesses.end(), varies)) return false;
  }
  int first_written = store.per_row ? schedule.passes : schedule.passOf(store.value);
  for (const Schedule::Waiting& w : schedule.waiting) {
    if (w.store == number) first_written = schedule.passOf(w.value);
  }
  const auto readsIn = [&](ScalarExpr root, int pass) {
    const std::vector<bool> reached = neededFor(kernel, std::array{root}, &schedule, pass);
    for (size_t i = 0; i < reached.size(); ++i) {
      const ScalarNode& node = kernel.expression.nodes()[i];
      if (!reached[i] || node.op != ScalarOp::Input) continue;
      const Leaf& leaf = kernel.leaves[node.payload];
      if (leaf.kind == Leaf::Kind::Load && leaf.index == access) return true;
    }
    return false;
  };
  for (size_t r = 0; r < kernel.reductions.size(); ++r) {
    const int pass = schedule.pass_of_reduction[r];
    if (pass > first_written && readsIn(kernel.reductions[r].operand, pass)) return false;
  }
  for (size_t o = 0; o < kernel.stores.size(); ++o) {
    const Store& other = kernel.stores[o];
    const int pass = other.per_row ? schedule.passes : schedule.passOf(other.value);
    // Where a row is passed over several times, what others read in the same pass may not be loaded
    // yet.
    const bool apart = o != number && schedule.passes > 1;
    if ((apart ? pass >= first_written : pass > first_written) && readsIn(other.value, pass)) {
      return false;
    }
    for (const Schedule::Waiting& w : schedule.waiting) {
      const int begun = schedule.passOf(w.value);
      if (apart && w.store == o && begun >= first_written && readsIn(w.value, begun)) return false;
    }
  }
  return kernel.checks.empty();
}

std::string toString(const Kernel& kernel) {
  std::string text = "kernel (";
  for (int d = 0; d < kernel.rank; ++d) {
    bool reduced = (kernel.reduced >> d & 1) != 0;
    text += fmt::format("{}i{} < s{}{}", d == 0 ? "" : ", ", d, d, reduced ? " reduced" : "");
  }
  text += ")\n";
  const auto& nodes = kernel.expression.nodes();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const ScalarNode& node = nodes[i];
    std::string what = node.op == ScalarOp::Input
                           ? fmt::format("{} {}", formatLeaf(kernel, kernel.leaves[node.payload]),
                                         wick::toString(node.type))
                           : formatNode(node);
    text += fmt::format("  %{} = {}\n", i, what);
    for (size_t r = 0; r < kernel.reductions.size(); ++r) {
      const Reduction& reduction = kernel.reductions[r];
      if (reduction.operand.id != static_cast<int32_t>(i)) continue;
      text += fmt::format("  r{} = {} %{}\n", r, toString(reduction.op), i);
    }
  }
  for (ScalarExpr check : kernel.checks) text += fmt::format("  check %{}\n", check.id);
  for (const Store& store : kernel.stores) {
    const Access& access = kernel.accesses[store.access];
    text += fmt::format("  store{} {} {} = %{}\n", store.per_row ? " row" : "",
                        formatAccess(kernel, access, 'y'), wick::toString(access.dtype),
                        store.value.id);
  }
  return text;
}

}  // namespace wick::loop

#include "codegen/loop/shapes.h"

namespace wick::loop {

namespace {

bool reduce(const ShapeStep& step, const TensorLayout& from, TensorLayout& to) {
  for (int d = 0; d < from.rank; ++d) {
    const bool reduced = (step.dims >> (from.rank - 1 - d) & 1) != 0;
    if (reduced && !step.keepdim) continue;
    to.sizes[static_cast<size_t>(to.rank++)] = reduced ? 1 : from.sizes[static_cast<size_t>(d)];
  }
  return true;
}

bool sameBut(const TensorLayout& a, const TensorLayout& b, int except) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d) {
    auto i = static_cast<size_t>(d);
    if (d != except && a.sizes[i] != b.sizes[i]) return false;
  }
  return true;
}

bool cat(const ShapeStep& step, std::span<const TensorLayout> tensors, TensorLayout& to) {
  const TensorLayout& first = tensors[step.operands[0]];
  to = first;
  if (step.dim >= to.rank) return false;
  auto d = static_cast<size_t>(step.dim);
  to.sizes[d] = 0;
  for (uint32_t operand : step.operands) {
    const TensorLayout& t = tensors[operand];
    // Tensors in channels-last order make such a result.
    if (!sameBut(t, first, step.dim) || (t.rank >= 4 && !isOrdered(t))) return false;
    to.sizes[d] += t.sizes[d];
  }
  return true;
}

bool stack(const ShapeStep& step, std::span<const TensorLayout> tensors, TensorLayout& to) {
  const TensorLayout& first = tensors[step.operands[0]];
  if (first.rank == kMaxRank || step.dim > first.rank) return false;
  for (uint32_t operand : step.operands) {
    const TensorLayout& t = tensors[operand];
    // As for cat, because stack is a kind of it.
    if (!sameBut(t, first, -1) || (t.rank >= 3 && !isOrdered(t))) return false;
  }
  to.rank = first.rank + 1;
  for (int d = 0; d < to.rank; ++d) {
    to.sizes[static_cast<size_t>(d)] = d < step.dim    ? first.sizes[static_cast<size_t>(d)]
                                       : d == step.dim ? static_cast<int64_t>(step.operands.size())
                                                       : first.sizes[static_cast<size_t>(d - 1)];
  }
  return true;
}

bool indexed(const ShapeStep& step, std::span<const TensorLayout> tensors, TensorLayout& to) {
  const TensorLayout& from = tensors[step.operands[0]];
  const TensorLayout& index = tensors[step.operands[1]];
  switch (step.kind) {
    case ShapeStep::Kind::IndexSelect:
      if (index.rank > 1 || step.dim >= from.rank) return false;
      to = from;
      to.sizes[static_cast<size_t>(step.dim)] = index.rank == 0 ? 1 : index.sizes[0];
      return true;
    case ShapeStep::Kind::Embedding:
      if (from.rank != 2 || index.rank >= kMaxRank) return false;
      to = index;
      to.sizes[static_cast<size_t>(to.rank++)] = from.sizes[1];
      return true;
    default:
      if (from.rank != index.rank || step.dim >= from.rank) return false;
      for (int d = 0; d < from.rank; ++d) {
        auto i = static_cast<size_t>(d);
        if (d != step.dim && index.sizes[i] > from.sizes[i]) return false;
      }
      to = index;
      return true;
  }
}

bool resultOf(const ShapeStep& step, std::span<const int64_t> numbers,
              std::span<const TensorLayout> tensors, TensorLayout& to, bool& copied) {
  using Kind = ShapeStep::Kind;
  switch (step.kind) {
    case Kind::Pointwise: {
      std::array<const TensorLayout*, 8> operands;
      if (step.operands.size() > operands.size()) return false;
      for (size_t i = 0; i < step.operands.size(); ++i) operands[i] = &tensors[step.operands[i]];
      if (!pointwiseLayout(std::span(operands.data(), step.operands.size()), step.has_number, to))
        return false;
      if (!step.row_major) return fits(to);
      break;
    }
    case Kind::Like:
      layLike(tensors[step.operands[0]], to);
      if (!step.row_major) return fits(to);
      break;
    case Kind::View: {
      to = tensors[step.operands[0]];
      const ViewOutcome outcome = applyView(step.view, numbers, tensors, to);
      copied = outcome == ViewOutcome::Copies;
      if (outcome == ViewOutcome::Wrong) return false;
      if (step.view.kind == ViewStep::Kind::Flip) {
        // A tensor of its own, whose dimensions lie in the same order.
        layLike(tensors[step.operands[0]], to);
        return true;
      }
      if (step.view.kind != ViewStep::Kind::Pad) return true;
      // What was padded is not a view of anything, but channels stay innermost.
      to.offset = 0;
      isChannelsLast(tensors[step.operands[0]]) ? layChannelsLast(to) : layRowMajor(to);
      return true;
    }
    case Kind::Reduce:
      if (!reduce(step, tensors[step.operands[0]], to)) return false;
      break;
    case Kind::RowMajor:
      to = tensors[step.operands[0]];
      break;
    case Kind::Cat:
      if (!cat(step, tensors, to)) return false;
      break;
    case Kind::Stack:
      if (!stack(step, tensors, to)) return false;
      break;
    default:
      if (!indexed(step, tensors, to)) return false;
  }
  to.offset = 0;
  layRowMajor(to);
  return fits(to);
}

uint8_t onesOf(const TensorLayout& t) {
  uint8_t ones = 0;
  for (int d = 0; d < t.rank; ++d) {
    if (t.sizes[static_cast<size_t>(d)] == 1) ones |= static_cast<uint8_t>(1u << (t.rank - 1 - d));
  }
  return ones;
}

}  // namespace

bool learnShape(ShapeStep& step, std::span<const int64_t> numbers,
                std::vector<TensorLayout>& tensors) {
  TensorLayout result;
  bool copied = false;
  if (!resultOf(step, numbers, tensors, result, copied)) return false;
  step.rank = static_cast<uint8_t>(result.rank);
  step.ones = onesOf(result);
  step.copied = copied;
  tensors.push_back(result);
  return true;
}

bool followShape(const ShapeStep& step, std::span<const int64_t> numbers,
                 std::vector<TensorLayout>& tensors) {
  TensorLayout result;
  bool copied = false;
  if (!resultOf(step, numbers, tensors, result, copied)) return false;
  if (result.rank != step.rank || onesOf(result) != step.ones || copied != step.copied)
    return false;
  tensors.push_back(result);
  return true;
}

}  // namespace wick::loop

#include "autograd/views.h"

#include <algorithm>

#include "autograd/gradients.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/common_calls.h"

namespace wick::autograd {

namespace {

const OperatorHandle kStrided("aten::as_strided", "");
const OperatorHandle kScatter("aten::as_strided_backward", "");

// The same memory as real numbers.
Geometry inNumbers(Geometry g) {
  for (int64_t& stride : g.strides) stride *= 2;
  g.offset *= 2;
  g.sizes.push_back(2);
  g.strides.push_back(1);
  return g;
}

// What a view and its base have in common: elements of one dtype or, where only one of them is
// complex, the real numbers that complex ones are made of.
class Overlap {
 public:
  Overlap(const Tensor& base, const Tensor& view)
      : takes_base_apart_(isComplex(base.dtype()) && !isComplex(view.dtype())),
        takes_view_apart_(isComplex(view.dtype()) && !isComplex(base.dtype())),
        base_(takes_base_apart_ ? inNumbers(Geometry(base)) : Geometry(base)),
        view_(takes_view_apart_ ? inNumbers(Geometry(view)) : Geometry(view)) {
    WICK_ASSERT(toRealType(base.dtype()) == toRealType(view.dtype()),
                "a view of another dtype has a history");
  }

  // The gradient of the base from that of the view.
  Tensor scatter(const Tensor& gradient) const {
    const Tensor whole = kScatter(takes_view_apart_ ? ops::viewAsReal(gradient) : gradient,
                                  IntSpan(base_.sizes), IntSpan(base_.strides), base_.offset,
                                  IntSpan(view_.sizes), IntSpan(view_.strides), view_.offset);
    return takes_base_apart_ ? ops::viewAsComplex(ops::contiguous(whole, kRowMajor)) : whole;
  }
  // A copy of the view's part of a tensor that lies in memory as the base does, from the beginning
  // on.
  Tensor copyOfPart(const Tensor& whole) const {
    return takes_view_apart_ ? ops::viewAsComplex(ops::clone(part(whole), IValue(kRowMajor)))
                             : ops::clone(part(whole), IValue());
  }
  // Replaces that part; zeros for an undefined tensor.
  void setPart(const Tensor& whole, const Tensor& values) const {
    if (values.defined()) {
      ops::copyInto(part(whole), takes_view_apart_ ? ops::viewAsReal(values) : values, false);
    } else {
      static const OperatorHandle kZero("aten::zero_", "");
      kZero(part(whole));
    }
  }

 private:
  static constexpr int64_t kRowMajor = 0;
  // In numbers where either is complex alone: their positions may be odd.
  Tensor part(const Tensor& whole) const {
    return kStrided(takes_base_apart_ ? ops::viewAsReal(whole) : whole, IntSpan(view_.sizes),
                    IntSpan(view_.strides), view_.offset - base_.offset);
  }

  const bool takes_base_apart_, takes_view_apart_;
  const Geometry base_, view_;
};

class ViewNode : public Node {
 public:
  ViewNode(const Tensor& base, const Tensor& view) : overlap_(base, view) {
    setNext({gradientEdge(base)});
    addResult(view);
  }
  std::string name() const override { return "AsStridedBackward0"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    if (!gradients[0].defined()) return {Tensor()};
    return {overlap_.scatter(gradients[0])};
  }

 private:
  const Overlap overlap_;
};

// The gradient of the base: that of the part that was written goes through the write, the rest as
// it is.
class WriteNode : public Node {
 public:
  WriteNode(const Tensor& base, const Tensor& view, Ref<Node> write, size_t first)
      : base_(base), view_(view), overlap_(base, view), write_(std::move(write)), first_(first) {
    std::vector<Edge> next = write_->next();
    next[first_] = gradientEdge(base);
    setNext(std::move(next));
  }
  std::string name() const override { return "CopySlices"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    if (!gradients[0].defined()) return std::vector<Tensor>(next().size());
    // In the order of the base's elements in memory, whatever that of the gradient is.
    Tensor whole = Tensor::emptyStrided(base_.sizes, base_.strides, gradients[0].dtype(),
                                        gradients[0].device());
    ops::copyInto(whole, gradients[0], false);
    std::vector<Tensor> results = write_->apply({overlap_.copyOfPart(whole)});
    results.resize(next().size());
    const Tensor before = std::exchange(results[first_], Tensor());
    if (next()[first_]) {
      overlap_.setPart(whole, fitted(before, view_, name()));
      results[first_] = std::move(whole);
    }
    return results;
  }
  void releaseSaved() override { write_->releaseSaved(); }

 private:
  const Geometry base_;
  const Shape view_;
  const Overlap overlap_;
  const Ref<Node> write_;
  const size_t first_;
};

}  // namespace

Edge edgeOfView(const Tensor& view, const Tensor& base) {
  return {Ref<Node>(makeRef<ViewNode>(base, view)), 0};
}

Ref<Node> nodeOfWrite(const Tensor& base, const Tensor& view, Ref<Node> write, size_t first) {
  return Ref<Node>(makeRef<WriteNode>(base, view, std::move(write), first));
}

Tensor scatterStrided(const Tensor& gradient, const Geometry& base, const Geometry& view) {
  // The numbers may be a program's.
  const auto reach = [](const Geometry& g) {
    WICK_CHECK(g.sizes.size() == g.strides.size() && g.offset >= 0 && checkedNumel(g.sizes) >= 0,
               "as_strided_backward: wrong sizes {}, strides {} or offset {}", formatInts(g.sizes),
               formatInts(g.strides), g.offset);
    int64_t end = g.offset;
    bool fits = end <= kMaxElements;
    if (checkedNumel(g.sizes) == 0) return end;
    for (size_t d = 0; d < g.sizes.size() && fits; ++d) {
      int64_t span = 0;
      fits = g.strides[d] >= 0 && !__builtin_mul_overflow(g.sizes[d] - 1, g.strides[d], &span) &&
             span <= kMaxElements - end;
      end += fits ? span : 0;
    }
    WICK_CHECK(fits, "as_strided_backward: sizes {} with strides {} and offset {} are too large",
               formatInts(g.sizes), formatInts(g.strides), g.offset);
    return end + 1;
  };
  const int64_t begin = std::min(base.offset, view.offset);
  const int64_t length = std::max(reach(base), reach(view)) - begin;
  WICK_CHECK(std::ranges::equal(gradient.sizes(), view.sizes),
             "as_strided_backward: expected a gradient of sizes {}, got {}", formatInts(view.sizes),
             formatInts(gradient.sizes()));
  Tensor memory = Tensor::zeros({length}, gradient.dtype(), gradient.device());
  const Tensor part = memory.asStrided(view.sizes, view.strides, view.offset - begin);
  static const OperatorHandle kPut("aten::index_add_", "");
  if (part.isNonOverlappingAndDense()) {
    part.copyFrom(gradient);
  } else {
    // Where the view's elements lie.
    Tensor places = Tensor::empty({length}, DType::Long);
    for (int64_t i = 0; i < length; ++i) places.data<int64_t>()[i] = i;
    const Tensor taken =
        places.asStrided(view.sizes, view.strides, view.offset - begin).reshape(DimVector{-1});
    const BelowRecorder below;
    kPut(memory, int64_t{0}, moveTo(taken, gradient.device()), gradient.reshape(DimVector{-1}),
         Scalar(int64_t{1}));
  }
  return memory.asStrided(base.sizes, base.strides, base.offset - begin).clone();
}

}  // namespace wick::autograd

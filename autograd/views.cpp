#include "autograd/views.h"

#include <algorithm>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/call.h"

namespace wick::autograd {

namespace {

const OperatorHandle kStrided("aten::as_strided", "");
const OperatorHandle kScatter("aten::as_strided_backward", "");
const OperatorHandle kClone("aten::clone", "");
const OperatorHandle kCopy("aten::copy_", "");

class ViewNode : public Node {
 public:
  ViewNode(const Tensor& base, const Tensor& view) : base_(base), view_(view) {
    setNext({gradientEdge(base)});
    addResult(view);
  }
  std::string name() const override { return "AsStridedBackward0"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    if (!gradients[0].defined()) return {Tensor()};
    return {kScatter(gradients[0], IntSpan(base_.sizes), IntSpan(base_.strides), base_.offset,
                     IntSpan(view_.sizes), IntSpan(view_.strides), view_.offset)};
  }

 private:
  const Geometry base_, view_;
};

// The gradient of the base: that of the part that was written goes through the write, the rest as
// it is.
class WriteNode : public Node {
 public:
  WriteNode(const Tensor& base, const Tensor& view, Ref<Node> write, size_t first)
      : base_(base), view_(view), write_(std::move(write)), first_(first) {
    std::vector<Edge> next = write_->next();
    next[first_] = gradientEdge(base);
    setNext(std::move(next));
  }
  std::string name() const override { return "CopySlices"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    if (!gradients[0].defined()) return std::vector<Tensor>(next().size());
    // In the order of the base's elements in memory, whatever that of the gradient is.
    Tensor whole = Tensor::emptyStrided(base_.sizes, base_.strides, gradients[0].dtype());
    kCopy(whole, gradients[0], false);
    const auto part = [&] {
      return kStrided(whole, IntSpan(view_.sizes), IntSpan(view_.strides),
                      view_.offset - base_.offset);
    };
    std::vector<Tensor> results = write_->apply({kClone(part(), IValue())});
    results.resize(next().size());
    const Tensor before = std::exchange(results[first_], Tensor());
    if (next()[first_]) {
      if (before.defined()) {
        kCopy(part(), before, false);
      } else {
        static const OperatorHandle kZero("aten::zero_", "");
        kZero(part());
      }
      results[first_] = std::move(whole);
    }
    return results;
  }
  void releaseSaved() override { write_->releaseSaved(); }

 private:
  const Geometry base_, view_;
  const Ref<Node> write_;
  const size_t first_;
};

void checkSameDType(const Tensor& base, const Tensor& view) {
  WICK_CHECK(base.dtype() == view.dtype(),
             "writes to a view of another dtype ({} of {}) are not recorded for gradients",
             toString(view.dtype()), toString(base.dtype()));
}

}  // namespace

Edge edgeOfView(const Tensor& view, const Tensor& base) {
  checkSameDType(base, view);
  return {Ref<Node>(makeRef<ViewNode>(base, view)), 0};
}

Ref<Node> nodeOfWrite(const Tensor& base, const Tensor& view, Ref<Node> write, size_t first) {
  checkSameDType(base, view);
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

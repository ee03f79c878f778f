// torchvision's operators on boxes [count, 4] of corners (x1, y1, x2, y2).
#include <algorithm>

#include "core/budget.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "ir/operator.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/vision/regions.h"

namespace wick::ops::vision {

void checkBoxes(const Tensor& boxes, const Tensor& scores) {
  WICK_CHECK(boxes.dim() == 2, "nms: boxes should be a 2d tensor, got {}D", boxes.dim());
  WICK_CHECK(boxes.size(1) == 4, "nms: boxes should have 4 elements in dimension 1, got {}",
             boxes.size(1));
  WICK_CHECK(scores.dim() == 1, "nms: scores should be a 1d tensor, got {}D", scores.dim());
  WICK_CHECK(boxes.size(0) == scores.size(0),
             "nms: boxes and scores should have same number of elements in dimension 0, got {} and "
             "{}",
             boxes.size(0), scores.size(0));
  WICK_CHECK(boxes.dtype() == scores.dtype(),
             "nms: boxes should have the same type as scores, got {} and {}",
             toString(boxes.dtype()), toString(scores.dtype()));
}

namespace {

// The boxes that no better one overlaps by more than the threshold, the best first. Boxes of equal
// scores keep their order.
Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold) {
  checkBoxes(boxes, scores);
  const int64_t count = boxes.size(0);
  CountedVector<int64_t> kept;
  dispatch<kFloats>("nms", boxes.dtype(), [&]<class T>() {
    const Tensor sorted =
        ops::sortStable.all(scores, true, int64_t{0}, true)[1].toTensor().contiguous();
    const int64_t* const order = sorted.data<int64_t>();
    // In the order of the scores, side by side for the inner loop.
    CountedVector<T> x1(count), y1(count), x2(count), y2(count), areas(count);
    const Tensor rows = boxes.contiguous();
    const T* const corners = rows.data<T>();
    for (int64_t i = 0; i < count; ++i) {
      const T* const box = corners + 4 * order[i];
      x1[i] = box[0];
      y1[i] = box[1];
      x2[i] = box[2];
      y2[i] = box[3];
      areas[i] = (box[2] - box[0]) * (box[3] - box[1]);
    }
    CountedVector<uint8_t> suppressed(count, 0);
    Pace pace;
    for (int64_t i = 0; i < count; ++i) {
      if (suppressed[i] != 0) continue;
      kept.push_back(order[i]);
      pace.step(count - i);
      for (int64_t j = i + 1; j < count; ++j) {
        const T width = std::max(T(0), std::min(x2[i], x2[j]) - std::max(x1[i], x1[j]));
        const T height = std::max(T(0), std::min(y2[i], y2[j]) - std::max(y1[i], y1[j]));
        const T shared = width * height;
        const T overlap = shared / (areas[i] + areas[j] - shared);
        suppressed[j] |= static_cast<uint8_t>(static_cast<double>(overlap) > iou_threshold);
      }
    }
  });
  return Tensor::fromData(kept.data(), DimVector{static_cast<int64_t>(kept.size())});
}

int64_t cudaVersion() {
  return -1;
}

constexpr OperatorRecord kBoxesRecords[] = {
    {"torchvision::nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
     WICK_KERNEL(nms), kNotDifferentiable},
    {"torchvision::_cuda_version() -> int", WICK_KERNEL(cudaVersion), kNotDifferentiable},
};
const RegisterOperators kBoxesRegistered(kBoxesRecords);

}  // namespace

}  // namespace wick::ops::vision

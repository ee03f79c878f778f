// torchvision's operators. Their own derivatives have none, as in torchvision.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

// Of no argument, as in PyTorch.
constexpr const char* kVisionNotImplemented = "results 0";

#define WICK_SIZES "input_size[0], input_size[1], input_size[2], input_size[3]"
#define WICK_REGION "spatial_scale, pooled_height, pooled_width, "

constexpr FormulaText kVisionFormulas[] = {
    {"torchvision::roi_align",
     "input: torch.ops.torchvision._roi_align_backward(grad, rois, " WICK_REGION WICK_SIZES
     ", sampling_ratio, aligned)"},
    {"torchvision::ps_roi_align",
     "results 0\n"
     "input: torch.ops.torchvision._ps_roi_align_backward(grad0, rois, result1, " WICK_REGION
     "sampling_ratio, " WICK_SIZES ")"},
    {"torchvision::roi_pool",
     "results 0\n"
     "input: torch.ops.torchvision._roi_pool_backward(grad0, rois, result1, " WICK_REGION WICK_SIZES
     ")"},
    {"torchvision::ps_roi_pool",
     "results 0\n"
     "input: torch.ops.torchvision._ps_roi_pool_backward(grad0, rois, result1, " WICK_REGION
         WICK_SIZES ")"},
    {"torchvision::deform_conv2d",
     "let all = torch.ops.torchvision._deform_conv2d_backward(grad, input, weight, offset, mask, "
     "bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, "
     "use_mask)\n"
     "input: all[0]\n"
     "weight: all[1]\n"
     "offset: all[2]\n"
     "mask: all[3]\n"
     "bias: all[4]"},
    {R"(torchvision::_roi_align_backward, torchvision::_ps_roi_align_backward,
         torchvision::_roi_pool_backward, torchvision::_ps_roi_pool_backward,
         torchvision::_deform_conv2d_backward)",
     kVisionNotImplemented},
};
const RegisterFormulas kVisionRegistered(kVisionFormulas);

}  // namespace

}  // namespace wick::autograd

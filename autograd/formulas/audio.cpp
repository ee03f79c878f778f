// torchaudio's operators.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr FormulaText kAudioFormulas[] = {
    {"torchaudio::_lfilter", "others"},
    // A step back in time filters the gradient from its end. Coefficient k weighs the output k
    // samples earlier; the first one is not used.
    {"wick::recursive_filter",
     "let back = torch.ops.wick.recursive_filter(grad.flip(2), a).flip(2)\n"
     "let order = a_size[1]\n"
     "x: back\n"
     "a: -torch.matmul(torch.constant_pad_nd(result, [order - 1, 0]).unfold(2, x_size[2], 1), "
     "back.unsqueeze(3)).sum(0).squeeze(2).flip(1) * (torch.arange(order, device=grad.device) > "
     "0)"},
    {"torchaudio::rnnt_loss", "results 0\nlogits: grad0.view(-1, 1, 1, 1) * result1"},
    {"torchaudio::_lfilter_core_loop", "missing as in torchaudio, whose _lfilter has one"},
    {"torchaudio::_overdrive_core_loop", "missing as in torchaudio"},
};
const RegisterFormulas kAudioRegistered(kAudioFormulas);

}  // namespace

}  // namespace wick::autograd

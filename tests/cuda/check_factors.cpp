// LU factors without pivoting on a GPU: their product is the matrix, and pivots leave rows where they are.
// Needs a GPU:
//   bazel run -c opt //tests/cuda:check_factors
// The exit code is 1 when something is wrong.
#include <fmt/core.h>

#include <cmath>

#include "core/device_backend.h"
#include "frontend/compile.h"
#include "runtime/call.h"

int main() {
  using namespace wick;
  const auto unit = compileSource(R"(
def apart(a: Tensor):
    p, l, u = torch.linalg.lu(a, pivot=False)
    f, pivots = torch.linalg.lu_factor(a, pivot=False)
    q, m, v = torch.lu_unpack(f, pivots)
    x = torch.linalg.lu_solve(f, pivots, a @ torch.ones_like(a))
    k = min(a.size(-1), a.size(-2))
    stay = int((pivots.cpu() - torch.arange(1, k + 1)).abs().sum())
    return (p.numel() + stay, float((l @ u - a).abs().max()), float((q @ m @ v - a).abs().max()),
            float((x - 1).abs().max()))
)");
  bool right = true;
  for (const DType type :
       {DType::Float, DType::Double, DType::ComplexFloat, DType::ComplexDouble}) {
    // Diagonally dominant, so that no pivots are needed.
    const Tensor a = Tensor::zeros(DimVector{3, 40, 40}, DType::Double);
    for (int64_t i = 0; i < a.numel(); ++i) {
      const int64_t row = i / 40 % 40, column = i % 40;
      a.data<double>()[i] = row == column ? 40 : std::sin(static_cast<double>(i));
    }
    const IValue r = callFunction(*unit->functions().front(),
                                  {IValue(moveTo(a.to(type), {DeviceType::CUDA, -1}))});
    const auto& all = r.elements();
    fmt::print("{}: {} wrong pivots, factors apart by {:.2g} and {:.2g}, a solution by {:.2g}\n",
               toString(type), all[0].toInt(), all[1].toDouble(), all[2].toDouble(),
               all[3].toDouble());
    right &= all[0].toInt() == 0;
    for (size_t i = 1; i < 4; ++i) right &= all[i].toDouble() < 1e-4;
  }
  return right ? 0 : 1;
}

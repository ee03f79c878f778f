#include "runtime/autocast.h"

#include <fmt/format.h>

#include "core/error.h"
#include "ir/function.h"
#include "passes/autocast.h"
#include "passes/inline_calls.h"

namespace wick {

std::shared_ptr<GraphFunction> withAutocast(GraphFunction& function, DeviceType device,
                                            std::optional<DType> dtype) {
  const bool on_cuda = device == DeviceType::CUDA;
  if (!on_cuda && device != DeviceType::CPU) {
    throw UsageError("autocast: expected the device cpu or cuda, got " + Device{device}.str());
  }
  if (dtype && *dtype != DType::Half && *dtype != DType::BFloat16) {
    throw UsageError(
        fmt::format("autocast: expected float16 or bfloat16, got {}", toString(*dtype)));
  }
  AutocastState around;
  (on_cuda ? around.cuda : around.cpu) = true;
  if (dtype) (on_cuda ? around.cuda_dtype : around.cpu_dtype) = *dtype;
  function.ensureDefined();
  std::shared_ptr<Graph> graph = function.graph()->copy();
  inlineCalls(*graph);
  insertAutocastsWithin(*graph, around);
  auto cast = std::make_shared<GraphFunction>(function.qualifiedName(), std::move(graph));
  cast->setSchema(function.schema());
  return cast;
}

}  // namespace wick

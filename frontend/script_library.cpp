#include "frontend/script_library.h"

namespace wick {

namespace {

constexpr const char* kTorch = R"script(
def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)
)script";

constexpr ScriptLibraryPart kParts[] = {
    {"torch", kTorch},
};

}  // namespace

std::span<const ScriptLibraryPart> scriptLibrary() {
  return kParts;
}

}  // namespace wick

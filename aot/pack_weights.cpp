#include "aot/pack_weights.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace wick::aot {

namespace {

void fill(int64_t (&to)[WICK_AOT_MAX_DIMS], IntSpan from) {
  WICK_ASSERT(from.size() <= WICK_AOT_MAX_DIMS, "a layout of the library has too many dimensions");
  std::ranges::copy(from, to);
}

wick_aot_layout layoutOf(const Layout& from) {
  wick_aot_layout made{};
  made.rank = static_cast<int32_t>(from.sizes.size());
  fill(made.sizes, from.sizes);
  fill(made.strides, from.strides);
  return made;
}

// The bytes from `place` to the end of the buffer that `layout` reaches.
bool liesIn(const Buffer& buffer, const Place& place, const Layout& layout) {
  int64_t last = 0;
  for (size_t d = 0; d < layout.sizes.size(); ++d) {
    if (layout.sizes[d] == 0 || layout.strides[d] < 0) return false;
    last += (layout.sizes[d] - 1) * layout.strides[d];
  }
  return place.offset + (last + 1) * static_cast<int64_t>(sizeof(float)) <=
         static_cast<int64_t>(buffer.bytes);
}

}  // namespace

wick_aot_primitive primitiveOf(const LibraryStep& step) {
  wick_aot_primitive made{};
  made.kind = step.kind == LibraryStep::Kind::Convolution  ? WICK_AOT_CONVOLUTION
              : step.kind == LibraryStep::Kind::Transposed ? WICK_AOT_TRANSPOSED_CONVOLUTION
                                                           : WICK_AOT_PRODUCT;
  made.residual = static_cast<int32_t>(step.residual);
  made.activation = static_cast<int32_t>(step.activation);
  made.one_thread = step.one_thread ? 1 : 0;
  made.weights_offset = -1;
  made.bias_offset = step.bias ? -2 : -1;
  made.spatial = static_cast<int32_t>(step.stride.size());
  fill(made.stride, step.stride);
  fill(made.dilation, step.dilation);
  for (size_t d = 0; d < step.dilation.size(); ++d) --made.dilation[d];
  fill(made.padding, step.padding);
  fill(made.padding_after, step.padding_after);
  made.source = layoutOf(step.source);
  made.weight = layoutOf(step.weight);
  made.result = layoutOf(step.result);
  made.packed.count = static_cast<int32_t>(step.blocks.sizes.size());
  fill(made.packed.sizes, step.blocks.sizes);
  fill(made.packed.dims, step.blocks.dims);
  return made;
}

void packWeights(Program& program) {
  for (Step& step : program.steps) {
    auto* library = std::get_if<LibraryStep>(&step.what);
    if (!library || !library->packs) continue;
    const Buffer& plain = program.buffers[library->weights.buffer];
    if (plain.kind != Buffer::Kind::Constant || plain.written ||
        !liesIn(plain, library->weights, library->weight)) {
      continue;
    }
    const auto* from = static_cast<const char*>(plain.data.rawData()) + library->weights.offset;
    wick_aot_layout layout;
    wick_aot_blocks blocks;
    size_t bytes = 0;
    const wick_aot_primitive primitive = primitiveOf(*library);
    const std::unique_ptr<void, void (*)(void*)> packed(
        wick_aot_pack(&primitive, reinterpret_cast<const float*>(from), &layout, &blocks, &bytes),
        &std::free);
    if (!packed) continue;
    Buffer made;
    made.bytes = bytes;
    made.kind = Buffer::Kind::Constant;
    made.data = Tensor::empty({static_cast<int64_t>(bytes)}, DType::Byte);
    std::memcpy(made.data.rawData(), packed.get(), bytes);
    library->weights = {static_cast<uint32_t>(program.buffers.size()), 0};
    std::copy_n(layout.strides, layout.rank, library->weight.strides.begin());
    library->blocks.sizes.assign(blocks.sizes, blocks.sizes + blocks.count);
    library->blocks.dims.assign(blocks.dims, blocks.dims + blocks.count);
    program.buffers.push_back(std::move(made));
  }
}

}  // namespace wick::aot

// Weights that are packed while a model is built, and the runtime that takes them, also on other machines.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "aot/pack_weights.h"
#include "core/tensor.h"

namespace wick::aot::packed_weights_test {
namespace {

constexpr int64_t kRows = 8, kInner = 10, kColumns = 22;

std::vector<float> numbers(size_t count, float step) {
  std::vector<float> made(count);
  for (size_t i = 0; i < count; ++i) made[i] = static_cast<float>(i % 13) * step - 1;
  return made;
}

// [8, 10] times [10, 22].
LibraryStep product() {
  LibraryStep step;
  step.source = {{kRows, kInner}, {kInner, 1}};
  step.weight = {{kInner, kColumns}, {kColumns, 1}};
  step.result = {{kRows, kColumns}, {kColumns, 1}};
  step.packs = true;
  return step;
}

// What the runtime makes of a constant weight that lies as the primitive says.
std::vector<float> multiplied(wick_aot_primitive primitive, const std::vector<float>& source,
                              const float* weight) {
  primitive.weights_offset = 0;
  wick_aot_model model{};
  model.version = WICK_AOT_VERSION;
  model.name = "product";
  model.embedded = weight;
  model.library = &wick_aot_onednn;
  model.primitives = &primitive;
  model.num_primitives = 1;
  wick_aot_state state;
  EXPECT_EQ(wick_aot_init(&model, &state, nullptr), WICK_AOT_OK) << state.error;
  std::vector<float> result(kRows * kColumns);
  const wick_aot_arguments arguments{source.data(), nullptr, nullptr, nullptr, result.data()};
  EXPECT_EQ(wick_aot_run(&state, 0, nullptr, &arguments), WICK_AOT_OK) << state.error;
  wick_aot_free(&state);
  return result;
}

TEST(PackedWeights, BlocksOfAnotherMachineArePackedAnew) {
  const std::vector<float> source = numbers(kRows * kInner, 0.25f);
  const std::vector<float> weight = numbers(kInner * kColumns, 0.5f);
  const std::vector<float> want = multiplied(primitiveOf(product()), source, weight.data());
  // No processor wants blocks of 3 by 4; the sizes leave ends in both dimensions.
  constexpr int64_t kDown = 3, kAcross = 4, kBlocksDown = 4, kBlocksAcross = 6;
  std::vector<float> blocked(kDown * kAcross * kBlocksDown * kBlocksAcross, 0.0f);
  for (int64_t i = 0; i < kInner; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      const int64_t block = (i / kDown) * kBlocksAcross + j / kAcross;
      blocked[static_cast<size_t>(block * kDown * kAcross + i % kDown * kAcross + j % kAcross)] =
          weight[static_cast<size_t>(i * kColumns + j)];
    }
  }
  LibraryStep step = product();
  step.weight.strides = {kBlocksAcross * kDown * kAcross, kDown * kAcross};
  step.blocks.sizes = {kDown, kAcross};
  step.blocks.dims = {0, 1};
  EXPECT_EQ(multiplied(primitiveOf(step), source, blocked.data()), want);
}

TEST(PackedWeights, WhatIsPackedHereGivesTheSameBits) {
  const std::vector<float> source = numbers(kRows * kInner, 0.25f);
  const std::vector<float> weight = numbers(kInner * kColumns, 0.5f);
  const std::vector<float> want = multiplied(primitiveOf(product()), source, weight.data());
  Program program;
  Buffer constant;
  constant.kind = Buffer::Kind::Constant;
  constant.bytes = weight.size() * sizeof(float);
  constant.data = Tensor::empty({static_cast<int64_t>(constant.bytes)}, DType::Byte);
  std::memcpy(constant.data.rawData(), weight.data(), constant.bytes);
  program.buffers.push_back(constant);
  program.steps.push_back({product(), "product"});
  packWeights(program);
  const LibraryStep& step = std::get<LibraryStep>(program.steps[0].what);
  const Tensor& packed = program.buffers[step.weights.buffer].data;
  const auto* at = static_cast<const float*>(packed.rawData());
  EXPECT_EQ(multiplied(primitiveOf(step), source, at), want);
  // Packing is not done twice, and a weight that a step writes is no constant.
  const size_t buffers = program.buffers.size();
  program.buffers[0].written = true;
  program.steps[0].what = product();
  packWeights(program);
  EXPECT_EQ(program.buffers.size(), buffers);
}

TEST(PackedWeights, AWeightThatReachesBehindItsBufferStays) {
  Program program;
  Buffer constant;
  constant.kind = Buffer::Kind::Constant;
  constant.bytes = kInner * kColumns * sizeof(float);
  constant.data = Tensor::empty({static_cast<int64_t>(constant.bytes)}, DType::Byte);
  program.buffers.push_back(constant);
  LibraryStep step = product();
  step.weights.offset = sizeof(float);
  program.steps.push_back({step, "product"});
  packWeights(program);
  EXPECT_EQ(program.buffers.size(), 1u);
}

}  // namespace
}  // namespace wick::aot::packed_weights_test

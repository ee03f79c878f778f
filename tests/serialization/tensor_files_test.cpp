// safetensors, .npz and torch.save as containers of tensors by name, and hostile ones.
#include "serialization/tensor_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/output_file.h"
#include "serialization/npz.h"
#include "serialization/safetensors.h"
#include "serialization/torch_save.h"

namespace wick::tensor_files_test {
namespace {

using testing::HasSubstr;

std::string temporary(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

Tensor numbers(IntSpan sizes, DType dtype) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = static_cast<float>(i % 7) - 3;
  return t.to(dtype);
}

NamedTensors samples() {
  return {{"a.weight", numbers({3, 5}, DType::Float)},
          {"half", numbers({7}, DType::Half)},
          {"empty", numbers({0, 4}, DType::Double)},
          {"scalar \"quoted\" ü", numbers({}, DType::Long)},
          {"flags", numbers({9}, DType::Bool)},
          {"view", numbers({4, 6}, DType::Int).transpose(0, 1)}};
}

void expectSame(const NamedTensors& found, const NamedTensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].first, expected[i].first);
    EXPECT_EQ(found[i].second.describe(), expected[i].second.describe());
    EXPECT_TRUE(IValue(found[i].second).equals(IValue(expected[i].second))) << found[i].first;
  }
}

TEST(TensorFilesTest, EveryFormatKeepsNamesAndNumbers) {
  for (const char* end : {"safetensors", "npz", "pt"}) {
    const std::string path = temporary(std::string("samples.") + end);
    saveTensors(samples(), path);
    SCOPED_TRACE(end);
    expectSame(loadTensors(path), samples());
  }
  saveTensors({{"x", numbers({2, 2}, DType::Float)}}, temporary("one.npy"));
  expectSame(loadTensors(temporary("one.npy")), {{"tensor", numbers({2, 2}, DType::Float)}});
}

TEST(TensorFilesTest, NestedDictsGetDottedNames) {
  auto inner = makeRef<DictObject>(types::String(), types::Tensor());
  inner->set("w", numbers({2}, DType::Float));
  auto outer = makeRef<DictObject>(types::String(), types::Any());
  outer->set("model", IValue(inner));
  EXPECT_EQ(namedTensors(IValue(outer)).at(0).first, "model.w");
  outer->set("epoch", int64_t{3});
  try {
    namedTensors(IValue(outer));
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.brief(), HasSubstr("'epoch'"));
  }
}

TEST(TensorFilesTest, DictsNestUpToALimit) {
  const auto nested = [](int depth) {
    IValue value(numbers({1}, DType::Float));
    for (int i = 0; i < depth; ++i) {
      auto dict = makeRef<DictObject>(types::String(), types::Any());
      dict->set("d", std::move(value));
      value = IValue(std::move(dict));
    }
    return value;
  };
  EXPECT_EQ(namedTensors(nested(100)).size(), 1u);
  try {
    namedTensors(nested(101));
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_EQ(error.brief(), "dicts nest deeper than 100");
  }
}

TEST(TensorFilesTest, WhatCannotBeSavedLeavesTheOldFile) {
  const Tensor t = numbers({2}, DType::Float);
  for (const char* end : {"safetensors", "npz", "pt"}) {
    const std::string path = temporary(std::string("kept.") + end);
    saveTensors({{"a", t}}, path);
    EXPECT_THROW(saveTensors({{"a", t}, {"a", t}}, path), RuntimeError);
    expectSame(loadTensors(path), {{"a", t}});
  }
  EXPECT_THROW(saveTensors({{"a", numbers({2}, DType::BFloat16)}}, temporary("b.npz")),
               RuntimeError);
  EXPECT_THROW(saveTensors({{"a", t}, {"b", t}}, temporary("two.npy")), RuntimeError);
  EXPECT_THROW(saveTensors({{"a", t}}, temporary("a.txt")), RuntimeError);
  EXPECT_THROW(saveTensors({{"__metadata__", t}}, temporary("m.safetensors")), RuntimeError);
}

std::string safetensors(const std::string& header, size_t bytes) {
  const uint64_t size = header.size();
  std::string text(reinterpret_cast<const char*>(&size), sizeof(size));
  return text + header + std::string(bytes, '\0');
}

std::string refusal(const std::string& text, const ArchiveLimits& limits = {}) {
  try {
    loadSafetensors(copyBytes(std::as_bytes(std::span(text.data(), text.size()))), "hostile",
                    limits);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TensorFilesTest, HostileSafetensorsAreRefused) {
  const auto entry = [](const std::string& shape, const std::string& offsets) {
    return "{\"a\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  EXPECT_EQ(refusal(safetensors(entry("[2]", "[0,8]"), 8)), "accepted");
  EXPECT_EQ(refusal(safetensors("{\"__metadata__\":{\"format\":\"pt\"}}", 0)), "accepted");
  EXPECT_THAT(refusal("short"), HasSubstr("not a safetensors"));
  EXPECT_THAT(refusal(safetensors(entry("[2]", "[0,8]"), 4)), HasSubstr("outside"));
  EXPECT_THAT(refusal(safetensors(entry("[2]", "[4,12]"), 12)), HasSubstr("gap"));
  EXPECT_THAT(refusal(safetensors(entry("[2]", "[0,8]"), 9)), HasSubstr("belong to no tensor"));
  EXPECT_THAT(refusal(safetensors(entry("[3]", "[0,8]"), 8)), HasSubstr("needs 12"));
  EXPECT_THAT(refusal(safetensors(entry("[4611686018427387904,4]", "[0,8]"), 8)),
              HasSubstr("too large"));
  EXPECT_THAT(refusal(safetensors(entry("[-2]", "[0,8]"), 8)), HasSubstr("below zero"));
  EXPECT_THAT(refusal(safetensors(entry("[2.5]", "[0,8]"), 8)), HasSubstr("not an integer"));
  EXPECT_THAT(refusal(safetensors(entry("[2]", "[0,8,9]"), 8)), HasSubstr("lacks"));
  EXPECT_THAT(refusal(safetensors("{\"a\":{\"dtype\":\"F32\"}}", 0)), HasSubstr("lacks"));
  EXPECT_THAT(refusal(safetensors("{\"a\":1}", 0)), HasSubstr("unexpected number"));
  EXPECT_THAT(refusal(safetensors("{\"a\":[]}", 0)), HasSubstr("list"));
  EXPECT_THAT(
      refusal(safetensors("{\"a\":{\"dtype\":\"F4\",\"shape\":[],\"data_offsets\":[0,0]}}", 0)),
      HasSubstr("'F4' is not supported"));
  EXPECT_THAT(refusal(safetensors("{\"a\":" + std::string(100000, '['), 0)), HasSubstr("hostile"));
  EXPECT_THAT(refusal(safetensors("{", 0)), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(safetensors("[]", 0)), HasSubstr("hostile: not a safetensors file"));
  ArchiveLimits limits;
  limits.max_pickle = 10;
  EXPECT_THAT(refusal(safetensors(entry("[2]", "[0,8]"), 8), limits),
              HasSubstr("bytes is longer than the limit of 10"));
  limits = {};
  limits.base_memory = 200;
  limits.memory_ratio = 0;
  EXPECT_THAT(refusal(safetensors(entry("[999]", "[0,3996]"), 3996), limits), HasSubstr("memory"));
  std::string huge = safetensors("{}", 0);
  huge[7] = '\x7f';
  EXPECT_THAT(refusal(huge), HasSubstr("longer than the file"));
}

TEST(TensorFilesTest, HostileNpzAreRefused) {
  saveNpz({{"a", numbers({4}, DType::Float)}}, temporary("fine.npz"));
  std::ifstream file(temporary("fine.npz"), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  for (size_t size = 0; size < text.size(); size += 7) {
    const std::string cut = text.substr(0, size);
    EXPECT_THROW(loadNpz(copyBytes(std::as_bytes(std::span(cut.data(), cut.size()))), "cut"),
                 LoadError);
  }
}

}  // namespace
}  // namespace wick::tensor_files_test

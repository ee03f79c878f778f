#include "serialization/torch_save.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/error.h"
#include "serialization/stored_values.h"
#include "tests/serialization/data_files.h"

namespace wick::torch_save_test {
namespace {

const IValue& at(const IValue& dict, const char* key) {
  const IValue* value = dict.toDict().find(key);
  if (value == nullptr) throw std::out_of_range(key);
  return *value;
}

template <class T>
std::vector<T> numbers(const Tensor& tensor) {
  Tensor dense = tensor.contiguous();
  return std::vector<T>(dense.data<T>(), dense.data<T>() + dense.numel());
}

// The value that make_data.py saves in several forms.
void expectValue(const IValue& v) {
  EXPECT_TRUE(at(v, "none").isNone());
  const std::vector<IValue>& n = at(v, "numbers").elements();
  ASSERT_EQ(n.size(), 10u);
  EXPECT_EQ(n[2].toInt(), 256);
  EXPECT_EQ(n[5].toInt(), int64_t{1} << 40);
  EXPECT_EQ(n[6].toInt(), INT64_MIN);
  EXPECT_EQ(n[7].toDouble(), 2.5);
  EXPECT_EQ(n[8].toBool(), true);
  EXPECT_EQ(n[9].toComplex(), std::complex<double>(1, -2));
  EXPECT_EQ(at(v, "text").toString(), "z\u00fcrich");
  const std::vector<IValue>& nested = at(v, "nested").elements();
  EXPECT_TRUE(at(v, "nested").isTuple() && nested[0].isTuple() && nested[1].isList() &&
              nested[2].isDict());
  EXPECT_EQ(nested[4].elements()[0].elements()[0].toInt(), 1);
  EXPECT_EQ(nested[5].toDict().find(int64_t{1})->toDouble(), 2.0);
  Tensor tensor = at(v, "tensor").toTensor();
  EXPECT_EQ(numbers<float>(tensor), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  Tensor view = at(v, "view").toTensor();
  EXPECT_EQ(numbers<float>(view), (std::vector<float>{1, 4, 2, 5}));
  EXPECT_TRUE(view.sharesStorage(tensor));
  EXPECT_EQ(numbers<double>(at(v, "parameter").toTensor()), (std::vector<double>{1, 1}));
  Tensor half = at(v, "half").toTensor();
  EXPECT_EQ(half.dtype(), DType::Half);
  EXPECT_EQ(static_cast<float>(half.data<Half>()[0]), 1.5f);
  EXPECT_EQ(DimVector(at(v, "empty").toTensor().sizes()), (DimVector{0, 3}));
  EXPECT_EQ(at(v, "dtype").toInt(), static_cast<int64_t>(DType::Int));
  EXPECT_EQ(at(v, "size").elements()[1].toInt(), 3);
  EXPECT_EQ(at(v, "device").toDevice().str(), "cuda:1");
  EXPECT_EQ(at(v, "ordered").toDict().items()[1].first.toString(), "b");
}

TEST(TorchSaveTest, ReadsWhatPyTorchWrites) {
  expectValue(loadValue(dataPath("value.pt")));
  expectValue(loadValue(dataPath("value_legacy.pt")));
  expectValue(loadValue(dataPath("value_protocol4.pt")));
}

TEST(TorchSaveTest, WhatIsWrittenReadsBack) {
  IValue value = loadValue(dataPath("value.pt"));
  expectValue(loadValue(bytesOf(saveValueToString(value)), "copy"));
}

TEST(TorchSaveTest, ReadsStateDicts) {
  IValue state = loadValue(dataPath("state_dict.pt"));
  EXPECT_EQ(DimVector(at(state, "weight").toTensor().sizes()), (DimVector{2, 2}));
}

TEST(TorchSaveTest, TensorsOutliveTheFileAndMayBeWritten) {
  Tensor tensor = at(loadValue(dataPath("value.pt")), "tensor").toTensor();
  tensor.data<float>()[0] = 7;
  Tensor again = at(loadValue(dataPath("value.pt")), "tensor").toTensor();
  EXPECT_EQ(again.data<float>()[0], 0);
}

TEST(TorchSaveTest, StorageSeenAsTwoDTypesIsWrittenTwice) {
  Ref<Storage> storage = Storage::allocate(8);
  std::memset(storage->data(), 0, 8);
  DimVector one{1};
  IValue pair = makeTuple({Tensor::fromStorage(storage, DType::Long, one, one, 0),
                           Tensor::fromStorage(storage, DType::Double, one, one, 0)});
  IValue back = loadValue(bytesOf(saveValueToString(pair)), "copy");
  EXPECT_EQ(back.elements()[0].toTensor().dtype(), DType::Long);
  EXPECT_EQ(back.elements()[1].toTensor().dtype(), DType::Double);
}

TEST(TorchSaveTest, EveryTruncationIsALoadError) {
  for (const char* name : {"small.pt", "value_legacy.pt"}) {
    const std::string whole = contentsOf(name);
    for (size_t n = 0; n < whole.size(); ++n) {
      EXPECT_THROW(loadValue(bytesOf(whole.substr(0, n)), name), LoadError) << name << " " << n;
    }
  }
}

TEST(TorchSaveTest, DamagedFilesAreLoadErrorsOrValues) {
  for (const char* name : {"small.pt", "value_legacy.pt"}) {
    const std::string whole = contentsOf(name);
    for (size_t i = 0; i < whole.size(); ++i) {
      for (int change : {0x01, 0x10, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ change);
        try {
          loadValue(bytesOf(damaged), name);
        } catch (const LoadError&) {
        }
      }
    }
  }
}

TEST(TorchSaveTest, OtherFilesAreRefused) {
  EXPECT_THROW(loadValue(bytesOf("hello"), "text"), LoadError);
  EXPECT_THROW(loadValue(bytesOf(""), "empty"), LoadError);
  EXPECT_THROW(loadValue(dataPath("missing.pt")), LoadError);
}

}  // namespace
}  // namespace wick::torch_save_test

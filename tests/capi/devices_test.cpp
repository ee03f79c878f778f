// Devices, dtypes and the sizes of structs in the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/capi/handles.h"

namespace {

using testing::HasSubstr;
using namespace wick::testing_capi;

Value ones(size_t count) {
  const std::vector<float> numbers(count, 1);
  const int64_t sizes[] = {static_cast<int64_t>(count)};
  return made(wick_value_from_data, WICK_FLOAT32, sizes, size_t{1},
              static_cast<const void*>(numbers.data()), count * sizeof(float));
}

std::string deviceOf(const Value& tensor) {
  const char* device = nullptr;
  EXPECT_EQ(wick_tensor_device(tensor.get(), &device), WICK_OK) << message();
  return device ? device : "";
}

wick_dtype dtypeOf(const Value& tensor) {
  wick_dtype dtype = WICK_UINT8;
  EXPECT_EQ(wick_tensor_dtype(tensor.get(), &dtype), WICK_OK) << message();
  return dtype;
}

TEST(CapiDevices, TensorsTellWhereTheyAreAndMove) {
  const Value x = ones(3);
  EXPECT_EQ(deviceOf(x), "cpu");
  EXPECT_EQ(dtypeOf(x), WICK_FLOAT32);
  const Value there = made(wick_tensor_to, x.get(), "meta");
  EXPECT_EQ(deviceOf(there), "meta");
  const int64_t* sizes = nullptr;
  size_t dims = 0;
  ASSERT_EQ(wick_tensor_sizes(there.get(), &sizes, &dims), WICK_OK);
  ASSERT_EQ(dims, 1u);
  EXPECT_EQ(sizes[0], 3);
  // A tensor that is there already is the same one.
  const Value same = made(wick_tensor_to, x.get(), "cpu");
  wick_tensor a = WICK_TENSOR_INIT, b = WICK_TENSOR_INIT;
  ASSERT_EQ(wick_value_to_tensor(x.get(), &a), WICK_OK);
  ASSERT_EQ(wick_value_to_tensor(same.get(), &b), WICK_OK);
  EXPECT_EQ(a.data, b.data);
  EXPECT_EQ(wick_value_to_tensor(there.get(), &a), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("got one on meta; wick_tensor_to brings it there"));

  const Value whole = made(wick_tensor_to_dtype, x.get(), WICK_INT64);
  EXPECT_EQ(dtypeOf(whole), WICK_INT64);
  EXPECT_EQ(reprOf(whole), "tensor([1, 1, 1])");
  int count = -1;
  EXPECT_EQ(wick_device_count("cpu", &count), WICK_OK);
  EXPECT_EQ(count, 1);
}

TEST(CapiDevices, WrongDevicesAndDtypesAreRefused) {
  const Value x = ones(3), number = integer(1);
  wick_value* out = nullptr;
  EXPECT_EQ(wick_tensor_to(x.get(), "gpu", &out), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("wick_tensor_to: device: expected one of cpu, cuda"));
  EXPECT_EQ(wick_tensor_to(x.get(), "cuda:999", &out), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_tensor_to(x.get(), "cuda:99", &out), WICK_ERROR_RUNTIME);
  EXPECT_EQ(wick_tensor_to(number.get(), "cpu", &out), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_tensor_to_dtype(x.get(), WICK_QINT8, &out), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("there is no dtype 12"));
  EXPECT_EQ(out, nullptr);
  wick_dtype dtype = WICK_UINT8;
  EXPECT_EQ(wick_tensor_dtype(number.get(), &dtype), WICK_ERROR_USAGE);
  int count = -1;
  EXPECT_EQ(wick_device_count("gpu", &count), WICK_ERROR_USAGE);
}

TEST(CapiDevices, ModulesMoveAndChangeTheirType) {
  const auto module =
      made<wick_module>(wick_module_load, kDigits, static_cast<const wick_limits*>(nullptr));
  ASSERT_EQ(wick_module_to_dtype(module.get(), WICK_FLOAT64), WICK_OK) << message();
  const Value parameters = made(wick_module_parameters, module.get());
  wick_value *key = nullptr, *weight = nullptr;
  ASSERT_EQ(wick_value_entry(parameters.get(), 0, &key, &weight), WICK_OK);
  const Value name(key), tensor(weight);
  EXPECT_EQ(dtypeOf(tensor), WICK_FLOAT64);
  ASSERT_EQ(wick_module_to(module.get(), "meta"), WICK_OK) << message();
  EXPECT_EQ(deviceOf(tensor), "meta");
  EXPECT_EQ(wick_module_to_dtype(module.get(), WICK_INT64), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_module_to(module.get(), "nowhere"), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("wick_module_to: device: expected one of"));
  EXPECT_EQ(wick_module_to(module.get(), "cuda:99"), WICK_ERROR_RUNTIME);
}

TEST(CapiStructs, SizesAreChecked) {
  const Value x = ones(2);
  wick_tensor row = WICK_TENSOR_INIT;
  row.struct_size = 8;
  EXPECT_EQ(wick_value_to_tensor(x.get(), &row), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("tensor.struct_size must be sizeof(wick_tensor)"));
  // A caller with a newer header has more members, which stay as they are.
  struct {
    wick_tensor known;
    int64_t newer;
  } larger = {{sizeof(larger), WICK_UINT8, 0, nullptr, nullptr, nullptr, 0}, 42};
  EXPECT_EQ(wick_value_to_tensor(x.get(), &larger.known), WICK_OK) << message();
  EXPECT_EQ(larger.known.struct_size, sizeof(larger));
  EXPECT_EQ(larger.known.dims, 1u);
  EXPECT_EQ(larger.newer, 42);
  EXPECT_EQ(wick_last_error()->struct_size, sizeof(wick_error));
}

wick_status next(void*, wick_value* const* arguments, size_t, wick_value** results) {
  int64_t n = 0;
  if (wick_status status = wick_value_to_int(arguments[0], &n)) return status;
  return wick_value_from_int(n + 1, &results[0]);
}

TEST(CapiStructs, ArraysOfLargerStructsAreWalkedByTheirSize) {
  struct Newer {
    wick_operator known;
    void* member;
  };
  const auto op = [](const char* schema) {
    return Newer{{sizeof(Newer), schema, next, nullptr, nullptr, nullptr, 0, 0}, nullptr};
  };
  Newer operators[] = {op("one(int n) -> int"), op("two(int n) -> int")};
  wick_extension extension = {sizeof(wick_extension), "newer", &operators[0].known, 2, nullptr, 0};
  operators[1].known.struct_size = sizeof(wick_operator);
  EXPECT_EQ(wick_extension_add(&extension), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("operators[1].struct_size is "));
  operators[0].known.struct_size = 5;
  EXPECT_EQ(wick_extension_add(&extension), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("operators[0].struct_size must be sizeof(wick_operator)"));
  // A program that was compiled before there was the member hands a text over as a size.
  operators[0].known.struct_size = reinterpret_cast<size_t>("one(int n) -> int");
  EXPECT_EQ(wick_extension_add(&extension), WICK_ERROR_USAGE);
  for (Newer& o : operators) o.known.struct_size = sizeof(Newer);
  ASSERT_EQ(wick_extension_add(&extension), WICK_OK) << message();
  const auto program = compiled("def f(n: int) -> int:\n    return torch.ops.newer.two(n)\n");
  const Value n = integer(1);
  EXPECT_EQ(reprOf(called(program, "f", {n.get()})), "2");
}

}  // namespace

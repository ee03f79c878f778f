// Devices, dtypes and the sizes of structs in the C interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
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

// A model whose tensors were saved on "mps", which no engine has.
std::string savedOnMps() {
  wick::ArchiveReader archive(wick::mapFile(kDigits), kDigits);
  std::string out;
  wick::ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "moved");
  const std::string cpu("X\3\0\0\0cpu", 8), mps("X\3\0\0\0mps", 8);
  for (const std::string& record : archive.records()) {
    std::string found(archive.read(record).text());
    const size_t at = record == "data.pkl" ? found.find(cpu) : std::string::npos;
    if (at != std::string::npos) found.replace(at, cpu.size(), mps);
    writer.write(record, found);
  }
  writer.finish();
  return out;
}

wick_status loadedOnMps(const wick_device_map* map, Owned<wick_module>& module) {
  const std::string bytes = savedOnMps();
  wick_module* out = nullptr;
  const wick_status status =
      wick_module_load_memory_mapped(bytes.data(), bytes.size(), "mps.pt", map, nullptr, &out);
  EXPECT_EQ(out != nullptr, status == WICK_OK);
  module.reset(out);
  return status;
}

std::string deviceOfWeight(const Owned<wick_module>& module) {
  return deviceOf(made(wick_module_get_attribute, module.get(), "fc_layers.1.weight"));
}

wick_status toMeta(void* data, const char* saved_on, const char** device) {
  static_cast<std::vector<std::string>*>(data)->push_back(saved_on);
  *device = "meta";
  return WICK_OK;
}

TEST(CapiDevices, MapsSayWhereTensorsGo) {
  Owned<wick_module> module;
  ASSERT_EQ(loadedOnMps(nullptr, module), WICK_OK) << message();
  EXPECT_EQ(deviceOfWeight(module), "cpu");
  wick_device_map map = WICK_DEVICE_MAP_INIT;
  ASSERT_EQ(loadedOnMps(&map, module), WICK_OK) << message();
  EXPECT_EQ(deviceOfWeight(module), "cpu");

  const char* names[] = {"cuda:3", "mps"};
  const char* devices[] = {"cpu", "meta"};
  map.saved_on = names;
  map.devices = devices;
  map.count = 2;
  ASSERT_EQ(loadedOnMps(&map, module), WICK_OK) << message();
  EXPECT_EQ(deviceOfWeight(module), "meta");
  // The function is asked for what the table lacks.
  std::vector<std::string> asked;
  map.find = toMeta;
  map.data = &asked;
  ASSERT_EQ(loadedOnMps(&map, module), WICK_OK) << message();
  EXPECT_THAT(asked, testing::Not(testing::Contains("mps")));
  map.count = 1;
  ASSERT_EQ(loadedOnMps(&map, module), WICK_OK) << message();
  EXPECT_EQ(deviceOfWeight(module), "meta");
  EXPECT_THAT(asked, testing::Contains("mps"));
  wick_module* from_file = nullptr;
  ASSERT_EQ(wick_module_load_mapped(kDigits, &map, nullptr, &from_file), WICK_OK) << message();
  module.reset(from_file);
  EXPECT_EQ(deviceOfWeight(module), "meta");
  EXPECT_THAT(asked, testing::Contains("cpu"));
}

TEST(CapiDevices, MapsThatMakeNoSenseAreRefused) {
  Owned<wick_module> module;
  wick_device_map map = WICK_DEVICE_MAP_INIT;
  map.find = [](void*, const char*, const char**) { return wick_fail("I do not know"); };
  EXPECT_EQ(loadedOnMps(&map, module), WICK_ERROR_RUNTIME);
  EXPECT_THAT(message(), HasSubstr("I do not know"));
  map.find = [](void*, const char*, const char** device) {
    *device = "gpu";
    return WICK_OK;
  };
  EXPECT_EQ(loadedOnMps(&map, module), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("got 'gpu'"));
  map.find = nullptr;
  const char* names[] = {"mps", "mps"};
  const char* devices[] = {"cuda:99", "cpu"};
  map.saved_on = names;
  map.count = 1;
  EXPECT_EQ(loadedOnMps(&map, module), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("map.devices is NULL"));
  map.devices = devices;
  EXPECT_EQ(loadedOnMps(&map, module), WICK_ERROR_RUNTIME);
  map.count = 2;
  EXPECT_EQ(loadedOnMps(&map, module), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("has mps twice"));
  devices[0] = nullptr;
  EXPECT_EQ(loadedOnMps(&map, module), WICK_ERROR_USAGE);
  map.struct_size = 8;
  EXPECT_EQ(loadedOnMps(&map, module), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("map.struct_size must be sizeof(wick_device_map)"));
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

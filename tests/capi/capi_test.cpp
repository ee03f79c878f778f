// The C interface: every function does what its header says, and no mistake gets past a status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "capi/wick.h"
#include "core/dlpack_structs.h"
#include "tests/capi/handles.h"
#include "tests/shell.h"

namespace {

using testing::HasSubstr;
using namespace wick::testing_capi;

TEST(CapiTest, ScalarsAreMadeAndRead) {
  EXPECT_STREQ(wick_version(), "0.1.0");
  int64_t number = 0;
  EXPECT_EQ(wick_value_to_int(integer(-7).get(), &number), WICK_OK);
  EXPECT_EQ(number, -7);
  double real = 0;
  EXPECT_EQ(wick_value_to_float(made(wick_value_from_float, 2.5).get(), &real), WICK_OK);
  EXPECT_EQ(real, 2.5);
  EXPECT_EQ(wick_value_to_float(integer(3).get(), &real), WICK_OK);
  EXPECT_EQ(real, 3);
  int truth = 0;
  EXPECT_EQ(wick_value_to_bool(made(wick_value_from_bool, 5).get(), &truth), WICK_OK);
  EXPECT_EQ(truth, 1);
  EXPECT_EQ(stringOf(text(std::string("a\0b", 3))), std::string("a\0b", 3));
  wick_kind kind = WICK_OTHER;
  EXPECT_EQ(wick_value_kind(made(wick_value_none).get(), &kind), WICK_OK);
  EXPECT_EQ(kind, WICK_NONE);
  EXPECT_EQ(wick_value_to_int(text("x").get(), &number), WICK_ERROR_USAGE);
  EXPECT_EQ(message(), "wick_value_to_int: expected int, got str");
}

TEST(CapiTest, ContainersAreMadeAndRead) {
  const Value one = integer(1), two = integer(2), a = text("a"), b = text("b");
  wick_value* numbers[] = {one.get(), two.get()};
  wick_value* names[] = {a.get(), b.get()};
  const Value list = made(wick_value_from_list, numbers, size_t{2});
  const Value tuple = made(wick_value_from_tuple, names, size_t{2});
  const Value dict = made(wick_value_from_dict, names, numbers, size_t{2});
  EXPECT_EQ(reprOf(list), "[1, 2]");
  EXPECT_EQ(stringOf(made(wick_value_type, list.get())), "List[int]");
  EXPECT_EQ(reprOf(tuple), "('a', 'b')");
  EXPECT_EQ(reprOf(dict), "{'a': 1, 'b': 2}");
  EXPECT_EQ(reprOf(made(wick_value_element, list.get(), int64_t{-1})), "2");
  EXPECT_EQ(reprOf(made(wick_value_find, dict.get(), b.get())), "2");
  EXPECT_EQ(reprOf(made(wick_value_field, dict.get(), "a")), "1");
  size_t count = 0;
  EXPECT_EQ(wick_value_size(dict.get(), &count), WICK_OK);
  EXPECT_EQ(count, 2u);
  wick_value *key = nullptr, *value = nullptr;
  ASSERT_EQ(wick_value_entry(dict.get(), 1, &key, &value), WICK_OK);
  EXPECT_EQ(reprOf(Value(key)) + reprOf(Value(value)), "'b'2");
  EXPECT_EQ(wick_value_entry(dict.get(), 2, &key, &value), WICK_ERROR_USAGE);
  wick_value* none = nullptr;
  EXPECT_EQ(wick_value_field(dict.get(), "c", &none), WICK_ERROR_RUNTIME);
  EXPECT_EQ(message(), "KeyError: 'c'");
  EXPECT_EQ(wick_value_element(list.get(), 2, &none), WICK_ERROR_RUNTIME);
  EXPECT_EQ(wick_value_element(dict.get(), 0, &none), WICK_ERROR_USAGE);

  EXPECT_EQ(wick_value_append(list.get(), integer(3).get()), WICK_OK) << message();
  EXPECT_EQ(wick_value_append(list.get(), a.get()), WICK_ERROR_USAGE);
  EXPECT_EQ(reprOf(list), "[1, 2, 3]");
  EXPECT_EQ(wick_value_insert(dict.get(), text("c").get(), two.get()), WICK_OK) << message();
  EXPECT_EQ(wick_value_insert(dict.get(), one.get(), two.get()), WICK_ERROR_USAGE);
  EXPECT_EQ(reprOf(dict), "{'a': 1, 'b': 2, 'c': 2}");
  const Value empty = made(wick_value_from_list, static_cast<wick_value**>(nullptr), size_t{0});
  EXPECT_EQ(wick_value_append(empty.get(), a.get()), WICK_OK) << message();
  EXPECT_EQ(reprOf(empty), "['a']");
  // Handles share the value.
  const Value same = made(wick_value_copy, list.get());
  EXPECT_EQ(wick_value_append(same.get(), one.get()), WICK_OK);
  EXPECT_EQ(reprOf(list), "[1, 2, 3, 1]");
}

TEST(CapiTest, ProgramsAreCompiledAndCalled) {
  const auto program = compiled(R"(
def scale(values: List[int], by: int = 2) -> List[int]:
    return [v * by for v in values]

def empty(values: List[str]) -> int:
    return len(values)
)");
  EXPECT_EQ(reprOf(made(wick_program_functions, program.get())), "['scale', 'empty']");
  const Value one = integer(1), three = integer(3);
  wick_value* numbers[] = {one.get(), three.get()};
  const Value list = made(wick_value_from_list, numbers, size_t{2});
  EXPECT_EQ(reprOf(called(program, "scale", {list.get()})), "[2, 6]");
  const Value by = text("by");
  wick_value* key = by.get();
  wick_value* value = three.get();
  const Value named = made(wick_value_from_dict, &key, &value, size_t{1});
  wick_value* argument = list.get();
  const Value result = made(wick_program_call, program.get(), "scale", &argument, size_t{1},
                            named.get(), static_cast<const wick_limits*>(nullptr));
  EXPECT_EQ(reprOf(result), "[3, 9]");
  const Value empty = made(wick_value_from_list, static_cast<wick_value**>(nullptr), size_t{0});
  EXPECT_EQ(reprOf(called(program, "empty", {empty.get()})), "0");
  Value none;
  EXPECT_EQ(call(program, "other", {}, none), WICK_ERROR_USAGE);
  EXPECT_EQ(call(program, "scale", {}, none), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("missing value for argument 'values'"));
}

TEST(CapiTest, ErrorsTellTheirPlace) {
  wick_program* none = nullptr;
  EXPECT_EQ(wick_compile("def f(x: int) -> int:\n    return y\n", "bad.py", nullptr, &none),
            WICK_ERROR_COMPILE);
  EXPECT_EQ(none, nullptr);
  const wick_error* error = wick_last_error();
  EXPECT_EQ(error->status, WICK_ERROR_COMPILE);
  EXPECT_STREQ(error->file, "bad.py");
  EXPECT_EQ(error->line, 2u);
  EXPECT_EQ(error->column, 12u);
  const auto program = compiled("def f() -> int:\n    raise ValueError('no')\n    return 1\n");
  Value result;
  EXPECT_EQ(call(program, "f", {}, result), WICK_ERROR_RUNTIME);
  EXPECT_STREQ(wick_last_error()->class_name, "ValueError");
  EXPECT_STREQ(wick_last_error()->file, "test.py");
  EXPECT_EQ(wick_last_error()->line, 2u);
  wick_module* module = nullptr;
  EXPECT_EQ(wick_module_load("/no/such/file.pt", nullptr, &module), WICK_ERROR_LOAD);
  EXPECT_THAT(message(), HasSubstr("/no/such/file.pt"));
  // Each thread has its own.
  std::thread([] { EXPECT_EQ(wick_last_error()->status, WICK_OK); }).join();
}

TEST(CapiTest, NullIsAnErrorEverywhere) {
  const Value one = integer(1);
  wick_value* value = nullptr;
  wick_module* module = nullptr;
  wick_program* program = nullptr;
  int64_t number = 0;
  double real = 0;
  int truth = 0;
  size_t count = 0;
  const char* chars = nullptr;
  wick_kind kind;
  wick_dtype dtype;
  wick_tensor tensor = WICK_TENSOR_INIT;
  const wick_status all[] = {
      wick_compile(nullptr, nullptr, nullptr, &program),
      wick_compile("", nullptr, nullptr, nullptr),
      wick_program_functions(nullptr, &value),
      wick_program_call(nullptr, "f", nullptr, 0, nullptr, nullptr, &value),
      wick_module_load(nullptr, nullptr, &module),
      wick_module_load(kDigits, nullptr, nullptr),
      wick_module_load_memory(nullptr, 4, nullptr, nullptr, &module),
      wick_module_load_on(nullptr, "cpu", nullptr, &module),
      wick_module_load_on(kDigits, "cpu", nullptr, nullptr),
      wick_module_load_memory_on(nullptr, 4, nullptr, "cpu", nullptr, &module),
      wick_module_load_mapped(nullptr, nullptr, nullptr, &module),
      wick_module_load_mapped(kDigits, nullptr, nullptr, nullptr),
      wick_module_load_memory_mapped(nullptr, 4, nullptr, nullptr, nullptr, &module),
      wick_module_call(nullptr, nullptr, nullptr, 0, nullptr, nullptr, &value),
      wick_module_methods(nullptr, &value),
      wick_module_parameters(nullptr, &value),
      wick_module_buffers(nullptr, &value),
      wick_module_get_attribute(nullptr, "a", &value),
      wick_module_set_attribute(nullptr, "a", one.get()),
      wick_module_set_training(nullptr, 0),
      wick_module_is_training(nullptr, &truth),
      wick_module_save(nullptr, "a.pt", nullptr),
      wick_module_save_memory(nullptr, nullptr, &value),
      wick_module_to_value(nullptr, &value),
      wick_module_from_value(nullptr, &module),
      wick_value_none(nullptr),
      wick_value_from_int(1, nullptr),
      wick_value_from_float(1, nullptr),
      wick_value_from_bool(1, nullptr),
      wick_value_from_string("a", 1, nullptr),
      wick_value_from_string(nullptr, 1, &value),
      wick_value_from_list(nullptr, 1, &value),
      wick_value_from_tuple(&value, 1, &value),
      wick_value_from_dict(nullptr, nullptr, 1, &value),
      wick_value_copy(nullptr, &value),
      wick_value_copy(one.get(), nullptr),
      wick_value_kind(nullptr, &kind),
      wick_value_to_int(nullptr, &number),
      wick_value_to_int(one.get(), nullptr),
      wick_value_to_float(nullptr, &real),
      wick_value_to_bool(nullptr, &truth),
      wick_value_to_string(nullptr, &chars, nullptr),
      wick_value_size(nullptr, &count),
      wick_value_element(nullptr, 0, &value),
      wick_value_entry(nullptr, 0, &value, &value),
      wick_value_find(nullptr, one.get(), &value),
      wick_value_find(one.get(), nullptr, &value),
      wick_value_field(one.get(), nullptr, &value),
      wick_value_append(nullptr, one.get()),
      wick_value_insert(nullptr, one.get(), one.get()),
      wick_value_repr(nullptr, &value),
      wick_value_type(nullptr, &value),
      wick_value_from_data(WICK_FLOAT32, nullptr, 1, nullptr, 0, &value),
      wick_value_to_tensor(nullptr, &tensor),
      wick_value_contiguous(nullptr, &value),
      wick_value_from_dlpack(nullptr, &value),
      wick_value_from_dlpack_versioned(nullptr, &value),
      wick_value_to_dlpack(nullptr, nullptr),
      wick_value_to_dlpack_versioned(nullptr, nullptr),
      wick_set_log(nullptr, nullptr, nullptr),
      wick_module_to(nullptr, "cpu"),
      wick_module_to_dtype(nullptr, WICK_FLOAT64),
      wick_tensor_dtype(nullptr, &dtype),
      wick_tensor_dtype(one.get(), nullptr),
      wick_tensor_sizes(nullptr, nullptr, nullptr),
      wick_tensor_device(nullptr, &chars),
      wick_tensor_device(one.get(), nullptr),
      wick_tensor_to(nullptr, "cpu", &value),
      wick_tensor_to(one.get(), nullptr, &value),
      wick_tensor_to_dtype(nullptr, WICK_FLOAT64, &value),
      wick_device_count(nullptr, &truth),
      wick_device_count("cpu", nullptr),
      wick_interrupt_new(nullptr),
      wick_interrupt_set(nullptr),
      wick_interrupt_clear(nullptr),
  };
  for (size_t i = 0; i < std::size(all); ++i) EXPECT_EQ(all[i], WICK_ERROR_USAGE) << i;
  EXPECT_EQ(value, nullptr);
  wick_value_free(nullptr);
  wick_program_free(nullptr);
  wick_module_free(nullptr);
  wick_interrupt_free(nullptr);
}

TEST(CapiTest, NumbersOfThreadsHaveBounds) {
  for (const int wrong : {0, -1, 1025, 5000}) {
    EXPECT_EQ(wick_set_threads(wrong), WICK_ERROR_USAGE) << wrong;
    EXPECT_EQ(message(),
              "wick_set_threads: expected 1 to 1024 threads, got " + std::to_string(wrong));
  }
  EXPECT_EQ(wick_set_threads(1), WICK_OK);
}

TEST(CapiTest, ModulesAreLoadedChangedAndCalled) {
  const auto module =
      made<wick_module>(wick_module_load, kDigits, static_cast<const wick_limits*>(nullptr));
  int training = -1;
  EXPECT_EQ(wick_module_set_training(module.get(), 1), WICK_OK);
  EXPECT_EQ(wick_module_is_training(module.get(), &training), WICK_OK);
  EXPECT_EQ(training, 1);
  EXPECT_EQ(wick_module_set_training(module.get(), 0), WICK_OK);
  EXPECT_EQ(reprOf(made(wick_module_methods, module.get())), "['forward']");
  const std::vector<float> pixels(784, 0.5f);
  const int64_t sizes[] = {1, 1, 28, 28};
  const Value x = made(wick_value_from_data, WICK_FLOAT32, sizes, size_t{4},
                       static_cast<const void*>(pixels.data()), pixels.size() * sizeof(float));
  wick_value* argument = x.get();
  const auto scores = [&](const char* method) {
    const Value y =
        made(wick_module_call, module.get(), method, &argument, size_t{1},
             static_cast<const wick_value*>(nullptr), static_cast<const wick_limits*>(nullptr));
    wick_tensor tensor = WICK_TENSOR_INIT;
    EXPECT_EQ(wick_value_to_tensor(y.get(), &tensor), WICK_OK) << message();
    EXPECT_EQ(tensor.dtype, WICK_FLOAT32);
    EXPECT_EQ(tensor.dims, 2u);
    EXPECT_EQ(tensor.sizes[1], 10);
    EXPECT_EQ(tensor.contiguous, 1);
    const float* numbers = static_cast<const float*>(tensor.data);
    return std::vector<float>(numbers, numbers + 10);
  };
  EXPECT_EQ(scores(nullptr), scores("forward"));

  const Value parameters = made(wick_module_parameters, module.get());
  size_t count = 0;
  EXPECT_EQ(wick_value_size(parameters.get(), &count), WICK_OK);
  EXPECT_EQ(count, 10u);
  const Value bias = made(wick_module_get_attribute, module.get(), "fc_layers.1.bias");
  wick_tensor tensor = WICK_TENSOR_INIT;
  ASSERT_EQ(wick_value_to_tensor(bias.get(), &tensor), WICK_OK);
  // The model answers with logarithms of probabilities.
  EXPECT_LT(scores(nullptr)[4], -1);
  static_cast<float*>(tensor.data)[4] += 1000;
  EXPECT_EQ(scores(nullptr)[4], 0);
  EXPECT_EQ(wick_module_set_attribute(module.get(), "training", text("no").get()),
            WICK_ERROR_USAGE);
  EXPECT_EQ(wick_module_set_attribute(module.get(), "nothing", bias.get()), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_module_set_attribute(module.get(), "fc_layers.1.training",
                                      made(wick_value_from_bool, 1).get()),
            WICK_OK);

  const Value value = made(wick_module_to_value, module.get());
  const auto same = made<wick_module>(wick_module_from_value, value.get());
  EXPECT_EQ(wick_module_set_training(same.get(), 1), WICK_OK);
  EXPECT_EQ(wick_module_is_training(module.get(), &training), WICK_OK);
  EXPECT_EQ(training, 1);
}

TEST(CapiTest, ModulesAreLoadedFromMemory) {
  std::string bytes = wick::testing_shell::readText(kDigits);
  const auto module =
      made<wick_module>(wick_module_load_memory, static_cast<const void*>(bytes.data()),
                        bytes.size(), "digits", static_cast<const wick_limits*>(nullptr));
  std::fill(bytes.begin(), bytes.end(), '\0');
  EXPECT_NE(reprOf(made(wick_module_get_attribute, module.get(), "fc_layers.1.bias")), "");
  wick_module* none = nullptr;
  EXPECT_EQ(wick_module_load_memory("not a zip", 9, "nothing", nullptr, &none), WICK_ERROR_LOAD);
  EXPECT_THAT(message(), HasSubstr("nothing"));
}

TEST(CapiTest, FilesOfAnotherKindSayWhatTheyAre) {
  const auto refusal = [](const std::string& text) {
    wick_module* none = nullptr;
    EXPECT_EQ(wick_module_load_memory(text.data(), text.size(), "m.pt", nullptr, &none),
              WICK_ERROR_LOAD);
    return message();
  };
  EXPECT_EQ(refusal("def f(x):\n    return x\n"),
            "m.pt is text; if it is a script, wick_compile compiles its text");
  EXPECT_THAT(refusal("<!doctype html>"), HasSubstr("m.pt is a web page"));
  EXPECT_THAT(refusal(std::string("\x93NUMPY\x01\0", 8)),
              HasSubstr("the C interface reads modules alone"));
  wick_module* none = nullptr;
  EXPECT_EQ(wick_module_load("/no/such/file.pt", nullptr, &none), WICK_ERROR_LOAD);
  EXPECT_EQ(message(), "/no/such/file.pt: No such file or directory");
  EXPECT_EQ(wick_module_load("/tmp", nullptr, &none), WICK_ERROR_LOAD);
  EXPECT_THAT(message(), HasSubstr("/tmp: Is a folder, not a file"));
}

TEST(CapiTest, ModulesAreLoadedToADevice) {
  const wick_limits* no_limits = nullptr;
  const std::string bytes = wick::testing_shell::readText(kDigits);
  const void* data = bytes.data();
  const char* no_name = nullptr;
  for (const char* device : {"cpu", static_cast<const char*>(nullptr), "meta"}) {
    for (const auto& module : {made<wick_module>(wick_module_load_on, kDigits, device, no_limits),
                               made<wick_module>(wick_module_load_memory_on, data, bytes.size(),
                                                 no_name, device, no_limits)}) {
      const Value weight = made(wick_module_get_attribute, module.get(), "fc_layers.1.weight");
      wick_tensor tensor = {};
      tensor.struct_size = sizeof(tensor);
      const bool on_meta = device && std::string(device) == "meta";
      EXPECT_EQ(wick_value_to_tensor(weight.get(), &tensor), on_meta ? WICK_ERROR_USAGE : WICK_OK);
    }
  }
  wick_module* module = nullptr;
  EXPECT_EQ(wick_module_load_on(kDigits, "gpu", nullptr, &module), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("got 'gpu'"));
  EXPECT_EQ(wick_module_load_on(kDigits, "cuda:101", nullptr, &module), WICK_ERROR_RUNTIME);
  EXPECT_EQ(module, nullptr);
}

TEST(CapiTest, ModulesAreSaved) {
  const wick_limits* no_limits = nullptr;
  const auto module = made<wick_module>(wick_module_load, kDigits, no_limits);
  const Value bias = made(wick_module_get_attribute, module.get(), "fc_layers.1.bias");
  wick_tensor tensor = WICK_TENSOR_INIT;
  ASSERT_EQ(wick_value_to_tensor(bias.get(), &tensor), WICK_OK);
  static_cast<float*>(tensor.data)[4] = 42;
  const std::string path = testing::TempDir() + "/capi_saved.pt";
  ASSERT_EQ(wick_module_save(module.get(), path.c_str(), nullptr), WICK_OK) << message();
  const Value bytes = made(wick_module_save_memory, module.get(), no_limits);
  const char* data = nullptr;
  size_t count = 0;
  ASSERT_EQ(wick_value_to_string(bytes.get(), &data, &count), WICK_OK);
  EXPECT_EQ(wick::testing_shell::readText(path), std::string(data, count));

  const auto same = made<wick_module>(wick_module_load, path.c_str(), no_limits);
  const Value kept = made(wick_module_get_attribute, same.get(), "fc_layers.1.bias");
  ASSERT_EQ(wick_value_to_tensor(kept.get(), &tensor), WICK_OK);
  EXPECT_EQ(static_cast<const float*>(tensor.data)[4], 42);

  EXPECT_EQ(wick_module_save(module.get(), nullptr, nullptr), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_module_save_memory(module.get(), nullptr, nullptr), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_module_save(module.get(), "/no/such/folder/a.pt", nullptr), WICK_ERROR_RUNTIME);
  EXPECT_THAT(message(), HasSubstr("/no/such/folder/a.pt: No such file or directory"));
  EXPECT_EQ(wick_module_save(module.get(), "/dev/full", nullptr), WICK_ERROR_RUNTIME);
  EXPECT_THAT(message(), HasSubstr("No space left on device"));
}

TEST(CapiTest, LimitsEndRuns) {
  const auto program = compiled(R"(
def forever() -> int:
    n = 0
    while True:
        n += 1
    return n

def hoard() -> int:
    all: List[str] = []
    while True:
        all.append("x" * 1000)
    return len(all)
)");
  Value result;
  wick_limits limits = WICK_LIMITS_NONE;
  limits.seconds = 0.05;
  EXPECT_EQ(call(program, "forever", {}, result, &limits), WICK_ERROR_TIME);
  limits = WICK_LIMITS_NONE;
  limits.steps = 10000;
  EXPECT_EQ(call(program, "forever", {}, result, &limits), WICK_ERROR_TIME) << message();
  limits = WICK_LIMITS_NONE;
  limits.memory = size_t{8} << 20;
  EXPECT_EQ(call(program, "hoard", {}, result, &limits), WICK_ERROR_MEMORY);

  const auto interrupt = made<wick_interrupt>(wick_interrupt_new);
  limits = WICK_LIMITS_NONE;
  limits.interrupt = interrupt.get();
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    wick_interrupt_set(interrupt.get());
  });
  EXPECT_EQ(call(program, "forever", {}, result, &limits), WICK_ERROR_INTERRUPTED);
  other.join();
  EXPECT_EQ(wick_interrupt_clear(interrupt.get()), WICK_OK);
  limits.seconds = 0.05;
  EXPECT_EQ(call(program, "forever", {}, result, &limits), WICK_ERROR_TIME);

  limits = WICK_LIMITS_NONE;
  limits.seconds = -1;
  EXPECT_EQ(call(program, "forever", {}, result, &limits), WICK_ERROR_USAGE);
  limits.struct_size = 3;
  EXPECT_EQ(call(program, "forever", {}, result, &limits), WICK_ERROR_USAGE);
  limits = WICK_LIMITS_NONE;
  limits.interrupt = interrupt.get();
  EXPECT_EQ(wick_interrupt_set(interrupt.get()), WICK_OK);
  wick_module* module = nullptr;
  EXPECT_EQ(wick_module_load(kDigits, &limits, &module), WICK_ERROR_INTERRUPTED) << message();
}

TEST(CapiTest, BooleansHaveTheBytesThatKernelsBelieveIn) {
  const uint8_t bytes[] = {0, 1, 7, 255};
  const int64_t sizes[] = {4};
  const auto value = made(wick_value_from_data, WICK_BOOL8, sizes, size_t{1},
                          static_cast<const void*>(bytes), sizeof(bytes));
  const auto program = compiled("def count(x: Tensor) -> int:\n    return int(x.sum())\n");
  int64_t count = 0;
  wick_value_to_int(called(program, "count", {value.get()}).get(), &count);
  EXPECT_EQ(count, 3);
}

TEST(CapiTest, MessagesDoNotEndAtAZero) {
  const auto program = compiled("def f(x: str):\n    raise ValueError('a' + x)\n");
  Value result;
  const Value zero = text(std::string("\0b", 2));
  EXPECT_EQ(call(program, "f", {zero.get()}, result), WICK_ERROR_RUNTIME);
  EXPECT_THAT(message(), testing::EndsWith("ValueError: a\\x00b"));
}

TEST(CapiTest, TensorsOfWrongSizesAreRefused) {
  wick_value* value = nullptr;
  const float data[4] = {};
  const int64_t sizes[] = {2, 2}, negative[] = {-2, -2}, huge[] = {INT64_MAX, 8};
  EXPECT_EQ(wick_value_from_data(WICK_FLOAT32, sizes, 2, data, 8, &value), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("take 16 bytes, got 8"));
  EXPECT_EQ(wick_value_from_data(WICK_FLOAT32, negative, 2, data, 16, &value), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_value_from_data(WICK_FLOAT32, huge, 2, data, 16, &value), WICK_ERROR_USAGE);
  EXPECT_EQ(wick_value_from_data(static_cast<wick_dtype>(8), sizes, 2, data, 16, &value),
            WICK_ERROR_USAGE);
  EXPECT_EQ(value, nullptr);
}

struct Foreign {
  float data[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {2, 3};
  int64_t strides[2] = {1, 2};
  int deleted = 0;
};

DLTensor tensorOf(Foreign& foreign) {
  return {foreign.data, {1, 0}, 2, {2, 32, 1}, foreign.shape, foreign.strides, 0};
}

TEST(CapiTest, DlpackTensorsComeIn) {
  Foreign foreign;
  DLManagedTensor managed{tensorOf(foreign), &foreign, [](DLManagedTensor* self) {
                            ++static_cast<Foreign*>(self->manager_ctx)->deleted;
                          }};
  Value x = made(wick_value_from_dlpack, &managed);
  const Value row = made(wick_value_contiguous, x.get());
  wick_tensor tensor = WICK_TENSOR_INIT;
  ASSERT_EQ(wick_value_to_tensor(row.get(), &tensor), WICK_OK);
  const float* numbers = static_cast<const float*>(tensor.data);
  EXPECT_THAT(std::vector<float>(numbers, numbers + 6), testing::ElementsAre(1, 3, 5, 2, 4, 6));
  ASSERT_EQ(wick_value_to_tensor(x.get(), &tensor), WICK_OK);
  EXPECT_EQ(tensor.data, foreign.data);
  EXPECT_EQ(foreign.deleted, 0);
  x.reset();
  EXPECT_EQ(foreign.deleted, 1);

  DLManagedTensorVersioned versioned{
      {1, 1},
      &foreign,
      [](DLManagedTensorVersioned* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; },
      1,
      tensorOf(foreign)};
  x = made(wick_value_from_dlpack_versioned, &versioned);
  // It must not be written.
  const auto program = compiled("def f(x: Tensor):\n    x.add_(1)\n");
  Value none;
  EXPECT_EQ(call(program, "f", {x.get()}, none), WICK_ERROR_RUNTIME);
  EXPECT_EQ(foreign.data[0], 1);
  DLManagedTensor* plain = nullptr;
  EXPECT_EQ(wick_value_to_dlpack(x.get(), &plain), WICK_ERROR_USAGE);
  x.reset();
  EXPECT_EQ(foreign.deleted, 2);
}

TEST(CapiTest, WrongDlpackTensorsAreRefusedAndStayTheCallers) {
  const auto refused = [](auto change, const char* why) {
    Foreign foreign;
    DLManagedTensor managed{tensorOf(foreign), &foreign, [](DLManagedTensor* self) {
                              ++static_cast<Foreign*>(self->manager_ctx)->deleted;
                            }};
    change(managed.dl_tensor, foreign);
    wick_value* value = nullptr;
    EXPECT_EQ(wick_value_from_dlpack(&managed, &value), WICK_ERROR_USAGE) << why;
    EXPECT_THAT(message(), HasSubstr(why));
    EXPECT_EQ(foreign.deleted, 0);
  };
  refused([](DLTensor& t, Foreign&) { t.device.device_type = 2; }, "device type 2");
  refused([](DLTensor& t, Foreign&) { t.dtype.lanes = 4; }, "4 lanes");
  refused([](DLTensor& t, Foreign&) { t.dtype.bits = 33; }, "33 bits");
  refused([](DLTensor& t, Foreign&) { t.ndim = -1; }, "dimensions");
  refused([](DLTensor& t, Foreign&) { t.ndim = 1 << 20; }, "dimensions");
  refused([](DLTensor& t, Foreign&) { t.shape = nullptr; }, "sizes");
  refused([](DLTensor&, Foreign& f) { f.shape[0] = -2; }, "sizes");
  refused([](DLTensor&, Foreign& f) { f.strides[0] = -1; }, "strides");
  refused([](DLTensor&, Foreign& f) { f.strides[0] = INT64_MAX / 2; }, "too large");
  refused([](DLTensor& t, Foreign&) { t.data = nullptr; }, "null");
  refused([](DLTensor& t, Foreign&) { t.byte_offset = 2; }, "multiple of 4");
  refused([](DLTensor& t, Foreign&) { t.byte_offset = UINT64_MAX; }, "");
  refused([](DLTensor& t, Foreign&) { t.dtype = {6, 8, 1}; }, "expected booleans of 0 and 1");
  DLManagedTensorVersioned future{};
  future.version = {2, 0};
  wick_value* value = nullptr;
  EXPECT_EQ(wick_value_from_dlpack_versioned(&future, &value), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("version 1, got 2.0"));
}

TEST(CapiTest, DlpackTensorsGoOut) {
  const int32_t data[] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[] = {2, 3};
  Value x = made(wick_value_from_data, WICK_INT32, sizes, size_t{2}, static_cast<const void*>(data),
                 sizeof(data));
  DLManagedTensor* plain = nullptr;
  DLManagedTensorVersioned* versioned = nullptr;
  ASSERT_EQ(wick_value_to_dlpack(x.get(), &plain), WICK_OK) << message();
  ASSERT_EQ(wick_value_to_dlpack_versioned(x.get(), &versioned), WICK_OK) << message();
  x.reset();  // the structs hold the tensor
  for (const DLTensor* t : {&plain->dl_tensor, &versioned->dl_tensor}) {
    EXPECT_EQ(t->device.device_type, 1);
    EXPECT_EQ(t->dtype.code, 0);
    EXPECT_EQ(t->dtype.bits, 32);
    EXPECT_EQ(t->ndim, 2);
    EXPECT_EQ(t->shape[1], 3);
    EXPECT_EQ(t->strides[0], 3);
    EXPECT_EQ(static_cast<int32_t*>(t->data)[5], 6);
  }
  EXPECT_EQ(versioned->version.major, 1u);
  EXPECT_EQ(versioned->flags, 0u);
  plain->deleter(plain);
  EXPECT_EQ(static_cast<int32_t*>(versioned->dl_tensor.data)[0], 1);
  // And back in.
  x = made(wick_value_from_dlpack_versioned, versioned);
  EXPECT_THAT(reprOf(x), HasSubstr("[4, 5, 6]"));
}

TEST(CapiTest, TensorsThatHaveNoPlainElementsStay) {
  const auto program = compiled(
      "def sparse() -> Tensor:\n    return torch.ones([2]).to_sparse()\n"
      "def elsewhere() -> Tensor:\n    return torch.empty([2], device=\"meta\")\n");
  const auto refused = [&](const char* function, const char* why) {
    DLManagedTensor* plain = nullptr;
    EXPECT_EQ(wick_value_to_dlpack(called(program, function, {}).get(), &plain), WICK_ERROR_USAGE);
    EXPECT_THAT(message(), HasSubstr(why));
  };
  refused("sparse", "DLPack: expected a dense tensor, got a sparse one");
  refused("elsewhere", "DLPack: expected a tensor on the CPU, got one on meta");
}

TEST(CapiTest, TensorsWithoutElementsInMemoryAreNotShown) {
  const auto program = compiled(
      "def sparse() -> Tensor:\n    return torch.ones([2]).to_sparse()\n"
      "def quantized() -> Tensor:\n"
      "    return torch.quantize_per_tensor(torch.ones([2]), 0.5, 0, torch.qint8)\n"
      "def elsewhere() -> Tensor:\n    return torch.empty([2], device=\"meta\")\n");
  const auto refused = [&](const char* function, const char* why) {
    wick_tensor tensor = WICK_TENSOR_INIT;
    EXPECT_EQ(wick_value_to_tensor(called(program, function).get(), &tensor), WICK_ERROR_USAGE);
    EXPECT_EQ(message(), std::string("wick_value_to_tensor: ") + why);
    EXPECT_EQ(tensor.data, nullptr);
  };
  refused("sparse", "expected a dense tensor, got a sparse one");
  refused("quantized", "expected a dense tensor, got a quantized one");
  refused("elsewhere",
          "expected a tensor on the CPU, got one on meta; wick_tensor_to brings it there");
}

// What a program typed as a list of tensors stays one.
TEST(CapiTest, EmptyListsOfProgramsKeepTheirType) {
  const auto program = compiled(R"(
class Box:
    def __init__(self):
        self.all: List[Tensor] = []

def box() -> Box:
    return Box()

def first(b: Box) -> Tensor:
    return b.all[0] + 1
)");
  const Value box = called(program, "box");
  const Value all = made(wick_value_field, box.get(), "all");
  EXPECT_EQ(wick_value_append(all.get(), integer(3).get()), WICK_ERROR_USAGE);
  EXPECT_THAT(message(), HasSubstr("wick_value_append: expected Tensor, got int"));
  EXPECT_EQ(reprOf(all), "[]");
  const float two = 2;
  const Value x = made(wick_value_from_data, WICK_FLOAT32, static_cast<const int64_t*>(nullptr),
                       size_t{0}, static_cast<const void*>(&two), sizeof two);
  EXPECT_EQ(wick_value_append(all.get(), x.get()), WICK_OK) << message();
  EXPECT_EQ(reprOf(called(program, "first", {box.get()})), "tensor(3.)");
}

// The place that is told is that of the message.
TEST(CapiTest, PlacesOfModulesAreThoseOfTheirMessages) {
  const auto module =
      made<wick_module>(wick_module_load, kDigits, static_cast<const wick_limits*>(nullptr));
  const float number = 1;
  const int64_t size = 1;
  const Value x = made(wick_value_from_data, WICK_FLOAT32, &size, size_t{1},
                       static_cast<const void*>(&number), sizeof number);
  wick_value* argument = x.get();
  wick_value* result = nullptr;
  ASSERT_EQ(wick_module_call(module.get(), nullptr, &argument, 1, nullptr, nullptr, &result),
            WICK_ERROR_RUNTIME);
  const wick_error* error = wick_last_error();
  EXPECT_THAT(error->message, HasSubstr("File \"" + std::string(error->file) + "\", line " +
                                        std::to_string(error->line) + "\n"));
}

TEST(CapiTest, ThreadsCallOneProgram) {
  const auto program = compiled("def f(x: int) -> int:\n    return x * x\n");
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < 100; ++n) {
        const Value x = integer(i);
        EXPECT_EQ(reprOf(called(program, "f", {x.get()})), std::to_string(i * i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

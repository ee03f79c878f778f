#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/function_schema.h"
#include "serialization/pickler.h"
#include "serialization/unpickler.h"

namespace wick::pickle_test {
namespace {

using namespace std::string_literals;

IValue unpickle(const std::string& pickle, UnpicklerHooks hooks = {}) {
  return Unpickler(std::as_bytes(std::span(pickle.data(), pickle.size())), "test", std::move(hooks))
      .load();
}

std::string messageOf(const std::string& pickle) {
  try {
    unpickle(pickle);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

std::string pickle(const IValue& value, PicklerOptions options = {}) {
  Pickler pickler(std::move(options));
  pickler.push(value);
  return pickler.finish();
}

IValue roundTrip(const IValue& value) {
  return unpickle(pickle(value));
}

TEST(PickleTest, NumbersRoundTrip) {
  for (int64_t v :
       {int64_t{0}, int64_t{-1}, int64_t{255}, int64_t{256}, int64_t{65535}, int64_t{65536},
        int64_t{INT32_MIN}, int64_t{INT32_MAX} + 1, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(roundTrip(v).toInt(), v);
  }
  for (double v : {0.0, -0.0, 1.5, 1e308, std::numeric_limits<double>::infinity()}) {
    IValue back = roundTrip(v);
    EXPECT_EQ(back.toDouble(), v);
    EXPECT_EQ(std::signbit(back.toDouble()), std::signbit(v));
  }
  EXPECT_TRUE(std::isnan(roundTrip(std::nan("")).toDouble()));
  EXPECT_EQ(roundTrip(true).toBool(), true);
  EXPECT_TRUE(roundTrip(IValue()).isNone());
  EXPECT_EQ(roundTrip(std::complex<double>(1, -2)).toComplex(), std::complex<double>(1, -2));
}

TEST(PickleTest, ShortIntegersKeepTheirSign) {
  EXPECT_EQ(unpickle("\x80\x02\x8a\x01\xff."s).toInt(), -1);
  EXPECT_EQ(unpickle("\x80\x02\x8a\x02\xff\x00."s).toInt(), 255);
  EXPECT_EQ(unpickle("\x80\x02\x8a\x00."s).toInt(), 0);
}

TEST(PickleTest, ContainersKeepKindOrderAndIdentity) {
  IValue shared(makeList(types::Int(), {int64_t{1}, int64_t{2}}));
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  dict->set("z", shared);
  dict->set("a", makeTuple({shared, "z"}));
  IValue back = roundTrip(dict);
  auto items = back.toDict().items();
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].first.toString(), "z");
  EXPECT_TRUE(items[1].second.isTuple());
  EXPECT_TRUE(items[0].second.isSame(items[1].second.elements()[0]));
}

TEST(PickleTest, UntypedContainersGetTheTypesOfTheirElements) {
  // [1, None], [1.0, "x"], {}
  IValue list = unpickle("\x80\x02](K\x01Ne."s);
  EXPECT_EQ(list.toList().element_type->str(), types::Optional(types::Int())->str());
  IValue mixed = unpickle("\x80\x02](K\x01X\x01\x00\x00\x00xe."s);
  EXPECT_EQ(mixed.toList().element_type->kind(), TypeKind::Any);
}

TEST(PickleTest, TypeTagsForTorchScript) {
  UnpicklerHooks hooks;
  hooks.parse_type = parseSchemaType;
  auto dict = makeRef<DictObject>(types::String(), types::List(types::Int()));
  dict->set("a", makeList(types::Int(), {}));
  PicklerOptions options;
  options.for_python = false;
  IValue back = unpickle(pickle(dict, options), hooks);
  EXPECT_EQ(back.toDict().value_type->str(), types::List(types::Int())->str());
  EXPECT_EQ(back.toDict().find("a")->toList().element_type->kind(), TypeKind::Int);
}

TEST(PickleTest, OnlyListedGlobalsAreAllowed) {
  EXPECT_THAT(messageOf("\x80\x02"
                        "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."s),
              testing::HasSubstr("the global os.system is not allowed"));
  EXPECT_THAT(messageOf("\x80\x04\x8c\x08"
                        "builtins\x8c\x04"
                        "eval\x93."s),
              testing::HasSubstr("the global builtins.eval is not allowed"));
  EXPECT_THAT(messageOf("\x80\x02"
                        "c__torch__\nNet\n."s),
              testing::HasSubstr("there is no code for __torch__.Net"));
}

TEST(PickleTest, ACallableIsNoValue) {
  EXPECT_THAT(messageOf("\x80\x02"
                        "ccollections\nOrderedDict\n."s),
              testing::HasSubstr("callable"));
  EXPECT_THAT(messageOf("\x80\x02]ccollections\nOrderedDict\na."s), testing::HasSubstr("callable"));
  EXPECT_THAT(messageOf("\x80\x02"
                        "ccollections\nOrderedDict\n\x85."s),
              testing::HasSubstr("callable"));
}

TEST(PickleTest, MalformedProgramsAreErrorsWithAPosition) {
  EXPECT_THAT(messageOf("\x80\x02?."s),
              testing::HasSubstr("unknown pickle opcode 0x3f (at byte 2)"));
  for (const std::string& program :
       {""s, "."s, "\x80\x02"s, "\x80\x07."s, "\x80\x02t."s, "\x80\x02(0."s,
        "\x80\x02"
        "a."s,
        "\x80\x02K."s, "\x80\x02h\x05."s, "\x80\x02}(K\x01u."s, "\x80\x02}](]]u."s,
        "\x80\x02K\x01R."s, "\x80\x02X\xff\xff\xff\xffx."s,
        "\x80\x02\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s,
        "\x80\x02\x8a\x09\x01\x01\x01\x01\x01\x01\x01\x01\x01."s, "\x80\x02K\x01Q."s,
        "\x80\x02K\x01K\x01"
        "b."s,
        "\x80\x02(K\x01K\x02\x85."s}) {
    EXPECT_NE(messageOf(program), "no error") << program;
  }
}

TEST(PickleTest, CyclesAreRefused) {
  EXPECT_THAT(messageOf("\x80\x02]q\x00h\x00"
                        "a."s),
              testing::HasSubstr("holds itself"));
}

TEST(PickleTest, DeepNestingIsRefusedWithoutRecursion) {
  const size_t depth = 1000000;
  EXPECT_THAT(messageOf("\x80\x02" + std::string(depth, ']') + std::string(depth - 1, 'a') + "."),
              testing::HasSubstr("nest deeper"));
  EXPECT_THAT(messageOf("\x80\x02)" + std::string(depth, '\x85') + "."),
              testing::HasSubstr("nest deeper"));
  // Left on the stack when the pickle turns out to be broken.
  EXPECT_NE(messageOf("\x80\x02)" + std::string(depth, '\x85')), "no error");
}

TEST(PickleTest, SharingThatMultipliesIsRefused) {
  std::string program = "\x80\x02)";
  for (int i = 0; i < 100; ++i) program += "2\x86";  // DUP TUPLE2
  EXPECT_THAT(messageOf(program + "."), testing::HasSubstr("too large"));
}

TEST(PickleTest, WhatPythonCannotReadIsRefused) {
  EXPECT_THROW(pickle(makeRef<FutureObject>(types::Int())), RuntimeError);
  IValue nested = makeTuple({});
  for (int i = 0; i < 1500; ++i) nested = makeTuple({nested});
  EXPECT_THROW(pickle(nested), RuntimeError);
}

// A tensor pickle with any storage, offset, size and stride.
std::string tensorPickle(int numel, const std::string& offset, const std::string& sizes,
                         const std::string& strides) {
  return "\x80\x02"
         "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"s +
         "X\x01\x00\x00\x00"s + "0X\x03\x00\x00\x00"s + "cpuK" + std::string(1, char(numel)) +
         "tQ" + offset + "(" + sizes + "t(" + strides +
         "t\x89"
         "ccollections\nOrderedDict\n)RtR.";
}

TEST(PickleTest, TensorsMustLieInTheirStorage) {
  UnpicklerHooks hooks;
  hooks.storage = [](const StorageRequest&) { return Storage::allocate(6 * sizeof(float)); };
  const std::string huge = "\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40"s;
  EXPECT_EQ(
      unpickle(tensorPickle(6, "K\x00"s, "K\x02K\x03", "K\x03K\x01"), hooks).toTensor().numel(), 6);
  EXPECT_EQ(unpickle(tensorPickle(6, "K\x06", "K\x00"s, "K\x01"), hooks).toTensor().numel(), 0);
  // As of torch.ones(2, 3)[2:, 1:], which starts behind the last element and reads none.
  EXPECT_EQ(unpickle(tensorPickle(6, "K\x07", "K\x00"s, "K\x01"), hooks).toTensor().numel(), 0);
  EXPECT_THROW(unpickle(tensorPickle(7, "K\x00"s, "K\x01", "K\x01"), hooks), LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x01", "K\x02K\x03", "K\x03K\x01"), hooks), LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, "K\x02K\x03", "K\x04K\x01"), hooks), LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "J\xff\xff\xff\xff", "K\x01", "K\x01"), hooks), LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, "K\x02", "J\xff\xff\xff\xff"), hooks), LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, huge + huge, "K\x00K\x00"s), hooks), LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, "K\x02", huge), hooks), LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, "K\x02", "K\x01K\x01"), hooks), LoadError);
  // No elements, but a view of it would compute with the rest; nor with a dimension of size one.
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, "K\x00K\x05"s, "K\x01" + huge), hooks),
               LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, "K\x00"s + huge, "K\x01K\x01"), hooks),
               LoadError);
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, "K\x01", huge), hooks), LoadError);
  std::string ones;
  for (int i = 0; i < 65; ++i) ones += "K\x01";
  EXPECT_THROW(unpickle(tensorPickle(6, "K\x00"s, ones, ones), hooks), LoadError);
}

// Bytes other than 0 and 1 are true, and never read as a bool.
TEST(PickleTest, BoolsAreZeroOrOne) {
  UnpicklerHooks hooks;
  Ref<Storage> storage = Storage::allocate(6);
  std::memcpy(storage->data(), "\x00\x01\x02\xff\x00\x80", 6);
  hooks.storage = [&](const StorageRequest&) { return storage; };
  std::string program = tensorPickle(6, "K\x00"s, "K\x02K\x03", "K\x03K\x01");
  program.replace(program.find("FloatStorage"), 12, "BoolStorage");
  const Tensor bools = unpickle(program, hooks).toTensor();
  const auto* bytes = static_cast<const uint8_t*>(bools.rawData());
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + 6), (std::vector<uint8_t>{0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(static_cast<const uint8_t*>(storage->data())[3], 0xff);
}

TEST(PickleTest, BoolsShareNoStorageWithNumbers) {
  UnpicklerHooks hooks;
  Ref<Storage> storage = Storage::allocate(6);
  std::memset(storage->data(), 1, 6);
  hooks.storage = [&](const StorageRequest&) { return storage; };
  for (const bool bools_first : {true, false}) {
    std::string bools = tensorPickle(6, "K\x00"s, "K\x06", "K\x01");
    bools.replace(bools.find("FloatStorage"), 12, "BoolStorage");
    std::string numbers = tensorPickle(6, "K\x00"s, "K\x06", "K\x01");
    numbers.replace(numbers.find("FloatStorage"), 12, "ByteStorage");
    auto body = [](const std::string& program) { return program.substr(2, program.size() - 3); };
    const std::string both =
        bools_first ? body(bools) + body(numbers) : body(numbers) + body(bools);
    const IValue pair = unpickle("\x80\x02" + both + "\x86.", hooks);
    EXPECT_FALSE(pair.elements()[0].toTensor().sharesStorage(pair.elements()[1].toTensor()));
    const IValue same = unpickle("\x80\x02" + body(bools) + body(bools) + "\x86.", hooks);
    EXPECT_TRUE(same.elements()[0].toTensor().sharesStorage(same.elements()[1].toTensor()));
  }
}

TEST(PickleTest, TagsOnOneContainerMustAgree) {
  UnpicklerHooks hooks;
  hooks.parse_type = parseSchemaType;
  const std::string restore = "ctorch.jit._pickle\nrestore_type_tag\n";
  auto tag = [&](const std::string& type) {
    return restore + "h\x01X" + std::string(1, char(type.size())) + "\0\0\0"s + type + "\x86R";
  };
  const std::string list = "\x80\x02]q\x01"s;
  EXPECT_TRUE(unpickle(list + tag("int[]") + tag("int[]") + "\x87.", hooks).isTuple());
  EXPECT_THROW(unpickle(list + tag("int[]") + tag("str[]") + "\x87.", hooks), LoadError);
  EXPECT_THROW(unpickle(list + tag("int") + "\x86.", hooks), LoadError);
}

std::string budgetMessage(const std::string& program, uint64_t bytes) {
  UnpicklerHooks hooks;
  hooks.budget = std::make_shared<LoadBudget>(bytes);
  hooks.storage = [](const StorageRequest&) { return Storage::allocate(64); };
  try {
    unpickle(program, hooks);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

// Each opcode that makes something, a hundred thousand times.
TEST(PickleTest, ValuesTakeTheirMemoryFromTheBudget) {
  const auto repeated = [](const std::string& text) {
    std::string all;
    for (int i = 0; i < 100000; ++i) all += text;
    return all;
  };
  std::string memo, items;
  for (int i = 0; i < 100000; ++i) {
    const std::string number =
        "\0\0\0\0"s.replace(0, 4, std::string(reinterpret_cast<const char*>(&i), sizeof(i)));
    memo += "r" + number;
    items += "J" + number + "N";
  }
  const std::string tensor = tensorPickle(6, "K\x00"s, "K\x06", "K\x01");
  for (const std::string& body :
       {repeated("("), repeated("]"), repeated("}"), repeated(")"), repeated("N"), repeated("2"),
        "N" + repeated("\x85"), repeated("]0"), repeated("}0"), repeated("U\x00"s),
        repeated("U\x00"
                 "0"s),
        "]" + repeated("Na"), "](" + repeated("K\x01") + "e", "N" + memo, "}(" + items + "u",
        repeated("ccollections\nOrderedDict\n)R0"),
        repeated(tensor.substr(2, tensor.size() - 3) + "0")}) {
    EXPECT_THAT(budgetMessage("\x80\x02N" + body + ".", 1 << 18), testing::HasSubstr("memory"))
        << testing::PrintToString(body.substr(0, 20));
  }
  EXPECT_EQ(budgetMessage("\x80\x02](" + repeated("K\x01") + "e.", 8 << 20), "no error");
}

TEST(PickleTest, CopiesOfExpandedTensorsTakeMemoryToo) {
  std::string program = tensorPickle(1, "K\x00"s, "J\x00\x00\x00\x10"s, "K\x00"s);
  program.replace(program.find("FloatStorage"), 12, "ComplexFloatStorage");
  program.insert(program.rfind("tR."),
                 "}X\x04\x00\x00\x00"
                 "conj\x88s"s);
  EXPECT_THAT(budgetMessage(program, 1 << 20), testing::HasSubstr("memory"));
}

// PyTorch 2 records that a tensor is the lazy conjugate of its storage.
TEST(PickleTest, LazyConjugatesAreMaterialized) {
  UnpicklerHooks hooks;
  hooks.storage = [](const StorageRequest& request) {
    Ref<Storage> storage = Storage::allocate(request.bytes);
    *static_cast<std::complex<float>*>(storage->data()) = {1, 2};
    return storage;
  };
  std::string program = tensorPickle(1, "K\x00"s, "K\x01", "K\x01");
  program.replace(program.find("FloatStorage"), 12, "ComplexFloatStorage");
  program.insert(program.rfind("tR."),
                 "}X\x04\x00\x00\x00"
                 "conj\x88s"s);
  Tensor tensor = unpickle(program, hooks).toTensor();
  EXPECT_EQ(tensor.data<std::complex<float>>()[0], std::complex<float>(1, -2));
}

}  // namespace
}  // namespace wick::pickle_test

// What pickles say that is wrong, piece by piece, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "core/error.h"
#include "core/function_schema.h"
#include "serialization/source_origins.h"
#include "serialization/unpickler.h"
#include "tests/serialization/data_files.h"

namespace wick::pickle_refusals_test {
namespace {

using testing::HasSubstr;

// Pieces of pickles.
std::string number(int32_t n) {
  std::string text = "J0000";
  std::memcpy(text.data() + 1, &n, sizeof n);
  return text;
}
std::string real(double d) {
  uint64_t bits = 0;
  std::memcpy(&bits, &d, sizeof d);
  std::string text = "G";
  for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(bits >> shift & 0xff);
  return text;
}
std::string word(const std::string& s) {
  return "X" + number(static_cast<int32_t>(s.size())).substr(1) + s;
}
std::string tuple(const std::vector<std::string>& parts) {
  std::string all = "(";
  for (const std::string& part : parts) all += part;
  return all + "t";
}
std::string list(const std::vector<std::string>& parts) {
  std::string all = "](";
  for (const std::string& part : parts) all += part;
  return all + "e";
}
std::string global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
std::string call(const std::string& module, const std::string& name,
                 const std::vector<std::string>& arguments) {
  return global(module, name) + tuple(arguments) + "R";
}
std::string storage(const std::string& type, int32_t count) {
  return tuple({word("storage"), global("torch", type + "Storage"), word("0"), word("cpu"),
                number(count)}) +
         "Q";
}
const std::string kFalse = "\x89", kNone = "N", kDict = "}";
std::string tensor(const std::string& type, const std::vector<std::string>& sizes,
                   const std::vector<std::string>& strides, int32_t count = 6) {
  return call("torch._utils", "_rebuild_tensor_v2",
              {storage(type, count), number(0), tuple(sizes), tuple(strides), kFalse, kDict});
}
std::string program(const std::string& body) {
  return "\x80\x02" + body + ".";
}

UnpicklerHooks plainHooks() {
  UnpicklerHooks hooks;
  hooks.storage = [](const StorageRequest& request) {
    const Ref<Storage> zeros = Storage::allocate(request.bytes);
    std::memset(zeros->data(), 0, request.bytes);
    return zeros;
  };
  hooks.parse_type = parseSchemaType;
  return hooks;
}

std::string errorOf(const std::string& text, const UnpicklerHooks& hooks = plainHooks()) {
  try {
    Unpickler(std::as_bytes(std::span(text.data(), text.size())), "test", hooks).load();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

struct Case {
  std::string body;
  const char* message;
};

void expectRefusals(const std::vector<Case>& cases, const UnpicklerHooks& hooks = plainHooks()) {
  for (const Case& c : cases) {
    EXPECT_THAT(errorOf(program(c.body), hooks), HasSubstr(c.message))
        << testing::PrintToString(c.body);
  }
}

TEST(PickleRefusalsTest, SparseTensors) {
  const auto sparse = [](const std::vector<std::string>& arguments) {
    return call("torch._utils", "_rebuild_sparse_tensor", arguments);
  };
  const std::string indices = tensor("Long", {number(1), number(2)}, {number(2), number(1)});
  const std::string values = tensor("Float", {number(2)}, {number(1)});
  const std::string coo = number(1), sizes = tuple({number(4)});
  const std::string whole = sparse({coo, tuple({indices, values, sizes})});
  expectRefusals({
      {whole, "no error"},
      {call("torch.serialization", "_get_layout", {word("torch.mkldnn")}),
       "layout torch.mkldnn is not supported"},
      {call("torch.serialization", "_get_layout", {number(3)}), "layout int is not supported"},
      {sparse({word("coo"), kNone}), "a sparse tensor is rebuilt without a sparse layout"},
      {sparse({number(0), kNone}), "a sparse tensor is rebuilt without a sparse layout"},
      {sparse({coo, number(3)}), "a sparse tensor is rebuilt from int"},
      {sparse({coo, tuple({indices, values})}), "a sparse tensor is rebuilt from 2 values"},
      {sparse({coo, tuple({indices, number(1), sizes})}), "a part of a sparse tensor is int"},
      {sparse({coo, tuple({indices, whole, sizes})}), "a part of a sparse tensor is not dense"},
      {sparse({coo, tuple({indices, values, tuple({number(4), number(4)})})}), "a sparse tensor: "},
  });
}

TEST(PickleRefusalsTest, QuantizedTensors) {
  const auto quantized = [](const std::string& memory, int32_t offset, const std::string& how) {
    return call(
        "torch._utils", "_rebuild_qtensor",
        {memory, number(offset), tuple({number(6)}), tuple({number(1)}), how, kFalse, kDict});
  };
  const std::string bytes = storage("QUInt8", 6);
  const std::string affine = global("torch", "per_tensor_affine"),
                    channels = global("torch", "per_channel_affine");
  const std::string each = tuple({affine, real(0.5), number(3)});
  const auto scales = [](const std::string& type, int32_t count) {
    return tensor(type, {number(count)}, {number(1)});
  };
  expectRefusals({
      {quantized(bytes, 0, each), "no error"},
      {call("torch._utils", "_rebuild_qtensor", {bytes, number(0)}),
       "a quantized tensor is rebuilt from 2 values"},
      {quantized(storage("Float", 6), 0, each),
       "a quantized tensor is rebuilt without a storage of a quantized dtype"},
      {quantized(bytes, 0, tuple({})), "a quantized tensor has no scheme"},
      {quantized(storage("QUInt4x2", 2), 0, each),
       "a tensor of quint4x2 with 6 elements does not fit its storage"},
      {quantized(storage("QUInt4x2", 3), 1, each),
       "a tensor of quint4x2 with 6 elements does not fit its storage"},
      {quantized(bytes, 0, tuple({channels, scales("Double", 6), scales("Float", 6), number(0)})),
       "a tensor quantized per_channel_affine has zero points of another kind"},
      {quantized(bytes, 0, tuple({channels, scales("Double", 5), scales("Long", 5), number(0)})),
       "a quantized tensor of sizes [6] has 5 scales along dimension 0"},
      {quantized(bytes, 0, tuple({affine, number(1)})),
       "a quantized tensor has no parameters that fit its scheme"},
      {quantized(bytes, 0, tuple({channels, scales("Double", 6), scales("Long", 5), number(0)})),
       "quantization per channel: "},
  });
}

TEST(PickleRefusalsTest, TensorsAndTheirKinds) {
  expectRefusals({
      {tensor("Float", {number(INT32_MAX)}, {number(0)}),
       "a tensor of sizes [2147483647] repeats the elements of its storage too often"},
      {call("torch._utils", "_rebuild_parameter", {number(1), kFalse, kDict}),
       "a parameter is rebuilt without a tensor and a flag"},
      {call("torch._tensor", "_rebuild_from_type_v2", {number(1), number(2), tuple({}), kNone}),
       "a tensor is rebuilt from an unknown class"},
      {call("torch", "device", {number(1)}), "torch.device without a name and an index"},
      {call("torch", "device", {word("nonsense")}), "nonsense"},
      {call("torch.jit._pickle", "build_intlist", {list({word("a")})}), "a list of int holds str"},
      {call("torch.jit._pickle", "restore_type_tag", {number(1), word("List[int]")}),
       "the type tag 'List[int]' is on int"},
  });
}

TEST(PickleRefusalsTest, EnumsAndClasses) {
  UnpicklerHooks hooks = plainHooks();
  const std::vector<std::pair<std::string, IValue>> members = {{"RED", IValue(1)},
                                                               {"BLUE", IValue(2)}};
  const auto color = std::make_shared<EnumType>("__torch__.Color", types::Int(), members);
  hooks.resolve_type = [&](const std::string&) -> TypePtr { return color; };
  const std::string name = global("__torch__", "Color");
  expectRefusals(
      {
          {name + number(2) + "R", "no error"},
          {name + number(3) + "R", "enum __torch__.Color has no member with the value 3"},
          {name + tuple({}) + "\x81", "__torch__.Color is not a class that can be instantiated"},
      },
      hooks);
}

TEST(PickleRefusalsTest, WorkIsInProportionToTheLength) {
  // One list that many calls go over.
  std::string body = "](";
  for (int i = 0; i < 100000; ++i) body += "K\x01";
  body += "eq" + std::string(1, '\0') + global("torch.jit._pickle", "build_intlist") + "q\x01";
  for (int i = 0; i < 1000; ++i) body += "h\x01h" + std::string(1, '\0') + "\x85R0";
  EXPECT_THAT(errorOf(program(body)),
              HasSubstr("the pickle asks for more work than one of its length may"));
}

std::string marksError(const std::string& body, const ArchiveLimits& limits = {}) {
  try {
    readMarks(bytesOf(program(body)), "marks", limits);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

// Where the lines of an archive come from: (format, texts, ((offset, (source, start, end), tag), …)).
TEST(PickleRefusalsTest, PlacesOfSources) {
  const std::string format = word("FORMAT_WITH_STRING_TABLE");
  const std::string texts = tuple({word("x = 1\n"), word("net.py")});
  const auto source = [](const std::string& lines, const std::string& file,
                         const std::string& before) {
    return tuple({lines, file, before});
  };
  const std::string fine = source(list({number(0)}), number(1), number(0));
  const auto row = [](int32_t offset, const std::string& place) {
    return tuple({number(offset), place, number(0)});
  };
  const auto marks = [&](const std::vector<std::string>& rows) {
    return tuple({format, texts, tuple(rows)});
  };
  const auto of = [&](const std::string& made) {
    return marks({row(0, tuple({made, number(0), number(5)}))});
  };
  const std::string place = tuple({fine, number(0), number(5)});
  for (const Case& c : std::vector<Case>{
           {marks({row(0, place), row(7, place)}), "no error"},
           {number(5), "marks: expected a tuple, got int"},
           {tuple({format, texts}), "marks: expected a tuple of 3, got 2"},
           {marks({row(7, place), row(0, place)}), "marks: the marks are not in order"},
           {marks({row(-1, place)}), "marks: expected a number that is not below zero"},
           {of(source(number(0), number(1), number(0))), "marks: expected a list of lines"},
           {of(source(list({number(2)}), number(1), number(0))),
            "marks: a line that is not in the table"},
           {of(source(list({number(0)}), number(1), "\x8a\x05" + std::string(4, '\0') + "\x01")),
            "marks: a line number is too large"},
       }) {
    EXPECT_THAT(marksError(c.body), HasSubstr(c.message)) << testing::PrintToString(c.body);
  }
  ArchiveLimits limits;
  limits.base_memory = 20000;
  const std::string long_line = tuple({word(std::string(1000, 'x')), word("net.py")});
  const std::vector<std::string> again(100, number(0));
  EXPECT_THAT(marksError(tuple({format, long_line,
                                tuple({row(0, tuple({source(list(again), number(1), number(0)),
                                                     number(0), number(5)}))})}),
                         limits),
              HasSubstr("marks: its sources take more memory than a file of its size may"));
}

}  // namespace
}  // namespace wick::pickle_refusals_test

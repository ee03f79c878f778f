// Files whose tensors were on other devices, on a machine without a GPU and with a driver that is a fake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/device_backend.h"
#include "core/error.h"
#include "ir/graph.h"
#include "ir/printer.h"
#include "runtime/device_moves.h"
#include "runtime/module_builder.h"
#include "serialization/export.h"
#include "serialization/stored_values.h"
#include "serialization/tensor_files.h"
#include "serialization/torch_save.h"
#include "serialization/unpickler.h"
#include "tests/cuda/fake_driver.h"
#include "tests/error_text.h"
#include "tests/serialization/import_testing.h"
#include "wick.h"

namespace wick::devices_test {
namespace {

using cuda::FakeDriver;
using testing::HasSubstr;
using testing_errors::errorOf;
using namespace std::string_literals;

constexpr Device kCpu, kFirst{DeviceType::CUDA, 0}, kSecond{DeviceType::CUDA, 1};
constexpr Device kMeta{DeviceType::Meta, -1};

// A text as pickles have it.
std::string text(const std::string& words) {
  return "X" + std::string(1, static_cast<char>(words.size())) + std::string(3, '\0') + words;
}

// The bytes of pickles with another device in place of the CPU.
std::string movedPickle(std::string bytes, const std::string& device) {
  for (size_t at = 0; (at = bytes.find(text("cpu"), at)) != std::string::npos;) {
    bytes.replace(at, text("cpu").size(), text(device));
    at += text(device).size();
  }
  return bytes;
}

// An archive beside this test as if its tensors had been saved on a device.
std::string savedOn(const std::string& device, const std::string& file) {
  ArchiveReader archive(bytesOf(contentsOf(file)), file);
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "moved");
  for (const std::string& record : archive.records()) {
    const std::string found(archive.read(record).text());
    writer.write(record, record.ends_with(".pkl") ? movedPickle(found, device) : found);
  }
  writer.finish();
  return out;
}

Module moduleFrom(const std::string& archive, const DeviceMap& devices = {}) {
  LoadOptions options;
  options.devices = devices;
  return loadModule(bytesOf(archive), "moved.pt", options);
}
Module moduleOn(const std::string& device, const DeviceMap& devices = {}) {
  return moduleFrom(savedOn(device, "small_module.pt"), devices);
}
std::string placeOfAmount(const Module& module) {
  return module.attr("amount").toTensor().device().str();
}

DeviceMap named(const std::string& name, Device device) {
  return DeviceMap(std::map<std::string, Device>{{name, device}});
}

// ---- the map ----

TEST(DeviceMapTest, WithoutAMapWhatIsNotHereGoesToTheCpu) {
  const DeviceMap map;
  for (const char* name : {"cpu", "cuda", "cuda:0", "cuda:3", "mps", "mps:0", "xla:0", "hpu",
                           "privateuseone", "npu:7"}) {
    EXPECT_TRUE(map.find(name) && map.find(name)->isCpu()) << name;
  }
  EXPECT_EQ(map.find("meta"), kMeta);
  for (const std::string& name : {""s, "gpu"s, "cuda:"s, "cuda:x"s, "cuda:-1"s, "cuda:128"s,
                                  "xla:128"s, "xla:0:0"s, "cuda:0 "s, "cpu\0"s, "CPU"s}) {
    EXPECT_EQ(map.find(name), std::nullopt) << name;
  }
}

TEST(DeviceMapTest, WithoutAMapWhatIsHereStays) {
  FakeDriver driver;
  const DeviceMap map;
  EXPECT_EQ(map.find("cuda:1"), kSecond);
  EXPECT_EQ(map.find("cuda"), (Device{DeviceType::CUDA, -1}));
  EXPECT_EQ(map.find("cuda:2"), kCpu);
  EXPECT_EQ(map.find("mps"), kCpu);
}

TEST(DeviceMapTest, OneDeviceTakesAllButMeta) {
  FakeDriver driver;
  const DeviceMap map = kSecond;
  for (const char* name : {"cpu", "cuda:0", "cuda:3", "mps", "xla:0"}) {
    EXPECT_EQ(map.find(name), kSecond) << name;
  }
  EXPECT_EQ(map.find("meta"), kMeta);
  EXPECT_EQ(map.find("gpu"), std::nullopt);
}

TEST(DeviceMapTest, TablesAndFunctionsLeaveOthers) {
  FakeDriver driver;
  const DeviceMap table({{"cuda:3", kSecond}, {"fpga:0", kFirst}, {"strange", kFirst}});
  EXPECT_EQ(table.find("cuda:3"), kSecond);
  EXPECT_EQ(table.find("fpga:0"), kFirst);
  EXPECT_EQ(table.find("strange"), kFirst);
  EXPECT_EQ(table.find("cuda:0"), kFirst);
  EXPECT_EQ(table.find("cuda:2"), kCpu);
  const DeviceMap function = [](const std::string& name) -> std::optional<Device> {
    if (name.starts_with("cuda")) return Device();
    return std::nullopt;
  };
  EXPECT_EQ(function.find("cuda:0"), kCpu);
  EXPECT_EQ(function.find("xla:0"), kCpu);
  EXPECT_EQ(function.find("strange"), std::nullopt);
  EXPECT_EQ(DeviceMap(DeviceMap::Function()).find("cuda:0"), kFirst);
}

TEST(DeviceMapTest, ADeviceThatIsNotHereIsRefused) {
  EXPECT_NE(errorOf([] { DeviceMap(kFirst).check(); }), "no error");
  FakeDriver driver;
  EXPECT_EQ(errorOf([] { DeviceMap(kSecond).check(); }), "no error");
  const Device fifth{DeviceType::CUDA, 5};
  EXPECT_THAT(errorOf([&] { DeviceMap(fifth).check(); }), HasSubstr("there are 2 such devices"));
  EXPECT_THAT(errorOf([&] { named("cpu", fifth).find("cpu"); }), HasSubstr("cuda:5"));
}

// ---- modules ----

TEST(SavedDevicesTest, ModulesOfAGpuRunOnTheCpu) {
  const Tensor x = Tensor::from({1.f, 2.f}, DimVector{2});
  const IValue expected = loadModule(dataPath("small_module.pt")).forward({x});
  for (const char* name : {"cuda:0", "cuda:3", "mps:0", "xla:0", "hpu:0", "privateuseone:0"}) {
    const Module module = moduleOn(name);
    EXPECT_EQ(placeOfAmount(module), "cpu") << name;
    EXPECT_TRUE(module.forward({x}).equals(expected)) << name;
  }
  const std::string large = savedOn("cuda:0", "module.pt");
  EXPECT_TRUE(moduleFrom(large)
                  .forward({x.reshape(DimVector{1, 2})})
                  .equals(loadModule(dataPath("module.pt")).forward({x.reshape(DimVector{1, 2})})));
  const std::string constants = savedOn("cuda:0", "constants.pt");
  EXPECT_TRUE(
      moduleFrom(constants).forward({x}).equals(loadModule(dataPath("constants.pt")).forward({x})));
}

TEST(SavedDevicesTest, ModulesGoWhereTheMapSays) {
  FakeDriver driver;
  EXPECT_EQ(placeOfAmount(moduleOn("cuda:1")), "cuda:1");
  EXPECT_EQ(placeOfAmount(moduleOn("cuda:3")), "cpu");
  EXPECT_EQ(placeOfAmount(moduleOn("cuda:1", kCpu)), "cpu");
  EXPECT_EQ(placeOfAmount(moduleOn("cpu", kSecond)), "cuda:1");
  EXPECT_EQ(placeOfAmount(moduleOn("cuda:3", named("cuda:3", kFirst))), "cuda:0");
  const Module module = moduleOn("cuda:0");
  EXPECT_TRUE(
      moveTo(module.attr("amount").toTensor(), Device()).isSame(module.attr("amount").toTensor()) ==
      false);
  EXPECT_EQ(module.attr("steps").toTensor().device(), kFirst);
  EXPECT_TRUE(IValue(moveTo(module.attr("amount").toTensor().detach(), Device()))
                  .equals(IValue(
                      loadModule(dataPath("small_module.pt")).attr("amount").toTensor().detach())));
  EXPECT_TRUE(module.attr("amount").toTensor().requiresGrad());
}

TEST(SavedDevicesTest, ConstantsOfCodeGoThereButNumbersStay) {
  FakeDriver driver;
  // Two have dimensions, one has none, as the numbers of traces.
  const auto places = [](const std::string& on, const DeviceMap& devices) {
    const Module module = moduleFrom(savedOn(on, "constants.pt"), devices);
    std::multiset<std::string> found;
    for (const IValue& constant : constantTensors(*compilationUnitOf(module))) {
      const Tensor t = constant.toTensor();
      found.insert(std::to_string(t.dim()) + " " + t.device().str());
    }
    return found;
  };
  using Places = std::multiset<std::string>;
  EXPECT_EQ(places("cpu", kSecond), (Places{"0 cpu", "1 cuda:1", "2 cuda:1"}));
  EXPECT_EQ(places("cuda:0", kSecond), (Places{"0 cuda:1", "1 cuda:1", "2 cuda:1"}));
  EXPECT_EQ(places("cuda:0", kCpu), (Places{"0 cpu", "1 cpu", "2 cpu"}));
}

// A device that no text names.
TEST(SavedDevicesTest, GarbageIsALoadErrorThatShowsIt) {
  EXPECT_THAT(errorOf([] { moduleOn("nothing:0"); }),
              HasSubstr("storage '0' was saved on 'nothing:0', expected a device"));
  EXPECT_THAT(errorOf([] { moduleOn("nothing:0", kCpu); }), HasSubstr("was saved on 'nothing:0'"));
  EXPECT_THROW(moduleOn("cuda:999"), LoadError);
  EXPECT_EQ(placeOfAmount(moduleOn("nothing:0", named("nothing:0", kCpu))), "cpu");
  EXPECT_THROW(loadValue(bytesOf(savedOn("?", "value.pt")), "value"), LoadError);
}

TEST(SavedDevicesTest, WhatTheMapRaisesIsNotTheFiles) {
  const DeviceMap raises = [](const std::string&) -> std::optional<Device> {
    throw RuntimeError("no idea", "RuntimeError");
  };
  EXPECT_THROW(moduleOn("cuda:0", raises), RuntimeError);
  EXPECT_THROW(moduleOn("cuda:0", named("cuda:0", kFirst)), RuntimeError);
  EXPECT_THROW(moduleOn("cpu", kFirst), RuntimeError);
  EXPECT_THROW(loadValue(dataPath("value.pt"), {}, kFirst), RuntimeError);
  EXPECT_THROW(loadTensors(dataPath("state_dict.pt"), {}, kFirst), RuntimeError);
}

std::string withCode(const std::string& line) {
  const std::string record = "code/__torch__.py";
  return changed({{record, replaced(sourceOf(record), "    return torch.add(x, amount)",
                                    line + "    return torch.add(x, amount)")}});
}

TEST(SavedDevicesTest, DevicesInTheCodeFollowTheMap) {
  const std::string code =
      "    x = torch.to(x, torch.device(\"cuda:0\"), 6, False, False, None)\n"
      "    x = torch.add(x, torch.zeros([2], dtype=6, layout=None, device=torch.device(\"xla:1\"), "
      "pin_memory=False))\n"
      "    x = torch.to(torch.cuda(x), torch.device(\"cuda\", 3), 6, False, False, None)\n";
  const std::string archive = withCode(code);
  const Tensor x = Tensor::from({1.f, 2.f}, DimVector{2});
  const Module here = moduleFrom(archive);
  EXPECT_TRUE(here.forward({x}).equals(loadModule(dataPath("small_module.pt")).forward({x})));
  const auto graphOf = [](const Module& module) {
    return printGraph(*module.method("shift").graph());
  };
  EXPECT_THAT(graphOf(here), testing::Not(HasSubstr("cuda")));
  FakeDriver driver;
  EXPECT_THAT(
      graphOf(moduleFrom(archive)),
      testing::AllOf(HasSubstr("\"cuda:0\""), HasSubstr("\"cpu\""), HasSubstr("aten::cuda")));
  EXPECT_THAT(
      graphOf(moduleFrom(archive, kSecond)),
      testing::AllOf(HasSubstr("\"cuda:1\""), testing::Not(HasSubstr("\"cuda:0\"")),
                     testing::Not(HasSubstr("\"cpu\"")), testing::Not(HasSubstr("aten::cuda"))));
  EXPECT_THAT(graphOf(moduleFrom(archive, named("cuda:0", kSecond))), HasSubstr("\"cuda:1\""));
  // Only a computed text, or one that names no device, waits for the run.
  const Module raises = moduleFrom(
      withCode("    x = torch.to(x, torch.device(\"nothing\"), 6, False, False, None)\n"));
  EXPECT_THAT(errorOf([&] { raises.forward({x}); }), HasSubstr("got 'nothing'"));
}

TEST(SavedDevicesTest, DefaultsConstantsAndAttributesFollowTheMap) {
  const std::string record = "code/__torch__.py";
  std::string source =
      replaced(sourceOf(record), "  def shift(self: __torch__.Shifter,\n    x: Tensor)",
               "  def shift(self: __torch__.Shifter,\n    x: Tensor,\n    where: "
               "Device=torch.device(\"cuda:0\"))");
  source = replaced(source, "  steps : Tensor\n",
                    "  steps : Tensor\n  place : Final[Device] = torch.device(\"cuda:1\")\n");
  const Module module = moduleFrom(changed({{record, source}}));
  EXPECT_EQ(module.method("shift").schema().arguments()[2].default_value->toDevice(), kCpu);
  EXPECT_EQ(module.type()->findConstant("place")->toDevice(), kCpu);
  EXPECT_THROW(moduleFrom(changed({{record, replaced(source, "cuda:1", "nothing")}})),
               CompileError);

  ModuleBuilder builder("Net");
  builder.registerAttribute("place", types::Device(), IValue(kSecond));
  builder.define("def forward(self) -> Device:\n    return self.place\n");
  const std::string saved = saveModuleToString(builder.build());
  EXPECT_EQ(moduleFrom(saved).forward({}).toDevice(), kCpu);
  EXPECT_EQ(moduleFrom(saved, named("cuda:1", kMeta)).forward({}).toDevice(), kMeta);
  FakeDriver driver;
  EXPECT_EQ(moduleFrom(saved).forward({}).toDevice(), kSecond);
}

// A tensor of two float32 in storage 0.
std::string tensorOn(const std::string& device, const std::string& offset = "K\x00"s) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" +
         text("0") + text(device) + "K\x02tQ" + offset + "K\x01\x85K\x01\x85\x89" +
         "ccollections\nOrderedDict\n)RtR";
}

// __setstate__ sees tensors where they belong, and memory that was shared stays so.
TEST(SavedDevicesTest, SharedMemoryStaysShared) {
  const std::string holder =
      "class Holder(Module):\n  __parameters__ = []\n  __buffers__ = []\n  held : Tensor\n  place "
      ": Device\n"
      "  def __getstate__(self: __torch__.Holder) -> Tensor:\n    return self.held\n"
      "  def __setstate__(self: __torch__.Holder,\n    state: Tensor) -> NoneType:\n"
      "    self.held = state\n    self.place = ops.prim.device(state)\n    return None\n";
  const std::string whole =
      "class Shifter(Module):\n  __parameters__ = []\n  __buffers__ = []\n  before : Tensor\n"
      "  holder : __torch__.Holder\n  after : Tensor\n";
  const auto archive = [&](const std::string& device) {
    return changed(
        {{"code/__torch__.py", holder + whole},
         {"code/__torch__.py.debug_pkl", ""},
         {"data.pkl",
          "\x80\x02"
          "c__torch__\nShifter\n)\x81}(" +
              text("before") + tensorOn(device) + text("holder") + "c__torch__\nHolder\n)\x81" +
              tensorOn(device) + "b" + text("after") + tensorOn(device, "K\x01") + "ub."}});
  };
  FakeDriver driver;
  for (const char* device : {"cpu", "cuda:1"}) {
    const Module module = moduleFrom(archive(device));
    const Tensor before = module.attr("before").toTensor(), after = module.attr("after").toTensor();
    EXPECT_EQ(before.device().str(), device);
    EXPECT_TRUE(before.sharesStorage(after));
    EXPECT_TRUE(before.sharesStorage(module.submodule("holder").attr("held").toTensor()));
    EXPECT_EQ(module.submodule("holder").attr("place").toDevice().str(), device);
  }
}

// ---- values of torch.save ----

TEST(SavedDevicesTest, BothFormsOfTorchSave) {
  const std::string expected = loadValue(dataPath("value.pt")).repr();
  const std::string legacy = movedPickle(contentsOf("value_legacy.pt"), "cuda:0");
  const std::string archive = savedOn("cuda:0", "value.pt");
  for (const std::string& file : {legacy, archive, savedOn("mps", "value.pt")}) {
    EXPECT_EQ(loadValue(bytesOf(file), "value").repr(), expected);
  }
  FakeDriver driver;
  for (const std::string& file : {legacy, archive}) {
    const auto at = [&](const IValue& value, const char* key) {
      return value.toDict().find(IValue(key))->toTensor();
    };
    const IValue there = loadValue(bytesOf(file), "value");
    EXPECT_EQ(at(there, "tensor").device(), kFirst);
    EXPECT_TRUE(at(there, "view").sharesStorage(at(there, "tensor")));
    EXPECT_EQ(at(there, "parameter").device(), kFirst);
    // A value, not the place of one.
    EXPECT_EQ(there.toDict().find(IValue("device"))->toDevice(), kSecond);
    EXPECT_EQ(at(loadValue(bytesOf(file), "value", {}, kCpu), "tensor").device(), kCpu);
    EXPECT_EQ(at(loadValue(bytesOf(file), "value", {}, kMeta), "half").device(), kMeta);
  }
}

TEST(SavedDevicesTest, FilesWithoutDevicesCountAsTheCpus) {
  FakeDriver driver;
  const std::string path = testing::TempDir() + "/devices.safetensors";
  saveTensors({{"a", Tensor::from({1.f, 2.f}, DimVector{2})}}, path);
  EXPECT_EQ(loadTensors(path)[0].second.device(), kCpu);
  EXPECT_EQ(loadTensors(path, {}, kSecond)[0].second.device(), kSecond);
  EXPECT_EQ(loadTensors(path, {}, named("cpu", kFirst))[0].second.device(), kFirst);
}

IValue unpickled(const std::string& pickle, const DeviceMap& devices = {}) {
  UnpicklerHooks hooks;
  hooks.storage = [](const StorageRequest& request) { return Storage::allocate(request.bytes); };
  hooks.device = [&](const std::string& name) { return devices.find(name); };
  return Unpickler(std::as_bytes(std::span(pickle.data(), pickle.size())), "test", hooks).load();
}

TEST(SavedDevicesTest, FormsOfOtherDevices) {
  const std::string meta =
      "\x80\x02"
      "ctorch._utils\n_rebuild_meta_tensor_no_storage\n("
      "ctorch\nfloat16\nK\x02K\x03\x86K\x03K\x01\x86\x88tR.";
  const Tensor made = unpickled(meta).toTensor();
  EXPECT_EQ(made.device(), kMeta);
  EXPECT_EQ(made.describe(), "float16[2, 3] on meta");
  EXPECT_TRUE(made.requiresGrad());
  const std::string xla =
      "\x80\x02"
      "ctorch._utils\n_rebuild_device_tensor_from_cpu_tensor\n(" +
      tensorOn("cpu") + "ctorch\nfloat32\n" + text("xla:0") + "\x88tR.";
  EXPECT_EQ(unpickled(xla).toTensor().device(), kCpu);
  EXPECT_THROW(unpickled(replaced(xla, "float32", "float16")), LoadError);
  EXPECT_THROW(unpickled(replaced(xla, "xla:0", "xla:!")), LoadError);
  EXPECT_THROW(unpickled(replaced(meta, "\x86\x88", "\x86K\x01")), LoadError);
  EXPECT_THROW(unpickled(replaced(meta, "float16", "qint8")), LoadError);
  EXPECT_THROW(unpickled(replaced(meta, "K\x02K\x03\x86", "K\x02\x85")), LoadError);
  // Sizes that no memory has.
  const std::string large = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
  EXPECT_THROW(unpickled(replaced(meta, "K\x02K\x03\x86", large + large + "\x86")), LoadError);
  FakeDriver driver;
  EXPECT_EQ(unpickled(xla, named("xla:0", kSecond)).toTensor().device(), kSecond);
}

// Tensors of XLA are saved as arrays of NumPy.
TEST(SavedDevicesTest, TensorsOfXlaAreArrays) {
  for (const char* file : {"xla.pt", "xla_protocol4.pt"}) {
    const IValue value = loadValue(dataPath(file));
    const auto tensor = [&](const char* name) { return value.toDict().find(name)->toTensor(); };
    EXPECT_EQ(tensor("weight").describe(), "float32[2, 3]");
    EXPECT_TRUE(tensor("weight").requiresGrad());
    EXPECT_FALSE(tensor("columns").requiresGrad());
    EXPECT_EQ(IValue(tensor("columns")).repr(), "tensor([[0., 1., 2.],\n        [3., 4., 5.]])");
    EXPECT_EQ(tensor("columns").strides()[0], 1);
    EXPECT_EQ(IValue(tensor("bfloat16")).repr(),
              "tensor([ 1.5000, -2.0000], dtype=torch.bfloat16)");
    ASSERT_EQ(tensor("bytes").describe(), "uint8[256]");
    for (int64_t i = 0; i < 256; ++i) EXPECT_EQ(tensor("bytes").data<uint8_t>()[i], i);
    EXPECT_EQ(IValue(tensor("flags")).repr(), "tensor([ True, False])");
    EXPECT_EQ(IValue(tensor("number")).repr(), "tensor(7)");
    EXPECT_EQ(IValue(tensor("complex")).repr(), "tensor([1.-2.j], dtype=torch.complex128)");
    EXPECT_EQ(tensor("empty").describe(), "float16[0, 3]");
    FakeDriver driver;
    const IValue there = loadValue(dataPath(file), {}, named("xla:0", kSecond));
    EXPECT_EQ(there.toDict().find("weight")->toTensor().device(), kSecond);
  }
  EXPECT_THAT(errorOf([] { loadValue(dataPath("array.pt")); }),
              HasSubstr("a dict holds a NumPy array"));
}

TEST(SavedDevicesTest, ArraysThatMakeNoSenseAreRefused) {
  const std::string dtype =
      "cnumpy\ndtype\n" + text("f4") + "\x89\x88\x87R(K\x03" + text("<") + "NNNtb";
  const std::string array =
      "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
      "C\x01"
      "b\x87R"s;
  const std::string state = "(K\x01K\x01K\x02\x86" + dtype + "\x89" +
                            "C\x08"
                            "abcdefghtb";
  const std::string rebuilt =
      "\x80\x04"
      "ctorch._utils\n_rebuild_device_tensor_from_numpy\n(" +
      array + state + "ctorch\nfloat32\n" + text("xla:0") + "\x89tR.";
  EXPECT_EQ(unpickled(rebuilt).toTensor().describe(), "float32[1, 2]");
  const std::string wide = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x3f";
  const std::pair<std::string, std::string> changes[] = {
      {"K\x02\x86", "K\x03\x86"},    // more elements than bytes
      {"K\x02\x86", wide + "\x86"},  // sizes that no memory has
      {"K\x01K\x02\x86", "K\0"s + wide + "\x86"},
      {"K\x01K\x02\x86", wide + wide + "\x86"},
      {"K\x02\x86", "J\xff\xff\xff\xff\x86"},
      {text("f4"), text("O8")},  // objects
      {text("f4"), text("f8")},
      {text("<"), text(">")},
      {"cnumpy\nndarray\n", "ctorch\nTensor\n"},
      {state, ""},             // no elements
      {state, state + state},  // elements twice
      {state, text("x") + "b"},
      {dtype, "N"},
      {"float32", "qint8"},
      {text("xla:0"), text("xla:!")},
      {text("xla:0"), "K\x01"},
      {array + state, "N"},
      {array + state, tensorOn("cpu")},
      {array + state,
       "C\x02"
       "ab"},
  };
  for (const auto& [from, to] : changes) {
    EXPECT_THROW(unpickled(replaced(rebuilt, from, to)), LoadError) << from << " as " << to;
  }
  // Bytes and arrays are no values, in whatever way they come.
  const std::string bytes = "c_codecs\nencode\n" + text("b") + text("latin1") + "\x86R";
  const std::string from_type = "ctorch._tensor\n_rebuild_from_type_v2\n(";
  for (const std::string& program :
       {"\x80\x02" + bytes + ".", "\x80\x02" + array + ".", "\x80\x02" + array + state + ".",
        "\x80\x02]" + bytes + "a.", "\x80\x02}" + text("k") + bytes + "s.",
        "\x80\x02}" + bytes + text("k") + "s.", "\x80\x02" + bytes + "\x85.",
        "\x80\x02" + dtype + ".", "\x80\x02]" + bytes + "b.",
        "\x80\x02" + from_type + "c_codecs\nencode\nctorch\nTensor\n" + text("b") + text("latin1") +
            "\x86NtR.",
        "\x80\x02"
        "c_codecs\nencode\n" +
            text("\xe2\x82\xac") + text("latin1") + "\x86R0N.",
        "\x80\x02"
        "c_codecs\nencode\n" +
            text("\xc3") + text("latin1") + "\x86R0N.",
        "\x80\x02"
        "c_codecs\nencode\n" +
            text("a") + text("utf-8") + "\x86R0N."}) {
    EXPECT_THROW(unpickled(program), LoadError) << program;
  }
}

// ---- saving again ----

TEST(SavedDevicesTest, SavingWritesTheDevicesThatTensorsHave) {
  std::string value, module;
  {
    FakeDriver driver;
    const Tensor x = Tensor::from({1.f, 2.f, 3.f}, DimVector{3});
    const Tensor first = moveTo(x, kFirst);
    value = saveValueToString(makeTuple({first, moveTo(x, kSecond), x, first.narrow(0, 1, 2),
                                         Tensor::zeros(DimVector{2}, DType::Long, kMeta)}));
    const IValue again = loadValue(bytesOf(value), "value");
    EXPECT_EQ(again.elements()[0].toTensor().device(), kFirst);
    EXPECT_EQ(again.elements()[1].toTensor().device(), kSecond);
    EXPECT_TRUE(again.elements()[3].toTensor().sharesStorage(again.elements()[0].toTensor()));
    EXPECT_EQ(saveValueToString(again), value);
    module = saveModuleToString(moduleOn("cuda:1"));
    EXPECT_EQ(placeOfAmount(moduleFrom(module)), "cuda:1");
    EXPECT_EQ(saveModuleToString(moduleFrom(module)), module);
  }
  const IValue here = loadValue(bytesOf(value), "value");
  for (size_t i : {0, 1, 2}) {
    EXPECT_EQ(here.elements()[i].toTensor().select(0, 2).item<float>(), 3) << i;
  }
  EXPECT_EQ(here.elements()[4].toTensor().describe(), "int64[2] on meta");
  EXPECT_THAT(value, HasSubstr("_rebuild_meta_tensor_no_storage"));
  EXPECT_EQ(saveModuleToString(moduleFrom(module)),
            saveModuleToString(loadModule(dataPath("small_module.pt"))));
}

TEST(SavedDevicesTest, MetaStaysMeta) {
  const Module module = moduleOn("meta", kCpu);
  EXPECT_EQ(module.attr("amount").toTensor().describe(), "float32[2] on meta");
  // The records are not read: PyTorch writes none for such tensors.
  const std::string saved = saveModuleToString(module);
  EXPECT_EQ(ArchiveReader(bytesOf(saved), "meta").sizeOf("data/0"), 0u);
  EXPECT_EQ(placeOfAmount(moduleFrom(saved)), "meta");
  EXPECT_EQ(saveModuleToString(moduleFrom(saved)), saved);
  EXPECT_EQ(placeOfAmount(moduleOn("cuda:0", kMeta)), "meta");
}

}  // namespace
}  // namespace wick::devices_test

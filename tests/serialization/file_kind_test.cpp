// Files of other kinds: what they are, and what each door says about them.
#include "serialization/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/budget.h"
#include "serialization/archive_writer.h"
#include "serialization/npz.h"
#include "serialization/safetensors.h"
#include "serialization/stored_values.h"
#include "serialization/tensor_files.h"
#include "serialization/torch_save.h"
#include "tests/error_text.h"
#include "tests/serialization/data_files.h"
#include "tests/serialization/import_testing.h"
#include "wick.h"

namespace wick::file_kind_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_errors::errorOf;
using namespace std::string_literals;

using Records = std::vector<std::pair<std::string, std::string>>;

// An archive with its records in a folder, or in none.
std::string zipOf(const std::string& folder, const Records& records) {
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      folder);
  for (const auto& [name, text] : records) writer.write(name, text);
  writer.finish();
  return out;
}

std::string temporary(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

std::string textOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The bytes of PyTorch's exporter: versions, its name, the graph, the operators' version.
const std::string kOnnx =
    "\x08\x08\x12\x07pytorch\x1a\x05"s + "2.4.0" + "\x3a\x04\x0a\x02\x0a\x00"s + "\x42\x02\x10\x11";

struct Case {
  const char* name;
  std::string bytes;
  FileKind kind;
  const char* says;  // part of the message to those who wanted a module
};

std::vector<Case> cases() {
  return {
      {"empty", "", FileKind::Empty, "is empty; its download"},
      {"model.onnx", kOnnx, FileKind::Onnx, "is an ONNX model"},
      {"saved_model.pb", "\x08\x01\x12\x08\x0a\x06\x0a\x00\x22\x00\x2a\x00"s, FileKind::SavedModel,
       "SavedModel of TensorFlow"},
      {"model.tflite", "\x1c\0\0\0TFL3\x14\0 \0"s, FileKind::TfLite, "TensorFlow Lite"},
      {"model.h5", "\x89HDF\r\n\x1a\n\0\0"s, FileKind::Hdf5, "HDF5"},
      {"model.keras",
       zipOf("", {{"metadata.json", "{}"}, {"config.json", "{}"}, {"model.weights.h5", "x"}}),
       FileKind::Keras, "is a model of Keras"},
      {"model.gguf", "GGUF\x03\0\0\0"s, FileKind::Gguf, "llama.cpp"},
      {"model.pte", "\x20\0\0\0ET12\x04\0\0\0"s, FileKind::ExecuTorch, "ExecuTorch"},
      {"model.ff", "\x20\0\0\0PTMF\x04\0\0\0"s, FileKind::Mobile, "mobile interpreter"},
      {"model.ptl", zipOf("m", {{"bytecode.pkl", "x"}, {"data.pkl", "x"}}), FileKind::Mobile,
       "mobile interpreter"},
      {"aoti.pt2",
       zipOf("package", {{"archive_format", "pt2"}, {"data/aotinductor/model/a.so", "x"}}),
       FileKind::AotInductor, "AOTInductor"},
      {"old.pkl", "\x80\x04K\x01."s, FileKind::Pickle, "is a Python pickle"},
      {"pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
       FileKind::GitLfs, "git lfs pull"},
      {"page", "\n<!DOCTYPE HTML>\n<html lang=\"en\">", FileKind::WebPage,
       "is a web page; download"},
      {"page2", "<html><head>", FileKind::WebPage, "is a web page"},
      {"page3", "<?xml version=\"1.0\"?>\n<html xmlns=\"http://www.w3.org/1999/xhtml\">",
       FileKind::WebPage, "is a web page"},
      {"denied", "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code></Error>", FileKind::Xml,
       "is XML text"},
      {"answer", "{\"error\": \"not found\"}", FileKind::Json, "is JSON text"},
      {"script", "def f(x):\n    return x\n", FileKind::Text, "is text"},
      {"a.gz", "\x1f\x8b\x08\0"s, FileKind::Gzip, "gunzip"},
      {"a.xz", "\xfd"s + "7zXZ\0\0"s, FileKind::Xz, "unxz"},
      {"a.bz2", "BZh91AY&SY\x01\0"s, FileKind::Bzip2, "bunzip2"},
      {"a.zst", "\x28\xb5\x2f\xfd\0"s, FileKind::Zstd, "unzstd"},
      {"a.tar", std::string(257, '\0') + "ustar\0"s + "00", FileKind::Tar, "tar -xf"},
      {"a.7z", "7z\xbc\xaf\x27\x1c\0"s, FileKind::SevenZip, "7z x"},
      {"a.zip", zipOf("", {{"readme.txt", "x"}, {"model.pt", "x"}}), FileKind::OtherZip,
       "ZIP archive of other files (readme.txt, model.pt); unpack it first"},
      {"lib.so", "\x7f"s + "ELF\x02\x01\x01\0"s, FileKind::Library, "library or program"},
      {"noise", "\x01\x02\x03\x04\x05"s, FileKind::Unknown, "begins with the bytes 01 02 03 04"},
  };
}

TEST(FileKindTest, ExportedProgramsOfBothLayoutsAreModules) {
  const std::string packed = zipOf("model", {{"archive_format", "pt2"},
                                             {"byteorder", "little"},
                                             {"models/model.json", "{}"},
                                             {"data/weights/weight_0", "x"}});
  const std::string flat = zipOf("", {{"version", "8.7"},
                                      {"serialized_exported_program.json", "{}"},
                                      {"serialized_state_dict.pt", "x"}});
  for (const std::string& bytes : {packed, flat}) {
    EXPECT_EQ(contentsOf(bytesOf(bytes)).kind, FileKind::ExportedProgram);
    EXPECT_THAT(errorOf([&] { loadModule(bytesOf(bytes), "m.pt2"); }),
                HasSubstr("there is no field 'schema_version'"));
    EXPECT_THAT(errorOf([&] { loadValue(bytesOf(bytes), "m.pt2", {}); }),
                HasSubstr("is a program that torch.export wrote; wick::load loads it"));
  }
}

TEST(FileKindTest, ContentsTellTheKind) {
  for (const Case& c : cases()) {
    EXPECT_EQ(contentsOf(bytesOf(c.bytes)).kind, c.kind) << c.name;
    const std::string error = errorOf([&] { loadModule(bytesOf(c.bytes), c.name); });
    EXPECT_THAT(error, AllOf(testing::StartsWith(c.name + " "s), HasSubstr(c.says))) << c.name;
  }
  EXPECT_EQ(contentsOf(bytesOf(contentsOf("small_module.pt"))).kind, FileKind::Module);
  for (const char* name : {"state_dict.pt", "value.pt", "value_legacy.pt"}) {
    EXPECT_EQ(contentsOf(bytesOf(contentsOf(name))).kind, FileKind::SavedValue) << name;
  }
}

TEST(FileKindTest, ThoseWhoWantTensorsGetOtherRemedies) {
  for (const Case& c : cases()) {
    const std::string path = temporary("wrong_file");
    std::ofstream(path, std::ios::binary) << c.bytes;
    for (const std::string& error :
         {errorOf([&] { loadTensors(path); }), errorOf([&] { loadValue(path); })}) {
      EXPECT_THAT(error, AllOf(HasSubstr("wrong_file is"), Not(HasSubstr("torch.jit.script"))))
          << c.name;
    }
  }
}

// The message of the exception that `f` throws, for one interface.
template <class F>
std::string messageOf(Interface interface, F f) {
  try {
    f();
  } catch (const LoadError& error) {
    return messageFor(error, interface);
  }
  return "no error";
}

TEST(FileKindTest, EachInterfaceNamesItsOwnFunctions) {
  const auto module = [](const char* name) { loadModule(bytesOf(contentsOf(name)), name); };
  const auto state = [&] { module("state_dict.pt"); };
  EXPECT_THAT(messageOf(Interface::Cpp, state),
              AllOf(HasSubstr("state_dict.pt holds a state dict, "), HasSubstr("wick::loadValue"),
                    HasSubstr("torch.jit.script(module).save(\"model.pt\")")));
  EXPECT_THAT(messageOf(Interface::C, state), Not(HasSubstr("wick")));
  EXPECT_THAT(messageOf(Interface::Python, state),
              AllOf(HasSubstr("wick.load reads it"), HasSubstr("load_state_dict")));
  EXPECT_THAT(messageOf(Interface::CommandLine, state), HasSubstr("in Python make the module"));

  const auto program = [] { loadValue(bytesOf(contentsOf("small_module.pt")), "m.pt", {}); };
  EXPECT_THAT(messageOf(Interface::Cpp, program),
              HasSubstr("m.pt is a program that torch.jit.save wrote; wick::load loads it"));
  EXPECT_THAT(messageOf(Interface::C, program), HasSubstr("wick_module_load"));
  EXPECT_THAT(messageOf(Interface::Python, program), HasSubstr("wick.jit.load loads it"));
  EXPECT_THAT(messageOf(Interface::CommandLine, program),
              HasSubstr("\"torchscript-cli convert m.pt OUT.pt\""));
  const auto objects = [] {
    loadModule(bytesOf(zipOf("m", {{"data.pkl",
                                    "\x80\x02"
                                    "cmodels\nNet\n."}})),
               "net.pth");
  };
  EXPECT_THAT(messageOf(Interface::Python, objects),
              AllOf(HasSubstr("net.pth holds Python objects that torch.save wrote"),
                    Not(HasSubstr("wick.load"))));
  EXPECT_THAT(errorOf([] {
                loadValue(bytesOf(zipOf("m", {{"data.pkl",
                                               "\x80\x02"
                                               "cmodels\nNet\n."}})),
                          "net.pth", {});
              }),
              HasSubstr("the global models.Net is not allowed: it names code of Python"));
  // An error of another kind is told as it is.
  EXPECT_EQ(messageFor(LoadError("as it is"), Interface::Python), "as it is");
}

TEST(FileKindTest, FilesOfTensorsAreNoPrograms) {
  const NamedTensors tensors = {{"w", Tensor::zeros({2}, DType::Float)}};
  for (const char* end : {".safetensors", ".npz", ".npy"}) {
    const std::string path = temporary("tensors") + end;
    saveTensors(tensors, path);
    EXPECT_THAT(errorOf([&] { load(path); }),
                AllOf(HasSubstr("no program"), HasSubstr("wick::loadTensors reads it")));
    EXPECT_THAT(errorOf([&] { loadValue(path); }), HasSubstr("wick::loadTensors reads it"));
    EXPECT_EQ(loadTensors(path).size(), 1u);
  }
  const std::string one = temporary("one.pt");
  saveValue(tensors[0].second, one);
  EXPECT_THAT(errorOf([&] { load(one); }), HasSubstr("holds a tensor, no program"));
  // Names do not decide.
  const std::string misnamed = temporary("array.safetensors.pt");
  saveTensors(tensors, temporary("array.npy"));
  std::filesystem::rename(temporary("array.npy"), misnamed);
  EXPECT_EQ(loadTensors(misnamed).size(), 1u);
}

TEST(FileKindTest, DamagedArchivesKeepTheirOwnErrors) {
  const std::string whole = contentsOf("small_module.pt");
  const Bytes half = bytesOf(whole.substr(0, whole.size() / 2));
  EXPECT_EQ(contentsOf(half).kind, FileKind::Unknown);
  EXPECT_THAT(errorOf([&] { loadModule(half, "half.pt"); }), HasSubstr("is the file complete?"));
  EXPECT_THAT(errorOf([&] { loadValue(half, "half.pt", {}); }), HasSubstr("is the file complete?"));
}

TEST(FileKindTest, ModulesThatWereChangedForVulkanSayWhatToDo) {
  const std::string constants =
      "\x80\x02"
      "c__torch__.torch.classes.vulkan\nConv2dPackedContext\n.";
  EXPECT_THAT(errorOf([&] {
                loadModule(bytesOf(changed({{"constants.pkl", constants}})), "m.ptl");
              }),
              AllOf(HasSubstr("vulkan.Conv2dPackedContext"), HasSubstr("optimize_for_mobile"),
                    HasSubstr("save it as it was before")));
}

TEST(FileKindTest, LongNamesAreCut) {
  const std::string error = errorOf([] {
    loadModule(bytesOf(zipOf("", {{std::string(5000, 'a'), "x"}, {"b", ""}, {"c", ""}, {"d", ""}})),
               "z");
  });
  EXPECT_LT(error.size(), 250u);
  EXPECT_THAT(error, HasSubstr("aaa…, b, c, …)"));
}

// Each beginning of each file, and files with each of their first bytes changed: no crash, and an
// error that names the file.
TEST(FileKindTest, CutAndChangedFilesAreRefused) {
  for (const Case& c : cases()) {
    for (size_t n = 0; n < std::min<size_t>(c.bytes.size(), 300); ++n) {
      std::string changed = c.bytes;
      changed[n] = static_cast<char>(changed[n] ^ 0x41);
      for (const std::string& bytes : {c.bytes.substr(0, n), changed}) {
        EXPECT_THAT(errorOf([&] { loadModule(bytesOf(bytes), "f"); }), testing::StartsWith("f"));
      }
    }
  }
}

TEST(FileKindTest, FilesThatCannotBeOpenedTellWhy) {
  const std::string folder = temporary("folder_of_models");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/b.pt") << "x";
  std::ofstream(folder + "/a.pth") << "x";
  std::ofstream(folder + "/notes.txt") << "x";
  const auto codeOf = [](const std::string& path) {
    try {
      load(path);
    } catch (const FileError& error) {
      EXPECT_EQ(error.path(), path);
      return error.code();
    }
    return 0;
  };
  EXPECT_EQ(codeOf(folder), EISDIR);
  EXPECT_THAT(errorOf([&] { load(folder); }),
              HasSubstr("Is a folder, not a file; it holds a.pth, b.pt"));
  std::ofstream(folder + "/saved_model.pb") << "x";
  EXPECT_THAT(errorOf([&] { load(folder); }), HasSubstr("SavedModel of TensorFlow"));
  EXPECT_EQ(codeOf(temporary("no_such_file.pt")), ENOENT);
  EXPECT_EQ(codeOf("/dev/null"), EINVAL);
  if (::geteuid() != 0) {  // root may read everything
    const std::string secret = temporary("secret.pt");
    std::ofstream(secret) << "x";
    ::chmod(secret.c_str(), 0);
    EXPECT_EQ(codeOf(secret), EACCES);
  }
}

TEST(VerifyTest, DamagedRecordsAreNamed) {
  const std::string good = contentsOf("small_module.pt");
  const Bytes file = bytesOf(good);
  verifyRecords(file, "good.pt");
  ArchiveReader archive(file, "good.pt");
  size_t damaged = 0;
  for (const std::string& record : archive.records()) {
    const Bytes contents = archive.map(record);
    const ptrdiff_t at = contents.data.data() - file.data.data();
    // Deflated records have memory of their own.
    if (contents.size() == 0 || at < 0 || at >= static_cast<ptrdiff_t>(good.size())) continue;
    std::string bad = good;
    bad[static_cast<size_t>(at)] ^= 1;
    EXPECT_THAT(errorOf([&] { verifyRecords(bytesOf(bad), "bad.pt"); }),
                HasSubstr("/" + record + "': the checksum does not match"));
    ++damaged;
  }
  EXPECT_GT(damaged, 3u);
}

TEST(VerifyTest, DeflatedRecordsAreVerifiedToo) {
  const std::string path = temporary("deflated.zip");
  std::filesystem::remove(path);
  std::string text;
  for (int i = 0; i < 300; ++i) text += std::to_string(i * i) + " ";
  std::ofstream(temporary("words.txt")) << text;
  const std::string command = "cd " + testing::TempDir() +
                              " && python3 -c \"import zipfile; "
                              "zipfile.ZipFile('deflated.zip', 'w', zipfile.ZIP_DEFLATED)"
                              ".write('words.txt')\"";
  ASSERT_EQ(std::system(command.c_str()), 0);
  const std::string good = textOfFile(path);
  verifyRecords(bytesOf(good), "good");
  for (size_t at = 40; at < good.size() - 120; at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    EXPECT_THAT(errorOf([&] { verifyRecords(bytesOf(bad), "bad"); }),
                HasSubstr("'words.txt': the "))
        << at;
  }
}

TEST(VerifyTest, TheTimeLimitHolds) {
  Budget::Bounds bounds;
  bounds.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
  Budget budget(bounds);
  const BudgetScope scope(&budget);
  EXPECT_THROW(verifyRecords(bytesOf(contentsOf("small_module.pt")), "m.pt"), RuntimeError);
}

}  // namespace
}  // namespace wick::file_kind_test

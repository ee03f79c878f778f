// Loading may take four times the size of the file and 16 MiB, and what pickles that are not
// deflated may take besides (ArchiveLimits), whatever the file says. Each case is loaded in a
// process of its own, whose peak is measured.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "core/error.h"
#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
#include "serialization/stored_values.h"
#include "serialization/torch_save.h"

namespace wick::load_memory_test {
namespace {

using namespace std::string_literals;

constexpr size_t kBase = size_t{16} << 20;

size_t statusBytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  return 0;
}

// What loading the file takes at its peak.
size_t peakOfLoading(const std::string& path) {
  int ends[2];
  if (::pipe(ends) != 0) return SIZE_MAX;
  const pid_t child = ::fork();
  if (child == 0) {
    std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts from what is in use
    const size_t before = statusBytes("VmRSS");
    try {
      loadValue(path);
    } catch (const Error&) {
    }
    const size_t peak = statusBytes("VmHWM");
    const size_t taken = peak - std::min(peak, before);
    const bool written = ::write(ends[1], &taken, sizeof(taken)) == sizeof(taken);
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  size_t taken = SIZE_MAX;
  if (::read(ends[0], &taken, sizeof(taken)) != sizeof(taken)) taken = SIZE_MAX;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  return taken;
}

void expectBounded(const std::string& name, const std::string& file) {
  const std::string path = testing::TempDir() + "/load_memory.pt";
  std::ofstream(path, std::ios::binary) << file;
  EXPECT_LE(peakOfLoading(path), (4 + ArchiveLimits().pickle_ratio) * file.size() + kBase)
      << name << ", " << file.size() << " bytes";
  ::unlink(path.c_str());
}

std::string archiveOf(const std::string& pickle) {
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "archive");
  writer.write("data.pkl", pickle);
  writer.write("data/0", std::string(64, '\0'));
  writer.write("version", "3\n");
  writer.finish();
  return out;
}

std::string repeated(const std::string& text, size_t bytes) {
  std::string all;
  all.reserve(bytes + text.size());
  while (all.size() < bytes) all += text;
  return all;
}

std::string tensor(const std::string& sizes) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nComplexFloatStorage\n"s
         "X\x01\x00\x00\x00"s
         "0X\x03\x00\x00\x00"s
         "cpuK\x08tQK\x00("s +
         sizes + "t(K\x00t\x89"s + "ccollections\nOrderedDict\n)R"s + "}X\x04\x00\x00\x00"s +
         "conj\x88stR";
}

TEST(LoadMemoryTest, PicklesOfEveryOpcode) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep memory of their own for each piece that is allocated";
#endif
  const std::string longer = "J\x00\x00\x00\x01"s;  // 2^24 elements
  for (const size_t bytes : {size_t{1} << 16, size_t{2} << 20}) {
    std::string memo, entries;
    for (uint32_t i = 0; memo.size() < bytes; ++i) {
      const std::string number(reinterpret_cast<const char*>(&i), sizeof(i));
      memo += "r" + number;
      entries += "J" + number + "]";
    }
    for (const std::string& body : {
             repeated("(", bytes),
             repeated("]", bytes),
             repeated("}", bytes),
             repeated(")", bytes),
             repeated("N", bytes),
             repeated("2", bytes),
             repeated("\x85", bytes),
             repeated("]0", bytes),
             repeated("U\x00"s, bytes),
             "](" + repeated("K\x01", bytes) + "e",
             "](" + repeated("]", bytes) + "e",
             "](" + repeated(")\x85", bytes) + "e",
             "]" + repeated("]a", bytes),
             "](" + repeated("}", bytes) + "e",
             memo,
             "}(" + entries + "u",
             "](" + repeated("U\x01x", bytes) + "e",
             "](" + repeated("ccollections\nOrderedDict\n)R", bytes) + "e",
             "](" + repeated(tensor("K\x01"), bytes) + "e",
             tensor(longer),
         }) {
      expectBounded(testing::PrintToString(body.substr(0, 12)),
                    archiveOf("\x80\x02N" + body + "\x86."));
      expectBounded("deep " + testing::PrintToString(body.substr(0, 12)),
                    archiveOf("\x80\x02" + body + "."));
    }
  }
}

// Of a real file only a part is looked at: its tensors lie in it.
TEST(LoadMemoryTest, ARealFile) {
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  for (int i = 0; i < 200; ++i) {
    dict->set(fmt::format("layer.{}", i), Tensor::zeros(DimVector{100, 1000}, DType::Float));
  }
  const std::string path = testing::TempDir() + "/real.pt";
  saveValue(dict, path);
  EXPECT_LE(peakOfLoading(path), size_t{40} << 20);  // of 80
  EXPECT_EQ(loadValue(path).toDict().size(), 200u);
  ::unlink(path.c_str());
}

// A file that is little but words, as vocabularies are, is no attack.
TEST(LoadMemoryTest, AVocabulary) {
  auto dict = makeRef<DictObject>(types::String(), types::Int());
  for (int i = 0; i < 300000; ++i) dict->set(fmt::format("word{}", i), i);
  const std::string path = testing::TempDir() + "/vocabulary.pt";
  saveValue(dict, path);
  EXPECT_EQ(loadValue(path).toDict().size(), 300000u);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace wick::load_memory_test

// Files that are written whole or not at all.
#include "core/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "core/error.h"

namespace wick {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// An empty folder of its own.
std::string folder(const std::string& name) {
  const std::string path = testing::TempDir() + "/output_file_" + name;
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

size_t entries(const std::string& path) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) ++count;
  return count;
}

std::string messageOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const RuntimeError& error) {
    return error.brief();
  }
  return "no error";
}

TEST(OutputFileTest, ReplacesWhenCommitted) {
  const std::string path = folder("replace") + "/a";
  writeFile(path, "old");
  OutputFile file(path);
  file.write("new ");
  file.write(std::string(1 << 20, 'x'));
  EXPECT_EQ(contents(path), "old");
  file.commit();
  EXPECT_EQ(contents(path), "new " + std::string(1 << 20, 'x'));
  EXPECT_EQ(entries(testing::TempDir() + "/output_file_replace"), 1u);
}

TEST(OutputFileTest, WithoutCommitTheOldFileStays) {
  const std::string in = folder("abandon");
  writeFile(in + "/a", "old");
  { OutputFile(in + "/a").write(std::string(1 << 20, 'x')); }
  EXPECT_EQ(contents(in + "/a"), "old");
  EXPECT_EQ(entries(in), 1u);
}

TEST(OutputFileTest, KeepsPermissionsAndLinks) {
  const std::string in = folder("links");
  writeFile(in + "/target", "old");
  ::chmod((in + "/target").c_str(), 0640);
  std::filesystem::create_symlink("target", in + "/link");
  writeFile(in + "/link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(in + "/link"));
  EXPECT_EQ(contents(in + "/target"), "new");
  struct stat info;
  ASSERT_EQ(::stat((in + "/target").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
}

TEST(OutputFileTest, SaysWhyItCannotWrite) {
  EXPECT_THAT(messageOf([] { OutputFile file("/no/such/folder/a"); }),
              AllOf(HasSubstr("/no/such/folder/a"), HasSubstr("No such file or directory")));
  EXPECT_THAT(messageOf([] { OutputFile file("/proc/version"); }), HasSubstr("/proc/version"));
  EXPECT_THAT(messageOf([] { OutputFile file(testing::TempDir()); }), HasSubstr("directory"));
  EXPECT_THAT(messageOf([] { writeFile("/dev/full", "x"); }),
              AllOf(HasSubstr("/dev/full"), HasSubstr("No space left on device")));
}

// A process that may write no more than so many bytes a file finds the disk full.
TEST(OutputFileTest, AFullDiskLeavesTheOldFile) {
  const std::string in = folder("full");
  writeFile(in + "/a", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message = messageOf([&] { writeFile(in + "/a", std::string(1 << 20, 'x')); });
    ::_exit(message.find("File too large") != std::string::npos ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(contents(in + "/a"), "old");
  EXPECT_EQ(entries(in), 1u);
}

}  // namespace
}  // namespace wick

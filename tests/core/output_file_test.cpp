// Files that are written whole or not at all.
#include "core/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "core/error.h"
#include "tests/error_text.h"

namespace wick::output_file_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_errors::errorOf;

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
  EXPECT_THAT(errorOf([] { OutputFile file("/no/such/folder/a"); }),
              AllOf(HasSubstr("/no/such/folder/a"), HasSubstr("No such file or directory")));
  EXPECT_THAT(errorOf([] { OutputFile file("/proc/version"); }), HasSubstr("/proc/version"));
  EXPECT_THAT(errorOf([] { OutputFile file(testing::TempDir()); }), HasSubstr("directory"));
  EXPECT_THAT(errorOf([] { writeFile("/dev/full", "x"); }),
              AllOf(HasSubstr("/dev/full"), HasSubstr("No space left on device")));
}

// Links are followed, even to what is not there yet.
TEST(OutputFileTest, FollowsLinksThatLeadNowhereYet) {
  const std::string in = folder("dangling");
  std::filesystem::create_symlink("middle", in + "/link");
  std::filesystem::create_symlink(in + "/target", in + "/middle");
  writeFile(in + "/link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(in + "/link"));
  EXPECT_EQ(contents(in + "/target"), "new");
  EXPECT_EQ(entries(in), 3u);
  std::filesystem::create_symlink("circle", in + "/circle");
  EXPECT_THAT(errorOf([&] { writeFile(in + "/circle", "x"); }),
              HasSubstr("Too many levels of symbolic links"));
}

TEST(OutputFileTest, AFileThatAppearsMeanwhileIsReplaced) {
  const std::string in = folder("meanwhile");
  OutputFile file(in + "/a");
  file.write("mine");
  writeFile(in + "/a", "another's");
  file.commit();
  EXPECT_EQ(contents(in + "/a"), "mine");
  EXPECT_EQ(entries(in), 1u);
}

bool hasNamelessFiles(const std::string& in) {
  const int fd = ::open(in.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

// A process that is killed while it writes.
TEST(OutputFileTest, AKillLeavesTheOldFileAndNothingElse) {
  const std::string in = folder("killed");
  writeFile(in + "/a", "old");
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile replaced(in + "/a"), fresh(in + "/b");
    for (int i = 0;; ++i) {
      replaced.write(std::string(1 << 20, 'x'));
      fresh.write(std::string(1 << 20, 'x'));
      if (i == 3 && ::write(pipe[1], "!", 1) != 1) ::_exit(1);
      if (i >= 3) ::usleep(1000);
    }
  }
  char written = 0;
  ASSERT_EQ(::read(pipe[0], &written, 1), 1);
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_EQ(contents(in + "/a"), "old");
  EXPECT_FALSE(std::filesystem::exists(in + "/b"));
  if (!hasNamelessFiles(in)) GTEST_SKIP() << "the file system has only files with names";
  EXPECT_EQ(entries(in), 1u);
}

// A user who may not write to the folder; root may write to any.
TEST(OutputFileTest, AFolderThatMayNotBeWritten) {
  const std::string in = folder("forbidden");
  writeFile(in + "/a", "old");
  ::chmod(in.c_str(), 0555);
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    if (::getuid() == 0 && ::setuid(kNobody) != 0) ::_exit(9);
    const std::string there = errorOf([&] { writeFile(in + "/a", "new"); });
    const std::string fresh = errorOf([&] { writeFile(in + "/b", "new"); });
    const std::string denied = "Permission denied";
    ::_exit(there.find(denied) != std::string::npos && fresh.find(denied) != std::string::npos ? 7
                                                                                               : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::chmod(in.c_str(), 0755);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(contents(in + "/a"), "old");
  EXPECT_EQ(entries(in), 1u);
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
    const std::string message = errorOf([&] { writeFile(in + "/a", std::string(1 << 20, 'x')); });
    ::_exit(message.find("File too large") != std::string::npos ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(contents(in + "/a"), "old");
  EXPECT_EQ(entries(in), 1u);
}

}  // namespace
}  // namespace wick::output_file_test

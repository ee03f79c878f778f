// tools/package.sh: each file that it makes, taken into an empty folder, reads the shipped picture of a digit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "tests/shell.h"

namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using wick::testing_shell::Outcome;
using wick::testing_shell::readText;
using wick::testing_shell::run;

class PackageTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = run("bash tools/package.sh '" + (folder() / "dist").string() + "'");
  }
  static void TearDownTestSuite() { fs::remove_all(folder()); }
  void SetUp() override { ASSERT_EQ(made_.code, 0) << made_.text; }

  static fs::path folder() {
    return fs::path(testing::TempDir()) / ("package_" + std::to_string(getpid()));
  }
  // Returns the path of the only file in dist/ whose name ends so.
  static fs::path made(const std::string& ending) {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder() / "dist")) {
      if (entry.path().string().ends_with(ending)) {
        EXPECT_TRUE(found.empty()) << found << " and " << entry.path();
        found = entry.path();
      }
    }
    EXPECT_FALSE(found.empty()) << "nothing that ends with " << ending;
    return found;
  }
  static void readsDigit(const fs::path& program) {
    const Outcome o = run(program.string() + " run examples/digits.pt --input @examples/seven.npy");
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_THAT(o.text, HasSubstr("largest at 7"));
  }
  static Outcome made_;
};
Outcome PackageTest::made_;

TEST_F(PackageTest, ArchiveRunsWhereItIsUnpacked) {
  const fs::path at = folder() / "archive";
  fs::create_directories(at);
  ASSERT_EQ(run("tar -C " + at.string() + " -xzf " + made("-linux-x86_64.tar.gz").string()).code,
            0);
  fs::path prefix;
  for (const auto& entry : fs::directory_iterator(at)) prefix = entry.path();
  EXPECT_THAT(prefix.filename().string(), HasSubstr("wick-"));
  readsDigit(prefix / "bin/torchscript-cli");
  for (const char* file : {"include/wick/wick.h", "lib/libwick.so", "lib/libwick-core.a",
                           "share/doc/wick/licences/llvm-19-dev.txt"}) {
    EXPECT_TRUE(fs::exists(prefix / file)) << file;
  }
  const std::string readme = readText(prefix / "share/doc/wick/README.txt");
  EXPECT_THAT(readme, HasSubstr("libdnnl2"));
  EXPECT_THAT(readme, HasSubstr("No licence for Wick itself has been chosen"));
}

TEST_F(PackageTest, DebianPackageNamesWhatItNeeds) {
  const std::string package = made("_amd64.deb").string();
  const Outcome depends = run("dpkg-deb -f " + package + " Depends");
  ASSERT_EQ(depends.code, 0) << depends.text;
  for (const char* name : {"libc6 ", "libdnnl2 ", "libfmt9 ", "libgomp1 ", "libopenblas0"}) {
    EXPECT_THAT(depends.text, HasSubstr(name));
  }
  // Packages of another architecture hold libraries of the same names.
  EXPECT_THAT(depends.text, testing::Not(HasSubstr("i386")));
  const std::string document = readText("docs/embedding.md");
  std::istringstream list(depends.text);
  for (std::string one; std::getline(list, one, ',');) {
    std::istringstream words(one);
    std::string name;
    words >> name;
    EXPECT_THAT(run("dpkg-query -W -f='${Status}' " + name).text, HasSubstr("ok installed"))
        << name;
    // Every Debian has these two.
    if (name != "libc6" && name != "libgcc-s1") {
      EXPECT_THAT(document, HasSubstr(" " + name));
    }
  }
  const fs::path at = folder() / "deb";
  ASSERT_EQ(run("dpkg-deb -x " + package + " " + at.string()).code, 0);
  readsDigit(at / "usr/bin/torchscript-cli");
  EXPECT_TRUE(fs::exists(at / "usr/lib/pkgconfig/wick.pc"));
  EXPECT_TRUE(fs::exists(at / "usr/share/doc/wick/licences/llvm-19-dev.txt"));
}

// tests/python:wheel_test installs the same file and uses it.
TEST_F(PackageTest, SumsAreThoseOfTheFiles) {
  EXPECT_FALSE(made(".whl").empty());
  const Outcome o = run("cd " + (folder() / "dist").string() + " && sha256sum -c SHA256SUMS");
  EXPECT_EQ(o.code, 0) << o.text;
}

}  // namespace

// tools/install.sh, and programs that are built against what it makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uintmax_t kMegabyte = 1'000'000;

struct Outcome {
  int code;
  std::string text;  // standard output and error
};

std::string readText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

fs::path folder(const std::string& name) {
  return fs::path(testing::TempDir()) / ("install_" + std::to_string(getpid())) / name;
}

Outcome run(const std::string& command) {
  const fs::path output = folder("output");
  fs::create_directories(output.parent_path());
  const int status = std::system((command + " >" + output.string() + " 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, readText(output)};
}

Outcome install(const fs::path& prefix) {
  return run("bash tools/install.sh '" + prefix.string() + "'");
}

bool isHere(const std::string& program) {
  return run("command -v " + program).code == 0;
}

// What stands behind "Prints:" at the end of a program, without the comment signs.
std::string expectedOutput(const fs::path& source) {
  const std::string text = readText(source);
  const size_t at = text.find("Prints:\n");
  EXPECT_NE(at, std::string::npos) << source;
  std::istringstream lines(text.substr(at + 8));
  std::string expected;
  for (std::string line; std::getline(lines, line);) {
    if (line == " */") break;
    expected += line.substr(std::min<size_t>(line.size(), 3)) + "\n";
  }
  return expected;
}

std::string withoutTrailingSpaces(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

// One installation for all tests that only read it.
class InstalledTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { outcome_ = install(prefix()); }
  void SetUp() override { ASSERT_EQ(outcome_.code, 0) << outcome_.text; }
  static fs::path prefix() { return folder("prefix"); }
  static std::string flags(const std::string& package, const std::string& what) {
    return "$(PKG_CONFIG_PATH=" + (prefix() / "lib/pkgconfig").string() + " pkg-config " + what +
           " " + package + ")";
  }
  static Outcome outcome_;
};
Outcome InstalledTest::outcome_;

TEST_F(InstalledTest, HoldsWhatItShould) {
  for (const char* file :
       {"include/wick/wick.h", "include/wick/wick_ops.h", "include/wick/capi/wick.h",
        "lib/libwick.so", "lib/libwick-core.so", "lib/cmake/Wick/WickConfig.cmake",
        "lib/pkgconfig/wick.pc", "bin/torchscript-cli",
        "share/bash-completion/completions/torchscript-cli",
        "share/zsh/site-functions/_torchscript-cli", "share/wick/CHANGELOG.md"}) {
    EXPECT_TRUE(fs::exists(prefix() / file)) << file;
  }
  // Public headers only: nothing of the interpreter, the IR or the front end.
  for (const auto& entry : fs::recursive_directory_iterator(prefix() / "include")) {
    const std::string path = entry.path().string();
    for (const char* inside :
         {"/interpreter", "/ir", "/frontend", "/passes", "/codegen", "/executor"}) {
      EXPECT_THAT(path, Not(HasSubstr(inside)));
    }
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(readText(path), Not(HasSubstr("#include <fmt")));
  }
  const Outcome version = run((prefix() / "bin/torchscript-cli").string() + " --version");
  EXPECT_EQ(version.text, "torchscript-cli 0.1.0\n");
}

TEST_F(InstalledTest, LibrariesAreSmallAndShowOnlyTheirInterface) {
  const fs::path whole = fs::canonical(prefix() / "lib/libwick.so");
  const fs::path core = fs::canonical(prefix() / "lib/libwick-core.so");
  EXPECT_LE(fs::file_size(whole), 60 * kMegabyte);
  EXPECT_LE(fs::file_size(core), 10 * kMegabyte);
  std::printf("libwick.so %.1f MB, libwick-core.so %.1f MB\n",
              static_cast<double>(fs::file_size(whole)) / kMegabyte,
              static_cast<double>(fs::file_size(core)) / kMegabyte);
  for (const fs::path& library : {whole, core}) {
    const Outcome symbols = run("nm -D --defined-only -C " + library.string());
    EXPECT_EQ(symbols.code, 0);
    EXPECT_THAT(symbols.text, HasSubstr("wick_compile"));
    EXPECT_THAT(symbols.text, HasSubstr("wick::load("));
    std::istringstream lines(symbols.text);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, HasSubstr("wick"));
      EXPECT_THAT(line, Not(HasSubstr("wick::GraphExecutor")));
    }
    const Outcome dynamic = run("readelf -d " + library.string());
    EXPECT_THAT(dynamic.text, HasSubstr(library == whole ? "soname: [libwick.so.0.1]"
                                                         : "soname: [libwick-core.so.0.1]"));
    EXPECT_THAT(dynamic.text, Not(HasSubstr("LLVM")));
  }
}

// All programs of examples/, plainly compiled, by the whole engine and by the small one.
TEST_F(InstalledTest, ExamplesRun) {
  size_t programs = 0;
  for (const auto& entry : fs::directory_iterator("examples")) {
    const fs::path source = entry.path();
    const bool is_c = source.extension() == ".c";
    if (!is_c && source.extension() != ".cpp") continue;
    const std::string package = ++programs % 2 == 0 ? "wick" : "wick-core";
    const fs::path program = folder("examples") / (source.stem().string() + (is_c ? "_c" : ""));
    fs::create_directories(program.parent_path());
    const Outcome build =
        run((is_c ? "gcc -std=c99 -pedantic" : "g++ -std=c++20") +
            std::string(" -Wall -Wextra -Werror ") + source.string() + " -o " + program.string() +
            " " + flags(package, "--cflags --libs") + " -Wl,-rpath," + (prefix() / "lib").string());
    ASSERT_EQ(build.code, 0) << source << "\n" << build.text;
    const Outcome o = run(program.string() + " examples/digits.pt");
    EXPECT_EQ(o.code, 0) << source << "\n" << o.text;
    EXPECT_EQ(withoutTrailingSpaces(o.text), expectedOutput(source)) << source;
  }
  EXPECT_GE(programs, 10u);
}

TEST_F(InstalledTest, CMakeFindsIt) {
  if (!isHere("cmake")) GTEST_SKIP() << "cmake is not installed";
  const fs::path project = folder("project");
  write(project / "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\n"
        "project(example C CXX)\n"
        "find_package(Wick 0.1 REQUIRED)\n"
        "add_executable(classify classify.cpp)\n"
        "target_link_libraries(classify PRIVATE wick::wick)\n"
        "add_executable(classify_c classify.c)\n"
        "target_link_libraries(classify_c PRIVATE wick::core)\n");
  for (const char* file : {"classify.cpp", "classify.c"}) {
    fs::copy_file(fs::path("examples") / file, project / file,
                  fs::copy_options::overwrite_existing);
  }
  const std::string build = (project / "build").string();
  const Outcome configured = run("cmake -S " + project.string() + " -B " + build +
                                 " -DCMAKE_PREFIX_PATH=" + prefix().string());
  ASSERT_EQ(configured.code, 0) << configured.text;
  const Outcome built = run("cmake --build " + build);
  ASSERT_EQ(built.code, 0) << built.text;
  for (const char* program : {"/classify", "/classify_c"}) {
    EXPECT_EQ(run(build + program + " examples/digits.pt").text, "7\n") << program;
  }
  // A project of C alone, and one that wants another version.
  write(folder("plain") / "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(plain C)\nfind_package(Wick REQUIRED)\n"
        "add_executable(classify_c " +
            (project / "classify.c").string() +
            ")\ntarget_link_libraries(classify_c PRIVATE wick::core)\n");
  const std::string plain = folder("plain").string();
  EXPECT_EQ(
      run("cmake -S " + plain + " -B " + plain + "/build -DCMAKE_PREFIX_PATH=" + prefix().string())
          .code,
      0);
  write(
      folder("later") / "CMakeLists.txt",
      "cmake_minimum_required(VERSION 3.18)\nproject(later C)\nfind_package(Wick 0.2 REQUIRED)\n");
  const std::string later = folder("later").string();
  const Outcome refused =
      run("cmake -S " + later + " -B " + later + "/build -DCMAKE_PREFIX_PATH=" + prefix().string());
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.text, HasSubstr("0.1.0"));
}

// A program's own core/ folder is never taken for the engine's.
TEST_F(InstalledTest, HeadersFindTheirOwn) {
  const fs::path own = folder("own");
  write(own / "core/tensor.h", "#error this is another one\n");
  write(own / "main.cpp",
        "#include <wick/wick.h>\nint main() { return wick::version()[0] - '0'; }\n");
  const Outcome o = run("g++ -std=c++20 -fsyntax-only -I" + own.string() + " " +
                        (own / "main.cpp").string() + " " + flags("wick", "--cflags"));
  EXPECT_EQ(o.code, 0) << o.text;
}

TEST_F(InstalledTest, CompletionsComplete) {
  const std::string script =
      (prefix() / "share/bash-completion/completions/torchscript-cli").string();
  const Outcome verbs = run("bash -c 'source " + script +
                            "; COMP_WORDS=(torchscript-cli b); COMP_CWORD=1; _torchscript_cli; "
                            "echo ${COMPREPLY[@]}'");
  EXPECT_EQ(verbs.text, "bench bisect\n");
  const Outcome flags = run("bash -c 'source " + script +
                            "; COMP_WORDS=(torchscript-cli run --time); COMP_CWORD=2; "
                            "_torchscript_cli; echo ${COMPREPLY[@]}'");
  EXPECT_EQ(flags.text, "--time-limit\n");
  if (isHere("zsh")) {
    EXPECT_EQ(
        run("zsh -n " + (prefix() / "share/zsh/site-functions/_torchscript-cli").string()).code, 0);
  }
}

TEST_F(InstalledTest, AnEarlierInstallationIsReplaced) {
  const fs::path again = folder("again");
  ASSERT_EQ(install(again).code, 0);
  fs::remove(again / "lib/libwick.so");
  const Outcome o = install(again);
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_TRUE(fs::exists(again / "lib/libwick.so"));
  // With a file that somebody else put there it is left alone.
  write(again / "lib/other.txt", "mine");
  fs::remove(again / "lib/libwick.so");
  const Outcome refused = install(again);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.text, HasSubstr("lib/other.txt"));
  EXPECT_EQ(readText(again / "lib/other.txt"), "mine");
  EXPECT_FALSE(fs::exists(again / "lib/libwick.so"));
  for (const auto& entry : fs::directory_iterator(again.parent_path())) {
    EXPECT_THAT(entry.path().string(), AllOf(Not(HasSubstr(".new.")), Not(HasSubstr(".old."))));
  }
}

TEST(InstallTest, RefusesWhatItCannotHave) {
  const fs::path foreign = folder("foreign");
  write(foreign / "mine.txt", "mine");
  const Outcome exists = install(foreign);
  EXPECT_EQ(exists.code, 1);
  EXPECT_THAT(exists.text, HasSubstr("exists and holds files that are no installation of Wick"));
  EXPECT_EQ(readText(foreign / "mine.txt"), "mine");

  EXPECT_EQ(install(foreign / "mine.txt").code, 1);
  const Outcome below = install(foreign / "mine.txt" / "below");
  EXPECT_EQ(below.code, 1);
  EXPECT_THAT(below.text, HasSubstr("is not a folder"));
  EXPECT_EQ(install("/proc/wick").code, 1);
  EXPECT_EQ(run("bash tools/install.sh").code, 2);
  EXPECT_EQ(run("bash tools/install.sh --help").code, 2);
}

}  // namespace

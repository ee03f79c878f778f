// tools/install.sh, and programs that are built against what it makes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/shell.h"

namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using wick::testing_shell::isHere;
using wick::testing_shell::Outcome;
using wick::testing_shell::readText;
using wick::testing_shell::run;

constexpr uintmax_t kMegabyte = 1'000'000;

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

fs::path folder(const std::string& name) {
  const fs::path all = fs::path(testing::TempDir()) / ("install_" + std::to_string(getpid()));
  fs::create_directories(all);
  return all / name;
}

Outcome install(const fs::path& prefix) {
  return run("bash tools/install.sh '" + prefix.string() + "'");
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
       {"include/wick/lazy/lazy.h", "include/wick/distributed/gradient_exchange.h",
        "include/wick/distributed/init.h", "include/wick/runtime/profile.h",
        "include/wick/core/messages.h", "include/wick/wick.h", "include/wick/wick_ops.h",
        "include/wick/capi/wick.h", "lib/libwick.so", "lib/libwick-core.so",
        "lib/cmake/Wick/WickConfig.cmake", "lib/pkgconfig/wick.pc", "bin/torchscript-cli",
        "lib/libwick-aot.a", "include/wick/aot/wick_aot.h",
        "share/bash-completion/completions/torchscript-cli",
        "share/zsh/site-functions/_torchscript-cli",
        "share/fish/vendor_completions.d/torchscript-cli.fish", "share/wick/CHANGELOG.md"}) {
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
  for (const char* package : {"wick", "wick-static"}) {
    const std::string asked = "echo " + flags(package, "--variable=bindir");
    const fs::path bin = run(asked).text.substr(0, run(asked).text.find('\n'));
    EXPECT_TRUE(fs::exists(bin / "torchscript-cli")) << bin;
  }
}

// Paths of headers in the compiler's messages do not grow with each header on the way.
TEST_F(InstalledTest, HeadersIncludeEachOtherByShortPaths) {
  const fs::path source = folder("paths") / "main.cpp";
  write(source, R"(#include <wick/wick.h>

#include <iostream>

int main() {
  std::cout << wick::Tensor::zeros({2, 3}, wick::DType::Float).sizes() << "\n";
  std::cout << wick::Tensor::from({1.f}).select(0, 0).sizes() << "\n";
}
)");
  const std::string program = folder("paths_program").string();
  const Outcome built = run("g++ -std=c++20 -H " + source.string() + " -o " + program + " " +
                            flags("wick-core", "--cflags --libs") + " -Wl,-rpath," +
                            (prefix() / "lib").string() + " 2>&1");
  ASSERT_EQ(built.code, 0) << built.text;
  EXPECT_THAT(built.text, HasSubstr("/include/wick/core/tensor.h\n"));
  EXPECT_THAT(built.text, Not(HasSubstr("/wick/./")));
  EXPECT_THAT(built.text, Not(HasSubstr("/core/../core/")));
  EXPECT_EQ(run(program).text, "[2, 3]\n[]\n");
}

TEST_F(InstalledTest, LibrariesAreSmallAndShowOnlyTheirInterface) {
  const fs::path whole = fs::canonical(prefix() / "lib/libwick.so");
  const fs::path core = fs::canonical(prefix() / "lib/libwick-core.so");
  EXPECT_LE(fs::file_size(whole), 60 * kMegabyte);
  // The aim is 10: docs/embedding.md tells what takes how much.
  EXPECT_LE(fs::file_size(core), 15 * kMegabyte);
  std::printf("libwick.so %.1f MB, libwick-core.so %.1f MB\n",
              static_cast<double>(fs::file_size(whole)) / kMegabyte,
              static_cast<double>(fs::file_size(core)) / kMegabyte);
  for (const fs::path& library : {whole, core}) {
    const Outcome symbols = run("nm -D --defined-only -C " + library.string());
    EXPECT_EQ(symbols.code, 0);
    EXPECT_THAT(symbols.text, HasSubstr("wick_compile"));
    for (const char* shown :
         {"wick::load(", "wick::Module::save(", "wick::Module::saveToString",
          "wick::Module::stateDict()", "wick::Module::loadStateDict(", "wick::saveModule(",
          "wick::ModuleBuilder::define(", "wick::freeze(", "wick::loadTensors",
          "wick::saveTensors(", "wick::loadValue(", "wick::saveValue(", "wick_module_save"}) {
      EXPECT_THAT(symbols.text, HasSubstr(shown)) << library;
    }
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
    std::string text = withoutTrailingSpaces(o.text);
    // A machine may have a GPU.
    constexpr std::string_view kOnGpu = "computed on cuda:0\n";
    if (text.starts_with(kOnGpu)) {
      text.replace(0, kOnGpu.size(), "no CUDA device: computed on cpu\n");
    }
    EXPECT_EQ(text, expectedOutput(source)) << source;
  }
  EXPECT_GE(programs, 10u);
}

// Programs that hold the engine themselves, by pkg-config and by CMake.
TEST_F(InstalledTest, StaticLibrariesLink) {
  for (const char* package : {"wick-static", "wick-core-static"}) {
    const std::string program = (folder("static").string() + "_") + package;
    const Outcome build = run("g++ -std=c++20 examples/classify.cpp -o " + program + " " +
                              flags(package, "--cflags --libs"));
    ASSERT_EQ(build.code, 0) << build.text;
    EXPECT_EQ(run(program + " examples/digits.pt").text, "1\n");
    EXPECT_THAT(run("readelf -d " + program).text, Not(HasSubstr("libwick")));
  }
  // A program may hold another LLVM beside the one in libwick.a.
  const Outcome symbols =
      run("nm -C --defined-only --extern-only " + (prefix() / "lib/libwick.a").string());
  EXPECT_THAT(symbols.text, HasSubstr("wick_compile"));
  EXPECT_THAT(symbols.text, Not(HasSubstr(" T llvm::")));

  if (!isHere("cmake")) GTEST_SKIP() << "cmake is not installed";
  const fs::path project = folder("static_project");
  write(project / "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.18)\nproject(example CXX)\n"
        "find_package(Wick 0.1 REQUIRED)\nadd_executable(classify classify.cpp)\n"
        "target_link_libraries(classify PRIVATE wick::core_static)\n");
  fs::copy_file("examples/classify.cpp", project / "classify.cpp",
                fs::copy_options::overwrite_existing);
  const std::string build = (project / "build").string();
  ASSERT_EQ(run("cmake -S " + project.string() + " -B " + build +
                " -DCMAKE_PREFIX_PATH=" + prefix().string())
                .code,
            0);
  const Outcome built = run("cmake --build " + build);
  ASSERT_EQ(built.code, 0) << built.text;
  EXPECT_EQ(run(build + "/classify examples/digits.pt").text, "1\n");
}

// Plugins find the engine in the command line, and in programs that are linked with a library.
class PluginTest : public InstalledTest {
 protected:
  // The library of a source text, or of a file of examples/plugin.
  static fs::path build(const fs::path& source, const std::string& more = "") {
    const fs::path library = folder("plugins") / (source.stem().string() + ".so");
    fs::create_directories(library.parent_path());
    const Outcome o =
        ::run((source.extension() == ".c" ? "gcc -std=c99 -pedantic" : "g++ -std=c++20") +
              std::string(" -Wall -Wextra -Werror -shared -fPIC ") + more + " " + source.string() +
              " -o " + library.string() + " " + flags("wick", "--cflags"));
    EXPECT_EQ(o.code, 0) << source << "\n" << o.text;
    return library;
  }
  static fs::path buildText(const std::string& name, const std::string& text) {
    const fs::path source = folder("plugins") / (name + ".c");
    write(source, "#include <wick/capi/wick.h>\n" + text);
    return build(source);
  }
  static Outcome script(const std::string& text, const std::vector<fs::path>& plugins) {
    const fs::path file = folder("script.py");
    write(file, text);
    std::string command = (prefix() / "bin/torchscript-cli").string() + " run " + file.string();
    for (const fs::path& plugin : plugins) command += " --plugin " + plugin.string();
    return ::run(command);
  }
};

constexpr const char* kPluginScript = R"(
def main() -> Tuple[float, float, int]:
    x = torch.tensor([[0.5, -1.0], [3.0, 1.5]])
    average = torch.classes.signal.Average(1.0, count=1)
    for row in torch.ops.signal.clip(x, limit=2.0):
        average.add(float(row.abs().sum()))
    ring = torch.classes.buffers.Ring()
    for i in range(10):
        ring.push(i)
    return average.value(), torch.ops.buffers.energy(x), ring.sum()
)";

TEST_F(PluginTest, BringOperatorsAndClasses) {
  const fs::path average = build("examples/plugin/average.cpp");
  const fs::path ring = build("examples/plugin/ring.c");
  const Outcome o = script(kPluginScript, {average, ring});
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_EQ(o.text, "(2.0, 12.5, 30)\n");
  // Twice the same is once.
  EXPECT_EQ(script(kPluginScript, {average, ring, average}).text, "(2.0, 12.5, 30)\n");
  const Outcome lacking = script(kPluginScript, {average});
  EXPECT_EQ(lacking.code, 1);
  EXPECT_THAT(lacking.text, HasSubstr("module 'torch.classes.buffers' has no attribute 'Ring'"));

  // A program that is linked with the library, which loads both by the interface for C.
  const fs::path source = folder("plugins") / "host.c";
  write(source, R"(#include <stdio.h>
#include <wick/capi/wick.h>
int main(int argc, char** argv) {
  wick_program* program = NULL;
  wick_value* n = NULL;
  for (int i = 1; i < argc; ++i) {
    if (wick_plugin_load(argv[i])) return printf("%s\n", wick_last_error()->message), 1;
  }
  const char* text =
      "def f() -> int:\n    r = torch.classes.buffers.Ring()\n    r.push(7)\n    return r.sum()\n";
  int64_t number = 0;
  if (wick_compile(text, NULL, NULL, &program) ||
      wick_program_call(program, "f", NULL, 0, NULL, NULL, &n) || wick_value_to_int(n, &number)) {
    return printf("%s\n", wick_last_error()->message), 1;
  }
  printf("%d\n", (int)number);
  wick_value_free(n);
  wick_program_free(program);
  return 0;
}
)");
  for (const char* package : {"wick", "wick-core"}) {
    const fs::path host = folder("plugins") / "host";
    const Outcome built =
        ::run("gcc -Wall -Wextra -Werror " + source.string() + " -o " + host.string() + " " +
              flags(package, "--cflags --libs") + " -Wl,-rpath," + (prefix() / "lib").string());
    ASSERT_EQ(built.code, 0) << built.text;
    EXPECT_EQ(::run(host.string() + " " + ring.string() + " " + average.string()).text, "7\n");
  }
}

TEST_F(PluginTest, OthersAreRefusedWithReasons) {
  const char* kNothing = "def main():\n    return 1\n";
  const auto refusal = [&](const std::vector<fs::path>& plugins) {
    const Outcome o = script(kNothing, plugins);
    EXPECT_EQ(o.code, 1) << o.text;
    return o.text;
  };
  const std::string entry =
      "WICK_API const wick_plugin* wick_plugin_entry(void);\n"
      "WICK_API const wick_plugin* wick_plugin_entry(void) { return &plugin; }\n";
  const fs::path other = buildText("other_version",
                                   "static wick_status add(void) { return WICK_OK; }\n"
                                   "static const wick_plugin plugin = {77, \"old\", NULL, add};\n" +
                                       entry);
  EXPECT_THAT(refusal({other}), AllOf(HasSubstr("built for version 77 of the interface"),
                                      HasSubstr("this is version 2")));
  const fs::path cxx =
      buildText("other_cxx",
                "static wick_status add(void) { return WICK_OK; }\n"
                "static const wick_plugin plugin = {WICK_PLUGIN_ABI, \"old\", \"9.9\", add};\n" +
                    entry);
  EXPECT_THAT(refusal({cxx}), HasSubstr("the plugin 'old' was built with the headers of Wick 9.9"));
  const fs::path none =
      buildText("no_plugin", "int nothing(void);\nint nothing(void) { return 1; }\n");
  EXPECT_THAT(refusal({none}), HasSubstr("it exports no wick_plugin_entry"));
  const fs::path schema =
      buildText("bad_schema",
                "static wick_status f(void* d, wick_value* const* a, size_t n, wick_value** r) "
                "{ (void)d, (void)a, (void)n, (void)r; return WICK_OK; }\n"
                "static wick_status add(void) {\n"
                "  const wick_operator op = {sizeof(op), \"f(Tensr x) -> Tensor\", f, NULL, NULL, "
                "NULL, 0, 0};\n"
                "  const wick_extension e = {sizeof(e), \"bad\", &op, 1, NULL, 0};\n"
                "  return wick_extension_add(&e);\n}\n"
                "static const wick_plugin plugin = {WICK_PLUGIN_ABI, \"bad\", NULL, add};\n" +
                    entry);
  EXPECT_THAT(refusal({schema}),
              AllOf(HasSubstr("the plugin 'bad' could not be added"), HasSubstr("Tensr")));
  // The same names from another file.
  const fs::path ring = build("examples/plugin/ring.c");
  const fs::path copy = folder("plugins") / "ring_copy.so";
  fs::copy_file(ring, copy, fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal({ring, copy}), HasSubstr("there is already a native class"));
  EXPECT_THAT(refusal({"/nowhere.so"}), HasSubstr("/nowhere.so: the plugin cannot be opened"));
}

// Builds the text of a program and runs it, by either library.
class SavingTest : public InstalledTest {
 protected:
  static Outcome buildAndRun(const std::string& package, const std::string& name,
                             const std::string& source, const std::string& arguments) {
    const fs::path program = folder("saving") / (name + "_" + package);
    write(program.string() + (name == "c" ? ".c" : ".cpp"), source);
    const std::string compiler = name == "c" ? "gcc -std=c99 -pedantic " : "g++ -std=c++20 ";
    Outcome o =
        run(compiler + "-Wall -Wextra -Werror " + program.string() + (name == "c" ? ".c" : ".cpp") +
            " -o " + program.string() + " " + flags(package, "--cflags --libs") + " -Wl,-rpath," +
            (prefix() / "lib").string());
    if (o.code == 0) o = run(program.string() + " " + arguments);
    return o;
  }
};

TEST_F(SavingTest, InCpp) {
  const std::string source = R"(
#include <wick/wick.h>

#include <cstdio>

int main(int, char** argv) {
  const std::string folder = argv[1];
  wick::ModuleBuilder net("Net");
  net.registerParameter("weight", wick::Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2}))
      .registerAttribute("eps", wick::types::Float(), 1e-5);
  net.define("def forward(self, x: Tensor) -> Tensor:\n    return x @ self.weight + self.eps\n");
  net.build().save(folder + "/in.pt");

  auto model = wick::load(folder + "/in.pt").eval();
  model.setAttr("eps", 0.1);
  model.save(folder + "/out.pt");

  wick::saveTensors(wick::namedTensors(model.stateDict()), folder + "/state.safetensors");
  for (const auto& [name, tensor] : wick::loadTensors(folder + "/state.safetensors"))
    std::printf("%s %s\n", name.c_str(), tensor.describe().c_str());
  wick::saveValue(model.stateDict(), folder + "/state.pt");
  wick::load(folder + "/out.pt").loadStateDict(wick::loadValue(folder + "/state.pt"));
  wick::freeze(model).save(folder + "/frozen.pt");

  const auto x = wick::Tensor::from({1.f, 1.f}, {1, 2});
  for (const char* name : {"/in.pt", "/out.pt", "/frozen.pt"})
    for (float v : wick::load(folder + name)({x}).tensor().span<float>()) std::printf("%g ", v);
  try {
    model.save("/no/such/folder/out.pt");
  } catch (const wick::RuntimeError& error) {
    std::printf("\n%s\n", error.what());
  }
}
)";
  for (const char* package : {"wick", "wick-core"}) {
    const Outcome o = buildAndRun(package, "cpp", source, folder("saving").string());
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_EQ(o.text,
              "weight float32[2, 2]\n4.00001 6.00001 4.1 6.1 4.1 6.1 \n"
              "RuntimeError: cannot write /no/such/folder/out.pt: No such file or directory\n");
  }
}

TEST_F(SavingTest, InC) {
  const std::string source = R"(
#include <stdio.h>
#include <string.h>
#include <wick/capi/wick.h>

int main(int argc, char** argv) {
  wick_module *model = NULL, *again = NULL;
  wick_value *name = NULL, *bytes = NULL;
  const char* data = NULL;
  size_t count = 0;
  int training = 0;
  int failed = argc != 3 || wick_module_load(argv[1], NULL, &model) ||
               wick_value_from_bool(1, &name) ||
               wick_module_set_attribute(model, "training", name) ||
               wick_module_save(model, argv[2], NULL) ||
               wick_module_save_memory(model, NULL, &bytes) ||
               wick_value_to_string(bytes, &data, &count) ||
               wick_module_load_memory(data, count, NULL, NULL, &again) ||
               wick_module_is_training(again, &training);
  if (failed) {
    fprintf(stderr, "%s\n", wick_last_error()->message);
  } else {
    printf("%d %d\n", training, memcmp(data, "PK", 2) == 0);
    printf("%d ", (int)wick_module_save(model, "/no/such/folder/a.pt", NULL));
    printf("%s\n", wick_last_error()->message);
  }
  wick_value_free(bytes);
  wick_value_free(name);
  wick_module_free(again);
  wick_module_free(model);
  return failed;
}
)";
  for (const char* package : {"wick", "wick-core"}) {
    const fs::path saved = folder("saving") / (std::string(package) + "_c.pt");
    const Outcome o = buildAndRun(package, "c", source, "examples/digits.pt " + saved.string());
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_EQ(
        o.text,
        "1 1\n3 RuntimeError: cannot write /no/such/folder/a.pt: No such file or directory\n");
    EXPECT_EQ(run((prefix() / "bin/torchscript-cli").string() + " check " + saved.string()).code,
              0);
  }
}

// The pieces of code that the documents show: whole programs run, others compile.
TEST_F(InstalledTest, WhatDocumentsShowCompiles) {
  // Names that a piece declares hide the arguments of its function. Pieces without main() are compiled as one file.
  std::string pieces = R"(
#include <wick/wick.h>
#include <wick/wick_ops.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>
)";
  const std::string given = R"(
    wick::Module model, wick::Tensor x, wick::Tensor weight, std::string source,
    std::vector<float> pixels, std::shared_ptr<const std::atomic<bool>> stop_flag) {{
)";
  size_t count = 0;
  for (const char* document : {"README.md", "docs/embedding.md"}) {
    const std::string text = readText(document);
    for (size_t at = 0; (at = text.find("```cpp\n", at)) != std::string::npos;) {
      const size_t end = text.find("```", at + 7);
      ASSERT_NE(end, std::string::npos);
      const std::string code = text.substr(at + 7, end - at - 7);
      at = end;
      const std::string name = "piece" + std::to_string(++count);
      if (code.find("int main(") == std::string::npos) {
        pieces += "#line 1 \"" + std::string(document) + ", " + name +
                  "\"\n[[maybe_unused]] void " + name + "(" + given + code + "}}\n";
        continue;
      }
      const fs::path file = folder("documents") / (name + ".cpp");
      write(file, code);
      const std::string program = fs::path(file).replace_extension().string();
      const Outcome built =
          run("g++ -std=c++20 " + file.string() + " -o " + program + " " +
              flags("wick", "--cflags --libs") + " -Wl,-rpath," + (prefix() / "lib").string());
      EXPECT_EQ(built.code, 0) << document << "\n" << code << built.text;
      EXPECT_EQ(run(program).code, 0) << code;
    }
  }
  EXPECT_GE(count, 5u);
  const fs::path file = folder("documents") / "pieces.cpp";
  write(file, pieces);
  const Outcome built =
      run("g++ -std=c++20 " + file.string() + " -fsyntax-only " + flags("wick", "--cflags"));
  EXPECT_EQ(built.code, 0) << built.text;
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
    EXPECT_EQ(run(build + program + " examples/digits.pt").text, "1\n") << program;
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

// A model that is compiled ahead of time takes the runtime from the prefix.
TEST_F(InstalledTest, CompiledModelsLinkTheRuntime) {
  const std::string out = folder("ahead").string(), at = prefix().string();
  const Outcome built = run(at + "/bin/torchscript-cli build examples/digits.pt" +
                            " --input 1x1x28x28xf32 --output " + out);
  ASSERT_EQ(built.code, 0) << built.text;
  for (const char* file :
       {"wick_aot.c", "wick_aot.h", "wick_aot_loops.h", "wick_aot_convolution.h",
        "wick_aot_elements.h", "engine_parts.h", "small_gemm_blocks.h", "wick_aot_onednn.h"}) {
    fs::remove(fs::path(out) / file);
  }
  const Outcome compiled = run(
      "g++ -std=c++17 -O2 -march=x86-64-v3 -ffp-contract=off -fno-strict-aliasing -fopenmp -I" +
      at + "/include/wick/aot -I" + out + " " + out + "/digits.cpp -x c examples/ahead/digits.c" +
      " -x none " + at + "/lib/libwick-aot.a -ldnnl -o " + out + "/read");
  ASSERT_EQ(compiled.code, 0) << compiled.text;
  EXPECT_EQ(run(out + "/read " + out + "/digits.weights").text, "1\n");
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

// The headers in every compiler that is said to do, with warnings that are errors.
class CompilersTest : public InstalledTest {
 protected:
  // Returns the messages of the compiler for an empty program with these headers.
  static std::string compile(const std::string& compiler, const std::string& flags_,
                             const std::vector<std::string>& headers,
                             const std::string& suffix = ".cpp") {
    std::string text;
    for (const std::string& header : headers) text += "#include <wick/" + header + ">\n";
    const fs::path source = folder("headers") / ("main" + suffix);
    write(source, text + "int main(void) { return 0; }\n");
    const Outcome o = run(compiler + " " + flags_ + " -fsyntax-only " + source.string() + " " +
                          flags("wick", "--cflags"));
    EXPECT_EQ(o.code != 0, o.text.find("error") != std::string::npos) << o.text;
    return o.text;
  }
  static void compileAll(const std::string& compiler, const std::string& c_compiler) {
    constexpr const char* kWarnings =
        "-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Werror ";
    const std::vector<std::string> all = {"wick.h", "wick_ops.h", "lazy/lazy.h",
                                          "distributed/gradient_exchange.h", "distributed/init.h"};
    EXPECT_EQ(compile(compiler, kWarnings + std::string("-std=c++20"), all), "") << compiler;
    EXPECT_EQ(compile(compiler, kWarnings + std::string("-std=c++20 -fno-rtti"), {"wick.h"}), "")
        << compiler;
    EXPECT_EQ(compile(c_compiler, kWarnings + std::string("-std=c99"), {"capi/wick.h"}, ".c"), "")
        << c_compiler;
    for (const char* header : {"wick.h", "wick_ops.h"}) {
      const std::string old = compile(compiler, "-std=c++17", {header});
      EXPECT_THAT(old, HasSubstr("Wick needs C++20")) << compiler;
      // Nothing else, which would hide it.
      EXPECT_EQ(old.find("error:"), old.rfind("error:")) << old;
    }
  }
};

TEST_F(CompilersTest, Gcc) {
  compileAll("g++", "gcc");
}

TEST_F(CompilersTest, Clang) {
  for (const char* version : {"14", "19"}) {
    const std::string cxx = std::string("clang++-") + version;
    if (!isHere(cxx)) {
      std::printf("%s is not installed: the headers are not compiled with it\n", cxx.c_str());
      continue;
    }
    compileAll(cxx, std::string("clang-") + version);
  }
}

// A program without type information uses the library as others do.
TEST_F(CompilersTest, ProgramsWithoutTypeInformationRun) {
  const fs::path source = folder("rtti") / "main.cpp", program = folder("rtti") / "main";
  write(source, R"(#include <wick/wick.h>

#include <cstdio>
#include <iostream>

struct Counter {
  int64_t n = 0;
  int64_t next(int64_t by) { return n += by; }
};
struct Other {};

int main() {
  wick::Extension extension("plain");
  extension.object<Counter>("Counter").init<>().def("next", &Counter::next);
  extension.object<Other>("Other").init<>();
  extension.op("peek(__torch__.torch.classes.plain.Counter c) -> int", [](Counter& c) { return c.n; });
  extension.op("fresh() -> __torch__.torch.classes.plain.Counter", [] { return Counter{40}; });
  extension.add();
  const wick::Program p = wick::compile(
      "def f() -> List[int]:\n"
      "    c = torch.classes.plain.Counter()\n"
      "    d = torch.ops.plain.fresh()\n"
      "    return [c.next(2), c.next(3), torch.ops.plain.peek(c), d.next(2)]\n");
  std::cout << p.call("f", {}) << " " << wick::Tensor::from({1.f, 2.f}) << "\n";
  try {
    wick::detail::Parameter<Counter&>::from(wick::detail::resultValue(Other()));
  } catch (const wick::RuntimeError& e) {
    std::printf("%s\n", e.what());
  }
  try {
    wick::compile(
        "def g() -> int:\n"
        "    return torch.ops.plain.peek(torch.classes.plain.Other())\n");
  } catch (const wick::CompileError&) {
    std::printf("another class\n");
  }
  return 0;
}
)");
  for (const char* package : {"wick", "wick-core"}) {
    const Outcome built = run("g++ -std=c++20 -fno-rtti -Wall -Wextra -Werror " + source.string() +
                              " -o " + program.string() + " " + flags(package, "--cflags --libs") +
                              " -Wl,-rpath," + (prefix() / "lib").string());
    ASSERT_EQ(built.code, 0) << built.text;
    EXPECT_EQ(run(program.string()).text,
              "[2, 5, 5, 42] tensor([1., 2.])\n"
              "RuntimeError: expected __torch__.torch.classes.plain.Counter, got object\n"
              "another class\n");
  }
}

// Lazy tensors and the exchange of gradients are in libwick.so, with headers of their own.
TEST_F(InstalledTest, LazyTensorsAndGroupsOfProcesses) {
  const fs::path source = folder("rooms") / "main.cpp", program = folder("rooms") / "main";
  write(source, R"(#include <wick/distributed/gradient_exchange.h>
#include <wick/distributed/init.h>
#include <wick/lazy/lazy.h>
#include <wick/wick.h>

#include <iostream>

int main() {
  const wick::Device lazy("lazy");
  const wick::Tensor x = wick::Tensor::from({1.f, 2.f}).to(lazy);
  const wick::Program p = wick::compile("def f(x: Tensor) -> Tensor:\n    return (x * 2 + 1).relu()\n");
  const wick::Tensor y = p.call("f", {x}).tensor();
  wick::lazy::markStep();
  std::cout << y.to(wick::Device::cpu()) << " " << wick::lazy::counters().evaluations << "\n";

  const auto group = wick::distributed::init();  // RANK and WORLD_SIZE say one process
  const wick::Tensor w = wick::Tensor::from({3.f});
  w.setRequiresGrad(true);
  wick::distributed::GradientExchange exchange({w});
  wick::backward(p.call("f", {w}).tensor());
  exchange.finish();
  std::cout << group->rank() << " of " << group->size() << " " << wick::gradientOf(w) << "\n";
  wick::distributed::shutdown();
  return 0;
}
)");
  const Outcome built =
      run("g++ -std=c++20 -Wall -Wextra -Werror " + source.string() + " -o " + program.string() +
          " " + flags("wick", "--cflags --libs") + " -Wl,-rpath," + (prefix() / "lib").string());
  ASSERT_EQ(built.code, 0) << built.text;
  const std::string port = std::to_string(20000 + getpid() % 10000);
  EXPECT_EQ(run("RANK=0 WORLD_SIZE=1 MASTER_PORT=" + port + " " + program.string()).text,
            "tensor([3., 5.]) 1\n0 of 1 tensor([2.])\n");
}

TEST_F(InstalledTest, CompletionsComplete) {
  const std::string script =
      (prefix() / "share/bash-completion/completions/torchscript-cli").string();
  const Outcome verbs = run("bash -c 'source " + script +
                            "; COMP_WORDS=(torchscript-cli b); COMP_CWORD=1; _torchscript_cli; "
                            "echo ${COMPREPLY[@]}'");
  EXPECT_EQ(verbs.text, "bench build bisect\n");
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

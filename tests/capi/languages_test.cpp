// The C interface from C, from Python by ctypes and from LuaJIT by its ffi.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/shell.h"

namespace {

using testing::HasSubstr;
using wick::testing_shell::isHere;
using wick::testing_shell::Outcome;
using wick::testing_shell::run;

constexpr const char* kLibrary = "./install/libwick-core.so";
constexpr const char* kDigits = "examples/digits.pt";

TEST(LanguagesTest, TheHeaderIsPlainC) {
  for (const char* standard : {"c99", "c11", "c17"}) {
    const Outcome o = run(std::string("gcc -std=") + standard +
                          " -pedantic -Wall -Wextra -Werror -fsyntax-only -x c capi/wick.h");
    EXPECT_EQ(o.code, 0) << standard << "\n" << o.text;
  }
  const Outcome o =
      run("g++ -std=c++11 -pedantic -Wall -Wextra -Werror -fsyntax-only -x c++ capi/wick.h");
  EXPECT_EQ(o.code, 0) << o.text;
}

// Debian's python3, which may have torch, before any other.
std::string python() {
  return isHere("/usr/bin/python3") ? "/usr/bin/python3" : "python3";
}

TEST(LanguagesTest, PythonCallsIt) {
  const std::string arguments = std::string(" ") + kLibrary + " " + kDigits;
  const Outcome o = run(python() + " tests/capi/ctypes_test.py" + arguments);
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr(" checks\n"));
  const Outcome example = run(python() + " examples/classify.py" + arguments);
  EXPECT_EQ(example.code, 0) << example.text;
  EXPECT_EQ(example.text, "1\n");
}

TEST(LanguagesTest, LuaJitCallsIt) {
  if (!isHere("luajit")) GTEST_SKIP() << "luajit is not installed (tools/install_deps.sh does it)";
  const Outcome o = run(std::string("luajit examples/classify.lua ") + kLibrary + " " + kDigits);
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_EQ(o.text, "1\n");
}

}  // namespace

// What goes wrong, and what is told of it.
#include <wick/wick.h>

#include <cstdio>

int main() {
  try {
    wick::compile("def f(x: int) -> int:\n    return y\n", "f.py");
  } catch (const wick::CompileError& error) {
    std::printf("%s: %s\n", error.range().location().c_str(), error.brief().c_str());
  }
  const auto program = wick::compile(R"(
def half(x: int) -> int:
    if x % 2 != 0:
        raise ValueError("odd")
    return x // 2
)");
  try {
    program.call("half", {3});
  } catch (const wick::RuntimeError& error) {
    std::printf("%s: %s\n", error.className().c_str(), error.brief().c_str());
  }
  try {
    program.call("double", {3});
  } catch (const wick::UsageError& error) {
    std::printf("%s\n", error.what());
  }
  try {
    wick::load("/no/such/model.pt");
  } catch (const wick::LoadError&) {
    std::printf("no model\n");
  }
  try {
    program.call("half", {4}).to<std::string>();
  } catch (const wick::Error& error) {  // the class that all are subclasses of
    std::printf("%s\n", error.what());
  }
}
// Prints:
// f.py:2:12: undefined value y
// ValueError: odd
// the program has no function 'double'
// no model
// RuntimeError: expected str, got int

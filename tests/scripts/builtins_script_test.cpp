// Whole programs over the builtin operators, from source text to values. The results are those that
// PyTorch 1.13 gave for the same functions.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "wick.h"

namespace wick::builtins_script_test {
namespace {

std::string readFile(const char* path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(BuiltinsScriptTest, resultsArePyTorchs) {
  Program program = compile(readFile("tests/scripts/builtins.py"), "builtins.py");
  struct Case {
    const char* function;
    std::vector<IValue> arguments;
    const char* expected;
  };
  const Case cases[] = {
      {"sort_objects", {IValue(0)}, "(['a', 'z', 'b', 'c'], ['c', 'b', 'a', 'z'], [1, 1, 2, 3])"},
      {"numbers",
       {IValue(7), IValue(2.5)},
       "(3, 1, -4, 2, 3.5, 49.0, 1.0, 2.5, 0.5, (1, 3), 7, 2, 7.0, True, 2.0, 28, 3, 5, 15, 4, 3, "
       "7.0, 2, False, False, (7+2.5j))"},
      {"maths",
       {IValue(7), IValue(2.5)},
       "(1.5811388300841898, 2, 3, 0.9162907318741551, 1.3219280948873624, 2.718281828459045, "
       "6.25, 6, 120, 3.141592653589793, False, -1.0, 0.5, (0.5, 2.0), (0.625, 2), 20.0, "
       "1.1902899496825317, 143.2394487827058, 2.5, inf)"},
      {"strings",
       {IValue("abc,a")},
       "('ABC,A', ['abc', 'a'], 'bbc,b', 'b', 'bc', 'a,cba', 'abc,aabc,a', 5, 1, 'x-y', True, "
       "'abc,a', 2, 'abc,a 3', 'abc,a 3', 'abc,a!', 97, 'b', '0xff', False, True, '3', '2.5', "
       "'None', '[1, 2]', '**abc,a**', 'Abc,A', False, '000abc,a', ('abc', ',', 'a'))"},
      {"lists",
       {IValue(makeIntList(DimVector{1, 2, 3}))},
       "([1, 5, 4, 3, 7], [7, 3, 4, 5, 1, 7, 3, 4, 5, 1], 6, True, 4, 1, 20, True, True, [1, 3, 4, "
       "5, 7], 7, [5, 4], [1, 4, 7], 5, False, [0, 2, 4], [2, 5], [1, 2], 7, ['a', 'b'])"},
      {"dicts",
       {IValue(5)},
       "({'c': 5, 'z': 0, 'm': 3}, True, 3, ['a', 'c', 'z'], [1, 5, 0], 1, 3, None, 8, {'a': 2, "
       "'c': 10, 'z': 0}, {1: 2})"},
      {"tensors",
       {IValue(0)},
       "(tensor([[1, 2],\n"
       "        [3, 4]]), tensor(2.5000), tensor([True]), 4, device(type='cpu'), False, False, 1, "
       "1.5, False, [2, 2], 2, tensor([1.5000, 2.5000], dtype=torch.float64), 3, tensor([1, 2]))"},
      {"optional", {IValue()}, "-1"},
      {"optional", {IValue(4)}, "5"},
  };
  for (const Case& c : cases) {
    try {
      EXPECT_EQ(program.call(c.function, c.arguments).repr(), c.expected) << c.function;
    } catch (const Error& error) {
      ADD_FAILURE() << c.function << ": " << error.what();
    }
  }
}

// A comparison that a script defines runs under the limits of the script that sorts.
TEST(BuiltinsScriptTest, sortingObjectsIsLimited) {
  Program program = compile(R"(
class Endless:
    def __init__(self):
        self.x = 1
    def __lt__(self, other: 'Endless') -> bool:
        while self.x > 0:
            self.x += 1
        return True

def f():
    items = [Endless(), Endless()]
    items.sort()
    return 1
)");
  RunOptions options;
  options.max_steps = 10'000;
  EXPECT_THROW(program.call("f", {}, {}, options), RuntimeError);
}

TEST(BuiltinsScriptTest, objectsWithoutOrder) {
  const char* source = R"(
class Plain:
    def __init__(self):
        self.x = 1

def f():
    items = [Plain(), Plain()]
    items.sort()
    return 1
)";
  EXPECT_THROW(compile(source).call("f", {}), Error);
}

}  // namespace
}  // namespace wick::builtins_script_test

// Large programs of several shapes, for tests and measurements of how compiling scales.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace wick {

struct GeneratedShape {
  const char* name;
  // A program of about `lines` lines with a function main.
  std::string (*make)(size_t lines);
};

namespace generated {

inline std::string straightLine(size_t lines) {
  std::string text = "def main(x: int, t: Tensor) -> int:\n    a, u = x, [x]\n";
  for (size_t i = 0; i + 5 < lines; i += 5) {
    text += fmt::format(
        "    a{0} = x + {0}\n    x = x * 3 - a{0}\n    t = t + x\n    u = [x, a{0}]\n"
        "    x = u[0] if x > 3 else len(u)\n",
        i);
  }
  return text + "    return x\n";
}

// Each function calls one of the earlier ones.
inline std::string manyFunctions(size_t lines) {
  std::string text = "def f0(x: int) -> int:\n    return x + 1\n";
  size_t count = lines / 4;
  for (size_t i = 1; i < count; ++i) {
    text += fmt::format(
        "def f{0}(x: int) -> int:\n    if x > {0}:\n        x = x - 1\n    return f{1}(x)\n", i,
        i / 2);
  }
  return text + fmt::format("def main(x: int) -> int:\n    return f{}(x)\n", count - 1);
}

// Each function calls the next one, which is not compiled yet.
inline std::string callChain(size_t lines) {
  std::string text = "def main(x: int) -> int:\n    return f0(x)\n";
  size_t count = lines / 2;
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("def f{}(x: int) -> int:\n    return f{}(x) + 1\n", i, i + 1);
  }
  return text + fmt::format("def f{}(x: int) -> int:\n    return x\n", count);
}

// Ifs and loops that alternate sixty deep, many times.
inline std::string deepNests(size_t lines) {
  constexpr size_t kDepth = 60;
  std::string text = "def main(x: int) -> int:\n";
  for (size_t line = 1; line + kDepth < lines; line += kDepth + 2) {
    std::string indent = "    ";
    for (size_t d = 0; d < kDepth; ++d, indent += ' ') {
      text += indent + (d % 2 == 0 ? fmt::format("for i{} in range(x):\n", d)
                                   : fmt::format("if x > {}:\n", d));
    }
    text += indent + "x = x + 1\n" + indent + "y = x\n";
  }
  return text + "    return x\n";
}

inline std::string elifChain(size_t lines) {
  std::string text = "def main(x: int) -> int:\n    y = 0\n    if x == -1:\n        y = 1\n";
  for (size_t i = 0; i < lines / 2; ++i) {
    text += fmt::format("    elif x == {0}:\n        y = {0}\n", i);
  }
  return text + "    return y\n";
}

// Each level knows more about the variables than the one before.
inline std::string refinedElifs(size_t lines) {
  std::string parameters;
  std::string text = "    y = 0\n    if b:\n        y = 1\n";
  for (size_t i = 0; i < lines / 4; ++i) {
    parameters += fmt::format("x{0}: Optional[int], u{0}: Union[int, str, float], ", i);
    text += fmt::format(
        "    elif x{0} is None:\n        y = {0}\n    elif isinstance(u{0}, int):\n        y = "
        "u{0}\n",
        i);
  }
  return "def main(" + parameters + "b: bool) -> int:\n" + text + "    return y\n";
}

inline std::string keywordArguments(size_t lines) {
  std::string parameters;
  std::string arguments;
  for (size_t i = 0; i < lines / 2; ++i) {
    parameters += fmt::format("a{}: int,\n", i);
    arguments += fmt::format("a{}=x,\n", lines / 2 - 1 - i);
  }
  return "def f(" + parameters +
         ") -> int:\n    return a0\ndef main(x: int) -> int:\n    return f(" + arguments + ")\n";
}

inline std::string namesForConstants(size_t lines) {
  std::string text = "C0 = 1\nD0 = torch.float32\n";
  for (size_t i = 1; i < lines / 2; ++i)
    text += fmt::format("C{0} = C{1}\nD{0} = torch.float32\n", i, i - 1);
  return text + fmt::format("def main() -> int:\n    return C{}\n", lines / 2 - 1);
}

inline std::string unrolledLoop(size_t lines) {
  std::string text = "def main(x: int) -> int:\n    for i in (\n";
  for (size_t i = 0; i < lines / 4; ++i) text += fmt::format("            {},\n", i);
  return text + "            ):\n        if x == i:\n            x = x + i\n    return x\n";
}

inline std::string interfaceWithMethods(size_t lines) {
  std::string interface = "@torch.jit.interface\nclass I:\n";
  std::string calls = "def main(a: I) -> int:\n    x = 0\n";
  for (size_t i = 0; i < lines / 3; ++i) {
    interface += fmt::format("    def m{}(self) -> int:\n        pass\n", i);
    calls += fmt::format("    x = a.m{}()\n", i);
  }
  return interface + calls + "    return x\n";
}

inline std::string earlyReturns(size_t lines) {
  std::string text = "def main(x: int, y: int) -> int:\n";
  for (size_t i = 0; i < lines / 2; ++i) {
    text += fmt::format("    if x == {0}:\n        return y + {0}\n", i);
  }
  return text + "    return x\n";
}

inline std::string loopsWithBreaks(size_t lines) {
  std::string text = "def main(x: int, y: int) -> int:\n";
  for (size_t i = 0; i < lines / 6; ++i) {
    text += fmt::format(
        "    for i{0} in range(3):\n        if x > 100:\n            break\n        x = x + y\n"
        "    while y < {0}:\n        y = y + 1\n",
        i);
  }
  return text + "    return x\n";
}

inline std::string listDisplay(size_t lines) {
  std::string text = "def main(x: int) -> int:\n    a = [\n";
  for (size_t i = 0; i < lines; ++i) text += fmt::format("        x + {},\n", i);
  return text + "    ]\n    return len(a)\n";
}

inline std::string dictDisplay(size_t lines) {
  std::string text = "def main(x: int) -> int:\n    a = {\n";
  for (size_t i = 0; i < lines; ++i) text += fmt::format("        'k{0}': x + {0},\n", i);
  return text + "    }\n    return len(a)\n";
}

inline std::string classWithMethods(size_t lines) {
  std::string text =
      "class C:\n    x: int\n    def __init__(self, x: int):\n        self.x = x\n"
      "    def m0(self, a: int) -> int:\n        return a\n";
  size_t count = lines / 3;
  for (size_t i = 1; i < count; ++i) {
    text += fmt::format(
        "    def m{}(self, a: int) -> int:\n        self.x = self.x + a\n"
        "        return self.m{}(a)\n",
        i, i / 2);
  }
  return text +
         fmt::format("def main(x: int) -> int:\n    c = C(x)\n    return c.m{}(2)\n", count - 1);
}

inline std::string withStatements(size_t lines) {
  std::string text = "def main(x: int) -> int:\n";
  for (size_t i = 0; i < lines / 4; ++i) {
    text +=
        "    with torch.no_grad():\n        x = x + 1\n        if x == -7:\n"
        "            return 3\n";
  }
  return text + "    return x\n";
}

inline std::string tensorCode(size_t lines) {
  std::string text = "def main(x: Tensor, w: Tensor) -> Tensor:\n";
  for (size_t i = 0; i < lines / 4; ++i) {
    text +=
        "    y = torch.add(x, w, alpha=2)\n    x = torch.relu(y + x[0:, None, ...])\n"
        "    x[0] = y.sum()\n    x += 1\n";
  }
  return text + "    return x\n";
}

// Each line reads one element of large tuples, and cuts a few off.
inline std::string largeTuples(size_t lines) {
  const size_t count = lines / 3;
  std::string known = "K = (", held = "    h = (";
  for (size_t i = 0; i < count; ++i) {
    known += fmt::format("{}, ", i);
    held += "x, ";
  }
  std::string text = known + ")\ndef main(x: int) -> int:\n" + held + ")\n";
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("    x += K[{0}] + h[{0}]\n    x += len(K[{0}:{1}])\n", i, i + 3);
    text += fmt::format("    x += len(h[{0}:{1}])\n", i, i + 3);
  }
  return text + "    return x\n";
}

// Members of an enum, half of the lines; each other line uses one.
inline std::string enumMembers(size_t lines) {
  std::string text = "class E(Enum):\n", uses;
  for (size_t i = 0; i < lines / 2; ++i) {
    text += fmt::format("    A{0} = {0}\n", i);
    uses += fmt::format("    x += E.A{}.value\n", i);
  }
  return text + "def main(x: int) -> int:\n" + uses + "    return x\n";
}

}  // namespace generated

inline const std::vector<GeneratedShape>& generatedShapes() {
  static const std::vector<GeneratedShape> shapes = {
      {"straight_line", generated::straightLine},
      {"many_functions", generated::manyFunctions},
      {"call_chain", generated::callChain},
      {"deep_nests", generated::deepNests},
      {"elif_chain", generated::elifChain},
      {"refined_elifs", generated::refinedElifs},
      {"keyword_arguments", generated::keywordArguments},
      {"names_for_constants", generated::namesForConstants},
      {"unrolled_loop", generated::unrolledLoop},
      {"interface_with_methods", generated::interfaceWithMethods},
      {"early_returns", generated::earlyReturns},
      {"loops_with_breaks", generated::loopsWithBreaks},
      {"list_display", generated::listDisplay},
      {"dict_display", generated::dictDisplay},
      {"class_with_methods", generated::classWithMethods},
      {"with_statements", generated::withStatements},
      {"tensor_code", generated::tensorCode},
      {"large_tuples", generated::largeTuples},
      {"enum_members", generated::enumMembers},
  };
  return shapes;
}

}  // namespace wick

#include "tests/fuzz/claims_program.h"

#include <fmt/format.h>

#include <utility>

namespace wick {
namespace {

enum class Kind { Int, Float, Bool, Str, Tensor, None, Any, Optional, List, Dict, Tuple, Named };

struct Claimed {
  Kind kind = Kind::Int;
  std::vector<Claimed> parts{};
};

// Types, values of them or of others, and statements that rely on a type.
class Writer {
 public:
  explicit Writer(std::string_view bytes) : choices_(bytes) {}

  Claimed type(int depth = 3) {
    static constexpr Kind kPlain[] = {Kind::Int, Kind::Float, Kind::Bool, Kind::Str, Kind::Tensor};
    const size_t choice = choices_.below(depth > 0 ? 12 : 5);
    if (choice < 5) return {kPlain[choice]};
    switch (choice) {
      case 5:
        return {Kind::Any};
      case 6:
      case 7:
        return {Kind::Optional, {type(depth - 1)}};
      case 8:
        return {Kind::Dict, {Claimed{choices_.once(2) ? Kind::Int : Kind::Str}, type(depth - 1)}};
      case 9: {
        std::vector<Claimed> parts;
        for (size_t n = 1 + choices_.below(3); n > 0; --n) parts.push_back(type(depth - 1));
        return {Kind::Tuple, std::move(parts)};
      }
      case 10:
        return {Kind::Named};
      default:
        return {Kind::List, {type(depth - 1)}};
    }
  }

  static std::string text(const Claimed& t) {
    switch (t.kind) {
      case Kind::Int:
        return "int";
      case Kind::Float:
        return "float";
      case Kind::Bool:
        return "bool";
      case Kind::Str:
        return "str";
      case Kind::Tensor:
        return "Tensor";
      case Kind::None:
        return "NoneType";
      case Kind::Any:
        return "Any";
      case Kind::Named:
        return named_;
      case Kind::Optional:
        return "Optional[" + text(t.parts[0]) + "]";
      case Kind::List:
        return "List[" + text(t.parts[0]) + "]";
      case Kind::Dict:
        return "Dict[" + text(t.parts[0]) + ", " + text(t.parts[1]) + "]";
      case Kind::Tuple: {
        std::string parts;
        for (const Claimed& part : t.parts) parts += (parts.empty() ? "" : ", ") + text(part);
        return "Tuple[" + parts + "]";
      }
    }
    return "int";
  }

  // A value of the type, but for parts that are of another one.
  std::string value(const Claimed& t, int depth = 4) {
    if (depth > 0 && choices_.once(10)) return value(type(1), depth - 1);
    switch (t.kind) {
      case Kind::Int:
        return fmt::format("{}", choices_.below(7));
      case Kind::Float:
        return choices_.once(2) ? "-0.5" : "2.0";
      case Kind::Bool:
        return choices_.once(2) ? "True" : "False";
      case Kind::Str:
        return choices_.once(2) ? "\"ab\"" : "\"\"";
      case Kind::Tensor:
        return "torch.tensor([1., 2.])";
      case Kind::None:
        return "None";
      case Kind::Any:
        return value(type(1), depth - 1);
      case Kind::Named:
        return fmt::format("{}({}, {})", named_, value({Kind::Int}, depth - 1),
                           value({Kind::Str}, depth - 1));
      case Kind::Optional:
        return choices_.once(3) ? "None" : value(t.parts[0], depth - 1);
      case Kind::List: {
        std::string parts;
        for (size_t n = choices_.below(4); n > 0; --n) parts += value(t.parts[0], depth - 1) + ", ";
        return "[" + parts + "]";
      }
      case Kind::Dict: {
        std::string parts;
        for (size_t n = choices_.below(3); n > 0; --n) {
          parts += value(t.parts[0], depth - 1) + ": " + value(t.parts[1], depth - 1) + ", ";
        }
        return "{" + parts + "}";
      }
      case Kind::Tuple: {
        std::string parts;
        for (const Claimed& part : t.parts) parts += value(part, depth - 1) + ", ";
        return "(" + parts + ")";
      }
    }
    return "0";
  }

  // Statements that read a value as its type tells.
  void use(const Claimed& t, const std::string& v, const std::string& indent) {
    const auto say = [&](const std::string& line) { lines_ += indent + line + "\n"; };
    const std::string inner = indent + "  ";
    switch (t.kind) {
      case Kind::Int:
        return say(fmt::format("total += {} * 2 + 1", v));
      case Kind::Float:
        return say(fmt::format("total += int({} * 0.5)", v));
      case Kind::Bool:
        say(fmt::format("if {}:", v));
        return say("  total += 1");
      case Kind::Str:
        say(fmt::format("total += len({} + \"s\")", v));
        return say(fmt::format("for letter in {}:\n{}  total += ord(letter)", v, indent));
      case Kind::Tensor:
        return say(fmt::format("total += int({}.sum())", v));
      case Kind::None:
        return;
      case Kind::Any: {
        const Claimed other = type(1);
        const std::string name = fresh();
        say(fmt::format("if isinstance({}, {}):", v, text(other)));
        say(fmt::format("  {} = {}", name, v));
        return use(other, name, inner);
      }
      case Kind::Named:
        say(fmt::format("total += {0}.a + len({0}.b)", v));
        return;
      case Kind::Optional: {
        const std::string name = fresh();
        say(fmt::format("{} = {}", name, v));
        say(fmt::format("if {} is not None:", name));
        say("  total += 1");
        return use(t.parts[0], name, inner);
      }
      case Kind::List: {
        const std::string name = fresh();
        say(fmt::format("for {} in {}:", name, v));
        say("  total += 1");
        return use(t.parts[0], name, inner);
      }
      case Kind::Dict: {
        const std::string key = fresh(), name = fresh();
        say(fmt::format("for {}, {} in {}.items():", key, name, v));
        say("  total += 1");
        use(t.parts[0], key, inner);
        return use(t.parts[1], name, inner);
      }
      case Kind::Tuple: {
        std::vector<std::string> names;
        std::string all;
        for (size_t i = 0; i < t.parts.size(); ++i) {
          names.push_back(fresh());
          all += names.back() + ", ";
        }
        say(fmt::format("{} = {}", all, v));
        for (size_t i = 0; i < names.size(); ++i) use(t.parts[i], names[i], indent);
      }
    }
  }

  // A class with two fields, which `Kind::Named` is, before functions use it.
  std::string namedTuple() {
    const bool has_default = choices_.once(2);
    return fmt::format("class P(NamedTuple):\n  a: int\n  b: str{}\n",
                       has_default ? " = " + value({Kind::Str}) : "");
  }

  std::string fresh() { return fmt::format("v{}", next_++); }
  Choices& choices() { return choices_; }
  std::string takeLines() { return std::exchange(lines_, ""); }

 private:
  static constexpr const char* named_ = "P";
  Choices choices_;
  std::string lines_;
  int next_ = 0;
};

// A cast of `v` to the type, as an expression.
std::string cast(Writer& writer, const Claimed& type, const std::string& v) {
  switch (writer.choices().below(4)) {
    case 0:
      return fmt::format("annotate({}, {})", Writer::text(type), v);
    case 1:
      return fmt::format("unchecked_cast({}, {})", Writer::text(type), writer.value(type));
    default:
      return fmt::format("unchecked_cast({}, {})", Writer::text(type), v);
  }
}

// Returns a size; some are too large for any memory, or for an int.
const char* sizeText(Choices& choices) {
  static constexpr const char* kSizes[] = {
      "0",       "1",        "3",     "-1",    "7",      "100", "1000", "20000",
      "1000000", "30000000", "2**31", "2**62", "-2**63", "12",  "2",    "5"};
  return kSizes[choices.below(16)];
}

// One of the forms, in which {0} and {1} are earlier names and {2} is a size.
template <size_t N>
std::string form(const char* const (&forms)[N], Choices& choices, size_t names, const char* name) {
  static_assert(N <= 256);
  const auto earlier = [&] { return fmt::format("{}{}", name, choices.below(names)); };
  const std::string one = earlier(), other = earlier();
  return fmt::format(fmt::runtime(forms[choices.below(N)]), one, other, sizeText(choices));
}

}  // namespace

std::string defaultValuesProgram(std::string_view bytes) {
  Writer writer(bytes);
  std::string program = writer.namedTuple();
  const Claimed x = writer.type(), y = writer.type();
  program += fmt::format("def f(x: {} = {}, y: {} = {}):\n  total = 0\n", Writer::text(x),
                         writer.value(x), Writer::text(y), writer.value(y));
  writer.use(x, "x", "  ");
  writer.use(y, "y", "  ");
  program += writer.takeLines();
  program += "  return x, y, total\ndef main():\n  return f()\n";
  return program;
}

std::string castsProgram(std::string_view bytes, bool archive) {
  Writer writer(bytes);
  std::string program = archive ? "" : writer.namedTuple();
  const Claimed from = writer.choices().once(2) ? Claimed{Kind::Any} : writer.type(),
                to = writer.type(), again = writer.type(1);
  const std::string indent = archive ? "    " : "  ";
  std::string body = fmt::format("{}total = 0\n", indent);
  if (archive) body += fmt::format("{}x = annotate(Any, {})\n", indent, writer.value(from));
  body += fmt::format("{}y = {}\n", indent, cast(writer, to, "x"));
  writer.use(to, "y", indent);
  body += writer.takeLines();
  body += fmt::format("{}z = {}\n", indent, cast(writer, again, "y"));
  writer.use(again, "z", indent);
  body += writer.takeLines();
  if (archive) {
    return program +
           "class M(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
           "  def forward(self: __torch__.M) -> Any:\n" +
           body + "    return annotate(Any, (y, z, total))\n";
  }
  return program +
         fmt::format("def f(x: {}):\n{}  return y, z, total\n", Writer::text(from), body) +
         fmt::format("def main():\n  return f({})\n", writer.value(from));
}

std::string fileConstantsProgram(std::string_view bytes) {
  static constexpr const char* kForms[] = {"\"ab\" * {2}",
                                           "[{0}] * {2}",
                                           "{0} + {1}",
                                           "{0} == {1}",
                                           "{0} < {1}",
                                           "{2} * 3",
                                           "{0} * {2}",
                                           "str({0})",
                                           "len({0})",
                                           "[v for v in range({2})]",
                                           "{{k: {0} for k in range({2})}}",
                                           "f\"{{{0}:>{2}}}\"",
                                           "f\"{{{0}}}{{{1}}}\"",
                                           "{0}[::2]",
                                           "{0}[{2}]",
                                           "sum({0})",
                                           "sorted({0})",
                                           "min({0})",
                                           "max({0}, {1})",
                                           "({0}, {1})",
                                           "{0} in {1}",
                                           "-{0}",
                                           "not {0}",
                                           "{0} ** {2}",
                                           "1 << {2}",
                                           "{0} // {1}",
                                           "{0} % {1}",
                                           "{0} and {1}",
                                           "{0} if {1} else {2}",
                                           "list(range({2}))",
                                           "tuple({0})",
                                           "set({0})",
                                           "abs({0})",
                                           "\"%s\" % {0}",
                                           "\"{{}}\".format({0})",
                                           "{0}.upper()",
                                           "{0}.replace(\"a\", {1})",
                                           "{0}.split(\"a\")",
                                           "{0}.join([{1}, {1}])",
                                           "int({0})",
                                           "float({0})",
                                           "[[{0}] * {2}] * {2}",
                                           "torch.ones({2})",
                                           "torch.tensor({0})",
                                           "{0} != {1}",
                                           "1.5",
                                           "None",
                                           "\"\\n\\x00\" * {2}",
                                           "[{0}, {1}] + [{1}]",
                                           "repr({0})",
                                           "bool({0})",
                                           "{0}.count(\"a\")"};
  Choices choices(bytes);
  std::string program = "C0 = 3\nC1 = \"ab\"\n";
  size_t count = 2;
  for (const size_t end = 3 + choices.below(8); count < end; ++count) {
    program += fmt::format("C{} = {}\n", count, form(kForms, choices, count, "C"));
  }
  if (choices.once(2)) {
    program += "class E(Enum):\n";
    for (size_t i = 0; i < 3; ++i) {
      program += fmt::format("  M{} = {}\n", i, form(kForms, choices, count, "C"));
    }
    program += fmt::format("def main():\n  return E.M1 == E.M2, E.M0.value, C{}\n", count - 1);
  } else {
    program += fmt::format("def main():\n  return C{}, C{}\n", count - 1, choices.below(count));
  }
  return program;
}

std::string textsProgram(std::string_view bytes) {
  static constexpr const char* kForms[] = {
      "{0} * ({2})",
      "{0} + {1}",
      "str([{0}] * ({2}))",
      "str({{\"k\": [{0}, {1}]}})",
      "repr({0})",
      "f\"{{{0}!r}}{{{1}}}\"",
      "f\"{{len({0}):>{2}}}\"",
      "f\"{{{0}:>30000}}\"",
      "\"%s %s\" % ({0}, {1})",
      "\"{{}}{{}}\".format({0}, {1})",
      "{0}.join([{1}] * ({2}))",
      "{0}.replace(\"a\", {1})",
      "{0}.replace(\"\", {1})",
      "{0}.center({2})",
      "{0}.ljust({2})",
      "{0}.zfill({2})",
      "{0}.expandtabs({2})",
      "{0}.upper()",
      "{0}[::-1]",
      "str({0}.split(\"a\"))",
      "{0}.strip({1})",
      "str({0} in {1})",
      "str({0} < {1})",
      "str(hash({0}))",
      "str(torch.zeros([8]))",
      "{0}.lower()",
      "str(torch.arange(30000))",
      "str(({0}, {1}, [({0}, {1})]))",
      "str({0}.find({1}))",
      "\"\\t\\n\\\\\\x01\" * ({2})",
      "str({0}.count({1}))",
      "str({0}.splitlines())",
      "{0}.title()",
      "{0}.partition({1})[0]",
      "str({0}.startswith({1}))",
      "str(list({0}))",
      "chr({2})",
      "str([str(i) for i in range({2})])",
      "str(torch.einsum({0}, [torch.ones([2]), torch.ones([2])]))",
      "str(int({0}))",
      "str(float({0}))",
      "str(torch.device({0}))",
      "str(id(main2))"};
  Choices choices(bytes);
  std::string program = "def main():\n  s0 = \"ab\\n\"\n  s1 = \"i,i->\"\n";
  size_t count = 2;
  for (const size_t end = 3 + choices.below(8); count < end; ++count) {
    program += fmt::format("  s{} = {}\n", count, form(kForms, choices, count, "s"));
  }
  const std::string last = fmt::format("s{}", count - 1);
  switch (choices.below(5)) {
    case 0:
      program += fmt::format("  assert len({0}) < 0, {0}\n", last);
      break;
    case 1:
      program += fmt::format("  raise ValueError({})\n", last);
      break;
    case 2:
      program += fmt::format("  d = {{{0}: 1}}\n  x = d[{0} + \"z\"]\n", last);
      break;
    default:
      break;
  }
  return program + fmt::format("  return {}\n", last);
}

}  // namespace wick

// The builtin operators on values that are not tensors, against a table of calls and the results
// that PyTorch gave (Python itself for the methods of strings and lists). A line is the operator,
// its arguments and the repr of the result; "!" is an error, and after "=" stands the repr of the
// first argument after the call.
#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <limits>
#include <unordered_set>

#include "core/error.h"
#include "core/grad_mode.h"
#include "core/messages.h"
#include "ir/operator.h"
#include "runtime/ops/values/order.h"

namespace wick::builtins_test {
namespace {

const Operator& find(const std::string& qualified) {
  size_t colons = qualified.find("::");
  size_t dot = qualified.find('.', colons);
  std::string overload = dot == std::string::npos ? "" : qualified.substr(dot + 1);
  const Operator* op =
      OperatorRegistry::instance().find(Symbol::fromQualString(qualified.substr(0, dot)), overload);
  if (!op) throw std::runtime_error("no operator " + qualified);
  return *op;
}

// The only result; several become a tuple, none is None.
IValue call(const std::string& qualified, std::vector<IValue> args) {
  const Operator& op = find(qualified);
  const auto& formal = op.schema().arguments();
  for (size_t i = args.size(); i < formal.size(); ++i) args.push_back(*formal[i].default_value);
  std::vector<IValue> results(op.schema().returns().size());
  op.call(args.data(), args.size(), results.data(), results.size());
  if (results.empty()) return {};
  return results.size() == 1 ? results[0] : IValue(makeTuple(std::move(results)));
}

// Reads the literals of the table.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}
  std::vector<IValue> all() {
    std::vector<IValue> out;
    while (!text_.empty()) {
      out.push_back(value());
      accept(" ");
    }
    return out;
  }

 private:
  bool accept(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  IValue value() {
    if (accept("None")) return {};
    if (accept("True")) return true;
    if (accept("False")) return false;
    if (accept("[")) return list();
    if (accept("\"")) return string();
    if (accept("c(")) {
      double re = value().numberToDouble();
      accept(",");
      double im = value().numberToDouble();
      accept(")");
      return std::complex<double>(re, im);
    }
    size_t length = std::min(text_.find_first_of(" ,)]"), text_.size());
    std::string_view digits = text_.substr(0, length);
    text_.remove_prefix(length);
    int64_t i = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + length, i);
    if (error == std::errc() && end == digits.data() + length) return i;
    double d = 0;
    auto [float_end, float_error] = std::from_chars(digits.data(), digits.data() + length, d);
    EXPECT_TRUE(float_error == std::errc() && float_end == digits.data() + length) << digits;
    return d;
  }
  IValue list() {
    std::vector<IValue> values;
    while (!accept("]")) {
      values.push_back(value());
      accept(",");
    }
    TypePtr type = values.empty() ? types::Int() : values[0].type();
    return IValue(makeList(type, std::move(values)));
  }
  IValue string() {
    std::string out;
    while (!accept("\"")) out += unescape(text_);
    return out;
  }

 public:
  static char unescape(std::string_view& s) {
    char c = s[0];
    s.remove_prefix(1);
    if (c != '\\') return c;
    c = s[0];
    if (c < '0' || c > '7') {
      s.remove_prefix(1);
      return c == 'n' ? '\n' : c;
    }
    int code = (s[0] - '0') * 64 + (s[1] - '0') * 8 + (s[2] - '0');
    s.remove_prefix(3);
    return static_cast<char>(code);
  }

 private:
  std::string_view text_;
};

TEST(BuiltinsTest, theTableOfCalls) {
  std::ifstream file("tests/runtime/builtin_cases.txt");
  ASSERT_TRUE(file);
  size_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    size_t tab = line.find('\t');
    size_t second = line.find('\t', tab + 1);
    std::string name = line.substr(0, tab);
    std::vector<IValue> args = Literals(line.substr(tab + 1, second - tab - 1)).all();
    std::string expected;
    for (std::string_view rest = std::string_view(line).substr(second + 1); !rest.empty();) {
      expected += Literals::unescape(rest);
    }
    bool in_place = expected[0] == '=';
    std::string got;
    try {
      IValue result = call(name, args);
      got = in_place ? "=" + args[0].repr() : result.repr();
    } catch (const RuntimeError&) {
      got = in_place ? "=!" : "!";
    }
    EXPECT_EQ(got, expected) << line;
  }
  EXPECT_GT(count, 900u);
}

// Every operator of PyTorch that has no tensor in its declaration, but for those that Wick does
// differently: control flow and calls of the interpreter, fusion groups, remote objects, settings
// of other devices.
TEST(BuiltinsTest, nothingIsMissing) {
  std::ifstream file("tests/runtime/torch_schemas.txt");
  ASSERT_TRUE(file);
  const std::unordered_set<std::string> elsewhere = {"aten::wait",
                                                     "prim::Print",
                                                     "prim::RaiseException",
                                                     "prim::TupleIndex",
                                                     "prim::TupleUnpack",
                                                     "prim::Uninitialized",
                                                     "prim::unchecked_cast",
                                                     "prim::unchecked_unwrap_optional",
                                                     "prim::tolist",
                                                     "prim::AddStatValue",
                                                     "aten::save",
                                                     "prim::ModuleContainerIndex.dict",
                                                     "prim::ModuleContainerIndex.list",
                                                     "prim::PythonOp",
                                                     "prim::IgnoredPythonOp",
                                                     "prim::profile",
                                                     "prim::profile_ivalue",
                                                     "prim::BailoutTemplate",
                                                     "aten::_nnpack_available",
                                                     "aten::_use_cudnn_rnn_flatten_weight"};
  for (std::string line; std::getline(file, line);) {
    if (line.find("Tensor") != std::string::npos) continue;
    if (line.find("RRef") != std::string::npos || line.find("_cufft") != std::string::npos)
      continue;
    std::string name = line.substr(0, line.find('('));
    bool ours = name.starts_with("aten::") || name.starts_with("prim::");
    bool varret = line.find("-> ...") != std::string::npos;
    bool graph = name.starts_with("prim::Autograd") || name.starts_with("prim::CudaFusion") ||
                 name.starts_with("prim::rpc");
    if (!ours || varret || graph || elsewhere.contains(name)) continue;
    EXPECT_NO_THROW(find(name)) << line;
  }
}

TEST(BuiltinsTest, dicts) {
  auto dict = makeRef<DictObject>(types::String(), types::Int());
  IValue d(dict);
  call("aten::_set_item.str", {d, "b", 1});
  call("aten::_set_item.str", {d, "a", 2});
  EXPECT_EQ(call("aten::keys.str", {d}).repr(), "['b', 'a']");
  EXPECT_EQ(call("aten::values.str", {d}).repr(), "[1, 2]");
  EXPECT_EQ(call("aten::items.str", {d}).repr(), "[('b', 1), ('a', 2)]");
  EXPECT_EQ(call("aten::items.str", {d}).type()->str(), "(str, int)[]");
  EXPECT_EQ(call("aten::__getitem__.Dict_str", {d, "a"}).repr(), "2");
  EXPECT_THROW(call("aten::__getitem__.Dict_str", {d, "z"}), RuntimeError);
  EXPECT_TRUE(call("aten::get.str", {d, "z"}).isNone());
  EXPECT_EQ(call("aten::get.default_str", {d, "z", 5}).repr(), "5");
  EXPECT_EQ(call("aten::setdefault.str", {d, "c", 9}).repr(), "9");
  EXPECT_EQ(call("aten::setdefault.str", {d, "c", 8}).repr(), "9");
  IValue copy = call("aten::copy.Dict_str", {d});
  EXPECT_EQ(call("aten::popitem.str", {d}).repr(), "('c', 9)");
  EXPECT_EQ(call("aten::pop.Dict_str", {d, "b"}).repr(), "1");
  EXPECT_EQ(call("aten::pop.Dict_default_str", {d, "b", 7}).repr(), "7");
  EXPECT_THROW(call("aten::pop.Dict_str", {d, "b"}), RuntimeError);
  EXPECT_THROW(call("aten::Delete.Dict_str", {d, "b"}), RuntimeError);
  EXPECT_EQ(d.repr(), "{'a': 2}");
  call("aten::update.str", {d, copy});
  EXPECT_EQ(d.repr(), "{'a': 2, 'b': 1, 'c': 9}");
  EXPECT_EQ(call("aten::dict.str", {call("aten::items.str", {d})}).repr(), d.repr());
  call("aten::clear.str", {d});
  EXPECT_EQ(call("aten::len.Dict_str", {d}).toInt(), 0);
  EXPECT_THROW(call("aten::popitem.str", {d}), RuntimeError);
}

TEST(BuiltinsTest, aListExtendsItself) {
  IValue list(makeList(types::Int(), {IValue(1), IValue(2)}));
  call("aten::extend.t", {list, list});
  EXPECT_EQ(list.repr(), "[1, 2, 1, 2]");
}

TEST(BuiltinsTest, listsOfTensors) {
  Tensor a = Tensor::scalar(2.0f);
  Tensor b = Tensor::scalar(-1.0f);
  IValue list(makeTensorList({a, b}));
  EXPECT_EQ(call("aten::index.list_Tensor", {list, Tensor::scalar(-1.0f)}).toInt(), 1);
  call("aten::sort.Tensor", {list, false});
  EXPECT_TRUE(list.elements()[0].toTensor().isSame(b));
  call("aten::remove.Tensor", {list, a});
  EXPECT_EQ(list.elements().size(), 1u);
  Tensor pair = Tensor::zeros(DimVector{2}, DType::Float);
  EXPECT_THROW(call("aten::count.Tensor", {list, pair}), RuntimeError);
}

TEST(BuiltinsTest, sizesAreBounded) {
  IValue list(makeList(types::Int(), {IValue(1), IValue(2)}));
  EXPECT_THROW(call("aten::mul.left_t", {list, INT64_MAX}), RuntimeError);
  EXPECT_THROW(call("aten::center", {"a", INT64_MAX, " "}), RuntimeError);
  EXPECT_THROW(call("aten::expandtabs", {"\t", INT64_MAX}), RuntimeError);
  EXPECT_THROW(call("prim::rangelist", {INT64_MAX}), RuntimeError);
  EXPECT_THROW(call("aten::mul.str_int", {"ab", INT64_MAX}), RuntimeError);
}

// Texts for which a plain search compares as often as both lengths multiplied.
TEST(BuiltinsTest, searchingIsLinear) {
  const std::string same(2000000, 'a');
  const std::string part(200000, 'a');
  EXPECT_EQ(call("aten::find", {same, part + "b", 0, -1}).toInt(), -1);
  EXPECT_EQ(call("aten::rfind", {same, "b" + part, 0, -1}).toInt(), -1);
  EXPECT_EQ(call("aten::rfind", {same, part, 0, -1}).toInt(), 1800000);
  EXPECT_EQ(call("aten::count", {same, part, 0, -1}).toInt(), 10);
  EXPECT_EQ(call("aten::strip", {same, std::string(200000, 'b') + "a"}).toString(), "");
  EXPECT_EQ(call("aten::rsplit", {same, part, -1}).elements().size(), 11u);
  EXPECT_EQ(call("aten::rsplit", {"a--b--c", "--", 1}).repr(), "['a--b', 'c']");
  EXPECT_EQ(call("aten::rsplit", {"a---b", "--", -1}).repr(), "['a-', 'b']");
  EXPECT_EQ(call("aten::rsplit", {"--", "--", -1}).repr(), "['', '']");
  EXPECT_EQ(call("aten::rsplit", {"ab", "--", 0}).repr(), "['ab']");
  EXPECT_EQ(call("aten::strip", {"  a b ", " "}).toString(), "a b");
}

TEST(BuiltinsTest, slicesOfText) {
  auto slice = [](IValue start, IValue end, int64_t step) {
    return call("aten::slice.str", {"abcdef", start, end, step}).toString();
  };
  EXPECT_EQ(slice(IValue(), IValue(), 1), "abcdef");
  EXPECT_EQ(slice(2, 4, 1), "cd");
  EXPECT_EQ(slice(4, 2, 1), "");
  EXPECT_EQ(slice(9, 12, 1), "");
  EXPECT_EQ(slice(-2, IValue(), 1), "ef");
  EXPECT_EQ(slice(IValue(), IValue(), -1), "fedcba");
  EXPECT_EQ(slice(IValue(), IValue(), -4), "fb");
  EXPECT_EQ(slice(1, IValue(), INT64_MAX), "b");
  EXPECT_EQ(slice(4, IValue(), INT64_MIN), "e");
}

TEST(BuiltinsTest, sortingTuplesIsStable) {
  auto pair = [](int a, const char* b) { return IValue(makeTuple({IValue(a), IValue(b)})); };
  IValue list(makeList(types::Any(), {pair(2, "a"), pair(1, "z"), pair(1, "b")}));
  call("aten::sort.any", {list, false});
  EXPECT_EQ(list.repr(), "[(1, 'b'), (1, 'z'), (2, 'a')]");
  IValue mixed(makeList(types::Any(), {IValue(1), IValue("a")}));
  EXPECT_THROW(call("aten::sort.any", {mixed, false}), RuntimeError);
}

TEST(BuiltinsTest, text) {
  auto format = [](const char* name, std::vector<IValue> args) {
    const Operator& op = find(name);
    IValue result;
    op.call(args.data(), args.size(), &result, 1);
    return result.toString();
  };
  EXPECT_EQ(format("aten::format", {"{} {}", 3, 2.5}), "3 2.5");
  EXPECT_EQ(format("aten::format", {"{}", 3, 4}), "3");
  EXPECT_THROW(format("aten::format", {"{} {}", 3}), RuntimeError);
  EXPECT_EQ(format("aten::percentFormat", {"%s %d%% %c%c", 2.0, 2.7, 98, "x"}), "2.0 2% bx");
  EXPECT_EQ(format("aten::percentFormat", {"%f %e %i", 2.5, 2.5, true}), "2.500000 2.500000e+00 1");
  IValue pair(makeTuple({IValue(3), IValue("x")}));
  EXPECT_EQ(format("aten::percentFormat", {"%d %s", pair}), "3 x");
  EXPECT_THROW(format("aten::percentFormat", {"%s", pair}), RuntimeError);
  EXPECT_EQ(format("aten::percentFormat", {"%-6.2f|%+05d", 2.5, 3}), "2.50  |+0003");
  EXPECT_EQ(format("aten::format", {"{1:>4}{0!r:{2}}|", "a", 2, 5}), "   2'a'  |");
  for (const char* bad : {"%", "%d %d", "%y", "", "%.", "%(a)s", "%-"}) {
    EXPECT_THROW(format("aten::percentFormat", {bad, 1}), RuntimeError) << bad;
  }
  for (const char* bad : {"{", "}", "{1", "{:{:{}}}", "{!x}", "{0} {}", "{a}", "{:.q}", "{5}"}) {
    EXPECT_THROW(format("aten::format", {bad, 1, 2, 3}), RuntimeError) << bad;
  }
  EXPECT_EQ(call("aten::str", {1.0}).toString(), "1.0");
  EXPECT_EQ(call("aten::hash.generic", {5}).toInt(), 5);
  EXPECT_EQ(call("prim::type", {Device::parse("cuda:1")}).toString(), "cuda");
  EXPECT_EQ(call("prim::index", {Device::parse("cuda:1")}).toInt(), 1);
  EXPECT_TRUE(call("prim::index", {Device::parse("cuda")}).isNone());
  EXPECT_THROW(call("aten::_unwrap_optional", {IValue()}), RuntimeError);
}

TEST(BuiltinsTest, tensorsFromLists) {
  auto ints = [](std::vector<IValue> v) { return IValue(makeList(types::Int(), std::move(v))); };
  auto nested = [&](std::vector<IValue> v) {
    return IValue(makeList(types::List(types::Int()), std::move(v)));
  };
  auto text = [](const IValue& v) { return v.toTensor().describe(); };
  EXPECT_EQ(text(call("aten::tensor", {nested({ints({1, 2}), ints({3, 4})})})), "int64[2, 2]");
  EXPECT_EQ(text(call("aten::tensor", {nested({ints({}), ints({})})})), "int64[2, 0]");
  EXPECT_EQ(text(call("aten::tensor", {ints({})})), "int64[0]");
  EXPECT_THROW(call("aten::tensor", {nested({ints({1}), ints({2, 3})})}), RuntimeError);
  EXPECT_THROW(call("aten::tensor", {IValue(makeList(types::String(), {IValue("a")}))}),
               RuntimeError);
  IValue mixed(makeList(types::Number(), {IValue(1), IValue(2.5)}));
  EXPECT_EQ(text(call("aten::tensor", {mixed})), "float32[2]");
  EXPECT_EQ(text(call("aten::tensor", {ints({1}), static_cast<int64_t>(DType::Half)})),
            "float16[1]");
  EXPECT_EQ(text(call("aten::tensor.float", {2.5})), "float32[]");
  EXPECT_EQ(text(call("aten::tensor.bool", {true})), "bool[]");
  EXPECT_EQ(text(call("prim::NumToTensor.Scalar", {2.5})), "float64[]");
  EXPECT_TRUE(
      call("aten::tensor.float", {2.5, IValue(), IValue(), true}).toTensor().requiresGrad());
  EXPECT_THROW(call("aten::tensor.int", {2, IValue(), IValue(), true}), RuntimeError);
}

TEST(BuiltinsTest, numbersFromTensors) {
  EXPECT_EQ(call("aten::Int.Tensor", {Tensor::scalar(2.7f)}).toInt(), 2);
  EXPECT_EQ(call("aten::Int.Tensor", {Tensor::zeros(DimVector{1, 1}, DType::Int)}).toInt(), 0);
  EXPECT_THROW(call("aten::Int.Tensor", {Tensor::scalar(1e30)}), RuntimeError);
  EXPECT_THROW(call("aten::Int.Tensor", {Tensor::zeros(DimVector{2}, DType::Int)}), RuntimeError);
  EXPECT_THROW(call("aten::Bool.Tensor", {Tensor::zeros(DimVector{0}, DType::Int)}), RuntimeError);
  EXPECT_THROW(call("aten::IntImplicit", {Tensor::scalar(2.5f)}), RuntimeError);
  EXPECT_THROW(call("aten::IntImplicit", {Tensor::scalar(true)}), RuntimeError);
  EXPECT_THROW(call("aten::FloatImplicit", {Tensor::zeros(DimVector{1}, DType::Float)}),
               RuntimeError);
  EXPECT_EQ(call("aten::FloatImplicit", {Tensor::scalar(int64_t{2})}).toDouble(), 2.0);
}

TEST(BuiltinsTest, settings) {
  {
    GradModeGuard guard(false);
    EXPECT_FALSE(call("aten::is_grad_enabled", {}).toBool());
    call("aten::set_grad_enabled", {true});
    EXPECT_TRUE(gradEnabled());
  }
  call("aten::manual_seed", {42});
  EXPECT_EQ(defaultGenerator().next32(), 1608637542u);
  std::string warned;
  setWarningHandler([&](const std::string& text) { warned = text; });
  call("aten::warn", {"careful"});
  setWarningHandler(nullptr);
  EXPECT_EQ(warned, "careful");
}

}  // namespace
}  // namespace wick::builtins_test

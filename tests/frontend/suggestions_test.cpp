// "did you mean": one table with every kind of name, near misses and names that are near nothing.
#include "core/suggestions.h"

#include <gtest/gtest.h>

#include <string>

#include "frontend/compile.h"
#include "tests/frontend/robustness_testing.h"

namespace wick::suggestions_test {
namespace {

const char* const kProgram = R"(
class Point:
    LIMIT: Final[int] = 3
    def __init__(self, width: int):
        self.width = width
    def area(self, scale: int = 1) -> int:
        return self.width * scale
    @property
    def double(self) -> int:
        return 2 * self.width
    @staticmethod
    def create(size: int) -> int:
        return size
class Color(Enum):
    RED = 1
    GREEN = 2
class Pair(NamedTuple):
    first: int
    second: int
@torch.jit.interface
class Shape:
    def surface(self, scale: int) -> int:
        pass
class Failure(Exception):
    pass
LIMIT = 3
def helper(value: int, factor: int = 2) -> int:
    return value * factor
)";
const char* const kHeader =
    "def f(x: Tensor, s: str, l: List[int], d: Dict[str, int], p: Point, t: Pair, c: Color,"
    " h: Shape, o: Optional[int]):\n";

struct Row {
  const char* body;
  const char* suggestion;  // "" for none
};
const Row kRows[] = {
    {"total = 1\nreturn totla", "total"},
    {"total = 1\nreturn zzzqq", ""},
    {"return sss + lst", ""},
    {"return helpr(1)", "helper"},
    {"return qwertyuiop(1)", ""},
    {"return LIMT", "LIMIT"},
    {"return Pont(1)", "Point"},
    {"raise Failur(\"x\")", "Failure"},
    {"raise ValueErorr(\"x\")", "ValueError"},
    {"return rnage(3)", "range"},
    {"return lenn(l)", "len"},
    {"return enumarate(l)", "enumerate"},
    {"return torch.rellu(x)", "relu"},
    {"return torch.qwertyuiop(x)", ""},
    {"return torch.matmull(x, x)", "matmul"},
    {"return torch.nn.functional.rellu(x)", "relu"},
    {"return torch.nn.functional.cross_entorpy(x, x)", "cross_entropy"},
    {"return torch.nn.functional.qwertyuiop(x)", ""},
    {"return F.softmx(x, dim=0)", "softmax"},
    {"return torch.linalg.nrom(x)", "norm"},
    {"return torch.fft.ifftt(x)", "ifft"},
    {"return torch.special.erfff(x)", "erf"},
    {"return torch.linlag.norm(x)", "linalg"},
    {"return torch.nn.functionall.relu(x)", "functional"},
    {"return torch.jit.annotat(int, 1)", "annotate"},
    {"return torch.jit.frok(helper, 1)", "fork"},
    {"return torch.jit.is_scriptng()", "is_scripting"},
    {"return math.sqroot(2.0)", "sqrt"},
    {"return math.floo(2.0)", "floor"},
    {"return math.qwertyuiop(2.0)", ""},
    {"return x.rellu()", "relu"},
    {"return x.transpos(0, 1)", "transpose"},
    {"return x.add__(1)", "add_"},
    {"return x.qwertyuiop()", ""},
    {"return x.shap", "shape"},
    {"return x.dtyp", "dtype"},
    {"return x.requires_gard", "requires_grad"},
    {"return torch.zeros(2, dtype=torch.flaot32)", "float32"},
    {"return torch.zeros(2, dtype=torch.int46)", "int64"},
    {"return torch.zeros(2, layout=torch.stridde)", "strided"},
    {"return x.contiguous(memory_format=torch.channels_lst)", "channels_last"},
    {"return p.widht", "width"},
    {"return p.qwertyuiop", ""},
    {"p.widht = 3", "width"},
    {"return p.aera()", "area"},
    {"return p.doubel", "double"},
    {"return p.LIMTI", "LIMIT"},
    {"return Point.creat(3)", "create"},
    {"return Point.LIMTI", "LIMIT"},
    {"return Point.qwertyuiop(3)", ""},
    {"return Point.araa()", ""},
    {"return p.creaet(3)", "create"},
    {"return getattr(p, \"creaet\")(3)", "create"},
    {"return h.surfac(1)", "surface"},
    {"return t.frist", "first"},
    {"return t.qwertyuiop", ""},
    {"return Color.GREN", "GREEN"},
    {"return Color.QWERTYUIOP", ""},
    {"return c.valeu", "value"},
    {"return c.nmae", "name"},
    {"return s.uper()", "upper"},
    {"return s.splitt()", "split"},
    {"return s.startwith(\"a\")", "startswith"},
    {"return s.qwertyuiop()", ""},
    {"l.apend(1)", "append"},
    {"l.exten([1])", "extend"},
    {"l.qwertyuiop(1)", ""},
    {"return d.itmes()", "items"},
    {"return d.kyes()", "keys"},
    {"return d.qwertyuiop()", ""},
    {"return torch.sum(x, dmi=0)", "dim"},
    {"return torch.softmax(x, dim=0, dtyp=torch.float32)", "dtype"},
    {"return x.sum(kepdim=True, dim=0)", "keepdim"},
    {"return torch.relu(x, qwertyuiop=0)", ""},
    {"return torch.nn.functional.dropout(x, p=0.5, trainin=True)", "training"},
    {"return torch.nn.functional.cross_entropy(x, x, wieght=x)", "weight"},
    {"return helper(1, facotr=3)", "factor"},
    {"return helper(valeu=1)", "value"},
    {"return helper(1, qwertyuiop=3)", ""},
    {"return p.area(scael=2)", "scale"},
    {"return Point(widht=2)", "width"},
    {"return Point.create(szie=2)", "size"},
    {"return Pair(frist=1, second=2)", "first"},
    {"return h.surface(scael=1)", "scale"},
    {"return sorted(l, revers=True)", "reverse"},
    {"l.sort(revers=True)", "reverse"},
    {"return [i for i, _ in enumerate(l, strat=1)]", "start"},
    {"g = lambda value: value\nreturn g(valeu=1)", "value"},
    {"def g(value: int):\n    return value\nreturn g(valeu=1)", "value"},
    {"return torch.tensor([1], dtpye=torch.float32)", "dtype"},
    {"print(\"a\", spe=\"\")", ""},
    {"return int(\"1\", bsae=2)", "base"},
    {"y: List[itn] = []\nreturn y", "int"},
    {"y: Lsit[int] = []\nreturn y", "List"},
    {"y: Optinal[int] = None\nreturn y", "Optional"},
    {"y: typing.Lsit[int] = []\nreturn y", "List"},
    {"y: torch.jit.Futur[int] = 1\nreturn y", "Future"},
    {"y: Qwertyuiop = 1\nreturn y", ""},
    {"return isinstance(o, itn)", "int"},
    {"return x.device.tpye", "type"},
    {"return torch.ops.aten.rellu(x)", "relu"},
    {"return torch.ops.atn.relu(x)", "aten"},
    {"assert o is not None\nreturn o.qwertyuiop()", ""},
    {"q = torch.jit.fork(helper, 1)\nreturn q.wiat()", "wait"},
    {"z = 1j\nreturn z.rael", "real"},
    {"n = 3\nreturn n.bit_lenght()", "bit_length"},
    {"n = 3.0\nreturn n.is_intger()", "is_integer"},
    {"q = (1, 2)\nreturn q.indx(1)", ""},
    {"return torch.autograd.grd([x.sum()], [x])", "grad"},
    {"with torch.no_gard():\n    return x", "no_grad"},
    {"x.shpe = 3", ""},
    {"total = 1\ndel totla", "total"},
    {"total = 1\ntotla += 1", "total"},
    {"total = 1\nreturn f\"{totla}\"", "total"},
    {"warnings.wran(\"a\")", "warn"},
    {"return getattr(p, \"widht\")", "width"},
    {"return torch.inff", "inf"},
    {"return math.pii", "pi"},
    {"return torch.devic(\"cpu\")", "device"},
    {"y: torch.Tensr = x", "torch.Tensor"},
};

std::string messageOf(const std::string& body) {
  std::string text = std::string(kProgram) + kHeader + "    ";
  for (char c : body) {
    text += c;
    if (c == '\n') text += "    ";
  }
  try {
    compileSource(text + "\n");
  } catch (const CompileError& error) {
    return error.what();
  }
  return "compiled";
}

TEST(Suggestions, EveryKindOfName) {
  for (const Row& row : kRows) {
    const std::string message = messageOf(row.body);
    EXPECT_NE(message, "compiled") << row.body;
    const std::string suggestion = row.suggestion;
    if (suggestion.empty()) {
      EXPECT_EQ(message.find("did you mean"), std::string::npos) << row.body << "\n" << message;
    } else {
      EXPECT_NE(message.find("did you mean '" + suggestion + "'?"), std::string::npos)
          << row.body << "\n"
          << message;
    }
  }
}

TEST(Suggestions, Distances) {
  EXPECT_EQ(didYouMean("itn", {"in", "int"}), "; did you mean 'int'?");
  EXPECT_EQ(didYouMean("int46", {"int16", "int64"}), "; did you mean 'int64'?");
  EXPECT_EQ(didYouMean("abc", {"xyz", "abcd"}), "; did you mean 'abcd'?");
  EXPECT_EQ(didYouMean("a", {"b", "c"}), "");
  EXPECT_EQ(didYouMean("abc", {"axy"}), "");
  EXPECT_EQ(didYouMean("", {"x"}), "");
  EXPECT_EQ(didYouMean("cross_entorpy", {"cross_entropy", "entropy"}),
            "; did you mean 'cross_entropy'?");
  EXPECT_EQ(didYouMean(std::string(100, 'a'), {std::string(99, 'a')}), "");
}

// Each candidate stands with its schema and the argument that does not fit, the closest first.
TEST(Suggestions, CandidatesTellWhyTheyFailed) {
  struct Call {
    const char* body;
    std::vector<const char*> parts;
  };
  const Call kCalls[] = {
      {"return torch.sum(x, dmi=0)",
       {"no overload of aten::sum takes (Tensor, dmi=int)",
        "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, int? dtype=None) "
        "-> "
        "Tensor:",
        "keyword argument dmi unknown; did you mean 'dim'?"}},
      {"return torch.add(x, 'a')",
       {"no overload of aten::add takes (Tensor, str)", "aten::add.Tensor",
        "Expected a value of type 'Tensor' for argument 'other' but instead found type 'str'",
        "aten::add.Scalar", "Expected a value of type 'number' for argument 'other'"}},
      {"return helper('a')",
       {"helper(int value, int factor=2)",
        "Expected a value of type 'int' for argument 'value' but "
        "instead found type 'str'"}},
      {"return helper(1, 2, 3)", {"Expected at most 2 arguments but found 3"}},
      {"return helper()", {"Argument value not provided"}},
      {"return s.startswith(1)",
       {"aten::startswith",
        "Expected a value of type 'str' for argument 'substr' but instead found "
        "type 'int'"}},
      {"return l.append('a')", {"append", "Could not match type str to t in argument 'el'"}},
      {"return p.area('a')",
       {"Expected a value of type 'int' for argument 'scale' but instead found type 'str'"}},
      {"return Pair(1, 'a')",
       {"Expected a value of type 'int' for argument 'second' but instead found type 'str'"}},
      {"return torch.nn.functional.dropout(x, 'a')",
       {"Expected a value of type 'float' for argument 'p' but instead found type 'str'"}},
      {"return x + s", {"no overload of aten::add takes (Tensor, str)"}},
      {"return -s", {"no overload of aten::neg takes (str)"}},
      {"return x[s]", {"str"}},
  };
  for (const Call& call : kCalls) {
    const std::string message = messageOf(call.body);
    size_t at = 0;
    for (const char* part : call.parts) {
      at = message.find(part, at);
      ASSERT_NE(at, std::string::npos) << part << "\n" << message;
    }
  }
  // As many reasons as candidates.
  const std::string message = messageOf("return torch.sum(s)");
  size_t candidates = 0;
  for (size_t at = 0; (at = message.find("\naten::sum", at)) != std::string::npos; ++at) {
    ++candidates;
  }
  size_t reasons = 0;
  for (size_t at = 0; (at = message.find("Expected a value of type", at)) != std::string::npos;
       ++at) {
    ++reasons;
  }
  EXPECT_GE(candidates, 4u) << message;
  EXPECT_EQ(reasons, candidates) << message;
}

}  // namespace
}  // namespace wick::suggestions_test

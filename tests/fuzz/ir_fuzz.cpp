#include "ir/parser.h"
#include "tests/fuzz/mutate.h"

namespace wick::ir_fuzz {
namespace {

// What parses must print, and its text must parse again to the same text.
TEST(Fuzz, IrText) {
  fuzz({R"(graph(%x.1 : Float(2, *, strides=[3, 1]), %n : int, %d : Dict(str, Tensor[])):
  %3 : int = prim::Constant[value=1]()
  %s : str = prim::Constant[value="a\n\x01"]()
  %t : bool = prim::Constant[value=True]()
  %w : Tensor = prim::Constant[value=tensor<float32>[2]{1.0, -inf}]()
  %x : Tensor = prim::Loop(%n, %t, %x.1)
    block0(%i : int, %y : Tensor):
      %z : Tensor = prim::If(%t)
        block0():
          -> (%y)
        block1():
          = prim::Print(%s)
          %u : (int, float?)[] = prim::ListConstruct()
          -> (%w)
      -> (%t, %z)
  return (%x)
)"},
       fuzzCount(5'000), [](const std::string& input) {
         auto graph = parseGraph(input);
         std::string text = graph->str();
         if (text.find("=<") == std::string::npos) {
           EXPECT_EQ(parseGraph(text)->str(), text);
         }
       });
}

}  // namespace
}  // namespace wick::ir_fuzz

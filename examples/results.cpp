// Walks through what a program returns: lists, dicts, tuples and optional values.
#include <wick/wick.h>

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

int main() {
  const auto program = wick::compile(R"(
def detect(image: Tensor, least: float) -> List[Dict[str, Tensor]]:
    scores = image.flatten()
    return [{"scores": scores[scores > least]}, {"scores": scores[:1]}]

def describe(sizes: List[int], name: Optional[str]) -> Tuple[int, str, Dict[str, int]]:
    return len(sizes), "nameless" if name is None else name, {"first": sizes[0]}
)");
  const std::vector<float> pixels = {0.25, 0.5, 0.75, 1};
  for (const auto& found : program.call("detect", {wick::Tensor::from(pixels, {2, 2}), 0.4})) {
    for (float score : found["scores"].tensor().span<float>()) std::printf("%g ", score);
    std::printf("\n");
  }
  const auto result = program.call("describe", {std::vector<int64_t>{7, 8}, std::nullopt});
  std::printf("%lld %s\n", static_cast<long long>(result[0].toInt()), result[1].toString().c_str());
  const auto [count, name, more] =
      result.to<std::tuple<int, std::string, std::map<std::string, int>>>();
  std::printf("%d %s %d\n", count, name.c_str(), more.at("first"));
}
// Prints:
// 0.5 0.75 1
// 0.25
// 2 nameless
// 2 nameless 7

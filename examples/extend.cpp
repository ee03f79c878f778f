// Operators and classes of one's own, which programs use like others.
#include <wick/wick.h>
#include <wick/wick_ops.h>

#include <cstdio>

namespace {

namespace ops = wick::ops;
using wick::Tensor;

// The mean of what was seen so far.
class Average {
 public:
  explicit Average(double sum, int64_t count) : sum_(sum), count_(count) {}
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  double value() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  std::pair<double, int64_t> state() const { return {sum_, count_}; }

 private:
  double sum_;
  int64_t count_;
};

void define() {
  wick::Extension extension("signal");
  extension.op(
      "clip(Tensor self, float limit=1.0) -> Tensor",
      [](const Tensor& self, double limit) { return ops::clamp(self, -limit, limit); },
      {.result_like = "self", .derivative = "self: grad * (self.abs() <= limit).to(grad.dtype)"});
  extension.object<Average>("Average")
      .init<double, int64_t>("__init__(float sum=0.0, int count=0) -> ()")
      .def("add", &Average::add)
      .def("value", &Average::value)
      .pickle([](const Average& a) { return a.state(); },
              [](std::pair<double, int64_t> s) { return Average(s.first, s.second); });
  extension.add();
}

constexpr const char* kProgram = R"(
def loudness(x: Tensor) -> float:
    average = torch.classes.signal.Average()
    for row in torch.ops.signal.clip(x, limit=2.0):
        average.add(float(row.abs().sum()))
    return average.value()

def slope(x: Tensor) -> Tensor:
    y = torch.ops.signal.clip(x, limit=2.0).pow(2).sum()
    g = torch.autograd.grad([y], [x])[0]
    assert g is not None
    return g
)";

}  // namespace

int main() {
  define();
  const wick::Program program = wick::compile(kProgram);
  Tensor x = Tensor::from({0.5f, -1.f, 3.f, 1.5f}, {2, 2});
  std::printf("%g\n", program.call("loudness", {x}).toDouble());
  x.setRequiresGrad(true);
  for (float g : program.call("slope", {x}).tensor().span<float>()) std::printf("%g\n", g);
  try {
    define();
  } catch (const wick::UsageError& error) {
    std::printf("%s\n", error.what());
  }
}
// Prints:
// 2.5
// 1
// -2
// 0
// 3
// __torch__.torch.classes.signal.Average: its C++ type is already the class __torch__.torch.classes.signal.Average

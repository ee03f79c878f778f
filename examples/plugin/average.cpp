// A plugin in C++: an operator with a derivative, and a class whose objects archives can hold.
//
//   g++ -std=c++20 -shared -fPIC average.cpp -o average.so $(pkg-config --cflags wick)
//   torchscript-cli run program.py --plugin ./average.so
#include <wick/wick.h>
#include <wick/wick_ops.h>

namespace {

namespace ops = wick::ops;
using wick::Tensor;

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

}  // namespace

WICK_PLUGIN("average", define)

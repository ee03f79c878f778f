#include "tests/bench/scalar_loops.h"

#include <utility>

namespace wick {

int64_t fibonacciInC(int64_t n) {
  int64_t a = 0;
  int64_t b = 1;
  for (int64_t i = 0; i < n; ++i) a = std::exchange(b, (a + b) % 1000000007);
  return a;
}

int64_t collatzInC(int64_t n) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    int64_t x = i;
    int64_t steps = 0;
    while (x != 1) {
      x = x % 2 == 0 ? x / 2 : 3 * x + 1;
      ++steps;
    }
    if (steps > best) best = steps;
  }
  return best;
}

int64_t mandelbrotInC(int64_t n) {
  int64_t count = 0;
  auto size = static_cast<double>(n);
  for (int64_t py = 0; py < n; ++py) {
    for (int64_t px = 0; px < n; ++px) {
      double x0 = static_cast<double>(px) / size * 3.5 - 2.5;
      double y0 = static_cast<double>(py) / size * 2.0 - 1.0;
      double x = 0;
      double y = 0;
      int64_t i = 0;
      while (x * x + y * y <= 4 && i < 100) {
        double t = x * x - y * y + x0;
        y = 2 * x * y + y0;
        x = t;
        ++i;
      }
      count += i;
    }
  }
  return count;
}

}  // namespace wick

#include "tools/bisect.h"

#include <algorithm>
#include <cmath>

#include "core/budget.h"
#include "core/error.h"
#include "core/tensor.h"

namespace wick::cli {

namespace {

// Values that hold themselves would never end.
constexpr int kMaxNesting = 100;

bool numbersAgree(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::abs(a - b) <= tolerance * std::max(std::abs(a), std::abs(b));
}

bool tensorsAgree(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.dtype() != b.dtype() || !std::ranges::equal(a.sizes(), b.sizes())) return false;
  if (!isFloating(a.dtype()) && !isComplex(a.dtype())) return IValue(a).equals(IValue(b));
  // Complex numbers are pairs of floating ones.
  const Tensor x = a.to(isComplex(a.dtype()) ? DType::ComplexDouble : DType::Double).contiguous();
  const Tensor y = b.to(x.dtype()).contiguous();
  const int64_t n = x.numel() * (isComplex(a.dtype()) ? 2 : 1);
  const double* p = static_cast<const double*>(x.rawData());
  const double* q = static_cast<const double*>(y.rawData());
  for (int64_t i = 0; i < n; ++i) {
    if (!numbersAgree(p[i], q[i], tolerance)) return false;
  }
  return true;
}

bool agreeNested(const IValue& a, const IValue& b, double tolerance, int depth);

bool rowsAgree(const std::vector<IValue>& a, const std::vector<IValue>& b, double tolerance,
               int depth) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!agreeNested(a[i], b[i], tolerance, depth)) return false;
  }
  return true;
}

bool agreeNested(const IValue& a, const IValue& b, double tolerance, int depth) {
  WICK_CHECK(depth < kMaxNesting, "the result is nested too deeply to compare");
  checkBudget();
  if (a.tagName() != b.tagName()) return false;
  if (a.isString()) return a.equals(b);
  if (a.isTensor()) return tensorsAgree(a.toTensor(), b.toTensor(), tolerance);
  if (a.isDouble()) return numbersAgree(a.toDouble(), b.toDouble(), tolerance);
  if (a.isComplex()) {
    return numbersAgree(a.toComplex().real(), b.toComplex().real(), tolerance) &&
           numbersAgree(a.toComplex().imag(), b.toComplex().imag(), tolerance);
  }
  if (a.isList()) return rowsAgree(a.toList().elements, b.toList().elements, tolerance, depth + 1);
  if (a.isTuple()) return rowsAgree(a.elements(), b.elements(), tolerance, depth + 1);
  if (a.isDict()) {
    return rowsAgree(a.toDict().keys(), b.toDict().keys(), 0, depth + 1) &&
           rowsAgree(a.toDict().values(), b.toDict().values(), tolerance, depth + 1);
  }
  if (a.isObject()) {
    const Object& x = a.toObject();
    const Object& y = b.toObject();
    if (x.type()->name() != y.type()->name() ||
        x.type()->attributes().size() != y.type()->attributes().size())
      return false;
    for (size_t i = 0; i < x.type()->attributes().size(); ++i) {
      if (!agreeNested(x.slot(i), y.slot(i), tolerance, depth + 1)) return false;
    }
    return true;
  }
  return a.repr() == b.repr();
}

}  // namespace

uint64_t firstWrong(uint64_t last, const std::function<bool(uint64_t)>& right) {
  uint64_t good = 0;
  uint64_t bad = last;
  while (bad - good > 1) {
    const uint64_t middle = good + (bad - good) / 2;
    (right(middle) ? good : bad) = middle;
  }
  return bad;
}

bool agree(const IValue& a, const IValue& b, double tolerance) {
  return agreeNested(a, b, tolerance, 0);
}

}  // namespace wick::cli

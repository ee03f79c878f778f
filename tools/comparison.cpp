// Tensors are compared element by element in double precision, whole numbers as they are.
#include "tools/comparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <span>

#include "core/budget.h"
#include "core/error.h"
#include "core/tensor.h"

namespace wick::cli {
namespace {

// Values that hold themselves would never end.
constexpr int kMaxNesting = 100;
// Lines after which the rest is counted alone.
constexpr size_t kMaxLines = 1000;

bool isNan(double v) {
  return std::isnan(v);
}
bool isNan(std::complex<double> v) {
  return std::isnan(v.real()) || std::isnan(v.imag());
}
bool isNan(int64_t) {
  return false;
}

double sizeOf(double v) {
  return std::abs(v);
}
double sizeOf(std::complex<double> v) {
  return std::abs(v);
}
double sizeOf(int64_t v) {
  return std::abs(static_cast<double>(v));
}

double apart(double a, double b) {
  return std::abs(a - b);
}
double apart(std::complex<double> a, std::complex<double> b) {
  return std::abs(a - b);
}
double apart(int64_t a, int64_t b) {
  const uint64_t high = static_cast<uint64_t>(std::max(a, b)),
                 low = static_cast<uint64_t>(std::min(a, b));
  return static_cast<double>(high - low);
}

std::string shown(double v) {
  return fmt::format("{:.9g}", v);
}
std::string shown(int64_t v) {
  return std::to_string(v);
}
std::string shown(std::complex<double> v) {
  return fmt::format("{:.9g}{:+.9g}j", v.real(), v.imag());
}

// A difference of two numbers, and which elements they are.
struct Largest {
  double value = -1;
  size_t at = 0;
  void note(double candidate, size_t index) {
    // NaN against a number is more than any number.
    if (std::isnan(candidate)) candidate = HUGE_VAL;
    if (candidate <= value) return;
    value = candidate;
    at = index;
  }
};

template <class T>
class Elements {
 public:
  Elements(std::span<const T> a, std::span<const T> b, IntSpan sizes, const Tolerance& tolerance)
      : a_(a), b_(b), sizes_(sizes), tolerance_(tolerance) {
    for (size_t i = 0; i < a.size() && tolerance.of_largest > 0; ++i) {
      for (const double size : {sizeOf(a[i]), sizeOf(b[i])}) {
        if (std::isfinite(size)) scale_ = std::max(scale_, size);
      }
    }
  }

  // Empty when no two are too far apart.
  std::string compare() {
    Pace pace;
    for (size_t i = 0; i < a_.size(); ++i) {
      pace.step();
      if (a_[i] == b_[i] || (isNan(a_[i]) && isNan(b_[i]))) continue;
      const double distance = apart(a_[i], b_[i]);
      // Written so that NaN does not pass; infinite numbers allow nothing.
      const double larger = std::max(sizeOf(a_[i]), sizeOf(b_[i]));
      if (std::isfinite(larger) && distance <= allowed(b_[i])) continue;
      ++count_;
      absolute_.note(distance, i);
      relative_.note(distance / larger, i);
    }
    return count_ == 0 ? "" : text();
  }

 private:
  double allowed(T expected) const {
    return std::max(tolerance_.of_largest * scale_,
                    tolerance_.absolute + tolerance_.relative * sizeOf(expected));
  }

  std::string place(const Largest& largest) const {
    DimVector index(sizes_);
    size_t rest = largest.at;
    for (size_t d = sizes_.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(sizes_[d]);
      index[d] = static_cast<int64_t>(rest % size);
      rest /= size;
    }
    return fmt::format("at [{}] ({} and {})", fmt::join(index, ", "), shown(a_[largest.at]),
                       shown(b_[largest.at]));
  }

  std::string text() const {
    if (a_.size() == 1) {
      return fmt::format("{} and {}, {:.3g} apart, {:.3g} of the larger", shown(a_[0]),
                         shown(b_[0]), absolute_.value, relative_.value);
    }
    std::string text = fmt::format("{} of {} numbers differ, by up to {:.3g} {}", count_, a_.size(),
                                   absolute_.value, place(absolute_));
    const bool same = relative_.at == absolute_.at;
    return text + fmt::format(", relatively by up to {:.3g}{}", relative_.value,
                              same ? " there" : " " + place(relative_));
  }

  const std::span<const T> a_, b_;
  const IntSpan sizes_;
  const Tolerance& tolerance_;
  double scale_ = 0;
  size_t count_ = 0;
  Largest absolute_, relative_;
};

template <class T>
std::string compareAs(DType dtype, const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  const Tensor x = a.to(dtype).contiguous(), y = b.to(dtype).contiguous();
  const auto n = static_cast<size_t>(x.numel());
  return Elements<T>({static_cast<const T*>(x.rawData()), n},
                     {static_cast<const T*>(y.rawData()), n}, x.sizes(), tolerance)
      .compare();
}

// How they differ; empty when they do not.
std::string compareTensors(const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  if (!a.defined() || !b.defined()) {
    return a.defined() == b.defined() ? ""
           : a.defined()              ? "a tensor and None"
                                      : "None and a tensor";
  }
  if (a.describe() != b.describe()) return fmt::format("{} and {}", a.describe(), b.describe());
  if (a.device().type == DeviceType::Meta) return "";  // without numbers
  if (IValue(a).equals(IValue(b))) return "";
  if (a.kind() != TensorKind::Dense || isQuantized(a.dtype())) return "the values differ";
  if (isComplex(a.dtype())) {
    return compareAs<std::complex<double>>(DType::ComplexDouble, a, b, tolerance);
  }
  if (isFloating(a.dtype())) return compareAs<double>(DType::Double, a, b, tolerance);
  return compareAs<int64_t>(DType::Long, a, b, tolerance);
}

template <class T>
std::string compareNumbers(T a, T b, const Tolerance& tolerance) {
  return Elements<T>(std::span<const T>(&a, 1), std::span<const T>(&b, 1), {}, tolerance).compare();
}

class Comparer {
 public:
  explicit Comparer(const Tolerance& tolerance) : tolerance_(tolerance) {}

  void compare(const IValue& a, const IValue& b, const std::string& where, int depth) {
    WICK_CHECK(depth < kMaxNesting, "the result is nested too deeply to compare");
    checkBudget();
    if (a.tagName() != b.tagName())
      return add(where, fmt::format("{} and {}", a.tagName(), b.tagName()));
    if (a.isTensor()) return add(where, compareTensors(a.toTensor(), b.toTensor(), tolerance_));
    if (a.isDouble()) return add(where, compareNumbers(a.toDouble(), b.toDouble(), tolerance_));
    if (a.isComplex()) return add(where, compareNumbers(a.toComplex(), b.toComplex(), tolerance_));
    if (a.isInt()) return add(where, compareNumbers(a.toInt(), b.toInt(), tolerance_));
    if (a.isList() || a.isTuple()) return rows(a.elements(), b.elements(), where, depth);
    if (a.isDict()) return dicts(a, b, where, depth);
    if (a.isObject()) return objects(a.toObject(), b.toObject(), where, depth);
    const bool same = a.isString() ? a.equals(b) : a.repr() == b.repr();
    if (!same) add(where, fmt::format("{} and {}", a.shortRepr(), b.shortRepr()));
  }

  std::vector<std::string> take() {
    if (left_out_ > 0) lines_.push_back(fmt::format("and {} more", left_out_));
    return std::move(lines_);
  }

 private:
  void add(const std::string& where, const std::string& how) {
    if (how.empty()) return;
    if (lines_.size() == kMaxLines) {
      ++left_out_;
    } else {
      lines_.push_back(where + ": " + how);
    }
  }

  void rows(const std::vector<IValue>& a, const std::vector<IValue>& b, const std::string& where,
            int depth) {
    if (a.size() != b.size()) return add(where, fmt::format("{} and {} parts", a.size(), b.size()));
    for (size_t i = 0; i < a.size(); ++i) {
      compare(a[i], b[i], fmt::format("{}[{}]", where, i), depth + 1);
    }
  }

  void dicts(const IValue& a, const IValue& b, const std::string& where, int depth) {
    const auto x = a.toDict().items(), y = b.toDict().items();
    if (x.size() != y.size())
      return add(where, fmt::format("{} and {} entries", x.size(), y.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      Comparer keys({});
      keys.compare(x[i].first, y[i].first, "", depth + 1);
      if (!keys.lines_.empty()) {
        return add(where, fmt::format("entry {} has the keys {} and {}", i, x[i].first.shortRepr(),
                                      y[i].first.shortRepr()));
      }
      compare(x[i].second, y[i].second, fmt::format("{}[{}]", where, x[i].first.shortRepr()),
              depth + 1);
    }
  }

  void objects(const Object& a, const Object& b, const std::string& where, int depth) {
    const auto& attributes = a.type()->attributes();
    if (a.type()->name() != b.type()->name() ||
        attributes.size() != b.type()->attributes().size()) {
      return add(where, "objects of " + namesOfBoth(a.type()->name(), b.type()->name()));
    }
    for (size_t i = 0; i < attributes.size(); ++i) {
      compare(a.slot(i), b.slot(i), where + "." + attributes[i].name, depth + 1);
    }
  }

  const Tolerance& tolerance_;
  std::vector<std::string> lines_;
  size_t left_out_ = 0;
};

}  // namespace

std::string namesOfBoth(const std::string& a, const std::string& b) {
  std::string x = readableClassName(a), y = readableClassName(b);
  if (x == y) x = a, y = b;
  return x + " and " + y;
}

std::vector<std::string> differences(const IValue& a, const IValue& b, const Tolerance& tolerance,
                                     const std::string& where) {
  Comparer comparer(tolerance);
  comparer.compare(a, b, where, 0);
  return comparer.take();
}

}  // namespace wick::cli

#include "core/stream_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/text_limit.h"

namespace wick {

namespace {

constexpr int64_t kLineWidth = 80;

// One notation for all numbers of a part.
class Style {
 public:
  explicit Style(const std::vector<double>& numbers) {
    double smallest = INFINITY, largest = 0;
    for (const double v : numbers) {
      if (!std::isfinite(v)) continue;
      whole_ = whole_ && v == std::ceil(v);
      smallest = std::min(smallest, std::abs(v));
      largest = std::max(largest, std::abs(v));
    }
    if (numbers.empty()) {
      width_ = 0;
      return;
    }
    const int least = digitsOf(std::isfinite(smallest) ? smallest : 0), most = digitsOf(largest);
    if (whole_) {
      scientific_ = most > 9;
      width_ = scientific_ ? 11 : most + 1;
    } else if (most - least > 4) {
      scientific_ = true;
      width_ = std::abs(most) > 99 || std::abs(least) > 99 ? 12 : 11;
    } else if (most > 5 || most < 0) {
      width_ = 7;
      scale_ = std::pow(10, most - 1);
    } else {
      width_ = most == 0 ? 7 : most + 6;
    }
  }
  int64_t width() const { return width_; }
  // A line that says what to multiply all numbers by, or nothing.
  std::string scale() const { return scale_ == 1 ? "" : fmt::format("{:.4g} *\n", scale_); }
  Notation notation() const {
    return scientific_ ? Notation::Scientific : whole_ ? Notation::Plain : Notation::Fixed;
  }
  std::string text(double v) const {
    const double scaled = v / scale_;
    const int width = width_;
    if (scientific_) return fmt::format("{:>{}.4e}", scaled, width);
    if (whole_) return fmt::format("{:>{}g}", scaled, width);
    return fmt::format("{:>{}.4f}", scaled, width);
  }

 private:
  // Digits in front of the point.
  static int digitsOf(double v) {
    return v == 0 ? 1 : static_cast<int>(std::floor(std::log10(v))) + 1;
  }
  bool whole_ = true;
  bool scientific_ = false;
  int width_ = 0;
  double scale_ = 1;
};

std::vector<double> numbersOf(const Tensor& t) {
  std::vector<double> numbers;
  numbers.reserve(static_cast<size_t>(t.numel()));
  dispatchAll(t.dtype(), [&]<class T>() {
    const T* data = t.data<T>();
    for (int64_t i = 0; i < t.numel(); ++i) {
      if constexpr (dtypeCategory<T>() == kComplexes) {
        numbers.push_back(static_cast<double>(data[i].real()));
      } else {
        numbers.push_back(static_cast<double>(data[i]));
      }
    }
  });
  return numbers;
}

Notation appendMatrix(std::string& out, const double* numbers, int64_t rows, int64_t columns,
                      int64_t indent) {
  const Style style(std::vector<double>(numbers, numbers + rows * columns));
  const int64_t per_line = std::max<int64_t>(1, (kLineWidth - indent) / (style.width() + 1));
  const std::string margin(static_cast<size_t>(indent), ' ');
  Pace pace;
  for (int64_t first = 0; first < columns; first += per_line) {
    const int64_t last = std::min(first + per_line, columns);
    if (per_line < columns) {
      if (first != 0) out += "\n";
      out += fmt::format("Columns {} to {}", first + 1, last) + margin;
    }
    if (const std::string scale = style.scale(); !scale.empty()) out += scale + margin;
    for (int64_t r = 0; r < rows; ++r) {
      if (r != 0 || per_line >= columns) out += margin;
      for (int64_t c = first; c < last; ++c) {
        pace.step(8);
        out += style.text(numbers[r * columns + c]);
        out += c + 1 == last ? "\n" : " ";
      }
    }
  }
  return style.notation();
}

}  // namespace

Notation appendNumbers(std::string& out, const Tensor& part) {
  constexpr size_t kMostPerNumber = 14;
  checkTextLength("the text of a tensor", static_cast<size_t>(part.numel()) * kMostPerNumber);
  const Tensor t = part.contiguous();
  const std::vector<double> numbers = numbersOf(t);
  Notation last = Notation::Plain;
  if (t.numel() > 0 && t.dim() == 0) {
    out += fmt::format("{:g}\n", numbers[0]);
  } else if (t.numel() > 0 && t.dim() == 1) {
    const Style style(numbers);
    last = style.notation();
    out += style.scale();
    for (const double v : numbers) out += style.text(v) + "\n";
  } else if (t.numel() > 0 && t.dim() == 2) {
    last = appendMatrix(out, numbers.data(), t.size(0), t.size(1), 0);
  } else if (t.numel() > 0) {
    const int64_t rows = t.size(-2), columns = t.size(-1), outer = t.dim() - 2;
    std::vector<int64_t> at(static_cast<size_t>(outer), 0);
    for (int64_t m = 0; m < t.numel() / (rows * columns); ++m) {
      if (m != 0) out += "\n";
      out += "(";
      for (const int64_t i : at) out += fmt::format("{},", i + 1);
      out += ".,.) = \n";
      last = appendMatrix(out, numbers.data() + m * rows * columns, rows, columns, 1);
      for (int64_t d = 0; d < outer; ++d) {
        if (++at[static_cast<size_t>(d)] < t.size(d)) break;
        at[static_cast<size_t>(d)] = 0;
      }
    }
  }
  return last;
}

void appendStreamed(std::string& out, const Tensor& part) {
  appendNumbers(out, part);
  out += fmt::format("[ CPU{}Type{{{}}} ]", scalarTypeName(part.dtype()),
                     fmt::join(part.sizes(), ","));
}

std::string inNotation(Notation notation, double value) {
  switch (notation) {
    case Notation::Plain:
      return fmt::format("{:g}", value);
    case Notation::Fixed:
      return fmt::format("{:.4f}", value);
    case Notation::Scientific:
      break;
  }
  return fmt::format("{:.4e}", value);
}

}  // namespace wick

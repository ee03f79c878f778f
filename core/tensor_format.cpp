// Tensors as text, in the layout in which Python shows a torch.Tensor.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/ivalue.h"
#include "core/nested_form.h"
#include "core/print_options.h"
#include "core/quantizer.h"
#include "core/sparse_form.h"
#include "core/text_limit.h"

namespace wick {

namespace {

std::string fixedText(double v, int precision) {
  return std::isnan(v) ? "nan" : fmt::format("{:.{}f}", v, precision);
}
std::string scientificText(double v, int precision) {
  return std::isnan(v) ? "nan" : fmt::format("{:.{}e}", v, precision);
}

// Chooses one notation for all shown numbers of a tensor: whole, fixed or scientific.
class FloatStyle {
 public:
  FloatStyle(const std::vector<double>& shown, const PrintOptions& options)
      : precision_(options.precision) {
    std::vector<double> finite;
    for (double v : shown) {
      if (std::isfinite(v) && v != 0) finite.push_back(v);
    }
    if (finite.empty()) return;
    double smallest = std::abs(finite[0]);
    double largest = smallest;
    for (double v : finite) {
      smallest = std::min(smallest, std::abs(v));
      largest = std::max(largest, std::abs(v));
      whole_ = whole_ && v == std::ceil(v);
    }
    scientific_ = largest / smallest > 1000.0 || largest > 1.0e8 || (!whole_ && smallest < 1.0e-4);
    for (double v : finite) {
      size_t n = scientific_ ? scientificText(v, precision_).size()
                 : whole_    ? fixedText(v, 0).size() + 1
                             : fixedText(v, precision_).size();
      width_ = std::max(width_, n);
    }
    // As in PyTorch, columns are as wide as what the numbers want.
    scientific_ = options.scientific.value_or(scientific_);
  }

  size_t width() const { return width_; }
  std::string text(double v) const {
    std::string s;
    if (scientific_) {
      s = scientificText(v, precision_);
    } else if (whole_) {
      s = fixedText(v, 0);
      if (std::isfinite(v)) s += ".";
    } else {
      s = fixedText(v, precision_);
    }
    return s.size() < width_ ? std::string(width_ - s.size(), ' ') + s : s;
  }

 private:
  int precision_;
  bool whole_ = true;
  bool scientific_ = false;
  size_t width_ = 1;
};

std::string trimLeft(const std::string& s) {
  return s.substr(std::min(s.find_first_not_of(' '), s.size()));
}

class Printer {
 public:
  Printer(const Tensor& tensor, const PrintOptions& options)
      : tensor_(tensor), options_(options), summarize_(tensor.numel() > options.threshold) {
    // Six elements of each dimension are many of many dimensions.
    double count = 1;
    for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
      count *= static_cast<double>(isCut(dim) ? 2 * options_.edge_items : tensor.sizes()[dim]);
    }
    constexpr double kLeastBytes = 3;
    checkTextLength("the text of a tensor",
                    static_cast<size_t>(std::min(count * kLeastBytes, 0x1p60)));
    tensor_ = tensor.contiguous();
    std::vector<int64_t> shown;
    collect(0, 0, shown);
    dispatchAll(tensor_.dtype(), [&]<class T>() { chooseStyle<T>(shown); });
  }

  std::string text(int64_t indent) const {
    return tensor_.dim() == 0 ? element_(0) : block(0, 0, indent);
  }

 private:
  bool isCut(int64_t dim) const {
    return summarize_ && tensor_.sizes()[dim] > 2 * options_.edge_items;
  }

  // The offsets of the elements that will be shown.
  void collect(int64_t dim, int64_t offset, std::vector<int64_t>& out) const {
    if (dim == tensor_.dim()) {
      out.push_back(offset);
      return;
    }
    int64_t n = tensor_.sizes()[dim];
    int64_t stride = tensor_.strides()[dim];
    for (int64_t i = 0; i < n; ++i) {
      if (isCut(dim) && i == options_.edge_items) i = n - options_.edge_items;
      if (i == n) break;
      collect(dim + 1, offset + i * stride, out);
    }
  }

  template <class T>
  void chooseStyle(const std::vector<int64_t>& shown) {
    const T* data = tensor_.data<T>();
    if constexpr (dtypeCategory<T>() == kComplexes) {
      std::vector<double> real;
      std::vector<double> imag;
      for (int64_t i : shown) {
        real.push_back(data[i].real());
        imag.push_back(data[i].imag());
      }
      FloatStyle rs(real, options_);
      FloatStyle is(imag, options_);
      width_ = rs.width() + is.width() + 1;
      element_ = [data, rs, is](int64_t i) {
        std::string text = trimLeft(is.text(data[i].imag()) + "j");
        return rs.text(data[i].real()) + (text[0] == '+' || text[0] == '-' ? "" : "+") + text;
      };
    } else if constexpr ((dtypeCategory<T>() & kAnyFloat) != 0) {
      std::vector<double> values;
      for (int64_t i : shown) values.push_back(static_cast<double>(data[i]));
      FloatStyle style(values, options_);
      width_ = style.width();
      element_ = [data, style](int64_t i) { return style.text(static_cast<double>(data[i])); };
    } else {
      auto plain = [data](int64_t i) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return data[i] ? "True" : "False";
        } else {
          return fmt::format("{}", static_cast<int64_t>(data[i]));
        }
      };
      width_ = 1;
      for (int64_t i : shown) width_ = std::max(width_, plain(i).size());
      element_ = [plain, width = width_](int64_t i) {
        std::string s = plain(i);
        return std::string(width - s.size(), ' ') + s;
      };
    }
  }

  std::string row(int64_t offset, int64_t indent) const {
    int64_t dim = tensor_.dim() - 1;
    int64_t n = tensor_.sizes()[dim];
    int64_t per_line =
        std::max<int64_t>(1, (options_.line_width - indent) / static_cast<int64_t>(width_ + 2));
    std::string out = "[";
    int64_t written = 0;
    for (int64_t i = 0; i < n; ++i) {
      std::string text;
      if (isCut(dim) && i == options_.edge_items) {
        text = " ...";
        i = n - options_.edge_items - 1;
      } else {
        text = element_(offset + i);
      }
      if (written > 0) {
        bool wrap = written % per_line == 0;
        out += wrap ? ",\n" + std::string(static_cast<size_t>(indent + 1), ' ') : ", ";
      }
      out += text;
      ++written;
    }
    return out + "]";
  }

  std::string block(int64_t dim, int64_t offset, int64_t indent) const {
    int64_t below = tensor_.dim() - dim;
    if (below == 1) return row(offset, indent);
    int64_t n = tensor_.sizes()[dim];
    std::string separator = "," + std::string(static_cast<size_t>(below - 1), '\n') +
                            std::string(static_cast<size_t>(indent + 1), ' ');
    std::string out = "[";
    for (int64_t i = 0; i < n; ++i) {
      if (i > 0) out += separator;
      if (isCut(dim) && i == options_.edge_items) {
        out += "..." + separator;
        i = n - options_.edge_items;
        if (i == n) break;
      }
      out += block(dim + 1, offset + i * tensor_.strides()[dim], indent + 1);
    }
    return out + "]";
  }

  Tensor tensor_;
  const PrintOptions options_;
  bool summarize_;
  size_t width_ = 1;
  std::function<std::string(int64_t)> element_;
};

std::string sizeText(const Tensor& t) {
  return fmt::format("size=({}{})", fmt::join(t.sizes(), ", "), t.dim() == 1 ? "," : "");
}

}  // namespace

std::string Tensor::repr() const {
  return defined() ? formatTensor(*this) : describe();
}

// A friend: the pragma of the header does not reach it.
__attribute__((visibility("default"))) std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.repr();
}

std::string formatTensor(const Tensor& tensor, int64_t max_elements) {
  PrintOptions options;
  options.threshold = max_elements;
  return formatTensor(tensor, options);
}

std::string formatTensor(const Tensor& tensor, const PrintOptions& options) {
  if (!tensor.defined()) return "None";
  if (tensor.kind() == TensorKind::Sparse) return formatSparse(tensor);
  if (tensor.kind() == TensorKind::Quantized) return formatQuantized(tensor);
  if (tensor.kind() == TensorKind::Nested) return formatNested(tensor, options.threshold);
  constexpr int64_t kIndent = 7;  // the width of "tensor("
  std::vector<std::string> suffixes;
  DType t = tensor.dtype();
  bool usual = t == defaultDType() || t == toComplexType(defaultDType()) || t == DType::Long ||
               t == DType::Bool;
  std::string dtype = fmt::format("dtype=torch.{}", toString(t));
  std::string body;
  if (!tensor.device().isCpu()) {
    suffixes.push_back(fmt::format("device='{}'", tensor.device().str()));
  }
  if (!deviceBackend(tensor.device().type).holdsData()) {
    body = "...";
    suffixes.push_back(sizeText(tensor));
    if (!usual) suffixes.push_back(dtype);
  } else if (tensor.numel() == 0) {
    body = "[]";
    if (tensor.dim() != 1) suffixes.push_back(sizeText(tensor));
    if (t != defaultDType()) suffixes.push_back(dtype);
  } else {
    body = Printer(moveTo(tensor, Device()), options).text(kIndent);
    if (!usual) suffixes.push_back(dtype);
  }
  if (tensor.requiresGrad()) suffixes.push_back("requires_grad=True");

  std::string out = "tensor(" + body;
  size_t last_newline = out.rfind('\n');
  size_t column =
      last_newline == std::string::npos ? out.size() + 2 : out.size() - last_newline + 1;
  for (const std::string& suffix : suffixes) {
    if (column + suffix.size() + 2 > static_cast<size_t>(options.line_width)) {
      out += ",\n" + std::string(static_cast<size_t>(kIndent), ' ') + suffix;
      column = static_cast<size_t>(kIndent) + suffix.size();
    } else {
      out += ", " + suffix;
      column += suffix.size() + 2;
    }
  }
  return out + ")";
}

}  // namespace wick

#include "tools/report.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>

#include "runtime/executor/graph_executor.h"

namespace wick::cli {
namespace {

constexpr int64_t kFewElements = 200;
constexpr size_t kFewItems = 100;
constexpr int kReportMaxDepth = 60;
// Bytes after which parts of a value are no longer shown.
constexpr size_t kMaxReport = size_t{4} << 20;

// A double holds every finite number of these dtypes closely enough to show it.
Tensor asDoubles(const Tensor& tensor) {
  return tensor.to(DType::Double).contiguous();
}

std::string statistics(const Tensor& tensor) {
  const Tensor doubles = asDoubles(tensor);
  const double* data = doubles.data<double>();
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  double sum = 0;
  int64_t bad = 0;
  for (int64_t i = 0; i < doubles.numel(); ++i) {
    if (!std::isfinite(data[i])) {
      ++bad;
      continue;
    }
    low = std::min(low, data[i]);
    high = std::max(high, data[i]);
    sum += data[i];
  }
  const int64_t finite = doubles.numel() - bad;
  std::string text;
  if (finite > 0) {
    text = fmt::format("minimum {:.6g}, maximum {:.6g}, mean {:.6g}", low, high,
                       sum / static_cast<double>(finite));
  }
  if (bad > 0) text += fmt::format("{}{} not finite", text.empty() ? "" : ", ", bad);
  return text;
}

std::string largestPlaces(const Tensor& tensor) {
  const Tensor doubles = asDoubles(tensor);
  const double* data = doubles.data<double>();
  std::vector<int64_t> order(static_cast<size_t>(doubles.numel()));
  std::iota(order.begin(), order.end(), 0);
  const auto above = [&](int64_t a, int64_t b) {
    return data[a] > data[b] || (std::isnan(data[b]) && !std::isnan(data[a]));
  };
  const size_t count = std::min<size_t>(5, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(count), order.end(),
                    [&](int64_t a, int64_t b) {
                      if (above(a, b)) return true;
                      return !above(b, a) && a < b;
                    });
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += fmt::format("{}{} ({:.6g})", i ? ", " : "", order[i], data[order[i]]);
  }
  return text;
}

std::string indented(const std::string& text, const std::string& indent) {
  std::string result = indent;
  for (char c : text) {
    result += c;
    if (c == '\n') result += indent;
  }
  return result + "\n";
}

std::string reportTensor(const Tensor& tensor, const std::string& indent) {
  std::string text = tensor.describe();
  if (tensor.requiresGrad()) text += ", requires grad";
  text += "\n";
  if (!tensor.device().isCpu() || tensor.numel() == 0) return text;
  text += indented(formatTensor(tensor, kFewElements), indent);
  const bool real = !isComplex(tensor.dtype()) && tensor.dtype() != DType::Bool;
  if (tensor.numel() > kFewElements && real) text += indent + statistics(tensor) + "\n";
  const bool row = tensor.dim() > 0 && tensor.numel() > 1 && tensor.size(-1) == tensor.numel();
  if (row && isFloating(tensor.dtype())) {
    text += indent + "largest at " + largestPlaces(tensor) + "\n";
  }
  return text;
}

bool isFlat(const IValue& value) {
  return !value.isTensor() && !value.isTuple() && !value.isList() && !value.isDict();
}

// Appends to `out`; values that share their parts would report without end.
void reportAt(const IValue& value, const std::string& indent, int depth, std::string& out) {
  if (depth > kReportMaxDepth || out.size() > kMaxReport) {
    out += "...\n";
    return;
  }
  const std::string deeper = indent + "  ";
  if (value.isTensor()) {
    out += reportTensor(value.toTensor(), indent);
  } else if (value.isTuple() || value.isList()) {
    const std::vector<IValue>& items = value.elements();
    if (items.size() <= kFewItems && std::all_of(items.begin(), items.end(), isFlat)) {
      out += value.repr() + "\n";
      return;
    }
    out += fmt::format("{} of {}:\n", value.isTuple() ? "tuple" : "list", items.size());
    for (size_t i = 0; i < items.size() && i < kFewItems && out.size() <= kMaxReport; ++i) {
      out += fmt::format("{}{}: ", deeper, i);
      reportAt(items[i], deeper, depth + 1, out);
    }
    if (items.size() > kFewItems) out += deeper + "...\n";
  } else if (value.isDict()) {
    const auto items = value.toDict().items();
    out += fmt::format("dict of {}:\n", items.size());
    size_t shown = 0;
    for (const auto& [key, item] : items) {
      if (shown++ == kFewItems || out.size() > kMaxReport) {
        out += deeper + "...\n";
        break;
      }
      out += fmt::format("{}{}: ", deeper, key.repr());
      reportAt(item, deeper, depth + 1, out);
    }
  } else {
    out += value.repr() + "\n";
  }
}

}  // namespace

std::string report(const IValue& value) {
  std::string out;
  reportAt(value, "", 0, out);
  return out;
}

std::string counted(int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string formatBytes(double bytes) {
  if (bytes < 1e3) return fmt::format("{:.0f} bytes", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.2f} GB", bytes / 1e9);
}

std::string formatDuration(double seconds) {
  const auto s = static_cast<int64_t>(std::min(seconds, 1e9) + 0.5);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
}

double peakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

double residentBytes() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0, mapped = 0;
  if (!(file >> size >> resident >> mapped)) return 0;
  return (resident - mapped) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

std::string describePlans(GraphFunction& function) {
  const GraphExecutor::Statistics s = GraphExecutor::of(function).statistics();
  if (s.plans == 0) return "";
  const auto counted = [](uint64_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  return fmt::format(
      "code for the types of its arguments: {} ({} of it); {} found theirs there, {} came before "
      "it "
      "was made, and {} had to leave it",
      counted(s.plans, "version"), counted(s.codes, "piece"), counted(s.hits, "call"), s.profiled,
      s.bail_outs);
}

}  // namespace wick::cli

#include "tools/training_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/output_file.h"
#include "core/value_conversions.h"

namespace wick::cli {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

std::optional<double> known(double v) {
  return std::isnan(v) ? std::nullopt : std::optional(v);
}

}  // namespace

IValue TrainingRecord::state() const {
  auto state = makeRef<DictObject>(types::String(), types::Any());
  state->set(IValue("losses"), Tensor::from(losses));
  const Tensor table = Tensor::empty({static_cast<int64_t>(epochs.size()), 5}, DType::Double);
  double* at = table.data<double>();
  for (const Evaluated& e : epochs) {
    *at++ = static_cast<double>(e.step);
    *at++ = e.train_loss;
    *at++ = e.train_accuracy.value_or(kNothing);
    *at++ = e.loss.value_or(kNothing);
    *at++ = e.accuracy.value_or(kNothing);
  }
  state->set(IValue("epochs"), table);
  state->set(IValue("seconds"), seconds);
  return IValue(std::move(state));
}

TrainingRecord TrainingRecord::from(const IValue& state) {
  const auto tensor = [&](const char* name, int64_t dims) {
    const IValue* found = state.isDict() ? state.toDict().find(IValue(name)) : nullptr;
    if (!found || !found->isTensor() || found->toTensor().kind() != TensorKind::Dense ||
        found->toTensor().dtype() != DType::Double || found->toTensor().dim() != dims) {
      throw UsageError(fmt::format("the record of a training has no table '{}'", name));
    }
    return found->toTensor().contiguous();
  };
  TrainingRecord record;
  const Tensor losses = tensor("losses", 1), table = tensor("epochs", 2);
  record.losses.assign(losses.data<double>(), losses.data<double>() + losses.numel());
  if (table.size(1) != 5) throw UsageError("the record of a training: 'epochs' has other columns");
  for (int64_t i = 0; i < table.size(0); ++i) {
    const double* row = table.data<double>() + 5 * i;
    if (!(std::abs(row[0]) < 0x1p53)) throw UsageError("the record of a training is broken");
    record.epochs.push_back(
        {static_cast<int64_t>(row[0]), row[1], known(row[2]), known(row[3]), known(row[4])});
  }
  const IValue* seconds = state.toDict().find(IValue("seconds"));
  if (seconds && seconds->isDouble()) record.seconds = seconds->toDouble();
  return record;
}

// ---- the picture ----

namespace {

struct Point {
  double x, y;
};

// Means of so many neighbours that a picture can show them.
std::vector<Point> thinned(const std::vector<double>& losses) {
  constexpr size_t kPoints = 400;
  const size_t width = std::max<size_t>(1, (losses.size() + kPoints - 1) / kPoints);
  std::vector<Point> points;
  for (size_t i = 0; i < losses.size(); i += width) {
    const size_t end = std::min(losses.size(), i + width);
    double sum = 0;
    for (size_t k = i; k < end; ++k) sum += losses[k];
    points.push_back({static_cast<double>(i + end + 1) / 2, sum / static_cast<double>(end - i)});
  }
  return points;
}

// 1, 2 or 5 times a power of ten, so that some five steps cover the span.
double tickStep(double span) {
  const double raw = span / 5;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double f : {1.0, 2.0, 5.0}) {
    if (f * power >= raw) return f * power;
  }
  return 10 * power;
}

class Chart {
 public:
  Chart(double x_max, double y_min, double y_max, bool logarithmic)
      : x_max_(std::max(x_max, 1.0)), log_(logarithmic) {
    low_ = scaled(y_min);
    high_ = scaled(y_max);
    if (!(high_ - low_ > 1e-12 * std::max(1.0, std::abs(high_)))) {
      high_ = low_ + std::max(1e-3, std::abs(low_) * 1e-3);
    }
  }
  double x(double v) const { return kLeft + v / x_max_ * (kRight - kLeft); }
  double y(double v) const {
    return kBottom - (scaled(v) - low_) / (high_ - low_) * (kBottom - kTop);
  }
  void axes(std::string& svg) const {
    const auto line = [&](double x1, double y1, double x2, double y2, const char* color) {
      svg += fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='{}'/>\n",
                         x1, y1, x2, y2, color);
    };
    const auto text = [&](double tx, double ty, const char* anchor, const std::string& what) {
      svg += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}'>{}</text>\n", tx, ty, anchor,
                         what);
    };
    const double step = tickStep(high_ - low_);
    for (double v = std::ceil(low_ / step) * step; v <= high_ + step * 1e-9; v += step) {
      const double at = kBottom - (v - low_) / (high_ - low_) * (kBottom - kTop);
      line(kLeft, at, kRight, at, "#ddd");
      text(kLeft - 6, at + 4, "end", fmt::format("{:.3g}", log_ ? std::pow(10.0, v) : v + 0.0));
    }
    const double across = std::max(1.0, tickStep(x_max_));
    for (double v = 0; v <= x_max_ * (1 + 1e-9); v += across) {
      text(x(v), kBottom + 16, "middle", fmt::format("{:g}", v));
    }
    line(kLeft, kBottom, kRight, kBottom, "#444");
    line(kLeft, kTop, kLeft, kBottom, "#444");
    text((kLeft + kRight) / 2, kBottom + 34, "middle", "step");
  }
  std::string path(const std::vector<Point>& points, const char* color) const {
    std::string list;
    for (const Point& p : points) list += fmt::format("{:.1f},{:.1f} ", x(p.x), y(p.y));
    return fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='1.5'/>\n", list,
                       color);
  }

  static constexpr double kLeft = 70, kRight = 700, kTop = 40, kBottom = 380;

 private:
  double scaled(double v) const { return log_ ? std::log10(v) : v; }
  double x_max_, low_ = 0, high_ = 1;
  bool log_;
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string lossPicture(const TrainingRecord& record, const std::string& title) {
  const std::vector<Point> train = thinned(record.losses);
  std::vector<Point> validation;
  for (const Evaluated& e : record.epochs) {
    if (e.loss && std::isfinite(*e.loss))
      validation.push_back({static_cast<double>(e.step), *e.loss});
  }
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const auto cover = [&](const std::vector<Point>& points) {
    for (const Point& p : points) {
      low = std::min(low, p.y);
      high = std::max(high, p.y);
    }
  };
  cover(train);
  cover(validation);
  if (!(low <= high)) low = 0, high = 1;
  const bool logarithmic = low > 0 && high / low > 30;
  if (!logarithmic) low = std::min(low, 0.0);
  const Chart chart(static_cast<double>(record.losses.size()), low, high, logarithmic);
  std::string svg =
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 430' width='720' height='430' "
      "font-family='sans-serif' font-size='12'>\n<rect width='720' height='430' fill='white'/>\n";
  svg +=
      fmt::format("<text x='{}' y='20' font-size='14'>{}</text>\n", Chart::kLeft, escaped(title));
  chart.axes(svg);
  svg += chart.path(train, "#1f77b4");
  svg +=
      fmt::format("<text x='{}' y='{}' text-anchor='end' fill='#1f77b4'>loss of training</text>\n",
                  Chart::kRight, Chart::kTop + 4);
  if (!validation.empty()) {
    svg += chart.path(validation, "#d62728");
    for (const Point& p : validation) {
      svg += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3' fill='#d62728'/>\n", chart.x(p.x),
                         chart.y(p.y));
    }
    svg += fmt::format(
        "<text x='{}' y='{}' text-anchor='end' fill='#d62728'>loss of validation</text>\n",
        Chart::kRight, Chart::kTop + 20);
  }
  return svg + "</svg>\n";
}

// ---- the log ----

namespace {

// The lines up to a step; a last line that was cut off does not count.
std::string linesUpTo(const std::string& path, int64_t steps) {
  std::ifstream file(path);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const auto value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!value.is_object() || !value.contains("step") || !value["step"].is_number_integer()) break;
    if (value["step"].get<int64_t>() <= steps) kept += line + "\n";
  }
  return kept;
}

}  // namespace

TrainingLog::TrainingLog(std::string path, int64_t steps) : path_(std::move(path)), file_(nullptr) {
  std::error_code none;
  // Pipes and terminals have no lines that could be taken back.
  if (!std::filesystem::exists(path_, none) || std::filesystem::is_regular_file(path_, none)) {
    writeFile(path_, steps > 0 ? linesUpTo(path_, steps) : std::string());
  }
  file_ = std::fopen(path_.c_str(), "a");
  WICK_CHECK(file_, "{}: cannot be written: {}", path_, std::strerror(errno));
}

TrainingLog::~TrainingLog() {
  std::fclose(file_);
}

void TrainingLog::line(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file_) == text.size() &&
                       std::fputc('\n', file_) == '\n' && std::fflush(file_) == 0;
  WICK_CHECK(written, "{}: cannot be written: {}", path_, std::strerror(errno));
}

void TrainingLog::step(const training::Trainer::Step& step, double seconds) {
  nlohmann::ordered_json json = {{"step", step.number},
                                 {"epoch", step.epoch},
                                 {"loss", step.loss},
                                 {"rate", step.rate},
                                 {"samples", step.samples}};
  if (step.norm) json["norm"] = *step.norm;
  json["seconds"] = std::round(seconds * 1e4) / 1e4;
  line(json.dump());
}

void TrainingLog::epoch(int64_t number, const Evaluated& result, double samples_per_second,
                        double seconds) {
  nlohmann::ordered_json json = {
      {"step", result.step}, {"epoch", number}, {"train_loss", result.train_loss}};
  if (result.train_accuracy) json["train_accuracy"] = *result.train_accuracy;
  if (result.loss) json["validation_loss"] = *result.loss;
  if (result.accuracy) json["validation_accuracy"] = *result.accuracy;
  json["samples_per_second"] = std::round(samples_per_second);
  json["seconds"] = std::round(seconds * 1e4) / 1e4;
  line(json.dump());
}

}  // namespace wick::cli

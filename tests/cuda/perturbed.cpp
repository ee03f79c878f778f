#include "tests/cuda/perturbed.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "core/dtype.h"
#include "ir/parser.h"
#include "tests/codegen/check_fusion.h"

namespace wick {

namespace {

struct Line {
  std::string text;
  std::string name;  // of the tensor that it makes, with its sign; or empty
};

std::vector<Line> linesOf(const std::string& text) {
  std::vector<Line> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const size_t end = line.find(" : Tensor = ");
    const size_t begin = line.find('%');
    lines.push_back({line, {}});
    if (end != std::string::npos && begin < end) {
      lines.back().name = line.substr(begin, end - begin);
    }
  }
  return lines;
}

std::string joined(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.text + '\n';
  return text;
}

// The dtypes of what the steps give, in order; empty where the program does not run so.
std::vector<DType> dtypesOf(const Program& program) {
  std::vector<Line> lines = linesOf(program.text);
  std::string names;
  for (Line& line : lines) {
    if (!line.name.empty()) names += (names.empty() ? "" : ", ") + line.name;
    if (line.text.find(" return (") != std::string::npos) line.text = "  return (" + names + ")";
  }
  std::vector<DType> dtypes;
  const Outcome all = runGraph(parseGraph(joined(lines)), program.arguments);
  if (all.error.empty()) {
    for (const Tensor& t : all.tensors) dtypes.push_back(t.dtype());
  }
  return dtypes;
}

double unitOf(DType dtype) {
  if (dtype == DType::Half) return 0x1p-10;
  if (dtype == DType::BFloat16) return 0x1p-7;
  return dtype == DType::Double ? 0x1p-52 : 0x1p-23;
}

// The program with this step's result times `factor`.
std::string textWith(const std::vector<Line>& lines, size_t step, double factor) {
  std::vector<Line> changed = lines;
  Line& line = changed[step];
  const std::string exact = fmt::format("%exact{}", step), by = fmt::format("%by{}", step);
  const size_t at = line.text.find(line.name);
  line.text = line.text.substr(0, at) + exact + line.text.substr(at + line.name.size()) +
              fmt::format(
                  "\n  {} : float = prim::Constant[value={:.17g}]()\n"
                  "  {} : Tensor = aten::mul({}, {})",
                  by, factor, line.name, exact, by);
  return joined(changed);
}

}  // namespace

bool differsSteadily(const Program& program, const std::vector<Tensor>& got,
                     const std::vector<Tensor>& expected, double tolerance) {
  std::vector<Tensor> least, most;  // of each element, over all changes
  const auto wide = [](const Tensor& t) { return t.contiguous().to(DType::Double).clone(); };
  for (const Tensor& t : expected) {
    least.push_back(wide(t));
    most.push_back(wide(t));
  }
  const std::vector<Line> lines = linesOf(program.text);
  const std::vector<DType> dtypes = dtypesOf(program);
  size_t number = 0;
  for (size_t step = 0; step < lines.size() && number < dtypes.size(); ++step) {
    if (lines[step].name.empty()) continue;
    const DType dtype = dtypes[number++];
    if (!isFloating(dtype)) continue;
    for (const double units : {-2, -1, 1, 2}) {
      const double factor = 1 + units * unitOf(dtype);
      const Outcome moved = runGraph(parseGraph(textWith(lines, step, factor)), program.arguments);
      if (!moved.error.empty()) continue;
      for (size_t i = 0; i < expected.size(); ++i) {
        if (moved.tensors[i].numel() != expected[i].numel()) continue;
        const Tensor now = wide(moved.tensors[i]);
        for (int64_t e = 0; e < now.numel(); ++e) {
          const double v = now.data<double>()[e];
          double& low = least[i].data<double>()[e];
          double& high = most[i].data<double>()[e];
          low = std::fmin(low, v);
          high = std::fmax(high, v);
        }
      }
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor here = wide(got[i]), there = wide(expected[i]);
    // What changes explain becomes what was expected.
    for (int64_t e = 0; e < here.numel(); ++e) {
      const double spread = most[i].data<double>()[e] - least[i].data<double>()[e];
      double& v = here.data<double>()[e];
      const double wanted = there.data<double>()[e];
      if (std::fabs(v - wanted) <= 4 * spread) v = wanted;
    }
    if (!differenceOf(here, there, tolerance, false).empty()) return true;
  }
  return false;
}

}  // namespace wick

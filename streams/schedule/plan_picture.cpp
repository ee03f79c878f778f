#include "streams/schedule/plan_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/dot.h"

namespace wick::streams {

std::string planDot(const StreamGraph& graph, const Plan& plan, const RunReport* report) {
  std::string out =
      "digraph {\n"
      "  rankdir=LR;\n"
      "  node [shape=box, style=filled, fontname=\"Helvetica\", fontsize=11];\n"
      "  edge [fontname=\"Helvetica\", fontsize=9];\n"
      "  source [shape=ellipse, fillcolor=white];\n"
      "  results [shape=ellipse, fillcolor=white];\n";
  const double slowest = std::max(plan.bottleneck(), 1e-9);
  for (size_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const double share = stage.milliseconds / static_cast<double>(stage.replicas) / slowest;
    std::string label = fmt::format("stage {}", s + 1);
    if (stage.replicas > 1) label += fmt::format(", {} copies", stage.replicas);
    label += fmt::format("\\n{:.3f} ms, {} filters\\n{}", stage.milliseconds,
                         stage.last - stage.first, dotText(graph.filters[stage.first].name));
    if (stage.last - stage.first > 1) {
      label += "\\n… " + dotText(graph.filters[stage.last - 1].name);
    }
    if (report) {
      const StageTimes& times = report->stages[s];
      const double all = times.busy_seconds + times.wait_in_seconds + times.wait_out_seconds;
      if (all > 0) {
        label += fmt::format("\\nbusy {:.0f}%, waits {:.0f}% in front, {:.0f}% behind",
                             100 * times.busy_seconds / all, 100 * times.wait_in_seconds / all,
                             100 * times.wait_out_seconds / all);
      }
    }
    // Blue, the darker the busier.
    out += fmt::format("  s{} [label=\"{}\", fillcolor=\"0.58 {:.2f} 1.0\"];\n", s, label,
                       0.05 + 0.45 * std::clamp(share, 0.0, 1.0));
  }
  for (size_t s = 0; s <= plan.stages.size(); ++s) {
    const std::string from = s == 0 ? "source" : fmt::format("s{}", s - 1);
    const std::string to = s == plan.stages.size() ? "results" : fmt::format("s{}", s);
    const std::string label =
        s == 0 ? "" : fmt::format("{:.1f} kB", static_cast<double>(plan.stages[s - 1].bytes) / 1e3);
    out += fmt::format("  {} -> {} [label=\"{}\"];\n", from, to, label);
  }
  return out + "}\n";
}

}  // namespace wick::streams

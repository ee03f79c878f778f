#include "aot/step_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "aot/recording.h"

namespace wick::aot {

std::string listOf(IntSpan values) {
  std::string text;
  for (int64_t v : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", v);
  return text.empty() ? "0" : text;
}

void IndentedText::add(int closes, int opens, const std::string& head, const std::string& call) {
  depth_ -= static_cast<size_t>(closes);
  for (std::string_view rest : {std::string_view(head), std::string_view(call)}) {
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      if (rest[0] != '\n') text_.append(2 * depth_, ' ');
      text_ += rest.substr(0, end);
      rest.remove_prefix(end);
    }
  }
  depth_ += static_cast<size_t>(opens);
}

std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += {'\\', c};
    } else if (code < ' ' || code == '?' || code > '~') {
      literal += fmt::format("\\{:03o}", code);
    } else {
      literal += c;
    }
  }
  return literal + "\"";
}

size_t knownSizes(std::string_view key) {
  return static_cast<size_t>(std::ranges::count(key, 's'));
}
std::string bufferName(size_t known, size_t index) {
  return known == 0 ? fmt::format("b{}", index) : fmt::format("b{}_{}", known, index);
}
std::string partName(std::string_view key) {
  return fmt::format("part_{}(", key);
}

ProgramSteps StepWriter::write(const Program& program, const Plan& plan, bool any_size) {
  program_ = &program;
  plan_ = &plan;
  any_size_ = any_size;
  names_.clear();
  variables_.clear();
  loops_ = 0;
  steps_ = {};
  steps_.keys.emplace_back();
  open_.assign(1, {});
  int level = 0;
  for (const Step& step : program.steps) {
    now_ = {};
    now_.step = &step;
    std::visit([&](const auto& what) { write(step, what); }, step.what);
    level -= now_.closes;
    for (; level < open_.back().level; open_.pop_back()) variables_ = open_.back().variables;
    now_.part = open_.back().part;
    level += now_.opens;
    steps_.texts.push_back(std::move(now_));
    if (const auto* size = std::get_if<SizeStep>(&step.what)) {
      open_.push_back({.part = steps_.keys.size(),
                       .known = knownSizes(size->key),
                       .level = level,
                       .variables = variables_});
      steps_.keys.push_back(size->key);
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const TensorSlot& out = program.outputs[i];
    int64_t bytes = static_cast<int64_t>(itemSize(out.dtype));
    for (int64_t size : out.layout.sizes) bytes *= size;
    if (plan.direct[i] || bytes == 0) continue;
    StepText& text = steps_.texts.emplace_back();
    text.part = open_.back().part;
    text.call = copyText(fmt::format("outputs[{}].data", i), pointer(out.place, "char"),
                         static_cast<size_t>(bytes));
  }
  return std::move(steps_);
}

// An expression for a place in memory, of elements of this C++ type.
std::string StepWriter::pointer(const Place& place, const std::string& type) {
  const auto variable = variables_.find(place.buffer);
  if (variable != variables_.end()) {
    return fmt::format("at<{}>({}, {})", type, variable->second, place.offset);
  }
  const Plan::Home& home = plan_->homes[place.buffer];
  switch (home.kind) {
    case Plan::Home::Kind::Memory: {
      if (!any_size_) return fmt::format("at<{}>(m, {})", type, home.offset + place.offset);
      const auto [name, added] = names_.try_emplace(place.buffer);
      if (added) {
        OpenPart& part = open_.back();
        name->second = bufferName(part.known, part.buffers);
        steps_.buffers.push_back({place.buffer, part.part, part.buffers++});
      }
      return fmt::format("at<{}>(m, {} + {})", type, name->second, place.offset);
    }
    case Plan::Home::Kind::Weights:
      return fmt::format("at<{}>(w, {})", type, home.offset + place.offset);
    case Plan::Home::Kind::Input:
      return fmt::format("at<{}>(static_cast<const void*>(inputs[{}].data), {})", type, home.index,
                         place.offset);
    case Plan::Home::Kind::Output:
      return fmt::format("at<{}>(outputs[{}].data, {})", type, home.index, place.offset);
    default:
      return "nullptr";
  }
}

bool StepWriter::isWeight(const Place& p) const {
  return plan_->homes[p.buffer].kind == Plan::Home::Kind::Weights;
}
int64_t StepWriter::weightsOffset(const Place& p) const {
  return plan_->homes[p.buffer].offset + p.offset;
}

void StepWriter::write(const Step&, const OtherwiseStep&) {
  now_.call = "  } else {\n";
  now_.closes = now_.opens = 1;
}
void StepWriter::write(const Step&, const EndStep&) {
  now_.call = "  }\n";
  now_.closes = 1;
}
std::string StepWriter::failure(const std::string& message) {
  return fmt::format("return wick_aot_fail(state, WICK_AOT_RAISED, {});\n", quoted(message));
}
void StepWriter::write(const Step&, const RaiseStep& s) {
  now_.call = "  " + failure(s.message);
}

void StepWriter::write(const Step&, const SizeStep& s) {
  now_.call = fmt::format("  return {}state, inputs, outputs, sizes, *{});\n", partName(s.key),
                          pointer(s.count, "int64_t"));
}
void StepWriter::write(const Step&, const ResultSizesStep& s) {
  for (size_t o = 0; o < s.sizes.size(); ++o) {
    if (program_->asks.empty() && program_->outputs[o].decided == 0) continue;
    for (size_t d = 0; d < s.sizes[o].size(); ++d) {
      now_.call += fmt::format("  outputs[{}].sizes[{}] = {};\n", o, d, s.sizes[o][d]);
    }
  }
}

void StepWriter::write(const Step&, const SwapStep& s) {
  now_.call =
      fmt::format("  std::swap({}, {});\n", variables_.at(s.carried), variables_.at(s.next));
}
std::string StepWriter::swappedText(const LoopStep& s) {
  std::string text;
  for (const uint32_t buffer : s.swapped) {
    // Where an outer loop comes by again the variable is there once more.
    const std::string home = pointer({buffer, 0}, "unsigned char");
    const std::string name = fmt::format("p{}", newVariable());
    text += fmt::format("  [[maybe_unused]] unsigned char* {} = {};\n", name, home);
    variables_[buffer] = name;
  }
  return text;
}

}  // namespace wick::aot

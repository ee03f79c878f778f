#include "aot/step_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "aot/recording.h"
#include "codegen/cpp/scalar_text.h"

namespace wick::aot {

const char* const kAddressText = R"(// What lies some bytes behind an address.
template <class T>
inline T* at(void* memory, int64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(memory) + offset);
}
template <class T>
inline const T* at(const void* memory, int64_t offset) {
  return reinterpret_cast<const T*>(static_cast<const char*>(memory) + offset);
}
)";

std::string memoryType(DType dtype) {
  return dtype == DType::Bool ? "uint8_t" : codegen::cppType(dtype);
}

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

void StepWriter::refuse(const Step& step) {
  throw InternalError(__FILE__, __LINE__, step.name + ": a step for models of another device");
}

// ---- where elements are looked at ----

void StepWriter::write(const Step&, const BranchStep& s) {
  const std::string holds = fmt::format("holds_{}", loops_++);
  now_.call = readText(holds, "uint8_t", s.condition) + fmt::format("  if ({} != 0) {{\n", holds);
  now_.opens = 1;
}

void StepWriter::write(const Step&, const LoopStep& s) {
  const std::string round = fmt::format("round_{}", loops_++);
  std::string text = swappedText(s), rounds = fmt::format("{}", s.rounds), inside;
  if (s.told_rounds) {
    rounds = round + "_told";
    text += readText(rounds, "int64_t", *s.told_rounds);
  }
  if (s.condition) {
    const std::string goes_on = round + "_goes_on";
    inside = readText(goes_on, "uint8_t", *s.condition) +
             fmt::format("  if ({} == 0) break;\n", goes_on);
  }
  IndentedText body;
  body.add(0, 1, "", "");
  body.add(0, 0, "", inside + writeText(round, "int64_t", s.round));
  now_.call = fmt::format("{0}  for (int64_t {1} = 0, {1}_end = {2}; {1} < {1}_end; ++{1}) {{\n{3}",
                          text, round, rounds, body.text());
  now_.opens = 1;
}

void StepWriter::write(const Step& step, const WindowStep& s) {
  const std::string from = pointer(s.from, "unsigned char");
  const size_t number = newVariable();
  const std::string index = fmt::format("index_{}", loops_++);
  computes_numbers_ = true;
  now_.call =
      readText(index, "int64_t", s.index) +
      fmt::format(
          "  const int64_t at_{0} = wick_aot::position({1}, {2});\n"
          "  if (at_{0} < 0) {3}"
          "  [[maybe_unused]] auto* const v{0} = {4} + at_{0} * {5};\n",
          number, index, s.size, failure(step.name + ": index out of range"), from, s.bytes);
  variables_[s.window] = fmt::format("v{}", number);
}

void StepWriter::write(const Step&, const NumberStep& s) {
  computes_numbers_ = true;
  std::string text = "  {\n", arguments;
  for (size_t i = 0; i < s.from.size(); ++i) {
    const NumberStep::Operand& operand = s.from[i];
    const std::string name = fmt::format("x{}", i);
    text += readText(name, memoryType(operand.dtype), operand.place);
    arguments += operand.dtype == s.computed
                     ? name + ", "
                     : fmt::format("static_cast<{}>({}), ", memoryType(s.computed), name);
  }
  const std::string type = codegen::cppType(s.to.dtype);
  now_.call = text + fmt::format(
                         "  {} result{{}};\n"
                         "  if (const char* const error = wick_aot::{}({}result)) {{\n"
                         "    return wick_aot_fail(state, WICK_AOT_RAISED, error);\n  }}\n{}  }}\n",
                         type, s.function, arguments, writeText("result", type, s.to.place));
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
  now_.call = readText("decided", "int64_t", s.count) +
              fmt::format("  return {}state, inputs, outputs, sizes, decided);\n", partName(s.key));
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

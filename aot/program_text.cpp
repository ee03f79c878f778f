// The programs as text: kernels, tables, and for each a function that calls one step after the other. Of a family
// each form has such a function, and one more chooses the form.
#include "aot/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "aot/recording.h"
#include "aot/step_text.h"

namespace wick::aot {

namespace {

std::string identifier(std::string_view name) {
  std::string text;
  for (char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

// The text with another in place of the first `what`.
std::string replaced(std::string text, std::string_view what, std::string_view by) {
  const size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
  return text;
}

const char* typeOf(CutText::Kind kind) {
  switch (kind) {
    case CutText::Kind::Float:
      return "float";
    case CutText::Kind::Double:
      return "double";
    default:
      return "int64_t";
  }
}

std::string signatureOf(const std::string& name, bool sized) {
  return fmt::format(
      "int {}([[maybe_unused]] wick_aot_state* state,\n"
      "    [[maybe_unused]] const wick_aot_tensor* inputs,\n"
      "    [[maybe_unused]] wick_aot_tensor* outputs{})",
      name, sized ? ",\n    [[maybe_unused]] const int64_t* sizes" : "");
}

}  // namespace

class ProgramWriter::Impl {
 public:
  explicit Impl(StepWriter& steps) : steps_(steps) {}

  WrittenProgram add(const Program& program, const Plan& plan) {
    IndentedText calls;
    for (const StepText& text : steps_.write(program, plan, false).texts) {
      std::string call = text.call;
      if (!text.kernel.empty()) {
        call = replaced(call, kKernelName, kernel(text.kernel, text.step->name) + "(");
      }
      if (text.primitive) call = withPrimitive(call, text.description);
      calls.add(text.closes, text.opens, text.step ? comment(text.step->name) : "", call);
    }
    const size_t number = count_++;
    WrittenProgram written;
    written.inputs = program.inputs;
    written.outputs = program.outputs;
    written.input_sizes = fixedSizes(program.inputs);
    written.output_sizes = fixedSizes(program.outputs);
    written.memory_bytes = plan.memory_bytes;
    written.steps = program.steps.size();
    signatures_ +=
        slotsText(fmt::format("inputs_{}", number), program.inputs, written.input_sizes) +
        slotsText(fmt::format("outputs_{}", number), program.outputs, written.output_sizes);
    programs_ +=
        fmt::format("// What call {} computes.\n{} {{\n{}{}  return WICK_AOT_OK;\n}}\n\n", number,
                    signatureOf(fmt::format("run_{}", number), steps_.alwaysSized()),
                    steps_.names(), calls.text());
    return written;
  }

  WrittenProgram add(const Family& family, Weights& weights) {
    const Forms forms = formsOf(family, steps_, weights);
    const size_t number = count_++;
    WrittenProgram written;
    written.inputs = forms.inputs;
    written.outputs = forms.outputs;
    written.input_sizes = fixedSizes(forms.inputs);
    written.steps = forms.steps;
    std::vector<std::vector<std::string>> input_slots = written.input_sizes;
    for (size_t i = 0; i < forms.symbols.size(); ++i) {
      for (size_t d = 0; d < forms.symbols[i].size(); ++d) {
        const int symbol = forms.symbols[i][d];
        if (symbol < 0) continue;
        written.input_sizes[i][d] = forms.space.symbols()[static_cast<size_t>(symbol)].name;
        input_slots[i][d] = fmt::format("WICK_AOT_SYMBOL({})", symbol);
      }
    }
    const std::string shape = shapeText(forms, written);
    for (size_t p = forms.parts.size(); p-- > 0;) writePart(forms, p, number);
    written.memory_bytes = forms.memory_bytes;
    written.sized = !family.symbols.empty();
    std::vector<std::vector<std::string>> output_slots = written.output_sizes;
    for (std::vector<std::string>& sizes : output_slots) {
      for (std::string& size : sizes) {
        if (!isNumber(size)) size = "WICK_AOT_COMPUTED";
      }
    }
    signatures_ += slotsText(fmt::format("inputs_{}", number), forms.inputs, input_slots) +
                   slotsText(fmt::format("outputs_{}", number), forms.outputs, output_slots);
    if (written.sized) writeSymbols(forms, number, shape);
    if (tables_.entries() > kMostTableEntries) {
      throw NotAhead("sizes decide about more numbers of the program than tables can hold");
    }
    return written;
  }

  ProgramText finish() {
    ProgramText text;
    text.kernels = kernel_names_.size();
    text.primitives = static_cast<size_t>(num_primitives_);
    text.includes = steps_.includes(text.primitives);
    text.definitions = steps_.functions(text.primitives);
    text.definitions += kernels_ + steps_.tables() + tables_.text() + "\n" + signatures_;
    if (num_primitives_ > 0) {
      text.definitions +=
          fmt::format("const {} primitives[] = {{\n{}}};\n", steps_.primitiveType(), primitives_);
    }
    text.definitions += "\n" + programs_;
    return text;
  }

 private:
  static std::string comment(const std::string& name) {
    return name.empty() ? "" : fmt::format("  // {}\n", name);
  }

  // The name of the kernel with this text, whose name there is KERNEL.
  std::string kernel(const std::string& text, const std::string& step) {
    auto [known, added] = kernel_names_.try_emplace(text);
    if (added) {
      known->second = fmt::format("{}_{}", identifier(step), kernel_names_.size());
      kernels_ += replaced(text, kKernelName, known->second + "(") + "\n";
    }
    return known->second;
  }

  std::string withPrimitive(const std::string& call, const std::string& description) {
    primitives_ += description.empty() ? steps_.sizedPrimitive() : description;
    return replaced(call, kPrimitiveNumber, fmt::format("{}", num_primitives_++));
  }

  // The expressions of one function of a form. Equal columns share a variable.
  struct Variables {
    const Form& form;
    SizeExpressions& expressions;
    std::map<std::vector<std::string>, size_t> known{};
    std::vector<std::string> texts{};
    std::vector<CutText::Kind> kinds{};

    size_t numberOf(const Column& column) {
      std::vector<std::string> key;
      for (const CutText::Number& n : column.others) key.push_back(n.text);
      const auto [at, added] = known.try_emplace(std::move(key), texts.size());
      if (added) {
        texts.push_back(expressions.write(column, form.positions));
        kinds.push_back(column.kind);
      }
      return at->second;
    }
    std::string definitions() const {
      std::string text;
      for (size_t i = 0; i < texts.size(); ++i) {
        text += fmt::format("  const {} e{} = {};\n", typeOf(kinds[i]), i, texts[i]);
      }
      return text;
    }
  };

  static std::string sizesText(const SizeSpace& space) {
    std::string text;
    for (size_t s = 0; s < space.symbols().size(); ++s) {
      text += fmt::format("  [[maybe_unused]] const int64_t size_{} = sizes[{}];\n",
                          space.symbols()[s].name, s);
    }
    return text;
  }

  // Fills the numbers of a text in: those that vary by what `name` makes of the column.
  template <class Name>
  static std::string filled(const CutText& text, const Column* columns, Name name) {
    std::string result = text.pieces[0];
    for (size_t i = 0; i < text.numbers.size(); ++i) {
      result += columns[i].varies ? name(columns[i]) : columns[i].first.text;
      result += text.pieces[i + 1];
    }
    return result;
  }

  // "0", "0_at_2": what the names of a part's functions end with.
  static std::string partNumber(size_t number, size_t part) {
    return part == 0 ? fmt::format("{}", number) : fmt::format("{}_at_{}", number, part);
  }

  void writeForm(const Forms& forms, const Part& part, const std::string& name, size_t f,
                 size_t number) {
    const Form& form = part.forms[f];
    SizeExpressions expressions(part.space, tables_);
    Variables variables{form, expressions};
    IndentedText calls;
    const Column* columns = form.columns.data();
    for (const Form::Unit& unit : form.units) {
      std::string definition, parameters, arguments;
      std::map<size_t, std::string> names;
      definition = filled(unit.kernel, columns, [&](const Column& column) {
        const size_t variable = variables.numberOf(column);
        const auto [at, added] = names.try_emplace(variable, fmt::format("n{}", names.size()));
        if (added) {
          parameters += fmt::format("const {} {}, ", typeOf(column.kind), at->second);
          arguments += fmt::format("e{}, ", variable);
        }
        return at->second;
      });
      columns += unit.kernel.numbers.size();
      std::string call = filled(unit.call, columns, [&](const Column& column) {
        return fmt::format("e{}", variables.numberOf(column));
      });
      columns += unit.call.numbers.size();
      if (!definition.empty()) {
        definition =
            replaced(definition, kKernelName, fmt::format("{}{}", kKernelName, parameters));
        call = replaced(call, kKernelName,
                        fmt::format("{}({}", kernel(definition, unit.name), arguments));
      }
      if (unit.primitive) call = withPrimitive(call, "");
      for (size_t p = 1; p < forms.parts.size(); ++p) {
        call = replaced(call, partName(forms.parts[p].key),
                        fmt::format("run_{}(", partNumber(number, p)));
      }
      calls.add(unit.closes, unit.opens, comment(unit.name), call);
    }
    const std::string position = "[[maybe_unused]] const int64_t position";
    const std::string head = signatureOf(fmt::format("run_{}_{}", name, f), true);
    programs_ += fmt::format(
        "// What call {} computes{}{}.\n{},\n    {}) {{\n{}{}{}{}{}  return "
        "WICK_AOT_OK;\n}}\n\n",
        number, part.space.symbols().empty() ? "" : " when ", describe(part.space, form),
        head.substr(0, head.size() - 1), position, steps_.names(), sizesText(part.space),
        homesText(forms, part, form), variables.definitions(), calls.text());
  }

  // Where buffers lie: those of the form, and those that several parts use, of this one and of those in front of it.
  static std::string homesText(const Forms& forms, const Part& part, const Form& form) {
    std::string homes;
    const auto add = [&](std::string_view key, size_t buffer, int64_t offset) {
      homes += fmt::format("  [[maybe_unused]] constexpr int64_t {} = {};\n",
                           bufferName(knownSizes(key), buffer), offset);
    };
    for (const Part& other : forms.parts) {
      if (!part.key.starts_with(other.key)) continue;
      for (const auto& [buffer, offset] : other.kept) add(other.key, buffer, offset);
    }
    for (const Span& span : form.spans) add(part.key, span.buffer, span.offset);
    return homes;
  }

  // The statements that write sizes of results; and what the header tells of them.
  std::string shapeText(const Forms& forms, WrittenProgram& written) {
    SizeExpressions expressions(forms.space, tables_);
    Variables variables{forms.shape, expressions};
    const Column* columns = forms.shape.columns.data();
    const std::string shape = filled(
        forms.shape.units.back().call, columns,
        [&](const Column& column) { return fmt::format("e{}", variables.numberOf(column)); });
    for (const TensorSlot& out : forms.outputs) {
      std::vector<std::string>& of = written.output_sizes.emplace_back();
      if (out.most.empty()) continue;
      ++columns;  // the number of the output
      for (size_t d = 0; d < out.most.size(); ++d) {
        ++columns;  // the dimension
        const Column& column = *columns++;
        std::string text = column.first.text;
        if (column.varies) {
          text = variables.texts[variables.numberOf(column)];
          for (size_t at; (at = text.find("size_")) != std::string::npos;) text.erase(at, 5);
          if (text.find("position") != std::string::npos) text = "?";
        }
        of.push_back(std::move(text));
      }
    }
    return sizesText(forms.space) + variables.definitions() + shape;
  }
  static bool isNumber(const std::string& text) {
    return text.find_first_not_of("0123456789") == std::string::npos;
  }

  // "N=1", "N=2 … N=64"
  static std::string describe(const SizeSpace& space, const Form& form) {
    const std::string first = space.describe(form.positions.front());
    return form.positions.size() == 1
               ? first
               : fmt::format("sizes are one of {} from {} to {}", form.positions.size(), first,
                             space.describe(form.positions.back()));
  }

  static std::string positionText(const SizeSpace& space) {
    std::string position = "0";
    const std::vector<Symbol>& all = space.symbols();
    for (size_t s = 0; s < all.size(); ++s) {
      const std::string here = fmt::format("(sizes[{}] - {}) / {}", s, all[s].minimum, all[s].step);
      position = s == 0 ? here : fmt::format("({}) * {} + {}", position, all[s].count(), here);
    }
    return position;
  }

  // The functions of a part's forms, and the one that chooses among them.
  void writePart(const Forms& forms, size_t p, size_t number) {
    const Part& part = forms.parts[p];
    const std::string name = partNumber(number, p);
    std::string cases, list;
    for (size_t f = 0; f < part.forms.size(); ++f) {
      writeForm(forms, part, name, f, number);
      cases += fmt::format(
          "    case {1}:\n      return run_{0}_{1}(state, inputs, outputs, sizes, position);\n",
          name, f);
    }
    for (const size_t f : part.form_of) list += fmt::format("{}{}", list.empty() ? "" : ", ", f);
    const bool one = std::ranges::all_of(part.form_of, [](size_t f) { return f == 0; });
    const std::string form = one ? "0" : fmt::format("forms_{}[position]", name);
    if (!one) programs_ += fmt::format("const uint8_t forms_{}[] = {{{}}};\n", name, list);
    const size_t known = part.space.symbols().size();
    const bool given = known > 0 || steps_.alwaysSized();
    std::string head = signatureOf("run_" + name, given);
    std::string begin;
    if (p > 0) {
      // It is given the sizes that were known before.
      head = replaced(signatureOf("run_" + name, true), "const int64_t* sizes)",
                      "const int64_t* before,\n    const int64_t size)");
      begin = fmt::format(
          "  const int code = wick_aot_size(state, {}, {}, size);\n"
          "  if (code != WICK_AOT_OK) return code;\n  const int64_t sizes[] = {{",
          quoted(part.by), part.most);
      for (size_t s = 0; s + 1 < known; ++s) begin += fmt::format("before[{}], ", s);
      begin += "size};\n";
    } else if (!given) {
      begin = "  [[maybe_unused]] const int64_t* const sizes = nullptr;\n";
    }
    programs_ += fmt::format(
        "// {}\n{} {{\n{}  [[maybe_unused]] const int64_t position = {};\n"
        "  switch ({}) {{\n{}    default:\n"
        "      return wick_aot_fail(state, WICK_AOT_RAISED, \"the program raises for these "
        "sizes\");\n  }}\n}}\n\n",
        p == 0 ? fmt::format("Which of the forms of call {} computes for these sizes.", number)
               : fmt::format("The same behind the size of {}.", part.by),
        head, begin, positionText(part.space), form, cases);
  }

  // The names of sizes, and the sizes of results.
  void writeSymbols(const Forms& forms, size_t number, const std::string& shape) {
    std::string symbols, raised;
    for (const Symbol& s : forms.space.symbols()) {
      symbols += fmt::format("    {{\"{}\", {}, {}, {}}},\n", s.name, s.minimum, s.maximum, s.step);
    }
    signatures_ += fmt::format("const wick_aot_symbol symbols_{}[] = {{\n{}}};\n", number, symbols);
    const Part& first = forms.parts[0];
    for (size_t i = 0; i < forms.messages.size(); ++i) {
      const std::string message = quoted(forms.messages[i]);
      raised += first.form_of.size() == 1
                    ? fmt::format("  return {};\n", message)
                    : fmt::format("  if (forms_{}[position] == {}) return {};\n", number,
                                  first.forms.size() + i, message);
    }
    programs_ += fmt::format(
        "const char* shape_{}([[maybe_unused]] const int64_t* sizes,\n"
        "    [[maybe_unused]] int32_t output, [[maybe_unused]] int64_t* into) {{\n"
        "  [[maybe_unused]] const int64_t position = {};\n{}{}  return nullptr;\n}}\n\n",
        number, positionText(forms.space), raised, shape);
  }

  static std::vector<std::vector<std::string>> fixedSizes(const std::vector<TensorSlot>& slots) {
    std::vector<std::vector<std::string>> all;
    for (const TensorSlot& slot : slots) {
      std::vector<std::string>& sizes = all.emplace_back();
      for (const int64_t size : sizesOf(slot)) sizes.push_back(fmt::format("{}", size));
    }
    return all;
  }

  static std::string slotsText(const std::string& name, const std::vector<TensorSlot>& slots,
                               const std::vector<std::vector<std::string>>& sizes) {
    if (slots.empty()) return "";
    std::string text = fmt::format("const wick_aot_slot {}[] = {{\n", name);
    for (size_t i = 0; i < slots.size(); ++i) {
      std::string list;
      for (const std::string& size : sizes[i]) list += (list.empty() ? "" : ", ") + size;
      text += fmt::format("    {{\"{}\", {}, {}, {{{}}}, {}}},\n", slots[i].name,
                          static_cast<int>(slots[i].dtype), sizes[i].size(),
                          list.empty() ? "0" : list, slots[i].decided);
    }
    return text + "};\n";
  }

  static constexpr size_t kMostTableEntries = size_t{1} << 18;

  StepWriter& steps_;
  SizeTables tables_;
  size_t count_ = 0;
  std::map<std::string, std::string> kernel_names_;  // by text
  std::string kernels_, signatures_, primitives_, programs_;
  int64_t num_primitives_ = 0;
};

ProgramWriter::ProgramWriter(StepWriter& steps) : impl_(std::make_unique<Impl>(steps)) {}
ProgramWriter::~ProgramWriter() = default;
WrittenProgram ProgramWriter::add(const Program& program, const Plan& plan) {
  return impl_->add(program, plan);
}
WrittenProgram ProgramWriter::add(const Family& family, Weights& weights) {
  return impl_->add(family, weights);
}
ProgramText ProgramWriter::finish() {
  return impl_->finish();
}

}  // namespace wick::aot

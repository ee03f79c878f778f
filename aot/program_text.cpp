// The programs as text: kernels, tables, and for each a function that calls one step after the other. Of a family
// each form has such a function, and one more chooses the form.
#include "aot/program_text.h"

#include <fmt/format.h>

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
    std::vector<uint32_t> buffers;
    IndentedText calls;
    for (const StepText& text : steps_.write(program, plan, false, buffers)) {
      std::string call = text.call;
      if (!text.kernel.empty()) {
        call = replaced(call, kKernelName, kernel(text.kernel, text.step->name) + "(");
      }
      if (text.primitive) call = withPrimitive(call, text.description);
      calls.add(text.closes, text.opens,
                text.step ? comment(text.step->name, text.step->where) : "", call);
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
    std::string run_cases, shape_cases;
    for (size_t f = 0; f < forms.forms.size(); ++f) {
      writeForm(forms, f, number, written);
      run_cases += fmt::format(
          "    case {1}:\n      return run_{0}_{1}(state, inputs, outputs, sizes, position);\n",
          number, f);
      shape_cases += fmt::format(
          "    case {1}:\n      shape_{0}_{1}(sizes, position, output, into);\n      return "
          "nullptr;\n",
          number, f);
      written.memory_bytes = std::max(written.memory_bytes, forms.forms[f].memory_bytes);
    }
    for (size_t i = 0; i < forms.messages.size(); ++i) {
      shape_cases += fmt::format("    case {}:\n      return {};\n", forms.forms.size() + i,
                                 quoted(forms.messages[i]));
    }
    std::vector<std::vector<std::string>> output_slots = written.output_sizes;
    for (std::vector<std::string>& sizes : output_slots) {
      for (std::string& size : sizes) {
        const bool fixed = size.find_first_not_of("0123456789") == std::string::npos;
        if (!fixed) size = "WICK_AOT_COMPUTED";
      }
    }
    signatures_ += slotsText(fmt::format("inputs_{}", number), forms.inputs, input_slots) +
                   slotsText(fmt::format("outputs_{}", number), forms.outputs, output_slots);
    writeChoice(forms, number, run_cases, shape_cases);
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
  static std::string comment(const std::string& name, const std::string& where) {
    return name.empty() ? "" : fmt::format("  // {}{}{}\n", name, where.empty() ? "" : ", ", where);
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
    const Forms& forms;
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

  static std::string sizesText(const Forms& forms) {
    std::string text;
    for (size_t s = 0; s < forms.space.symbols().size(); ++s) {
      text += fmt::format("  [[maybe_unused]] const int64_t size_{} = sizes[{}];\n",
                          forms.space.symbols()[s].name, s);
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

  void writeForm(const Forms& forms, size_t f, size_t number, WrittenProgram& written) {
    const Form& form = forms.forms[f];
    SizeExpressions expressions(forms.space, tables_);
    Variables variables{forms, form, expressions};
    IndentedText calls;
    const Column* columns = form.columns.data();
    for (size_t u = 0; u + 1 < form.units.size(); ++u) {
      const Form::Unit& unit = form.units[u];
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
      calls.add(unit.closes, unit.opens, comment(unit.name, unit.where), call);
    }
    std::string homes;
    for (size_t b = 0; b < form.spans.size(); ++b) {
      homes += fmt::format("  constexpr int64_t b{} = {};\n", b, form.spans[b].offset);
    }
    const std::string position = "[[maybe_unused]] const int64_t position";
    const std::string head = signatureOf(fmt::format("run_{}_{}", number, f), true);
    std::string text = fmt::format(
        "// What call {} computes when {}.\n{},\n    {}) {{\n{}{}{}{}{}  return "
        "WICK_AOT_OK;\n}}\n\n",
        number, describe(forms, form), head.substr(0, head.size() - 1), position, steps_.names(),
        sizesText(forms), homes, variables.definitions(), calls.text());
    Variables of_shape{forms, form, expressions};
    const std::string shape = filled(form.units.back().call, columns, [&](const Column& column) {
      return fmt::format("e{}", of_shape.numberOf(column));
    });
    text += fmt::format(
        "void shape_{}_{}([[maybe_unused]] const int64_t* sizes, {},\n"
        "    [[maybe_unused]] int32_t output, [[maybe_unused]] int64_t* into) {{\n{}{}{}}}\n\n",
        number, f, position, sizesText(forms), of_shape.definitions(), shape);
    noteOutputs(forms, form, columns, of_shape, written);
    if (tables_.entries() > kMostTableEntries) {
      throw NotAhead("sizes decide about more numbers of the program than tables can hold");
    }
    programs_ += text;
  }

  // The sizes of results as the header tells them: of several forms only what is the same in all.
  static void noteOutputs(const Forms& forms, const Form& form, const Column* columns,
                          Variables& variables, WrittenProgram& written) {
    std::vector<std::vector<std::string>> sizes;
    for (const TensorSlot& out : forms.outputs) {
      std::vector<std::string>& of = sizes.emplace_back();
      if (out.layout.sizes.empty()) continue;
      ++columns;  // the number of the output
      for (size_t d = 0; d < out.layout.sizes.size(); ++d) {
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
    if (written.output_sizes.empty()) {
      written.output_sizes = std::move(sizes);
      return;
    }
    for (size_t o = 0; o < sizes.size(); ++o) {
      for (size_t d = 0; d < sizes[o].size(); ++d) {
        std::string& known = written.output_sizes[o][d];
        // A form for one size alone fits any expression that gives its number.
        if (known != sizes[o][d])
          known = form.positions.size() > 1 && isNumber(known) ? sizes[o][d] : known;
        if (known != sizes[o][d] && isNumber(known)) known = "?";
      }
    }
  }
  static bool isNumber(const std::string& text) {
    return text.find_first_not_of("0123456789") == std::string::npos;
  }

  // "N=1", "N=2 … N=64"
  static std::string describe(const Forms& forms, const Form& form) {
    const std::string first = forms.space.describe(form.positions.front());
    return form.positions.size() == 1
               ? first
               : fmt::format("sizes are one of {} from {} to {}", form.positions.size(), first,
                             forms.space.describe(form.positions.back()));
  }

  // The functions that choose the form.
  void writeChoice(const Forms& forms, size_t number, const std::string& run_cases,
                   const std::string& shape_cases) {
    std::string symbols, position, list;
    const std::vector<Symbol>& all = forms.space.symbols();
    for (size_t s = 0; s < all.size(); ++s) {
      symbols += fmt::format("    {{\"{}\", {}, {}, {}}},\n", all[s].name, all[s].minimum,
                             all[s].maximum, all[s].step);
      const std::string here = fmt::format("(sizes[{}] - {}) / {}", s, all[s].minimum, all[s].step);
      position = s == 0 ? here : fmt::format("({}) * {} + {}", position, all[s].count(), here);
    }
    for (const size_t f : forms.form_of) list += fmt::format("{}{}", list.empty() ? "" : ", ", f);
    signatures_ += fmt::format("const wick_aot_symbol symbols_{}[] = {{\n{}}};\n", number, symbols);
    const bool one = forms.forms.size() + forms.messages.size() == 1;
    const std::string form = one ? "0" : fmt::format("forms_{}[position]", number);
    if (!one) programs_ += fmt::format("const uint8_t forms_{}[] = {{{}}};\n", number, list);
    programs_ += fmt::format(
        "// Which of the forms of call {0} computes for these sizes.\n"
        "{1} {{\n  [[maybe_unused]] const int64_t position = {2};\n"
        "  switch ({3}) {{\n{4}    default:\n"
        "      return wick_aot_fail(state, WICK_AOT_RAISED, \"the program raises for these "
        "sizes\");\n  }}\n}}\n"
        "const char* shape_{0}(const int64_t* sizes, int32_t output, int64_t* into) {{\n"
        "  [[maybe_unused]] const int64_t position = {2};\n"
        "  switch ({3}) {{\n{5}    default:\n      return nullptr;\n  }}\n}}\n\n",
        number, signatureOf(fmt::format("run_{}", number), true), position, form, run_cases,
        shape_cases);
  }

  static std::vector<std::vector<std::string>> fixedSizes(const std::vector<TensorSlot>& slots) {
    std::vector<std::vector<std::string>> all;
    for (const TensorSlot& slot : slots) {
      std::vector<std::string>& sizes = all.emplace_back();
      for (const int64_t size : slot.layout.sizes) sizes.push_back(fmt::format("{}", size));
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
      text +=
          fmt::format("    {{\"{}\", {}, {}, {{{}}}}},\n", slots[i].name,
                      static_cast<int>(slots[i].dtype), sizes[i].size(), list.empty() ? "0" : list);
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

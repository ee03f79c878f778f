#include "aot/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "aot/recording.h"
#include "codegen/cpp/kernel_text.h"

namespace wick::aot {

namespace {

constexpr size_t kMostForms = 24, kMostMessages = 16;
// Constants that differ from size to size, as masks.
constexpr int64_t kMostSizedWeights = int64_t{64} << 20;

class TooManyForms : public NotAhead {
 public:
  using NotAhead::NotAhead;
};

// Statements that write the sizes of results.
std::string shapesText(const std::vector<TensorSlot>& outputs) {
  std::string text;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const DimVector& sizes = outputs[o].layout.sizes;
    if (sizes.empty()) continue;
    text += fmt::format("  if (output == {}) {{\n", o);
    for (size_t d = 0; d < sizes.size(); ++d) {
      text += fmt::format("    into[{}] = {};\n", d, sizes[d]);
    }
    text += "  }\n";
  }
  return text;
}

class Collector {
 public:
  Collector(const Family& family, StepWriter& writer, Weights& weights, bool keep_loops)
      : family_(family),
        writer_(writer),
        weights_(weights),
        keep_loops_(keep_loops),
        all_(family.symbols) {}

  Forms run() {
    const size_t count = all_.space.count();
    for (size_t p = 0; p < count; ++p) collect(p);
    if (all_.forms.empty()) throw RuntimeError(all_.messages.at(0));
    for (size_t& form : all_.form_of) {
      // Messages stand behind all forms.
      form = form >= kMostForms ? form - kMostForms + all_.forms.size() : form;
    }
    for (size_t s = 0; s < family_.symbols.size(); ++s) {
      const bool bound = std::ranges::any_of(all_.symbols, [&](const std::vector<int>& input) {
        return std::ranges::find(input, static_cast<int>(s)) != input.end();
      });
      if (!bound && family_.symbols[s].count() > 1) {
        throw NotAhead(fmt::format("{} is not the size of an argument", family_.symbols[s].name));
      }
    }
    for (Form& form : all_.forms) {
      form.memory_bytes = placeInMemory(form.spans);
      all_.steps += form.units.size() - 1;
    }
    return std::move(all_);
  }

 private:
  void collect(size_t position) {
    const std::vector<int64_t> sizes = all_.space.at(position);
    Program program;
    try {
      program = family_.record(sizes, keep_loops_);
      const int64_t weights_before = weights_.bytes();
      const Plan plan = makePlan(program, weights_);
      if (!all_.forms.empty()) sized_weights_ += weights_.bytes() - weights_before;
      if (sized_weights_ > kMostSizedWeights) {
        throw NotAhead(fmt::format("constants differ from size to size, and take more than {} MB",
                                   kMostSizedWeights >> 20));
      }
      add(position, program, plan);
    } catch (const TooManyForms& e) {
      throw TooManyForms(fmt::format("{}\n(for {})", e.what(), all_.space.describe(position)));
    } catch (const NotAhead& e) {
      throw NotAhead(fmt::format("{}\n(for {})", e.what(), all_.space.describe(position)));
    } catch (const codegen::NoCppText& e) {
      throw NotAhead(e.what());
    } catch (const RuntimeError& e) {
      raise(e.brief());
    }
  }

  void raise(const std::string& message) {
    auto known = std::ranges::find(all_.messages, message);
    if (known == all_.messages.end() && all_.messages.size() == kMostMessages) {
      known = all_.messages.end() - 1;
      *known = "the program raises for these sizes";
    } else if (known == all_.messages.end()) {
      all_.messages.push_back(message);
      known = all_.messages.end() - 1;
    }
    all_.form_of.push_back(kMostForms + static_cast<size_t>(known - all_.messages.begin()));
  }

  void compareInputs(size_t position, const std::vector<TensorSlot>& inputs) {
    const std::vector<int64_t> sizes = all_.space.at(position);
    for (size_t i = 0; i < inputs.size(); ++i) {
      for (size_t d = 0; d < inputs[i].layout.sizes.size(); ++d) {
        const int64_t size = inputs[i].layout.sizes[d];
        std::vector<bool>& fits = fits_[i][d];
        for (size_t s = 0; s < sizes.size(); ++s) {
          fits[s] = fits[s] && size == sizes[s];
        }
        fixed_[i][d] = fixed_[i][d] && size == all_.inputs[i].layout.sizes[d];
        const auto symbol = std::ranges::find(fits, true);
        if (!fixed_[i][d] && symbol == fits.end()) {
          throw NotAhead(
              fmt::format("size {} of argument '{}' is neither fixed nor one that has a name", d,
                          inputs[i].name));
        }
        all_.symbols[i][d] = fixed_[i][d] ? -1 : static_cast<int>(symbol - fits.begin());
      }
    }
  }

  void begin(const Program& program) {
    all_.inputs = program.inputs;
    all_.outputs = program.outputs;
    for (const TensorSlot& input : program.inputs) {
      const size_t rank = input.layout.sizes.size();
      fits_.emplace_back(rank, std::vector<bool>(family_.symbols.size(), true));
      fixed_.emplace_back(rank, true);
      all_.symbols.emplace_back(rank, -1);
    }
  }

  void compareOutputs(const std::vector<TensorSlot>& outputs) const {
    bool same = outputs.size() == all_.outputs.size();
    for (size_t i = 0; same && i < outputs.size(); ++i) {
      same = outputs[i].dtype == all_.outputs[i].dtype &&
             outputs[i].layout.sizes.size() == all_.outputs[i].layout.sizes.size();
    }
    if (!same) {
      throw NotAhead("sizes of arguments decide about the number, dtypes or ranks of the results");
    }
  }

  void add(size_t position, const Program& program, const Plan& plan) {
    std::vector<uint32_t> buffers;
    const std::vector<StepText> texts = writer_.write(program, plan, true, buffers);
    if (all_.forms.empty()) begin(program);
    compareInputs(position, program.inputs);
    compareOutputs(program.outputs);
    std::vector<Form::Unit> units;
    std::string form;
    for (const StepText& text : texts) {
      Form::Unit& unit = units.emplace_back();
      if (text.step) unit.name = text.step->name, unit.where = text.step->where;
      unit.kernel = cutAtNumbers(text.kernel);
      unit.call = cutAtNumbers(text.call);
      unit.primitive = text.primitive;
      unit.closes = text.closes;
      unit.opens = text.opens;
    }
    units.emplace_back().call = cutAtNumbers(shapesText(program.outputs));
    for (const Form::Unit& unit : units) {
      unit.kernel.appendForm(form);
      unit.call.appendForm(form);
    }
    const auto [known, added] = numbers_.try_emplace(std::move(form), all_.forms.size());
    if (added && all_.forms.size() == kMostForms) {
      throw TooManyForms(fmt::format(
          "the program has more than {} forms over these sizes{}; smaller ranges or larger steps "
          "have fewer",
          kMostForms, difference(all_.forms.back().units, units)));
    }
    if (added) all_.forms.emplace_back();
    Form& to = all_.forms[known->second];
    size_t column = 0;
    for (const Form::Unit& unit : units) {
      for (const CutText* text : {&unit.kernel, &unit.call}) {
        for (const CutText::Number& number : text->numbers) {
          if (added) to.columns.emplace_back();
          to.columns[column++].add(number, to.positions.size());
        }
      }
    }
    if (added) to.units = std::move(units);
    to.positions.push_back(position);
    all_.form_of.push_back(known->second);
    addSpans(to, plan, buffers);
  }

  static void addSpans(Form& form, const Plan& plan, const std::vector<uint32_t>& buffers) {
    std::unordered_map<uint32_t, const Span*> by_buffer;
    for (const Span& span : plan.spans) by_buffer.emplace(span.buffer, &span);
    for (size_t b = 0; b < buffers.size(); ++b) {
      const Span& span = *by_buffer.at(buffers[b]);
      if (b == form.spans.size()) {
        form.spans.push_back(span);
        form.spans.back().buffer = static_cast<uint32_t>(b);
        continue;
      }
      Span& all = form.spans[b];
      all.first = std::min(all.first, span.first);
      all.last = std::max(all.last, span.last);
      all.bytes = std::max(all.bytes, span.bytes);
    }
  }

  // Of two forms: the first step in which they differ.
  static std::string difference(const std::vector<Form::Unit>& a,
                                const std::vector<Form::Unit>& b) {
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      std::string x, y;
      a[i].kernel.appendForm(x);
      a[i].call.appendForm(x);
      b[i].kernel.appendForm(y);
      b[i].call.appendForm(y);
      if (x == y) continue;
      return fmt::format(", which differ from {} on{}{}",
                         b[i].name.empty() ? "the sizes of results" : b[i].name,
                         b[i].where.empty() ? "" : ", ", b[i].where);
    }
    return "";
  }

  const Family& family_;
  StepWriter& writer_;
  Weights& weights_;
  const bool keep_loops_;
  Forms all_;
  std::unordered_map<std::string, size_t> numbers_;  // of forms, by what their texts have in common
  // By input and dimension: the symbols that it may be, and whether it is one size so far.
  std::vector<std::vector<std::vector<bool>>> fits_;
  std::vector<std::vector<bool>> fixed_;
  int64_t sized_weights_ = 0;
};

}  // namespace

Forms formsOf(const Family& family, StepWriter& writer, Weights& weights) {
  // What another way is to leave no trace of.
  const std::unique_ptr<StepWriter> writer_before = writer.copy();
  const Weights weights_before = weights;
  try {
    return Collector(family, writer, weights, false).run();
  } catch (const TooManyForms& e) {
    // Loops over sizes, perhaps.
    writer.restore(*writer_before);
    weights = weights_before;
    try {
      return Collector(family, writer, weights, true).run();
    } catch (const TooManyForms&) {
      throw NotAhead(e.what());
    }
  }
}

}  // namespace wick::aot

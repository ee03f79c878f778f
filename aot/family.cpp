#include "aot/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "aot/recording.h"
#include "aot/refusal.h"

namespace wick::aot {

namespace {

constexpr size_t kMostForms = 24, kMostMessages = 16;
// Constants that differ from size to size, as masks.
constexpr int64_t kMostSizedWeights = int64_t{64} << 20;

class TooManyForms : public NotAhead {
 public:
  using NotAhead::NotAhead;
};

// Positions of sizes that elements decide: of few combinations, whose bounds may depend on each other.
constexpr size_t kMostPositions = size_t{1} << 17;

// Statements that write the sizes of results.
std::string shapesText(const std::vector<TensorSlot>& outputs) {
  std::string text;
  for (size_t o = 0; o < outputs.size(); ++o) {
    const DimVector& sizes = sizesOf(outputs[o]);
    if (sizes.empty()) continue;
    text += fmt::format("  if (output == {}) {{\n", o);
    for (size_t d = 0; d < sizes.size(); ++d) {
      text += fmt::format("    into[{}] = {};\n", d, sizes[d]);
    }
    text += "  }\n";
  }
  return text;
}

void addNumbers(Form& form, bool first, size_t& column, const CutText& text, size_t index) {
  for (const CutText::Number& number : text.numbers) {
    if (first) form.columns.emplace_back();
    form.columns[column++].add(number, index);
  }
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
    for (size_t p = 0; p < all_.space.count(); ++p) collect(p);
    if (parts_.empty()) throw RuntimeError(all_.messages.at(0));
    for (size_t s = 0; s < family_.symbols.size(); ++s) {
      const bool bound = std::ranges::any_of(all_.symbols, [&](const std::vector<int>& input) {
        return std::ranges::find(input, static_cast<int>(s)) != input.end();
      });
      if (!bound && family_.symbols[s].count() > 1) {
        throw NotAhead(fmt::format("{} is not the size of an argument", family_.symbols[s].name));
      }
    }
    for (auto& [key, known] : parts_) all_.parts.push_back(std::move(known.part));
    for (Part& part : all_.parts) placePositions(part);
    finishShape();
    placeMemory();
    return std::move(all_);
  }

 private:
  // A part while it is collected.
  struct Known {
    Part part;
    std::unordered_map<std::string, size_t> forms{};  // by what their texts have in common
    std::map<std::vector<int64_t>, size_t> texts{};   // by sizes: the text's hash
  };

  // Records the program for named sizes, and for all sizes that elements may decide then.
  void collect(size_t position) {
    const std::vector<int64_t> sizes = all_.space.at(position);
    DecidedSizes decided;
    try {
      if (!probed_) probe(sizes);
      for (;;) {
        std::vector<SizeAsk> asks = record(position, sizes, decided);
        decided.values.resize(asks.size(), 0);
        while (!decided.values.empty() && decided.values.back() == asks.back().most) {
          decided.values.pop_back();
          asks.pop_back();
        }
        if (decided.values.empty()) break;
        ++decided.values.back();
        if (++recorded_ > kMostSizes) {
          // Where the program asks for it the error has a line.
          decided.refused = decided.values.size() - 1;
        }
      }
    } catch (const TooManyForms& e) {
      throw TooManyForms(e.brief() + describe(position, decided));
    } catch (const codegen::NoCppText& e) {
      throw NotAhead(e.what());
    } catch (const RuntimeError& e) {
      if (isNotAhead(e)) throw refusalOf(e, describe(position, decided));
      if (!decided.values.empty()) throw;
      raise(position, e.brief());
    }
  }
  // Looks at the largest sizes that elements may decide: whether there are by far too many combinations, before all of
  // them are recorded.
  void probe(const std::vector<int64_t>& sizes) {
    constexpr size_t kFarTooMany = 8 * kMostSizes;
    probed_ = true;
    DecidedSizes largest;
    size_t combinations = all_.space.count();
    for (;;) {
      const Program program = family_.record(sizes, keep_loops_, largest);
      const size_t known = largest.values.size();
      if (program.asks.size() <= known) return;
      largest.values.push_back(program.asks[known].most);
      combinations *= static_cast<size_t>(program.asks[known].most) + 1;
      if (combinations > kFarTooMany) {
        // Where the program asks for it the error has a line.
        largest.refused = known;
        family_.record(sizes, keep_loops_, largest);
        return;
      }
    }
  }

  std::string describe(size_t position, const DecidedSizes& decided) const {
    std::string text = all_.space.describe(position);
    if (!decided.values.empty() && !decided.refused) {
      text += fmt::format("{}sizes that elements decide: {}", text.empty() ? "" : "; ",
                          fmt::join(decided.values, ", "));
    }
    return text.empty() ? "" : fmt::format("\n(for {})", text);
  }

  std::vector<SizeAsk> record(size_t position, const std::vector<int64_t>& sizes,
                              const DecidedSizes& decided) {
    Program program = family_.record(sizes, keep_loops_, decided);
    if (decided.refused) {
      throw NotAhead(
          fmt::format("elements of tensors decide sizes of more than {} combinations", kMostSizes));
    }
    const int64_t weights_before = weights_.bytes();
    const Plan plan = makePlan(program, weights_);
    if (!parts_.empty()) sized_weights_ += weights_.bytes() - weights_before;
    if (sized_weights_ > kMostSizedWeights) {
      throw NotAhead(fmt::format("constants differ from size to size, and take more than {} MB",
                                 kMostSizedWeights >> 20));
    }
    add(position, sizes, decided.values, program, plan);
    return program.asks;
  }

  void raise(size_t position, const std::string& message) {
    auto known = std::ranges::find(all_.messages, message);
    if (known == all_.messages.end() && all_.messages.size() == kMostMessages) {
      known = all_.messages.end() - 1;
      *known = "the program raises for these sizes";
    } else if (known == all_.messages.end()) {
      all_.messages.push_back(message);
      known = all_.messages.end() - 1;
    }
    raised_.emplace_back(position, static_cast<size_t>(known - all_.messages.begin()));
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
    begun_ = true;
    all_.inputs = program.inputs;
    for (const TensorSlot& input : program.inputs) {
      const size_t rank = input.layout.sizes.size();
      fits_.emplace_back(rank, std::vector<bool>(family_.symbols.size(), true));
      fixed_.emplace_back(rank, true);
      all_.symbols.emplace_back(rank, -1);
    }
  }

  // Of named sizes the results are compared, and the largest sizes of all that elements decide noted.
  void addOutputs(size_t position, const Program& program) {
    std::vector<TensorSlot> outputs = program.outputs;
    // Where it raises it has none.
    if (outputs.empty() && !program.asks.empty()) return;
    for (TensorSlot& out : outputs) out.most = sizesOf(out);
    if (shapes_.empty()) all_.outputs = outputs;
    bool same = outputs.size() == all_.outputs.size();
    for (size_t i = 0; same && i < outputs.size(); ++i) {
      same = outputs[i].dtype == all_.outputs[i].dtype &&
             outputs[i].most.size() == all_.outputs[i].most.size();
    }
    if (!same) {
      throw NotAhead(
          shapes_.contains(position)
              ? "elements of tensors decide about the number, dtypes or ranks of the results"
              : "sizes of arguments decide about the number, dtypes or ranks of the results");
    }
    const auto [known, added] = shapes_.try_emplace(position, outputs);
    for (size_t i = 0; i < outputs.size(); ++i) {
      TensorSlot& all = known->second[i];
      uint32_t decided = outputs[i].decided;
      for (size_t d = 0; d < all.most.size(); ++d) {
        if (outputs[i].most[d] != all.most[d]) decided |= uint32_t{1} << d;
        all.most[d] = std::max(all.most[d], outputs[i].most[d]);
      }
      all_.outputs[i].decided |= decided;
    }
  }

  void finishShape() {
    if (shapes_.empty()) {
      throw NotAhead("the program raises whatever the elements of its arguments are");
    }
    all_.shape.units.emplace_back();
    for (const auto& [position, outputs] : shapes_) {
      const CutText text = cutAtNumbers(shapesText(outputs));
      const size_t index = all_.shape.positions.size();
      size_t column = 0;
      if (index == 0) {
        all_.shape.units.back().call = text;
        for (size_t i = 0; i < outputs.size(); ++i) all_.outputs[i].most = outputs[i].most;
      }
      addNumbers(all_.shape, index == 0, column, text, index);
      all_.shape.positions.push_back(position);
    }
  }

  void add(size_t position, const std::vector<int64_t>& sizes, std::vector<int64_t> decided,
           const Program& program, const Plan& plan) {
    const ProgramSteps steps = writer_.write(program, plan, true);
    if (!begun_) begin(program);
    compareInputs(position, program.inputs);
    addOutputs(position, program);
    decided.resize(program.asks.size(), 0);
    std::vector<std::vector<Form::Unit>> units(steps.keys.size());
    // Of each step of the program: how many of its part are in front of it.
    std::vector<size_t> numbers;
    for (const StepText& text : steps.texts) {
      numbers.push_back(units[text.part].size());
      Form::Unit& unit = units[text.part].emplace_back();
      if (text.step) unit.name = text.step->name;
      unit.kernel = cutAtNumbers(text.kernel);
      unit.call = cutAtNumbers(text.call);
      unit.primitive = text.primitive;
      unit.closes = text.closes;
      unit.opens = text.opens;
    }
    std::vector<Form*> forms;
    std::vector<Known*> parts;
    for (size_t p = 0; p < units.size(); ++p) {
      Known& known = partOf(steps.keys[p], program);
      std::vector<int64_t> here = sizes;
      for (size_t i = 0; i < knownSizes(known.part.key); ++i) here.push_back(decided.at(i));
      parts.push_back(&known);
      forms.push_back(addPart(known, here, std::move(units[p])));
    }
    addSpans(forms, parts, plan, program, steps, numbers);
  }

  Known& partOf(const std::string& key, const Program& program) {
    Known& known = parts_[key];
    known.part.key = key;
    for (const Step& step : program.steps) {
      const auto* size = std::get_if<SizeStep>(&step.what);
      if (!size || size->key != key) continue;
      known.part.by = size->by;
      known.part.most = std::max(known.part.most, size->most);
    }
    return known;
  }

  // The form that the text has.
  Form* addPart(Known& known, const std::vector<int64_t>& sizes, std::vector<Form::Unit> units) {
    std::string form, numbers;
    for (const Form::Unit& unit : units) {
      for (const CutText* text : {&unit.kernel, &unit.call}) {
        text->appendForm(form);
        for (const CutText::Number& n : text->numbers) numbers += n.text + ",";
      }
    }
    const size_t hash = std::hash<std::string>()(form + numbers);
    const auto text = known.texts.find(sizes);
    std::vector<Form>& forms = known.part.forms;
    const auto [at, added] = known.forms.try_emplace(std::move(form), forms.size());
    if (text != known.texts.end()) {
      if (text->second == hash) return &forms[at->second];
      throw NotAhead(fmt::format(
          "a size that elements decide has consequences in front of where it is known{}",
          added ? difference(forms.back().units, units) : ""));
    }
    known.texts.emplace(sizes, hash);
    if (added && forms.size() == kMostForms) {
      throw TooManyForms(fmt::format(
          "the program has more than {} forms over these sizes{}; smaller ranges or larger steps "
          "have fewer",
          kMostForms, difference(forms.back().units, units)));
    }
    if (added) forms.emplace_back();
    Form& to = forms[at->second];
    size_t column = 0;
    for (const Form::Unit& unit : units) {
      for (const CutText* cut : {&unit.kernel, &unit.call}) {
        addNumbers(to, added, column, *cut, to.sizes.size());
      }
    }
    if (added) to.units = std::move(units);
    to.sizes.push_back(sizes);
    return &to;
  }

  void addSpans(const std::vector<Form*>& forms, const std::vector<Known*>& parts, const Plan& plan,
                const Program& program, const ProgramSteps& steps,
                const std::vector<size_t>& numbers) {
    const size_t count = program.steps.size();
    const auto partAt = [&](size_t step) {
      return steps.texts[std::min(step, steps.texts.size() - 1)].part;
    };
    std::unordered_map<uint32_t, const Span*> by_buffer;
    for (const Span& span : plan.spans) by_buffer.emplace(span.buffer, &span);
    // Buffers that more than one part uses.
    std::unordered_map<uint32_t, size_t> users;
    std::unordered_set<uint32_t> shared;
    const auto uses = usesWithWholes(program);
    for (size_t s = 0; parts.size() > 1 && s < count; ++s) {
      for (const Use& use : uses[s]) {
        if (users.try_emplace(use.buffer, partAt(s)).first->second != partAt(s)) {
          shared.insert(use.buffer);
        }
      }
    }
    for (const ProgramSteps::Named& named : steps.buffers) {
      const Span& span = *by_buffer.at(named.buffer);
      Form& form = *forms[named.part];
      if (form.spans.size() <= named.index) {
        form.spans.resize(named.index + 1, Span{0, SIZE_MAX, 0, 0});
        for (size_t b = 0; b < form.spans.size(); ++b) {
          form.spans[b].buffer = static_cast<uint32_t>(b);
        }
      }
      if (shared.contains(named.buffer)) {
        int64_t& bytes = parts[named.part]->part.kept[named.index];
        bytes = std::max(bytes, span.bytes);
        continue;
      }
      Span& all = form.spans[named.index];
      const size_t end = forms[named.part]->units.size();
      all.first = std::min(all.first, numbers[std::min(span.first, numbers.size() - 1)]);
      all.last = std::max(all.last, span.last < count ? numbers[span.last] : end);
      all.bytes = std::max(all.bytes, span.bytes);
    }
  }

  void placePositions(Part& part) const {
    std::vector<Symbol> symbols = family_.symbols;
    for (size_t i = 0; i < knownSizes(part.key); ++i) {
      int64_t most = 0;  // of the part that begins with it
      for (const auto& [key, known] : parts_) {
        if (knownSizes(key) == i + 1) most = std::max(most, known.part.most);
      }
      symbols.push_back({fmt::format("n{}", i), 0, most, 1});
    }
    part.space = SizeSpace(std::move(symbols), kMostPositions);
    part.form_of.assign(part.space.count(), Part::kNoForm);
    for (size_t f = 0; f < part.forms.size(); ++f) {
      for (const std::vector<int64_t>& sizes : part.forms[f].sizes) {
        part.forms[f].positions.push_back(part.space.positionOf(sizes));
        part.form_of[part.forms[f].positions.back()] = f;
      }
    }
    if (!part.key.empty()) return;
    // Messages stand behind all forms.
    for (const auto& [position, message] : raised_) {
      part.form_of[position] = part.forms.size() + message;
    }
  }

  // What several parts use lies in front of all else.
  void placeMemory() {
    int64_t kept = 0;
    for (Part& part : all_.parts) {
      for (auto& [number, bytes] : part.kept) {
        const int64_t offset = kept;
        kept += bytes;
        bytes = offset;
      }
    }
    for (Part& part : all_.parts) {
      for (Form& form : part.forms) {
        std::vector<Span> own;
        for (const Span& span : form.spans) {
          if (!part.kept.contains(span.buffer)) own.push_back(span);
        }
        form.memory_bytes = kept + placeInMemory(own);
        form.spans = std::move(own);
        for (Span& span : form.spans) span.offset += kept;
        all_.memory_bytes = std::max(all_.memory_bytes, form.memory_bytes);
        all_.steps += form.units.size();
      }
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
      return fmt::format(", which differ from {} on",
                         b[i].name.empty() ? "the sizes of results" : b[i].name);
    }
    return "";
  }

  const Family& family_;
  StepWriter& writer_;
  Weights& weights_;
  const bool keep_loops_;
  Forms all_;
  std::map<std::string, Known> parts_;                // by key: each behind the one in front of it
  std::vector<std::pair<size_t, size_t>> raised_;     // positions and messages
  std::map<size_t, std::vector<TensorSlot>> shapes_;  // of results by named sizes
  size_t recorded_ = 0;
  bool begun_ = false, probed_ = false;
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

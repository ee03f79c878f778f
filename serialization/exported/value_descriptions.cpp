// Descriptions of tensors and numbers: dtypes, and sizes as expressions of those that a program leaves open.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "serialization/exported/program_writer.h"

namespace wick::exported {

void ProgramWriter::SizeSource::add(const Term& term) {
  if (term.sizes) {
    near.push_back(*term.sizes);
    strides.push_back(term.strides);
  }
  if (term.number) near.push_back({*term.number});
  if (!term.isContainer()) return;
  for (const Term& part : *term.parts) add(part);
}

void ProgramWriter::failAtSize(const Value* at, const char* what) const {
  const Node* node = at ? at->node() : source_.paramNode();
  fail(node,
       fmt::format("a {} of the result of {} is no simple expression of the sizes that change",
                   what, node->kind().qualString()));
}

// The term of a value that was written or that needs no writing.
std::optional<ProgramWriter::Term> ProgramWriter::knownTerm(const Value* value) {
  const auto found = terms_.find(value);
  if (found != terms_.end()) return found->second;
  const Symbol kind = value->node()->kind();
  const bool is_made_here = kind == prim::Constant || kind == prim::ListConstruct;
  const IValue* constant = fixed(value);
  if (!is_made_here && !constant) return std::nullopt;
  return termOf(value);
}

KnownArgument ProgramWriter::knownArgument(const Value* value) {
  KnownArgument out;
  out.constant = fixed(value);
  const std::optional<Term> term = knownTerm(value);
  if (!term) return out;
  out.sizes = term->sizes;
  out.number = term->number;
  if (!term->isContainer()) return out;
  out.numbers.emplace();
  out.tensors.emplace();
  for (const Term& part : *term->parts) {
    if (out.numbers && part.number) {
      out.numbers->push_back(*part.number);
    } else {
      out.numbers.reset();
    }
    if (out.tensors && part.sizes) {
      out.tensors->push_back(*part.sizes);
    } else {
      out.tensors.reset();
    }
  }
  return out;
}

std::vector<KnownArgument> ProgramWriter::knownArguments(const Node& node) {
  std::vector<KnownArgument> out;
  for (const Value* input : node.inputs()) out.push_back(knownArgument(input));
  return out;
}

ProgramWriter::SizeSource ProgramWriter::sourceOf(const Node& node) {
  SizeSource out;
  out.by_rule = sizesByRule(node, knownArguments(node), fit_.arithmetic());
  for (const Value* input : node.inputs()) {
    if (const std::optional<Term> term = knownTerm(input)) out.add(*term);
  }
  return out;
}

OrderedJson ProgramWriter::sizeJson(const SizeExpression& size, int64_t example) const {
  if (size.kind == SizeExpression::Kind::Number) return tagged("as_int", size.number);
  OrderedJson expression;
  expression["expr_str"] = size.notation();
  expression["hint"] = tagged("as_int", example);
  return tagged("as_expr", std::move(expression));
}

// Strides are the product of the sizes within, as those of most tensors, or have to do with those of tensors nearby.
SizeExpression ProgramWriter::strideOf(const TensorsInRuns& in_runs, size_t dim, const Value* at,
                                       const SizeSource& from, const Term& term) {
  const RecordedTensor& first = *in_runs[0];
  SizeExpression within = SizeArithmetic::number(1);
  for (size_t d = 0; d < first.sizes.size(); ++d) {
    const bool is_within = first.strides[d] < first.strides[dim] ||
                           (first.strides[d] == first.strides[dim] && d > dim);
    if (is_within) within = fit_.arithmetic().product(within, (*term.sizes)[d]);
  }
  std::vector<int64_t> values;
  for (const auto& tensor : in_runs) values.push_back(tensor->strides[dim]);
  if (fit_.gives(within, values)) return within;
  std::vector<SizeVector> near = from.strides;
  near.push_back(*term.sizes);
  near.insert(near.end(), from.near.begin(), from.near.end());
  const std::optional<SizeExpression> stride = fit_.expressionOf(values, near);
  if (!stride) failAtSize(at, "stride");
  return *stride;
}

OrderedJson ProgramWriter::describeTensor(const TensorsInRuns& in_runs, const Value* at,
                                          const SizeSource& from, Term& term) {
  const RecordedTensor& first = *in_runs[0];
  if (!first.is_strided) {
    throwRuntimeError("export: tensors that are not dense have no form in exported programs");
  }
  OrderedJson out;
  out["dtype"] = schemaDType(first.dtype);
  OrderedJson sizes = OrderedJson::array();
  OrderedJson strides = OrderedJson::array();
  term.sizes.emplace();
  for (size_t d = 0; d < first.sizes.size(); ++d) {
    std::vector<int64_t> values;
    for (const auto& tensor : in_runs) {
      if (tensor->sizes.size() != first.sizes.size())
        fail(at->node(), "the number of dimensions depends on sizes");
      values.push_back(tensor->sizes[d]);
    }
    const bool is_ruled = from.by_rule && from.by_rule->size() == first.sizes.size() &&
                          fit_.gives((*from.by_rule)[d], values);
    const std::optional<SizeExpression> size =
        is_ruled ? (*from.by_rule)[d] : fit_.expressionOf(values, from.near);
    if (!size) failAtSize(at, "size");
    sizes.push_back(sizeJson(*size, values[0]));
    term.sizes->push_back(*size);
  }
  for (size_t d = 0; d < first.sizes.size(); ++d) {
    term.strides.push_back(strideOf(in_runs, d, at, from, term));
    strides.push_back(sizeJson(term.strides.back(), first.strides[d]));
  }
  out["sizes"] = std::move(sizes);
  out["requires_grad"] = first.requires_grad;
  out["device"] = deviceJson(first.device);
  out["strides"] = std::move(strides);
  out["storage_offset"] = tagged("as_int", 0);
  out["layout"] = 7;
  return out;
}

ProgramWriter::Term ProgramWriter::defineTensor(const Value* value, const std::string& name,
                                                const SizeSource& from) {
  TensorsInRuns in_runs;
  for (const RecordedRun& run : runs_) {
    const RecordedValue* found = run.find(value);
    if (!found || !found->isTensor()) fail(value->node(), "a result is no tensor in an example");
    in_runs.push_back(found->tensor);
  }
  Term term;
  parts_->tensors[name] = describeTensor(in_runs, value, from, term);
  term.operand = tensorOperand(name);
  return term;
}

ProgramWriter::Term ProgramWriter::defineNumber(const Value* value, const std::string& name,
                                                const std::optional<SizeExpression>& exact) {
  const IValue& first = runs_[0].find(value)->plain;
  Term term;
  OrderedJson expression;
  if (first.isInt()) {
    std::vector<int64_t> in_runs;
    for (const RecordedRun& run : runs_) in_runs.push_back(run.find(value)->plain.toInt());
    if (exact && fit_.gives(*exact, in_runs)) {
      term.number = *exact;
    } else if (followsFromSizes(value)) {
      term.number = fit_.expressionOf(in_runs);
    }
    // A number that is the same in the examples may be another one elsewhere.
    const bool is_open = term.number && term.number->kind != SizeExpression::Kind::Number;
    if (!is_open) term.number.reset();
    expression["expr_str"] = is_open
                                 ? term.number->notation()
                                 : fmt::format("Symbol('u{}', integer=True)", unknown_numbers_++);
    expression["hint"] = followsFromSizes(value) ? tagged("as_int", first.toInt()) : OrderedJson();
    parts_->integers[name] = tagged("as_expr", std::move(expression));
    term.operand = tagged("as_sym_int", tagged("as_name", name));
    return term;
  }
  const bool is_bool = first.isBool();
  expression["expr_str"] =
      is_bool ? fmt::format("Eq(Symbol('u{}', integer=True), Integer(1))", unknown_numbers_++)
              : fmt::format("Symbol('zuf{}', real=True)", unknown_numbers_++);
  expression["hint"] = nullptr;
  if (is_bool) {
    parts_->booleans[name] = tagged("as_expr", std::move(expression));
    term.operand = tagged("as_sym_bool", tagged("as_name", name));
    return term;
  }
  parts_->floats[name] = tagged("as_expr", std::move(expression));
  term.operand = tagged("as_sym_float", tagged("as_name", name));
  return term;
}

}  // namespace wick::exported

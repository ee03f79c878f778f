// Parameter lists and the type comments that annotate them.

#include "core/error.h"
#include "core/keyed_hash.h"
#include "frontend/parser_impl.h"

namespace wick::detail {

// Up to, and without, the closing token.
Decl ParserImpl::params(int closer, bool annotated) {
  SourceRange start = cur().range;
  std::vector<Param> result;
  bool kwarg_only = false;
  while (cur().kind != closer) {
    if (cur().kind == '*' && lookahead().kind == TK_IDENT) {
      throwCompileError(cur().range,
                        "functions with a variable number of arguments ('*' before a "
                        "parameter) are not supported");
    }
    if (cur().kind == TK_POW) {
      throwCompileError(cur().range,
                        "functions with arbitrary keyword arguments ('**' before a "
                        "parameter) are not supported");
    }
    if (cur().kind == '/') {
      throwCompileError(cur().range, "positional-only parameters ('/') are not supported");
    }
    if (cur().kind == '*') {
      if (kwarg_only) throwCompileError(cur().range, "'*' stands twice among the parameters");
      next();
      expect(',');
      kwarg_only = true;
      if (cur().kind == closer) failExpected("a parameter after '*'");
    }
    if (cur().kind == '*' || cur().kind == TK_POW) continue;  // refused above
    result.push_back(param(annotated, kwarg_only));
    if (annotated) applyTypeComment(result);
    if (!nextIf(',')) break;
    if (annotated) applyTypeComment(result);
  }
  checkParams(result);
  SourceRange range = rangeFrom(start);
  return Decl::create(range, List<Param>::create(range, result), Maybe<Expr>::create(range));
}

Param ParserImpl::param(bool annotated, bool kwarg_only) {
  Ident name = ident();
  auto optional = [&](bool present) {
    SourceRange here = cur().range;
    return present ? Maybe<Expr>::create(here, expr()) : Maybe<Expr>::create(here);
  };
  Maybe<Expr> type = optional(annotated && nextIf(':'));
  Maybe<Expr> default_value = optional(nextIf('='));
  return Param::create(rangeFrom(name.range()), name, type, default_value, kwarg_only);
}

// `x,  # type: int`: the comment stands before the current token and belongs to the last parameter.
void ParserImpl::applyTypeComment(std::vector<Param>& params) {
  SourceRange comment = cur().type_comment;
  if (!comment.valid() || params.back().type().present()) return;
  params.back() = params.back().withType(Maybe<Expr>::create(comment, typeFromComment(comment)));
}

void ParserImpl::checkParams(const std::vector<Param>& params) {
  KeyedSet<std::string> names;
  bool seen_default = false;
  for (const Param& param : params) {
    if (!names.insert(param.name().name()).second) {
      throwCompileError(param.range(), "two parameters are named '{}'", param.name().name());
    }
    if (param.kwargOnly()) continue;
    if (param.defaultValue().present()) {
      seen_default = true;
    } else if (seen_default) {
      throwCompileError(param.range(),
                        "parameter '{}' without a default follows one with a default",
                        param.name().name());
    }
  }
}

Expr ParserImpl::typeFromComment(const SourceRange& comment) {
  Excursion excursion(*this, comment.start(), comment.end());
  Expr type = exprOrTuple();
  expectEnd("the type in this comment");
  return type;
}

Decl ParserImpl::signatureFromComment(const SourceRange& comment) {
  Excursion excursion(*this, comment.start(), comment.end());
  Decl decl = signature();
  expectEnd("the signature in this comment");
  return decl;
}

// (type, type) -> type, or (type, type) where the result is inferred
Decl ParserImpl::signature() {
  SourceRange start = expect('(').range;
  std::vector<Param> params;
  while (cur().kind != ')') {
    Expr type = expr();
    params.push_back(Param::create(type.range(), Ident::create(type.range(), ""),
                                   Maybe<Expr>::create(type.range(), type),
                                   Maybe<Expr>::create(type.range()), false));
    if (!nextIf(',')) break;
  }
  expect(')');
  SourceRange params_range = rangeFrom(start);
  Maybe<Expr> result = Maybe<Expr>::create(params_range);
  if (nextIf(TK_ARROW)) result = Maybe<Expr>::create(params_range, expr());
  return Decl::create(rangeFrom(start), List<Param>::create(params_range, params), result);
}

Decl ParserImpl::mergeSignature(const Decl& decl, const Decl& comment) {
  List<Param> types = comment.params();
  // `(...) -> T` leaves the parameters to their own comments.
  bool only_result = types.size() == 1 && types[0].type().get().kind() == TK_DOTS;
  Maybe<Expr> result = comment.returnType() ? comment.returnType() : decl.returnType();
  if (only_result) return Decl::create(decl.range(), decl.params(), result);
  List<Param> names = decl.params();
  size_t skipped = names.size() - types.size();
  bool without_self = skipped == 1 && names[0].name().name() == "self";
  if (skipped != 0 && !without_self) {
    throwCompileError(comment.range(),
                      "expected as many types in this comment as the function has "
                      "parameters, {}, but found {}",
                      names.size(), types.size());
  }
  std::vector<Param> merged;
  for (size_t i = 0; i < names.size(); ++i) {
    merged.push_back(i < skipped ? names[i] : names[i].withType(types[i - skipped].type()));
  }
  return Decl::create(decl.range(), List<Param>::create(names.range(), merged), result);
}

}  // namespace wick::detail

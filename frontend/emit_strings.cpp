// f-strings: a call of aten::format whose text has the fields of the f-string.
#include "core/error.h"
#include "frontend/ir_emitter.h"

namespace wick {

// Appends text and fields to `format` and what the fields show to `args`. The fields have no
// numbers: they take the arguments in order, an outer field before the ones in its specification.
void Emitter::appendFormat(const Expr& expr, std::string& format, std::vector<NamedValue>& args) {
  auto text = [&](const Expr& part, const std::string& literal) {
    if (literal.find_first_of("{}") == std::string::npos) {
      format += literal;
      return;
    }
    // Braces in the text are not fields: the text itself becomes an argument. PyTorch, which knows
    // no doubled braces in formats, prints it rightly as well.
    format += "{}";
    args.emplace_back(part.range(), constant(IValue(literal)));
  };
  if (expr.kind() == TK_STRINGLITERAL) return text(expr, StringLiteral(expr.tree()).text());
  for (const Expr& part : JoinedStr(expr.tree()).parts()) {
    if (part.kind() == TK_STRINGLITERAL) {
      text(part, StringLiteral(part.tree()).text());
      continue;
    }
    FormattedValue field(part.tree());
    args.emplace_back(part.range(), emitExpr(field.value()));
    format += "{";
    if (field.conversion()) format += "!" + field.conversion().get().text();
    if (field.formatSpec()) {
      format += ":";
      appendFormat(field.formatSpec().get(), format, args);
    }
    format += "}";
  }
}

Value* Emitter::emitJoinedStr(const JoinedStr& expr) {
  std::string format;
  std::vector<NamedValue> args;
  appendFormat(expr, format, args);
  if (args.empty()) return constant(IValue(format));
  args.insert(args.begin(), NamedValue(expr.range(), constant(IValue(format))));
  return emitBuiltinCall(expr.range(), graph_, aten::format, args);
}

}  // namespace wick

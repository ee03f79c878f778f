// How the parser goes on after an error.
#include <algorithm>
#include <string>

#include "core/error.h"
#include "frontend/broken_line.h"
#include "frontend/parser_impl.h"

namespace wick::detail {

List<Stmt> ParserImpl::module(std::vector<CompileError>& errors) {
  errors_ = &errors;
  std::vector<Stmt> result;
  while (true) {
    const size_t before = tokens_read_;
    try {
      statements(result);
      if (cur().kind == TK_EOF) break;
      next();
    } catch (const CompileError& error) {
      // The text is nested too deep for going on below the top level.
      result.push_back(note(error, before == tokens_read_ ? own_lexer_.position() : statement_));
      const size_t at = nextTopLevelLine(source_->text(), own_lexer_.position());
      own_lexer_.resume(enoughErrors() ? source_->text().size() : at, 1);
      last_kind_ = TK_NEWLINE;
      gives_up_ = unexpected_ = false;
    }
  }
  return List<Stmt>::create(SourceRange(source_, 0, source_->text().size()), result);
}

void ParserImpl::statements(std::vector<Stmt>& out) {
  after_error_ = false;
  while (true) {
    const size_t tokens_before = tokens_read_;
    const size_t before = out.size();
    const bool after_error = after_error_;
    size_t start = std::string::npos;
    try {
      start = cur().range.start();
      if (cur().kind == TK_DEDENT || cur().kind == TK_EOF) break;
      if (own_lexer_.level() <= 1) statement_ = start;
      statement(out);
    } catch (const CompileError& error) {
      if (errors_ == nullptr || gives_up_) throw;
      if (start == std::string::npos) start = own_lexer_.position();
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
      const char first = start < source_->text().size() ? source_->text()[start] : '\0';
      const bool closes = after_error && (own_lexer_.level() > 1 || !opens_block_) &&
                          (first == ')' || first == ']' || first == '}');
      if (closes) misplaced_line_ = source_->lineStart(start);
      Stmt broken = recover(error, start, tokens_read_ != tokens_before);
      // What ends before an unexpected block may be the beginning of a line that should go on.
      const bool continues = !opens_block_ && tokens_read_ == tokens_before && !out.empty();
      if (continues && out.back().kind() != TK_DEF && out.back().kind() != TK_CLASS_DEF) {
        out.pop_back();
      }
      out.push_back(broken);
      after_error_ = true;
    }
  }
  after_error_ = false;
}

bool ParserImpl::orphan() {
  std::vector<Stmt> dropped;
  switch (cur().kind) {
    case TK_INDENT: {
      next();
      const bool quiet = std::exchange(quiet_, quiet_ || !opens_block_);
      statements(dropped);
      quiet_ = quiet;
      nextIf(TK_DEDENT);
      break;
    }
    case TK_ELIF:
      next();
      expr();
      block();
      break;
    case TK_ELSE:
      next();
      block();
      break;
    case TK_DEF:
    case TK_CLASS_DEF:
    case '@':
      if (!decorates_) return false;
      decorates_ = after_error_ = false;
      statement(dropped);
      return true;
    default:
      return false;
  }
  after_error_ = true;
  return true;
}

bool ParserImpl::canRead() {
  try {
    cur();
    return true;
  } catch (const CompileError&) {
    return false;
  }
}

bool ParserImpl::enoughErrors() const {
  return errors_->size() >= kMaxReportedErrors;
}

Stmt ParserImpl::recover(const CompileError& error, size_t start, bool moved) {
  CompileError reported = error;
  const bool unexpected = std::exchange(unexpected_, false);
  const bool repaired = own_lexer_.takeRepaired();
  bool skips = true;
  opens_block_ = true;
  decorates_ = false;
  if (repaired || (atLineStart() && moved && canRead())) {
    // The token that was refused begins a statement of its own.
    skips = false;
    line_level_ = own_lexer_.level();
  } else if (atLineStart()) {
    line_start_ = own_lexer_.position();
    line_level_ = own_lexer_.level();
    // An unexpected block, or an `else` without an `if`: read as if something stood before it.
    skips =
        !canRead() || (cur().kind != TK_INDENT && cur().kind != TK_ELIF && cur().kind != TK_ELSE);
    opens_block_ = skips || cur().kind != TK_INDENT;
  }
  if (skips) {
    const std::string_view text = source_->text();
    const size_t error_at = own_lexer_.position();
    const BrokenLine line = findBrokenLine(text, line_start_, error_at);
    const size_t opener = line.unclosed;
    opens_block_ = line.opens_block;
    decorates_ = text.substr(line_start_).starts_with('@');
    if (opener < error_at && (unexpected || error_at >= text.size())) {
      reported = CompileError(SourceRange(source_, opener, opener + 1),
                              fmt::format("'{}' was never closed", text[opener]));
    }
    own_lexer_.resume(line.end, line_level_);
    last_kind_ = TK_NEWLINE;
  }
  Stmt broken = note(reported, start);
  if (repaired || !skips) misplaced_line_ = source_->lineStart(reported.range().start());
  if (enoughErrors()) {
    own_lexer_.resume(source_->text().size(), line_level_);
    last_kind_ = TK_NEWLINE;
  }
  return broken;
}

Stmt ParserImpl::note(const CompileError& found, size_t start) {
  const size_t line = source_->lineStart(found.range().start());
  if (!quiet_ && line != misplaced_line_) errors_->push_back(found);
  const CompileError& error = errors_->back();
  std::vector<Ident> names;
  for (std::string& name : namesOfBrokenLine(source_->text(), start)) {
    names.push_back(Ident::create(error.range(), std::move(name)));
  }
  return Broken::create(error.range(), error.brief(), List<Ident>::create(error.range(), names));
}

}  // namespace wick::detail

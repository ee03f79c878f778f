// Methods of strings. They are Python's on ASCII; other text is handled byte by byte, as
// TorchScript does. The arguments start and end, which Python lets be absent, default to 0 and -1,
// and an end of -1 means the end of the string.
#include <algorithm>
#include <bitset>

#include "core/budget.h"
#include "core/error.h"
#include "core/memory_limit.h"
#include "core/text_limit.h"
#include "runtime/ops/typed.h"
#include "runtime/ops/values/order.h"
#include "runtime/ops/values/text.h"

namespace wick::ops {

namespace {

using Str = const std::string&;
using I = int64_t;

void checkLength(const char* op, int64_t n) {
  if (n > 0) checkTextLength(op, static_cast<size_t>(n));
}

// The list of strings that an operator makes. A text has as many parts as bytes, each of which
// takes much more memory, so every part looks at the limits.
class StringList {
 public:
  explicit StringList(const char* op) : op_(op) {}
  size_t size() const { return list_->elements.size(); }
  void add(std::string_view part) {
    list_->makeRoom(op_, 1);
    list_->elements.emplace_back(part);
    checkGrowth();
    pace_.step(8);
  }
  IValue finish() { return IValue(std::move(list_)); }
  IValue finishReversed() {
    std::reverse(list_->elements.begin(), list_->elements.end());
    return finish();
  }

 private:
  const char* op_;
  ListRef list_ = makeList(types::String());
  Pace pace_;
};

// ---- characters ----

template <class Test>
bool every(Str s, Test test) {
  return !s.empty() && std::all_of(s.begin(), s.end(), test);
}

// Every letter of one case, and at least one of them.
bool hasCase(Str s, bool (*wanted)(char), bool (*other)(char)) {
  return std::any_of(s.begin(), s.end(), wanted) && std::none_of(s.begin(), s.end(), other);
}
bool isTitle(Str s) {
  bool any = false;
  bool in_word = false;
  for (char c : s) {
    if (isAlpha(c)) {
      if (isUpper(c) == in_word) return false;
      any = in_word = true;
    } else {
      in_word = false;
    }
  }
  return any;
}
bool isIdentifier(Str s) {
  bool first = true;
  for (char c : s) {
    if (!isAlpha(c) && c != '_' && (first || !isDigit(c))) return false;
    first = false;
  }
  return !first;
}
bool isPrintable(Str s) {
  return std::all_of(s.begin(), s.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string mapped(std::string s, char (*map)(char)) {
  std::transform(s.begin(), s.end(), s.begin(), map);
  return s;
}
std::string capitalize(Str s) {
  std::string out = mapped(s, toLower);
  if (!out.empty()) out[0] = toUpper(out[0]);
  return out;
}
std::string title(std::string s) {
  bool in_word = false;
  for (char& c : s) {
    c = in_word ? toLower(c) : toUpper(c);
    in_word = isAlpha(c);
  }
  return s;
}
char swapCase(char c) {
  return isLower(c) ? toUpper(c) : toLower(c);
}

// ---- searching ----

// The part [start, end) of s; nullopt when it is outside, where not even "" is found.
struct Window {
  size_t start;
  std::string_view text;
};
std::optional<Window> window(std::string_view s, I start, I end) {
  I n = static_cast<I>(s.size());
  if (start < 0) start = std::max<I>(start + n, 0);
  if (end == -1) end = n;
  if (end < 0) end = std::max<I>(end + n, 0);
  end = std::min(end, n);
  if (start > end) return std::nullopt;
  return Window{static_cast<size_t>(start),
                s.substr(static_cast<size_t>(start), static_cast<size_t>(end - start))};
}
I position(const std::optional<Window>& w, size_t at) {
  return at == std::string_view::npos ? -1 : static_cast<I>(at + w->start);
}
I find(Str s, Str sub, I start, I end) {
  auto w = window(s, start, end);
  return w ? position(w, findText(w->text, sub)) : -1;
}
I rfind(Str s, Str sub, I start, I end) {
  auto w = window(s, start, end);
  return w ? position(w, rfindText(w->text, sub)) : -1;
}
I found(I at) {
  if (at < 0) throw RuntimeError("ValueError: substring not found", "ValueError");
  return at;
}
I index(Str s, Str sub, I start, I end) {
  return found(find(s, sub, start, end));
}
I rindex(Str s, Str sub, I start, I end) {
  return found(rfind(s, sub, start, end));
}
I count(Str s, Str sub, I start, I end) {
  auto w = window(s, start, end);
  if (!w) return 0;
  if (sub.empty()) return static_cast<I>(w->text.size()) + 1;
  I n = 0;
  Pace pace;
  for (size_t at = 0; (at = findText(w->text, sub, at)) != std::string_view::npos;
       at += sub.size()) {
    pace.step(4);
    ++n;
  }
  return n;
}
bool startsWith(Str s, Str sub, I start, I end) {
  auto w = window(s, start, end);
  return w && w->text.starts_with(sub);
}
bool endsWith(Str s, Str sub, I start, I end) {
  auto w = window(s, start, end);
  return w && w->text.ends_with(sub);
}
template <bool (*test)(Str, Str, I, I)>
bool anyOf(Str s, const IValue& subs, I start, I end) {
  Pace pace;
  return std::ranges::any_of(subs.elements(), [&](const IValue& sub) {
    pace.step(1 + static_cast<int64_t>(sub.toString().size() / 16));
    return test(s, sub.toString(), start, end);
  });
}
bool contains(Str s, Str sub) {
  return findText(s, sub) != std::string::npos;
}

// ---- cutting ----

void checkSeparator(Str separator) {
  if (separator.empty()) throw RuntimeError("ValueError: empty separator", "ValueError");
}

// At runs of blanks; `limit` < 0: without a limit.
IValue splitBlanks(std::string_view s, I limit) {
  StringList out("split");
  size_t at = 0;
  for (;;) {
    while (at < s.size() && isSpace(s[at])) ++at;
    if (at == s.size()) break;
    if (limit >= 0 && static_cast<I>(out.size()) == limit) {
      out.add(s.substr(at));
      break;
    }
    size_t start = at;
    while (at < s.size() && !isSpace(s[at])) ++at;
    out.add(s.substr(start, at - start));
  }
  return out.finish();
}
IValue split(Str s, std::optional<std::string> separator, I limit) {
  if (!separator) return splitBlanks(s, limit);
  checkSeparator(*separator);
  const std::string_view text = s;
  StringList out("split");
  size_t start = 0;
  while (limit < 0 || static_cast<I>(out.size()) < limit) {
    size_t at = findText(s, *separator, start);
    if (at == std::string::npos) break;
    out.add(text.substr(start, at - start));
    start = at + separator->size();
  }
  out.add(text.substr(start));
  return out.finish();
}
const std::string kBlanks = " \t\n\r\f\v\x1c\x1d\x1e\x1f";

// At runs of blanks from the end.
IValue rsplitBlanks(std::string_view s, I limit) {
  StringList out("rsplit");
  for (;;) {
    while (!s.empty() && isSpace(s.back())) s.remove_suffix(1);
    if (s.empty()) break;
    size_t start = s.size();
    bool last = limit >= 0 && static_cast<I>(out.size()) == limit;
    while (start > 0 && (last || !isSpace(s[start - 1]))) --start;
    out.add(s.substr(start));
    s = s.substr(0, start);
  }
  return out.finishReversed();
}
IValue rsplit(Str s, Str separator, I limit) {
  checkSeparator(separator);
  // Cut from the front where the text is reversed: each piece is looked for only once.
  const std::string reversed(s.rbegin(), s.rend());
  const std::string wanted(separator.rbegin(), separator.rend());
  const std::string_view text = s;
  StringList out("rsplit");
  size_t start = 0;
  for (;;) {
    const bool last = limit >= 0 && static_cast<I>(out.size()) >= limit;
    const size_t at = last ? std::string::npos : findText(reversed, wanted, start);
    const size_t end = at == std::string::npos ? s.size() : at;
    out.add(text.substr(s.size() - end, end - start));
    if (at == std::string::npos) break;
    start = at + separator.size();
  }
  return out.finishReversed();
}
IValue splitLines(Str s, bool keep_ends) {
  const std::string_view text = s;
  StringList out("splitlines");
  size_t start = 0;
  while (start < s.size()) {
    size_t end = start;
    auto isBreak = [](char c) { return (c >= '\n' && c <= '\r') || (c >= '\x1c' && c <= '\x1e'); };
    while (end < s.size() && !isBreak(s[end])) ++end;
    size_t next = end;
    if (next < s.size())
      next += s[next] == '\r' && next + 1 < s.size() && s[next + 1] == '\n' ? 2 : 1;
    out.add(text.substr(start, (keep_ends ? next : end) - start));
    start = next;
  }
  return out.finish();
}
using Three = std::tuple<std::string, std::string, std::string>;
Three partition(Str s, Str separator) {
  checkSeparator(separator);
  size_t at = findText(s, separator);
  if (at == std::string::npos) return {s, "", ""};
  return {s.substr(0, at), separator, s.substr(at + separator.size())};
}
Three rpartition(Str s, Str separator) {
  checkSeparator(separator);
  size_t at = rfindText(s, separator);
  if (at == std::string::npos) return {"", "", s};
  return {s.substr(0, at), separator, s.substr(at + separator.size())};
}
std::bitset<256> setOf(Str chars) {
  std::bitset<256> set;
  for (char c : chars) set.set(static_cast<unsigned char>(c));
  return set;
}
std::string lstrip(Str s, Str chars) {
  const std::bitset<256> set = setOf(chars);
  size_t first = 0;
  while (first < s.size() && set.test(static_cast<unsigned char>(s[first]))) ++first;
  return s.substr(first);
}
std::string rstrip(Str s, Str chars) {
  const std::bitset<256> set = setOf(chars);
  size_t end = s.size();
  while (end > 0 && set.test(static_cast<unsigned char>(s[end - 1]))) --end;
  return s.substr(0, end);
}
std::string strip(Str s, Str chars) {
  return lstrip(rstrip(s, chars), chars);
}
std::string getItem(Str s, I i) {
  I n = static_cast<I>(s.size());
  if (i < -n || i >= n) throw RuntimeError("string index out of range", "IndexError");
  return std::string(1, s[static_cast<size_t>(i < 0 ? i + n : i)]);
}
std::string slice(Str s, std::optional<I> start, std::optional<I> end, I step) {
  const Slice chosen = sliceOf(static_cast<I>(s.size()), start, end, step);
  if (step == 1) return s.substr(static_cast<size_t>(chosen.first), chosen.count);
  std::string out;
  out.reserve(chosen.count);
  for (size_t i = 0; i < chosen.count; ++i) out += s[static_cast<size_t>(chosen.at(i))];
  return out;
}
IValue characters(Str s) {
  // A string object each.
  checkAllocation("list", s.size() * (sizeof(IValue) + sizeof(StringObject) + sizeof(std::string)));
  StringList out("list");
  for (size_t i = 0; i < s.size(); ++i) out.add(std::string_view(s).substr(i, 1));
  return out.finish();
}

// ---- building ----

std::string concat(Str a, Str b) {
  checkLength("str + str", static_cast<I>(a.size() + b.size()));
  return a + b;
}
std::string repeat(Str s, I n) {
  if (n <= 0 || s.empty()) return "";
  WICK_CHECK(n <= static_cast<I>(kMaxTextBytes / s.size()),
             "a string of {} bytes times {} is too long", s.size(), n);
  checkTextLength("str * int", s.size() * static_cast<size_t>(n));
  std::string out;
  out.reserve(s.size() * static_cast<size_t>(n));
  Pace pace;
  for (I i = 0; i < n; ++i) {
    pace.step(1 + static_cast<int64_t>(s.size() / 16));
    out += s;
  }
  return out;
}
std::string join(Str s, const IValue& parts) {
  const std::vector<IValue>& strings = parts.elements();
  size_t length = strings.empty() ? 0 : s.size() * (strings.size() - 1);
  Pace pace;
  for (const IValue& p : strings) {
    pace.step();
    length += p.toString().size();
  }
  checkTextLength("join", length);
  std::string out;
  out.reserve(length);
  for (size_t i = 0; i < strings.size(); ++i) {
    pace.step(4);
    if (i) out += s;
    out += strings[i].toString();
  }
  return out;
}
std::string replace(Str s, Str old, Str with, I limit) {
  std::string out;
  size_t at = 0;
  I done = 0;
  auto more = [&] { return limit < 0 || done < limit; };
  if (old.empty()) {
    // Before each byte and at the end.
    const size_t places =
        limit < 0 ? s.size() + 1 : std::min(s.size() + 1, static_cast<size_t>(limit));
    WICK_CHECK(with.empty() || places <= kMaxTextBytes / with.size(),
               "replace: the text becomes too long");
    checkTextLength("replace", s.size() + places * with.size());
    out.reserve(s.size() + places * with.size());
    Pace pace;
    for (; at < s.size() && more(); ++at, ++done) {
      pace.step(1 + static_cast<int64_t>(with.size() / 16));
      (out += with) += s[at];
    }
    if (at == s.size() && more()) out += with;
    return out.append(s, at);
  }
  const auto next = [&] { return more() ? findText(s, old, at) : std::string::npos; };
  Pace pace;
  size_t length = s.size();
  for (size_t found = next(); found != std::string::npos; ++done, found = next()) {
    pace.step(8 + static_cast<int64_t>((found - at) / 16));
    length += with.size();
    length -= old.size();
    if (length > kMaxTextBytes + s.size()) checkTextLength("replace", length);
    at = found + old.size();
  }
  checkTextLength("replace", length);
  out.reserve(length);
  at = 0;
  done = 0;
  for (size_t found = next(); found != std::string::npos; ++done, found = next()) {
    pace.step(8 + static_cast<int64_t>((found - at + with.size()) / 16));
    out.append(s, at, found - at);
    out += with;
    at = found + old.size();
  }
  return out.append(s, at);
}

// How much is missing to `width`.
I padding(const char* op, Str s, I width, Str fill) {
  if (fill.size() != 1) {
    throw RuntimeError("TypeError: The fill character must be exactly one character long",
                       "TypeError");
  }
  checkLength(op, width);
  checkTextLength(op, s.size());
  const I size = static_cast<I>(s.size());
  return width > size ? width - size : 0;
}
std::string center(Str s, I width, Str fill) {
  I missing = padding("center", s, width, fill);
  // The odd blank goes where Python puts it.
  I left = missing / 2 + (missing & width & 1);
  return std::string(static_cast<size_t>(left), fill[0]) + s +
         std::string(static_cast<size_t>(missing - left), fill[0]);
}
std::string ljust(Str s, I width, Str fill) {
  return s + std::string(static_cast<size_t>(padding("ljust", s, width, fill)), fill[0]);
}
std::string rjust(Str s, I width, Str fill) {
  return std::string(static_cast<size_t>(padding("rjust", s, width, fill)), fill[0]) + s;
}
std::string zfill(Str s, I width) {
  size_t sign = !s.empty() && (s[0] == '-' || s[0] == '+') ? 1 : 0;
  std::string zeros(static_cast<size_t>(padding("zfill", s, width, "0")), '0');
  return s.substr(0, sign) + zeros + s.substr(sign);
}
// Calls add(byte, blanks that a tab stands for).
template <class Add>
void expandedBy(Str s, I tab, const Add& add) {
  Pace pace;
  I column = 0;
  for (char c : s) {
    const I blanks = c != '\t' || tab <= 0 ? 0 : tab - column % tab;
    pace.step(1 + blanks / 16);
    add(c, blanks);
    column = c == '\t' ? column + blanks : c == '\n' || c == '\r' ? 0 : column + 1;
  }
}
std::string expandTabs(Str s, I tab) {
  checkLength("expandtabs", tab);
  size_t length = 0;
  expandedBy(s, tab, [&](char c, I blanks) {
    length += c == '\t' ? static_cast<size_t>(blanks) : 1;
    if (length > kMaxTextBytes) checkTextLength("expandtabs", length);
  });
  checkTextLength("expandtabs", length);
  std::string out;
  out.reserve(length);
  expandedBy(s, tab, [&](char c, I blanks) {
    c == '\t' ? out.append(static_cast<size_t>(blanks), ' ') : out += c;
  });
  return out;
}

#define WICK_STRING_TEST(name, ...)                                                    \
  {                                                                                    \
    "aten::" name "(str self) -> bool", WICK_LAMBDA([](Str s) -> bool { __VA_ARGS__ }) \
  }
#define WICK_SEARCH(name, result, function)                                     \
  {                                                                             \
    "aten::" name "(str self, str substr, int start=0, int end=-1) -> " result, \
        WICK_KERNEL(function)                                                   \
  }

const OperatorRecord kStringsRecords[] = {
    {"aten::len.str(str s) -> int", WICK_LAMBDA([](Str s) { return static_cast<I>(s.size()); })},
    {"aten::add.str(str a, str b) -> str", WICK_KERNEL(concat)},
    {"aten::mul.str_int(str a, int b) -> str", WICK_KERNEL(repeat)},
    {"aten::mul.int_str(int a, str b) -> str",
     WICK_LAMBDA([](I n, Str s) { return repeat(s, n); })},
    {"aten::__getitem__.str(str s, int index) -> str", WICK_KERNEL(getItem)},
    {"prim::StringIndex(str string, int index) -> str", WICK_KERNEL(getItem)},
    {"aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str",
     WICK_KERNEL(slice)},
    {"aten::list(str t) -> str[]", WICK_KERNEL(characters)},
    {"aten::__contains__.str_str(str string, str substring) -> bool", WICK_KERNEL(contains)},
    WICK_STRING_TEST("isalnum", return every(s, [](char c) { return isAlpha(c) || isDigit(c); });),
    WICK_STRING_TEST("isalpha", return every(s, isAlpha);),
    WICK_STRING_TEST("isdecimal", return every(s, isDigit);),
    WICK_STRING_TEST("isdigit", return every(s, isDigit);),
    WICK_STRING_TEST("isnumeric", return every(s, isDigit);),
    WICK_STRING_TEST("isspace", return every(s, isSpace);),
    WICK_STRING_TEST("islower", return hasCase(s, isLower, isUpper);),
    WICK_STRING_TEST("isupper", return hasCase(s, isUpper, isLower);),
    WICK_STRING_TEST("istitle", return isTitle(s);),
    WICK_STRING_TEST("isidentifier", return isIdentifier(s);),
    WICK_STRING_TEST("isprintable", return isPrintable(s);),
    {"aten::upper(str self) -> str", WICK_LAMBDA([](Str s) { return mapped(s, toUpper); })},
    {"aten::lower(str self) -> str", WICK_LAMBDA([](Str s) { return mapped(s, toLower); })},
    {"aten::swapcase(str self) -> str", WICK_LAMBDA([](Str s) { return mapped(s, swapCase); })},
    {"aten::capitalize(str self) -> str", WICK_KERNEL(capitalize)},
    {"aten::title(str self) -> str", WICK_KERNEL(title)},
    WICK_SEARCH("find", "int", find),
    WICK_SEARCH("rfind", "int", rfind),
    WICK_SEARCH("index.str", "int", index),
    WICK_SEARCH("rindex", "int", rindex),
    WICK_SEARCH("count", "int", count),
    WICK_SEARCH("startswith", "bool", startsWith),
    WICK_SEARCH("endswith", "bool", endsWith),
    {"aten::startswith.any(str self, str[] substr, int start=0, int end=-1) -> bool",
     WICK_KERNEL(anyOf<startsWith>)},
    {"aten::endswith.any(str self, str[] substr, int start=0, int end=-1) -> bool",
     WICK_KERNEL(anyOf<endsWith>)},
    {"aten::split.str(str self, str? separator=None, int max=-1) -> str[]", WICK_KERNEL(split)},
    // Python's, where PyTorch's defaults say something else: at any blanks.
    {"aten::rsplit.blanks(str self) -> str[]",
     WICK_LAMBDA([](Str s) { return rsplitBlanks(s, -1); })},
    {"aten::rsplit.none(str self, NoneType separator, int max=-1) -> str[]",
     WICK_LAMBDA([](Str s, const IValue&, I limit) { return rsplitBlanks(s, limit); })},
    {"aten::strip.blanks(str self) -> str", WICK_LAMBDA([](Str s) { return strip(s, kBlanks); })},
    {"aten::lstrip.blanks(str self) -> str", WICK_LAMBDA([](Str s) { return lstrip(s, kBlanks); })},
    {"aten::rstrip.blanks(str self) -> str", WICK_LAMBDA([](Str s) { return rstrip(s, kBlanks); })},
    {"aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]", WICK_KERNEL(rsplit)},
    {"aten::splitlines(str self, bool keepends=False) -> str[]", WICK_KERNEL(splitLines)},
    {"aten::partition(str self, str separator) -> (str, str, str)", WICK_KERNEL(partition)},
    {"aten::rpartition(str self, str separator) -> (str, str, str)", WICK_KERNEL(rpartition)},
    {"aten::strip(str self, str chars=\" \\n\\t\\f\\v\") -> str", WICK_KERNEL(strip)},
    {"aten::lstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str", WICK_KERNEL(lstrip)},
    {"aten::rstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str", WICK_KERNEL(rstrip)},
    {"aten::join(str self, str[] values) -> str", WICK_KERNEL(join)},
    {"aten::replace(str self, str old, str new, int max=-1) -> str", WICK_KERNEL(replace)},
    {"aten::center(str self, int width, str fillchar=\" \") -> str", WICK_KERNEL(center)},
    {"aten::ljust(str self, int width, str fillchar=\" \") -> str", WICK_KERNEL(ljust)},
    {"aten::rjust(str self, int width, str fillchar=\" \") -> str", WICK_KERNEL(rjust)},
    {"aten::zfill(str self, int width) -> str", WICK_KERNEL(zfill)},
    {"aten::expandtabs(str self, int tabsize=8) -> str", WICK_KERNEL(expandTabs)},
};
const RegisterOperators kStringsRegistered(kStringsRecords);

}  // namespace

}  // namespace wick::ops

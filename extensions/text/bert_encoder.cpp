// BERTEncoder: BERT's basic tokens (words and single signs, cleaned), and of each the longest
// pieces that the vocabulary has.
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <set>

#include "core/budget.h"
#include "core/error.h"
#include "extensions/text/vocab.h"

namespace wick::text {

namespace {

constexpr const char* kName = "BERTEncoder";
constexpr const char* kUnknown = "[UNK]";
constexpr const char* kWithinWord = "##";
// In bytes; longer words are unknown.
constexpr size_t kLongestWord = 100;

bool isSpace(int32_t c) {
  return c == '\t' || c == '\n' || c == '\r' || c == ' ' ||
         utf8proc_category(c) == UTF8PROC_CATEGORY_ZS;
}

bool isControl(int32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  // torchtext takes this letter for one that is not assigned, as Python of its time does.
  if (c == 0xD04) return true;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
      return true;
    default:
      return false;
  }
}

// Whose signs are words of their own: the blocks of unified ideographs.
bool isIdeograph(int32_t c) {
  constexpr std::pair<int32_t, int32_t> kBlocks[] = {
      {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
      {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B820, 0x2CEAF}, {0x2F800, 0x2FA1F}};
  for (const auto& [first, last] : kBlocks) {
    if (c >= first && c <= last) return true;
  }
  return false;
}

bool isPunctuation(int32_t c) {
  // All signs of ASCII, "$" and "+" too.
  if (c > ' ' && c < 0x7F) {
    return !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') && !(c >= 'a' && c <= 'z');
  }
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

struct Free {
  void operator()(utf8proc_uint8_t* text) const { std::free(text); }
};

class BertEncoder {
 public:
  BertEncoder(Vocab vocab, bool lower, std::optional<bool> strip_accents,
              std::vector<std::string> never_split)
      : vocab_(std::move(vocab)),
        lower_(lower),
        strip_accents_(strip_accents),
        never_split_(std::move(never_split)),
        whole_(never_split_.begin(), never_split_.end()) {
    memory_.add(kName, 2 * HeldMemory::of(never_split_));
  }
  BertEncoder(const std::string& vocab_file, bool, std::optional<bool>,
              const std::vector<std::string>&)
      : vocab_(std::vector<std::string>()) {
    throwRuntimeError(
        "{}: a program cannot read the file '{}'; make the encoder with torchtext and load it from "
        "an archive, which holds its vocabulary",
        kName, vocab_file);
  }

  std::vector<std::string> tokenize(const std::string& text) const {
    Texts pieces(kName);
    Pace pace;
    for (const std::string& part : splitAtSpaces(kName, text)) {
      const std::optional<std::string> cleaned = clean(part);
      // What is not UTF-8 leaves nothing, as in torchtext.
      if (!cleaned) return {};
      for (const std::string& word : splitAtSpaces(kName, *cleaned)) {
        pace.step(1024);
        for (std::string& piece : piecesOf(word)) pieces.push(std::move(piece));
      }
    }
    return pieces.take();
  }
  std::vector<int64_t> encode(const std::string& text) const {
    return vocab_.indicesOf(tokenize(text));
  }
  std::vector<std::vector<std::string>> tokenizeAll(const std::vector<std::string>& texts) const {
    std::vector<std::vector<std::string>> result;
    for (const std::string& text : texts) result.push_back(tokenize(text));
    return result;
  }
  std::vector<std::vector<int64_t>> encodeAll(const std::vector<std::string>& texts) const {
    std::vector<std::vector<int64_t>> result;
    for (const std::string& text : texts) result.push_back(encode(text));
    return result;
  }

  // (lower, strip_accents, never_split, tokens); before 0.14 it had no never_split.
  IValue state() const {
    return detail::resultValue(std::tuple(lower_, strip_accents_, never_split_, vocab_.tokens()));
  }
  static BertEncoder fromState(const IValue& state) {
    const bool old = state.isTuple() && state.size() == 3;
    const std::vector<IValue>& parts = stateParts(kName, state, old ? 3 : 4);
    return {Vocab(parts[old ? 2 : 3].to<std::vector<std::string>>()), parts[0].to<bool>(),
            parts[1].to<std::optional<bool>>(),
            old ? std::vector<std::string>() : parts[2].to<std::vector<std::string>>()};
  }

 private:
  // Without accents, controls and capital letters, with spaces around signs. nullopt when accents
  // cannot be taken from what is not UTF-8.
  std::optional<std::string> clean(const std::string& text) const {
    const bool whole = whole_.contains(text);
    // torchtext asks whether it was said, not what.
    const bool strip = lower_ || strip_accents_.has_value();
    if (!strip) return cleanCharacters(text, false, whole);
    std::unique_ptr<utf8proc_uint8_t, Free> parts(
        utf8proc_NFD(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str())));
    if (!parts) return std::nullopt;
    return cleanCharacters(reinterpret_cast<const char*>(parts.get()), true, whole);
  }

  std::string cleanCharacters(const std::string& text, bool strip, bool whole) const {
    std::string result;
    Pace pace;
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
    for (size_t at = 0; at < text.size();) {
      pace.step();
      utf8proc_int32_t c = 0;
      const utf8proc_ssize_t length =
          utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
      if (length < 0) return "";
      at += static_cast<size_t>(length);
      const bool accent = strip && !whole && utf8proc_category(c) == UTF8PROC_CATEGORY_MN;
      if (c == 0 || c == 0xFFFD || isControl(c) || accent) continue;
      if (isSpace(c)) {
        result += ' ';
        continue;
      }
      const bool alone = isIdeograph(c) || (isPunctuation(c) && !whole);
      if (alone) result += ' ';
      append(result, lower_ && !whole ? utf8proc_tolower(c) : c);
      if (alone) result += ' ';
    }
    return result;
  }
  static void append(std::string& text, int32_t c) {
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t length = utf8proc_encode_char(c, bytes);
    text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  }

  std::vector<std::string> piecesOf(const std::string& word) const {
    if (word.size() > kLongestWord) return {kUnknown};
    std::vector<std::string> pieces;
    for (size_t start = 0; start < word.size();) {
      size_t end = word.size();
      std::string piece;
      for (; end > start; --end) {
        piece = (start > 0 ? kWithinWord : "") + word.substr(start, end - start);
        if (vocab_.contains(piece)) break;
      }
      if (end == start) return {kUnknown};
      pieces.push_back(std::move(piece));
      start = end;
    }
    return pieces;
  }

  Vocab vocab_;
  bool lower_ = false;
  std::optional<bool> strip_accents_;
  std::vector<std::string> never_split_;
  std::set<std::string> whole_;
  HeldMemory memory_;
};

}  // namespace

void defineBertEncoder(Extension& extension) {
  extension.object<BertEncoder>(kName)
      .init<std::string, bool, std::optional<bool>, std::vector<std::string>>()
      .def("encode", &BertEncoder::encode)
      .def("tokenize", &BertEncoder::tokenize)
      .def("batch_encode", &BertEncoder::encodeAll)
      .def("batch_tokenize", &BertEncoder::tokenizeAll)
      .pickle(&BertEncoder::state, &BertEncoder::fromState);
}

}  // namespace wick::text

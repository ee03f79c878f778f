#include "extensions/text/gpt2_encoder.h"

#include <algorithm>
#include <array>
#include <mutex>

#include "core/budget.h"
#include "core/error.h"
#include "core/text_limit.h"

namespace wick::text {

namespace {

constexpr const char* kGpt2EncoderName = "GPT2BPEEncoder";

// What is a space in C, where RE2's \s has no vertical tab.
bool isSpace(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

const Pattern& gpt2WordPattern() {
  static const Pattern pattern(
      kGpt2EncoderName, "'(?:[stmd]|re|ve|ll)| ?\\pL+| ?\\pN+| ?[^\\s\\v\\pL\\pN]+|[\\s\\v]+");
  return pattern;
}

// The words of a text without special tokens. `space` is what is left of a run of whitespace for
// the next word.
class WordSplitter {
 public:
  void add(std::string_view text) {
    for (size_t at = 0; at < text.size();) {
      const std::optional<std::string_view> word = gpt2WordPattern().find(text, at);
      if (!word) return;
      pace_.step(64);
      at = static_cast<size_t>(word->data() - text.data()) + word->size();
      if (!std::ranges::all_of(*word, [](char c) { return isSpace(c); })) {
        words_.push((space_ ? " " : "") + std::string(*word));
        space_ = false;
        continue;
      }
      space_ = false;
      if (at == text.size()) {
        words_.push(std::string(*word));
        continue;
      }
      if (word->size() > 1) words_.push(std::string(word->substr(0, word->size() - 1)));
      if (word->back() == ' ') {
        space_ = true;
      } else {
        words_.push(std::string(word->substr(word->size() - 1)));
      }
    }
  }
  void addWhole(std::string word) { words_.push(std::move(word)); }
  std::vector<std::string> take() { return words_.take(); }

 private:
  Texts words_{kGpt2EncoderName};
  bool space_ = false;
  Pace pace_;
};

// The bytes of the UTF-8 character at `at`. RuntimeError when there is none.
size_t characterLength(const std::string& text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  bool well_formed = first < 0x80 || (first >= 0xC2 && first <= 0xF4);
  for (size_t i = 1; well_formed && i < length; ++i) {
    well_formed = at + i < text.size() && (static_cast<unsigned char>(text[at + i]) & 0xC0) == 0x80;
  }
  WICK_CHECK(well_formed, "{}: a token is not UTF-8 and cannot be decoded", kGpt2EncoderName);
  return length;
}

}  // namespace

std::vector<std::string> gpt2Words(const std::string& text) {
  WordSplitter splitter;
  splitter.add(text);
  return splitter.take();
}

Gpt2Encoder::Gpt2Encoder(BytePairTables tables)
    : tables_(std::move(tables)), pairs_(kGpt2EncoderName, tables_, "") {
  Pace pace;
  tables_.numbers->all([&](const IValue& token, const IValue& number) {
    pace.step(16);
    memory_.add(kGpt2EncoderName, HeldMemory::of(token.toString()));
    tokens_by_number_.emplace(number.toInt(), token.toString());
    return true;
  });
  tables_.bytes->all([&](const IValue& byte, const IValue& text) {
    pace.step(16);
    memory_.add(kGpt2EncoderName, HeldMemory::of(text.toString()));
    bytes_by_text_.emplace(text.toString(), static_cast<char>(byte.toInt()));
    return true;
  });
}

Gpt2Encoder::Gpt2Encoder(IValue numbers, IValue ranks, IValue separator, IValue bytes,
                         IValue caching)
    : Gpt2Encoder(BytePairTables::from(kGpt2EncoderName,
                                       std::array{numbers, ranks, separator, bytes, caching})) {}

// Special tokens as words of their own, without one space before and behind each.
std::vector<std::string> Gpt2Encoder::words(const std::string& text) const {
  if (!special_pattern_) return gpt2Words(text);
  WordSplitter splitter;
  const auto add = [&](size_t begin, size_t end) {
    const std::string part = text.substr(begin, end - begin);
    if (special_.contains(part)) {
      splitter.addWhole(part);
    } else {
      splitter.add(part);
    }
  };
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const std::optional<std::string_view> found = special_pattern_->find(text, at);
    if (!found) break;
    WICK_CHECK(!found->empty(), "{}: a special token is found where no text is", kGpt2EncoderName);
    const auto start = static_cast<size_t>(found->data() - text.data());
    if (start > begin) add(begin, isSpace(text[start - 1]) ? start - 1 : start);
    at = start + found->size();
    add(start, at);
    begin = at < text.size() && isSpace(text[at]) ? at + 1 : at;
  }
  if (begin < text.size()) add(begin, text.size());
  return splitter.take();
}

std::vector<int64_t> Gpt2Encoder::encode(const std::string& text) const {
  std::shared_lock lock(*mutex_);
  std::vector<int64_t> numbers;
  for (const std::string& word : words(text)) {
    if (const auto added = added_.find(word); added != added_.end()) {
      numbers.push_back(added->second);
    } else if (special_.contains(word)) {
      numbers.push_back(tables_.numbers->find(IValue(word))->toInt());
    } else {
      for (BytePairs::Token token : pairs_.join(word)) numbers.push_back(pairs_.numberOf(token));
    }
  }
  return numbers;
}

std::vector<std::string> Gpt2Encoder::tokenize(const std::string& text) const {
  std::shared_lock lock(*mutex_);
  Texts tokens(kGpt2EncoderName);
  for (const std::string& word : words(text)) {
    if (special_.contains(word)) {
      tokens.push(word);
    } else {
      for (BytePairs::Token token : pairs_.join(word)) tokens.push(pairs_.textOf(token));
    }
  }
  return tokens.take();
}

std::string Gpt2Encoder::decodeToken(const std::string& token) const {
  std::string text;
  for (size_t at = 0; at < token.size();) {
    const size_t length = characterLength(token, at);
    const auto byte = bytes_by_text_.find(std::string_view(token).substr(at, length));
    WICK_CHECK(byte != bytes_by_text_.end(),
               "{}: Argument passed to at() was not in the map: character '{}' of token '{}'",
               kGpt2EncoderName, token.substr(at, length), token);
    text.push_back(byte->second);
    at += length;
  }
  return text;
}

std::string Gpt2Encoder::decode(const std::vector<int64_t>& numbers) const {
  std::shared_lock lock(*mutex_);
  std::string text;
  bool after_special = false;
  Pace pace;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto added = added_by_number_.find(numbers[i]);
    const auto known = tokens_by_number_.find(numbers[i]);
    const bool is_added = added != added_by_number_.end();
    WICK_CHECK(is_added || known != tokens_by_number_.end(),
               "{}: Argument passed to at() was not in the map: token number {}", kGpt2EncoderName,
               numbers[i]);
    const std::string& token = is_added ? added->second : known->second;
    const bool special = is_added || special_.contains(token);
    pace.step(static_cast<int64_t>(16 + token.size()));
    if (special && i > 0 && !after_special) text += ' ';
    text += special ? token : decodeToken(token);
    if (special && i + 1 < numbers.size()) text += ' ';
    checkTextLength(kGpt2EncoderName, text.size());
    after_special = special;
  }
  return text;
}

// torchtext escapes these signs and no others.
std::unique_ptr<Pattern> Gpt2Encoder::patternOf(const std::set<std::string>& special) const {
  if (special.empty()) return nullptr;
  std::string pattern;
  for (const std::string& token : special) {
    if (!pattern.empty()) pattern += '|';
    for (char c : token) {
      if (c == '|' || c == '[' || c == ']') pattern += '\\';
      pattern += c;
    }
  }
  return std::make_unique<Pattern>(kGpt2EncoderName, pattern);
}

int64_t Gpt2Encoder::addSpecialTokens(const std::map<std::string, std::string>& standard,
                                      const std::vector<std::string>& additional) {
  std::unique_lock lock(*mutex_);
  std::vector<std::string> tokens;
  for (const auto& [role, token] : standard) tokens.push_back(token);
  tokens.insert(tokens.end(), additional.begin(), additional.end());
  std::set<std::string> special = special_;
  for (const std::string& token : tokens) {
    WICK_CHECK(!token.empty(), "{}: a special token is empty", kGpt2EncoderName);
    special.insert(token);
  }
  // Before anything changes, because it may be refused.
  std::unique_ptr<Pattern> pattern = patternOf(special);
  memory_.add(kGpt2EncoderName, 4 * HeldMemory::of(tokens));
  const size_t before = added_.size();
  for (const std::string& token : tokens) {
    if (tables_.numbers->find(IValue(token)) || added_.contains(token)) continue;
    const size_t n = added_.size();
    added_by_number_.emplace(static_cast<int64_t>(tokens_by_number_.size() + n), token);
    added_.emplace(token, static_cast<int64_t>(tables_.numbers->size() + n));
  }
  special_ = std::move(special);
  special_pattern_ = std::move(pattern);
  return static_cast<int64_t>(added_.size() - before);
}

Gpt2Encoder Gpt2Encoder::fromState(const IValue& state) {
  return Gpt2Encoder(
      BytePairTables::from(kGpt2EncoderName, stateParts(kGpt2EncoderName, state, 5)));
}

void defineGpt2Encoder(Extension& extension) {
  extension.op("gpt2_bpe_pre_tokenizer(str _0) -> str[]", &gpt2Words);
  extension.object<Gpt2Encoder>(kGpt2EncoderName)
      .init<IValue, IValue, IValue, IValue, IValue>(kBytePairInit)
      .def("encode", &Gpt2Encoder::encode)
      .def("tokenize", &Gpt2Encoder::tokenize)
      .def("decode", &Gpt2Encoder::decode)
      .def("add_special_tokens", &Gpt2Encoder::addSpecialTokens)
      .pickle(&Gpt2Encoder::state, &Gpt2Encoder::fromState);
}

}  // namespace wick::text

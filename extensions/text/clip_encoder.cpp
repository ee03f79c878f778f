// CLIPEncoder: byte pair encoding as CLIP's: words end with "</w>", and two marks stay whole.
#include <array>
#include <string_view>

#include "core/budget.h"
#include "core/error.h"
#include "extensions/text/byte_pairs.h"
#include "extensions/text/pattern.h"

namespace wick::text {

namespace {

constexpr const char* kClipEncoderName = "CLIPEncoder";
constexpr const char* kWordEnd = "</w>";

// Letters without regard to case: the marks, the ends 's, 't, 're, 've, 'm, 'll and 'd, runs of
// letters, single digits, runs of other signs. Whitespace and bytes that are not UTF-8 are left
// out.
const Pattern& wordPattern() {
  static const Pattern pattern(kClipEncoderName,
                               "(?i)<\\|(?:start|end)oftext\\|>|'(?:[stmd]|re|ve|ll)|\\pL+|\\pN|"
                               "[^\\s\\pL\\pN]+");
  return pattern;
}

class ClipEncoder {
 public:
  explicit ClipEncoder(BytePairTables tables)
      : tables_(std::move(tables)), pairs_(kClipEncoderName, tables_, kWordEnd) {}
  ClipEncoder(IValue numbers, IValue ranks, IValue separator, IValue bytes, IValue caching)
      : ClipEncoder(BytePairTables::from(kClipEncoderName,
                                         std::array{numbers, ranks, separator, bytes, caching})) {}

  std::vector<int64_t> encode(const std::string& text) const {
    std::vector<int64_t> numbers;
    eachWord(
        text, [&](const std::string& mark) { numbers.push_back(numberOfMark(mark)); },
        [&](BytePairs::Token token) { numbers.push_back(pairs_.numberOf(token)); });
    return numbers;
  }
  std::vector<std::string> tokenize(const std::string& text) const {
    Texts tokens(kClipEncoderName);
    eachWord(
        text, [&](const std::string& mark) { tokens.push(mark); },
        [&](BytePairs::Token token) { tokens.push(pairs_.textOf(token)); });
    return tokens.take();
  }

  IValue state() const { return tables_.state(); }
  static ClipEncoder fromState(const IValue& state) {
    return ClipEncoder(
        BytePairTables::from(kClipEncoderName, stateParts(kClipEncoderName, state, 5)));
  }

 private:
  template <class Mark, class Take>
  void eachWord(std::string_view text, Mark mark, Take take) const {
    Pace pace;
    for (size_t at = 0; at < text.size();) {
      const std::optional<std::string_view> word = wordPattern().find(text, at);
      if (!word) return;
      pace.step(64);
      at = static_cast<size_t>(word->data() - text.data()) + word->size();
      const std::string encoded = pairs_.encoded(*word);
      if (encoded == "<|startoftext|>" || encoded == "<|endoftext|>") {
        mark(encoded);
      } else {
        for (BytePairs::Token token : pairs_.join(*word)) take(token);
      }
    }
  }
  int64_t numberOfMark(const std::string& mark) const {
    const IValue* number = tables_.numbers->find(IValue(mark));
    WICK_CHECK(number, "{}: Argument passed to at() was not in the map: token '{}'",
               kClipEncoderName, mark);
    return number->toInt();
  }

  BytePairTables tables_;
  BytePairs pairs_;
};

}  // namespace

void defineClipEncoder(Extension& extension) {
  extension.object<ClipEncoder>(kClipEncoderName)
      .init<IValue, IValue, IValue, IValue, IValue>(kBytePairInit)
      .def("encode", &ClipEncoder::encode)
      .def("tokenize", &ClipEncoder::tokenize)
      .pickle(&ClipEncoder::state, &ClipEncoder::fromState);
}

}  // namespace wick::text

// Regex and RegexTokenizer: replacing by regular expressions, and splitting what that gives at
// spaces. Their states are their arguments.
#include <algorithm>

#include "core/budget.h"
#include "core/error.h"
#include "extensions/text/pattern.h"
#include "extensions/text/text.h"

namespace wick::text {

namespace {

class Regex {
 public:
  explicit Regex(const std::string& pattern) : text_(pattern), pattern_("Regex", pattern) {
    memory_.add("Regex", static_cast<size_t>(Pattern::kMostBytes));
  }

  std::string replace(const std::string& text, const std::string& replacement) const {
    return pattern_.replaceAll(text, replacement);
  }
  std::string state() const { return text_; }

 private:
  std::string text_;
  Pattern pattern_;
  HeldMemory memory_;
};

class RegexTokenizer {
 public:
  RegexTokenizer(std::vector<std::string> patterns, std::vector<std::string> replacements,
                 bool to_lower)
      : patterns_(std::move(patterns)),
        replacements_(std::move(replacements)),
        to_lower_(to_lower) {
    WICK_CHECK(patterns_.size() == replacements_.size(),
               "Expected `patterns` and `replacements` to have same size!");
    for (size_t i = 0; i < patterns_.size(); ++i) {
      checkBudget();
      memory_.add(kName, static_cast<size_t>(Pattern::kMostBytes));
      compiled_.emplace_back(kName, patterns_[i]);
      compiled_[i].checkReplacement(replacements_[i]);
    }
  }

  std::vector<std::string> split(std::string text) const {
    if (to_lower_) {
      std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
    }
    for (size_t i = 0; i < compiled_.size(); ++i) {
      text = compiled_[i].replaceAll(text, replacements_[i]);
    }
    return splitAtSpaces(kName, text);
  }

  IValue state() const {
    return detail::resultValue(std::tuple(patterns_, replacements_, to_lower_));
  }
  static RegexTokenizer fromState(const IValue& state) {
    const std::vector<IValue>& parts = stateParts(kName, state, 3);
    return {parts[0].to<std::vector<std::string>>(), parts[1].to<std::vector<std::string>>(),
            parts[2].to<bool>()};
  }

 private:
  static constexpr const char* kName = "RegexTokenizer";
  std::vector<std::string> patterns_;
  std::vector<std::string> replacements_;
  bool to_lower_;
  std::vector<Pattern> compiled_;
  HeldMemory memory_;
};

}  // namespace

void defineRegex(Extension& extension) {
  extension.object<Regex>("Regex")
      .init<std::string>()
      .def("Sub", &Regex::replace)
      .pickle(&Regex::state, [](const std::string& state) { return Regex(state); });
  extension.object<RegexTokenizer>("RegexTokenizer")
      .init<std::vector<std::string>, std::vector<std::string>, bool>()
      .def("forward", &RegexTokenizer::split)
      .pickle(&RegexTokenizer::state, &RegexTokenizer::fromState);
}

}  // namespace wick::text

#include "serialization/exported/size_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace wick::exported {
namespace {

std::string symbolText(size_t k) {
  return fmt::format("Symbol('s{}', positive=True, integer=True)", k);
}

// factor·term + rest
std::string lineText(int64_t factor, const std::string& term, int64_t rest) {
  std::string out = factor == 1 ? term : fmt::format("Mul(Integer({}), {})", factor, term);
  return rest == 0 ? out : fmt::format("Add({}, Integer({}))", out, rest);
}

}  // namespace

std::optional<std::string> SizeFit::expressionOf(const std::vector<int64_t>& values) const {
  if (std::ranges::adjacent_find(values, std::ranges::not_equal_to()) == values.end()) return "";
  if (auto text = affine(values)) return text;
  if (auto text = product(values)) return text;
  if (auto text = extreme(values)) return text;
  if (auto text = quotient(values)) return text;
  return productOfQuotients(values);
}

std::optional<std::string> SizeFit::affine(const std::vector<int64_t>& values) const {
  for (size_t k = 0; k < examples_[0].size(); ++k) {
    // Two examples that differ in the symbol decide, and all others must agree.
    size_t other = 1;
    while (other < count() && examples_[other][k] == examples_[0][k]) ++other;
    if (other == count()) continue;
    const int64_t run = examples_[other][k] - examples_[0][k];
    const int64_t rise = values[other] - values[0];
    if (rise % run != 0) continue;
    const int64_t factor = rise / run;
    const int64_t rest = values[0] - factor * examples_[0][k];
    bool fits = factor != 0;
    for (size_t e = 0; e < count() && fits; ++e)
      fits = values[e] == factor * examples_[e][k] + rest;
    if (fits) return lineText(factor, symbolText(k), rest);
  }
  return std::nullopt;
}

std::optional<std::string> SizeFit::product(const std::vector<int64_t>& values) const {
  for (size_t a = 0; a < examples_[0].size(); ++a) {
    for (size_t b = a; b < examples_[0].size(); ++b) {
      const int64_t first = examples_[0][a] * examples_[0][b];
      const int64_t second = examples_[1][a] * examples_[1][b];
      if (first == second || (values[1] - values[0]) % (second - first) != 0) continue;
      const int64_t factor = (values[1] - values[0]) / (second - first);
      const int64_t rest = values[0] - factor * first;
      bool fits = factor != 0;
      for (size_t e = 0; e < count() && fits; ++e) {
        fits = values[e] == factor * examples_[e][a] * examples_[e][b] + rest;
      }
      if (!fits) continue;
      const std::string term = a == b ? fmt::format("Pow({}, Integer(2))", symbolText(a))
                                      : fmt::format("Mul({}, {})", symbolText(a), symbolText(b));
      return lineText(factor, term, rest);
    }
  }
  return std::nullopt;
}

std::optional<std::string> SizeFit::extreme(const std::vector<int64_t>& values) const {
  const auto sizes_of = [&](size_t k) {
    std::vector<int64_t> sizes;
    for (const std::vector<int64_t>& example : examples_) sizes.push_back(example[k]);
    return sizes;
  };
  for (size_t a = 0; a < examples_[0].size(); ++a) {
    const std::vector<int64_t> first = sizes_of(a);
    // The number beside the size is the extreme of the values.
    std::vector<std::pair<std::vector<int64_t>, std::string>> others;
    for (const int64_t number : {std::ranges::max(values), std::ranges::min(values)}) {
      others.emplace_back(std::vector<int64_t>(count(), number),
                          fmt::format("Integer({})", number));
    }
    for (size_t b = a + 1; b < examples_[0].size(); ++b) {
      others.emplace_back(sizes_of(b), symbolText(b));
    }
    for (const auto& [second, text] : others) {
      bool is_least = true, is_most = true;
      for (size_t e = 0; e < count(); ++e) {
        is_least = is_least && values[e] == std::min(first[e], second[e]);
        is_most = is_most && values[e] == std::max(first[e], second[e]);
      }
      if (is_least || is_most) {
        return fmt::format("{}({}, {})", is_least ? "Min" : "Max", text, symbolText(a));
      }
    }
  }
  return std::nullopt;
}

// factor · Π (s + b) // d, as the number of elements after convolutions and pooling is.
std::optional<std::string> SizeFit::productOfQuotients(const std::vector<int64_t>& values) const {
  struct Part {
    std::vector<int64_t> in_examples;
    std::string text;
  };
  constexpr size_t kMostSymbols = 3;
  const size_t symbols = examples_[0].size();
  if (symbols == 0 || symbols > kMostSymbols) return std::nullopt;
  std::vector<std::vector<Part>> choices(symbols);
  for (size_t k = 0; k < symbols; ++k) {
    const auto add = [&](int64_t divisor, int64_t shift) {
      Part part;
      for (const std::vector<int64_t>& example : examples_) {
        part.in_examples.push_back((example[k] + shift) / divisor);
      }
      part.text = divisor == 1 ? symbolText(k)
                               : fmt::format("FloorDiv({}, Integer({}))",
                                             lineText(1, symbolText(k), shift), divisor);
      choices[k].push_back(std::move(part));
    };
    choices[k].push_back({std::vector<int64_t>(count(), 1), ""});
    add(1, 0);
    for (const int64_t divisor : {2, 3, 4, 8, 16, 32}) {
      for (const int64_t shift : {int64_t{0}, int64_t{1}, divisor - 1}) add(divisor, shift);
    }
  }
  std::vector<size_t> at(symbols, 0);
  while (true) {
    std::vector<int64_t> product(count(), 1);
    std::string text;
    for (size_t k = 0; k < symbols; ++k) {
      const Part& part = choices[k][at[k]];
      for (size_t e = 0; e < count(); ++e) product[e] *= part.in_examples[e];
      if (!part.text.empty())
        text = text.empty() ? part.text : fmt::format("Mul({}, {})", text, part.text);
    }
    const int64_t factor = product[0] == 0 ? 0 : values[0] / product[0];
    bool fits = factor != 0 && !text.empty();
    for (size_t e = 0; e < count() && fits; ++e) fits = values[e] == factor * product[e];
    if (fits) return lineText(factor, text, 0);
    size_t k = 0;
    while (k < symbols && ++at[k] == choices[k].size()) at[k++] = 0;
    if (k == symbols) return std::nullopt;
  }
}

std::optional<std::string> SizeFit::quotient(const std::vector<int64_t>& values) const {
  constexpr int64_t kMostDivisor = 64;
  const auto floorDiv = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); };
  for (size_t k = 0; k < examples_[0].size(); ++k) {
    for (int64_t divisor = 2; divisor <= kMostDivisor; ++divisor) {
      for (int64_t shift = -divisor; shift <= divisor; ++shift) {
        const int64_t rest = values[0] - floorDiv(examples_[0][k] + shift, divisor);
        bool fits = true;
        for (size_t e = 0; e < count() && fits; ++e) {
          fits = values[e] == floorDiv(examples_[e][k] + shift, divisor) + rest;
        }
        if (!fits) continue;
        return lineText(
            1, fmt::format("FloorDiv({}, Integer({}))", lineText(1, symbolText(k), shift), divisor),
            rest);
      }
    }
  }
  return std::nullopt;
}

}  // namespace wick::exported

#include "tools/named_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "tools/options.h"

namespace wick::cli {
namespace {

bool isCapital(char c) {
  return c >= 'A' && c <= 'Z';
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isOfName(char c) {
  return isCapital(c) || isDigit(c) || c == '_';
}
bool isOfWord(char c) {
  return isOfName(c) || (c >= 'a' && c <= 'z');
}

struct Place {
  size_t begin, size;
};

// The names in a word, which are parts between x, or all of it.
void namesInWord(std::string_view word, size_t at, std::vector<Place>& places) {
  for (size_t begin = 0; begin < word.size();) {
    size_t end = begin;
    while (end < word.size() && isOfName(word[end])) ++end;
    // Where the dtype begins no further size follows.
    if (end == begin || (end < word.size() && word[end] != 'x')) return;
    if (isCapital(word[begin])) places.push_back({at + begin, end - begin});
    begin = end + 1;
  }
}

std::vector<Place> namesIn(std::string_view text) {
  std::vector<Place> places;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '@') break;  // a file
    if (c == '"' || c == '\'') {
      const size_t end = text.find(c, at + 1);
      if (end == std::string_view::npos) break;
      at = end + 1;
    } else if (isOfWord(c)) {
      size_t end = at;
      while (end < text.size() && isOfWord(text[end])) ++end;
      // The name of an argument may look like that of a size.
      if (end == text.size() || text[end] != '=' ||
          text.substr(at, end - at).find('x') != std::string_view::npos) {
        namesInWord(text.substr(at, end - at), at, places);
      }
      at = end;
    } else {
      ++at;
    }
  }
  return places;
}

int64_t numberOf(const char* option, const std::string& text, std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 0) {
    throw CommandLineError(fmt::format("{} {}: expected a size, got '{}'", option, text, digits));
  }
  return value;
}

std::string nameOf(const char* option, const std::string& text, const char* expected) {
  const std::string name = text.substr(0, text.find('='));
  const bool good = !name.empty() && isCapital(name[0]) && std::ranges::all_of(name, isOfName);
  if (!good || name.size() == text.size()) {
    throw CommandLineError(fmt::format("{}: expected {}, got '{}'", option, expected, text));
  }
  return name;
}

aot::Symbol rangeOf(const std::string& text) {
  aot::Symbol symbol;
  symbol.name = nameOf("--range", text, "NAME=SMALLEST..LARGEST, as N=1..64");
  const std::string_view rest = std::string_view(text).substr(symbol.name.size() + 1);
  const size_t dots = rest.find(".."), colon = rest.find(':');
  if (dots == std::string_view::npos) {
    throw CommandLineError(
        fmt::format("--range: expected NAME=SMALLEST..LARGEST, as N=1..64, got '{}'", text));
  }
  symbol.minimum = numberOf("--range", text, rest.substr(0, dots));
  symbol.maximum = numberOf("--range", text, rest.substr(dots + 2, colon - dots - 2));
  if (colon != std::string_view::npos) {
    symbol.step = numberOf("--range", text, rest.substr(colon + 1));
  }
  if (symbol.minimum > symbol.maximum || symbol.step < 1) {
    throw CommandLineError(fmt::format(
        "--range {}: expected a smallest size, one that is not smaller, and a step above 0", text));
  }
  return symbol;
}

aot::Symbol fixedOf(const std::string& text) {
  aot::Symbol symbol;
  symbol.name = nameOf("--static", text, "NAME=SIZE, as N=4");
  symbol.minimum = symbol.maximum =
      numberOf("--static", text, std::string_view(text).substr(symbol.name.size() + 1));
  return symbol;
}

// What the options say of names.
std::vector<aot::Symbol> declared(const std::vector<std::string>& ranges,
                                  const std::vector<std::string>& fixed) {
  std::vector<aot::Symbol> all;
  for (const std::string& text : ranges) all.push_back(rangeOf(text));
  for (const std::string& text : fixed) all.push_back(fixedOf(text));
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (all[i].name == all[k].name) {
        throw CommandLineError(
            fmt::format("--range and --static: '{}' is given twice", all[i].name));
      }
    }
  }
  return all;
}

}  // namespace

std::vector<aot::Symbol> namedSizes(const std::vector<std::string>& inputs,
                                    const std::vector<std::string>& ranges,
                                    const std::vector<std::string>& fixed) {
  const std::vector<aot::Symbol> known = declared(ranges, fixed);
  std::vector<aot::Symbol> symbols;
  for (const std::string& input : inputs) {
    for (const Place& place : namesIn(input)) {
      const std::string name = input.substr(place.begin, place.size);
      const auto same = [&](const aot::Symbol& s) { return s.name == name; };
      if (std::ranges::any_of(symbols, same)) continue;
      const auto at = std::ranges::find_if(known, same);
      symbols.push_back(at == known.end() ? aot::Symbol{.name = name} : *at);
    }
  }
  if (symbols.size() > aot::kMostSymbols) {
    throw CommandLineError(fmt::format("--input: expected at most {} names of sizes, got {}",
                                       aot::kMostSymbols, symbols.size()));
  }
  return symbols;
}

void checkNames(const std::vector<std::string>& inputs, const std::vector<std::string>& ranges,
                const std::vector<std::string>& fixed) {
  const std::vector<aot::Symbol> used = namedSizes(inputs, ranges, fixed);
  for (const aot::Symbol& symbol : declared(ranges, fixed)) {
    if (std::ranges::none_of(used, [&](const aot::Symbol& s) { return s.name == symbol.name; })) {
      throw CommandLineError(
          fmt::format("--range and --static: no input has a size '{}'", symbol.name));
    }
  }
}

std::vector<std::string> withSizes(const std::vector<std::string>& inputs,
                                   const std::vector<aot::Symbol>& symbols,
                                   const std::vector<int64_t>& sizes) {
  std::vector<std::string> results;
  for (const std::string& input : inputs) {
    std::string text;
    size_t done = 0;
    for (const Place& place : namesIn(input)) {
      const std::string name = input.substr(place.begin, place.size);
      text += input.substr(done, place.begin - done);
      for (size_t s = 0; s < symbols.size(); ++s) {
        if (symbols[s].name == name) text += fmt::format("{}", sizes[s]);
      }
      done = place.begin + place.size;
    }
    results.push_back(text + input.substr(done));
  }
  return results;
}

}  // namespace wick::cli

// Fuzzing with a fixed number of seeded inputs, so that a failure repeats. A target is a test:
//
//   TEST(Fuzz, Lexer) {
//     fuzz({"x = 1", "def f(): pass"}, fuzzCount(2000), [](const std::string& input) { ... });
//   }
//
// Environment: WICK_FUZZ_COUNT (inputs of each target), WICK_FUZZ_SEED (other inputs),
// WICK_FUZZ_LAST (a file that receives each input before it is tried).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/answer.h"

namespace wick {

// A changed copy of one of the seeds, with pieces of the others in it: bytes flipped, replaced,
// inserted and deleted, stretches copied, repeated, dropped and spliced. At most `max_size` bytes.
inline std::string mutate(const std::vector<std::string>& seeds, std::mt19937_64& random,
                          size_t max_size = 1 << 16) {
  auto below = [&](size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random() % bound); };
  // Bytes where grammars and binary formats have their edges.
  static constexpr char kInteresting[] = "\0\1\x7f\x80\xff\n\t\r '\"\\()[]{}.,:;#=<>*-09eEfjx_@%";
  std::string text = seeds[below(seeds.size())];
  size_t changes = 1 + below(6);
  for (size_t i = 0; i < changes; ++i) {
    size_t at = below(text.size() + 1);
    size_t length = below(std::min<size_t>(text.size() - at, 64) + 1);
    const std::string& other = seeds[below(seeds.size())];
    size_t other_at = below(other.size());
    switch (below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = kInteresting[below(sizeof(kInteresting) - 1)];
        break;
      case 2:
        text.insert(at, 1, kInteresting[below(sizeof(kInteresting) - 1)]);
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      case 5: {
        std::string piece = text.substr(at, 1 + below(8));
        for (size_t n = below(600); n > 0 && text.size() < max_size; --n) text.insert(at, piece);
        break;
      }
      case 6:
        text.insert(at, other.substr(other_at, below(64)));
        break;
      default:
        text = text.substr(0, at) + other.substr(other_at);
        break;
    }
  }
  if (text.size() > max_size) text.resize(max_size);
  return text;
}

// A copy of a program with a few of its words (names, numbers, operators) exchanged for others of
// the program, dropped or repeated, so that most copies still parse.
inline std::string changeWords(const std::string& text, std::mt19937_64& random) {
  auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && isWord(text[at]) && isWord(text[end])) ++end;
    words.push_back(text.substr(at, end - at));
    at = end;
  }
  if (words.empty()) return text;
  for (size_t n = 1 + below(4); n > 0; --n) {
    // Indentation mostly stays as it is.
    size_t at = below(words.size());
    if (words[at] == " " || words[at] == "\n") at = below(words.size());
    size_t other = below(words.size());
    switch (below(4)) {
      case 0:
        words[at].clear();
        break;
      case 1:
        words[at] += words[at];
        break;
      default:
        words[at] = words[other];
        break;
    }
  }
  std::string out;
  for (const std::string& word : words) out += word;
  return out;
}

// How many inputs a target tries: WICK_FUZZ_COUNT in the environment, else `usual`.
inline size_t fuzzCount(size_t usual) {
  const char* count = std::getenv("WICK_FUZZ_COUNT");
  return count != nullptr ? std::strtoull(count, nullptr, 10) : usual;
}

// The share of a generator in a target that has several: `percent` of WICK_FUZZ_COUNT, else
// `usual`.
inline size_t fuzzShare(size_t usual, size_t percent) {
  return std::getenv("WICK_FUZZ_COUNT") != nullptr ? fuzzCount(0) * percent / 100 : usual;
}

// Runs `target` on `count` inputs that `make` makes; fails with the first that is not answered
// properly.
inline void fuzzGenerated(size_t count, const std::function<std::string(std::mt19937_64&)>& make,
                          const std::function<void(const std::string&)>& target) {
  const char* seed = std::getenv("WICK_FUZZ_SEED");
  std::mt19937_64 random(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
  for (size_t i = 0; i < count; ++i) {
    std::string input = make(random);
    ASSERT_EQ(failureOf(input, target), "") << "input " << i << ":\n" << input;
  }
}

// Runs `target` on every seed and on `count` mutations.
inline void fuzz(const std::vector<std::string>& seeds, size_t count,
                 const std::function<void(const std::string&)>& target) {
  for (const std::string& seed : seeds) {
    ASSERT_EQ(failureOf(seed, target), "") << testing::PrintToString(seed);
  }
  fuzzGenerated(
      count, [&](std::mt19937_64& random) { return mutate(seeds, random); }, target);
}

}  // namespace wick

// Fuzzing with a fixed number of seeded inputs, so that a failure repeats. A target is a test:
//
//   TEST(Fuzz, Lexer) {
//     fuzz({"x = 1", "def f(): pass"}, 2000, [](const std::string& input) { ... });
//   }
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"

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

// Runs `target` on every seed and on `count` mutations. An Error other than InternalError is a
// proper answer to bad input; anything else fails the test and prints the input.
inline void fuzz(const std::vector<std::string>& seeds, size_t count,
                 const std::function<void(const std::string&)>& target, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < seeds.size() + count; ++i) {
    std::string input = i < seeds.size() ? seeds[i] : mutate(seeds, random);
    std::string failure;
    try {
      target(input);
    } catch (const InternalError& error) {
      failure = error.what();
    } catch (const Error&) {
    } catch (const std::exception& error) {
      failure = std::string("unexpected exception: ") + error.what();
    }
    ASSERT_EQ(failure, "") << "input " << i << ": " << testing::PrintToString(input);
  }
}

}  // namespace wick

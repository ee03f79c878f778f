// Byte pair encoding: which neighbours become one token first, and the numbers of tokens.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/keyed_hash.h"
#include "extensions/text/text.h"

namespace wick::text {

// What torchtext's encoders are made of. `ranks` has keys FIRST + separator + SECOND; of two
// neighbours in a word those with the lowest rank are joined first. `bytes` says which text stands
// for a byte. The dicts are copies that nobody else changes.
struct BytePairTables {
  DictRef numbers;  // Dict[str, int], of tokens
  DictRef ranks;    // Dict[str, int]
  std::string separator;
  DictRef bytes;  // Dict[int, str]
  bool caching;   // torchtext's; here nothing depends on it

  // (numbers, ranks, separator, bytes, caching), as torchtext's constructors and states have them.
  static BytePairTables from(const char* class_name, std::span<const IValue> parts);
  IValue state() const;
};

// Its arguments in programs.
inline constexpr const char* kBytePairInit =
    "__init__(Dict(str, int) _0, Dict(str, int) _1, str _2, Dict(int, str) _3, bool _4) -> ()";

// Thread-safe, as it never changes.
class BytePairs {
 public:
  // Token texts by small numbers of their own: what is compared while words are joined.
  using Token = int32_t;

  // `suffix` is what the last token of each word ends with.
  BytePairs(const char* class_name, const BytePairTables& tables, const std::string& suffix);

  // The tokens that the bytes of a word stand for, joined as the ranks say. RuntimeError when the
  // tables say nothing about a byte.
  std::vector<Token> join(std::string_view word) const;
  const std::string& textOf(Token token) const { return *texts_[static_cast<size_t>(token)]; }
  // RuntimeError for a token that has no number.
  int64_t numberOf(Token token) const;
  // What stands for the bytes of a word, one after the other.
  std::string encoded(std::string_view word) const;

 private:
  struct Merge {
    int64_t rank;
    Token joined;
  };
  class Joiner;

  Token intern(const std::string& text);
  const Merge* find(Token first, Token second) const;
  Token byteToken(const std::vector<Token>& table, char byte) const;

  const char* class_name_;
  std::unordered_map<std::string, Token, KeyedHash, std::equal_to<>> tokens_;
  std::vector<const std::string*> texts_;  // keys of tokens_
  std::vector<std::optional<int64_t>> numbers_;
  std::unordered_map<uint64_t, Merge, KeyedHash> merges_;
  // By the byte; -1 for those that the tables do not have.
  std::vector<Token> within_, last_;
  // The rank that neighbours have which are never joined: torchtext's.
  int64_t unknown_rank_;
  HeldMemory memory_;
};

}  // namespace wick::text

// GPT2BPEEncoder: byte pair encoding of words as GPT-2 separates them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <shared_mutex>

#include "extensions/text/byte_pairs.h"
#include "extensions/text/pattern.h"

namespace wick::text {

// The words of a text: with the space before it, runs of letters, of digits, of other signs, the
// ends 's, 't, 're, 've, 'm, 'll and 'd, and runs of whitespace but for the space that belongs to
// the next word. Bytes that are not UTF-8 are left out.
std::vector<std::string> gpt2Words(const std::string& text);

class Gpt2Encoder {
 public:
  explicit Gpt2Encoder(BytePairTables tables);
  Gpt2Encoder(IValue numbers, IValue ranks, IValue separator, IValue bytes, IValue caching);

  std::vector<int64_t> encode(const std::string& text) const;
  std::vector<std::string> tokenize(const std::string& text) const;
  std::string decode(const std::vector<int64_t>& numbers) const;
  // Tokens that are never split. Those without a number get the next ones. Returns how many did.
  int64_t addSpecialTokens(const std::map<std::string, std::string>& standard,
                           const std::vector<std::string>& additional);
  // As torchtext's, it says nothing of special tokens.
  IValue state() const { return tables_.state(); }
  static Gpt2Encoder fromState(const IValue& state);

 private:
  std::vector<std::string> words(const std::string& text) const;
  std::unique_ptr<Pattern> patternOf(const std::set<std::string>& special) const;
  std::string decodeToken(const std::string& token) const;

  std::unique_ptr<std::shared_mutex> mutex_ = std::make_unique<std::shared_mutex>();
  BytePairTables tables_;
  BytePairs pairs_;
  std::unordered_map<int64_t, std::string, KeyedHash> tokens_by_number_;
  std::unordered_map<std::string, char, KeyedHash, std::equal_to<>> bytes_by_text_;
  std::set<std::string> special_;
  std::unique_ptr<Pattern> special_pattern_;
  std::unordered_map<std::string, int64_t, KeyedHash, std::equal_to<>> added_;
  std::unordered_map<int64_t, std::string, KeyedHash> added_by_number_;
  HeldMemory memory_;
};

}  // namespace wick::text

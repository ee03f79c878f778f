// Vocab: tokens and their indices, both ways.
#pragma once

#include <memory>
#include <optional>
#include <shared_mutex>
#include <string_view>

#include "core/keyed_hash.h"
#include "extensions/text/text.h"

namespace wick::text {

class Vocab {
 public:
  // RuntimeError for a token that occurs twice. What is not among the tokens has the default index;
  // without one it is an error to look it up.
  explicit Vocab(std::vector<std::string> tokens, std::optional<int64_t> default_index = {});

  int64_t size() const;
  bool contains(std::string_view token) const;
  int64_t indexOf(std::string_view token) const;
  std::vector<int64_t> indicesOf(const std::vector<std::string>& tokens) const;
  std::string tokenAt(int64_t index) const;
  std::vector<std::string> tokensAt(const std::vector<int64_t>& indices) const;
  std::vector<std::string> tokens() const;
  IValue indicesByToken() const;

  std::optional<int64_t> defaultIndex() const;
  void setDefaultIndex(std::optional<int64_t> index);
  void append(std::string token);
  void insert(std::string token, int64_t index);

  // ("0.0.2", [the default index], tokens, [])
  IValue state() const;
  static Vocab fromState(const IValue& state);

 private:
  int64_t count() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t find(std::string_view token) const;
  void add(std::string token, int64_t index);
  void checkNew(const std::string& token) const;

  // Behind a pointer, so that a Vocab can be moved.
  std::unique_ptr<std::shared_mutex> mutex_ = std::make_unique<std::shared_mutex>();
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int64_t, KeyedHash, std::equal_to<>> indices_;
  std::optional<int64_t> default_index_;
  HeldMemory memory_;
};

}  // namespace wick::text

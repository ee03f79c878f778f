// Parsing JSON under limits.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "serialization/load_budget.h"

namespace wick::exported {

using Json = nlohmann::json;

// Called for each object that is complete: true when it has been used up, and nothing of it is to be kept. `depth` is the number
// of objects and arrays around it, and keys[i] the last key that an object at depth i - 1 named: keys[1] is one of the outermost
// object. For elements of arrays the entry at their own depth means nothing.
using TakeObject =
    std::function<bool(size_t depth, std::span<const std::string> keys, const Json& object)>;
// Whether the value of this key is read over.
using SkipKey = bool (*)(std::string_view key);

// `name` begins messages about the text. Memory is taken from `budget`, and stays taken for the rest. Python's
// names of infinities and NaN become strings. Throws LoadError for text that is no JSON, nests deeper than 96 levels or takes
// too much memory.
Json parseJson(std::string_view text, const std::string& name, LoadBudget& budget,
               SkipKey skip = nullptr, const TakeObject& take = nullptr);

// A part of a JSON text, and its name in messages. Cheap to copy; text and name of the place must outlive it.
class JsonView {
 public:
  // `place` begins messages: "model.pt2: record 'models/model.json': node 3".
  JsonView(const Json& json, const std::string& place, const char* key = nullptr)
      : json_(&json), place_(&place), key_(key) {}

  const Json& json() const { return *json_; }
  bool isNull() const { return json_->is_null(); }
  size_t size() const { return json_->size(); }

  // Throws LoadError that says where the text is wrong.
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<const Args&...> format, const Args&... args) const {
    failWith(fmt::format(format, args...));
  }
  // The member of an object; LoadError when there is none.
  JsonView at(const char* key) const;
  // Whether the object has the member, and it is not null.
  bool has(const char* key) const;
  // An element of an array.
  JsonView at(size_t i) const { return {(*json_)[i], *place_, key_}; }
  const JsonView& expectArray() const;
  const JsonView& expectObject() const;
  // The only member of an object, as the schema writes unions. The key belongs to the text.
  std::pair<const std::string*, JsonView> onlyMember() const;

  int64_t integer() const;
  double number() const;  // infinities and NaN may be strings
  bool boolean() const;
  const std::string& text() const;

 private:
  [[noreturn]] void failWith(const std::string& message) const;
  const Json* json_;
  const std::string* place_;
  const char* key_;
};

}  // namespace wick::exported

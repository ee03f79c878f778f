#include "serialization/exported/json_text.h"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

namespace wick::exported {
namespace {

constexpr int kMaxJsonDepth = 96;
// The memory of a value of the parsed text, its string apart.
constexpr uint64_t kValueMemory = 48;

constexpr std::string_view kNames[] = {"-Infinity", "Infinity", "NaN"};

// Returns a copy in which names of infinities and NaN outside of strings are strings; nullopt when there are none.
std::optional<std::string> withNamesQuoted(std::string_view text) {
  if (text.find("Infinity") == std::string_view::npos &&
      text.find("NaN") == std::string_view::npos) {
    return std::nullopt;
  }
  std::string quoted;
  quoted.reserve(text.size() + 64);
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    if (in_string) {
      if (text[i] == '\\' && i + 1 < text.size()) quoted += text[i++];
      if (text[i] == '"') in_string = false;
      quoted += text[i++];
      continue;
    }
    const std::string_view* found = nullptr;
    for (const std::string_view& name : kNames) {
      if (text.substr(i).starts_with(name)) found = &name;
    }
    if (found) {
      quoted += '"';
      quoted += *found;
      quoted += '"';
      i += found->size();
      continue;
    }
    in_string = text[i] == '"';
    quoted += text[i++];
  }
  return quoted;
}

// Receives the events of the parser, and keeps what nobody takes.
class Builder {
 public:
  Builder(const std::string& name, LoadBudget& budget, SkipKey skip, const TakeObject& take)
      : name_(name), budget_(budget), skip_(skip), take_(take) {}

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > kMaxJsonDepth) {
      throwLoadError("{}: the JSON nests deeper than {} levels", name_, kMaxJsonDepth);
    }
    switch (event) {
      case Event::key: {
        const std::string& key = parsed.get_ref<const std::string&>();
        charge(key.size());
        at(keys_, depth) = key;
        return !skip_ || !skip_(key);
      }
      case Event::value:
        charge(parsed.is_string() ? parsed.get_ref<const std::string&>().size() : 0);
        return true;
      case Event::object_start:
        charge(0);
        at(starts_, depth) = taken_;
        return true;
      case Event::array_start:
        charge(0);
        return true;
      case Event::array_end:
        return true;
      case Event::object_end: {
        const uint64_t start = at(starts_, depth);
        if (!take_ || !take_(static_cast<size_t>(depth), keys_, parsed)) return true;
        budget_.giveBack(taken_ - start);
        taken_ = start;
        return false;
      }
    }
    return true;
  }

 private:
  template <class T>
  static T& at(std::vector<T>& levels, int depth) {
    if (levels.size() <= static_cast<size_t>(depth)) levels.resize(static_cast<size_t>(depth) + 1);
    return levels[static_cast<size_t>(depth)];
  }
  void charge(uint64_t bytes) {
    const uint64_t more = kValueMemory + bytes;
    if (!budget_.take(more)) {
      throwLoadError("{}: the JSON takes more memory than a file of this size may", name_);
    }
    taken_ += more;
  }

  const std::string& name_;
  LoadBudget& budget_;
  const SkipKey skip_;
  const TakeObject& take_;
  std::vector<std::string> keys_;  // by depth
  std::vector<uint64_t> starts_;   // memory taken before the object at each depth
  uint64_t taken_ = 0;
};

}  // namespace

Json parseJson(std::string_view text, const std::string& name, LoadBudget& budget, SkipKey skip,
               const TakeObject& take) {
  if (!budget.take(text.size())) {
    throwLoadError("{}: the JSON takes more memory than a file of this size may", name);
  }
  const std::optional<std::string> quoted = withNamesQuoted(text);
  if (quoted) text = *quoted;
  Builder builder(name, budget, skip, take);
  try {
    Json json = Json::parse(text.begin(), text.end(),
                            [&](int depth, Json::parse_event_t event, Json& parsed) {
                              return builder(depth, event, parsed);
                            });
    budget.giveBack(text.size());
    return json;
  } catch (const Json::exception& error) {
    std::string what = error.what();
    if (const size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    throwLoadError("{}: no JSON: {}", name, what.substr(0, 300));
  }
}

void JsonView::failWith(const std::string& message) const {
  if (key_) throwLoadError("{}: field '{}': {}", *place_, key_, message);
  throwLoadError("{}: {}", *place_, message);
}

JsonView JsonView::at(const char* key) const {
  expectObject();
  const auto found = json_->find(key);
  if (found == json_->end()) fail("there is no field '{}'", key);
  return {*found, *place_, key};
}

bool JsonView::has(const char* key) const {
  const auto found = expectObject().json_->find(key);
  return found != json_->end() && !found->is_null() && !found->is_discarded();
}

const JsonView& JsonView::expectArray() const {
  if (!json_->is_array()) fail("expected an array, found {}", json_->type_name());
  return *this;
}

const JsonView& JsonView::expectObject() const {
  if (!json_->is_object()) fail("expected an object, found {}", json_->type_name());
  return *this;
}

std::pair<const std::string*, JsonView> JsonView::onlyMember() const {
  if (expectObject().size() != 1) fail("expected one member, found {}", json_->size());
  const auto first = json_->begin();
  return {&first.key(), JsonView(first.value(), *place_, first.key().c_str())};
}

int64_t JsonView::integer() const {
  if (json_->is_number_unsigned() &&
      json_->get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}) {
    fail("the integer is too large");
  }
  if (!json_->is_number_integer()) fail("expected an integer, found {}", json_->type_name());
  return json_->get<int64_t>();
}

double JsonView::number() const {
  if (json_->is_number()) return json_->get<double>();
  if (json_->is_string()) {
    const std::string& name = text();
    if (name == "Infinity") return std::numeric_limits<double>::infinity();
    if (name == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (name == "NaN") return std::nan("");
  }
  fail("expected a number, found {}", json_->type_name());
}

bool JsonView::boolean() const {
  if (!json_->is_boolean()) fail("expected a boolean, found {}", json_->type_name());
  return json_->get<bool>();
}

const std::string& JsonView::text() const {
  if (!json_->is_string()) fail("expected a string, found {}", json_->type_name());
  return json_->get_ref<const std::string&>();
}

}  // namespace wick::exported

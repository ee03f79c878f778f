#include "serialization/exported/json_text.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace wick::exported {
namespace {

constexpr size_t kMaxJsonDepth = 96;
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

// Receives the events of the parser, and keeps what nobody takes. The library's own callbacks look through a whole array after
// each object in it.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(const std::string& name, LoadBudget& budget, SkipKey skip, const TakeObject& take)
      : name_(name), budget_(budget), skip_(skip), take_(take) {}

  Json result() { return std::move(root_); }

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(number_integer_t value) override { return add(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return add(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return add(Json(value)); }
  bool string(string_t& value) override {
    const size_t size = value.size();
    return add(Json(std::move(value)), size);
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return begin(Json::value_t::object); }
  bool start_array(std::size_t) override { return begin(Json::value_t::array); }
  bool key(string_t& key) override {
    if (skipped_ > 0) return true;
    charge(key.size());
    skips_next_ = skip_ && skip_(key);
    keys_.at(open_.size()) = std::move(key);
    return true;
  }
  bool end_array() override {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      open_.pop_back();
    }
    return true;
  }
  bool end_object() override {
    if (skipped_ > 0) {
      --skipped_;
      return true;
    }
    const Open ended = open_.back();
    open_.pop_back();
    if (!take_ || !take_(open_.size(), keys_, *ended.json)) return true;
    if (!open_.empty()) removeLast();
    budget_.giveBack(taken_ - ended.taken);
    taken_ = ended.taken;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& error) override {
    std::string what = error.what();
    if (const size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    throwLoadError("{}: no JSON: {}", name_, what.substr(0, 300));
  }

 private:
  struct Open {
    Json* json;
    uint64_t taken;  // memory before it
  };

  bool begin(Json::value_t type) {
    if (open_.size() + skipped_ > kMaxJsonDepth) {
      throwLoadError("{}: the JSON nests deeper than {} levels", name_, kMaxJsonDepth);
    }
    if (skipped_ > 0 || std::exchange(skips_next_, false)) {
      ++skipped_;
      return true;
    }
    const uint64_t before = taken_;
    charge(0);
    open_.push_back({place(Json(type)), before});
    if (keys_.size() <= open_.size()) keys_.resize(open_.size() + 1);
    return true;
  }

  bool add(Json value, uint64_t bytes = 0) {
    if (skipped_ > 0 || std::exchange(skips_next_, false)) return true;
    charge(bytes);
    place(std::move(value));
    return true;
  }

  Json* place(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& outer = *open_.back().json;
    if (outer.is_array()) {
      outer.push_back(std::move(value));
      return &outer.back();
    }
    Json& member = outer[keys_[open_.size()]];
    member = std::move(value);
    return &member;
  }

  void removeLast() {
    Json& outer = *open_.back().json;
    if (outer.is_array()) {
      outer.erase(outer.size() - 1);
    } else {
      outer.erase(keys_[open_.size()]);
    }
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
  Json root_;
  std::vector<Open> open_;         // objects and arrays around what comes next
  std::vector<std::string> keys_;  // by depth
  bool skips_next_ = false;        // the value of the last key is read over
  size_t skipped_ = 0;             // open objects and arrays within the value that is read over
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
  Json::sax_parse(text.begin(), text.end(), &builder);
  budget.giveBack(text.size());
  return builder.result();
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

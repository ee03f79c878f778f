#include "streams/overrides.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error_types.h"
#include "streams/parsed_json.h"

namespace wick::streams {

namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse(size_t rule, const std::string& key, const std::string& expected,
                         const Json& found) {
  throw UsageError(fmt::format("overrides, rule {}: expected {} for \"{}\", found {}", rule + 1,
                               expected, key, shownJson(found)));
}

LayerRule ruleFrom(const Json& json, size_t index) {
  if (!json.is_object()) {
    throw UsageError(
        fmt::format("overrides, rule {}: expected an object in the list of \"layers\", found {}",
                    index + 1, shownJson(json)));
  }
  LayerRule rule;
  const auto text = [&](const std::string& key, const Json& value) {
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) {
      refuse(index, key, "a text that is not empty", value);
    }
    return value.get<std::string>();
  };
  const auto texts = [&](const std::string& key, const Json& value) {
    if (!value.is_array()) refuse(index, key, "a list of texts", value);
    std::vector<std::string> list;
    for (const Json& element : value) list.push_back(text(key, element));
    return list;
  };
  const auto count = [&](const std::string& key, const Json& value, int64_t least) {
    constexpr int64_t kMost = 1 << 20;
    if (!value.is_number_integer() || value.get<int64_t>() < least ||
        value.get<int64_t>() > kMost) {
      refuse(index, key, fmt::format("a number from {} to {}", least, kMost), value);
    }
    return value.get<int64_t>();
  };
  for (const auto& [key, value] : json.items()) {
    if (key == "layer") {
      rule.layer = text(key, value);
    } else if (key == "class") {
      rule.class_name = text(key, value);
    } else if (key == "operator") {
      rule.op = text(key, value);
    } else if (key == "grain") {
      const std::string grain = text(key, value);
      if (grain == "module") {
        rule.grain = LayerRule::Grain::Module;
      } else if (grain == "operators") {
        rule.grain = LayerRule::Grain::Operators;
      } else if (grain == "before") {
        rule.grain = LayerRule::Grain::Before;
      } else {
        refuse(index, key, "\"module\", \"operators\" or \"before\"", value);
      }
    } else if (key == "filter_name") {
      rule.filter_name = text(key, value);
    } else if (key == "options") {
      rule.options = texts(key, value);
    } else if (key == "state") {
      rule.state = texts(key, value);
    } else if (key == "srcs") {
      rule.srcs = count(key, value, 0);
    } else if (key == "dests") {
      rule.dests = count(key, value, 0);
    } else if (key == "replicas") {
      rule.replicas = count(key, value, 1);
    } else if (key == "stateful") {
      if (!value.is_boolean()) refuse(index, key, "true or false", value);
      rule.stateful = value.get<bool>();
    } else {
      throw UsageError(fmt::format(
          "overrides, rule {}: there is no key \"{}\"; there are layer, class, operator, grain, "
          "filter_name, options, state, srcs, dests, stateful and replicas",
          index + 1, key));
    }
  }
  if (rule.layer.empty() && rule.class_name.empty() && rule.op.empty()) {
    throw UsageError(
        fmt::format("overrides, rule {}: expected \"layer\", \"class\" or \"operator\", found none",
                    index + 1));
  }
  return rule;
}

}  // namespace

Overrides parseOverrides(std::string_view text) {
  const Json json = parsedJson<Json>(text, "overrides");
  if (!json.is_object() || json.size() != 1 || !json.contains("layers")) {
    throw UsageError("overrides: expected an object with the list \"layers\" and nothing else");
  }
  if (!json["layers"].is_array()) {
    throw UsageError(fmt::format("overrides: expected a list for \"layers\", found {}",
                                 shownJson(json["layers"])));
  }
  Overrides overrides;
  for (const Json& rule : json["layers"]) {
    overrides.rules.push_back(ruleFrom(rule, overrides.rules.size()));
  }
  return overrides;
}

bool fitsPattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  size_t star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace wick::streams

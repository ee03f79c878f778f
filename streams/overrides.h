// What a user says about how layers become filters: a JSON file.
//
//   {"layers": [
//     {"layer": "layer1.*", "class": "Conv2d", "operator": "aten::relu",   what it is about
//      "grain": "module",           one filter for the module, with all that is below it
//               "operators"         a filter for each operator
//               "before"            part of the filter before it
//      "filter_name": "block",      the kind of the filter, instead of the layer's class
//      "options": ["stride"],       the constant arguments that are shown
//      "state": ["weight"],         the tensors that are shown
//      "srcs": 1, "dests": 1,       how many values the filter must read and give, checked
//      "stateful": true,            keep one copy, and the order of the elements
//      "replicas": 2}]}             how many copies a plan may make at most
//
// "layer" is a module's path with * for any characters, "class" the name of its class; of several
// rules that fit, the last that says something about a matter holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wick::streams {

struct LayerRule {
  enum class Grain { Module, Operators, Before };
  std::string layer;  // a pattern; empty: any
  std::string class_name;
  std::string op;
  std::optional<Grain> grain;
  std::optional<std::string> filter_name;
  std::optional<std::vector<std::string>> options;
  std::optional<std::vector<std::string>> state;
  std::optional<int64_t> srcs;
  std::optional<int64_t> dests;
  std::optional<bool> stateful;
  std::optional<int64_t> replicas;
};

struct Overrides {
  std::vector<LayerRule> rules;
};

// UsageError that names the rule and the key for what is not of that form.
Overrides parseOverrides(std::string_view text);

// Whether the text fits the pattern, in which * stands for any characters.
bool fitsPattern(std::string_view pattern, std::string_view text);

}  // namespace wick::streams

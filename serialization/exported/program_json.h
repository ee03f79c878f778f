// Pieces of the JSON of programs for torch.export.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace wick::exported {

// Members keep their order.
using OrderedJson = nlohmann::ordered_json;

// {kind: value}, as the schema writes unions.
inline OrderedJson tagged(const char* kind, OrderedJson value) {
  OrderedJson out;
  out[kind] = std::move(value);
  return out;
}

inline OrderedJson tensorOperand(const std::string& name) {
  return tagged("as_tensor", tagged("name", name));
}

// An argument of a node; higher-order operators have no names for theirs.
inline OrderedJson namedInput(const std::string& name, OrderedJson operand, bool by_position) {
  OrderedJson out;
  out["name"] = name;
  out["arg"] = std::move(operand);
  out["kind"] = by_position ? 1 : 2;
  return out;
}

// A tensor or number in a tree of arguments or results, and what holds such.
inline OrderedJson leafTree() {
  OrderedJson out;
  out["type"] = nullptr;
  out["context"] = nullptr;
  out["children_spec"] = OrderedJson::array();
  return out;
}
inline OrderedJson containerTree(const char* type, const std::string& context,
                                 OrderedJson children) {
  OrderedJson out;
  out["type"] = type;
  out["context"] = context;
  out["children_spec"] = std::move(children);
  return out;
}

}  // namespace wick::exported

// The text form of the IR.
//
//   graph(%x.1 : Tensor, %y : int):
//     %2 : int = prim::Constant[value=1]() # file.py:3:4
//     %z : Tensor = aten::add(%x.1, %y, %2)
//     return (%z)
#pragma once

#include <functional>
#include <string>

#include "ir/graph.h"

namespace wick {

struct PrintOptions {
  bool source_locations = false;  // append "# file:line:col"
  int type_detail = 3;  // 0 no shapes, 1 dtype and sizes, 2 strides, 3 device and requires_grad
  int64_t max_tensor_elements = 16;  // larger tensor constants print as <Tensor>
  // What stands behind a node instead of its location, with source_locations; "" for nothing.
  std::function<std::string(const Node&)> location{};
};
std::string printGraph(const Graph& graph, const PrintOptions& options = {});
// One node with its blocks.
std::string printNode(const Node& node, const PrintOptions& options = {});

}  // namespace wick

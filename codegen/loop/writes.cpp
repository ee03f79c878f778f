// graph(%x):
//   %a = aten::add_(%x, %1, %1)        %a = aten::add(%x, %1, %1)
//   %b = aten::relu_(%a)           →   %b = aten::relu(%a)
//   return ()                          return (%b)
#include "codegen/loop/writes.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "codegen/loop/lowering.h"

namespace wick::loop {

std::vector<uint32_t> separateWrites(Graph& body) {
  // What stands for the tensor behind a written input or the result of a write.
  std::unordered_map<Value*, Value*> input_of;
  std::unordered_map<Value*, Value*> latest;
  std::vector<uint32_t> written;
  const auto current = [&](Value* v) {
    auto it = input_of.find(v);
    return it == input_of.end() ? v : latest.at(it->second);
  };
  for (auto it = body.nodes().begin(), end = body.nodes().end(); it != end;) {
    Node* node = *it;
    ++it;
    Value* target = isPointwiseWrite(node) ? node->input(0) : nullptr;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      node->replaceInput(i, current(node->input(i)));
    }
    if (!target) continue;
    if (auto known = input_of.find(target); known != input_of.end()) target = known->second;
    if (target->node()->kind() != prim::Param) throw Unsupported("a write to what is made inside");
    std::string name(node->kind().qualString());
    name.pop_back();
    std::vector<Value*> inputs(node->inputs().begin(), node->inputs().end());
    Node* made = body.create(Symbol::fromQualString(name), std::move(inputs))->insertBefore(node);
    made->setAttribute(standsForWrite(), IValue(true));
    if (latest.emplace(target, nullptr).second) {
      input_of[target] = target;
      written.push_back(static_cast<uint32_t>(target->offset()));
    }
    latest[target] = made->output();
    input_of[node->output()] = target;
  }
  for (uint32_t input : written) body.registerOutput(latest.at(body.inputs()[input]));
  // The results of writes have no other users left.
  std::vector<Node*> gone;
  for (Node* node : body.nodes()) {
    if (isPointwiseWrite(node)) gone.push_back(node);
  }
  for (size_t i = gone.size(); i-- > 0;) gone[i]->destroy();
  return written;
}

}  // namespace wick::loop

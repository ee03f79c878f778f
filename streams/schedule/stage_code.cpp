#include "streams/schedule/stage_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/device_backend.h"
#include "core/error.h"
#include "ir/depth.h"
#include "runtime/call.h"
#include "streams/schedule/stage_devices.h"

namespace wick::streams {

namespace {

bool isEverywhere(const Value* value) {
  return value->node()->kind() == prim::Constant || value->node()->kind() == prim::Uninitialized;
}

// Values read by the nodes of a filter, also within blocks, in the order of their first use.
std::vector<Value*> readsOf(const Nodes& nodes) {
  std::vector<Value*> reads;
  std::unordered_set<const Value*> seen;
  std::vector<const Node*> open(nodes.rbegin(), nodes.rend());
  const auto read = [&](Value* value) {
    if (seen.insert(value).second) reads.push_back(value);
  };
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    for (Value* input : node->inputs()) read(input);
    for (const Block* block : node->blocks()) {
      for (Value* output : block->outputs()) read(output);
      for (const Node* inner : block->nodes()) open.push_back(inner);
    }
  }
  return reads;
}

}  // namespace

std::vector<std::vector<Value*>> aliveValues(const StreamGraph& graph) {
  WICK_ASSERT(graph.program, "a stream graph that was read from text has no code");
  const Graph& program = *graph.program;
  const size_t count = graph.filters.size();
  // Where each value of the graph's block is made, and last read.
  std::vector<Value*> values;
  std::unordered_map<const Value*, size_t> made, last;
  for (Value* input : program.inputs()) {
    made[input] = 0;
    values.push_back(input);
  }
  for (size_t i = 0; i < count; ++i) {
    for (const Node* node : graph.filters[i].nodes) {
      for (Value* output : node->outputs()) {
        made[output] = i + 1;
        values.push_back(output);
      }
    }
  }
  for (size_t i = 0; i < count; ++i) {
    for (const Value* value : readsOf(graph.filters[i].nodes)) last[value] = i;
  }
  for (const Value* output : program.outputs()) last[output] = count;
  std::vector<std::vector<Value*>> alive(count + 1);
  alive[0].assign(program.inputs().begin(), program.inputs().end());
  for (Value* value : values) {
    const auto end = last.find(value);
    if (end == last.end() || isEverywhere(value)) continue;
    for (size_t k = std::max<size_t>(made[value], 1); k <= end->second; ++k) {
      alive[k].push_back(value);
    }
  }
  return alive;
}

StageCode stageCode(const StreamGraph& graph, const std::vector<std::vector<Value*>>& alive,
                    size_t first, size_t last, const std::string& name) {
  StageCode code;
  const auto made = std::make_shared<Graph>();
  std::unordered_map<Value*, Value*> map;
  std::unordered_map<const Value*, size_t> before, behind;
  for (size_t i = 0; i < alive[first].size(); ++i) before[alive[first][i]] = i;
  for (size_t i = 0; i < alive[last].size(); ++i) behind[alive[last][i]] = i;
  std::vector<Argument> arguments;
  for (size_t f = first; f < last; ++f) {
    for (Value* value : readsOf(graph.filters[f].nodes)) {
      if (map.contains(value)) continue;
      if (isEverywhere(value) && value->node()->block() == graph.program->block()) {
        Node* copy = made->insertNode(made->createClone(value->node(), map));
        map[value] = copy->output();
        continue;
      }
      const auto position = before.find(value);
      if (position == before.end()) continue;  // made within
      map[value] = made->addInput("v", value->type());
      code.arguments.push_back({position->second, !behind.contains(value)});
      Argument argument;
      argument.name = fmt::format("v{}", arguments.size());
      argument.type = value->type();
      arguments.push_back(std::move(argument));
    }
    for (const Node* node : graph.filters[f].nodes) {
      Node* copy = nullptr;
      withStackFor(*graph.program, [&] { copy = made->insertNode(made->createClone(node, map)); });
      for (size_t i = 0; i < node->outputs().size(); ++i) map[node->output(i)] = copy->output(i);
    }
  }
  std::vector<Value*> results;
  for (Value* value : alive[last]) {
    if (const auto passed = before.find(value); passed != before.end()) {
      code.sources.push_back({false, passed->second});
    } else {
      code.sources.push_back({true, results.size()});
      results.push_back(map.at(value));
    }
  }
  code.gives_tuple = results.size() != 1;
  Value* result =
      code.gives_tuple ? made->insertNode(made->createTuple(results))->output() : results[0];
  made->registerOutput(result);
  Argument returned;
  returned.type = result->type();
  code.function = std::shared_ptr<GraphFunction>(
      new GraphFunction(name, made), [owner = graph.owner](GraphFunction* f) { delete f; });
  code.function->setSchema(FunctionSchema(name, "", std::move(arguments), {std::move(returned)}));
  return code;
}

void moveStageConstants(const StageCode& code, Device device) {
  std::unordered_map<const void*, Tensor> moved;
  std::vector<Block*> open = {code.function->graph()->block()};
  while (!open.empty()) {
    Block* block = open.back();
    open.pop_back();
    for (Node* node : block->nodes()) {
      open.insert(open.end(), node->blocks().begin(), node->blocks().end());
      if (node->kind() != prim::Constant || !node->hasAttribute(attr::value)) continue;
      const IValue value = node->ivalue(attr::value);
      if (value.isDevice()) {
        const bool is_other = value.toDevice().type == device.type && value.toDevice() != device;
        if (is_other) node->setAttribute(attr::value, IValue(device));
        continue;
      }
      Packet one = {value};
      bool any = false;
      replaceTensors(one, [&](const Tensor& tensor) {
        if (tensor.device().type != device.type || tensor.device() == device) return tensor;
        any = true;
        Tensor& there = moved[tensor.impl()];
        if (!there.defined()) there = moveTo(tensor, device);
        return there;
      });
      if (any) node->setAttribute(attr::value, one[0]);
    }
  }
}

void runStage(const StageCode& code, Packet& packet) {
  std::vector<IValue> arguments;
  arguments.reserve(code.arguments.size());
  for (const StageCode::Argument& argument : code.arguments) {
    IValue& value = packet[argument.position];
    // What nobody needs any more may be written over.
    if (argument.last) {
      arguments.push_back(std::move(value));
    } else {
      arguments.push_back(value);
    }
  }
  IValue given = callFunction(*code.function, std::move(arguments));
  Packet behind;
  behind.reserve(code.sources.size());
  for (const StageCode::Source& source : code.sources) {
    if (!source.is_result) {
      behind.push_back(std::move(packet[source.position]));
    } else if (code.gives_tuple) {
      behind.push_back(given.toTuple().elements[source.position]);
    } else {
      behind.push_back(given);
    }
  }
  packet = std::move(behind);
}

IValue resultOf(const StreamGraph& graph, const std::vector<std::vector<Value*>>& alive,
                Packet packet) {
  WICK_ASSERT(graph.program->outputs().size() == 1, "a function gives one value");
  Value* output = graph.program->outputs()[0];
  if (std::optional<IValue> constant = constantOf(output)) return *std::move(constant);
  for (size_t i = 0; i < alive.back().size(); ++i) {
    if (alive.back()[i] == output) return std::move(packet[i]);
  }
  throwRuntimeError("{}: the result is not initialized", graph.name);
}

}  // namespace wick::streams

#include "runtime/module_paths.h"

#include <optional>

#include "ir/graph.h"

namespace wick {

namespace {

bool sameRange(const SourceRange& a, const SourceRange& b) {
  return a.source() == b.source() && a.start() == b.start() && a.end() == b.end();
}

// Attributes from the graph's first input to the value, "layer1.0."; nullopt when it is anything
// else.
std::optional<std::string> pathFromSelf(const Graph& graph, const Value* object) {
  std::string path;
  while (object->node()->kind() == prim::GetAttr) {
    path.insert(0, object->node()->ivalue(attr::name).toString() + ".");
    object = object->node()->input(0);
  }
  if (graph.inputs().empty() || object != graph.inputs()[0]) return std::nullopt;
  return path;
}

// The call of a method or function at this position.
const Node* callAt(const Block& block, const SourceRange& range, const std::string& callee) {
  for (const Node* node : block.nodes()) {
    if (node->kind() == prim::CallMethod && sameRange(node->range(), range) &&
        node->ivalue(attr::name).toString() == callee) {
      return node;
    }
    for (const Block* inner : node->blocks()) {
      if (const Node* found = callAt(*inner, range, callee)) return found;
    }
  }
  return nullptr;
}

// Frames name functions without what they belong to.
std::string lastPart(const std::string& name) {
  return name.substr(name.rfind('.') + 1);
}

// The paths of the modules of frames, innermost first; nullopt from where none is known.
std::vector<std::optional<std::string>> pathsOf(GraphFunction& outermost,
                                                std::span<const RuntimeError::Frame> frames) {
  std::vector<std::optional<std::string>> paths(frames.size());
  GraphFunction* function = &outermost;
  std::string path;
  for (size_t i = frames.size(); i-- > 0;) {
    paths[i] = path;
    if (i == 0 || !function->isDefined()) break;
    const Graph& graph = *function->graph();
    const Node* call = callAt(*graph.block(), frames[i].range, lastPart(frames[i - 1].function));
    if (!call) break;
    const std::optional<std::string> more = pathFromSelf(graph, call->input(0));
    const auto* type = call->input(0)->type()->as<ClassType>();
    if (!more || !type) break;
    function = dynamic_cast<GraphFunction*>(type->findMethod(lastPart(frames[i - 1].function)));
    if (!function) break;
    path += *more;
  }
  return paths;
}

bool isMethod(const GraphFunction& function) {
  const auto& inputs = function.graph()->inputs();
  return !inputs.empty() && inputs[0]->type()->kind() == TypeKind::Class;
}

}  // namespace

std::vector<std::string> namesWithPaths(GraphFunction& outermost,
                                        std::span<const RuntimeError::Frame> frames) {
  std::vector<std::string> names;
  const auto paths = outermost.isDefined() && isMethod(outermost)
                         ? pathsOf(outermost, frames)
                         : std::vector<std::optional<std::string>>(frames.size());
  for (size_t i = 0; i < frames.size(); ++i) {
    names.push_back(paths[i].value_or("") + frames[i].function);
  }
  return names;
}

std::string modulePathOf(GraphFunction& outermost, const InlinedCall* call) {
  if (!call || !outermost.isDefined() || !isMethod(outermost)) return "";
  std::vector<RuntimeError::Frame> frames;
  // Within the innermost function no position is asked for.
  SourceRange range;
  for (; call; call = call->caller.get()) {
    frames.push_back({call->function, range});
    range = call->call_site;
  }
  frames.push_back({outermost.name(), range});
  // The innermost that is known: a function that a module calls belongs to it.
  for (const std::optional<std::string>& path : pathsOf(outermost, frames)) {
    if (path) return path->empty() ? "" : path->substr(0, path->size() - 1);
  }
  return "";
}

std::string modulePathOf(GraphFunction& outermost, const Node& node) {
  return modulePathOf(outermost, node.inlinedFrom().get());
}

RuntimeError withModulePaths(const RuntimeError& error, GraphFunction& outermost) {
  RuntimeError named(error.brief(), error.className());
  const std::vector<std::string> names = namesWithPaths(outermost, error.frames());
  for (size_t i = 0; i < names.size(); ++i) named.addFrame({names[i], error.frames()[i].range});
  return named;
}

}  // namespace wick

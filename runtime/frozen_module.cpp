#include "runtime/frozen_module.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "ir/function.h"
#include "passes/constant_pooling.h"
#include "passes/dead_code_elimination.h"
#include "passes/freeze.h"
#include "passes/inline_calls.h"
#include "passes/inline_forks.h"
#include "passes/lower_tuples.h"
#include "passes/restore_operators.h"
#include "runtime/hooked_call.h"
#include "runtime/inference.h"

namespace wick {
namespace {

// The nodes that make a list, dict or tuple of constants, inserted before `user`; null for other
// values.
Node* constructed(Graph& graph, const IValue& value, Node* user) {
  const auto element = [&](const IValue& v) {
    if (Node* made = constructed(graph, v, user)) return made->output();
    return graph.createConstant(v)->insertBefore(user)->output();
  };
  std::vector<Value*> elements;
  Node* made = nullptr;
  if (value.isList()) {
    for (const IValue& v : value.elements()) elements.push_back(element(v));
    made = graph.createList(value.toList().element_type, elements);
  } else if (value.isTuple()) {
    for (const IValue& v : value.elements()) elements.push_back(element(v));
    made = graph.createTuple(elements, value.toTuple().named);
  } else if (value.isDict()) {
    const DictObject& dict = value.toDict();
    std::vector<Value*> keys;
    for (const auto& [key, v] : dict.items()) {
      keys.push_back(element(key));
      elements.push_back(element(v));
    }
    made = graph.createDict(dict.key_type, dict.value_type, keys, elements);
  }
  return made == nullptr ? nullptr : made->insertBefore(user);
}

// Source has no constants that are containers: it makes them where they are used. Nobody writes to
// them, or they would have stayed attributes.
void expandContainers(Block* block) {
  const auto expand = [&](Node* user) {
    for (size_t i = 0; i < user->inputs().size(); ++i) {
      if (user->input(i)->node()->kind() != prim::Constant) continue;
      const std::optional<IValue> value = constantOf(user->input(i));
      if (!value) continue;
      Node* made = constructed(*block->graph(), *value, user);
      if (made == nullptr) continue;
      user->replaceInput(i, made->output());
    }
  };
  for (Node* node : block->nodes()) {
    expand(node);
    for (Block* inner : node->blocks()) expandContainers(inner);
  }
  expand(block->returnNode());
}

// Whether a fork is given a module, whose attributes become constants. If somebody waits for it, it may
// run at once.
bool takesObject(const Node* fork) {
  return fork->output()->hasUses() && std::ranges::any_of(fork->inputs(), [](const Value* v) {
           return v->type()->kind() == TypeKind::Class || v->type()->kind() == TypeKind::Interface;
         });
}

std::shared_ptr<Graph> frozenGraph(const Module& module, GraphFunction& method, bool optimize) {
  method.ensureDefined();
  std::shared_ptr<Graph> graph = method.graph()->copy();
  inlineCalls(*graph);
  inlineForks(*graph, takesObject);
  if (optimize) {
    simplifyForInference(*graph, module.object());
  } else {
    freezeModule(*graph, module.object());
    lowerTuples(*graph);
  }
  expandContainers(graph->block());
  poolConstants(*graph);
  eliminateDeadCode(*graph);
  return graph;
}

// Constants that are the module itself, and the attributes that are read from them or written.
class SelfUses {
 public:
  SelfUses(const Module& module, const Graph& graph) : module_(module) { walk(graph.block()); }
  std::vector<Node*> constants;
  std::set<std::string> attributes;

 private:
  void walk(const Block* block) {
    for (Node* node : block->nodes()) {
      for (const Block* inner : node->blocks()) walk(inner);
      if (node->kind() != prim::Constant) continue;
      const std::optional<IValue> value = constantOf(node->output());
      if (!value || !value->isObject()) continue;
      if (&value->toObject() != module_.object().get()) continue;
      constants.push_back(node);
      for (const Use& use : node->output()->uses()) note(use);
    }
  }

  void note(const Use& use) {
    const Symbol kind = use.user->kind();
    if (use.offset != 0 || (kind != prim::GetAttr && kind != prim::SetAttr)) {
      throw UsageError(fmt::format(
          "freeze: expected that {} only reads and sets its attributes, found it given to {}",
          readableClassName(module_.type()->name()), kind.qualString()));
    }
    attributes.insert(use.user->ivalue(attr::name).toString());
  }

  const Module& module_;
};

// The constants become an argument again.
void bindSelf(Graph& graph, const std::vector<Node*>& constants, const ClassTypePtr& type) {
  Value* self = graph.block()->insertInput(0, type, "self");
  for (Node* constant : constants) {
    constant->output()->replaceAllUsesWith(self);
    constant->destroy();
  }
}

struct Owner {
  std::shared_ptr<CompilationUnit> unit = std::make_shared<CompilationUnit>();
  ObjectRef original;  // whose code and attributes the frozen module uses
};

}  // namespace

Module freeze(const Module& module, const FreezeOptions& options) {
  if (module.isTraining()) {
    throw UsageError(
        fmt::format("freeze: {} is in training mode", readableClassName(module.type()->name())));
  }
  std::vector<std::pair<std::shared_ptr<GraphFunction>, std::shared_ptr<Graph>>> methods;
  std::set<std::string> attributes;
  for (const std::string& name : options.methods) {
    // Frozen modules have no hooks: forward does what they do.
    std::shared_ptr<GraphFunction> method =
        name == "forward" && module.hasHooks()
            ? functionWithHooks(module)
            : std::shared_ptr<GraphFunction>(std::shared_ptr<void>(), &module.method(name));
    std::shared_ptr<Graph> graph = frozenGraph(module, *method, options.optimize);
    attributes.merge(SelfUses(module, *graph).attributes);
    methods.emplace_back(std::move(method), std::move(graph));
  }
  auto owner = std::make_shared<Owner>();
  owner->original = module.object();
  auto type = std::make_shared<ClassType>(module.type()->name(), /*is_module=*/true);
  owner->unit->registerType(type->name(), type);
  std::vector<IValue> values;
  for (size_t i = 0; i < module.type()->attributes().size(); ++i) {
    const ClassType::Attribute& a = module.type()->attributes()[i];
    if (!attributes.contains(a.name)) continue;
    type->addAttribute(a.name, a.type, a.is_parameter, a.is_buffer);
    values.push_back(module.object()->slot(i));
  }
  for (auto& [method, graph] : methods) {
    bindSelf(*graph, SelfUses(module, *graph).constants, type);
    markRewritten(*graph);
    const FunctionSchema& schema = method->schema();
    std::vector<Argument> arguments = schema.arguments();
    arguments.at(0).type = type;
    GraphFunction* frozen =
        owner->unit->createFunction(type->name() + "." + method->name(), std::move(graph));
    frozen->setSchema(
        FunctionSchema(schema.name(), schema.overload(), std::move(arguments), schema.returns()));
    type->addMethod(frozen);
  }
  auto unit = std::shared_ptr<CompilationUnit>(owner, owner->unit.get());
  auto object = makeRef<Object>(type, std::move(unit));
  for (size_t i = 0; i < values.size(); ++i) object->setSlot(i, std::move(values[i]));
  return Module(std::move(object));
}

}  // namespace wick

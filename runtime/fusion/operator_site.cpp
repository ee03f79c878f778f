// A call is told from others of its operator by what is not a tensor or a plain number: dimensions,
// flags, strings and missing arguments are constants of the group's body, tensors and numbers its
// arguments. Numbers that a loop form must know are constants too, after an attempt without.
#include "runtime/fusion/operator_site.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "codegen/loop/writes.h"
#include "core/grad_mode.h"
#include "ir/graph.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"

namespace wick {

namespace {

constexpr size_t kOperatorSiteMaxArguments = 64;
// Calls that differ in their constants. When there are more, all begin anew.
constexpr size_t kMaxSites = 1 << 14;

void append(std::string& key, const void* bytes, size_t n) {
  key.append(static_cast<const char*>(bytes), n);
}
template <class T>
void append(std::string& key, const T& value) {
  append(key, &value, sizeof value);
}

// Whether the schema takes any number here: one that enters arithmetic, not a dimension or a choice.
bool isNumber(const Argument& argument) {
  const TypePtr& type = argument.type;
  const auto* optional = type->as<OptionalType>();
  const TypeKind kind = (optional ? optional->element() : type)->kind();
  return kind == TypeKind::Number || kind == TypeKind::Float;
}

bool isTensorList(const IValue& v) {
  return v.isList() && !v.elements().empty() && v.elements()[0].isTensor();
}

// How an argument enters the group.
enum class Role { Tensor, Tensors, Number, Constant };

Role roleOf(const CallFrame& frame, size_t i, bool numbers_vary) {
  const IValue& v = frame.args[i];
  if (v.isTensor()) return Role::Tensor;
  if (isTensorList(v)) return Role::Tensors;
  const bool varies =
      numbers_vary && (v.isInt() || v.isDouble()) && isNumber(frame.op->schema().arguments()[i]);
  return varies ? Role::Number : Role::Constant;
}

// What tells a call from others of the operator; false when it can have no site.
bool describe(const CallFrame& frame, bool numbers_vary, std::string& key) {
  key.clear();
  append(key, frame.op);
  append(key, numbers_vary);
  append(key, frame.num_args);
  for (size_t i = 0; i < frame.num_args; ++i) {
    const IValue& v = frame.args[i];
    const Role role = roleOf(frame, i, numbers_vary);
    if (role == Role::Tensor) {
      key += 't';
      // A cast that changes nothing is no kernel: the dtype is a part of the body.
      append(key, static_cast<const TensorImpl*>(v.rawObject())->dtype);
    } else if (role == Role::Tensors) {
      key += 'l';
      append(key, v.elements().size());
    } else if (role == Role::Number) {
      key += v.isInt() ? 'i' : 'd';
    } else {
      key += 'c';
      if (!appendConstant(key, v)) return false;
    }
  }
  return true;
}

TypePtr typeOf(const IValue& tensor) {
  TensorType::Facts facts;
  facts.dtype = static_cast<const TensorImpl*>(tensor.rawObject())->dtype;
  return TensorType::create(std::move(facts));
}

// The call as a group of one node; null when there is no loop form.
std::shared_ptr<FusionSite> makeSite(const CallFrame& frame, bool numbers_vary) {
  Graph outside;
  Node* group = outside.create(prim::FusionGroup, 0);
  outside.insertNode(group);
  auto body = std::make_shared<Graph>();
  Node* node = body->create(frame.op->symbol(), frame.num_results);
  for (size_t i = 0; i < frame.num_args; ++i) {
    const IValue& v = frame.args[i];
    const Role role = roleOf(frame, i, numbers_vary);
    if (role == Role::Tensor) {
      node->addInput(body->addInput("", typeOf(v)));
    } else if (role == Role::Tensors) {
      std::vector<Value*> elements;
      for (const IValue& e : v.elements()) {
        if (!e.isTensor()) return nullptr;
        elements.push_back(body->addInput("", typeOf(e)));
      }
      node->addInput(body->insertNode(body->createList(types::Tensor(), elements))->output());
    } else if (role == Role::Number) {
      node->addInput(body->addInput("", v.isInt() ? types::Int() : types::Float()));
    } else {
      node->addInput(v.isNone() ? body->insertNode(body->createNone())->output()
                                : body->insertConstant(v));
    }
  }
  if (body->inputs().size() > kOperatorSiteMaxArguments) return nullptr;
  body->insertNode(node);
  node->setOperator(frame.op);
  const bool writes = frame.op->form() == Operator::Form::Inplace;
  for (size_t r = 0; r < frame.num_results; ++r) {
    const TypePtr& type = frame.op->schema().returns()[r].type;
    if (type->kind() != TypeKind::Tensor) return nullptr;
    node->output(r)->setType(type);
    // What is written is an argument of the group.
    if (!writes) body->registerOutput(node->output(r));
  }
  if (writes ? !loop::isPointwiseWrite(node) : kernelKindOf(node) == FusionKind::None) {
    return nullptr;
  }
  group->setAttribute(attr::Subgraph, std::move(body));
  return std::make_shared<FusionSite>(*group);
}

struct Sites {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<FusionSite>> known;
};
Sites& sites() {
  static Sites* all = new Sites;  // threads may outlive main
  return *all;
}

std::shared_ptr<FusionSite> siteFor(const CallFrame& frame, bool numbers_vary, std::string& key) {
  if (!describe(frame, numbers_vary, key)) return nullptr;
  // Those that are in use live as long as they are. The others end when nobody waits for the lock.
  decltype(Sites::known) dropped;
  {
    std::lock_guard lock(sites().mutex);
    const auto it = sites().known.find(key);
    if (it != sites().known.end()) return it->second;
    if (sites().known.size() >= kMaxSites) dropped.swap(sites().known);
  }
  std::shared_ptr<FusionSite> made = makeSite(frame, numbers_vary);
  std::lock_guard lock(sites().mutex);
  return sites().known.emplace(key, std::move(made)).first->second;
}

std::shared_ptr<FusionSite> siteInPlaceOf(const std::shared_ptr<FusionSite>& old,
                                          const CallFrame& frame, bool numbers_vary,
                                          std::string& key) {
  if (!describe(frame, numbers_vary, key)) return nullptr;
  {
    std::lock_guard lock(sites().mutex);
    const auto it = sites().known.find(key);
    if (it != sites().known.end() && it->second == old) sites().known.erase(it);
  }
  return siteFor(frame, numbers_vary, key);
}

bool run(const CallFrame& frame, bool numbers_vary, FusionSite& site) {
  std::vector<IValue> given;
  for (size_t i = 0; i < frame.num_args; ++i) {
    const IValue& v = frame.args[i];
    const Role role = roleOf(frame, i, numbers_vary);
    if (role == Role::Tensors) {
      given.insert(given.end(), v.elements().begin(), v.elements().end());
    } else if (role != Role::Constant) {
      given.push_back(v);
    }
  }
  return site.run(given.data(), given.size(), frame.results);
}

bool compute(CallFrame& frame) {
  static thread_local std::string key;
  const auto compute = [&](bool numbers_vary) {
    std::shared_ptr<FusionSite> site = siteFor(frame, numbers_vary, key);
    if (!site) return false;
    if (run(frame, numbers_vary, *site)) return true;
    if (!site->isFull()) return false;
    // There may be no other way to compute it: the kernels that were met before go.
    site = siteInPlaceOf(site, frame, numbers_vary, key);
    return site && run(frame, numbers_vary, *site);
  };
  if (compute(true)) return true;
  for (size_t i = 0; i < frame.num_args; ++i) {
    if (roleOf(frame, i, true) == Role::Number) return compute(false);
  }
  return false;
}

// Whether the call's only tensors have no dimensions, in which no loop form reduces: then one
// dimension of one element stands for none, and means the same.
bool computeWithADimension(CallFrame& frame) {
  std::vector<IValue> arguments(frame.args, frame.args + frame.num_args);
  bool any = false;
  for (IValue& v : arguments) {
    if (isTensorList(v)) return false;
    if (!v.isTensor()) continue;
    const Tensor t = v.toTensor();
    if (t.dim() != 0) return false;
    any = true;
    v = IValue(t.unsqueeze(0));
  }
  if (!any) return false;
  CallFrame wider = frame;
  wider.args = arguments.data();
  wider.borrowed = 0;
  if (!compute(wider)) return false;
  for (size_t r = 0; r < frame.num_results; ++r) {
    frame.results[r] = IValue(frame.results[r].toTensor().reshape(DimVector{}));
  }
  return true;
}

}  // namespace

bool appendConstant(std::string& key, const IValue& v) {
  append(key, v.tag());
  switch (v.tag()) {
    case IValue::Tag::None:
      return true;
    case IValue::Tag::Int:
      append(key, v.toInt());
      return true;
    case IValue::Tag::Bool:
      append(key, v.toBool());
      return true;
    case IValue::Tag::Double:
      append(key, v.toDouble());
      return true;
    case IValue::Tag::Device:
      append(key, v.toDevice().type);
      append(key, v.toDevice().index);
      return true;
    case IValue::Tag::String: {
      const std::string& text = v.toString();
      append(key, text.size());
      key += text;
      return true;
    }
    case IValue::Tag::List: {
      append(key, v.elements().size());
      for (const IValue& e : v.elements()) {
        if (e.isTensor() || !appendConstant(key, e)) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

bool computeAsGroup(CallFrame& frame, Device) {
  // What is computed here is recorded, if at all, by whoever called.
  const BelowRecorder below;
  if (frame.op->form() == Operator::Form::Base) {
    return compute(frame) || computeWithADimension(frame);
  }
  if (frame.num_results != 1 || !compute(frame)) return false;
  frame.results[0] = IValue(frame.args[0].toTensor());
  return true;
}

}  // namespace wick

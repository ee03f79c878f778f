// The part of lowering that turns single nodes into instructions.
#include "core/error.h"
#include "passes/guard_nodes.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/lowering.h"

namespace wick {

void Lowering::lowerNode(const Node* node) {
  Symbol kind = node->kind();
  if (kind == prim::Constant || kind == prim::Uninitialized) return noteConstant(node);
  if (kind == prim::If) return lowerIf(node);
  if (kind == prim::Loop) return lowerLoop(node);
  if (kind == prim::CallFunction) return lowerCall(node);
  if (kind == prim::CallMethod) return lowerMethodCall(node);
  if (kind == prim::fork) return lowerFork(node);
  static const Symbol kJointGraph = Symbol::prim("JointGraph");
  if (kind == prim::FusionGroup || kind == prim::DifferentiableGraph || kind == kJointGraph) {
    return lowerFusionGroup(node);
  }
  if (lowerScalar(node) || lowerListAccess(node) || lowerAttribute(node) || lowerData(node) ||
      lowerSpeculation(node)) {
    return;
  }
  lowerOperator(node);
}

bool Lowering::lowerScalar(const Node* node) {
  if (node->kind() == aten::__derive_index && node->inputs().size() == 3) {
    // start + index * step
    uint32_t r = define(node->output());
    auto step = constants_.find(node->input(2));
    bool unit = step != constants_.end() && code_.constants_[step->second].toInt() == 1;
    uint32_t scaled = scalarReg(node->input(0));
    if (!unit) {
      uint32_t product = newRegister(extraFor(*types::Int()));
      emit(OpCode::MUL_INT, 0, product, scaled, scalarReg(node->input(2)));
      scaled = product;
    }
    emit(OpCode::ADD_INT, 0, r, scaled, scalarReg(node->input(1)));
    return true;
  }
  auto selection = selectScalar(node);
  if (!selection) return false;
  std::vector<uint32_t> in;
  for (const Value* input : node->inputs()) {
    in.push_back(selection->as_float ? floatReg(input) : scalarReg(input));
  }
  if (selection->swap) std::swap(in[0], in[1]);
  // Division raises on zero, so even an unused result is computed; allocation removes the rest.
  uint32_t r = define(node->output());
  emit(selection->op, 0, r, in[0], in.size() > 1 ? in[1] : 0);
  return true;
}

bool Lowering::lowerListAccess(const Node* node) {
  if (node->inputs().empty() || node->input(0)->type()->kind() != TypeKind::List) return false;
  if (node->kind() == aten::len && node->inputs().size() == 1) {
    uint32_t list = reg(node->input(0));
    emit(OpCode::LIST_LEN, extraFor(*node->output()->type()), define(node->output()), list);
    return true;
  }
  if (node->kind() == aten::__getitem__ && node->inputs().size() == 2 &&
      node->input(1)->type()->kind() == TypeKind::Int) {
    uint32_t list = reg(node->input(0));
    uint32_t index = scalarReg(node->input(1));
    emit(OpCode::LIST_GET, extraFor(*node->output()->type()), define(node->output()), list, index);
    return true;
  }
  return false;
}

void Lowering::lowerCall(const Node* node) {
  const Value* callee = node->input(0);
  const auto* type = callee->type()->as<FunctionType>();
  WICK_CHECK(type, "prim::CallFunction: %{} is no function but a {}", callee->debugName(),
             callee->type()->str());
  auto* function = dynamic_cast<GraphFunction*>(type->function());
  WICK_CHECK(function, "prim::CallFunction: {} has no body", type->function()->qualifiedName());
  std::vector<Value*> arguments(node->inputs().begin() + 1, node->inputs().end());
  uint32_t operands = operandList(arguments);
  code_.function_sites_.push_back(std::make_unique<FunctionSite>(function));
  auto site = static_cast<uint32_t>(code_.function_sites_.size() - 1);
  emit(OpCode::CALL, extraFor(*node->output()->type()), site, operands, destination(node));
}

void Lowering::lowerMethodCall(const Node* node) {
  const std::string& name = node->ivalue(attr::name).toString();
  const Value* self = node->input(0);
  uint32_t operands = operandList(node->inputs());
  uint16_t extra = extraFor(*node->output()->type());
  if (const auto* type = self->type()->as<ClassType>()) {
    auto* method = dynamic_cast<GraphFunction*>(type->findMethod(name));
    WICK_CHECK(method, "prim::CallMethod: {} has no method '{}'", readableClassName(type->name()),
               name);
    code_.function_sites_.push_back(std::make_unique<FunctionSite>(method));
    auto site = static_cast<uint32_t>(code_.function_sites_.size() - 1);
    emit(OpCode::CALL, extra, site, operands, destination(node));
    return;
  }
  WICK_CHECK(
      self->type()->kind() == TypeKind::Interface,
      "prim::CallMethod: '{}' is called on a value of type {}, expected a class or interface", name,
      self->type()->str());
  code_.method_sites_.push_back(std::make_unique<MethodSite>(name));
  auto site = static_cast<uint32_t>(code_.method_sites_.size() - 1);
  emit(OpCode::CALL_VIRTUAL, extra, site, operands, destination(node));
}

void Lowering::lowerFork(const Node* node) {
  uint32_t operands = operandList(node->inputs());
  code_.fork_sites_.push_back(std::make_unique<ForkSite>(code_.name_, node));
  auto index = static_cast<uint32_t>(code_.fork_sites_.size() - 1);
  WICK_CHECK(node->output()->type()->kind() == TypeKind::Future,
             "prim::fork: the result has type {}, expected a Future",
             node->output()->type()->str());
  emit(OpCode::FORK, 0, index, operands, destination(node));
}

// The kernels, and behind them the group's nodes, for calls that no kernel takes.
void Lowering::lowerFusionGroup(const Node* node) {
  const Graph& body = *node->subgraph(attr::Subgraph);
  code_.fusion_sites_.push_back(std::make_unique<FusionSite>(*node));
  auto site = static_cast<uint32_t>(code_.fusion_sites_.size() - 1);
  uint32_t operands = operandList(node->inputs());
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    const Value* outer = node->input(i);
    if (auto constant = constants_.find(outer); constant != constants_.end()) {
      constants_[body.inputs()[i]] = constant->second;
    } else {
      registers_[body.inputs()[i]] = reg(outer);
    }
  }
  uint16_t flag = extraFor(*types::Bool());
  uint32_t ran = newRegister(flag);
  auto destinations = static_cast<uint32_t>(out_.operands.size());
  out_.operands.push_back(static_cast<uint32_t>(node->outputs().size() + 1));
  out_.operands.push_back(makeDestination(flag, ran));
  std::vector<uint32_t> results;
  for (const Value* output : node->outputs()) {
    results.push_back(define(output));
    out_.operands.push_back(makeDestination(0, results.back()));
  }
  emit(OpCode::FUSION, 0, site, operands, destinations);
  Label end = newLabel();
  emit(OpCode::JUMP_IF, 0, ran, end);
  lowerBlock(body.block());
  std::vector<PendingMove> moves;
  for (size_t i = 0; i < results.size(); ++i) {
    moves.push_back(pendingMove(results[i], body.outputs()[i]));
  }
  current_ = node;
  emitParallelMoves(std::move(moves));
  bind(end);
}

bool Lowering::lowerAttribute(const Node* node) {
  Symbol kind = node->kind();
  if (kind != prim::GetAttr && kind != prim::SetAttr && kind != prim::HasAttr) return false;
  const std::string& name = node->ivalue(attr::name).toString();
  const auto* type = node->input(0)->type()->as<ClassType>();
  WICK_CHECK(type, "{}: '{}' of a value of type {}, expected a class", kind.qualString(), name,
             node->input(0)->type()->str());
  auto slot = type->findAttribute(name);
  if (kind == prim::HasAttr) {
    constants_[node->output()] = addConstant(IValue(slot.has_value()));
    return true;
  }
  WICK_CHECK(slot, "{}: {} has no attribute '{}'", kind.qualString(),
             readableClassName(type->name()), name);
  auto slot_number = static_cast<uint32_t>(*slot);
  uint32_t object = reg(node->input(0));
  if (kind == prim::SetAttr) {
    Value* value = node->input(1);
    emit(OpCode::SET_ATTR, 0, object, operandList({&value, 1}), slot_number);
  } else if (node->output()->hasUses()) {
    emit(OpCode::GET_ATTR, extraFor(*node->output()->type()), define(node->output()), object,
         slot_number);
  }
  return true;
}

bool Lowering::lowerData(const Node* node) {
  Symbol kind = node->kind();
  auto result = [&] { return define(node->output()); };
  if (kind == prim::TupleConstruct || kind == prim::NamedTupleConstruct) {
    uint32_t operands = operandList(node->inputs());
    const auto* type = node->output()->type()->as<TupleType>();
    bool named = type && type->isNamed();
    emit(OpCode::TUPLE_CONSTRUCT, 0, result(), operands,
         named ? typeIndex(node->output()->type()) : kNoIndex);
  } else if (kind == prim::ListConstruct) {
    const auto* type = node->output()->type()->as<ListType>();
    WICK_CHECK(type, "prim::ListConstruct: the result has type {}", node->output()->type()->str());
    uint32_t operands = operandList(node->inputs());
    emit(OpCode::LIST_CONSTRUCT, 0, result(), operands, typeIndex(type->element()));
  } else if (kind == prim::DictConstruct) {
    WICK_CHECK(node->output()->type()->kind() == TypeKind::Dict,
               "prim::DictConstruct: the result has type {}", node->output()->type()->str());
    WICK_CHECK(node->inputs().size() % 2 == 0, "prim::DictConstruct: a key without a value");
    uint32_t operands = operandList(node->inputs());
    emit(OpCode::DICT_CONSTRUCT, 0, result(), operands, typeIndex(node->output()->type()));
  } else if (kind == prim::TupleUnpack) {
    uint32_t tuple = reg(node->input(0));
    emit(OpCode::TUPLE_UNPACK, 0, tuple, destinationList(node));
  } else if (kind == prim::ListUnpack) {
    uint32_t list = reg(node->input(0));
    emit(OpCode::LIST_UNPACK, 0, list, destinationList(node));
  } else if (kind == prim::TupleIndex) {
    uint32_t tuple = reg(node->input(0));
    uint32_t index = scalarReg(node->input(1));
    emit(OpCode::TUPLE_INDEX, extraFor(*node->output()->type()), result(), tuple, index);
  } else if (kind == prim::TupleSlice) {
    uint32_t tuple = reg(node->input(0));
    auto range = static_cast<uint32_t>(out_.operands.size());
    for (Symbol bound : {Symbol::attr("beg"), Symbol::attr("end")}) {
      int64_t value = node->ivalue(bound).toInt();
      WICK_CHECK(value >= 0 && value <= kMaxOperandIndex, "prim::TupleSlice: bound {} is invalid",
                 value);
      out_.operands.push_back(static_cast<uint32_t>(value));
    }
    emit(OpCode::TUPLE_SLICE, 0, result(), tuple, range);
  } else if (kind == prim::CreateObject) {
    WICK_CHECK(node->output()->type()->kind() == TypeKind::Class,
               "prim::CreateObject: the result has type {}", node->output()->type()->str());
    emit(OpCode::CREATE_OBJECT, 0, result(), typeIndex(node->output()->type()));
  } else if (kind == prim::isinstance) {
    uint32_t value = reg(node->input(0));
    code_.type_lists_.push_back(node->typesAttribute(attr::types));
    emit(OpCode::ISINSTANCE, extraFor(*node->output()->type()), result(), value,
         static_cast<uint32_t>(code_.type_lists_.size() - 1));
  } else if (kind == prim::unchecked_cast || kind == prim::unchecked_unwrap_optional) {
    emitMove(result(), node->input(0));
  } else if (kind == prim::RaiseException) {
    emit(OpCode::RAISE, 0, operandList(node->inputs()));
  } else if (kind == prim::Print) {
    emit(OpCode::PRINT, 0, operandList(node->inputs()));
  } else if (kind == prim::Enter) {
    uint32_t object = reg(node->input(0));
    bool bound = !node->outputs().empty();
    emit(OpCode::ENTER, bound ? extraFor(*node->output()->type()) : 0, object,
         bound ? destination(node) : kNoIndex);
  } else if (kind == prim::Exit) {
    emit(OpCode::EXIT, 0, reg(node->input(0)));
    // The value of `with` is None, whatever __exit__ returns.
    if (!node->outputs().empty()) constants_[node->output()] = addConstant(IValue());
  } else if (kind == prim::tolist) {
    uint32_t operands = operandList(node->inputs());
    emit(OpCode::TO_LIST, extraFor(*node->output()->type()), result(), operands,
         typeIndex(node->output()->type()));
  } else if (kind == aten::wait) {
    uint32_t future = reg(node->input(0));
    emit(OpCode::WAIT, extraFor(*node->output()->type()), future, destination(node));
  } else {
    return false;
  }
  return true;
}

bool Lowering::lowerSpeculation(const Node* node) {
  Symbol kind = node->kind();
  if (kind != profileKind() && kind != bailOutKind()) return false;
  WICK_CHECK(code_.speculation_, "{}: the graph is not run by an executor", kind.qualString());
  if (kind == profileKind()) {
    bool ends = node->inputs().empty();
    uint32_t value =
        ends ? kNoIndex : static_cast<uint32_t>(node->ivalue(Symbol::attr("index")).toInt());
    emit(OpCode::PROFILE, 0, value, operandList(node->inputs()));
    return true;
  }
  const std::vector<TypePtr>& types = node->typesAttribute(attr::types);
  const std::vector<IValue>& profiles = node->ivalue(Symbol::attr("profiles")).elements();
  GuardSite site{static_cast<uint32_t>(node->ivalue(Symbol::attr("index")).toInt()), {}};
  for (size_t i = 0; i < types.size(); ++i) {
    TensorKey key = TensorKey::ofType(*types[i]);
    site.expected.push_back(
        {key.mask(), key.bits() & key.mask(), static_cast<uint32_t>(profiles.at(i).toInt())});
  }
  std::span<Value* const> inputs(node->inputs());
  WICK_CHECK(inputs.size() >= types.size(), "prim::BailOut: {} values for {} types", inputs.size(),
             types.size());
  uint32_t guarded = operandList(inputs.first(types.size()));
  uint32_t live = operandList(inputs.subspan(types.size()));
  code_.guard_sites_.push_back(std::move(site));
  emit(OpCode::BAIL_OUT, 0, guarded, live, static_cast<uint32_t>(code_.guard_sites_.size() - 1));
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    if (node->output(i)->hasUses()) emitMove(define(node->output(i)), node->input(i));
  }
  return true;
}

void Lowering::lowerOperator(const Node* node) {
  WICK_CHECK(!(node->isControlFlow() || node->kind() == prim::Load || node->kind() == prim::Store),
             "{}: the graph is not in the form that runs", node->kind().qualString());
  const Operator& op = node->getOperator();
  auto [it, inserted] = operator_index_.try_emplace(&op, code_.operator_sites_.size());
  if (inserted) code_.operator_sites_.push_back({&op});
  uint32_t operands = operandList(node->inputs());
  if (node->outputs().size() == 1) {
    emit(OpCode::OP, extraFor(*node->output()->type()), it->second, operands, destination(node));
  } else {
    emit(OpCode::OP_MULTI, 0, it->second, operands, destinationList(node));
  }
}

}  // namespace wick

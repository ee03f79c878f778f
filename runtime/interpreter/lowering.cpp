#include "runtime/interpreter/lowering.h"

#include <limits>

namespace wick {

uint32_t Lowering::newRegister(uint16_t extra) {
  WICK_CHECK(out_.registers.size() < kMaxOperandIndex, "{}: the graph is too large to run",
             code_.name_);
  out_.registers.push_back({extra, false});
  return static_cast<uint32_t>(out_.registers.size() - 1);
}

uint32_t Lowering::define(const Value* value) {
  return registers_[value] = newRegister(extraFor(*value->type()));
}

uint32_t Lowering::destination(const Node* node) {
  if (node->outputs().empty() || !node->output()->hasUses()) return kNoIndex;
  return define(node->output());
}

uint32_t Lowering::addConstant(const IValue& value) {
  bool plain = !value.isCounted() && !value.isDevice();
  if (plain) {
    auto key = std::make_pair(static_cast<uint32_t>(value.tag()), value.rawInt());
    auto [it, inserted] = scalar_constants_.try_emplace(key, code_.constants_.size());
    if (!inserted) return it->second;
  }
  WICK_CHECK(code_.constants_.size() < kMaxOperandIndex, "{}: the graph is too large to run",
             code_.name_);
  code_.constants_.push_back(value);
  return static_cast<uint32_t>(code_.constants_.size() - 1);
}

void Lowering::noteConstant(const Node* node) {
  const Value* value = node->output();
  if (value->type()->kind() == TypeKind::Function) return;
  IValue constant;
  if (node->kind() == prim::Uninitialized) {
    // Never read, but moved about: any value of the right kind of register will do.
    switch (value->type()->kind()) {
      case TypeKind::Int:
        constant = int64_t{0};
        break;
      case TypeKind::Float:
        constant = 0.0;
        break;
      case TypeKind::Bool:
        constant = false;
        break;
      default:
        break;
    }
  } else if (node->hasAttribute(attr::value)) {
    constant = node->ivalue(attr::value);
    uint16_t extra = extraFor(*value->type());
    WICK_CHECK(extra == 0 || static_cast<uint16_t>(constant.tag()) + 1 == extra,
               "prim::Constant: a value of type {} is declared as {}", constant.tagName(),
               value->type()->str());
  } else {
    WICK_CHECK(extraFor(*value->type()) == 0, "prim::Constant: {} has no value",
               value->type()->str());
  }
  constants_[value] = addConstant(constant);
}

std::optional<uint32_t> Lowering::mappedRegister(const Value* value) const {
  auto it = registers_.find(value);
  if (it == registers_.end()) return std::nullopt;
  auto substitute = substitutes_.find(it->second);
  return substitute == substitutes_.end() ? it->second : substitute->second;
}

uint32_t Lowering::reg(const Value* value) {
  if (auto mapped = mappedRegister(value)) return *mapped;
  auto constant = constants_.find(value);
  WICK_ASSERT(constant != constants_.end(), "%{} is used before it is defined", value->debugName());
  if (extraFor(*value->type()) != 0) return loadScalar(constant->second);
  uint32_t r = newRegister(0);
  emit(OpCode::LOADK, 0, r, constant->second);
  return r;
}

uint32_t Lowering::loadScalar(uint32_t constant) {
  auto extra = static_cast<uint16_t>(static_cast<uint16_t>(code_.constants_[constant].tag()) + 1);
  if (loop_depth_ == 0) {
    uint32_t r = newRegister(extra);
    emit(OpCode::SLOADK, 0, r, constant);
    return r;
  }
  auto [it, inserted] = hoisted_.try_emplace(constant, 0);
  if (inserted) {
    it->second = newRegister(extra);
    prologue_.push_back({OpCode::SLOADK, 0, it->second, constant, 0});
  }
  return it->second;
}

uint32_t Lowering::scalarReg(const Value* value) {
  uint32_t r = reg(value);
  if (out_.registers[r].isScalar()) return r;
  uint16_t extra = extraFor(*value->type());
  WICK_ASSERT(extra != 0, "%{} is no scalar", value->debugName());
  uint32_t unboxed = newRegister(extra);
  emit(OpCode::UNBOX, extra, unboxed, r);
  return unboxed;
}

uint32_t Lowering::floatReg(const Value* value) {
  if (value->type()->kind() == TypeKind::Float) return scalarReg(value);
  auto constant = constants_.find(value);
  if (constant != constants_.end()) {
    double converted = static_cast<double>(code_.constants_[constant->second].toInt());
    return loadScalar(addConstant(IValue(converted)));
  }
  uint32_t r = newRegister(extraFor(*types::Float()));
  emit(OpCode::INT_TO_FLOAT, 0, r, scalarReg(value));
  return r;
}

uint32_t Lowering::typeIndex(const TypePtr& type) {
  for (size_t i = 0; i < code_.types_.size(); ++i) {
    if (code_.types_[i] == type) return static_cast<uint32_t>(i);
  }
  code_.types_.push_back(type);
  return static_cast<uint32_t>(code_.types_.size() - 1);
}

void Lowering::emit(OpCode op, uint16_t extra, uint32_t a, uint32_t b, uint32_t c) {
  out_.instructions.push_back({op, extra, a, b, c});
  out_.nodes.push_back(current_);
}

uint32_t Lowering::operandList(std::span<Value* const> values) {
  auto offset = static_cast<uint32_t>(out_.operands.size());
  out_.operands.push_back(static_cast<uint32_t>(values.size()));
  for (const Value* value : values) {
    if (auto r = mappedRegister(value)) {
      out_.operands.push_back(makeOperand(OperandKind::Copy, *r));
      continue;
    }
    auto constant = constants_.find(value);
    WICK_CHECK(constant != constants_.end(), "{}: a function cannot be an operand here",
               current_ ? current_->kind().qualString() : "return");
    out_.operands.push_back(makeOperand(OperandKind::Constant, constant->second));
  }
  return offset;
}

uint32_t Lowering::destinationList(const Node* node) {
  std::vector<uint32_t> entries;
  for (const Value* value : node->outputs()) {
    entries.push_back(value->hasUses() ? makeDestination(extraFor(*value->type()), define(value))
                                       : makeDestination(0, kNoDestination));
  }
  auto offset = static_cast<uint32_t>(out_.operands.size());
  out_.operands.push_back(static_cast<uint32_t>(entries.size()));
  out_.operands.insert(out_.operands.end(), entries.begin(), entries.end());
  return offset;
}

Lowering::Label Lowering::newLabel() {
  out_.labels.push_back(kNoIndex);
  return static_cast<Label>(out_.labels.size() - 1);
}

void Lowering::bind(Label label) {
  out_.labels[label] = static_cast<uint32_t>(out_.instructions.size());
}

void Lowering::emitRegisterMove(uint32_t destination, uint32_t source) {
  if (destination == source) return;
  const VirtualRegister& to = out_.registers[destination];
  if (!to.isScalar()) {
    emit(OpCode::COPY, 0, destination, source);
  } else if (out_.registers[source].isScalar()) {
    emit(OpCode::SMOVE, 0, destination, source);
  } else {
    emit(OpCode::UNBOX, to.extra, destination, source);
  }
}

void Lowering::emitMove(uint32_t destination, const Value* source) {
  if (auto r = mappedRegister(source)) return emitRegisterMove(destination, *r);
  auto constant = constants_.find(source);
  WICK_ASSERT(constant != constants_.end(), "%{} is used before it is defined",
              source->debugName());
  bool scalar = out_.registers[destination].isScalar();
  emit(scalar ? OpCode::SLOADK : OpCode::LOADK, 0, destination, constant->second);
}

Lowering::PendingMove Lowering::pendingMove(uint32_t destination, const Value* source) {
  return {destination, source, mappedRegister(source).value_or(kNoIndex)};
}

void Lowering::emitParallelMoves(std::vector<PendingMove> moves) {
  std::unordered_map<uint32_t, size_t> reads;
  std::erase_if(moves, [](const PendingMove& m) { return m.destination == m.source_register; });
  for (const PendingMove& m : moves) ++reads[m.source_register];
  while (!moves.empty()) {
    size_t before = moves.size();
    // A register that no pending move reads may be overwritten.
    std::erase_if(moves, [&](const PendingMove& m) {
      auto waiting = reads.find(m.destination);
      if (waiting != reads.end() && waiting->second != 0) return false;
      if (m.source_register == kNoIndex) {
        emitMove(m.destination, m.source);
      } else {
        emitRegisterMove(m.destination, m.source_register);
      }
      --reads[m.source_register];
      return true;
    });
    if (moves.size() != before) continue;
    // Only cycles are left: save one destination, and let its readers read the copy.
    uint32_t saved = moves.front().destination;
    uint32_t copy = newRegister(out_.registers[saved].extra);
    emitRegisterMove(copy, saved);
    for (PendingMove& m : moves) {
      if (m.source_register == saved) m.source_register = copy;
    }
    reads[copy] = reads[saved];
    reads[saved] = 0;
  }
}

bool Lowering::isOnlyCondition(const Node* node, const Node** user) const {
  if (node->outputs().size() != 1) return false;
  const Value* value = node->output();
  if (value->uses().size() != 1 || value->type()->kind() != TypeKind::Bool) return false;
  const Use& use = value->uses()[0];
  if (use.user->block() != node->block() && use.user != node->block()->returnNode()) return false;
  *user = use.user;
  if (use.user->kind() == prim::If) return true;
  if (use.user->kind() == prim::Loop) return use.offset == 1;
  if (use.user->kind() == aten::__not__) return deferred_.count(use.user) || shouldDefer(use.user);
  if (use.user->kind() != prim::Return || use.offset != 0) return false;
  const Node* owner = node->block()->owningNode();
  if (!owner) return false;
  if (owner->kind() == prim::Loop) return survivesLoopMoves(node, node->block());
  // The result of one side of an `and` or `or` that is itself only a condition.
  return owner->kind() == prim::If && deferred_.count(owner);
}

// The condition of a back edge is evaluated behind the moves into the carried registers, so it must
// not read what they overwrite.
bool Lowering::survivesLoopMoves(const Node* node, const Block* body) const {
  std::unordered_set<uint32_t> overwritten;
  const auto& inputs = body->inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto r = mappedRegister(inputs[i]);
    if (!r) continue;
    // The counter is stepped; a carried value is kept only when it is its own successor.
    if (i == 0 || mappedRegister(body->outputs()[i]) != r) overwritten.insert(*r);
  }
  std::vector<const Node*> pending{node};
  while (!pending.empty()) {
    const Node* n = pending.back();
    pending.pop_back();
    for (const Value* input : n->inputs()) {
      auto r = mappedRegister(input);
      if (r && overwritten.count(*r)) return false;
      if (deferred_.count(input->node())) pending.push_back(input->node());
    }
    for (const Block* block : n->blocks()) {
      for (const Node* inner : block->nodes()) pending.push_back(inner);
      pending.push_back(block->returnNode());
    }
  }
  return true;
}

bool Lowering::shouldDefer(const Node* node) const {
  const Node* user = nullptr;
  if (node->kind() == prim::If) {
    if (!isOnlyCondition(node, &user)) return false;
    // Its blocks may have effects, so nothing but constants may stand between it and its user.
    const Node* next = node->next();
    while (next != user && (next->kind() == prim::Constant || deferred_.count(next))) {
      next = next->next();
    }
    return next == user;
  }
  if (node->kind() == aten::__not__) {
    return node->inputs().size() == 1 && node->input(0)->type()->kind() == TypeKind::Bool &&
           isOnlyCondition(node, &user);
  }
  auto selection = selectScalar(node);
  return selection && selection->is_compare && isOnlyCondition(node, &user);
}

void Lowering::emitBranch(const Value* condition, Label if_true, Label if_false,
                          bool next_is_true) {
  const Node* node = condition->node();
  Label far = next_is_true ? if_false : if_true;
  bool when = !next_is_true;
  if (auto constant = constants_.find(condition); constant != constants_.end()) {
    bool value = code_.constants_[constant->second].toBool();
    if (value == when) emit(OpCode::JUMP, 0, far);
    return;
  }
  if (!deferred_.count(node)) {
    emit(when ? OpCode::JUMP_IF : OpCode::JUMP_UNLESS, 0, scalarReg(condition), far);
    return;
  }
  const Node* outer = std::exchange(current_, node);
  if (node->kind() == aten::__not__) {
    emitBranch(node->input(0), if_false, if_true, !next_is_true);
  } else if (node->kind() == prim::If) {
    emitConditionalBranch(node, if_true, if_false, next_is_true);
  } else {
    auto selection = selectScalar(node);
    const Value* a = node->input(selection->swap ? 1 : 0);
    const Value* b = node->input(selection->swap ? 0 : 1);
    CompareJump jump = jumpForCompare(selection->op, when);
    if (jump.swap) std::swap(a, b);
    uint32_t ra = selection->as_float ? floatReg(a) : scalarReg(a);
    uint32_t rb = selection->as_float ? floatReg(b) : scalarReg(b);
    emit(jump.op, 0, ra, rb, far);
  }
  current_ = outer;
}

// The answer of a side of an `and` or `or` that computes nothing.
std::optional<bool> Lowering::constantSide(const Block* block) {
  for (const Node* node : block->nodes()) {
    if (node->kind() != prim::Constant) return std::nullopt;
    noteConstant(node);
  }
  auto constant = constants_.find(block->outputs()[0]);
  if (constant == constants_.end()) return std::nullopt;
  return code_.constants_[constant->second].toBool();
}

void Lowering::emitConditionalBranch(const Node* node, Label if_true, Label if_false,
                                     bool next_is_true) {
  const Block* sides[] = {node->blocks()[0], node->blocks()[1]};
  Label labels[2];
  std::optional<bool> known[2];
  for (int i = 0; i < 2; ++i) {
    known[i] = constantSide(sides[i]);
    labels[i] = known[i] ? (*known[i] ? if_true : if_false) : newLabel();
  }
  if (known[0] && known[1]) {
    emitBranch(node->input(0), labels[0], labels[1], next_is_true == *known[0]);
    if (*known[0] == *known[1] && *known[0] != next_is_true) emit(OpCode::JUMP, 0, labels[0]);
    return;
  }
  emitBranch(node->input(0), labels[0], labels[1], !known[0]);
  for (int i = 0; i < 2; ++i) {
    if (known[i]) continue;
    bind(labels[i]);
    lowerBlock(sides[i]);
    current_ = node;
    const Value* result = sides[i]->outputs()[0];
    bool other_follows = i == 0 && !known[1];
    if (!other_follows) {
      emitBranch(result, if_true, if_false, next_is_true);
    } else {
      Label between = newLabel();
      emitBranch(result, if_true, between, false);
      bind(between);
      emit(OpCode::JUMP, 0, if_false);
    }
  }
}

void Lowering::lowerBlock(const Block* block) {
  for (const Node* node : block->nodes()) {
    current_ = node;
    if (shouldDefer(node)) {
      deferred_.insert(node);
    } else {
      lowerNode(node);
    }
  }
}

void Lowering::lowerIf(const Node* node) {
  std::vector<uint32_t> results;
  for (const Value* output : node->outputs()) {
    results.push_back(output->hasUses() ? define(output) : kNoIndex);
  }
  Label then_label = newLabel();
  Label else_label = newLabel();
  Label end = newLabel();
  emitBranch(node->input(0), then_label, else_label, true);
  for (size_t side = 0; side < 2; ++side) {
    const Block* block = node->blocks()[side];
    bind(side == 0 ? then_label : else_label);
    lowerBlock(block);
    current_ = node;
    std::vector<PendingMove> moves;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i] != kNoIndex) moves.push_back(pendingMove(results[i], block->outputs()[i]));
    }
    emitParallelMoves(std::move(moves));
    if (side == 0) emit(OpCode::JUMP, 0, end);
  }
  bind(end);
}

void Lowering::lowerLoop(const Node* node) {
  const Block* body = node->blocks()[0];
  const Value* trip_count = node->input(0);
  auto known_count = constantOf(trip_count);
  bool counted = !(known_count && known_count->toInt() == std::numeric_limits<int64_t>::max());
  uint16_t int_extra = extraFor(*types::Int());

  for (size_t i = 1; i < body->inputs().size(); ++i) {
    uint32_t carried = define(body->inputs()[i]);
    registers_[node->output(i - 1)] = carried;
    emitMove(carried, node->input(i + 1));
  }
  uint32_t index = kNoIndex;
  uint32_t limit = kNoIndex;
  if (counted || body->inputs()[0]->hasUses()) {
    index = newRegister(int_extra);
    registers_[body->inputs()[0]] = index;
    emit(OpCode::SLOADK, 0, index, addConstant(IValue(int64_t{0})));
  }
  Label body_label = newLabel();
  Label first_test = newLabel();
  Label exit = newLabel();
  // The carried registers hold the initial values now, and reading them here lets the moves go.
  auto outer = substitutes_;
  for (size_t i = 1; i < body->inputs().size(); ++i) {
    auto source = registers_.find(node->input(i + 1));
    uint32_t carried = registers_[body->inputs()[i]];
    if (source == registers_.end()) continue;
    if (out_.registers[source->second].isScalar() == out_.registers[carried].isScalar()) {
      substitutes_[source->second] = carried;
    }
  }
  emitBranch(node->input(1), first_test, exit, true);
  substitutes_ = std::move(outer);
  bind(first_test);
  if (counted) {
    limit = scalarReg(trip_count);
    emit(OpCode::JUMP_IF_LE_INT, 0, limit, index, exit);
  }
  bind(body_label);
  ++loop_depth_;
  lowerBlock(body);
  current_ = node;
  std::vector<PendingMove> moves;
  for (size_t i = 1; i < body->inputs().size(); ++i) {
    moves.push_back(pendingMove(registers_[body->inputs()[i]], body->outputs()[i]));
  }
  emitLoopEnd(body, moves, index, limit, body_label, exit);
  --loop_depth_;
  bind(exit);
}

void Lowering::emitLoopEnd(const Block* body, const std::vector<PendingMove>& moves, uint32_t index,
                           uint32_t limit, Label body_label, Label exit) {
  const Value* condition = body->outputs()[0];
  auto constant = constants_.find(condition);
  bool always = constant != constants_.end() && code_.constants_[constant->second].toBool();
  bool deferred = deferred_.count(condition->node()) != 0;
  uint32_t flag = kNoIndex;
  if (constant == constants_.end() && !deferred) {
    flag = scalarReg(condition);
    for (const PendingMove& m : moves) {
      if (m.destination != flag || m.source_register == flag) continue;
      uint32_t copy = newRegister(out_.registers[flag].extra);
      emitRegisterMove(copy, flag);
      flag = copy;
      break;
    }
  }
  emitParallelMoves(moves);
  auto step = [&] {
    if (limit != kNoIndex) {
      emit(OpCode::FOR_STEP, 0, index, limit, body_label);
      return;
    }
    if (index != kNoIndex) {
      emit(OpCode::ADD_INT, 0, index, index, loadScalar(addConstant(IValue(int64_t{1}))));
    }
    emit(OpCode::JUMP, 0, body_label);
  };
  if (always) return step();
  if (constant != constants_.end()) return;  // runs once
  Label again = newLabel();
  bool direct = limit == kNoIndex && index == kNoIndex;
  if (deferred) {
    auto outer = substitutes_;
    for (const PendingMove& m : moves) {
      if (m.source_register == kNoIndex) continue;
      if (out_.registers[m.source_register].isScalar() ==
          out_.registers[m.destination].isScalar()) {
        substitutes_[m.source_register] = m.destination;
      }
    }
    if (direct) {
      emitBranch(condition, body_label, exit, false);
    } else {
      emitBranch(condition, again, exit, true);
    }
    substitutes_ = std::move(outer);
  } else {
    emit(direct ? OpCode::JUMP_IF : OpCode::JUMP_UNLESS, 0, flag, direct ? body_label : exit);
  }
  bind(again);
  if (!direct) step();
}

VirtualCode Lowering::run() {
  const Graph& graph = *code_.graph_;
  out_.num_inputs = graph.inputs().size();
  for (const Value* input : graph.inputs()) {
    const uint32_t r = define(input);
    // A caller may lend its module (InterpreterState), which many threads run at a time.
    const auto* type = input->type()->as<ClassType>();
    out_.registers[r].kept = type && type->isModule();
  }
  lowerBlock(graph.block());
  current_ = nullptr;
  emit(OpCode::RETURN, 0, operandList(graph.outputs()));

  size_t shift = prologue_.size();
  out_.instructions.insert(out_.instructions.begin(), prologue_.begin(), prologue_.end());
  out_.nodes.insert(out_.nodes.begin(), shift, nullptr);
  for (uint32_t& label : out_.labels) {
    if (label != kNoIndex) label += static_cast<uint32_t>(shift);
  }
  return std::move(out_);
}

}  // namespace wick

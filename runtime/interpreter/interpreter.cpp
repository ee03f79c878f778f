#include "runtime/interpreter/interpreter.h"

#include "core/tensor_kind.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/call_places.h"
#include "runtime/interpreter/frame_operations.h"
#include "runtime/interpreter/interpreter_state.h"
#include "runtime/interpreter/observer.h"
#include "runtime/interpreter/scalar_semantics.h"
#include "runtime/interpreter/slow_paths.h"
#include "runtime/jit_mode.h"
#include "runtime/thread_pool.h"

namespace wick {
namespace {

// 1 GiB of registers: what deep recursion of large functions may use.
constexpr size_t kMaxRegisters = size_t{1} << 26;
// Steps between two looks at the limits.
constexpr int64_t kFuelSlice = 256;
inline GraphExecutor& executorOf(FunctionSite& site) {
  GraphExecutor* executor = site.executor.load(std::memory_order_acquire);
  if (!executor) {
    executor = &GraphExecutor::of(*site.function);
    site.executor.store(executor, std::memory_order_release);
  }
  return *executor;
}

}  // namespace

InterpreterState::InterpreterState(const Code& code, std::span<IValue> arguments,
                                   std::shared_ptr<RunContext> context, size_t depth, bool lent)
    : context_(std::move(context)),
      observer_(context_->options.observer),
      attended_(observer_ || context_->limited || context_->turns() || callPlacesAreNoted()),
      compiler_(observer_ || jitMode() == JitMode::Off ? nullptr : nativeCompiler()),
      depth_(depth),
      lent_(lent) {
  WICK_CHECK(arguments.size() == code.numInputs(), "{}: expected {} arguments, got {}", code.name(),
             code.numInputs(), arguments.size());
  code.noteThread();
  native_.state = this;
  frames_.reserve(16);
  reserve(code.numRegisters() + code.scratchSize());
  for (size_t i = 0; i < arguments.size(); ++i) {
    new (&stack_.data()[i]) IValue(std::move(arguments[i]));
  }
  frames_.push_back({&code, 0, 0, kNoIndex, 0});
  initializeRegisters(frames_.back());
}

InterpreterState::~InterpreterState() {
  if (!frames_.empty()) unwind(nullptr);
}

void InterpreterState::reserve(size_t registers) {
  if (registers <= stack_.capacity()) return;
  WICK_CHECK(registers <= kMaxRegisters, "the registers of nested calls exceed the limit of {}",
             kMaxRegisters);
  stack_.grow(std::max(registers, 2 * stack_.capacity()));
}

void InterpreterState::initializeRegisters(const Frame& frame) {
  IValue* r = stack_.data() + frame.base;
  for (size_t i = frame.code->numInputs(); i < frame.code->numObjectRegisters(); ++i) {
    new (&r[i]) IValue();
  }
}

void InterpreterState::destroyRegisters(const Frame& frame) {
  IValue* r = stack_.data() + frame.base;
  if (lent_ && frame.base == 0) {
    r[0].forget();
    lent_ = false;
  }
  for (size_t i = 0; i < frame.code->numObjectRegisters(); ++i) r[i].~IValue();
}

const ClassTypePtr& InterpreterState::typeOfNew(const ClassType& type) {
  for (const ClassTypePtr& known : types_of_new_) {
    if (known.get() == &type) return known;
  }
  ClassTypePtr shared = type.shared();
  ClassType* object = shared.get();
  return types_of_new_.emplace_back(std::make_shared<ClassTypePtr>(std::move(shared)), object);
}

void InterpreterState::refuel() {
  RunContext& context = *context_;
  if (reserve_ > 0) {
    --reserve_;
    native_.fuel = 0;
    return;
  }
  if (memoryExceeded()) throwMemoryExceeded();
  if (Turns* turns = context.turns()) {
    // Another run on this thread may have been the first that forked.
    attended_ = true;
    turns->offer();
  }
  if (!context.limited) {
    native_.fuel = kFuelSlice - 1;
    return;
  }
  checkBudget();
  uint64_t left = context.steps_left.load(std::memory_order_relaxed);
  uint64_t taken;
  do {
    if (left == 0) {
      throw RuntimeError(
          fmt::format("the run exceeded its limit of {} steps", context.options.max_steps),
          "TimeoutError");
    }
    taken = std::min<uint64_t>(left, kFuelSlice);
  } while (!context.steps_left.compare_exchange_weak(left, left - taken));
  native_.fuel = static_cast<int64_t>(taken) - 1;
}

void InterpreterState::pushFrame(const Code& code, uint32_t destination, uint16_t extra) {
  step();
  WICK_CHECK(frames_.size() + depth_ < context_->options.max_depth,
             "maximum recursion depth of {} exceeded", context_->options.max_depth);
  const Frame& caller = frames_.back();
  size_t base = caller.base + caller.code->numRegisters();
  reserve(base + code.numRegisters() + code.scratchSize());
  frames_.push_back({&code, base, 0, destination, extra});
}

std::vector<IValue> InterpreterState::gatherVector(const Code& code, const uint32_t* operands,
                                                   IValue* registers) {
  std::vector<IValue> values;
  values.reserve(operands[0]);
  for (uint32_t i = 1; i <= operands[0]; ++i) {
    values.push_back(operandValue(code, operands[i], registers));
  }
  return values;
}

void InterpreterState::callFunction(GraphExecutor& executor, const uint32_t* operands,
                                    uint32_t destination, uint16_t extra) {
  const Code& code = *frames_.back().code;
  const size_t from = frames_.back().base;
  const size_t base = from + code.numRegisters();
  const Code* callee = executor.onlyCode();
  if (callee) {
    WICK_ASSERT(operands[0] == callee->numInputs(), "{} is called with {} arguments",
                callee->name(), operands[0]);
    pushFrame(*callee, destination, extra);
    gather(code, operands, stack_.data() + from, stack_.data() + base);
  } else {
    // The arguments, which lie where the callee's frame begins, tell which Code it is.
    reserve(base + operands[0]);
    gather(code, operands, stack_.data() + from, stack_.data() + base);
    try {
      callee = &executor.codeFor({stack_.data() + base, operands[0]});
      WICK_ASSERT(operands[0] == callee->numInputs(), "{} is called with {} arguments",
                  callee->name(), operands[0]);
      pushFrame(*callee, destination, extra);
    } catch (...) {
      for (uint32_t i = 0; i < operands[0]; ++i) stack_.data()[base + i].~IValue();
      throw;
    }
  }
  initializeRegisters(frames_.back());
}

GraphExecutor& InterpreterState::findMethod(const Code& code, const Instruction& instruction) {
  MethodSite& site = *code.methodSites()[instruction.a];
  const uint32_t* operands = code.operands().data() + instruction.b;
  WICK_ASSERT(operands[0] > 0, "a method call without object");
  uint32_t index = operandIndex(operands[1]);
  const IValue& self = operandKind(operands[1]) == OperandKind::Constant
                           ? code.constants()[index]
                           : stack_.data()[frames_.back().base + index];
  const ClassTypePtr& type = self.toObject().type();
  MethodSite::Entry* last = site.last.load(std::memory_order_acquire);
  for (MethodSite::Entry* entry = last; entry; entry = entry->older) {
    if (entry->type.get() == type.get()) return *entry->executor;
  }
  auto* method = dynamic_cast<GraphFunction*>(type->findMethod(site.name));
  WICK_CHECK(method, "{} has no method '{}'", readableClassName(type->name()), site.name);
  GraphExecutor& executor = GraphExecutor::of(*method);
  if (last && last->count >= MethodSite::kMostEntries) return executor;
  auto entry = std::make_unique<MethodSite::Entry>(
      MethodSite::Entry{type, &executor, last, last ? last->count + 1 : 1});
  while (entry->count <= MethodSite::kMostEntries) {
    if (site.last.compare_exchange_weak(entry->older, entry.get())) {
      entry.release();
      break;
    }
    // Another thread added one.
    entry->count = entry->older ? entry->older->count + 1 : 1;
  }
  return executor;
}

void InterpreterState::callMethod(const IValue& object, const char* name, size_t num_nones,
                                  uint32_t destination, uint16_t extra) {
  const ClassType& type = *object.toObject().type();
  auto* method = dynamic_cast<GraphFunction*>(type.findMethod(name));
  WICK_CHECK(method, "{} has no method '{}'", type.name(), name);
  const Code& callee = GraphExecutor::of(*method).code();
  WICK_CHECK(callee.numInputs() == 1 + num_nones, "{}.{}: expected {} arguments, it takes {}",
             type.name(), name, 1 + num_nones, callee.numInputs());
  IValue self = object;
  pushFrame(callee, destination, extra);
  IValue* r = stack_.data() + frames_.back().base;
  new (&r[0]) IValue(std::move(self));
  for (size_t i = 1; i <= num_nones; ++i) new (&r[i]) IValue();
  initializeRegisters(frames_.back());
}

void InterpreterState::enter(const Instruction& instruction) {
  IValue object = objectOf(instruction);
  size_t depth = frames_.size();
  callMethod(object, "__enter__", 0, instruction.b, instruction.extra & kTagMask);
  entered_.push_back({depth, std::move(object)});
}

void InterpreterState::exit(const Instruction& instruction) {
  const IValue object = objectOf(instruction);
  WICK_ASSERT(!entered_.empty() && entered_.back().depth == frames_.size(),
              "__exit__ without __enter__");
  entered_.pop_back();
  callMethod(object, "__exit__", 3, kNoIndex, 0);
}

IValue InterpreterState::objectOf(const Instruction& instruction) {
  IValue& object = stack_.data()[frames_.back().base + instruction.a];
  return instruction.extra & kLastUse ? std::exchange(object, IValue()) : object;
}

bool InterpreterState::returnFromFrame(const uint32_t* operands) {
  Frame frame = frames_.back();
  IValue* r = stack_.data() + frame.base;
  IValue value;
  if (operands[0] == 1) {
    gather(*frame.code, operands, r, &value);
  } else if (operands[0] > 1) {
    value = IValue(makeTuple(gatherVector(*frame.code, operands, r)));
  }
  destroyRegisters(frame);
  frames_.pop_back();
  if (frames_.empty()) {
    result_ = std::move(value);
    return true;
  }
  if (frame.destination == kNoIndex) return false;
  store(stack_.data()[frames_.back().base + frame.destination], std::move(value), frame.extra);
  return false;
}

void InterpreterState::bailOut(const Code& code, const Instruction& instruction) {
  const uint32_t* operands = code.operands().data();
  IValue* r = stack_.data() + frames_.back().base;
  std::vector<IValue> guarded = gatherVector(code, operands + instruction.a, r);
  std::vector<IValue> live = gatherVector(code, operands + instruction.b, r);
  const Code& rest = code.speculation()->leave(code.guardSites()[instruction.c], guarded);
  WICK_ASSERT(rest.numInputs() == live.size(), "{} goes on with {} values", rest.name(),
              live.size());
  reserve(frames_.back().base + rest.numRegisters() + rest.scratchSize());
  destroyRegisters(frames_.back());
  frames_.back().code = &rest;
  frames_.back().pc = 0;
  r = stack_.data() + frames_.back().base;
  for (size_t i = 0; i < live.size(); ++i) new (&r[i]) IValue(std::move(live[i]));
  initializeRegisters(frames_.back());
}

void InterpreterState::fork(const Code& code, const Instruction& instruction, const Node* node) {
  step();
  size_t depth = depth_ + frames_.size();
  WICK_CHECK(depth < context_->options.max_depth, "maximum recursion depth of {} exceeded",
             context_->options.max_depth);
  IValue* r = stack_.data() + frames_.back().base;
  std::vector<IValue> arguments = gatherVector(code, code.operands().data() + instruction.b, r);
  ForkSite& site = *code.forkSites()[instruction.a];
  const Code& body = executorOf(site.site).codeFor(arguments);
  if (kindsInUse()) [[unlikely]] {
    if (FutureRef done = forkOnThread(code, site, body, arguments, depth)) {
      if (instruction.c != kNoIndex) r[instruction.c] = IValue(std::move(done));
      return;
    }
  }
  context_->beginForks();
  attended_ = true;
  // The fork may outlive the caller, who has the owner up to here.
  context_->owner();
  auto state = std::make_shared<InterpreterState>(body, arguments, context_, depth);
  const auto* type = node->output()->type()->as<FutureType>();
  FutureRef future = state->launch(type->element());
  if (instruction.c != kNoIndex) r[instruction.c] = IValue(std::move(future));
}

void InterpreterState::call(const Code& code, const Instruction& instruction, IValue* r) {
  step();
  if (attended_) {
    callAttended(code, instruction, r);
  } else {
    callAny(code, instruction, r);
  }
}

void InterpreterState::callAttended(const Code& code, const Instruction& instruction, IValue* r) {
  const CallPlaceScope place(code, instruction);
  checkBudget();
  checkGrowth();
  Turns* const turns = context_->turns();
  Turns::Accesses accesses;
  const auto prepare = [&](const Operator* op, IValue* arguments, size_t count,
                           uint64_t& borrowed) {
    if (!turns) return std::unique_ptr<Turns::Outside>();
    const Node* node = code.nodeOf(static_cast<size_t>(&instruction - code.instructions().data()));
    const uint64_t written = op ? op->writtenArguments(*node)
                             : code.fusionSites()[instruction.a]->writes() ? ~uint64_t{0}
                                                                           : 0;
    const bool goes_outside = accesses.note(op, written, arguments, count, borrowed);
    turns->awaitNoCollision(accesses);
    return goes_outside ? std::make_unique<Turns::Outside>(*turns, accesses) : nullptr;
  };
  if (observer_) {
    callObserved(code, instruction, r, prepare);
  } else {
    callAny(code, instruction, r, prepare);
  }
}

template <class Prepare>
void InterpreterState::callObserved(const Code& code, const Instruction& instruction, IValue* r,
                                    Prepare&& prepare) {
  size_t allocated = allocatedBytes();
  auto begin = std::chrono::steady_clock::now();
  const auto tell = [&](const Operator* op, IValue* arguments, size_t count, uint64_t& borrowed) {
    auto prepared = prepare(op, arguments, count, borrowed);
    const auto before = std::chrono::steady_clock::now();
    observer_->calling({arguments, count});
    begin += std::chrono::steady_clock::now() - before;
    return prepared;
  };
  const auto report = [&](bool failed) {
    auto end = std::chrono::steady_clock::now();
    auto bytes = static_cast<int64_t>(allocatedBytes()) - static_cast<int64_t>(allocated);
    const Node* node = code.nodeOf(&instruction - code.instructions().data());
    const bool fused = instruction.op == OpCode::FUSION;
    const Operator* op = fused ? nullptr : code.operatorSites()[instruction.a].op;
    observer_->called({*node, op, begin, end, bytes, failed});
  };
  try {
    // Groups that did not run go on with their operators, which are reported.
    if (!callAny(code, instruction, r, tell)) return;
  } catch (...) {
    report(true);
    throw;
  }
  report(false);
}

// True when the instruction is done, false when the state must be suspended.
bool InterpreterState::waitForFuture(const Instruction& instruction, IValue* r) {
  FutureRef future(&r[instruction.a].toFuture());
  if (!future->done()) {
    if (asynchronous_) {
      waits_for_ = std::move(future);
      thread_context_ = threadContext();
      return false;
    }
    context_->await(*future);
  }
  context_->side_forks.join(*future);
  IValue value = future->wait();
  if (instruction.extra & kLastUse) r[instruction.a] = IValue();
  if (instruction.b != kNoIndex) store(r[instruction.b], std::move(value), instruction.extra);
  return true;
}

#define I(x) r[pc->x].rawInt()
#define D(x) r[pc->x].rawDouble()
#define B(x) (r[pc->x].rawInt() != 0)
#define WICK_NEXT() goto* kLabels[static_cast<size_t>(pc->op)]
#define WICK_ADVANCE() \
  do {                 \
    ++pc;              \
    WICK_NEXT();       \
  } while (false)
#define WICK_JUMP(target)                     \
  do {                                        \
    const Instruction* to = begin + (target); \
    if (to <= pc && --native_.fuel < 0) {     \
      refuel();                               \
      pc = to;                                \
      goto loop_header;                       \
    }                                         \
    pc = to;                                  \
    WICK_NEXT();                              \
  } while (false)
// A call that may push or pop a frame and move the register stack.
#define WICK_SWITCH_FRAME(call)                                \
  do {                                                         \
    frames_.back().pc = static_cast<uint32_t>(pc + 1 - begin); \
    call;                                                      \
    goto load_frame;                                           \
  } while (false)

InterpreterState::Status InterpreterState::execute() {
  static const void* const kLabels[] = {
#define WICK_INSTRUCTION(name, format, effect) &&name,
      WICK_FORALL_MOVE_INSTRUCTIONS(WICK_INSTRUCTION)
          WICK_FORALL_SCALAR_INSTRUCTIONS(WICK_INSTRUCTION)
              WICK_FORALL_JUMP_INSTRUCTIONS(WICK_INSTRUCTION)
                  WICK_FORALL_CALL_INSTRUCTIONS(WICK_INSTRUCTION)
#undef WICK_INSTRUCTION
#define WICK_INSTRUCTION(name, format, effect) &&data,
                      WICK_FORALL_DATA_INSTRUCTIONS(WICK_INSTRUCTION)
#undef WICK_INSTRUCTION
  };
  const Code* code;
  const Instruction* begin;
  const Instruction* pc = nullptr;
  IValue* r;
  size_t level;
  uint32_t entry;
  try {
  load_frame:
    level = frames_.size();
    code = frames_.back().code;
    begin = code->instructions().data();
    pc = begin + frames_.back().pc;
    r = stack_.data() + frames_.back().base;
    entry = nativeEntry(*code, frames_.back().pc, frames_.back().pc == 0 ? 1 : 0);
    if (entry != kNoEntry) goto native;
    WICK_NEXT();
  loop_header:
    // Once in a slice of steps.
    entry = nativeEntry(*code, static_cast<uint32_t>(pc - begin), kFuelSlice);
    if (entry != kNoEntry) goto native;
    native_.fuel += std::exchange(reserve_, 0);
    WICK_NEXT();
  native : {
    uint32_t left_at = runNative(*code->native(), entry, r);
    pc = begin + (left_at & ~kNativeRaised);
    if (left_at & kNativeRaised) std::rethrow_exception(std::exchange(native_error_, nullptr));
    WICK_NEXT();
  }

  MOVE:
    r[pc->a] = std::move(r[pc->b]);
    WICK_ADVANCE();
  COPY:
    r[pc->a] = r[pc->b];
    WICK_ADVANCE();
  SMOVE:
    borrow(r[pc->b], &r[pc->a]);
    WICK_ADVANCE();
  LOADK:
    r[pc->a] = code->constants()[pc->b];
    WICK_ADVANCE();
  SLOADK:
    new (&r[pc->a]) IValue(code->constants()[pc->b]);
    WICK_ADVANCE();
  UNBOX:
    storeScalar(r[pc->a], r[pc->b], pc->extra & kTagMask);
    if (pc->extra & kLastUse) r[pc->b] = IValue();
    WICK_ADVANCE();
  DROP:
    r[pc->a] = IValue();
    WICK_ADVANCE();

#define WICK_SCALAR(name, result, expression) \
  name : {                                    \
    result value = expression;                \
    new (&r[pc->a]) IValue(value);            \
    WICK_ADVANCE();                           \
  }
    WICK_FORALL_SCALAR_SEMANTICS(WICK_SCALAR)
#undef WICK_SCALAR
#define WICK_COMPARE_JUMP(name, condition) \
  name:                                    \
  if (condition) WICK_JUMP(pc->c);         \
  WICK_ADVANCE();
    WICK_FORALL_COMPARE_JUMPS(WICK_COMPARE_JUMP)
#undef WICK_COMPARE_JUMP

  JUMP:
    WICK_JUMP(pc->a);
  JUMP_IF:
    if (B(a)) WICK_JUMP(pc->b);
    WICK_ADVANCE();
  JUMP_UNLESS:
    if (!B(a)) WICK_JUMP(pc->b);
    WICK_ADVANCE();
  FOR_STEP : {
    int64_t next = scalar::add(I(a), 1);
    new (&r[pc->a]) IValue(next);
    if (next < I(b)) WICK_JUMP(pc->c);
    WICK_ADVANCE();
  }

  OP:
    step();
    if (attended_) [[unlikely]] {
      callAttended(*code, *pc, r);
    } else {
      callOperator(*code, *pc, r);
    }
    WICK_ADVANCE();
  OP_MULTI:
    step();
    if (attended_) [[unlikely]] {
      callAttended(*code, *pc, r);
    } else {
      callOperatorMulti(*code, *pc, r);
    }
    WICK_ADVANCE();
  FUSION:
    step();
    if (attended_) [[unlikely]] {
      callAttended(*code, *pc, r);
    } else {
      callFusion(*code, *pc, r);
    }
    WICK_ADVANCE();
  CALL:
    WICK_SWITCH_FRAME(callFunction(executorOf(*code->functionSites()[pc->a]),
                                   code->operands().data() + pc->b, pc->c, pc->extra));
  CALL_VIRTUAL:
    WICK_SWITCH_FRAME(
        callFunction(findMethod(*code, *pc), code->operands().data() + pc->b, pc->c, pc->extra));
  ENTER:
    WICK_SWITCH_FRAME(enter(*pc));
  EXIT:
    WICK_SWITCH_FRAME(exit(*pc));
  BAIL_OUT:
    if (guardsHold(*code, *pc, r)) WICK_ADVANCE();
    WICK_SWITCH_FRAME(bailOut(*code, *pc));
  RETURN:
    if (returnFromFrame(code->operands().data() + pc->a)) return Status::Finished;
    goto load_frame;
  FORK:
    fork(*code, *pc, code->nodeOf(pc - begin));
    WICK_ADVANCE();
  WAIT:
    if (!waitForFuture(*pc, r)) {
      frames_.back().pc = static_cast<uint32_t>(pc - begin);
      return Status::Suspended;
    }
    WICK_ADVANCE();
  RAISE:
    raise(gatherVector(*code, code->operands().data() + pc->a, r));
  PRINT:
    step();
    printValues(gatherVector(*code, code->operands().data() + pc->a, r));
    WICK_ADVANCE();
  data:
    executeData(*code, *pc, r);
    WICK_ADVANCE();
  } catch (...) {
    // While a frame calls or fails, its pc stands behind the instruction.
    if (pc && frames_.size() == level) {
      frames_.back().pc = static_cast<uint32_t>(pc + 1 - begin);
    }
    throw;
  }
}

#undef I
#undef D
#undef B
#undef WICK_NEXT
#undef WICK_ADVANCE
#undef WICK_JUMP
#undef WICK_SWITCH_FRAME

// Instructions on objects, tuples, lists and dicts.
void InterpreterState::executeData(const Code& code, const Instruction& instruction, IValue* r) {
  const OpCode op = instruction.op;
  const uint16_t extra = instruction.extra;
  const uint32_t a = instruction.a, b = instruction.b, c = instruction.c;
  const uint32_t* operands = code.operands().data();
  auto construct = [&] { return gatherVector(code, operands + b, r); };
  // For instructions that read the object in b and write a.
  auto finish = [&](IValue value) {
    if ((extra & kLastUse) != 0 && b != a) r[b] = IValue();
    store(r[a], std::move(value), extra);
  };
  switch (op) {
    case OpCode::GET_ATTR:
      return finish(attributeOf(r[b].toObject(), c));
    case OpCode::SET_ATTR: {
      IValue holder = r[a];
      IValue value;
      gather(code, operands + b, r, &value);
      holder.toObject().setSlot(c, std::move(value));
      return;
    }
    case OpCode::CREATE_OBJECT: {
      const auto& type = static_cast<const ClassType&>(*code.types()[b]);
      r[a] = IValue(makeRef<Object>(typeOfNew(type), context_->owner()));
      return;
    }
    case OpCode::TUPLE_CONSTRUCT: {
      std::shared_ptr<const TupleType> named;
      if (c != kNoIndex) named = std::static_pointer_cast<const TupleType>(code.types()[c]);
      r[a] = IValue(makeTuple(construct(), std::move(named)));
      return;
    }
    case OpCode::TUPLE_UNPACK:
    case OpCode::LIST_UNPACK: {
      // Held here, for a destination may be the register of the container.
      IValue container = extra & kLastUse ? std::move(r[a]) : r[a];
      bool is_list = op == OpCode::LIST_UNPACK;
      unpack(is_list ? container.toList().elements : container.toTuple().elements,
             is_list ? "list" : "tuple", operands + b, r);
      return;
    }
    case OpCode::TUPLE_INDEX:
      return finish(tupleElement(r[b].toTuple(), r[c].rawInt()));
    case OpCode::TUPLE_SLICE:
      return finish(tupleSlice(r[b].toTuple(), operands[c], operands[c + 1]));
    case OpCode::LIST_CONSTRUCT:
      r[a] = IValue(makeList(code.types()[c], construct()));
      return;
    case OpCode::LIST_LEN:
      return finish(static_cast<int64_t>(r[b].toList().elements.size()));
    case OpCode::LIST_GET:
      return finish(listElement(r[b].toList(), r[c].rawInt()));
    case OpCode::DICT_CONSTRUCT:
      r[a] = makeDict(construct(), static_cast<const DictType&>(*code.types()[c]));
      return;
    case OpCode::ISINSTANCE:
      return finish(isInstance(r[b], code.typeLists()[c]));
    case OpCode::PROFILE:
      if (a == kNoIndex) return code.speculation()->finishRun();
      for (const IValue& value : construct()) code.speculation()->observe(a, value);
      return;
    case OpCode::TO_LIST:
      return store(r[a], toList(construct(), code.types()[c]), extra);
    default:
      WICK_ASSERT(false, "{} is not handled", opCodeName(op));
  }
}

}  // namespace wick

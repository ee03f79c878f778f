#include "serialization/unpickler.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "serialization/pickle_opcodes.h"
#include "serialization/pickle_structure.h"
#include "serialization/unpickler_objects.h"

namespace wick {
namespace {

// What values take until the pickle is read: themselves, what refers to them, what
// PickleStructure and TypeClaims know of them.
constexpr uint64_t kTextMemory = 64;
constexpr uint64_t kListMemory = 320;
constexpr uint64_t kTupleMemory = 448;
constexpr uint64_t kTupleElementMemory = 48;
constexpr uint64_t kDictMemory = 448;
constexpr uint64_t kDictEntryMemory = 208;
constexpr uint64_t kObjectMemory = 256;
constexpr uint64_t kMemoMemory = 80;
// Characters and elements that opcodes may look at again and again (text that is hashed as a key,
// lists that are tagged): so many for each byte of the pickle, and some more.
constexpr uint64_t kWorkOfByte = 64;
constexpr uint64_t kFreeWork = uint64_t{1} << 22;

}  // namespace

void Unpickler::failWith(const std::string& message) const {
  throwLoadError("{}: {} (at byte {})", name_, message, opcode_at_);
}

Unpickler::Unpickler(std::span<const std::byte> bytes, std::string name, UnpicklerHooks hooks)
    : bytes_(bytes), name_(std::move(name)), hooks_(std::move(hooks)) {}

Unpickler::~Unpickler() {
  release();
}

// Containers hold each other. Emptied one by one while tracked_ still owns them all, none is freed
// from within another's destructor, so deep nesting in a hostile file cannot exhaust the stack.
void Unpickler::release() noexcept {
  stack_.clear();
  memo_.clear();
  structure_.clear();
  for (IValue& v : tracked_) {
    if (v.isList()) {
      v.toList().elements.clear();
    } else if (v.isDict()) {
      v.toDict().clear();
    }
  }
  while (!tracked_.empty()) tracked_.pop_back();
}

IValue Unpickler::load() {
  try {
    while (step()) {
    }
    opcode_at_ = position_;
    IValue result = popValue("the result");
    if (!stack_.empty()) fail("{} values are left on the stack", stack_.size());
    seal(result);
    moveToPlaces();
    finish();
    return result;
  } catch (const LoadError&) {
    throw;
  } catch (const RuntimeError& error) {
    if (map_failed_) throw;
    fail("{}", error.brief());
  }
}

void Unpickler::seal(const IValue& value) {
  structure_.seal(value, [this](const std::string& why) { fail("{}", why); });
}

// The result is sealed, thus shallow and free of cycles; its own destructors do from here on. What
// it does not hold is taken apart.
void Unpickler::finish() {
  std::erase_if(tracked_, [this](const IValue& v) { return structure_.isSealed(v); });
  release();
}

// Takes memory that is about to be allocated off the budget.
void Unpickler::charge(uint64_t bytes) {
  if (hooks_.budget && !hooks_.budget->take(bytes)) {
    fail("the values take more memory than a file of this size may");
  }
}

// Counts what an opcode does in proportion to an operand, which may be one operand of many.
void Unpickler::work(uint64_t units) {
  work_ += units;
  if (work_ > kFreeWork + kWorkOfByte * bytes_.size()) {
    fail("the pickle asks for more work than one of its length may");
  }
}

template <class T>
void Unpickler::reserve(std::vector<T>& vector, size_t more) {
  const size_t wanted = vector.size() + more;
  const size_t old = vector.capacity();
  if (wanted <= old) return;
  const size_t grown = std::max(wanted, old + old / 2);
  charge(grown * sizeof(T));
  vector.reserve(grown);
  if (hooks_.budget) hooks_.budget->giveBack(old * sizeof(T));
}

void Unpickler::pushItem(Item item) {
  reserve(stack_, 1);
  stack_.push_back(std::move(item));
}

void Unpickler::pushText(std::string_view text, bool internal) {
  charge(kTextMemory + text.size());
  push(text, internal);
}

void Unpickler::track(const IValue& container, uint64_t bytes) {
  charge(bytes);
  reserve(tracked_, 1);
  tracked_.push_back(container);
}

std::span<const std::byte> Unpickler::take(uint64_t n) {
  if (n > bytes_.size() - position_) fail("the pickle is truncated");
  auto part = bytes_.subspan(position_, n);
  position_ += n;
  return part;
}

template <class T>
T Unpickler::take() {
  T value;
  std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
  return value;
}

std::string_view Unpickler::takeLine() {
  std::string_view rest = asText(bytes_.subspan(position_));
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) fail("the pickle is truncated");
  position_ += end + 1;
  return rest.substr(0, end);
}

Unpickler::Item Unpickler::pop() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("the stack is empty");
  checkBuilt(stack_.back());
  Item item = std::move(stack_.back());
  stack_.pop_back();
  return item;
}

void Unpickler::checkBuilt(const Item& item) const {
  if (item.value.isObject() && unbuilt_.contains(item.value.rawObject())) {
    fail("an object of {} is used before it has its state", item.value.toObject().type()->name());
  }
}

IValue Unpickler::popValue(const char* what) {
  Item item = pop();
  if (item.internal) fail("{} is {}, expected a value", what, kindOf(item));
  return std::move(item.value);
}

Unpickler::Item& Unpickler::top() {
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) fail("the stack is empty");
  return stack_.back();
}

Unpickler::Operands Unpickler::sinceMark() {
  if (marks_.empty()) fail("there is no MARK");
  const Operands operands = marks_.back();
  marks_.pop_back();
  for (size_t i = operands; i < stack_.size(); ++i) checkBuilt(stack_[i]);
  return operands;
}

Unpickler::Operands Unpickler::last(size_t n) const {
  const size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() - floor < n) fail("the stack is empty");
  const Operands operands = stack_.size() - n;
  for (size_t i = operands; i < stack_.size(); ++i) checkBuilt(stack_[i]);
  return operands;
}

IValue& Unpickler::changedBelow(Operands operands) {
  if (operands <= (marks_.empty() ? 0 : marks_.back())) fail("the stack is empty");
  IValue& target = stack_[operands - 1].value;
  if (target.isCounted() && structure_.isSealed(target)) {
    fail("a {} is changed after an object took it", target.tagName());
  }
  return target;
}

bool Unpickler::step() {
  opcode_at_ = position_;
  const auto opcode = take<uint8_t>();
  if (opcode == op::kStop) return false;
  if (!stepLiteral(opcode) && !stepStack(opcode) && !stepContainer(opcode) && !stepObject(opcode)) {
    fail("unknown pickle opcode 0x{:02x}", opcode);
  }
  return true;
}

bool Unpickler::stepLiteral(uint8_t opcode) {
  switch (opcode) {
    case op::kNone:
      push(IValue());
      return true;
    case op::kNewTrue:
      push(true);
      return true;
    case op::kNewFalse:
      push(false);
      return true;
    case op::kBinInt:
      push(int64_t{take<int32_t>()});
      return true;
    case op::kBinInt1:
      push(int64_t{take<uint8_t>()});
      return true;
    case op::kBinInt2:
      push(int64_t{take<uint16_t>()});
      return true;
    case op::kLong1:
      pushInteger(take(take<uint8_t>()));
      return true;
    case op::kLong4: {
      const auto n = take<int32_t>();
      if (n < 0) fail("negative length");
      pushInteger(take(static_cast<uint64_t>(n)));
      return true;
    }
    case op::kBinFloat: {
      auto bits = take<uint64_t>();
      bits = __builtin_bswap64(bits);
      double value;
      std::memcpy(&value, &bits, sizeof(value));
      push(value);
      return true;
    }
    case op::kShortBinString:
    case op::kShortBinUnicode:
      pushText(takeText(take<uint8_t>()));
      return true;
    case op::kBinString:
    case op::kBinUnicode:
      pushText(takeText(take<uint32_t>()));
      return true;
    case op::kBinUnicode8:
      pushText(takeText(take<uint64_t>()));
      return true;
    case op::kShortBinBytes:
      pushText(takeText(take<uint8_t>()), true);
      return true;
    case op::kBinBytes:
      pushText(takeText(take<uint32_t>()), true);
      return true;
    case op::kBinBytes8:
      pushText(takeText(take<uint64_t>()), true);
      return true;
    default:
      return false;
  }
}

void Unpickler::pushInteger(std::span<const std::byte> little_endian) {
  if (little_endian.size() > sizeof(int64_t)) fail("an integer does not fit into 64 bits");
  uint64_t value = 0;
  for (size_t i = little_endian.size(); i-- > 0;) {
    value = value << 8 | static_cast<uint64_t>(little_endian[i]);
  }
  if (!little_endian.empty() && little_endian.size() < sizeof(int64_t) &&
      (little_endian.back() & std::byte{0x80}) != std::byte{0}) {
    value |= ~uint64_t{0} << (8 * little_endian.size());
  }
  push(static_cast<int64_t>(value));
}

bool Unpickler::stepStack(uint8_t opcode) {
  switch (opcode) {
    case op::kProto: {
      const int version = take<uint8_t>();
      if (version < 2 || version > 5) fail("pickle protocol {} is not supported", version);
      return true;
    }
    case op::kFrame:
      take<uint64_t>();
      return true;
    case op::kMark:
      reserve(marks_, 1);
      marks_.push_back(stack_.size());
      return true;
    case op::kPop:
      // POP right after MARK removes the mark.
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
      } else {
        pop();
      }
      return true;
    case op::kPopMark:
      drop(sinceMark());
      return true;
    case op::kDup:
      checkBuilt(top());
      pushItem(Item(top()));
      return true;
    case op::kBinPut:
      remember(take<uint8_t>());
      return true;
    case op::kLongBinPut:
      remember(take<uint32_t>());
      return true;
    case op::kMemoize:
      remember(memo_.size());
      return true;
    case op::kBinGet:
      recall(take<uint8_t>());
      return true;
    case op::kLongBinGet:
      recall(take<uint32_t>());
      return true;
    default:
      return false;
  }
}

void Unpickler::remember(uint64_t index) {
  auto [it, fresh] = memo_.try_emplace(index);
  if (fresh) charge(kMemoMemory);
  it->second = top();
}

void Unpickler::recall(uint64_t index) {
  auto it = memo_.find(index);
  if (it == memo_.end()) fail("nothing is memoized as {}", index);
  checkBuilt(it->second);
  pushItem(it->second);
}

bool Unpickler::stepContainer(uint8_t opcode) {
  switch (opcode) {
    case op::kEmptyList:
      pushList();
      return true;
    case op::kEmptyDict:
      push(newDict());
      return true;
    case op::kEmptyTuple:
      pushTuple(last(0));
      return true;
    case op::kTuple1:
      pushTuple(last(1));
      return true;
    case op::kTuple2:
      pushTuple(last(2));
      return true;
    case op::kTuple3:
      pushTuple(last(3));
      return true;
    case op::kTuple:
      pushTuple(sinceMark());
      return true;
    case op::kList: {
      const Operands operands = sinceMark();
      pushList();
      std::rotate(stack_.begin() + static_cast<ptrdiff_t>(operands), stack_.end() - 1,
                  stack_.end());
      append(operands + 1);
      return true;
    }
    case op::kDict: {
      const Operands operands = sinceMark();
      push(newDict());
      std::rotate(stack_.begin() + static_cast<ptrdiff_t>(operands), stack_.end() - 1,
                  stack_.end());
      setItems(operands + 1);
      return true;
    }
    case op::kAppend:
      append(last(1));
      return true;
    case op::kAppends:
      append(sinceMark());
      return true;
    case op::kSetItem:
      setItems(last(2));
      return true;
    case op::kSetItems:
      setItems(sinceMark());
      return true;
    default:
      return false;
  }
}

void Unpickler::pushList() {
  IValue list(makeList(types::Any()));
  track(list, kListMemory);
  push(std::move(list));
}

IValue Unpickler::newDict() {
  IValue dict(makeRef<DictObject>(types::Any(), types::Any()));
  track(dict, kDictMemory);
  return dict;
}

void Unpickler::pushTuple(Operands operands) {
  const size_t n = stack_.size() - operands;
  charge(n * kTupleElementMemory);
  std::vector<IValue> elements;
  elements.reserve(n);
  bool internal = false;
  for (size_t i = operands; i < stack_.size(); ++i) {
    internal |= stack_[i].internal;
    elements.push_back(std::move(stack_[i].value));
  }
  drop(operands);
  IValue tuple(makeTuple(std::move(elements)));
  track(tuple, kTupleMemory);
  push(std::move(tuple), internal);
}

void Unpickler::append(Operands operands) {
  const IValue& target = changedBelow(operands);
  if (!target.isList()) fail("APPEND to {}, expected a list", target.tagName());
  std::vector<IValue>& elements = target.toList().elements;
  reserve(elements, stack_.size() - operands);
  for (size_t i = operands; i < stack_.size(); ++i) {
    if (stack_[i].internal) fail("a list holds {}", kindOf(stack_[i]));
    elements.push_back(std::move(stack_[i].value));
  }
  drop(operands);
}

namespace {

// Keys are looked at as a whole whenever they are hashed.
constexpr size_t kMaxKeyElements = 1000;

bool isSimpleKey(const IValue& v) {
  return v.isInt() || v.isDouble() || v.isBool() || v.isString() || v.isTensor() || v.isNone() ||
         v.isComplex() || v.isEnum();
}

uint64_t hashWork(const IValue& key) {
  if (key.isString()) return key.toString().size();
  if (!key.isTuple()) return 1;
  uint64_t sum = 1;
  for (const IValue& v : key.elements()) sum += v.isString() ? v.toString().size() : 1;
  return sum;
}

// Nested tuples are refused: hashing shared ones takes time that is exponential in their depth.
bool isKey(const IValue& v) {
  if (!v.isTuple()) return isSimpleKey(v);
  const std::vector<IValue>& elements = v.elements();
  return elements.size() <= kMaxKeyElements &&
         std::all_of(elements.begin(), elements.end(), isSimpleKey);
}

}  // namespace

void Unpickler::setItems(Operands operands) {
  const IValue& target = changedBelow(operands);
  if (!target.isDict()) fail("SETITEM on {}, expected a dict", target.tagName());
  if ((stack_.size() - operands) % 2 != 0) fail("a dict has a key without a value");
  DictObject& dict = target.toDict();
  for (size_t i = operands; i < stack_.size(); i += 2) {
    Item& key = stack_[i];
    Item& value = stack_[i + 1];
    if (key.internal || value.internal) fail("a dict holds {}", kindOf(key.internal ? key : value));
    if (!isKey(key.value)) {
      fail("a dict key is {}, expected a number, a string or a tuple of these",
           key.value.tagName());
    }
    work(hashWork(key.value));
    const size_t before = dict.size();
    charge(kDictEntryMemory);
    dict.set(std::move(key.value), std::move(value.value));
    if (hooks_.budget && dict.size() == before) hooks_.budget->giveBack(kDictEntryMemory);
  }
  drop(operands);
}

bool Unpickler::stepObject(uint8_t opcode) {
  switch (opcode) {
    case op::kGlobal: {
      std::string module(takeLine());
      std::string name(takeLine());
      pushGlobal(module, name);
      return true;
    }
    case op::kStackGlobal: {
      IValue name = popValue("the name of a global");
      IValue module = popValue("the module of a global");
      if (!name.isString() || !module.isString()) fail("a global's name is not a string");
      work(module.toString().size() + name.toString().size());
      pushGlobal(module.toString(), name.toString());
      return true;
    }
    case op::kBinPersId:
      persistentId();
      return true;
    case op::kReduce:
      reduce();
      return true;
    case op::kNewObj:
      newObject();
      return true;
    case op::kBuild:
      build();
      return true;
    default:
      return false;
  }
}

void Unpickler::newObject() {
  Item args = pop();
  Item target = pop();
  const GlobalObject* global = asGlobal(target.value);
  if (global == nullptr || !args.value.isTuple()) fail("NEWOBJ without a class and a tuple");
  if (global->kind != GlobalObject::Kind::Type) {
    Item made = call(*global, args.value.toTuple());
    pushItem(std::move(made));
    return;
  }
  const auto* type = global->type->as<ClassType>();
  if (type == nullptr) fail("{} is not a class that can be instantiated", global->name);
  if (!hooks_.new_object) fail("an instance of {} cannot be created here", global->name);
  if (!args.value.elements().empty()) fail("NEWOBJ of {} with arguments", global->name);
  charge(type->attributes().size() * sizeof(IValue));
  IValue object(hooks_.new_object(type->shared()));
  track(object, kObjectMemory);
  push(std::move(object));
  unbuilt_.insert(top().value.rawObject());
}

void Unpickler::reduce() {
  Item args = pop();
  Item target = pop();
  const GlobalObject* global = asGlobal(target.value);
  if (global == nullptr) fail("REDUCE calls {}", target.value.tagName());
  if (global->type != nullptr && global->type->kind() == TypeKind::Enum) {
    // PyTorch writes the value of the member itself, without a tuple around it.
    if (args.internal) fail("the value of an enum is a callable or a storage");
    push(makeEnum(*global->type->as<EnumType>(), args.value));
    return;
  }
  if (!args.value.isTuple()) fail("REDUCE of {} without a tuple of arguments", global->name);
  pushItem(call(*global, args.value.toTuple()));
}

void Unpickler::build() {
  Item given = pop();
  IValue target = top().value;
  if (buildArray(target, given.value)) return;
  if (given.internal) fail("the state of an object is {}, expected a value", kindOf(given));
  IValue state = std::move(given.value);
  if (target.isObject()) {
    if (!hooks_.set_state) fail("an object cannot be given its state here");
    if (!unbuilt_.contains(target.rawObject())) fail("an object is given its state twice");
    seal(state);
    moveToPlaces();  // code may run
    hooks_.set_state(target.toObject(), std::move(state));
    unbuilt_.erase(target.rawObject());
  } else if (!target.isDict()) {
    // An OrderedDict may carry Python attributes (the `_metadata` of a state_dict). They say
    // nothing about its contents and a dict cannot hold them.
    fail("BUILD on {}", target.tagName());
  }
}

}  // namespace wick

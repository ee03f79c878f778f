//   %n : int = aten::Int(%x)                   %n : Tensor = wick::data_number(%x, 1)
//   %m : int = aten::add(%n, %two)       →     %m : Tensor = aten::add(%n, %two_as_tensor, 1)
//   %c : bool = aten::gt(%m, %four)            %g : Tensor = aten::gt(%m, %four_as_tensor)
//    = prim::If(%c)                            %c : bool = aten::Bool(%g)
//                                               = prim::If(%c)
//
// First those values are marked that depend on elements, through blocks too; then the nodes are rewritten
// in order. The types of marked values tell what they were until their nodes are.
#include "aot/data_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "aot/device.h"
#include "aot/number_functions.h"
#include "aot/number_marks.h"
#include "aot/recording.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/tensor_kind.h"
#include "ir/graph.h"
#include "ir/operator.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

// What wick::data_number makes of an element.
enum class As : int64_t {
  Itself,      // of any dtype the widest of its kind
  Int,         // int64
  Float,       // float64
  Bool,        // whether it is not zero
  Arithmetic,  // as Itself, and an int of a bool
};

// ---- operators ----

DType dtypeAs(As as, DType dtype) {
  switch (as) {
    case As::Int:
      return DType::Long;
    case As::Float:
      return DType::Double;
    case As::Bool:
      return DType::Bool;
    default:
      break;
  }
  if (isFloating(dtype)) return DType::Double;
  return dtype == DType::Bool && as == As::Itself ? DType::Bool : DType::Long;
}

// A program may name these operators too, with any argument.
Tensor denseArgument(const CallFrame& frame, size_t i) {
  const Tensor t = frame.args[i].toTensor();
  WICK_CHECK(t.defined() && t.kind() == TensorKind::Dense,
             "{}: expected a dense tensor for argument {}", frame.op->schema().name(), i);
  return t;
}
Tensor numberArgument(const CallFrame& frame, size_t i) {
  const Tensor t = denseArgument(frame, i);
  WICK_CHECK(t.numel() == 1, "a Tensor with {} elements cannot be converted to Scalar", t.numel());
  if (isComplex(t.dtype()) || isQuantized(t.dtype())) {
    throw NotAhead(
        fmt::format("a number of dtype {} is not available ahead of time", toString(t.dtype())));
  }
  return t;
}

// In memory of its own: the tensor may be written to afterwards.
Tensor converted(const Tensor& t, DType dtype) {
  const Tensor made = Tensor::empty({}, dtype, t.device());
  made.copyFrom(t.reshape({}));
  return made;
}

void dataNumber(CallFrame& frame) {
  const Tensor t = numberArgument(frame, 0);
  const int64_t as = frame.args[1].toInt();
  WICK_CHECK(as >= 0 && as <= static_cast<int64_t>(As::Arithmetic), "{}: there is no kind {}",
             frame.op->schema().name(), as);
  frame.results[0] = converted(t, dtypeAs(static_cast<As>(as), t.dtype()));
}

// What int() looks at to find out whether an element is too large: nothing of an integer.
void dataFloatPart(CallFrame& frame) {
  const Tensor t = numberArgument(frame, 0);
  frame.results[0] = isFloating(t.dtype()) ? converted(t, DType::Double) : Tensor::scalar(0.0);
}

// The number with a dtype that leads to the same result, beside the tensor, as a number does.
void dataOperand(CallFrame& frame) {
  const Tensor number = numberArgument(frame, 0), other = denseArgument(frame, 1);
  DType dtype = other.dtype();
  if (isReducedFloat(dtype)) {
    // Kernels compute these in float32, and so the number is not rounded to less.
    if (other.dim() == 0) {
      throw NotAhead(
          fmt::format("a {} without dimensions and a number that elements of tensors "
                      "decide are not available ahead of time as operands",
                      toString(dtype)));
    }
    dtype = DType::Float;
  } else if (isFloating(number.dtype()) && !isFloating(dtype) && !isComplex(dtype)) {
    dtype = defaultDType();
  } else if (number.dtype() == DType::Long && dtype == DType::Bool) {
    dtype = DType::Long;
  }
  frame.results[0] = converted(number, dtype);
}

// torch.tensor() of the number.
void dataTensor(CallFrame& frame) {
  const Tensor number = numberArgument(frame, 0);
  DType dtype = isFloating(number.dtype()) ? defaultDType() : number.dtype();
  if (!frame.args[1].isNone()) dtype = boxing::toDType(frame.args[1]);
  frame.results[0] = converted(number, dtype);
}

// A function of numbers (aot/number_functions.h).
void dataFunction(CallFrame& frame) {
  const std::string& name = frame.args[0].toString();
  const NumberFunction* const f = numberFunctionNamed(name);
  WICK_CHECK(f != nullptr, "there is no function {} of numbers", name);
  constexpr size_t kMost = 3;
  std::vector<Tensor> operands;
  bool known = true, any_float = false;
  for (size_t i = 0; i < f->operands && i < kMost; ++i) {
    const Tensor t = numberArgument(frame, i + 1).reshape({});
    known = known && t.device().isCpu();
    any_float = any_float || isFloating(t.dtype());
    const bool number =
        t.dtype() == DType::Long || t.dtype() == DType::Double || t.dtype() == DType::Bool;
    WICK_CHECK(number && (!any_float || f->kind != NumberFunction::Kind::Ints),
               "{}: unexpected operand {}", name, t.describe());
    operands.push_back(t);
  }
  const DType takes = f->operandType(any_float), gives = f->resultType(any_float);
  if (!known) {
    // Where several operators take a number to mean the same, as slices of one dimension do, there is one size.
    const bool bound = name == "sliceBound" || name == "fromEnd" || name == "movedOn";
    const bool meaning = name == "atLeastZero" || (bound && operands[1].device().isCpu());
    const std::string what =
        meaning && bound ? fmt::format("{} {}", name, operands[1].to(DType::Long).item<int64_t>())
                         : name;
    const Tensor before = meaning ? Recording::current().findComputed(what, operands[0]) : Tensor();
    if (before.defined()) {
      frame.results[0] = before;
      return;
    }
    NumberStep step;
    step.function = f->name;
    step.computed = takes;
    for (const Tensor& t : operands) {
      const Tensor here = Recording::current().constant(t);
      step.from.push_back({Recording::current().placeOf(here), here.dtype()});
    }
    const Tensor to = Tensor::empty({}, gives, Device{kAhead, -1});
    step.to = {Recording::current().placeOf(to), gives};
    Recording::current().add(f->name, std::move(step));
    if (meaning) Recording::current().noteComputed(what, operands[0], to);
    frame.results[0] = to;
    return;
  }
  const Tensor to = Tensor::empty({}, gives);
  const char* error = nullptr;
  if (takes == DType::Long) {
    int64_t from[kMost] = {};
    for (size_t i = 0; i < operands.size(); ++i) {
      from[i] = operands[i].to(DType::Long).item<int64_t>();
    }
    error = f->of_ints(from, static_cast<int64_t*>(to.rawData()));
  } else {
    double from[kMost] = {};
    for (size_t i = 0; i < operands.size(); ++i) {
      from[i] = operands[i].to(DType::Double).item<double>();
    }
    error = f->of_floats(from, to.rawData());
  }
  if (error) throw RuntimeError(error);
  frame.results[0] = to;
}

// A view at a position of a dimension.
void dataSelect(CallFrame& frame) {
  const Tensor from = denseArgument(frame, 0), index = numberArgument(frame, 2);
  const int64_t dim = frame.args[1].toInt();
  WICK_CHECK(dim >= -from.dim() && dim < from.dim(), "select: there is no dimension {} of {}", dim,
             from.dim());
  WICK_CHECK(index.dtype() == DType::Long, "select: expected an int as index, got {}",
             index.describe());
  const Tensor known = index.device().isCpu() ? index : Recording::current().known(index);
  if (known.defined()) {
    frame.results[0] = ops::select(from, dim, known.to(DType::Long).item<int64_t>());
    return;
  }
  frame.results[0] = Recording::current().select(from, dim < 0 ? dim + from.dim() : dim, index);
}

// Raises where the compiled model finds the condition false.
void dataCheck(CallFrame& frame) {
  const Tensor holds = numberArgument(frame, 0);
  const std::string& message = frame.args[1].toString();
  if (holds.device().isCpu()) {
    WICK_CHECK(holds.to(DType::Bool).item<bool>(), "{}", message);
    return;
  }
  Recording::current().require(holds, message);
}

// The number itself. Of an int that is not known a size that elements decide is made: from 0 to what argument 2 tells.
void dataKnown(CallFrame& frame) {
  const Tensor t = numberArgument(frame, 0);
  const std::string& by = frame.args[1].toString();
  Recording* const recording = t.device().isCpu() ? nullptr : &Recording::current();
  const Tensor known = recording ? recording->known(t) : t;
  if (!known.defined()) {
    if (t.dtype() != DType::Long) {
      throw NotAhead(
          fmt::format("{} needs a number that elements of a tensor decide, which is known only "
                      "when the compiled model runs",
                      by));
    }
    const bool bounded =
        !frame.args[2].isNone() && frame.args[2].toInt() < std::numeric_limits<int64_t>::max();
    frame.results[0] = recording->size(
        t, bounded ? std::max<int64_t>(0, frame.args[2].toInt()) : recording->mostElse(), by);
    return;
  }
  if (known.dtype() == DType::Bool) {
    frame.results[0] = known.item<bool>();
  } else if (isFloating(known.dtype())) {
    frame.results[0] = known.to(DType::Double).item<double>();
  } else {
    frame.results[0] = known.to(DType::Long).item<int64_t>();
  }
}

// What the sum of all elements is at most, when they are booleans; or how many are not zero. Of others any number.
void dataMost(CallFrame& frame) {
  const Tensor t = denseArgument(frame, 0);
  const bool counts = frame.args[1].toBool() || t.dtype() == DType::Bool;
  frame.results[0] = counts ? t.numel() : std::numeric_limits<int64_t>::max();
}

const OperatorRecord kDataNumbersRecords[] = {
    {"wick::data_number(Tensor a, int kind) -> Tensor", dataNumber, kAnyKind | kNotDifferentiable},
    {"wick::data_float_part(Tensor a) -> Tensor", dataFloatPart, kAnyKind | kNotDifferentiable},
    {"wick::data_operand(Tensor a, Tensor other) -> Tensor", dataOperand,
     kAnyKind | kNotDifferentiable},
    {"wick::data_tensor(Tensor a, ScalarType? dtype) -> Tensor", dataTensor,
     kAnyKind | kNotDifferentiable},
    {"wick::data_function(str name, Tensor a, Tensor? b, Tensor? c) -> Tensor", dataFunction,
     kAnyKind | kNotDifferentiable | kSideEffects},
    {"wick::data_select(Tensor(a) self, int dim, Tensor index) -> Tensor(a)", dataSelect,
     kAnyKind | kNotDifferentiable},
    {"wick::data_check(Tensor a, str message) -> ()", dataCheck, kAnyKind | kSideEffects},
    {"wick::data_known(Tensor a, str by, int? most=None) -> Scalar", dataKnown,
     kAnyKind | kNotDifferentiable | kSideEffects},
    {"wick::data_most(Tensor a, bool nonzero) -> int", dataMost, kAnyKind | kNotDifferentiable},
};
const RegisterOperators kDataNumbersRegistered(kDataNumbersRecords);

// ---- the graph ----

// Operators of a tensor and a number, with a form for a tensor in place of the number that computes the same.
constexpr std::array<std::string_view, 23> kWithOperand = {
    "aten::add",  "aten::sub",  "aten::mul",      "aten::div",         "aten::add_",
    "aten::sub_", "aten::mul_", "aten::div_",     "aten::true_divide", "aten::where",
    "aten::lt",   "aten::le",   "aten::gt",       "aten::ge",          "aten::eq",
    "aten::ne",   "aten::fill", "aten::fill_",    "aten::masked_fill", "aten::masked_fill_",
    "aten::rsub", "aten::fmod", "aten::remainder"};

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : graph_(graph), marks_(graph) {}

  void run() { rewrite(graph_.block()); }

 private:
  bool isMarked(const Value* v) const { return marks_.contains(v); }

  // ---- nodes ----

  Value* insert(Node* before, std::string_view name, const std::vector<Value*>& inputs) {
    const RangeGuard range(&graph_, before->range());
    Node* node = graph_.create(Symbol::fromQualString(name), inputs);
    node->insertBefore(before);
    node->output()->setType(types::Tensor());
    return node->output();
  }
  Value* constant(Node* before, IValue value) {
    Node* node = graph_.createConstant(std::move(value));
    node->insertBefore(before);
    return node->output();
  }
  Value* numberOf(Node* before, Value* tensor, As as) {
    return insert(before, "wick::data_number",
                  {tensor, constant(before, IValue(static_cast<int64_t>(as)))});
  }

  // The number as a tensor, before a node.
  Value* asTensor(Node* before, Value* v) {
    if (isMarked(v)) return v;
    return insert(before, "prim::NumToTensor", {v});
  }
  // The same as add() and the like take it.
  Value* forArithmetic(Node* before, Value* v) {
    Value* const t = asTensor(before, v);
    const TypeKind kind = kindOf(v);
    return kind == TypeKind::Int || kind == TypeKind::Float ? t
                                                            : numberOf(before, t, As::Arithmetic);
  }
  // What a number was before it was a tensor.
  TypeKind kindOf(const Value* v) const {
    const auto was = types_.find(v);
    return (was == types_.end() ? v->type() : was->second)->kind();
  }

  // Makes a value a tensor where it stands.
  void retype(Value* v) {
    if (v->type()->kind() == TypeKind::Tensor) return;
    types_.emplace(v, v->type());
    v->setType(types::Tensor());
  }
  // Puts a tensor in place of the node's number.
  void replace(Node* node, Value* by) {
    Value* const old = node->output();
    types_.emplace(by, old->type());
    marks_.add(by);
    old->replaceAllUsesWith(by);
    marks_.remove(old);
    node->destroy();
  }

  // The number itself in place of a tensor, for a node that knows nothing else: one that is at most `most`, if that is told.
  void giveNumber(Node* node, size_t input, std::string_view by, Value* most = nullptr) {
    Value* const tensor = node->input(input);
    if (by.starts_with("aten::")) by.remove_prefix(6);
    const auto bound = bounds_.find(tensor);
    if (!most && bound != bounds_.end()) most = bound->second;
    if (!most) most = constant(node, IValue());
    Value* const number =
        insert(node, "wick::data_known", {tensor, constant(node, IValue(std::string(by))), most});
    number->setType(types_.at(tensor));
    node->replaceInput(input, number);
  }

  // The number as what an operator takes it to be, an int of at least zero, by a function of it and of a size. Numbers that mean the
  // same are one.
  void giveMeaning(Node* node, size_t input, const char* function, Value* size,
                   Value* most = nullptr) {
    Value* const number = node->input(input);
    const RangeGuard range(&graph_, node->range());
    Value* const none = constant(node, IValue());
    Node* meant = graph_.create(Symbol::fromQualString("wick::data_function"),
                                {constant(node, IValue(std::string(function))), number,
                                 size ? insert(node, "prim::NumToTensor", {size}) : none, none});
    meant->insertBefore(node);
    meant->output()->setType(types::Tensor());
    types_.emplace(meant->output(), types_.at(number));
    node->replaceInput(input, meant->output());
    const auto bound = bounds_.find(number);
    if (!most && bound != bounds_.end()) most = bound->second;
    giveNumber(node, input, userOf(node), most);
  }
  // Whether a number is given so, because it may be negative: bounds of slices, positions in lists and dimensions, counts of
  // repetitions, and how far elements are rolled.
  bool giveWhatMayBeNegative(Node* node, size_t input) {
    if (types_.at(node->input(input))->kind() != TypeKind::Int) return false;
    const std::string name(nameOf(node));
    const TypeKind first = node->input(0)->type()->kind();
    const bool of_tensor = first == TypeKind::Tensor && !isMarked(node->input(0));
    const bool of_list = first == TypeKind::List || first == TypeKind::String;
    if (name == "aten::slice" && (input == 2 || input == 3) && of_tensor &&
        !isMarked(node->input(1))) {
      Value* const size = sizeOf(node, node->input(1));
      giveMeaning(node, input, "sliceBound", size, size);
      return true;
    }
    if (name == "aten::narrow" && input == 2 && of_tensor && !isMarked(node->input(1))) {
      Value* const size = sizeOf(node, node->input(1));
      giveMeaning(node, input, "fromEnd", size, size);
      return true;
    }
    if ((name == "aten::__getitem__" || name == "aten::_set_item") && input == 1 && of_list) {
      Value* const size = insert(node, "aten::len", {node->input(0)});
      size->setType(types::Int());
      giveMeaning(node, input, "fromEnd", size, size);
      return true;
    }
    const TypeKind result =
        node->outputs().size() == 1 ? node->output()->type()->kind() : TypeKind::None;
    if (name == "aten::mul" && (result == TypeKind::List || result == TypeKind::String)) {
      giveMeaning(node, input, "atLeastZero", nullptr);
      return true;
    }
    return giveRoll(node, input);
  }
  // x.roll([n], [0]): `node` is the first list.
  bool giveRoll(Node* node, size_t input) {
    if (node->kind() != prim::ListConstruct || node->output()->uses().size() != 1) return false;
    Node* const roll = node->output()->uses()[0].user;
    if (nameOf(roll) != "aten::roll" || roll->inputs().size() != 3 ||
        roll->input(1) != node->output() || isMarked(roll->input(0))) {
      return false;
    }
    Node* const list = roll->input(2)->node();
    const std::optional<IValue> known = constantOf(roll->input(2));
    const size_t dims = known                                 ? known->elements().size()
                        : list->kind() == prim::ListConstruct ? list->inputs().size()
                                                              : 0;
    const bool whole = known && dims == 0;
    if (!whole && dims != node->inputs().size()) return false;
    Value* dim = nullptr;
    if (!whole) {
      if (!known && isMarked(list->input(input))) return false;
      node->moveBefore(roll);
      dim = known ? constant(node, known->elements()[input]) : list->input(input);
    } else {
      node->moveBefore(roll);
    }
    const RangeGuard range(&graph_, roll->range());
    Value* const size = insert(
        node, whole ? "aten::numel" : "aten::size",
        whole ? std::vector<Value*>{roll->input(0)} : std::vector<Value*>{roll->input(0), dim});
    size->setType(types::Int());
    giveMeaning(node, input, "movedOn", size, size);
    return true;
  }
  // Of a dimension of the node's first argument.
  Value* sizeOf(Node* node, Value* dim) {
    Value* const size = insert(node, "aten::size", {node->input(0), dim});
    size->setType(types::Int());
    return size;
  }
  // What a number cannot exceed because it is a part of a dimension; null when the node tells nothing of it.
  Value* partOfDimension(Node* node, size_t input) {
    struct Part {
      std::string_view name;
      size_t input, dim;
    };
    static constexpr Part kParts[] = {{"aten::narrow", 3, 1}, {"aten::topk", 1, 2}};
    for (const Part& part : kParts) {
      if (nameOf(node) != part.name || part.input != input) continue;
      if (node->inputs().size() <= part.dim || isMarked(node->input(part.dim))) return nullptr;
      return sizeOf(node, node->input(part.dim));
    }
    return nullptr;
  }
  Value* condition(Node* before, Value* v) {
    if (!isMarked(v)) return v;
    Value* const c = insert(before, "aten::Bool", {v});
    c->setType(types::Bool());
    return c;
  }

  void rewrite(Block* block) {
    std::vector<Node*> nodes(block->nodes().begin(), block->nodes().end());
    for (Node* node : nodes) rewrite(node);
  }

  void rewrite(Node* node) {
    if (node->kind() == prim::If) return rewriteIf(node);
    if (node->kind() == prim::Loop) return rewriteLoop(node);
    for (Block* inner : node->blocks()) rewrite(inner);
    if (takesValue(node)) return giveValue(node);
    if (node->outputs().size() == 1 && isMarked(node->output()) && isKeptValue(node)) {
      return retype(node->output());
    }
    if (marks_.readsElement(node)) return rewriteElement(node);
    if (lists_.contains(node)) return rewriteExtremum(node);
    if (!marks_.areRead(node)) return;
    if (node->outputs().size() == 1 && isMarked(node->output())) return rewriteNumber(node);
    if (node->kind() == prim::ListConstruct && node->output()->uses().size() == 1) {
      Node* const user = node->output()->uses()[0].user;
      if (listOfExtremum(user) == node) {
        lists_.insert(user);
        return;
      }
    }
    if (node->kind() == prim::TupleConstruct || node->kind() == prim::ListConstruct) {
      if (rewriteResult(node)) return;
    }
    giveOperands(node);
  }

  // What loops and conditions that stay give on is a tensor.
  void giveValue(Node* node) {
    if (isNumber(node->input(0))) node->replaceInput(0, asTensor(node, node->input(0)));
    node->resetOperator();
  }

  void rewriteElement(Node* node) {
    const std::string_view name = nameOf(node);
    Value* const from = node->input(0);
    const bool whole = name == "aten::Int" || name == "aten::IntImplicit";
    if (whole) {
      Value* const part = insert(node, "wick::data_float_part", {from});
      Value* const low = insert(node, "aten::ge", {part, constant(node, IValue(-0x1p63))});
      Value* const high = insert(node, "aten::lt", {part, constant(node, IValue(0x1p63))});
      check(node, insert(node, "aten::logical_and", {low, high}),
            "value cannot be converted to type int64_t without overflow");
    }
    const As as = whole                                                    ? As::Int
                  : name == "aten::Float" || name == "aten::FloatImplicit" ? As::Float
                  : name == "aten::Bool"                                   ? As::Bool
                                                                           : As::Itself;
    Value* const number = numberOf(node, from, as);
    const std::string_view made = nameOf(from->node());
    const bool counts = made == "aten::count_nonzero";
    if ((counts || made == "aten::sum") && node->output()->type()->kind() != TypeKind::Bool) {
      Value* const most =
          insert(node, "wick::data_most", {from->node()->input(0), constant(node, IValue(counts))});
      most->setType(types::Int());
      bounds_[number] = most;
    }
    replace(node, number);
  }

  void check(Node* before, Value* holds, const std::string& message) {
    const RangeGuard range(&graph_, before->range());
    Node* node = graph_.create(Symbol::fromQualString("wick::data_check"),
                               {holds, constant(before, IValue(message))}, 0);
    node->insertBefore(before);
  }

  void rewriteNumber(Node* node) {
    const std::string_view name = nameOf(node);
    Value* const a = node->input(0);
    const bool gives_int = node->output()->type()->kind() == TypeKind::Int;
    if (const auto* f = numberFunction(name, node->inputs().size(), gives_int)) {
      return rewriteFunction(node, *f);
    }
    if (node->inputs().size() == 1) {
      if (isAmong(name, kConversions)) {
        const As as = name == "aten::Int" ? As::Int : name == "aten::Float" ? As::Float : As::Bool;
        return replace(node, numberOf(node, a, as));
      }
      if (name == "aten::__not__") return replace(node, insert(node, "aten::logical_not", {a}));
      return replace(
          node, insert(node, name == "prim::abs" ? "aten::abs" : name, {forArithmetic(node, a)}));
    }
    Value* const b = node->input(1);
    if (name == "aten::div") {
      return replace(node, insert(node, name,
                                  {numberOf(node, asTensor(node, a), As::Float),
                                   numberOf(node, asTensor(node, b), As::Float)}));
    }
    if (isAmong(name, kComparisons) || isAmong(name, kBits)) {
      return replace(node, insert(node, name, {asTensor(node, a), asTensor(node, b)}));
    }
    Value *const x = forArithmetic(node, a), *const y = forArithmetic(node, b);
    if (name == "prim::min" || name == "prim::max") {
      const bool least = name == "prim::min";
      Value* const first = insert(node, least ? "aten::lt" : "aten::gt", {x, y});
      Value* const best = insert(node, "aten::where", {first, x, y});
      noteBound(node, node->inputs(), best, least);
      return replace(node, best);
    }
    if (name == "aten::mul") return replace(node, insert(node, name, {x, y}));
    return replace(node, insert(node, name, {x, y, constant(node, IValue(int64_t{1}))}));
  }

  void rewriteFunction(Node* node, const NumberFunction& f) {
    std::vector<Value*> operands{constant(node, IValue(std::string(f.name)))};
    for (Value* v : node->inputs()) operands.push_back(asTensor(node, v));
    const RangeGuard range(&graph_, node->range());
    constexpr size_t kOperands = 4;
    while (operands.size() < kOperands) operands.push_back(constant(node, IValue()));
    Node* call = graph_.create(Symbol::fromQualString("wick::data_function"), operands);
    call->insertBefore(node);
    call->output()->setType(types::Tensor());
    replace(node, call->output());
  }

  void rewriteExtremum(Node* node) {
    Node* const list = node->input(0)->node();
    const bool least = nameOf(node) == "prim::min";
    Value* best = nullptr;
    for (Value* v : list->inputs()) {
      Value* const next = forArithmetic(node, v);
      if (best) {
        Value* const better = insert(node, "aten::lt", {least ? next : best, least ? best : next});
        best = insert(node, "aten::where", {better, next, best});
      } else {
        best = next;
      }
    }
    if (list->inputs().size() == 1) best = numberOf(node, best, As::Itself);
    noteBound(node, list->inputs(), best, least);
    replace(node, best);
    list->destroy();
  }
  // What a loop of so many rounds has at most: min(n, 8).
  void noteBound(const Node* node, const std::vector<Value*>& of, const Value* number, bool least) {
    if (!least || node->output()->type()->kind() != TypeKind::Int) return;
    const auto known = std::ranges::find_if(of, [&](Value* v) { return !isMarked(v); });
    if (known != of.end()) bounds_[number] = *known;
  }

  // A tuple or list that is, or is a part of, what the graph returns.
  bool isResult(const Value* v) const {
    return std::ranges::all_of(v->uses(), [&](const wick::Use& use) {
      return use.user == graph_.block()->returnNode() ||
             (use.user->kind() == prim::TupleConstruct && isResult(use.user->output()));
    });
  }

  bool rewriteResult(Node* node) {
    if (!isResult(node->output())) return false;
    if (node->kind() == prim::ListConstruct) {
      for (size_t i = 0; i < node->inputs().size(); ++i) {
        node->replaceInput(i, asTensor(node, node->input(i)));
      }
      node->output()->setType(types::List(types::Tensor()));
    }
    for (const wick::Use& use : node->output()->uses()) retypeTuple(use.user);
    if (node->kind() == prim::TupleConstruct) retypeTuple(node);
    node->resetOperator();
    return true;
  }
  static void retypeTuple(Node* node) {
    if (node->kind() != prim::TupleConstruct) return;
    std::vector<TypePtr> elements;
    for (const Value* v : node->inputs()) elements.push_back(v->type());
    node->output()->setType(types::Tuple(std::move(elements)));
    for (const wick::Use& use : node->output()->uses()) retypeTuple(use.user);
  }

  // Who takes a list of numbers; other nodes themselves.
  static std::string_view userOf(const Node* node) {
    const bool list = node->kind() == prim::ListConstruct && !node->output()->uses().empty();
    return nameOf(list ? node->output()->uses()[0].user : node);
  }

  // Operators that take numbers among other things.
  void giveOperands(Node* node) {
    const std::string name(nameOf(node));
    if (name == "aten::tensor" && isMarked(node->input(0)) &&
        std::ranges::none_of(node->inputs().begin() + 1, node->inputs().end(),
                             [&](Value* v) { return isMarked(v); })) {
      Value* const made = insert(node, "wick::data_tensor", {node->input(0), node->input(1)});
      node->output()->replaceAllUsesWith(made);
      node->destroy();
      return;
    }
    if (name == "aten::select" && node->inputs().size() == 3 && !isMarked(node->input(1)) &&
        node->input(0)->type()->kind() == TypeKind::Tensor && !isMarked(node->input(0))) {
      Value* const part =
          insert(node, "wick::data_select", {node->input(0), node->input(1), node->input(2)});
      node->output()->replaceAllUsesWith(part);
      node->destroy();
      return;
    }
    Value* tensor = nullptr;  // whose dtype decides: what is not a mask
    for (Value* v : node->inputs()) {
      if (v->type()->kind() != TypeKind::Tensor || isMarked(v)) continue;
      if (!tensor || name == "aten::where") tensor = v;
    }
    const bool takes = tensor && isAmong(name, kWithOperand);
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      Value* const number = node->input(i);
      if (!isMarked(number)) continue;
      if (takes) {
        Value* const operand = insert(node, "wick::data_operand", {number, tensor});
        node->replaceInput(i, operand);
        node->resetOperator();
        if (node->maybeOperator()) continue;
        node->replaceInput(i, number);
        operand->node()->destroy();
      }
      if (!giveWhatMayBeNegative(node, i)) {
        giveNumber(node, i, userOf(node), partOfDimension(node, i));
      }
    }
    node->resetOperator();
  }

  void rewriteIf(Node* node) {
    node->replaceInput(0, condition(node, node->input(0)));
    for (Block* block : node->blocks()) {
      rewrite(block);
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        setResult(block, i, isMarked(node->output(i)));
      }
    }
    for (Value* v : node->outputs()) {
      if (isMarked(v)) retype(v);
    }
  }
  static constexpr const char* kOwner = "the result of a block";
  // Gives a block's result as the tensor that it is outside, or as the number.
  void setResult(Block* block, size_t i, bool tensor) {
    Value* const v = block->outputs()[i];
    if (tensor && !isMarked(v)) block->replaceOutput(i, asTensor(block->returnNode(), v));
    if (!tensor && isMarked(v)) giveNumber(block->returnNode(), i, kOwner);
  }

  void rewriteLoop(Node* node) {
    Block* const body = node->blocks()[0];
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      if (!isMarked(node->output(i))) continue;
      node->replaceInput(i + 2, asTensor(node, node->input(i + 2)));
      retype(body->inputs()[i + 1]);
      retype(node->output(i));
    }
    Value* const rounds = isMarked(node->input(0)) ? node->input(0) : nullptr;
    node->replaceInput(1, condition(node, node->input(1)));
    rewrite(body);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      setResult(body, i + 1, isMarked(node->output(i)));
    }
    Node* const end = body->returnNode();
    body->replaceOutput(0, condition(end, body->outputs()[0]));
    if (rounds) boundLoop(node, rounds);
  }

  // for i in range(n): goes on while i + 1 < n.
  void boundLoop(Node* node, Value* rounds) {
    Block* const body = node->blocks()[0];
    Node* const end = body->returnNode();
    const auto both = [&](Node* before, Value* a, Value* less) {
      Value* const b = insert(before, "aten::Bool", {less});
      b->setType(types::Bool());
      Value* const c = insert(before, "aten::__and__", {a, b});
      c->setType(types::Bool());
      return c;
    };
    const auto below = [&](Node* before, Value* i) {
      return insert(before, "aten::lt", {insert(before, "prim::NumToTensor", {i}), rounds});
    };
    Value* const next =
        insert(end, "aten::add", {body->inputs()[0], constant(end, IValue(int64_t{1}))});
    next->setType(types::Int());
    body->replaceOutput(0, both(end, body->outputs()[0], below(end, next)));
    node->replaceInput(1,
                       both(node, node->input(1), below(node, constant(node, IValue(int64_t{0})))));
    const auto bound = bounds_.find(rounds);
    node->replaceInput(0, bound != bounds_.end()
                              ? bound->second
                              : constant(node, IValue(std::numeric_limits<int64_t>::max())));
  }

  Graph& graph_;
  NumberMarks marks_;
  std::unordered_map<const Value*, TypePtr> types_;  // that marked values had
  std::unordered_set<const Node*> lists_;            // largest and smallest ones of lists
  std::unordered_map<const Value*, Value*> bounds_;
};

}  // namespace

void numbersAsTensors(Graph& graph) {
  Rewriter(graph).run();
}

}  // namespace wick::aot

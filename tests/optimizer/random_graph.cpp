#include "tests/optimizer/random_graph.h"

#include "ir/parser.h"

namespace wick {

namespace {

constexpr int kMaxDepth = 3;

// Called without being inlined: one writes its argument and returns a view of it, one only reads.
const char* const kWrites = R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %w : Tensor = aten::add_(%x, %y, %one)
  return (%w)
)";
const char* const kReads = R"(graph(%x : Tensor, %y : Tensor):
  %z : Tensor = aten::mul(%x, %y)
  return (%z)
)";

}  // namespace

RandomGraph::RandomGraph(uint64_t seed) : random_(seed), argument_seed_(seed) {
  class_ = std::make_shared<ClassType>("__torch__.Box", false);
  class_->addAttribute("vector", types::Tensor());
  class_->addAttribute("list", types::List(types::Tensor()));
  functions_.push_back(unit_.createFunction("__torch__.writes", parseGraph(kWrites)));
  functions_.push_back(unit_.createFunction("__torch__.reads", parseGraph(kReads)));
}

TypePtr RandomGraph::typeOf(Kind kind) const {
  switch (kind) {
    case kList:
      return types::List(types::Tensor());
    case kNested:
      return types::List(types::List(types::Tensor()));
    case kDict:
      return types::Dict(types::String(), types::Tensor());
    case kPair:
      return types::Tuple({types::Tensor(), types::List(types::Tensor())});
    case kObject:
      return class_;
    case kInt:
      return types::Int();
    case kFloat:
      return types::Float();
    case kBool:
      return types::Bool();
    default:
      return types::Tensor();
  }
}

std::vector<IValue> RandomGraph::arguments(int variant) {
  std::mt19937_64 random(argument_seed_);
  auto fill = [&](const Tensor& t) {
    auto* data = t.data<float>();
    for (int64_t i = 0; i < t.numel(); ++i) data[i] = static_cast<float>(random() % 17) / 4 - 2;
  };
  Tensor matrix = Tensor::empty(DimVector{4, 4}, DType::Float);
  Tensor first = Tensor::empty(DimVector{4}, DType::Float);
  Tensor second = Tensor::empty(DimVector{4}, DType::Float);
  Tensor held = Tensor::empty(DimVector{4}, DType::Float);
  for (const Tensor& t : {matrix, first, second, held}) fill(t);
  if (variant == 1 || variant == 2) {
    for (Tensor* t : {&first, &second, &held}) *t = t->to(DType::Double);
  }
  if (variant == 1) matrix = matrix.to(DType::Double);
  if (variant == 3) held = held.to(DType::Half);
  if (variant == 4) second = second.unsqueeze(0);
  if (random() % 2) first = matrix.select(0, 1);
  if (random() % 3 == 0) second = first;
  ListRef list = makeTensorList({second, held});
  ObjectRef box = makeRef<Object>(class_, nullptr);
  box->setAttr("vector", IValue(random() % 2 ? first : held));
  box->setAttr("list", random() % 2 ? IValue(list) : IValue(makeTensorList({held})));
  return {IValue(matrix), IValue(first), IValue(second),
          IValue(list),   IValue(box),   IValue(static_cast<int64_t>(random() % 4))};
}

std::shared_ptr<Graph> RandomGraph::make() {
  graph_ = std::make_shared<Graph>();
  scopes_.assign(1, {});
  const Kind inputs[] = {kMatrix, kVector, kVector, kList, kObject, kInt};
  for (Kind kind : inputs) add(graph_->addInput("", typeOf(kind)), kind);
  body(0, 6 + below(14));
  for (size_t i = 1 + below(4); i > 0; --i) {
    graph_->registerOutput(any(static_cast<Kind>(below(kNum))));
  }
  return graph_;
}

// ---- values ----

Value* RandomGraph::add(Value* v, Kind kind) {
  v->setType(typeOf(kind));
  scopes_.back().emplace_back(v, kind);
  return v;
}

// A value in scope, newer ones more often; a new one when there is none, and sometimes anyway.
Value* RandomGraph::any(Kind kind) {
  if (!oneIn(12)) {
    for (size_t s = scopes_.size(); s-- > 0;) {
      if (s > 0 && oneIn(4)) continue;
      std::vector<Value*> found;
      for (const auto& [v, k] : scopes_[s]) {
        if (k == kind) found.push_back(v);
      }
      if (found.empty()) continue;
      size_t i = oneIn(2) ? found.size() - 1 : below(found.size());
      return found[i];
    }
  }
  return fresh(kind);
}

Value* RandomGraph::op(const char* name, std::vector<Value*> inputs, Kind kind) {
  Node* n = graph_->insertNode(graph_->create(Symbol::fromQualString(name), inputs));
  n->output()->setType(typeOf(kind));
  return add(n->output(), kind);
}

void RandomGraph::effect(const char* name, std::vector<Value*> inputs) {
  graph_->insertNode(graph_->create(Symbol::fromQualString(name), inputs, 0));
}

Value* RandomGraph::fresh(Kind kind) {
  switch (kind) {
    case kMatrix:
    case kVector: {
      std::vector<Value*> sizes{constant(IValue(4))};
      if (kind == kMatrix) sizes.push_back(sizes[0]);
      Value* size = graph_->insertNode(graph_->createList(types::Int(), sizes))->output();
      Value* value = constant(IValue(static_cast<double>(below(5))));
      Value* none = graph_->insertNode(graph_->createNone())->output();
      return op("aten::full", {size, value, constant(IValue(6)), none, none, none}, kind);
    }
    case kList: {
      std::vector<Value*> elements{any(kVector)};
      while (oneIn(2)) elements.push_back(any(kVector));
      return add(graph_->insertNode(graph_->createList(types::Tensor(), elements))->output(), kind);
    }
    case kNested:
      return add(graph_
                     ->insertNode(graph_->createList(types::List(types::Tensor()),
                                                     std::vector<Value*>{any(kList)}))
                     ->output(),
                 kind);
    case kDict: {
      std::vector<Value*> keys{constant(IValue("a")), constant(IValue("b"))};
      std::vector<Value*> values{any(kVector), any(kVector)};
      return add(
          graph_->insertNode(graph_->createDict(types::String(), types::Tensor(), keys, values))
              ->output(),
          kind);
    }
    case kPair:
      return add(
          graph_->insertNode(graph_->createTuple(std::vector<Value*>{any(kVector), any(kList)}))
              ->output(),
          kind);
    case kObject: {
      Value* box = graph_->insertNode(graph_->createObject(class_))->output();
      graph_->insertNode(graph_->createSetAttr(box, "vector", any(kVector)));
      graph_->insertNode(graph_->createSetAttr(box, "list", any(kList)));
      return add(box, kind);
    }
    case kFloat:
      return add(constant(IValue(static_cast<double>(below(4)) / 2)), kind);
    case kBool:
      return add(constant(IValue(oneIn(2))), kind);
    default:
      return add(constant(IValue(static_cast<int64_t>(below(4)))), kInt);
  }
}

// ---- statements ----

void RandomGraph::body(int depth, size_t statements) {
  for (; statements > 0; --statements) statement(depth);
}

void RandomGraph::statement(int depth) {
  switch (below(16)) {
    case 0:
    case 1:
    case 2:
      return tensorStatement();
    case 3:
    case 4:
      return viewStatement();
    case 5:
    case 6:
    case 7:
      return inplaceStatement();
    case 8:
    case 9:
      return listStatement();
    case 10:
      return oneIn(2) ? dictStatement() : tupleStatement();
    case 11:
      return objectStatement();
    case 12:
      return scalarStatement();
    case 13:
      return callStatement();
    case 14:
      return depth < kMaxDepth ? branch(depth) : tensorStatement();
    default:
      return depth < kMaxDepth ? loop(depth) : inplaceStatement();
  }
}

void RandomGraph::tensorStatement() {
  Kind kind = oneIn(3) ? kMatrix : kVector;
  Value* one = constant(IValue(1));
  switch (below(11)) {
    case 0:
      op("aten::add", {any(kind), any(kVector), one}, kind);
      break;
    case 1:
      op("aten::mul", {any(kind), any(kVector)}, kind);
      break;
    case 2:
      op("aten::relu", {any(kind)}, kind);
      break;
    case 3:
      op("aten::neg", {any(kind)}, kind);
      break;
    case 4:
      op("aten::mul", {any(kVector), any(kFloat)}, kVector);
      break;
    case 5: {
      Value* none = graph_->insertNode(graph_->createNone())->output();
      op("aten::clone", {any(kind), none}, kind);
      break;
    }
    case 6: {
      Value* none = graph_->insertNode(graph_->createNone())->output();
      op("aten::rand_like", {any(kVector), none, none, none, none, none}, kVector);
      break;
    }
    case 7:
      op("aten::matmul", {any(kMatrix), any(kind)}, kind);
      break;
    case 8: {  // returns its argument, when it is not told to copy
      Value* none = graph_->insertNode(graph_->createNone())->output();
      Value* dtype = constant(IValue(static_cast<int64_t>(DType::Float)));
      Value* no = constant(IValue(false));
      op("aten::to", {any(kind), dtype, no, constant(IValue(oneIn(3))), none}, kind);
      break;
    }
    case 9:
      if (oneIn(2)) {
        op("aten::type_as", {any(kind), any(kMatrix)}, kind);
      } else {
        op("aten::_cast_Float", {any(kind), constant(IValue(false))}, kind);
      }
      break;
    default: {
      // The sum along a dimension of the stacked list: reads what the list holds.
      Node* stack = graph_->insertNode(
          graph_->create(Symbol::aten("stack"), {any(kList), constant(IValue(0))}));
      Value* dims = graph_
                        ->insertNode(graph_->createList(types::Int(),
                                                        std::vector<Value*>{constant(IValue(0))}))
                        ->output();
      Value* none = graph_->insertNode(graph_->createNone())->output();
      op("aten::sum", {stack->output(), dims, constant(IValue(false)), none}, kVector);
    }
  }
}

void RandomGraph::viewStatement() {
  Kind kind = oneIn(2) ? kMatrix : kVector;
  Value* zero = constant(IValue(0));
  switch (below(8)) {
    case 0:
      op("aten::select", {any(kMatrix), zero, constant(IValue(int64_t(below(4))))}, kVector);
      break;
    case 1:
      op("aten::t", {any(kind)}, kind);
      break;
    case 2:
      op("aten::slice", {any(kind), zero, zero, constant(IValue(4)), constant(IValue(1))}, kind);
      break;
    case 3:
      op("aten::view_as", {any(kVector), any(kVector)}, kVector);
      break;
    case 4:
      op("aten::unbind", {any(kMatrix), zero}, kList);
      break;
    case 5:
      op("aten::atleast_1d", {any(kVector)}, kVector);
      break;
    case 6:
      op("aten::dropout", {any(kind), constant(IValue(0.5)), constant(IValue(false))}, kind);
      break;
    default:
      op("aten::contiguous", {any(kind), zero}, kind);
  }
}

void RandomGraph::inplaceStatement() {
  Kind kind = oneIn(3) ? kMatrix : kVector;
  switch (below(6)) {
    case 0:
      op("aten::add_", {any(kind), any(kVector), constant(IValue(1))}, kind);
      break;
    case 1:
      op("aten::relu_", {any(kind)}, kind);
      break;
    case 2:
      op("aten::mul_", {any(kVector), constant(IValue(0.5))}, kVector);
      break;
    case 3:
      op("aten::copy_", {any(kVector), any(kVector), constant(IValue(false))}, kVector);
      break;
    case 4:
      op("aten::neg_", {any(kind)}, kind);
      break;
    default:
      op("aten::zero_", {any(kVector)}, kVector);
  }
}

void RandomGraph::listStatement() {
  // A list that is doubled in nested loops would fill the memory.
  const bool may_double = scopes_.size() <= 2;
  Value* end = constant(IValue(oneIn(2) ? 0 : -1));
  switch (below(12)) {
    case 0:
    case 1:
      op("aten::append", {any(kList), any(kVector)}, kList);
      break;
    case 2:
    case 3:
      op("aten::__getitem__", {any(kList), end}, kVector);
      break;
    case 4:
      if (may_double) effect("aten::extend", {any(kList), any(kList)});
      break;
    case 5:
      op("aten::_set_item", {any(kList), end, any(kVector)}, kList);
      break;
    case 6:
      if (may_double) op("aten::add", {any(kList), any(kList)}, kList);
      break;
    case 7: {
      Value* one = constant(IValue(1));
      op("aten::slice", {any(kList), constant(IValue(0)), one, one}, kList);
      break;
    }
    case 8:
      op("aten::len", {any(kList)}, kInt);
      break;
    case 9:
      op("aten::__getitem__", {any(kNested), end}, kList);
      break;
    case 10:
      op("aten::append", {any(kNested), any(kList)}, kNested);
      break;
    default:
      effect("aten::insert", {any(kList), end, any(kVector)});
  }
}

void RandomGraph::dictStatement() {
  Value* key = constant(IValue(oneIn(2) ? "a" : "b"));
  switch (below(3)) {
    case 0:
      op("aten::__getitem__", {any(kDict), key}, kVector);
      break;
    case 1:
      effect("aten::_set_item", {any(kDict), key, any(kVector)});
      break;
    default:
      op("aten::values", {any(kDict)}, kList);
  }
}

void RandomGraph::tupleStatement() {
  Value* pair = any(kPair);
  if (oneIn(2)) {
    Node* n = graph_->insertNode(graph_->createTupleUnpack(pair));
    add(n->output(0), kVector);
    add(n->output(1), kList);
  } else {
    Value* index = constant(IValue(0));
    add(graph_->insertNode(graph_->createTupleIndex(pair, index, types::Tensor()))->output(),
        kVector);
  }
}

void RandomGraph::objectStatement() {
  Value* box = any(kObject);
  switch (below(4)) {
    case 0:
      add(graph_->insertNode(graph_->createGetAttr(box, "vector"))->output(), kVector);
      break;
    case 1:
      add(graph_->insertNode(graph_->createGetAttr(box, "list"))->output(), kList);
      break;
    case 2:
      graph_->insertNode(graph_->createSetAttr(box, "vector", any(kVector)));
      break;
    default:
      graph_->insertNode(graph_->createSetAttr(box, "list", any(kList)));
  }
}

void RandomGraph::scalarStatement() {
  switch (below(11)) {
    case 0:
      op("aten::add", {any(kInt), any(kInt)}, kInt);
      break;
    case 1:
      op("aten::mul", {any(kInt), any(kInt)}, kInt);
      break;
    case 2:
      op("aten::sub", {any(kInt), any(kInt)}, kInt);
      break;
    case 3:
      op("aten::lt", {any(kInt), any(kInt)}, kBool);
      break;
    case 4:
      op("aten::__not__", {any(kBool)}, kBool);
      break;
    case 5:
      op("aten::mul", {any(kFloat), any(kFloat)}, kFloat);
      break;
    case 6:
      op("aten::neg", {any(kInt)}, kInt);
      break;
    case 7:
      op("aten::dim", {any(oneIn(2) ? kMatrix : kVector)}, kInt);
      break;
    case 8:
      op("aten::size", {any(oneIn(2) ? kMatrix : kVector), constant(IValue(0))}, kInt);
      break;
    case 9:
      op("aten::eq", {any(kInt), any(kInt)}, kBool);
      break;
    default: {
      // Reads a tensor into a number.
      Value* none = graph_->insertNode(graph_->createNone())->output();
      Node* sum = graph_->insertNode(graph_->create(Symbol::aten("sum"), {any(kVector), none}));
      op("aten::Float", {sum->output()}, kFloat);
    }
  }
}

void RandomGraph::callStatement() {
  std::vector<Value*> arguments{any(kVector), any(kVector)};
  add(graph_->insertCall(functions_[below(functions_.size())], arguments), kVector);
}

RandomGraph::Kind RandomGraph::carriedKind() {
  static const Kind kinds[] = {kVector, kVector, kVector, kMatrix, kList, kList,
                               kPair,   kDict,   kObject, kInt,    kFloat};
  return kinds[below(std::size(kinds))];
}

void RandomGraph::branch(int depth) {
  Node* n = graph_->create(prim::If, {any(kBool)}, 0);
  graph_->insertNode(n);
  std::vector<Kind> kinds;
  for (size_t i = below(3); i > 0; --i) kinds.push_back(carriedKind());
  for (int side = 0; side < 2; ++side) {
    Block* b = n->addBlock();
    InsertPointGuard guard(b);
    scopes_.emplace_back();
    body(depth + 1, below(5));
    std::vector<Value*> outputs;
    for (Kind kind : kinds) outputs.push_back(any(kind));
    for (Value* v : outputs) b->registerOutput(v);
    scopes_.pop_back();
  }
  for (Kind kind : kinds) add(n->addOutput(typeOf(kind)), kind);
}

void RandomGraph::loop(int depth) {
  Value* turns = oneIn(2) ? any(kInt) : constant(IValue(static_cast<int64_t>(below(4))));
  // Ints grow by multiplication: at most three turns.
  turns = graph_->insertNode(graph_->create(Symbol::prim("min"), {turns, constant(IValue(3))}))
              ->output()
              ->setType(types::Int());
  std::vector<Kind> kinds;
  std::vector<Value*> inputs{turns, oneIn(4) ? any(kBool) : constant(IValue(true))};
  for (size_t i = below(3); i > 0; --i) {
    kinds.push_back(carriedKind());
    inputs.push_back(any(kinds.back()));
  }
  Node* n = graph_->insertNode(graph_->create(prim::Loop, inputs, 0));
  Block* b = n->addBlock();
  {
    InsertPointGuard guard(b);
    scopes_.emplace_back();
    add(b->addInput(types::Int()), kInt);
    for (Kind kind : kinds) add(b->addInput(typeOf(kind)), kind);
    body(depth + 1, 1 + below(4));
    std::vector<Value*> outputs{oneIn(4) ? any(kBool) : constant(IValue(true))};
    for (Kind kind : kinds) outputs.push_back(any(kind));
    for (Value* v : outputs) b->registerOutput(v);
    scopes_.pop_back();
  }
  for (Kind kind : kinds) add(n->addOutput(typeOf(kind)), kind);
}

}  // namespace wick

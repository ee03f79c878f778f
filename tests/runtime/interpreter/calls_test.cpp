// Calls, exceptions with their stack, limits, forks, objects and the lifetime of values.
#include <thread>

#include "runtime/call.h"
#include "runtime/interpreter/slow_paths.h"
#include "tests/runtime/interpreter/program.h"

namespace wick::testing::calls_test {
namespace {

// Records how many references a tensor has when an operator gets it.
std::atomic<uint32_t> seen_count{0};
void observe(CallFrame& frame) {
  seen_count = static_cast<RefCounted*>(frame.args[0].rawObject())->useCount();
  frame.results[0] = frame.take(0);
}
void first(CallFrame& frame) {
  { const IValue let_go = frame.take(1); }
  frame.results[0] = frame.take(0);
}
void fail(CallFrame&) {
  throwRuntimeError("test::fail: told to");
}
void three(CallFrame& frame) {
  for (int i = 0; i < 3; ++i) frame.results[i] = IValue(int64_t{i});
}
void lie(CallFrame& frame) {
  frame.results[0] = IValue("no int");
}
constexpr OperatorRecord kRecords[] = {
    {"test::observe(Tensor x) -> Tensor", observe},
    {"test::first(Tensor x, Tensor y) -> Tensor", first},
    {"test::fail(int x) -> int", fail, kSideEffects},
    {"test::three() -> (int, int, int)", three},
    {"test::lie() -> int", lie, kSideEffects},
};
const RegisterOperators registered(kRecords);

struct Unit {
  std::shared_ptr<CompilationUnit> unit = std::make_shared<CompilationUnit>();
  GraphFunction* define(const std::string& name, const std::string& text) {
    return unit->createFunction("__torch__." + name, parseGraph(text));
  }
  // def name(x: int) -> int: return callee(x) + 1
  GraphFunction* defineCaller(const std::string& name, GraphFunction* callee) {
    auto graph = std::make_shared<Graph>();
    Value* x = graph->addInput("x", types::Int());
    auto source = std::make_shared<Source>("return " + callee->name() + "(x) + 1\n", name + ".py");
    graph->setCurrentRange(SourceRange(source, 7, 7 + callee->name().size() + 3));
    Value* result = graph->insertCall(callee, {{x}});
    Value* one = graph->insertConstant(IValue(int64_t{1}));
    Node* sum = graph->insertNode(graph->create(aten::add, {result, one}));
    sum->output()->setType(types::Int());
    graph->registerOutput(sum->output());
    return unit->createFunction("__torch__." + name, graph);
  }
};

const char* const kFail = R"(graph(%x : int):
  %y : int = test::fail(%x)
  return (%y))";

TEST(Calls, ArgumentsAndResultsPassThroughFrames) {
  Unit u;
  GraphFunction* f = u.define("f", R"(graph(%x : int):
  %y : int = aten::mul(%x, %x)
  return (%y))");
  GraphFunction* g = u.defineCaller("g", f);
  GraphFunction* h = u.defineCaller("h", g);
  EXPECT_EQ(callFunction(*h, {5}).toInt(), 27);
}

TEST(Calls, AUnitHasOneFunctionOfAName) {
  Unit unit;
  unit.define("f", "graph(%x : int):\n  return (%x)\n");
  try {
    unit.define("f", "graph(%x : int):\n  return (%x)\n");
    ADD_FAILURE() << "it was defined twice";
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("the function '__torch__.f' is defined twice"),
              std::string::npos)
        << e.what();
  }
}

TEST(Calls, ErrorsCarryTheStackOfTheScript) {
  Unit u;
  GraphFunction* f = u.define("f", kFail);
  GraphFunction* g = u.defineCaller("g", f);
  GraphFunction* h = u.defineCaller("h", g);
  try {
    callFunction(*h, {5});
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_EQ(error.brief(), "test::fail: told to");
    ASSERT_EQ(error.frames().size(), 3u);
    EXPECT_EQ(error.frames()[0].function, "f");
    EXPECT_EQ(error.frames()[1].function, "g");
    EXPECT_EQ(error.frames()[1].range.text(), "f(x)");
    EXPECT_EQ(error.frames()[2].function, "h");
    EXPECT_EQ(error.frames()[2].range.text(), "g(x)");
  }
}

TEST(Calls, RaiseNamesClassAndMessage) {
  try {
    run(R"(graph(%x : str):
  %c : str = prim::Constant[value="builtins.ValueError"]()
   = prim::RaiseException(%x, %c)
  return (%x))",
        {"bad"});
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_EQ(error.className(), "ValueError");
    EXPECT_EQ(error.brief(), "bad");
  }
}

TEST(Calls, ResultOfTheWrongKindIsOurBugNotACrash) {
  EXPECT_THROW(run(R"(graph():
  %x : int = test::lie()
  return (%x))",
                   {}),
               InternalError);
}

TEST(Calls, SeveralResults) {
  EXPECT_EQ(run(R"(graph():
  %a : int, %b : int, %c : int = test::three()
  %t : (int, int) = prim::TupleConstruct(%c, %a)
  return (%t))",
                {})
                .repr(),
            "(2, 0)");
}

// class C: def down(self, n): return 0 if n == 0 else self.down(n - 1) + 1, where self is known by
// an interface only, so that the call stays a call.
struct Recursive {
  std::shared_ptr<CompilationUnit> unit = std::make_shared<CompilationUnit>();
  std::shared_ptr<InterfaceType> interface = std::make_shared<InterfaceType>("I", false);
  ClassTypePtr type = std::make_shared<ClassType>("C", false);
  GraphFunction* down;

  Recursive() {
    auto resolve = [this](const std::string& name) -> TypePtr {
      return name == "I" ? interface : nullptr;
    };
    down = unit->createFunction("C.down", parseGraph(R"(graph(%self : I, %n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %c : bool = aten::eq(%n, %0)
  %r : int = prim::If(%c)
    block0():
      -> (%0)
    block1():
      %m : int = aten::sub(%n, %1)
      %d : int = prim::CallMethod[name="down"](%self, %m)
      %s : int = aten::add(%d, %1)
      -> (%s)
  return (%r))",
                                                     resolve));
    type->addMethod(down);
  }
  IValue run(int64_t n, const RunOptions& options) {
    return runCode(GraphExecutor::of(*down).code(), {IValue(makeRef<Object>(type, nullptr)), n},
                   options);
  }
};

TEST(Calls, MethodsOfInterfacesAreFoundInTheClass) {
  Recursive r;
  EXPECT_EQ(r.run(100, {}).toInt(), 100);
  // More frames than the first stack holds.
  EXPECT_EQ(r.run(1900, {}).toInt(), 1900);
}

// Classes come and go, and others come to lie where they were.
TEST(Calls, ClassesThatAreGoneAreNotTakenForOthers) {
  auto interface = std::make_shared<InterfaceType>("I", false);
  const auto caller = Code::build(parseGraph(R"(graph(%self : I):
  %r : int = prim::CallMethod[name="number"](%self)
  return (%r))",
                                             [&](const std::string& name) -> TypePtr {
                                               return name == "I" ? interface : nullptr;
                                             }),
                                  "caller");
  struct Numbered {
    std::unique_ptr<CompilationUnit> unit = std::make_unique<CompilationUnit>();
    ClassTypePtr type;
    explicit Numbered(int64_t number) {
      // Not by make_shared, so that nothing holds on to the memory.
      std::shared_ptr<ClassType> made(new ClassType("C", false));
      made->addMethod(unit->createFunction(
          "C.number", parseGraph(fmt::format(R"(graph(%self : I):
  %r : int = prim::Constant[value={}]()
  return (%r))",
                                             number),
                                 [](const std::string& name) -> TypePtr {
                                   if (name != "I") return nullptr;
                                   return std::make_shared<InterfaceType>("I", false);
                                 })));
      type = made;
    }
  };
  std::vector<Numbered> alive;
  for (int64_t i = 0; i < 300; ++i) {
    Numbered numbered(i);
    EXPECT_EQ(runCode(*caller, {IValue(makeRef<Object>(numbered.type, nullptr))}).toInt(), i);
    if (i % 10 == 0) alive.push_back(std::move(numbered));
  }
  for (size_t i = 0; i < alive.size(); ++i) {
    EXPECT_EQ(runCode(*caller, {IValue(makeRef<Object>(alive[i].type, nullptr))}).toInt(),
              static_cast<int64_t>(10 * i));
  }
  EXPECT_EQ(caller->methodSites()[0]->last.load()->count, MethodSite::kMostEntries);
}

TEST(Calls, DepthIsLimitedFromBothSides) {
  Recursive r;
  RunOptions options;
  options.max_depth = 10;
  EXPECT_EQ(r.run(9, options).toInt(), 9);
  EXPECT_THROW(r.run(10, options), RuntimeError);
}

const char* const kCount = R"(graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=True]()
  %s : int = prim::Loop(%n, %true, %0)
    block0(%i : int, %s.1 : int):
      %s.2 : int = aten::add(%s.1, %1)
      -> (%true, %s.2)
  return (%s))";

TEST(Limits, StepsFromBothSides) {
  auto code = compile(kCount);
  RunOptions options;
  // The first iteration is no jump backwards.
  for (int64_t n : {2, 100, 1000}) {
    options.max_steps = n - 1;
    EXPECT_EQ(runCode(*code, {n}, options).toInt(), n);
    options.max_steps = n - 2;
    EXPECT_THROW(runCode(*code, {n}, options), RuntimeError) << n;
  }
}

const char* const kForever = R"(graph():
  %max : int = prim::Constant[value=9223372036854775807]()
  %true : bool = prim::Constant[value=True]()
   = prim::Loop(%max, %true)
    block0(%i : int):
      -> (%true)
  return ())";

TEST(Limits, DeadlineAndInterruptEndAnEndlessLoop) {
  auto code = compile(kForever);
  RunOptions options;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  EXPECT_THROW(runCode(*code, {}, options), RuntimeError);

  RunOptions interruptible;
  auto flag = std::make_shared<std::atomic<bool>>(false);
  interruptible.interrupt = flag;
  std::thread other([flag] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *flag = true;
  });
  EXPECT_THROW(runCode(*code, {}, interruptible), RuntimeError);
  other.join();
}

// Arguments without the copies that an initializer list keeps until the call is over.
template <class... Values>
std::vector<IValue> only(Values... values) {
  std::vector<IValue> list;
  (list.push_back(std::move(values)), ...);
  return list;
}

TEST(Lifetime, LastUseMovesTheArgument) {
  Tensor x = Tensor::zeros({2}, DType::Float);
  auto code = compile(R"(graph(%x : Tensor):
  %y : Tensor = test::observe(%x)
  return (%y))");
  runCode(*code, only(IValue(x)));
  EXPECT_EQ(seen_count, 2u);  // x here and the operator's argument
  auto kept = compile(R"(graph(%x : Tensor):
  %y : Tensor = test::observe(%x)
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
  return (%t))");
  runCode(*kept, only(IValue(x)));
  EXPECT_EQ(seen_count, 2u);  // x here and the register from which the operator borrows it
}

// The operator reads its first argument after it has let go of the second.
TEST(Lifetime, WhatTheSameListMovesIsNotBorrowed) {
  auto code = compile(R"(graph(%x : Tensor):
  %y : Tensor = test::first(%x, %x)
  return (%y))");
  EXPECT_NE(code->str().find("[r0+, r0!]"), std::string::npos) << code->str();
  auto memory = std::make_shared<std::vector<float>>(2);
  const std::weak_ptr<std::vector<float>> alive = memory;
  float* data = memory->data();
  Ref<Storage> storage = Storage::borrow(data, 2 * sizeof(float), std::move(memory));
  Tensor x = Tensor::fromStorage(std::move(storage), DType::Float, {2}, {1}, 0);
  IValue y = runCode(*code, only(IValue(std::move(x))));
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(y.toTensor().impl()->useCount(), 2u);
  y = IValue();
  EXPECT_TRUE(alive.expired());
}

// Constants are borrowed: as many calls as one likes leave the Code's own reference alone.
TEST(Lifetime, OperatorsBorrowConstants) {
  auto graph = std::make_shared<Graph>();
  Tensor x = Tensor::zeros({2}, DType::Float);
  Value* constant = graph->insertConstant(IValue(x));
  Node* node =
      graph->insertNode(graph->create(Symbol::fromQualString("test::observe"), {constant}));
  node->output()->setType(types::Tensor());
  graph->registerOutput(node->output());
  auto code = Code::build(graph, "constant");
  for (int i = 0; i < 3; ++i) {
    const uint32_t before = x.impl()->useCount();
    EXPECT_TRUE(runCode(*code, {}).toTensor().isSame(x));
    EXPECT_EQ(seen_count, before);
    EXPECT_EQ(x.impl()->useCount(), before);
  }
}

// %x is read on one side only; on the other it must be gone before the operator runs.
TEST(Lifetime, ValuesAreDroppedOnTheSideThatDoesNotReadThem) {
  Tensor x = Tensor::zeros({2}, DType::Float);
  auto code = compile(R"(graph(%x : Tensor, %b : bool):
  %l : Tensor[] = prim::ListConstruct(%x)
  %y : Tensor = prim::If(%b)
    block0():
      %0 : int = prim::Constant[value=0]()
      %z : Tensor = aten::__getitem__(%l, %0)
      -> (%z)
    block1():
      %w : Tensor = test::observe(%x)
      -> (%w)
  return (%y))");
  runCode(*code, only(IValue(x), false));
  EXPECT_EQ(seen_count, 2u) << code->str();
}

TEST(Lifetime, LoopsReleaseWhatAnIterationNoLongerNeeds) {
  Tensor x = Tensor::zeros({2}, DType::Float);
  auto code = compile(R"(graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=True]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = test::observe(%a)
      -> (%true, %b)
  return (%y))");
  runCode(*code, only(IValue(x), 3));
  EXPECT_EQ(seen_count, 2u) << code->str();
  EXPECT_EQ(x.impl()->useCount(), 1u);
}

TEST(Lifetime, ErrorsReleaseRegisters) {
  Tensor x = Tensor::zeros({2}, DType::Float);
  auto code = compile(R"(graph(%x : Tensor, %n : int):
  %l : Tensor[] = prim::ListConstruct(%x, %x)
  %m : int = test::fail(%n)
  %t : (Tensor[], int) = prim::TupleConstruct(%l, %m)
  return (%t))");
  EXPECT_THROW(runCode(*code, {IValue(x), 3}), RuntimeError);
  EXPECT_EQ(x.impl()->useCount(), 1u);
}

TEST(Data, ContainersAndCasts) {
  IValue v = run(R"(graph(%a : int, %o : int?):
  %1 : int = prim::Constant[value=1]()
  %m : int = prim::Constant[value=-1]()
  %k : str = prim::Constant[value="k"]()
  %t : (int, str, int) = prim::TupleConstruct(%a, %k, %1)
  %x : int, %y : str, %z : int = prim::TupleUnpack(%t)
  %s : (str, int) = prim::TupleSlice[beg=1, end=3](%t)
  %i : int = prim::TupleIndex(%t, %m)
  %c : int = prim::unchecked_cast(%o)
  %sum : int = aten::add(%i, %c)
  %l : int[] = prim::ListConstruct(%x, %z, %sum)
  %n : int = aten::len(%l)
  %last : int = aten::__getitem__(%l, %m)
  %d : Dict(str, int) = prim::DictConstruct(%y, %n, %k, %last)
  %r : ((str, int), int[], Dict(str, int)) = prim::TupleConstruct(%s, %l, %d)
  return (%r))",
                 {7, 4});
  EXPECT_EQ(v.repr(), "(('k', 1), [7, 1, 5], {'k': 5})");
}

// A scalar register holds bits, not an IValue: whatever writes one must say so, or it would release
// what the bits seem to refer to.
TEST(Data, ScalarResultsAreMarked) {
  auto code = compile(R"(graph(%o : Any, %l : int[]):
  %b : bool = prim::isinstance[types=types [int]](%o)
  %n : int = aten::len(%l)
  return (%b, %n))");
  for (const Instruction& i : code->instructions()) {
    if (i.op == OpCode::ISINSTANCE || i.op == OpCode::LIST_LEN) {
      EXPECT_NE(i.extra, 0) << code->str();
    }
  }
}

TEST(Data, ListIndexIsChecked) {
  const char* text = R"(graph(%l : int[], %i : int):
  %x : int = aten::__getitem__(%l, %i)
  return (%x))";
  IValue list(makeIntList(DimVector{1, 2}));
  EXPECT_EQ(run(text, {list, -2}).toInt(), 1);
  EXPECT_THROW(run(text, {list, 2}), RuntimeError);
  EXPECT_THROW(run(text, {list, -3}), RuntimeError);
}

TEST(Data, ToListChecksDepthAndKind) {
  const char* text = R"(graph(%x : Tensor, %depth : int, %kind : int):
  %l : float[][] = prim::tolist(%x, %depth, %kind)
  return (%l))";
  float values[] = {1, 2, 3, 4, 5, 6};
  Tensor t = Tensor::fromData(values, DimVector{2, 3}).transpose(0, 1);
  EXPECT_EQ(run(text, {IValue(t), 2, 1}).repr(), "[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]");
  EXPECT_THROW(run(text, {IValue(t), 1, 1}), RuntimeError);
  EXPECT_THROW(run(text, {IValue(t), 2, 0}), RuntimeError);
}

TEST(Data, PrintGoesToTheHandler) {
  std::string printed;
  setPrintHandler([&](const std::string& line) { printed += line; });
  run(R"(graph(%a : int, %b : str, %c : float):
   = prim::Print(%a, %b, %c)
   = prim::Print()
  return (%a))",
      {1, "s", 1.0});
  setPrintHandler([](const std::string&) {});
  EXPECT_EQ(printed, "1 s 1.0\n\n");
}

// fork(fork(f)) + fork(g): every wait meets an unfinished future when the pool has one thread.
std::shared_ptr<Graph> forkTree(int depth) {
  auto graph = std::make_shared<Graph>();
  Value* x = graph->addInput("x", types::Int());
  Value* one = graph->insertConstant(IValue(int64_t{1}));
  auto binary = [&](Value* a, Value* b) {
    return graph->insertNode(graph->create(aten::add, {a, b}))->output()->setType(types::Int());
  };
  if (depth == 0) {
    graph->registerOutput(binary(x, one));
    return graph;
  }
  std::vector<Value*> futures;
  for (int i = 0; i < 2; ++i) {
    Node* fork = graph->create(prim::fork, {x});
    fork->setAttribute(attr::Subgraph, forkTree(depth - 1));
    fork->output()->setType(types::Future(types::Int()));
    futures.push_back(graph->insertNode(fork)->output());
  }
  std::vector<Value*> results;
  for (Value* future : futures) {
    Node* wait = graph->insertNode(graph->create(aten::wait, {future}));
    results.push_back(wait->output()->setType(types::Int()));
  }
  graph->registerOutput(binary(results[0], results[1]));
  return graph;
}

TEST(Fork, NestedWaitsFinishAtAnyPoolSize) {
  for (size_t size : {1, 4}) {
    ThreadPool pool(size);
    RunOptions options;
    options.pool = &pool;
    auto code = Code::build(forkTree(6), "tree");
    for (int i = 0; i < 20; ++i) EXPECT_EQ(runCode(*code, {1}, options).toInt(), 128);
  }
}

TEST(Fork, ErrorsArriveAtTheWait) {
  ThreadPool pool(1);
  RunOptions options;
  options.pool = &pool;
  auto graph = std::make_shared<Graph>();
  Value* x = graph->addInput("x", types::Int());
  Node* fork = graph->create(prim::fork, {x});
  fork->setAttribute(attr::Subgraph, parseGraph(kFail));
  fork->output()->setType(types::Future(types::Int()));
  graph->insertNode(fork);
  Node* wait = graph->insertNode(graph->create(aten::wait, {fork->output()}));
  graph->registerOutput(wait->output()->setType(types::Int()));
  auto code = Code::build(graph, "main");
  try {
    runCode(*code, {1}, options);
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_EQ(error.brief(), "test::fail: told to");
    EXPECT_EQ(error.frames().size(), 2u);
  }
}

TEST(Fork, StepsOfForksCount) {
  // Outlives the pool: forks may still run when the error arrives.
  auto code = Code::build(forkTree(6), "tree");
  ThreadPool pool(2);
  RunOptions options;
  options.pool = &pool;
  options.max_steps = 20;
  EXPECT_THROW(runCode(*code, {1}, options), RuntimeError);
}

TEST(Threads, OneCodeManyRuns) {
  Unit u;
  GraphFunction* f = u.define("f", kCount);
  GraphFunction* g = u.defineCaller("g", f);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int64_t i = 1; i < 200; ++i) wrong += callFunction(*g, {i}).toInt() != i + 1;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace wick::testing::calls_test

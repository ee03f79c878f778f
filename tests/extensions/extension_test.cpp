// Operators and classes that an application adds, in all tiers: programs, archives, gradients, plans
// and kernels around them, and what is refused.
#include "extensions/extension.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <thread>

#include "capi/wick.h"
#include "extensions/plugin.h"
#include "ir/operator.h"
#include "wick.h"
#include "wick_ops.h"

namespace wick::extension_test {
namespace {

using testing::HasSubstr;

std::string refusalOf(Extension& extension) {
  try {
    extension.add();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

bool isKnown(const std::string& op) {
  return !OperatorRegistry::instance().overloads(Symbol::fromQualString(op)).empty();
}

struct Cup {
  double size = 0;
};

class Bag {
 public:
  explicit Bag(std::vector<int64_t> items) : items_(std::move(items)) {}
  void push(int64_t item, int64_t times) {
    for (int64_t i = 0; i < times; ++i) items_.push_back(item);
  }
  int64_t size() const { return static_cast<int64_t>(items_.size()); }
  int64_t sum() const {
    int64_t sum = 0;
    for (int64_t i : items_) sum += i;
    return sum;
  }
  const std::vector<int64_t>& items() const { return items_; }
  Bag joined(const Bag& other) const {
    std::vector<int64_t> all = items_;
    all.insert(all.end(), other.items_.begin(), other.items_.end());
    return Bag(std::move(all));
  }

 private:
  std::vector<int64_t> items_;
};

std::vector<float> numbers(const IValue& v) {
  const Tensor t = v.tensor().contiguous();
  return {t.data<float>(), t.data<float>() + t.numel()};
}

Tensor cubed(const Tensor& x) {
  return ops::mul(ops::mul(x, x), x);
}

// One extension for all tests.
void define() {
  static const bool done = [] {
    Extension e("trial");
    e.op("cube(Tensor self) -> Tensor", &cubed,
         {.result_like = "self", .derivative = "self: grad * self * self * 3"});
    e.op("cube.times(Tensor self, Scalar factor) -> Tensor",
         [](const Tensor& x, const Scalar& factor) { return ops::mul(cubed(x), factor); },
         {.derivative = "self: grad * self * self * 3 * factor"});
    e.op("split_sign(Tensor self, *, bool zeros=True) -> (Tensor, Tensor)",
         [](const Tensor& x, bool) {
           return std::tuple<Tensor, Tensor>(ops::clamp_min(x, 0), ops::clamp_max(x, 0));
         },
         {.shape =
              [](std::span<const KnownArgument> arguments) {
                return std::vector<TypePtr>{arguments[0].type, arguments[0].type};
              },
          .derivative =
              "self: grad0 * (self > 0).to(grad0.dtype) + grad1 * (self < 0).to(grad1.dtype)"});
    e.op("through(Tensor self) -> Tensor", [](const Tensor& x) { return ops::exp(x); },
         {.derivative = "others"});
    e.op("no_gradient(Tensor self) -> Tensor", [](const Tensor& x) { return ops::exp(x); });
    e.op("add_one_(Tensor(a!) self) -> Tensor(a!)", [](const Tensor& x) { return ops::add_(x, 1); },
         {.derivative = "self: grad"});
    e.op("first_row(Tensor(a) self) -> Tensor(a)",
         [](const Tensor& x) { return ops::select(x, 0, 0); });
    e.op("words(str text, int[] lengths, float? scale=None, Tensor? t=None) -> Dict(str, float)",
         [](const std::string& text, const std::vector<int64_t>& lengths,
            std::optional<double> scale, const std::optional<Tensor>& t) {
           std::map<std::string, double> out;
           out[text] = static_cast<double>(lengths.size()) * scale.value_or(1) + (t ? 100 : 0);
           return out;
         });
    e.op("fails(Tensor self) -> Tensor",
         [](const Tensor&) -> Tensor { throw std::out_of_range("only 3 rows"); });
    e.op("lies(Tensor self) -> Tensor", [](const Tensor& x) { return ops::sum(x); },
         {.result_like = "self"});
    e.op("lying_rule(Tensor self) -> Tensor", [](const Tensor& x) { return ops::sum(x); },
         {.shape = [](std::span<const KnownArgument> a) {
           return std::vector<TypePtr>{a[0].type};
         }});
    e.op("calls() -> int", [count = int64_t{0}]() mutable { return ++count; },
         {.side_effects = true});
    e.op("product(Tensor a, Tensor b) -> Tensor",
         [](const Tensor& a, const Tensor& b) { return ops::mm(a, b); },
         {.autocast = AutocastTrait::Reduced});
    e.op("range(Tensor a) -> Tensor", [](const Tensor& a) { return ops::exp(a); },
         {.autocast = AutocastTrait::Full});
    e.op("bag_of(int[] items) -> __torch__.torch.classes.trial.Bag",
         [](const std::vector<int64_t>& items) { return Bag(items); });
    e.op("bag_sum(__torch__.torch.classes.trial.Bag bag) -> int",
         [](const Bag& bag) { return bag.sum(); });
    e.object<Bag>("Bag")
        .init<std::vector<int64_t>>()
        .def("push(int item, int times=1) -> ()", &Bag::push)
        .def("size", &Bag::size)
        .def("joined", &Bag::joined)
        .def("twice", [](const Bag& bag) { return bag.joined(bag); })
        .pickle([](const Bag& bag) { return bag.items(); },
                [](const std::vector<int64_t>& items) {
                  if (items.size() > 1000) throw std::length_error("too many items");
                  return Bag(items);
                });
    e.object<std::string>("Unsaved").init<std::string>();
    e.add();
    return true;
  }();
  (void)done;
}

class ExtensionTest : public testing::Test {
 protected:
  void SetUp() override { define(); }
};

TEST_F(ExtensionTest, ProgramsCallOperators) {
  const Program p = compile(R"(
from typing import Dict
def f(x: Tensor) -> Tensor:
    return torch.ops.trial.cube(x) + torch.ops.trial.cube(x, 2)
def g(x: Tensor) -> Tensor:
    a, b = torch.ops.trial.split_sign(x, zeros=False)
    return a * 10 + b
def h(n: int) -> Dict[str, float]:
    return torch.ops.trial.words("a", [1] * n, scale=0.5)
def i(x: Tensor) -> Dict[str, float]:
    return torch.ops.trial.words("b", [], t=x)
)");
  const Tensor x = Tensor::from({1.f, -2.f});
  const std::vector<float> expected = {3, -24}, signs = {10, -2};
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(numbers(p.call("f", {x})), expected);
    EXPECT_EQ(numbers(p.call("g", {x})), signs);
  }
  EXPECT_EQ((p.call("h", {4}).to<std::map<std::string, double>>()),
            (std::map<std::string, double>{{"a", 2.0}}));
  EXPECT_EQ((p.call("i", {x}).to<std::map<std::string, double>>()),
            (std::map<std::string, double>{{"b", 100.0}}));
}

TEST_F(ExtensionTest, GradientsOnTheTapeAndInGraphs) {
  const Program p = compile(R"(
def first(x: Tensor) -> Tensor:
    return torch.ops.trial.cube(x * 2).relu().sum()
def second(x: Tensor) -> Tensor:
    g = torch.autograd.grad([torch.ops.trial.cube(x).sum()], [x], create_graph=True)[0]
    assert g is not None
    h = torch.autograd.grad([g.sum()], [x])[0]
    assert h is not None
    return h
def through(x: Tensor) -> Tensor:
    return torch.ops.trial.through(x).sum()
def missing(x: Tensor) -> Tensor:
    return torch.ops.trial.no_gradient(x).sum()
def inplace(x: Tensor) -> Tensor:
    y = x * 3
    torch.ops.trial.add_one_(y)
    return (y * y).sum()
)");
  const auto gradient = [&](const char* function, double at) {
    Tensor x = Tensor::from({at});
    x.setRequiresGrad(true);
    const Tensor y = p.call(function, {x}).tensor();
    backward(y);
    return gradientOf(x).item<double>();
  };
  for (int call = 0; call < 4; ++call) {
    EXPECT_DOUBLE_EQ(gradient("first", 1.5), 3 * 9 * 2);
    EXPECT_DOUBLE_EQ(gradient("through", 0.5), std::exp(0.5));
    EXPECT_DOUBLE_EQ(gradient("inplace", 2), 2 * 7 * 3);
    Tensor x = Tensor::from({2.0});
    x.setRequiresGrad(true);
    EXPECT_DOUBLE_EQ(p.call("second", {x}).tensor().item<double>(), 12);
  }
  EXPECT_THROW(gradient("missing", 1), RuntimeError);
}

// What is written and shared is what the schema says.
TEST_F(ExtensionTest, AutocastFollowsTheTraits) {
  const Program p = compile(R"(
def f(x):
    with torch.autocast("cpu"):
        y = torch.ops.trial.product(x, x)
        z = torch.ops.trial.range(y)
    return y, z, torch.ops.trial.product(x, x)
)");
  const IValue results = p.call("f", {Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2})});
  EXPECT_EQ(results.elements()[0].toTensor().dtype(), DType::BFloat16);
  EXPECT_EQ(results.elements()[1].toTensor().dtype(), DType::Float);
  EXPECT_EQ(results.elements()[2].toTensor().dtype(), DType::Float);
}

TEST_F(ExtensionTest, SchemasTellWhatAliases) {
  const Program p = compile(R"(
def f(x: Tensor) -> Tensor:
    y = x + 0
    row = torch.ops.trial.first_row(y)
    before = row.sum()
    torch.ops.trial.add_one_(y)
    return row.sum() - before
def calls() -> int:
    torch.ops.trial.calls()
    a = torch.ops.trial.calls()
    b = torch.ops.trial.calls()
    return b - a
)");
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(p.call("f", {Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2})}).tensor().item<float>(), 2);
    EXPECT_EQ(p.call("calls", {}).toInt(), 1);
  }
}

TEST_F(ExtensionTest, ObjectsInPrograms) {
  const Program p = compile(R"(
def f(n: int) -> int:
    bag = torch.classes.trial.Bag([1, 2])
    for i in range(n):
        bag.push(i, times=2)
    bag.push(100)
    both = bag.joined(bag.twice())
    return both.size() * 1000 + torch.ops.trial.bag_sum(bag)
def g(bag: torch.classes.trial.Bag) -> int:
    bag.push(5)
    return bag.size()
def h() -> int:
    return g(torch.ops.trial.bag_of([1, 2, 3]))
)");
  for (int call = 0; call < 3; ++call) {
    EXPECT_EQ(p.call("f", {3}).toInt(), 27 * 1000 + 3 + 6 + 100);
    EXPECT_EQ(p.call("h", {}).toInt(), 4);
  }
  EXPECT_THROW(p.call("g", {1}), Error);
}

TEST_F(ExtensionTest, ArchivesHoldThem) {
  const Program p = compile(R"(
def make() -> torch.classes.trial.Bag:
    return torch.classes.trial.Bag([7, 8])
)");
  const IValue bag = p.call("make", {});
  Module module = [&] {
    ModuleBuilder b("Net");
    b.registerAttribute("bag", bag.toObject().type(), bag);
    b.define(R"(
def forward(self, x: Tensor) -> Tensor:
    bag = torch.classes.trial.Bag([3])
    bag.push(4)
    return torch.ops.trial.cube(x) * bag.size() + torch.ops.trial.bag_sum(self.bag)
)");
    return b.build();
  }();
  const std::string bytes = module.saveToString();
  const Module copy = loadFromMemory(std::as_bytes(std::span(bytes)));
  const Tensor x = Tensor::from({1.f, 2.f});
  const std::vector<float> expected = {17, 31};
  EXPECT_EQ(numbers(module({x})), expected);
  EXPECT_EQ(numbers(copy({x})), expected);
  EXPECT_EQ(copy.saveToString(), bytes);
}

TEST_F(ExtensionTest, ErrorsNameTheOperator) {
  const Program p = compile(R"(
def fails(x: Tensor) -> Tensor:
    return torch.ops.trial.fails(x)
def lies(x: Tensor) -> Tensor:
    return torch.ops.trial.lies(x)
def lying_rule(x: Tensor) -> Tensor:
    return torch.ops.trial.lying_rule(x)
)");
  const auto error = [&](const char* function) -> std::string {
    try {
      p.call(function, {Tensor::from({1.f, 2.f})});
    } catch (const RuntimeError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("fails"), HasSubstr("trial::fails: only 3 rows"));
  EXPECT_THAT(error("lies"), HasSubstr("trial::lies: the result is float32[], but it was "
                                       "registered as like 'self', which is float32[2]"));
  EXPECT_THAT(error("lying_rule"), HasSubstr("trial::lying_rule: its shape rule said"));
  for (const char* source : {"def f(x: Tensor):\n    return torch.ops.trial.cubes(x)\n",
                             "def f():\n    return torch.classes.trial.Bags()\n"}) {
    EXPECT_THROW(compile(source), CompileError) << source;
  }
  try {
    compile("def f(x: Tensor):\n    return torch.ops.trial.cubes(x)\n");
  } catch (const CompileError& e) {
    EXPECT_THAT(e.what(), HasSubstr("module 'torch.ops.trial' has no attribute 'cubes'"));
    EXPECT_THAT(e.what(), HasSubstr("cube"));
  }
}

TEST_F(ExtensionTest, WrongDefinitionsAreRefusedAndNothingIsAdded) {
  struct Case {
    const char* schema;
    OperatorTraits traits;
    const char* message;
  };
  const Case cases[] = {
      {"f(Tensr self) -> Tensor", {}, "cannot be read"},
      {"f(Tensor self", {}, "cannot be read"},
      {"f(Tensor self, int n) -> Tensor", {}, "its function has 1 arguments, the schema 2"},
      {"f(int self) -> Tensor",
       {},
       "argument 0 'self' is declared as int, but the function has Tensor"},
      {"f(Tensor self) -> int", {}, "result 0 is declared as int, but the function has Tensor"},
      {"f(Tensor self, ...) -> Tensor", {}, "number of arguments"},
      {"f(Tensor self) -> Tensor", {.result_like = "other"}, "'other' must be an argument"},
      {"f(Tensor self) -> Tensor",
       {.result_like = "self",
        .shape = [](std::span<const KnownArgument>) { return std::vector<TypePtr>(); }},
       "result_like and shape exclude each other"},
      {"1f(Tensor self) -> Tensor", {}, "a name that is an identifier"},
      {"f(Tensor self) -> Tensor", {.derivative = "other: grad"}, "expected a line"},
      {"f(Tensor self) -> Tensor", {.derivative = "self: grad +"}, "derivative of"},
      {"f(Tensor self) -> Tensor", {.derivative = "self: grad * nonsense"}, "nonsense"},
      {"f(Tensor self) -> Tensor",
       {.derivative = "self: grad\nresults 1"},
       "results: there is no result 1; broken::f has 1"},
      {"f(Tensor self) -> Tensor",
       {.derivative = "self: torch.ops.broken.g(grad"},
       "derivative of"},
  };
  for (const Case& c : cases) {
    Extension e("broken");
    e.op("good(Tensor self) -> Tensor", &cubed);
    e.op(c.schema, &cubed, c.traits);
    e.object<double>("Kept").init<double>();
    EXPECT_THAT(refusalOf(e), HasSubstr(c.message)) << c.schema;
    EXPECT_FALSE(isKnown("broken::good")) << c.schema;
    EXPECT_FALSE(isKnown("broken::f")) << c.schema;
    EXPECT_THROW(compile("def f():\n    return torch.classes.broken.Kept(1.0)\n"), CompileError);
  }
  const auto classes = [](auto make) {
    Extension e("broken");
    make(e);
    return refusalOf(e);
  };
  EXPECT_THAT(classes([](Extension& e) { e.object<Cup>("a-b").init<double>(); }),
              HasSubstr("'a-b' cannot be the name of a class"));
  EXPECT_THAT(classes([](Extension& e) {
                e.object<Cup>("Kept").def("2x", [](const Cup& c) { return 2 * c.size; });
              }),
              HasSubstr("'2x' cannot be the name of a method of Kept"));
  EXPECT_THAT(classes([](Extension& e) {
                e.object<Cup>("Kept")
                    .def("twice", [](const Cup& c) { return 2 * c.size; })
                    .def("twice(int n) -> float",
                         [](const Cup& c, int64_t n) { return c.size * static_cast<double>(n); });
              }),
              HasSubstr("Kept has two methods twice"));
  EXPECT_THAT(classes([](Extension& e) {
                e.objectOf("Kept", {{"push", [](std::span<const IValue>, std::span<IValue>) {}}},
                           nullptr, nullptr);
              }),
              HasSubstr("Kept.push: expected a schema, such as \"push(int x) -> int\""));
  struct Unknown {
    int number = 0;
  };
  EXPECT_THAT(classes([](Extension& e) {
                e.op("f(int n) -> int", [](const Unknown& u) { return int64_t{u.number}; });
              }),
              HasSubstr("Unknown is no class of an extension"));
  EXPECT_THAT(
      classes([](Extension& e) { e.opOf("f(Tensor self) -> Tensor", ExtensionFunction()); }),
      HasSubstr("f(Tensor self) -> Tensor: it has no function"));
  EXPECT_THROW(Extension("aten"), UsageError);
  EXPECT_THROW(Extension("prim"), UsageError);
  EXPECT_THROW(Extension("a-b"), UsageError);
  EXPECT_THROW(Extension(""), UsageError);
}

TEST_F(ExtensionTest, ClashingNamesAreRefused) {
  Extension again("trial");
  again.op("cube(Tensor self) -> Tensor", &cubed);
  EXPECT_THAT(refusalOf(again), HasSubstr("there is already an operator trial::cube"));
  Extension overload("trial");
  overload.op("cube.other(Tensor self, int n) -> Tensor",
              [](const Tensor& x, int64_t) { return cubed(x); });
  EXPECT_THAT(refusalOf(overload), HasSubstr("there is already an operator trial::cube"));
  Extension twice("twice");
  twice.op("f(Tensor self) -> Tensor", &cubed).op("f(Tensor self) -> Tensor", &cubed);
  EXPECT_THAT(refusalOf(twice), HasSubstr("twice::f is defined twice"));
  Extension engine("quantized");
  engine.op("linear(Tensor self) -> Tensor", &cubed);
  EXPECT_THAT(refusalOf(engine), HasSubstr("there is already an operator quantized::linear"));
  Extension type("trial2");
  type.object<Bag>("Bag").init<std::vector<int64_t>>();
  EXPECT_THAT(refusalOf(type), HasSubstr("its C++ type is already the class"));
  Extension name("trial");
  name.object<float>("Bag").init<double>();
  EXPECT_THAT(refusalOf(name), HasSubstr("there is already a native class"));
}

// Hostile states of objects in files reach set_state as values.
TEST_F(ExtensionTest, StatesAreChecked) {
  const Program p = compile(
      "def make() -> torch.classes.trial.Unsaved:\n    return torch.classes.trial.Unsaved('x')\n");
  ModuleBuilder b("Net");
  const IValue object = p.call("make", {});
  b.registerAttribute("o", object.toObject().type(), object);
  b.define("def forward(self, x: Tensor) -> Tensor:\n    return x\n");
  Module module = b.build();
  EXPECT_THROW(module.saveToString(), RuntimeError);
}

TEST_F(ExtensionTest, ManyThreadsCallThem) {
  const Program p =
      compile("def f(x: Tensor) -> Tensor:\n    return torch.ops.trial.cube(x) + 1\n");
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (p.call("f", {Tensor::from({2.f})}).tensor().item<float>() != 9) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// What the headers of operators call.
TEST(TypedOperators, MistakesOfTheCallerAreTold) {
  const auto error = [](auto f) -> std::string {
    try {
      f();
    } catch (const UsageError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error([] { ops::exp(Tensor()); }),
              HasSubstr("aten::exp: expected a Tensor for 'self', got an undefined one"));
  EXPECT_THAT(error([] { TypedOperator("aten::nothing", "other"); }),
              HasSubstr("there is no operator aten::nothing.other: the headers are of another "
                        "version"));
}

// ---- C ----

wick_status add_ten(void*, wick_value* const* arguments, size_t, wick_value** results) {
  int64_t n = 0;
  if (wick_status s = wick_value_to_int(arguments[0], &n)) return s;
  if (n < 0) return wick_fail("negative");
  if (n == 99) return WICK_ERROR_USAGE;
  if (n == 98) return WICK_OK;
  if (n == 97) return wick_fail(nullptr);
  return wick_value_from_int(n + 10, &results[0]);
}

TEST(ExtensionInC, OperatorsAndTheirErrors) {
  const wick_operator operators[] = {
      {sizeof(wick_operator), "add_ten(int n) -> int", add_ten, nullptr, nullptr, nullptr, 0, 0}};
  wick_extension e = {sizeof(wick_extension), "c_trial", operators, 1, nullptr, 0};
  ASSERT_EQ(wick_extension_add(&e), WICK_OK) << wick_last_error()->message;
  EXPECT_EQ(wick_extension_add(&e), WICK_ERROR_USAGE);
  EXPECT_THAT(wick_last_error()->message, HasSubstr("already an operator c_trial::add_ten"));
  const Program p = compile("def f(n: int) -> int:\n    return torch.ops.c_trial.add_ten(n)\n");
  // An operator that does its work leaves the thread's last error as it is.
  const wick_error* last = wick_last_error();
  EXPECT_EQ(p.call("f", {1}).toInt(), 11);
  EXPECT_EQ(last->status, WICK_ERROR_USAGE);
  EXPECT_THAT(last->message, HasSubstr("already an operator c_trial::add_ten"));
  const auto error = [&](int64_t n) -> std::string {
    try {
      p.call("f", {n});
    } catch (const RuntimeError& raised) {
      return raised.what();
    }
    return "no error";
  };
  EXPECT_THAT(error(-1), HasSubstr("negative"));
  EXPECT_THAT(error(99), HasSubstr("failed with status 1 and gave no reason"));
  EXPECT_THAT(error(98), HasSubstr("stored no result 0"));
  EXPECT_THAT(error(97), HasSubstr("an error without a message"));
  e.struct_size = 3;
  EXPECT_EQ(wick_extension_add(&e), WICK_ERROR_USAGE);
  e.struct_size = sizeof(e);
  e.name_space = "aten";
  EXPECT_EQ(wick_extension_add(&e), WICK_ERROR_USAGE);
}

// Handles that would be freed twice are found, whether the function succeeds or fails.
wick_status misused(void*, wick_value* const* arguments, size_t, wick_value** results) {
  int64_t n = 0;
  if (wick_status s = wick_value_to_int(arguments[0], &n)) return s;
  if (wick_status s = wick_value_from_int(n, &results[0])) return s;
  if (n == 1 || n == 3) {
    wick_value_free(results[0]);
    results[0] = arguments[0];
  } else if (n == 2 || n == 4) {
    results[1] = results[0];
  }
  if (n > 2) return wick_fail("failed as well");
  return results[1] ? WICK_OK : wick_value_from_int(n, &results[1]);
}

TEST(ExtensionInC, HandlesThatAreNotNewAreRefused) {
  const wick_operator operators[] = {{sizeof(wick_operator), "misused(int n) -> (int, int)",
                                      misused, nullptr, nullptr, nullptr, 0, 0}};
  const wick_extension e = {sizeof(wick_extension), "c_misused", operators, 1, nullptr, 0};
  ASSERT_EQ(wick_extension_add(&e), WICK_OK) << wick_last_error()->message;
  const Program p =
      compile("def f(n: int) -> Tuple[int, int]:\n    return torch.ops.c_misused.misused(n)\n");
  EXPECT_EQ(p.call("f", {0})[1].toInt(), 0);
  for (int64_t n = 1; n <= 4; ++n) {
    try {
      p.call("f", {n});
      FAIL() << n;
    } catch (const RuntimeError& raised) {
      EXPECT_THAT(raised.what(), HasSubstr(n <= 2 ? "wick_value_copy makes another" : "as well"));
    }
  }
}

int freed_cells = 0;

wick_status make_cell(void*, wick_value* const* arguments, size_t, wick_value**) {
  auto held = std::make_unique<int>(7);
  const wick_status status = wick_object_hold(arguments[0], held.get());
  if (status == WICK_OK) held.release();
  return status;
}

TEST(ExtensionInC, WhatIsNotHeldStaysTheCallers) {
  const wick_method methods[] = {{sizeof(wick_method), "__init__() -> ()", make_cell, nullptr}};
  wick_class cell = {};
  cell.struct_size = sizeof(wick_class);
  cell.name = "Cell";
  cell.methods = methods;
  cell.num_methods = 1;
  cell.free_held = [](void*, void* held) {
    ++freed_cells;
    delete static_cast<int*>(held);
  };
  const wick_extension e = {sizeof(wick_extension), "c_cells", nullptr, 0, &cell, 1};
  ASSERT_EQ(wick_extension_add(&e), WICK_OK) << wick_last_error()->message;
  const Program p = compile(R"(
def made():
    return torch.classes.c_cells.Cell()
def again():
    cell = torch.classes.c_cells.Cell()
    cell.__init__()
    return cell
)");
  p.call("made", {});
  EXPECT_EQ(freed_cells, 1);
  // Others may use what an object holds at the time.
  try {
    p.call("again", {});
    FAIL() << "accepted";
  } catch (const RuntimeError& raised) {
    EXPECT_THAT(raised.what(), HasSubstr("the object has been made already"));
  }
  EXPECT_EQ(freed_cells, 2);
  int held = 1;
  wick_value* object = nullptr;
  EXPECT_EQ(wick_object_new("c_cells.Nothing", &held, &object), WICK_ERROR_USAGE);
  EXPECT_EQ(freed_cells, 2);
}

// What a function called fails with the class of error that it failed with itself.
wick_status limited(void* data, wick_value* const* arguments, size_t, wick_value** results) {
  static wick_interrupt* const interrupted = [] {
    wick_interrupt* made = nullptr;
    wick_interrupt_new(&made);
    wick_interrupt_set(made);
    return made;
  }();
  int64_t which = 0;
  if (wick_status s = wick_value_to_int(arguments[0], &which)) return s;
  if (which == 4) {
    void* held = nullptr;
    return wick_object_held(arguments[0], "c_limits.Box", &held);
  }
  wick_limits limits = WICK_LIMITS_NONE;
  if (which == 0) limits.seconds = 0.01;
  if (which == 1) limits.memory = size_t{8} << 20;
  if (which == 2) limits.interrupt = interrupted;
  return wick_program_call(*static_cast<wick_program**>(data), which == 1 ? "hoard" : "endless",
                           nullptr, 0, nullptr, &limits, &results[0]);
}

TEST(ExtensionInC, ErrorsKeepTheirClass) {
  static wick_program* inner = nullptr;
  ASSERT_EQ(wick_compile("def endless() -> int:\n    n = 0\n    while True:\n        n += 1\n"
                         "    return n\n"
                         "def hoard() -> int:\n    all: List[str] = []\n    while True:\n"
                         "        all.append(\"x\" * 1000)\n    return len(all)\n",
                         "inner.py", nullptr, &inner),
            WICK_OK);
  const wick_operator operators[] = {{sizeof(wick_operator), "limited(int which) -> int", limited,
                                      &inner, nullptr, nullptr, 0, 1}};
  wick_extension e = {sizeof(wick_extension), "c_limits", operators, 1, nullptr, 0};
  ASSERT_EQ(wick_extension_add(&e), WICK_OK) << wick_last_error()->message;
  const Program p = compile("def f(n: int) -> int:\n    return torch.ops.c_limits.limited(n)\n");
  const auto error = [&](int64_t which) -> std::string {
    try {
      p.call("f", {which});
    } catch (const RuntimeError& raised) {
      return raised.className() + ": " + std::string(raised.brief());
    }
    return "no error";
  };
  EXPECT_THAT(error(0), testing::StartsWith("TimeoutError: "));
  EXPECT_THAT(error(1), testing::StartsWith("MemoryError: "));
  EXPECT_THAT(error(2), testing::StartsWith("KeyboardInterrupt: "));
  EXPECT_THAT(error(4),
              HasSubstr("expected an object of __torch__.torch.classes.c_limits.Box, got int"));
}

TEST(PluginTest, FilesThatAreNoPlugins) {
  const auto error = [](const std::string& path) -> std::string {
    try {
      loadPlugin(path);
    } catch (const LoadError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_THAT(error("/nowhere/x.so"), HasSubstr("/nowhere/x.so: the plugin cannot be opened"));
  const std::string text = testing::TempDir() + "/text.so";
  std::ofstream(text) << "no library";
  EXPECT_THAT(error(text), HasSubstr("the plugin cannot be loaded"));
  EXPECT_EQ(wick_plugin_load(text.c_str()), WICK_ERROR_LOAD);
  EXPECT_EQ(wick_plugin_load(nullptr), WICK_ERROR_USAGE);
}

}  // namespace
}  // namespace wick::extension_test

// wick::trace(): what is recorded from C++, and that nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "ir/function.h"
#include "ir/verifier.h"
#include "tests/error_text.h"
#include "tracing/tracer.h"
#include "wick.h"
#include "wick_ops.h"

namespace wick::trace_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;

Tensor row(std::initializer_list<float> numbers) {
  return Tensor::from(std::vector<float>(numbers));
}

std::vector<float> numbersOf(const IValue& value) {
  const Tensor t = value.tensor().contiguous();
  return {t.data<float>(), t.data<float>() + t.numel()};
}

std::vector<std::string> kindsOf(const Program& program, const std::string& name = "traced") {
  const Graph& graph = *program.function(name).graph();
  verify(graph);
  std::vector<std::string> kinds;
  for (const Node* node : graph.nodes()) {
    if (node->kind() != prim::Constant) kinds.emplace_back(node->kind().qualString());
  }
  return kinds;
}

TEST(Trace, RecordsOperators) {
  const Program program = trace(
      [](const std::vector<IValue>& in) {
        return IValue(ops::relu(ops::add(in[0].tensor(), in[1].tensor(), 2)));
      },
      {row({1, -5}), row({1, 1})}, {"f", {"x", "y"}});
  EXPECT_EQ(kindsOf(program, "f"), (std::vector<std::string>{"aten::add", "aten::relu"}));
  EXPECT_EQ(numbersOf(program.call("f", {row({-9, 3}), row({1, 2})}, {})),
            (std::vector<float>{0, 7}));
  EXPECT_EQ(numbersOf(program.call("f", {}, {{"y", row({4})}, {"x", row({1})}})),
            (std::vector<float>{9}));
}

TEST(Trace, TakesAndGivesContainers) {
  const Program program = trace(
      [](const std::vector<IValue>& in) {
        const Tensor a = in[0][0].tensor(), b = in[0][1]["k"].tensor();
        return IValue(std::make_tuple(ops::mul(a, b), std::vector<Tensor>{a, b}));
      },
      {IValue(std::make_tuple(row({2}), std::map<std::string, Tensor>{{"k", row({3})}}))});
  const IValue result = program.call(
      "traced",
      {IValue(std::make_tuple(row({5}), std::map<std::string, Tensor>{{"k", row({7})}}))});
  EXPECT_EQ(numbersOf(result[0]), (std::vector<float>{35}));
  EXPECT_EQ(numbersOf(result[1][1]), (std::vector<float>{7}));
}

TEST(Trace, FollowsWritesThroughViews) {
  const Program program = trace(
      [](const std::vector<IValue>& in) {
        Tensor x = ops::clone(in[0].tensor());
        ops::add_(ops::select(x, 0, 1), 10);
        return IValue(ops::mul(x, 2));
      },
      {row({1, 2})});
  EXPECT_EQ(numbersOf(program.call("traced", {row({3, 4})})), (std::vector<float>{6, 28}));
}

TEST(Trace, KeepsCompiledFunctionsAsCalls) {
  Program program = [] {
    const Program inner = compile(
        "def f(x: Tensor, n: int) -> List[Tensor]:\n"
        "    if bool(x.sum() > 0):\n"
        "        return [x * n]\n"
        "    return [x - n]\n");
    return trace(
        [&](const std::vector<IValue>& in) {
          return IValue(ops::neg(inner.call("f", {in[0], 3})[0].tensor()));
        },
        {row({1})});
  }();  // the inner program is the traced one's now
  EXPECT_EQ(kindsOf(program),
            (std::vector<std::string>{"prim::CallFunction", "prim::ListUnpack", "aten::neg"}));
  EXPECT_EQ(numbersOf(program.call("traced", {row({2})})), (std::vector<float>{-6}));
  EXPECT_EQ(numbersOf(program.call("traced", {row({-2})})), (std::vector<float>{5}));
}

TEST(Trace, OtherTensorsAreConstants) {
  const Tensor weight = row({2, 4});
  const auto code = [&](const std::vector<IValue>& in) {
    return IValue(ops::mul(in[0].tensor(), weight));
  };
  const Program program = trace(code, {row({1, 1})});
  EXPECT_EQ(numbersOf(program.call("traced", {row({3, 3})})), (std::vector<float>{6, 12}));
  weight.setRequiresGrad(true);
  EXPECT_THAT(errorOf([&] {
                trace(code, {row({1, 1})});
              }),
              HasSubstr("Cannot insert a Tensor that requires grad as a constant"));
}

TEST(Trace, SameTensorAsTwoInputs) {
  const Tensor x = row({1});
  const Program program = trace(
      [](const std::vector<IValue>& in) {
        return IValue(ops::sub(in[0].tensor(), in[1].tensor()));
      },
      {x, x});
  EXPECT_EQ(numbersOf(program.call("traced", {row({5}), row({3})})), (std::vector<float>{2}));
}

TEST(Trace, ModulesBecomeAttributes) {
  Module inner =
      ModuleBuilder("Inner")
          .registerParameter("weight", row({3}))
          .define("def forward(self, x: Tensor) -> Tensor:\n    return x * self.weight\n")
          .build();
  Module outer = ModuleBuilder("Outer")
                     .registerModule("inner", inner)
                     .registerBuffer("shift", row({1}))
                     .build();
  tracing::Tracer tracer;
  tracer.addModule(outer.object());
  const IValue x = tracer.addInput("x", row({2}));
  std::shared_ptr<Graph> graph;
  {
    const tracing::TraceScope scope(tracer);
    const Tensor y = inner.forward({x}).tensor();
    graph = tracer.finish(
        IValue(ops::add(ops::mul(y, inner.attr("weight").tensor()), outer.attr("shift").tensor())));
  }
  verify(*graph);
  EXPECT_THAT(graph->str(), HasSubstr("prim::CallMethod[name=\"forward\"]"));
  EXPECT_THAT(graph->str(), HasSubstr("prim::GetAttr[name=\"shift\"](%self"));
  const Module stranger =
      ModuleBuilder("Other")
          .registerParameter("w", row({3}))
          .define("def forward(self, x: Tensor) -> Tensor:\n    return x * self.w\n")
          .build();
  EXPECT_THAT(errorOf([&] {
                trace([&](const std::vector<IValue>& in) { return stranger.forward({in[0]}); },
                      {row({1})});
              }),
              HasSubstr("is not part of the active trace"));
}

TEST(Trace, LibraryFunctionsAndGradientsStayBelow) {
  // What a kernel calls, and what gradients need, is not recorded.
  const Tensor x = row({1, 2});
  x.setRequiresGrad(true);
  const Program program = trace(
      [](const std::vector<IValue>& in) {
        return IValue(ops::soft_margin_loss(in[0].tensor(), row({1, -1}), 1));
      },
      {x});
  EXPECT_EQ(kindsOf(program), (std::vector<std::string>{"aten::soft_margin_loss"}));
}

TEST(Trace, RefusesWhatItCannotRecord) {
  const auto same = [](const std::vector<IValue>& in) { return in[0]; };
  EXPECT_THAT(errorOf([&] { trace(same, {IValue(3)}); }), HasSubstr("Type 'int' cannot be traced"));
  EXPECT_THAT(errorOf([&] { trace([](auto&) { return IValue(2.5); }, {row({1})}); }),
              HasSubstr("Only tensors, lists, tuples of tensors"));
  EXPECT_THAT(errorOf([&] { trace([](auto&) { return IValue(row({1})); }, {row({1})}); }),
              HasSubstr("did not have observable data dependence"));
  EXPECT_THAT(
      errorOf([&] {
        trace([&](const std::vector<IValue>& in) { return trace(same, in).call("traced", in); },
              {row({1})});
      }),
      HasSubstr("Tracing can't be nested"));
}

TEST(Trace, EndsWithErrors) {
  EXPECT_THROW(trace(
                   [](const std::vector<IValue>& in) -> IValue {
                     ops::relu(in[0].tensor());
                     throw std::logic_error("mine");
                   },
                   {row({1})}),
               std::logic_error);
  EXPECT_EQ(tracing::Tracer::active(), nullptr);
  EXPECT_EQ(threadContext().active_layers, 0);
  // An operator that fails is not recorded.
  const Program program = trace(
      [](const std::vector<IValue>& in) {
        try {
          ops::add(in[0].tensor(), row({1, 2, 3}));
        } catch (const RuntimeError&) {
        }
        return IValue(ops::neg(in[0].tensor()));
      },
      {row({1, 2})});
  EXPECT_EQ(kindsOf(program), (std::vector<std::string>{"aten::neg"}));
}

TEST(Trace, FollowsNumbersThatAreStashed) {
  tracing::Tracer tracer;
  const Tensor x = tracer.addInput("x", row({1, 2, 3})).tensor();
  std::shared_ptr<Graph> graph;
  {
    const tracing::TraceScope scope(tracer);
    const int64_t n = ops::size(x, 0);
    Value* const size = tracer.result(0);
    ASSERT_NE(size, nullptr);
    tracer.stash({nullptr, size});
    graph = tracer.finish(IValue(ops::mul(x, n)));
  }
  GraphFunction function("f", graph);
  EXPECT_EQ(numbersOf(callFunction(function, {row({1, 1, 1, 1})})),
            (std::vector<float>{4, 4, 4, 4}));
}

TEST(Trace, StandsAlone) {
  // Other threads are not recorded, nor are calls after the trace.
  const Program program = trace(
      [](const std::vector<IValue>& in) {
        std::thread([] { ops::neg(row({1})); }).join();
        return IValue(ops::relu(in[0].tensor()));
      },
      {row({1})});
  EXPECT_EQ(kindsOf(program), (std::vector<std::string>{"aten::relu"}));
}

}  // namespace
}  // namespace wick::trace_test

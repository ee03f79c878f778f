// Rows that threads share: the same numbers whatever the number of threads, and what the operators
// compute.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "ir/parser.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/fusion/launch.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"
#include "tests/codegen/random_programs.h"

namespace wick::long_rows_test {
namespace {

constexpr const char* kHead = R"(graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=True]()
  %false : bool = prim::Constant[value=False]()
  %half : float = prim::Constant[value=0.5]()
  %m1 : int = prim::Constant[value=-1]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=4]()
  %last : int[] = prim::ListConstruct(%m1)
  %first : int[] = prim::ListConstruct(%0)
  %all : int[] = prim::ListConstruct()
  %t : Tensor = aten::tanh(%x)
)";

struct Shape {
  DimVector sizes;
  bool transposed = false;
  int64_t step = 1;  // every so many elements of the last dimension
};

class LongRowsTest : public testing::Test {
 protected:
  void SetUp() override {
    setJitMode(JitMode::Sync);
    threads_ = omp_get_max_threads();
  }
  void TearDown() override { omp_set_num_threads(threads_); }

  // Runs the body with several numbers of threads, as kernels whose rows are cut.
  void check(const std::string& body, const Shape& shape, double tolerance) {
    const std::string text = fmt::format("{}  {}\n  return (%r)\n", kHead, body);
    auto grouped = parseGraph(text);
    FusionOptions options;
    options.kind_of = kernelKindOf;
    options.min_computing_nodes = 1;
    formFusionGroups(*grouped, options);
    auto code = Code::build(grouped, "forward");
    const IValue x(input(shape));
    const Tensor expected = runCode(*Code::build(parseGraph(text), "forward"), {x}).toTensor();
    Tensor first;
    for (int threads : {1, 2, 3, 7}) {
      omp_set_num_threads(threads);
      const FusionStatistics before = fusionStatistics();
      const Tensor got = runCode(*code, {x}).toTensor().contiguous();
      EXPECT_EQ(fusionStatistics().launches, before.launches + 1) << body;
      if (!first.defined()) {
        EXPECT_GE(fusionStatistics().kernels, before.kernels + 2) << body;  // stages of one
        first = got;
        expectClose(got, expected, tolerance, body);
      }
      EXPECT_EQ(std::memcmp(got.rawData(), first.rawData(),
                            static_cast<size_t>(got.numel()) * itemSize(got.dtype())),
                0)
          << body << " with " << threads << " threads";
    }
  }

 private:
  static Tensor input(const Shape& shape) {
    DimVector sizes = shape.sizes;
    sizes.back() *= shape.step;
    Tensor t = Tensor::empty(sizes, DType::Float);
    Random random(7);
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data<float>()[i] = static_cast<float>(random.number() * 4 - 1);
    }
    if (shape.step > 1) t = t.slice(-1, 0, sizes.back(), shape.step);
    return shape.transposed ? t.transpose(0, 1) : t;
  }
  static void expectClose(const Tensor& got, const Tensor& expected, double tolerance,
                          const std::string& body) {
    ASSERT_EQ(got.describe(), expected.describe()) << body;
    const Tensor a = got, b = expected.contiguous();
    dispatchAll(a.dtype(), [&]<class T>() {
      if constexpr (!kIsComplex<T>) {
        for (int64_t i = 0; i < a.numel(); ++i) {
          const auto u = static_cast<double>(a.data<T>()[i]),
                     v = static_cast<double>(b.data<T>()[i]);
          ASSERT_LE(std::fabs(u - v), tolerance * (1 + std::fabs(v))) << body << " element " << i;
        }
      }
    });
  }

  int threads_ = 1;
};

TEST_F(LongRowsTest, OneNumber) {
  for (const char* body :
       {"%r : Tensor = aten::sum(%t, %none)", "%r : Tensor = aten::mean(%t, %none)",
        "%r : Tensor = aten::var(%t, %true)", "%r : Tensor = aten::amax(%t, %all, %false)",
        "%r : Tensor = aten::argmin(%t, %none, %false)",
        "%r : Tensor = aten::logsumexp(%t, %first, %false)",
        "%b : Tensor = aten::gt(%t, %half)\n  %r : Tensor = aten::all(%b)",
        "%b : Tensor = aten::gt(%t, %half)\n  %r : Tensor = aten::sum(%b, %none)",
        "%a : Tensor = aten::abs(%x)\n"
        "  %i : Tensor = aten::to(%a, %4, %false, %false, %none)\n"
        "  %g : Tensor = aten::index_select(%t, %0, %i)\n"
        "  %r : Tensor = aten::mean(%g, %none)"}) {
    for (int64_t n : {200000, 1000003}) check(body, {{n}}, 2e-6);
  }
}

// What the rows are made of is stored too, after what it is computed from.
TEST_F(LongRowsTest, AllOfARow) {
  for (const char* body : {"%r : Tensor = aten::softmax(%t, %m1, %none)",
                           "%r : Tensor = aten::log_softmax(%x, %m1, %none)",
                           "%s : Tensor = aten::sum(%t, %last, %true, %none)\n"
                           "  %r : Tensor = aten::div(%t, %s)"}) {
    check(body, {{300001}}, 1e-5);
    check(body, {{3, 100000}}, 1e-5);
    check(body, {{2, 3, 40007}}, 1e-5);
  }
}

TEST_F(LongRowsTest, FewRows) {
  for (const char* body : {"%r : Tensor = aten::sum(%t, %last, %false, %none)",
                           "%r : Tensor = aten::std(%t, %last, %true, %true)",
                           "%r : Tensor = aten::argmax(%t, %m1, %true)"}) {
    for (int64_t rows : {2, 9, 15}) {
      check(body, {{rows, 70001}}, 2e-5);
      check(body, {{70001, rows}, true}, 2e-5);  // lanes are neighbouring rows
    }
    check(body, {{5, 3, 70001}, true}, 2e-5);
  }
}

// Rows whose dimensions do not join in memory.
TEST_F(LongRowsTest, PiecesOfRows) {
  for (const char* body :
       {"%r : Tensor = aten::sum(%t, %none)", "%r : Tensor = aten::var(%t, %true)",
        "%r : Tensor = aten::argmax(%t, %none, %false)"}) {
    check(body, {{1000, 300}, false, 2}, 2e-6);
    check(body, {{2, 150000}, false, 2}, 2e-6);
    check(body, {{30, 20, 500}, true, 3}, 2e-6);
  }
}

// Where rows are cut: by sizes, and only few and long ones.
TEST_F(LongRowsTest, Cuts) {
  loop::Kernel kernel;
  kernel.rank = 2;
  kernel.reduced = 2;
  kernel.reductions.push_back({loop::ReduceOp::Sum, {}});
  Walk walk;
  walk.outer = 1;
  const auto partsOf = [&](int64_t rows, int64_t elements) {
    walk.sizes[0] = rows;
    walk.elements = elements;
    const RowCut cut = planCut(kernel, walk);
    EXPECT_EQ(cut.loop, cut.parts > 1 ? RowCut::kElements : 0);
    EXPECT_TRUE(cut.parts == 1 || (cut.parts - 1) * cut.size < elements);
    EXPECT_TRUE(cut.parts == 1 || cut.parts * cut.size >= elements);
    return cut.parts;
  };
  EXPECT_EQ(partsOf(1, 1000), 1);
  EXPECT_EQ(partsOf(1, 100000), 1);
  EXPECT_GT(partsOf(1, 1 << 20), 32);
  EXPECT_LE(partsOf(1, int64_t{1} << 40), 128);
  EXPECT_GT(partsOf(15, 1 << 20), 8);
  EXPECT_EQ(partsOf(16, 1 << 20), 1);
  EXPECT_EQ(partsOf(0, 1 << 20), 1);
}

}  // namespace
}  // namespace wick::long_rows_test

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "core/error.h"
#include "core/ivalue.h"

namespace wick::value_test {
namespace {

TEST(ValueTest, copiesShare) {
  IValue a(makeList(types::Int(), {IValue(1)}));
  IValue b = a;
  b.toList().elements.push_back(2);
  EXPECT_EQ(a.toList().elements.size(), 2u);
  EXPECT_TRUE(a.isSame(b));
}

TEST(ValueTest, wrongTagsAreErrors) {
  EXPECT_THROW(IValue("x").toInt(), RuntimeError);
  EXPECT_THROW(IValue(1.5).numberToInt(), RuntimeError);
  EXPECT_THROW(IValue(std::complex<double>(1, 2)).numberToDouble(), RuntimeError);
  EXPECT_EQ(IValue(true).numberToDouble(), 1.0);
  try {
    IValue("x").toInt();
  } catch (const RuntimeError& e) {
    EXPECT_EQ(e.brief(), "expected int, got str");
  }
}

TEST(ValueTest, equalsAsPython) {
  EXPECT_TRUE(IValue(1).equals(1.0));
  EXPECT_TRUE(IValue(1).equals(true));
  EXPECT_TRUE(IValue(std::complex<double>(1, 0)).equals(1));
  EXPECT_FALSE(IValue(NAN).equals(NAN));
  EXPECT_FALSE(IValue(int64_t{1} << 53 | 1).equals(0x1p53));
  EXPECT_FALSE(IValue(INT64_MAX).equals(0x1p63));
  EXPECT_FALSE(IValue("1").equals(1));
  IValue list(makeList(types::Int(), {IValue(1), IValue(2)}));
  EXPECT_TRUE(list.equals(makeList(types::Float(), {IValue(1.0), IValue(2.0)})));
  EXPECT_FALSE(list.equals(makeTuple({IValue(1), IValue(2)})));
}

TEST(ValueTest, hashesAgreeWithEquality) {
  EXPECT_EQ(IValue(1).hash(), IValue(1.0).hash());
  EXPECT_EQ(IValue(1).hash(), IValue(true).hash());
  EXPECT_EQ(IValue(0.0).hash(), IValue(-0.0).hash());
  EXPECT_EQ(IValue(1).hash(), IValue(std::complex<double>(1, 0)).hash());
  EXPECT_EQ(IValue(makeTuple({IValue(1)})).hash(), IValue(makeTuple({IValue(1.0)})).hash());
  EXPECT_THROW(IValue(makeList(types::Int())).hash(), RuntimeError);
}

TEST(ValueTest, dictKeepsOrder) {
  DictObject d(types::String(), types::Int());
  for (int i = 0; i < 100; ++i) d.set(std::to_string(i), i);
  for (int i = 0; i < 100; i += 3) EXPECT_TRUE(d.erase(std::to_string(i)));
  EXPECT_FALSE(d.erase("0"));
  d.set("1", 1000);
  d.set("new", 7);
  EXPECT_EQ(d.items().front().first.toString(), "1");
  EXPECT_EQ(d.items().front().second.toInt(), 1000);
  EXPECT_EQ(d.popLast()->first.toString(), "new");
  EXPECT_EQ(d.popLast()->first.toString(), "98");
  EXPECT_EQ(d.find("99"), nullptr);
  for (int i = 0; i < 95; ++i) d.erase(std::to_string(i));
  EXPECT_EQ(d.size(), 2u);
  EXPECT_EQ(d.find("97")->toInt(), 97);
}

TEST(ValueTest, dictKeysTensorsByIdentityAndFindsNan) {
  DictObject d(types::Tensor(), types::Int());
  Tensor a = Tensor::scalar(1.0f);
  d.set(a, 1);
  d.set(Tensor::scalar(1.0f), 2);
  EXPECT_EQ(d.size(), 2u);
  EXPECT_EQ(d.find(a)->toInt(), 1);
  DictObject f(types::Float(), types::Int());
  f.set(NAN, 1);
  f.set(NAN, 2);
  EXPECT_EQ(f.size(), 1u);
}

TEST(ValueTest, deepNestingIsReleasedWithoutRecursion) {
  IValue v;
  for (int i = 0; i < 1'000'000; ++i) v = IValue(makeTuple({std::move(v)}));
  v = IValue();
  for (int i = 0; i < 300'000; ++i) v = IValue(makeList(types::Any(), {std::move(v), IValue("x")}));
}

TEST(ValueTest, deepComparisonIsAnError) {
  IValue a;
  IValue b;
  for (int i = 0; i < 100'000; ++i) {
    a = IValue(makeTuple({std::move(a)}));
    b = IValue(makeTuple({std::move(b)}));
  }
  EXPECT_THROW(a.equals(b), RuntimeError);
  EXPECT_THROW(a.hash(), RuntimeError);
}

TEST(ValueTest, undefinedTensorIsNone) {
  EXPECT_TRUE(IValue(Tensor()).isNone());
  EXPECT_FALSE(IValue().toTensor().defined());
  Tensor t = Tensor::scalar(2.0f);
  EXPECT_TRUE(IValue(t).toTensor().isSame(t));
}

TEST(ValueTest, futures) {
  auto f = makeRef<FutureObject>(types::Int());
  int called = 0;
  f->whenDone([&] { ++called; });
  std::thread worker([f] { f->complete(5); });
  EXPECT_EQ(f->wait().toInt(), 5);
  worker.join();
  f->whenDone([&] { ++called; });
  EXPECT_EQ(called, 2);
  EXPECT_THROW(f->complete(6), InternalError);
  auto g = makeRef<FutureObject>(types::Int());
  g->fail(std::make_exception_ptr(RuntimeError("no")));
  EXPECT_THROW(g->wait(), RuntimeError);
}

TEST(ValueTest, objects) {
  auto c = std::make_shared<ClassType>("__torch__.C", false);
  c->addAttribute("x", types::Int());
  Object o(c, nullptr);
  c->addAttribute("y", types::Int());
  o.setAttr("y", 3);
  EXPECT_EQ(o.attr("y").toInt(), 3);
  EXPECT_TRUE(o.attr("x").isNone());
  EXPECT_THROW(o.attr("z"), RuntimeError);
}

// Numbers drawn by torch.Generator with the same seeds.
TEST(GeneratorTest, equalsPyTorch) {
  struct Case {
    uint64_t seed;
    uint64_t words[4];
    float floats[3];
    double doubles[3];
    double normals[3];
  };
  const Case cases[] = {
      {0ull,
       {10123822223749065263ull, 13192915183495924928ull, 11119021634053362427ull,
        10051320526890433895ull},
       {0x1.fc2ab00000000p-2f, 0x1.89545e0000000p-1f, 0x1.6a67500000000p-4f},
       {0x1.f0aac97c4aa2fp-1, 0x1.6a675d821ccc0p-1, 0x1.d6687b744a5f6p-2},
       {0x1.8a7eb8902be3ap+0, -0x1.2c78a087c6feap-2, -0x1.16e2920a70ee5p+1}},
      {42ull,
       {6909045637428952499ull, 17537583593393853710ull, 13502904847239337031ull,
        11043299886329703444ull},
       {0x1.c3b8cc0000000p-1f, 0x1.d47b660000000p-1f, 0x1.880d700000000p-2f},
       {0x1.dc66cbea3db30p-5, 0x1.01ae177aca870p-4, 0x1.fa3563ccea238p-4},
       {0x1.58c55b33d44ccp-2, 0x1.07cd39b3d4b85p-3, 0x1.e02dcdb63ec41p-3}},
      {67280421310721ull,
       {10107323818455293444ull, 17245925084227906572ull, 12090336157661210003ull,
        11966744198439809518ull},
       {0x1.11b5d80000000p-2f, 0x1.bebc080000000p-1f, 0x1.5755f40000000p-2f},
       {0x1.1b5d9137d7810p-3, 0x1.5d57dc4672c0cp-1, 0x1.3015b28ea4b26p-2},
       {0x1.f45bd6ee8909dp-1, 0x1.2827dd26ee005p+0, -0x1.85ca12e788ffdp-2}},
      {9223372036854788153ull,
       {17148390041070939621ull, 5836098993699293313ull, 3392703261234277801ull,
        3773471124928680318ull},
       {0x1.f6a3c40000000p-1f, 0x1.c25bca0000000p-1f, 0x1.fbfa3a0000000p-1f},
       {0x1.b51e2e3e12de5p-1, 0x1.dfd1d21760881p-1, 0x1.54da40a2dada9p-1},
       {0x1.6d586b9643c27p+0, -0x1.debe2a3e3dc34p+0, -0x1.323ad82ee920bp+0}},
      {18446744073709551615ull,
       {1800993050274709794ull, 16830492821160766535ull, 14555132294202195520ull,
        14388526742858301946ull},
       {0x1.fcd3460000000p-1f, 0x1.2482440000000p-1f, 0x1.23d8180000000p-1f},
       {0x1.e69a31c924122p-1, 0x1.1ec0c900cac47p-1, 0x1.e37b486bcfe40p-1},
       {0x1.38426396935a6p+0, -0x1.926936ba5229ap-2, 0x1.05e84054dce78p+0}},
  };
  for (const Case& c : cases) {
    GeneratorObject g(c.seed);
    EXPECT_EQ(g.currentSeed(), c.seed);
    for (uint64_t w : c.words) EXPECT_EQ(g.next64(), w);
    g.seed(c.seed);
    for (float f : c.floats) EXPECT_EQ(g.uniformFloat(), f);
    g.seed(c.seed);
    for (double d : c.doubles) EXPECT_EQ(g.uniformDouble(), d);
    g.seed(c.seed);
    for (double d : c.normals) EXPECT_EQ(g.normal(), d);
    g.seed(c.seed);
    uint32_t bulk[2];
    g.fill32(bulk, 2);
    EXPECT_EQ(uint64_t{bulk[0]} << 32 | bulk[1], c.words[0]);
  }
}

TEST(Values, ObjectsWithoutTypesAreRefused) {
  EXPECT_THROW(makeList(nullptr), UsageError);
  EXPECT_THROW(makeRef<DictObject>(types::Int(), nullptr), UsageError);
  EXPECT_THROW(makeRef<DictObject>(nullptr, types::Int()), UsageError);
  EXPECT_THROW(makeRef<Object>(nullptr, nullptr), UsageError);
  EXPECT_THROW(makeRef<EnumObject>(nullptr, "A", IValue(1)), UsageError);
  EXPECT_THROW(makeRef<FutureObject>(nullptr), UsageError);
}

TEST(Values, AbsentObjectsAreNone) {
  EXPECT_TRUE(IValue::capsule(nullptr).isNone());
  EXPECT_TRUE(IValue(ListRef()).isNone());
  EXPECT_TRUE(IValue(ObjectRef()).isNone());
  EXPECT_TRUE(IValue(Tensor()).isNone());
  EXPECT_THROW(IValue().toList(), RuntimeError);
  EXPECT_THROW(IValue().elements(), RuntimeError);
  EXPECT_THROW(IValue().toObject(), RuntimeError);
  EXPECT_THROW(IValue().toTensor().numel(), UsageError);
}

}  // namespace
}  // namespace wick::value_test

// Values and types that hold each other's parts so often that as trees they would not end.
#include <gtest/gtest.h>

#include "core/conform.h"
#include "core/error.h"
#include "core/ivalue.h"
#include "core/text_limit.h"

namespace wick::shared_values_test {
namespace {

constexpr int kLevels = 60;

// [[..., ...], [..., ...]]: each level holds the one below twice.
IValue sharedLists(int64_t leaf, int levels = kLevels) {
  TypePtr type = types::Int();
  IValue value(makeList(type, {IValue(leaf)}));
  for (int i = 0; i < levels; ++i) {
    type = types::List(type);
    value = IValue(makeList(type, {value, value}));
  }
  return value;
}
IValue sharedTuples(int64_t leaf, int levels = kLevels) {
  IValue value(leaf);
  for (int i = 0; i < levels; ++i) value = IValue(makeTuple({value, value}));
  return value;
}
IValue sharedDicts(int64_t leaf) {
  IValue value(leaf);
  for (int i = 0; i < kLevels; ++i) {
    auto dict = makeRef<DictObject>(types::String(), types::Any());
    dict->set("a", value);
    dict->set("b", value);
    value = IValue(dict);
  }
  return value;
}

TEST(SharedValuesTest, areCompared) {
  EXPECT_TRUE(sharedLists(1).equals(sharedLists(1)));
  EXPECT_FALSE(sharedLists(1).equals(sharedLists(2)));
  EXPECT_TRUE(sharedTuples(1).equals(sharedTuples(1)));
  EXPECT_FALSE(sharedTuples(1).equals(sharedTuples(2)));
  EXPECT_TRUE(sharedDicts(1).equals(sharedDicts(1)));
  EXPECT_FALSE(sharedDicts(1).equals(sharedDicts(2)));
}

TEST(SharedValuesTest, areHashed) {
  EXPECT_EQ(sharedTuples(1).hash(), sharedTuples(1).hash());
  EXPECT_NE(sharedTuples(1).hash(), sharedTuples(2).hash());
  DictObject d(types::Any(), types::Int());
  d.set(sharedTuples(1), 1);
  EXPECT_NE(d.find(sharedTuples(1)), nullptr);
  EXPECT_EQ(d.find(sharedTuples(2)), nullptr);
}

TEST(SharedValuesTest, rememberingKeepsTheHash) {
  // Beyond the number of containers from which on they are remembered.
  std::vector<IValue> many;
  for (int64_t i = 0; i < 2000; ++i) many.push_back(makeTuple({IValue(i % 7)}));
  std::vector<IValue> same;
  IValue sevens[7];
  for (int64_t i = 0; i < 7; ++i) sevens[i] = makeTuple({IValue(i)});
  for (size_t i = 0; i < 2000; ++i) same.push_back(sevens[i % 7]);
  IValue a(makeTuple(many)), b(makeTuple(same));
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_EQ(a.keyHash(), b.keyHash());
  EXPECT_TRUE(a.equals(b));
  same.back() = IValue(makeTuple({IValue(8)}));
  EXPECT_FALSE(a.equals(makeTuple(same)));
}

TEST(SharedValuesTest, printUpToALimit) {
  for (const IValue& v : {sharedLists(1), sharedTuples(1)}) {
    EXPECT_LT(v.shortRepr(100).size(), 300u);
    EXPECT_TRUE(v.shortRepr(100).ends_with("..."));
  }
  EXPECT_THROW(sharedLists(1).repr(), RuntimeError);
  EXPECT_EQ(sharedLists(1, 2).repr(), "[[[1], [1]], [[1], [1]]]");
  EXPECT_EQ(sharedLists(1, 2).shortRepr(), "[[[1], [1]], [[1], [1]]]");
  EXPECT_EQ(IValue(std::string(5000, 'a')).shortRepr(100).size(), 106u);
}

TEST(SharedValuesTest, tensorsOfManyDimensionsPrintUpToALimit) {
  Tensor t = Tensor::fromData(std::vector<int8_t>(1).data(), DimVector{1});
  DimVector sizes, strides;
  for (int i = 0; i < 20; ++i) {
    sizes.push_back(7);
    strides.push_back(0);
  }
  Tensor wide = Tensor::fromStorage(t.storage(), t.dtype(), sizes, strides, 0);
  EXPECT_THROW(formatTensor(wide), RuntimeError);
}

TEST(SharedValuesTest, holdThemselves) {
  IValue a(makeList(types::Any())), b(makeList(types::Any()));
  for (const IValue& v : {a, b}) {
    v.toList().elements = {v, v};
  }
  EXPECT_THROW(a.equals(b), RuntimeError);
  EXPECT_TRUE(a.equals(a));
  EXPECT_LT(a.shortRepr(100).size(), 1000u);
  for (const IValue& v : {a, b}) v.toList().elements.clear();
}

TEST(SharedValuesTest, fitToTypes) {
  TypePtr lists = types::Int();
  for (int i = 0; i <= kLevels; ++i) lists = types::List(lists);
  IValue value = conform(sharedLists(1), lists);
  EXPECT_TRUE(value.isList());
  EXPECT_THROW(conform(sharedLists(1), types::List(lists)), RuntimeError);
  TypePtr pairs = types::Int();
  for (int i = 0; i < 12; ++i) pairs = types::Tuple({pairs, pairs});
  EXPECT_TRUE(conform(sharedTuples(1, 12), pairs).equals(sharedTuples(1, 12)));
  EXPECT_THROW(conform(sharedTuples(1, 13), pairs), RuntimeError);
}

TEST(SharedValuesTest, haveNoTypeThatIsTooLarge) {
  EXPECT_THROW(sharedTuples(1).type(), RuntimeError);
  EXPECT_EQ(sharedTuples(1, 2).type()->str(), "((int, int), (int, int))");
  IValue deep(1);
  for (int i = 0; i < 100000; ++i) deep = IValue(makeTuple({deep}));
  EXPECT_THROW(deep.type(), RuntimeError);
  EXPECT_THROW(deep.equals(IValue(makeTuple({deep}))), RuntimeError);
  EXPECT_THROW(deep.hash(), RuntimeError);
  EXPECT_FALSE(deep.repr().empty());
}

TEST(SharedTypesTest, areBounded) {
  TypePtr t = types::Int();
  EXPECT_THROW(
      {
        for (int i = 0; i < kLevels; ++i) t = types::Tuple({t, t});
      },
      RuntimeError);
  EXPECT_LE(t->parts(), kMaxTypeParts);
  EXPECT_LT(t->str().size(), 8 * kMaxTypeParts);
  EXPECT_THROW(
      {
        for (uint32_t i = 0; i <= kMaxTypeDepth; ++i) t = types::List(t);
      },
      RuntimeError);
  std::vector<TypePtr> members;
  TypePtr list = types::Int();
  for (int i = 0; i < 100; ++i) members.push_back(list = types::List(list));
  EXPECT_THROW(unionOf(members), RuntimeError);
  EXPECT_THROW(TupleType(std::string(10 << 20, 'a'), {"x"}, {types::Int()}, {}), RuntimeError);
}

TEST(SharedTypesTest, nestedUnionsAreCompared) {
  auto nest = [](TypePtr leaf) {
    TypePtr t = leaf;
    for (int i = 0; i < 4; ++i) {
      std::vector<TypePtr> members;
      for (const TypePtr& other : {types::Int(), types::String(), types::Bool()}) {
        members.push_back(types::Tuple({t, other}));
      }
      t = unionOf(members);
    }
    return t;
  };
  EXPECT_TRUE(nest(types::Int())->isSubtypeOf(nest(types::Int())));
  EXPECT_FALSE(nest(types::Int())->isSubtypeOf(nest(types::String())));
}

}  // namespace
}  // namespace wick::shared_values_test

#include "core/conform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace wick {
namespace {

std::string messageOf(IValue value, const TypePtr& type,
                      Conversions conversions = Conversions::None) {
  try {
    conform(std::move(value), type, conversions);
  } catch (const RuntimeError& error) {
    return error.brief();
  }
  return "no error";
}

TEST(ConformTest, ContainersGetTheDeclaredTypesAndKeepTheirIdentity) {
  IValue list(makeList(types::Any(), {IValue(int64_t{1}), IValue()}));
  IValue result = conform(list, types::List(types::Optional(types::Int())));
  EXPECT_TRUE(result.isSame(list));
  EXPECT_EQ(list.toList().element_type->kind(), TypeKind::Optional);
}

TEST(ConformTest, ClaimedElementTypesAreNotBelieved) {
  IValue lie(makeList(types::Int(), {IValue("text")}));
  EXPECT_THAT(messageOf(lie, types::List(types::Int())),
              testing::HasSubstr("[0]: expected int, got"));
}

TEST(ConformTest, MessagesSayWhere) {
  auto dict = makeRef<DictObject>(types::Any(), types::Any());
  dict->set("a", makeTuple({IValue(1.0), IValue(true)}));
  TypePtr type = types::Dict(types::String(), types::Tuple({types::Float(), types::Int()}));
  EXPECT_THAT(messageOf(IValue(dict), type), testing::StartsWith("[0][1]: expected int, got bool"));
  EXPECT_THAT(messageOf(makeTuple({}), types::Tuple({types::Int()})),
              testing::HasSubstr("a tuple of 0"));
}

TEST(ConformTest, PythonConvertsArguments) {
  EXPECT_EQ(conform(int64_t{3}, types::Float(), Conversions::Python).toDouble(), 3.0);
  EXPECT_EQ(conform(2.0, types::Complex(), Conversions::Python).toComplex().real(), 2.0);
  EXPECT_TRUE(
      conform(makeTuple({int64_t{1}}), types::List(types::Int()), Conversions::Python).isList());
  EXPECT_NE(messageOf(int64_t{3}, types::Float()), "no error");
  EXPECT_EQ(conform(true, types::Int(), Conversions::Python).toInt(), 1);
  EXPECT_NE(messageOf(true, types::Int()), "no error");
  EXPECT_TRUE(conform(int64_t{2}, types::Bool(), Conversions::Python).toBool());
  EXPECT_NE(messageOf(2.5, types::Int(), Conversions::Python), "no error");
}

TEST(ConformTest, PythonTakesTensorsOfOneElementForNumbers) {
  const auto python = Conversions::Python;
  EXPECT_EQ(conform(Tensor::scalar(int64_t{3}), types::Int(), python).toInt(), 3);
  EXPECT_EQ(conform(Tensor::full({1}, -3.5, DType::Float), types::Int(), python).toInt(), -3);
  EXPECT_EQ(conform(Tensor::scalar(int64_t{3}), types::Float(), python).toDouble(), 3.0);
  EXPECT_EQ(conform(Tensor::scalar(1.5), types::Complex(), python).toComplex().real(), 1.5);
  EXPECT_TRUE(conform(Tensor::scalar(true), types::Bool(), python).toBool());
  EXPECT_NE(messageOf(Tensor::zeros({2}, DType::Long), types::Int(), python), "no error");
  EXPECT_NE(messageOf(Tensor::full({}, 1e30, DType::Double), types::Int(), python), "no error");
  EXPECT_NE(messageOf(Tensor::scalar(int64_t{3}), types::Int()), "no error");
  EXPECT_TRUE(conform(makeList(types::Int(), {int64_t{1}}), types::Tuple({types::Int()}), python)
                  .isTuple());
}

TEST(ConformTest, UnionsPreferTheExactMember) {
  TypePtr type = unionOf({types::Float(), types::Int(), types::None()});
  EXPECT_TRUE(conform(int64_t{3}, type, Conversions::Python).isInt());
  EXPECT_TRUE(conform(IValue(), type).isNone());
  EXPECT_NE(messageOf("x", type), "no error");
}

TEST(ConformTest, NamedTuplesGetTheirNames) {
  auto point =
      std::make_shared<TupleType>("__torch__.P", std::vector<std::string>{"x"},
                                  std::vector<TypePtr>{types::Int()}, std::vector<IValue>{});
  EXPECT_EQ(conform(makeTuple({int64_t{1}}), point).toTuple().named, point);
}

}  // namespace
}  // namespace wick

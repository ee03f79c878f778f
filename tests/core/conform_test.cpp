#include "core/conform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "core/budget.h"
#include "core/error.h"
#include "tests/error_text.h"

namespace wick::conform_test {
namespace {

using testing_errors::errorOf;

std::string messageOf(IValue value, const TypePtr& type,
                      Conversions conversions = Conversions::None) {
  return errorOf([&] { conform(std::move(value), type, conversions); });
}

std::string claimMessage(TypeClaims& claims, const IValue& value, const TypePtr& type) {
  return errorOf([&] { claims.conform(value, type); });
}

// ( ((leaf, leaf), (leaf, leaf)), … ), where each level is one tuple.
IValue sharedTuples(IValue leaf, int depth) {
  for (int i = 0; i < depth; ++i) leaf = makeTuple({leaf, leaf});
  return leaf;
}

TEST(ConformTest, ContainersThatFitKeepTheirIdentity) {
  const TypePtr type = types::List(types::Dict(types::String(), types::Tuple({types::Int()})));
  auto dict = makeRef<DictObject>(types::String(), types::Tuple({types::Int()}));
  dict->set("a", makeTuple({int64_t{1}}));
  IValue list(makeList(type->contained()[0], {IValue(dict)}));
  EXPECT_TRUE(conform(list, type).isSame(list));
  EXPECT_TRUE(conform(list, types::Any(), Conversions::Python).isSame(list));
}

// Somebody may have the list as one of another type.
TEST(ConformTest, ContainersOfOtherTypesAreCopied) {
  IValue list(makeList(types::Int(), {IValue(int64_t{1})}));
  IValue result = conform(list, types::List(types::Optional(types::Int())));
  EXPECT_FALSE(result.isSame(list));
  EXPECT_EQ(list.toList().element_type->kind(), TypeKind::Int);
  EXPECT_EQ(result.toList().element_type->kind(), TypeKind::Optional);
  IValue floats = conform(list, types::List(types::Float()), Conversions::Python);
  EXPECT_EQ(floats.elements()[0].toDouble(), 1.0);
  EXPECT_TRUE(list.elements()[0].isInt());
  EXPECT_NE(messageOf(makeList(types::Any(), {int64_t{1}, "x"}), types::List(types::Float()),
                      Conversions::Python),
            "no error");
}

TEST(ConformTest, AnyTakesOnlyContainersThatHoldWhatTheyClaim) {
  IValue lie(makeList(types::Int(), {IValue("text")}));
  EXPECT_THAT(messageOf(lie, types::Any()), testing::HasSubstr("[0]: expected int, got"));
  EXPECT_NE(messageOf(makeTuple({lie}), types::Any()), "no error");
  EXPECT_NE(messageOf(lie, Type::get(TypeKind::AnyList)), "no error");
  EXPECT_NE(messageOf(makeList(types::Any(), {lie}), types::List(types::Any())), "no error");
  EXPECT_NE(messageOf(makeRef<FutureObject>(types::Int()), types::Future(types::String())),
            "no error");
}

TEST(ConformTest, ClaimsSettleTypesInPlace) {
  TypeClaims claims;
  IValue list(makeList(types::Any(), {IValue(int64_t{1}), IValue()}));
  const TypePtr type = types::List(types::Optional(types::Int()));
  EXPECT_TRUE(claims.conform(list, type).isSame(list));
  EXPECT_TRUE(claims.conform(makeTuple({list}), types::Tuple({type})).elements()[0].isSame(list));
  EXPECT_TRUE(claims.conform(list, types::Any()).isSame(list));
  EXPECT_EQ(list.toList().element_type->kind(), TypeKind::Optional);
}

TEST(ConformTest, NothingIsClaimedAsTwoTypes) {
  const TypePtr ints = types::List(types::Int());
  const TypePtr strings = types::List(types::String());
  const std::vector<std::pair<TypePtr, TypePtr>> pairs = {
      {ints, strings},
      {ints, types::List(types::Optional(types::Int()))},
      {ints, types::List(types::Any())},
      {types::Optional(ints), types::Tuple({strings})},
      {types::Dict(types::String(), ints), strings},
      {types::List(ints), types::Dict(types::Int(), strings)},
      {unionOf({ints, types::Int()}), strings},
      {ints, unionOf({strings, types::Int()})},
      {types::Any(), strings},
  };
  // An empty list in whatever the type asks for.
  std::function<IValue(const IValue&, const TypePtr&)> wrap = [&](const IValue& list,
                                                                  const TypePtr& type) -> IValue {
    if (type->kind() == TypeKind::Tuple) return makeTuple({wrap(list, type->contained()[0])});
    if (type->kind() == TypeKind::Dict) {
      auto dict = makeRef<DictObject>(types::Any(), types::Any());
      if (type->contained()[0]->kind() == TypeKind::Int) {
        dict->set(int64_t{1}, list);
      } else {
        dict->set("a", list);
      }
      return dict;
    }
    if (type->kind() == TypeKind::List && type->contained()[0]->kind() == TypeKind::List) {
      return makeList(types::Any(), {list});
    }
    return list;
  };
  for (const auto& [first, second] : pairs) {
    TypeClaims claims;
    IValue list(makeList(types::Int()));
    EXPECT_EQ(claimMessage(claims, wrap(list, first), first), "no error") << first->str();
    EXPECT_THAT(claimMessage(claims, wrap(list, second), second), testing::Not("no error"))
        << first->str() << " " << second->str();
  }
  TypeClaims claims;
  IValue list(makeList(types::Any()));
  claims.conform(list, ints);
  EXPECT_THAT(claimMessage(claims, list, strings),
              testing::HasSubstr("the same list is declared as List[int] and as List[str]"));
}

TEST(ConformTest, SharedPartsAreLookedAtOnce) {
  const IValue deep = sharedTuples(int64_t{1}, 200);
  constexpr int kLevels = 8;  // types may not be as large
  const IValue typed = sharedTuples(int64_t{1}, kLevels);
  std::vector<std::shared_ptr<const TupleType>> named;
  TypePtr last = types::Int();
  for (int i = 0; i < kLevels; ++i) {
    const TypePtr part = i == 0 ? last : unionOf({last, types::String()});
    last = std::make_shared<TupleType>(fmt::format("__torch__.T{}", i),
                                       std::vector<std::string>{"a", "b"},
                                       std::vector<TypePtr>{part, part}, std::vector<IValue>{});
  }
  EXPECT_TRUE(conform(deep, types::Any()).isSame(deep));
  EXPECT_TRUE(conform(typed, last).isTuple());
  EXPECT_NE(messageOf(sharedTuples("x", kLevels), last, Conversions::Python), "no error");
  TypeClaims claims;
  EXPECT_TRUE(claims.conform(deep, types::Any()).isSame(deep));
  EXPECT_TRUE(claims.conform(typed, last).isTuple());
  EXPECT_NE(claimMessage(claims, sharedTuples("x", kLevels), last), "no error");
}

TEST(ConformTest, ACycleIsAnError) {
  IValue list(makeList(types::Any()));
  list.toList().elements = {list, list};
  EXPECT_THAT(messageOf(list, types::List(types::Any())), testing::HasSubstr("deeper"));
  list.toList().elements.clear();
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

// A list of a million references to one other takes seconds.
TEST(ConformTest, ManyElementsLookAtTheClock) {
  const TypePtr inner = types::Optional(types::Int());
  const IValue shared(makeList(types::None(), std::vector<IValue>(100'000)));
  const IValue list(makeList(types::List(types::None()), std::vector<IValue>(10, shared)));
  const Budget::Bounds passed{std::chrono::steady_clock::now() - std::chrono::seconds(1), 0,
                              nullptr};
  Budget budget(passed);
  const BudgetScope scope(&budget);
  EXPECT_THAT(messageOf(list, types::List(types::List(inner))), testing::HasSubstr("time limit"));
  TypeClaims claims;
  EXPECT_THAT(claimMessage(claims, list, types::List(types::List(inner))),
              testing::HasSubstr("time limit"));
}

TEST(ConformTest, NamedTuplesGetTheirNames) {
  auto point =
      std::make_shared<TupleType>("__torch__.P", std::vector<std::string>{"x"},
                                  std::vector<TypePtr>{types::Int()}, std::vector<IValue>{});
  EXPECT_EQ(conform(makeTuple({int64_t{1}}), point).toTuple().named, point);
}

}  // namespace
}  // namespace wick::conform_test

#include "core/type.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/function_schema.h"
#include "core/ivalue.h"
#include "core/native_class.h"
#include "tests/error_text.h"

namespace wick::type_test {
namespace {

TEST(NativeClassTest, NamesAreChecked) {
  const std::string name = "__torch__.torch.classes.type_test.Twice";
  registerNativeClass({name, nullptr, nullptr, {}});
  EXPECT_EQ(testing_errors::errorOf([&] {
              registerNativeClass({name, nullptr, nullptr, {}});
            }),
            "there is already a native class " + name);
  withdrawNativeClass(name);
  EXPECT_EQ(testing_errors::errorOf([] {
              registerNativeClass({"Kept", nullptr, nullptr, {}});
            }),
            "the name of a native class begins with __torch__.torch.classes., got Kept");
}

TypePtr parse(const char* text) {
  return parseSchemaType(text);
}

bool fits(const char* a, const char* b) {
  return parse(a)->isSubtypeOf(*parse(b));
}

std::string unified(const char* a, const char* b) {
  auto t = unifyTypes(parse(a), parse(b));
  return t ? (*t)->str() : "none";
}

// The formal type with its variables replaced.
std::string matched(const char* formal, const char* actual) {
  TypeBindings bindings;
  auto t = matchTypeVariables(parse(formal), parse(actual), bindings);
  return t ? (*t)->str() : "none";
}

TEST(TypeTest, printsAsPyTorch) {
  const char* cases[][3] = {
      {"int[]", "int[]", "List[int]"},
      {"Dict(str, Tensor)", "Dict(str, Tensor)", "Dict[str, Tensor]"},
      {"int?[]", "int?[]", "List[Optional[int]]"},
      {"int[]?", "int[]?", "Optional[List[int]]"},
      {"(int, Tensor)", "(int, Tensor)", "Tuple[int, Tensor]"},
      {"(int)", "(int)", "Tuple[int]"},
      {"()", "()", "Tuple[()]"},
      {"Future(int)", "Future[int]", "Future[int]"},
      {"Scalar?", "Scalar?", "Optional[number]"},
      {"Union[int, str]", "Union(int, str)", "Union[int, str]"},
      {"Union[str, int, NoneType]", "Union(int, NoneType, str)", "Union[int, NoneType, str]"},
      {"Union[int, List[int]]", "Union(int[], int)", "Union[List[int], int]"},
      {"Union[int, float, complex, None]", "Scalar?", "Optional[number]"},
      {"Union[int, float, str]", "Union(float, int, str)", "Union[float, int, str]"},
      {"List[Tuple[int, Optional[int]]]", "(int, int?)[]", "List[Tuple[int, Optional[int]]]"},
      {"RRef(t)", "RRef[t]", "RRef[t]"},
      {"Device", "Device", "Device"},
  };
  for (const auto& [text, str, annotation] : cases) {
    EXPECT_EQ(parse(text)->str(), str);
    EXPECT_EQ(parse(text)->annotation(), annotation);
  }
}

TEST(TypeTest, printsTensors) {
  TensorType::Facts f;
  EXPECT_EQ(TensorType::create(f)->str(), "Tensor");
  f.dtype = DType::Float;
  EXPECT_EQ(TensorType::create(f)->str(), "Float");
  f.sizes = std::vector<std::optional<int64_t>>{2, 3};
  EXPECT_EQ(TensorType::create(f)->str(), "Float(2, 3)");
  f.strides = {3, 1};
  f.requires_grad = false;
  f.device = Device{};
  EXPECT_EQ(TensorType::create(f)->str(),
            "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)");
  EXPECT_EQ(TensorType::create(f)->annotation(), "Tensor");
  TensorType::Facts g;
  g.dtype = DType::Float;
  g.sizes = std::vector<std::optional<int64_t>>{std::nullopt, 3};
  EXPECT_EQ(TensorType::create(g)->str(), "Float(*, 3)");
  TensorType::Facts h;
  h.dtype = DType::Double;
  h.dim = 0;
  EXPECT_EQ(TensorType::create(h)->str(), "Double()");
}

TEST(TypeTest, printsNamedTypes) {
  TupleType named("__torch__.P", {"x", "y"}, {types::Int(), types::Tensor()}, {});
  EXPECT_EQ(named.str(), "NamedTuple(x : int, y : Tensor)");
  EXPECT_EQ(named.annotation(), "__torch__.P");
  EnumType e("__torch__.Color", types::Int(), {{"RED", IValue(1)}});
  EXPECT_EQ(e.str(), "Enum<__torch__.Color>");
  EXPECT_EQ(InterfaceType("__torch__.I", false).str(), "InterfaceType<I>");
}

TEST(TypeTest, subtypes) {
  EXPECT_TRUE(fits("int", "Any"));
  EXPECT_TRUE(fits("int", "Scalar"));
  EXPECT_TRUE(fits("complex", "Scalar"));
  EXPECT_FALSE(fits("bool", "Scalar"));
  EXPECT_FALSE(fits("int", "float"));
  EXPECT_TRUE(fits("int", "int?"));
  EXPECT_TRUE(fits("NoneType", "int?"));
  EXPECT_TRUE(fits("int", "Scalar?"));
  EXPECT_TRUE(fits("int?", "Scalar?"));
  EXPECT_FALSE(fits("int?", "int"));
  EXPECT_FALSE(fits("int[]", "Scalar[]"));
  EXPECT_TRUE(fits("int[]", "list"));
  EXPECT_FALSE(fits("Dict(str, int)", "Dict(str, Scalar)"));
  EXPECT_TRUE(fits("(int, float)", "(Scalar, Any)"));
  EXPECT_FALSE(fits("(int, float)", "(int)"));
  EXPECT_TRUE(fits("(int)", "tuple"));
  EXPECT_TRUE(fits("int", "Union[int, str]"));
  EXPECT_TRUE(fits("Union[int, str]", "Union[int, str, float]"));
  EXPECT_FALSE(fits("Union[int, str, float]", "Union[int, str]"));
  EXPECT_TRUE(fits("int?", "Union[int, str, NoneType]"));
  EXPECT_FALSE(fits("int?", "Union[int, str]"));
  EXPECT_TRUE(fits("Union[int, str]", "Any"));
  EXPECT_TRUE(fits("Future(int)", "Future(Scalar)"));
}

TEST(TypeTest, reasonsAreGiven) {
  std::string why;
  EXPECT_FALSE(parse("int[]")->isSubtypeOf(*parse("Scalar[]"), &why));
  EXPECT_NE(why.find("'List[int]' is not a subtype of 'List[number]'"), std::string::npos);
  EXPECT_NE(why.find("exactly"), std::string::npos);
}

TEST(TypeTest, tensorsRefine) {
  TensorType::Facts f;
  f.dtype = DType::Float;
  f.sizes = std::vector<std::optional<int64_t>>{2, 3};
  f.dim = 2;
  TypePtr shaped = TensorType::create(f);
  f.sizes = std::vector<std::optional<int64_t>>{2, std::nullopt};
  TypePtr partial = TensorType::create(f);
  f.sizes = std::vector<std::optional<int64_t>>{2, 4};
  TypePtr other = TensorType::create(f);
  EXPECT_TRUE(shaped->isSubtypeOf(*types::Tensor()));
  EXPECT_FALSE(types::Tensor()->isSubtypeOf(*shaped));
  EXPECT_TRUE(shaped->isSubtypeOf(*partial));
  EXPECT_FALSE(shaped->isSubtypeOf(*other));
  EXPECT_EQ((*unifyTypes(shaped, other))->str(), "Float(2, *)");
  EXPECT_TRUE(types::List(shaped)->isSubtypeOf(*types::List(types::Tensor())));
  EXPECT_EQ((*unifyTypes(types::List(shaped), types::List(other)))->str(), "Tensor[]");
}

TEST(TypeTest, namedTuples) {
  auto named =
      std::make_shared<const TupleType>("P", std::vector<std::string>{"x"},
                                        std::vector<TypePtr>{types::Int()}, std::vector<IValue>{});
  EXPECT_TRUE(named->isSubtypeOf(*parse("(int)")));
  EXPECT_FALSE(parse("(int)")->isSubtypeOf(*named));
}

TEST(TypeTest, unify) {
  EXPECT_EQ(unified("int", "NoneType"), "int?");
  EXPECT_EQ(unified("int?", "int"), "int?");
  EXPECT_EQ(unified("int", "float"), "none");
  EXPECT_EQ(unified("(int, NoneType)", "(NoneType, int)"), "(int?, int?)");
  EXPECT_EQ(unified("int[]", "float[]"), "none");
  EXPECT_EQ(unified("int", "Any"), "Any");
  EXPECT_EQ((*unifyTypes(parse("int"), parse("str"), true))->str(), "Union(int, str)");
}

TEST(TypeTest, matchVariables) {
  EXPECT_EQ(matched("t[]", "int[]"), "int[]");
  EXPECT_EQ(matched("t[]", "(int, int)"), "int[]");
  EXPECT_EQ(matched("t[]", "int"), "none");
  EXPECT_EQ(matched("t?", "int"), "int");
  EXPECT_EQ(matched("t?", "int?"), "int?");
  EXPECT_EQ(matched("t?", "NoneType"), "none");
  EXPECT_EQ(matched("Dict(str, t)", "Dict(str, float[])"), "Dict(str, float[])");
  EXPECT_EQ(matched("(t, t)", "(int, str)"), "none");
  EXPECT_EQ(matched("(t, t)", "(int, int)"), "(int, int)");
  EXPECT_EQ(matched("Future(t)", "Future(Tensor)"), "Future[Tensor]");
  TypeBindings bindings;
  EXPECT_TRUE(matchTypeVariables(parse("t[]"), parse("int[]"), bindings));
  EXPECT_EQ((*substituteTypeVariables(parse("t?"), bindings))->str(), "int?");
  EXPECT_FALSE(substituteTypeVariables(parse("u"), bindings));
}

TEST(TypeTest, canonicalForms) {
  EXPECT_EQ(parse("int??")->str(), "int?");
  EXPECT_EQ(parse("Union[int]")->str(), "int");
  EXPECT_EQ(parse("Union[int, Optional[int]]")->str(), "int?");
  EXPECT_EQ(types::List(types::Int()), types::List(types::Int()));
  EXPECT_TRUE(*parse("Dict(str, int[])") == *types::Dict(types::String(), parse("List[int]")));
}

class Method : public Function {
 public:
  Method(std::string name, const char* schema)
      : name_(std::move(name)), schema_(parseSchema(schema)) {}
  const std::string& qualifiedName() const override { return name_; }
  const FunctionSchema& schema() override { return schema_; }
  void ensureDefined() override {}

 private:
  std::string name_;
  FunctionSchema schema_;
};

// Many are looked up in another way than few.
TEST(TypeTest, methodsOfLargeClassesByName) {
  constexpr size_t kCount = 300;
  std::vector<std::unique_ptr<Method>> methods;
  const auto add = [&](const std::string& name) {
    methods.push_back(
        std::make_unique<Method>("__torch__.C." + name, (name + "(Any self) -> int").c_str()));
    return methods.back().get();
  };
  const auto c = std::make_shared<ClassType>("__torch__.C", /*is_module=*/false);
  for (size_t i = 0; i < kCount; ++i) {
    const std::string name = "m" + std::to_string(i);
    EXPECT_EQ(c->findMethod(name), nullptr);
    Method* method = add(name);
    c->addMethod(method);
    EXPECT_EQ(c->findMethod(name), method);
    EXPECT_EQ(c->findMethod("m0"), methods[0].get());
    EXPECT_EQ(c->findStaticMethod(name), nullptr);
  }
  c->addMethod(add("m7"));
  EXPECT_EQ(c->findMethod("m7"), methods[7].get());  // the first of the name
  EXPECT_EQ(c->findMethod("C.m7"), methods[7].get());
  EXPECT_EQ(c->findMethod(""), nullptr);
  c->dissolve();
  EXPECT_EQ(c->findMethod("m7"), nullptr);
  for (size_t i = kCount; i-- > 0;) c->addMethod(methods[i].get());
  EXPECT_EQ(c->findMethod("m7"), methods[7].get());
}

TEST(TypeTest, otherLongListsByName) {
  constexpr size_t kCount = 300;
  const auto c = std::make_shared<ClassType>("__torch__.C", /*is_module=*/false);
  const auto i = std::make_shared<InterfaceType>("__torch__.I", /*is_module=*/false);
  std::vector<std::string> fields;
  std::vector<TypePtr> types;
  for (size_t k = 0; k < kCount; ++k) {
    const std::string name = std::to_string(k);
    c->addConstant("c" + name, IValue(static_cast<int64_t>(k)));
    c->addProperty({"p" + name, nullptr, nullptr});
    i->addMethod(std::make_shared<Method>("__torch__.I.m" + name,
                                          ("m" + name + "(Any self) -> int").c_str()));
    fields.push_back("f" + name);
    types.push_back(types::Int());
    ASSERT_EQ(c->findConstant("c" + name)->toInt(), static_cast<int64_t>(k));
    ASSERT_EQ(c->findProperty("p" + name)->name, "p" + name);
    ASSERT_EQ(i->findMethod("m" + name)->name(), "m" + name);
    EXPECT_EQ(c->findConstant("p" + name), nullptr);
    EXPECT_EQ(c->findProperty("c" + name), nullptr);
    EXPECT_EQ(i->findMethod("c" + name), nullptr);
  }
  const auto tuple =
      std::make_shared<TupleType>("__torch__.P", fields, types, std::vector<IValue>{});
  EXPECT_EQ(tuple->fieldIndex("f299"), 299u);
  EXPECT_EQ(tuple->fieldIndex("f0"), 0u);
  EXPECT_EQ(tuple->fieldIndex("g"), std::nullopt);
  EXPECT_EQ(c->findConstant("c0")->toInt(), 0);
  // Types that end leave nothing behind for those that come to lie in their place.
  for (size_t round = 0; round < 500; ++round) {
    const auto brief = std::make_shared<InterfaceType>("__torch__.J", /*is_module=*/false);
    const std::string prefix = round % 2 == 0 ? "a" : "b";
    for (size_t k = 0; k < 80; ++k) {
      const std::string name = prefix + std::to_string(k);
      brief->addMethod(
          std::make_shared<Method>("__torch__.J." + name, (name + "(Any self) -> int").c_str()));
    }
    ASSERT_NE(brief->findMethod(prefix + "79"), nullptr);
    ASSERT_EQ(brief->findMethod(round % 2 == 0 ? "b79" : "a79"), nullptr);
  }
}

TEST(TypeTest, classesAndInterfaces) {
  Method good("__torch__.C.run", "run(Any self, Scalar x) -> int");
  Method bad("__torch__.D.run", "run(Any self, str x) -> int");
  auto c = std::make_shared<ClassType>("__torch__.C", false);
  c->addMethod(&good);
  auto d = std::make_shared<ClassType>("__torch__.D", false);
  d->addMethod(&bad);
  auto i = std::make_shared<InterfaceType>("__torch__.I", false);
  i->addMethod(std::make_shared<Method>("__torch__.I.run", "run(Any self, int x) -> Scalar"));
  EXPECT_TRUE(c->isSubtypeOf(*i));
  std::string why;
  EXPECT_FALSE(d->isSubtypeOf(*i, &why));
  EXPECT_NE(why.find("not compatible"), std::string::npos);
  EXPECT_EQ(c->findMethod("run"), &good);
  EXPECT_EQ(c->findMethod("un"), nullptr);
  EXPECT_EQ(c->addAttribute("x", types::Int()), 0u);
  EXPECT_THROW(c->addAttribute("x", types::Int()), RuntimeError);
  EXPECT_EQ(c->findAttribute("x"), 0u);
  auto module_interface = std::make_shared<InterfaceType>("__torch__.J", true);
  EXPECT_FALSE(c->isSubtypeOf(*module_interface));
  EXPECT_TRUE(c->isSubtypeOf(*types::AnyClass()));
}

}  // namespace
}  // namespace wick::type_test

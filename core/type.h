// The static types of TorchScript. Types are immutable (but for classes under construction) and
// shared; structurally equal types compare equal with operator==. S.isSubtypeOf(T) means that a
// value of S may stand where T is expected, without conversion.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/dim_vector.h"
#include "core/dtype.h"
#include "core/keyed_hash.h"

#pragma GCC visibility push(default)

namespace wick {

class Function;
class IValue;
class Type;
class ClassType;
using TypePtr = std::shared_ptr<const Type>;
using ClassTypePtr = std::shared_ptr<ClassType>;

// A type is written with at most so many parts, names counted by their length, and nests at most so
// deep; a union is smaller, for two are compared member by member. What makes larger ones raises a
// RuntimeError. A program can double a type with a few letters, t = (t, t); everything that walks
// over types, or prints them, relies on these.
inline constexpr uint32_t kMaxTypeParts = uint32_t{1} << 16;
inline constexpr uint32_t kMaxTypeDepth = 1100;
inline constexpr uint32_t kMaxUnionParts = 1024;

// _(enumerator, str()) of the types without parameters.
#define WICK_FORALL_SIMPLE_TYPES(_) \
  _(Int, "int")                     \
  _(Float, "float")                 \
  _(Complex, "complex")             \
  _(Bool, "bool")                   \
  _(String, "str")                  \
  _(None, "NoneType")               \
  _(Number, "Scalar")               \
  _(Any, "Any")                     \
  _(Device, "Device")               \
  _(Generator, "Generator")         \
  _(Storage, "Storage")             \
  _(Stream, "Stream")               \
  _(Capsule, "Capsule")             \
  _(AnyList, "list")                \
  _(AnyTuple, "tuple")              \
  _(AnyClass, "AnyClassType")       \
  _(AnyEnum, "AnyEnumType")

enum class TypeKind : uint8_t {
#define WICK_TYPE(name, text) name,
  WICK_FORALL_SIMPLE_TYPES(WICK_TYPE)
#undef WICK_TYPE
      Tensor,
  Optional,
  Union,
  List,
  Dict,
  Tuple,
  Future,
  Await,
  RRef,
  Class,
  Interface,
  Enum,
  Function,
  Var,  // a type variable of a schema: the `t` of `aten::len.t(t[] a)`
};

class Type : public std::enable_shared_from_this<Type> {
 public:
  virtual ~Type() = default;
  TypeKind kind() const { return kind_; }
  // As in printed IR, schemas and error messages: "int[]", "Dict(str, Tensor)", "int?",
  // "(int, Tensor)", "Future[int]", "Union(int, str)", "Scalar" for number, "__torch__.M" for a
  // class, "Enum<__torch__.E>", "NamedTuple(x : int, y : int)", "InterfaceType<I>" (the last part
  // of the name), "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", "Float(*, 3)".
  virtual std::string str() const;
  // As written in Python source: "List[int]", "Dict[str, Tensor]", "Optional[int]",
  // "Tuple[int, Tensor]", "Tuple[()]", "number"; named types by qualified name, Tensor without
  // refinement.
  virtual std::string annotation() const;
  virtual bool equals(const Type& other) const { return kind_ == other.kind_; }
  // Writes the reason of a "no" to `why` when given.
  virtual bool isSubtypeOf(const Type& other, std::string* why = nullptr) const;
  // Type arguments: element types, dict key and value, union members.
  virtual const std::vector<TypePtr>& contained() const;

  bool isSubtypeOf(const TypePtr& other, std::string* why = nullptr) const {
    return isSubtypeOf(*other, why);
  }
  // The subclass, or null when the kind differs: t->as<ListType>().
  template <class T>
  const T* as() const {
    return kind_ == T::kKind ? static_cast<const T*>(this) : nullptr;
  }
  // Whether None is one of its values (NoneType, Optional, Union with None, Any).
  bool acceptsNone() const;
  bool isNumeric() const {
    return kind_ == TypeKind::Int || kind_ == TypeKind::Float || kind_ == TypeKind::Complex;
  }
  // Whether a schema's type variable occurs in it.
  bool hasFreeVariables() const { return has_variables_; }
  // Whether a tensor occurs in it about which more is known than that it is one.
  bool hasRefinement() const { return has_refinement_; }
  // How many parts it is written with; kMaxTypeParts at most.
  uint32_t parts() const { return parts_; }

  // The shared instance of a type without parameters: Type::get(TypeKind::Int).
  static const TypePtr& get(TypeKind kind);

 protected:
  explicit Type(TypeKind kind) : kind_(kind), has_variables_(kind == TypeKind::Var) {}
  // For constructors of types with type arguments, once these are known.
  void measure(const std::vector<TypePtr>& arguments);
  // For constructors of types that print a name of their own.
  void measureName(const std::string& name);
  friend struct SimpleTypes;

 private:
  TypeKind kind_;
  bool has_variables_;
  bool has_refinement_ = false;
  uint32_t depth_ = 1;
  uint32_t parts_ = 1;
};

inline bool operator==(const Type& a, const Type& b) {
  return &a == &b || a.equals(b);
}
inline bool sameType(const TypePtr& a, const TypePtr& b) {
  return *a == *b;
}

// Shorthands: types::Int(), types::Tensor(), …
namespace types {
#define WICK_TYPE(name, text)                         \
  inline const TypePtr& name() {                      \
    return ::wick::Type::get(::wick::TypeKind::name); \
  }
WICK_FORALL_SIMPLE_TYPES(WICK_TYPE)
#undef WICK_TYPE
const TypePtr& Tensor();  // without refinement
// Optional[Optional[T]] is Optional[T]; Optional of a union is the union with None; Optional[None]
// is NoneType.
TypePtr Optional(TypePtr element);
TypePtr List(TypePtr element);
TypePtr Dict(TypePtr key, TypePtr value);
TypePtr Tuple(std::vector<TypePtr> elements);
TypePtr Future(TypePtr element);
TypePtr Var(std::string name);
}  // namespace types

// A tensor; some properties of it may be known. Unknown ones match anything.
class TensorType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Tensor;
  struct Facts {
    std::optional<DType> dtype;
    std::optional<wick::Device> device;
    std::optional<size_t> dim;
    // Present only with `dim`; an absent size is unknown ("*"), a negative one names a symbol
    // ("SS(-1)").
    std::optional<std::vector<std::optional<int64_t>>> sizes;
    std::optional<std::vector<int64_t>> strides;
    std::optional<bool> requires_grad;
    bool undefined = false;
  };
  explicit TensorType(Facts facts) : Type(kKind), facts_(std::move(facts)) {}
  static TypePtr create(Facts facts);
  const Facts& facts() const { return facts_; }
  std::string str() const override;
  std::string annotation() const override { return "Tensor"; }
  bool equals(const Type& other) const override;
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;

 private:
  Facts facts_;
};

// List, Optional, Future, RRef, Await: one type argument.
class SingleElementType : public Type {
 public:
  const TypePtr& element() const { return contained_[0]; }
  const std::vector<TypePtr>& contained() const override { return contained_; }
  bool equals(const Type& other) const override;

 protected:
  SingleElementType(TypeKind kind, TypePtr element) : Type(kind), contained_{std::move(element)} {
    measure(contained_);
  }
  std::vector<TypePtr> contained_;
};

class ListType : public SingleElementType {
 public:
  static constexpr TypeKind kKind = TypeKind::List;
  explicit ListType(TypePtr element) : SingleElementType(kKind, std::move(element)) {}
  std::string str() const override;
  std::string annotation() const override;
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;
};

class OptionalType : public SingleElementType {
 public:
  static constexpr TypeKind kKind = TypeKind::Optional;
  explicit OptionalType(TypePtr element) : SingleElementType(kKind, std::move(element)) {}
  std::string str() const override;
  std::string annotation() const override;
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;
};

class FutureType : public SingleElementType {
 public:
  static constexpr TypeKind kKind = TypeKind::Future;
  explicit FutureType(TypePtr element) : SingleElementType(kKind, std::move(element)) {}
  std::string str() const override;
  std::string annotation() const override;
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;
};

// Await and RRef are carried through schemas and printed; no operator makes one.
class AwaitType : public SingleElementType {
 public:
  static constexpr TypeKind kKind = TypeKind::Await;
  explicit AwaitType(TypePtr element) : SingleElementType(kKind, std::move(element)) {}
  std::string str() const override;
  std::string annotation() const override;
};

class RRefType : public SingleElementType {
 public:
  static constexpr TypeKind kKind = TypeKind::RRef;
  explicit RRefType(TypePtr element) : SingleElementType(kKind, std::move(element)) {}
  std::string str() const override;
  std::string annotation() const override;
};

class DictType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Dict;
  DictType(TypePtr key, TypePtr value) : Type(kKind), contained_{std::move(key), std::move(value)} {
    measure(contained_);
  }
  const TypePtr& key() const { return contained_[0]; }
  const TypePtr& value() const { return contained_[1]; }
  const std::vector<TypePtr>& contained() const override { return contained_; }
  std::string str() const override;
  std::string annotation() const override;
  bool equals(const Type& other) const override;

 private:
  std::vector<TypePtr> contained_;
};

// At least two members, flattened, none a subtype of another. Build with unionOf().
class UnionType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Union;
  explicit UnionType(std::vector<TypePtr> members);
  const std::vector<TypePtr>& contained() const override { return contained_; }
  std::string str() const override;
  std::string annotation() const override;
  bool equals(const Type& other) const override;
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;

 private:
  std::vector<TypePtr> contained_;
};

// The union in canonical form: flattened, without members that are subtypes of others, in
// PyTorch's order (by kind, then by name); one type stays itself, T with None is Optional[T], and
// int, float and complex together are number.
TypePtr unionOf(const std::vector<TypePtr>& members);

// Tuple, and NamedTuple when it has a name. Field defaults belong to the class that declares it.
class TupleType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Tuple;
  explicit TupleType(std::vector<TypePtr> elements);
  TupleType(std::string name, std::vector<std::string> fields, std::vector<TypePtr> elements,
            std::vector<IValue> defaults);
  ~TupleType() override;
  const std::vector<TypePtr>& contained() const override { return contained_; }
  bool isNamed() const { return !name_.empty(); }
  const std::string& name() const { return name_; }  // qualified: "__torch__.Point"
  const std::vector<std::string>& fields() const { return fields_; }
  // Defaults of the last fields.
  const std::vector<IValue>& defaults() const;
  std::optional<size_t> fieldIndex(const std::string& field) const;
  std::string str() const override;
  std::string annotation() const override;
  bool equals(const Type& other) const override;
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;

 private:
  std::vector<TypePtr> contained_;
  std::string name_;
  std::vector<std::string> fields_;
  std::unique_ptr<std::vector<IValue>> defaults_;
};

class EnumType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Enum;
  EnumType(std::string name, TypePtr value_type,
           std::vector<std::pair<std::string, IValue>> members);
  ~EnumType() override;
  const std::string& name() const { return name_; }
  const TypePtr& valueType() const { return value_type_; }
  const std::vector<std::pair<std::string, IValue>>& members() const { return members_; }
  // Returns the member of this name, or null; lives as long as the type.
  const std::pair<std::string, IValue>* findMember(std::string_view name) const;
  std::string str() const override;
  std::string annotation() const override { return name_; }
  bool equals(const Type& other) const override;
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;

 private:
  std::string name_;
  TypePtr value_type_;
  std::vector<std::pair<std::string, IValue>> members_;
  KeyedMap<std::string_view, size_t> positions_;  // of members, by their names
};

// A method signature set that classes and modules may satisfy. Methods carry schemas without
// bodies.
class InterfaceType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Interface;
  InterfaceType(std::string name, bool is_module)
      : Type(kKind), name_(std::move(name)), is_module_(is_module) {
    measureName(name_);
  }
  const std::string& name() const { return name_; }
  bool isModule() const { return is_module_; }
  const std::vector<std::shared_ptr<Function>>& methods() const { return methods_; }
  Function* findMethod(const std::string& name) const;
  void addMethod(std::shared_ptr<Function> method) { methods_.push_back(std::move(method)); }
  // Leaves only the name; see ClassType::dissolve().
  void dissolve() { methods_.clear(); }
  std::string str() const override;
  std::string annotation() const override { return name_; }
  bool equals(const Type& other) const override { return this == &other; }
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;

 private:
  std::string name_;
  bool is_module_;
  std::vector<std::shared_ptr<Function>> methods_;
};

// The name of a class as its program's author knows it: "m.Net" for "__torch__.m.___torch_mangle_3.Net".
std::string readableClassName(std::string_view qualified_name);

// A user's class or a module class. Identity is the object: two classes of one name from two
// compilation units differ. Mutable while its compilation unit builds it, constant afterwards.
class ClassType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Class;
  struct Attribute {
    std::string name;
    TypePtr type;
    bool is_parameter = false;
    bool is_buffer = false;
  };
  struct Constant;  // name and IValue; defined in core/ivalue.h
  struct Property {
    std::string name;
    Function* getter = nullptr;
    Function* setter = nullptr;  // null: read-only
  };

  ClassType(std::string name, bool is_module);
  ~ClassType() override;
  const std::string& name() const { return name_; }  // qualified: "__torch__.m.Net"
  bool isModule() const { return is_module_; }

  // Slot i of an object holds attribute i.
  const std::vector<Attribute>& attributes() const { return attributes_; }
  std::optional<size_t> findAttribute(const std::string& name) const;
  size_t addAttribute(std::string name, TypePtr type, bool is_parameter = false,
                      bool is_buffer = false);

  const std::vector<Constant>& constants() const;
  const IValue* findConstant(const std::string& name) const;
  void addConstant(std::string name, IValue value);

  // Functions are owned by the compilation unit.
  const std::vector<Function*>& methods() const { return methods_; }
  Function* findMethod(const std::string& name) const;
  void addMethod(Function* method) { methods_.push_back(method); }
  Function* findStaticMethod(const std::string& name) const;
  void addStaticMethod(Function* method) { static_methods_.push_back(method); }
  const std::vector<Property>& properties() const { return properties_; }
  const Property* findProperty(const std::string& name) const;
  void addProperty(Property property) { properties_.push_back(std::move(property)); }
  // Hooks run around forward: (self, inputs) before, (self, inputs, output) after.
  const std::vector<Function*>& forwardPreHooks() const { return pre_hooks_; }
  const std::vector<Function*>& forwardHooks() const { return hooks_; }
  void addForwardPreHook(Function* hook) { pre_hooks_.push_back(hook); }
  void addForwardHook(Function* hook) { hooks_.push_back(hook); }

  // Leaves only the name. For the end of the compilation unit: the functions end with it, and
  // attributes and methods may mention this very type, which would then never be freed.
  void dissolve();

  ClassTypePtr shared() const {
    return std::const_pointer_cast<ClassType>(
        std::static_pointer_cast<const ClassType>(shared_from_this()));
  }
  std::string str() const override { return name_; }
  std::string annotation() const override { return name_; }
  bool equals(const Type& other) const override { return this == &other; }
  bool isSubtypeOf(const Type& other, std::string* why = nullptr) const override;

 private:
  std::string name_;
  bool is_module_;
  std::vector<Attribute> attributes_;
  KeyedMap<std::string, size_t> attribute_index_;
  std::vector<Constant> constants_;
  std::vector<Function*> methods_;
  std::vector<Function*> static_methods_;
  std::vector<Property> properties_;
  std::vector<Function*> pre_hooks_;
  std::vector<Function*> hooks_;
};

// The type of a reference to one particular function.
class FunctionType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Function;
  explicit FunctionType(Function* function) : Type(kKind), function_(function) {}
  Function* function() const { return function_; }
  std::string str() const override { return "Function"; }
  bool equals(const Type& other) const override;

 private:
  Function* function_;
};

class VarType : public Type {
 public:
  static constexpr TypeKind kKind = TypeKind::Var;
  explicit VarType(std::string name) : Type(kKind), name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  std::string str() const override { return name_; }
  bool equals(const Type& other) const override;

 private:
  std::string name_;
};

// The most specific type that both are subtypes of when TorchScript allows it: Optional of one and
// None, Tensor of two refinements, element-wise for tuples. With `default_to_union`, otherwise
// their union. nullopt when they do not unify.
std::optional<TypePtr> unifyTypes(const TypePtr& a, const TypePtr& b,
                                  bool default_to_union = false);

// Type variables of a schema bound so far.
using TypeBindings = KeyedMap<std::string, TypePtr>;
// Matches `formal` (which may hold variables) against `actual`, extending `bindings`. Returns the
// formal type with variables replaced, or nullopt with a reason.
std::optional<TypePtr> matchTypeVariables(const TypePtr& formal, const TypePtr& actual,
                                          TypeBindings& bindings, std::string* why = nullptr);
// The type without the refinements of any tensor in it.
TypePtr unshapedType(const TypePtr& type);
// Replaces variables by their bindings; nullopt when one is unbound.
std::optional<TypePtr> substituteTypeVariables(const TypePtr& type, const TypeBindings& bindings);

}  // namespace wick

#pragma GCC visibility pop

#include "core/type.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/ivalue.h"

namespace wick {

namespace {

// The same type for good, by a pointer whose copies count nothing: every list and tuple that a
// program makes holds its type, on all threads.
TypePtr immortal(TypePtr type) {
  const Type* object = type.get();
  new TypePtr(std::move(type));
  return TypePtr(TypePtr(), object);
}

}  // namespace

std::string readableClassName(std::string_view qualified_name) {
  constexpr std::string_view kPrefix = "__torch__.", kMangled = "___torch_mangle_";
  if (qualified_name.starts_with(kPrefix)) qualified_name.remove_prefix(kPrefix.size());
  std::string readable(qualified_name);
  for (size_t at; (at = readable.find(kMangled)) != std::string::npos;) {
    const size_t dot = readable.find('.', at);
    readable.erase(at, dot == std::string::npos ? dot : dot + 1 - at);
  }
  return readable;
}

// A type without parameters.
struct SimpleTypes {
  struct SimpleType : Type {
    SimpleType(TypeKind kind, const char* text) : Type(kind), text(text) {}
    std::string str() const override { return text; }
    std::string annotation() const override { return kind() == TypeKind::Number ? "number" : text; }
    const char* text;
  };

  std::vector<TypePtr> types;
  SimpleTypes() {
#define WICK_TYPE(name, text) \
  types.push_back(immortal(std::make_shared<const SimpleType>(TypeKind::name, text)));
    WICK_FORALL_SIMPLE_TYPES(WICK_TYPE)
#undef WICK_TYPE
  }
};

namespace {

constexpr size_t kSimpleCount = static_cast<size_t>(TypeKind::Tensor);

// List[T] and Optional[T] of types without parameters and of Tensor are made once: schemas and
// emitted programs ask for them all the time.
template <class T>
const TypePtr& sharedOf(size_t slot) {
  static const std::vector<TypePtr>* table = [] {
    auto* made = new std::vector<TypePtr>;
    for (size_t i = 0; i < kSimpleCount; ++i) {
      made->push_back(immortal(std::make_shared<const T>(Type::get(static_cast<TypeKind>(i)))));
    }
    made->push_back(immortal(std::make_shared<const T>(types::Tensor())));
    return made;
  }();
  return (*table)[slot];
}

template <class T>
TypePtr makeSingle(TypePtr element) {
  size_t kind = static_cast<size_t>(element->kind());
  if (kind < kSimpleCount || element == types::Tensor()) return sharedOf<T>(kind);
  return std::make_shared<const T>(std::move(element));
}

bool sameTypes(const std::vector<TypePtr>& a, const std::vector<TypePtr>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), sameType);
}

std::string joinStr(const std::vector<TypePtr>& types) {
  std::string out;
  for (const TypePtr& t : types) {
    if (!out.empty()) out += ", ";
    out += t->str();
  }
  return out;
}

std::string joinAnnotations(const std::vector<TypePtr>& types) {
  std::string out;
  for (const TypePtr& t : types) {
    if (!out.empty()) out += ", ";
    out += t->annotation();
  }
  return out;
}

// PyTorch's numbering of kinds decides the order in which unions print.
int unionRank(TypeKind kind) {
  static constexpr TypeKind kOrder[] = {
      TypeKind::Any,      TypeKind::Enum,      TypeKind::AnyEnum,   TypeKind::Tensor,
      TypeKind::Storage,  TypeKind::Tuple,     TypeKind::List,      TypeKind::Dict,
      TypeKind::Number,   TypeKind::Float,     TypeKind::Complex,   TypeKind::Future,
      TypeKind::Await,    TypeKind::RRef,      TypeKind::Int,       TypeKind::None,
      TypeKind::String,   TypeKind::Generator, TypeKind::Bool,      TypeKind::Optional,
      TypeKind::Var,      TypeKind::Device,    TypeKind::Stream,    TypeKind::Function,
      TypeKind::Class,    TypeKind::Capsule,   TypeKind::Interface, TypeKind::AnyList,
      TypeKind::AnyTuple, TypeKind::AnyClass,  TypeKind::Union};
  return static_cast<int>(std::find(std::begin(kOrder), std::end(kOrder), kind) -
                          std::begin(kOrder));
}

void flattenUnion(const TypePtr& type, std::vector<TypePtr>& out) {
  if (type->kind() == TypeKind::Union) {
    for (const TypePtr& t : type->contained()) flattenUnion(t, out);
  } else if (auto* optional = type->as<OptionalType>()) {
    flattenUnion(optional->element(), out);
    flattenUnion(types::None(), out);
  } else {
    out.push_back(type);
  }
}

bool hasMember(const std::vector<TypePtr>& members, TypeKind kind) {
  return std::any_of(members.begin(), members.end(),
                     [&](const TypePtr& t) { return t->kind() == kind; });
}

}  // namespace

const TypePtr& Type::get(TypeKind kind) {
  static const SimpleTypes* simple = new SimpleTypes;
  WICK_ASSERT(static_cast<size_t>(kind) < simple->types.size(), "type kind {} has parameters",
              static_cast<int>(kind));
  return simple->types[static_cast<size_t>(kind)];
}

std::string Type::str() const {
  return "<type>";
}

std::string Type::annotation() const {
  return str();
}

const std::vector<TypePtr>& Type::contained() const {
  static const std::vector<TypePtr> none;
  return none;
}

bool Type::acceptsNone() const {
  switch (kind_) {
    case TypeKind::None:
    case TypeKind::Optional:
    case TypeKind::Any:
      return true;
    case TypeKind::Union:
      return std::any_of(contained().begin(), contained().end(),
                         [](const TypePtr& t) { return t->acceptsNone(); });
    default:
      return false;
  }
}

void Type::measure(const std::vector<TypePtr>& arguments) {
  uint64_t parts = parts_;
  for (const TypePtr& t : arguments) {
    parts += t->parts_;
    depth_ = std::max(depth_, t->depth_ + 1);
    has_variables_ |= t->has_variables_;
    has_refinement_ |= t->has_refinement_ || (t->kind_ == TypeKind::Tensor && t != types::Tensor());
  }
  WICK_CHECK(parts <= kMaxTypeParts, "a type of {} parts is too large; {} are allowed", parts,
             kMaxTypeParts);
  WICK_CHECK(depth_ <= kMaxTypeDepth, "a type nests deeper than {}", kMaxTypeDepth);
  parts_ = static_cast<uint32_t>(parts);
}

void Type::measureName(const std::string& name) {
  constexpr size_t kLettersOfPart = 32;
  const uint64_t parts = parts_ + name.size() / kLettersOfPart;
  WICK_CHECK(parts <= kMaxTypeParts, "a type's name of {} bytes is too long", name.size());
  parts_ = static_cast<uint32_t>(parts);
}

namespace types {

const TypePtr& Tensor() {
  static const TypePtr* type =
      new TypePtr(immortal(std::make_shared<const TensorType>(TensorType::Facts{})));
  return *type;
}

TypePtr Optional(TypePtr element) {
  switch (element->kind()) {
    case TypeKind::Optional:
    case TypeKind::None:
      return element;
    case TypeKind::Union:
      return unionOf({std::move(element), None()});
    default:
      return makeSingle<OptionalType>(std::move(element));
  }
}

TypePtr List(TypePtr element) {
  return makeSingle<ListType>(std::move(element));
}

TypePtr Dict(TypePtr key, TypePtr value) {
  return std::make_shared<const DictType>(std::move(key), std::move(value));
}

TypePtr Tuple(std::vector<TypePtr> elements) {
  return std::make_shared<const TupleType>(std::move(elements));
}

TypePtr Future(TypePtr element) {
  return std::make_shared<const FutureType>(std::move(element));
}

TypePtr Var(std::string name) {
  return std::make_shared<const VarType>(std::move(name));
}

}  // namespace types

// ---- Tensor ----

TypePtr TensorType::create(Facts facts) {
  if (facts.sizes && !facts.dim) facts.dim = facts.sizes->size();
  bool plain = !facts.dtype && !facts.device && !facts.dim && !facts.strides &&
               !facts.requires_grad && !facts.undefined;
  if (plain) return types::Tensor();
  return std::make_shared<const TensorType>(std::move(facts));
}

std::string TensorType::str() const {
  const Facts& f = facts_;
  std::string out = f.dtype ? std::string(scalarTypeName(*f.dtype)) : "Tensor";
  std::vector<std::string> parts;
  if (f.dim) {
    for (size_t i = 0; i < *f.dim; ++i) {
      std::optional<int64_t> size = f.sizes && i < f.sizes->size() ? (*f.sizes)[i] : std::nullopt;
      if (!size) {
        parts.push_back("*");
      } else {
        parts.push_back(*size < 0 ? fmt::format("SS({})", *size) : fmt::format("{}", *size));
      }
    }
    if (f.strides && !f.strides->empty()) {
      parts.push_back(fmt::format("strides=[{}]", fmt::join(*f.strides, ", ")));
    }
  }
  if (f.requires_grad) parts.push_back(fmt::format("requires_grad={}", *f.requires_grad ? 1 : 0));
  if (f.device) parts.push_back("device=" + f.device->str());
  if (f.dim || !parts.empty()) out += fmt::format("({})", fmt::join(parts, ", "));
  if (f.undefined) out += "[Undefined]";
  return out;
}

bool TensorType::equals(const Type& other) const {
  const auto* o = other.as<TensorType>();
  if (!o) return false;
  const Facts& a = facts_;
  const Facts& b = o->facts_;
  return a.dtype == b.dtype && a.device == b.device && a.dim == b.dim && a.sizes == b.sizes &&
         a.strides == b.strides && a.requires_grad == b.requires_grad && a.undefined == b.undefined;
}

// ---- one type argument ----

bool SingleElementType::equals(const Type& other) const {
  return kind() == other.kind() &&
         *element() == *static_cast<const SingleElementType&>(other).element();
}

std::string ListType::str() const {
  return element()->str() + "[]";
}
std::string ListType::annotation() const {
  return "List[" + element()->annotation() + "]";
}
std::string OptionalType::str() const {
  return element()->str() + "?";
}
std::string OptionalType::annotation() const {
  return "Optional[" + element()->annotation() + "]";
}
std::string FutureType::str() const {
  return "Future[" + element()->str() + "]";
}
std::string FutureType::annotation() const {
  return "Future[" + element()->annotation() + "]";
}
std::string AwaitType::str() const {
  return "Await[" + element()->str() + "]";
}
std::string AwaitType::annotation() const {
  return "Await[" + element()->annotation() + "]";
}
std::string RRefType::str() const {
  return "RRef[" + element()->str() + "]";
}
std::string RRefType::annotation() const {
  return "RRef[" + element()->annotation() + "]";
}

// ---- Dict, Union, Tuple ----

std::string DictType::str() const {
  return fmt::format("Dict({}, {})", key()->str(), value()->str());
}
std::string DictType::annotation() const {
  return fmt::format("Dict[{}, {}]", key()->annotation(), value()->annotation());
}
bool DictType::equals(const Type& other) const {
  const auto* o = other.as<DictType>();
  return o && sameTypes(contained_, o->contained_);
}

UnionType::UnionType(std::vector<TypePtr> members) : Type(kKind), contained_(std::move(members)) {
  measure(contained_);
  WICK_CHECK(parts() <= kMaxUnionParts, "a Union of {} parts is too large; {} are allowed", parts(),
             kMaxUnionParts);
}
std::string UnionType::str() const {
  return "Union(" + joinStr(contained_) + ")";
}
std::string UnionType::annotation() const {
  return "Union[" + joinAnnotations(contained_) + "]";
}
bool UnionType::equals(const Type& other) const {
  const auto* o = other.as<UnionType>();
  return o && sameTypes(contained_, o->contained_);
}

TypePtr unionOf(const std::vector<TypePtr>& members) {
  WICK_CHECK(!members.empty(), "Union: expected at least one type");
  std::vector<TypePtr> flat;
  for (const TypePtr& t : members) flattenUnion(t, flat);
  WICK_CHECK(flat.size() <= kMaxUnionParts, "a Union of {} types is too large; {} are allowed",
             flat.size(), kMaxUnionParts);
  std::vector<TypePtr> kept;
  bool has_none = false;
  for (const TypePtr& t : flat) {
    if (t->kind() == TypeKind::None) {
      has_none = true;
      continue;
    }
    bool covered =
        std::any_of(kept.begin(), kept.end(), [&](const TypePtr& k) { return t->isSubtypeOf(*k); });
    if (covered) continue;
    std::erase_if(kept, [&](const TypePtr& k) { return k->isSubtypeOf(*t); });
    kept.push_back(t);
  }
  if (hasMember(kept, TypeKind::Int) && hasMember(kept, TypeKind::Float) &&
      hasMember(kept, TypeKind::Complex)) {
    std::erase_if(kept, [](const TypePtr& t) { return t->isNumeric(); });
    kept.push_back(types::Number());
  }
  if (kept.empty()) return types::None();
  if (kept.size() == 1) return has_none ? types::Optional(kept[0]) : kept[0];
  if (has_none) kept.push_back(types::None());
  std::sort(kept.begin(), kept.end(), [](const TypePtr& a, const TypePtr& b) {
    int ra = unionRank(a->kind());
    int rb = unionRank(b->kind());
    return ra != rb ? ra < rb : a->str() < b->str();
  });
  return std::make_shared<const UnionType>(std::move(kept));
}

TupleType::TupleType(std::vector<TypePtr> elements) : Type(kKind), contained_(std::move(elements)) {
  measure(contained_);
}

TupleType::TupleType(std::string name, std::vector<std::string> fields,
                     std::vector<TypePtr> elements, std::vector<IValue> defaults)
    : Type(kKind),
      contained_(std::move(elements)),
      name_(std::move(name)),
      fields_(std::move(fields)),
      defaults_(std::make_unique<std::vector<IValue>>(std::move(defaults))) {
  WICK_CHECK(fields_.size() == contained_.size(), "NamedTuple {}: {} fields but {} types", name_,
             fields_.size(), contained_.size());
  WICK_CHECK(defaults_->size() <= fields_.size(), "NamedTuple {}: {} defaults for {} fields", name_,
             defaults_->size(), fields_.size());
  measureName(name_);
  for (const std::string& field : fields_) measureName(field);
  measure(contained_);
}

TupleType::~TupleType() = default;

const std::vector<IValue>& TupleType::defaults() const {
  static const std::vector<IValue> none;
  return defaults_ ? *defaults_ : none;
}

std::string TupleType::str() const {
  if (!isNamed()) return "(" + joinStr(contained_) + ")";
  std::string out;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (i) out += ", ";
    out += fields_[i] + " : " + contained_[i]->str();
  }
  return "NamedTuple(" + out + ")";
}

std::string TupleType::annotation() const {
  if (isNamed()) return name_;
  if (contained_.empty()) return "Tuple[()]";
  return "Tuple[" + joinAnnotations(contained_) + "]";
}

bool TupleType::equals(const Type& other) const {
  const auto* o = other.as<TupleType>();
  return o && name_ == o->name_ && fields_ == o->fields_ && sameTypes(contained_, o->contained_);
}

// ---- Enum, Interface, Function, Var ----

EnumType::EnumType(std::string name, TypePtr value_type,
                   std::vector<std::pair<std::string, IValue>> members)
    : Type(kKind),
      name_(std::move(name)),
      value_type_(std::move(value_type)),
      members_(std::move(members)) {
  measureName(name_);
  for (size_t i = 0; i < members_.size(); ++i) positions_.emplace(members_[i].first, i);
}

const std::pair<std::string, IValue>* EnumType::findMember(std::string_view name) const {
  const auto found = positions_.find(name);
  return found == positions_.end() ? nullptr : &members_[found->second];
}

EnumType::~EnumType() = default;

std::string EnumType::str() const {
  return "Enum<" + name_ + ">";
}

bool EnumType::equals(const Type& other) const {
  const auto* o = other.as<EnumType>();
  if (!o || name_ != o->name_ || *value_type_ != *o->value_type_) return false;
  return std::equal(
      members_.begin(), members_.end(), o->members_.begin(), o->members_.end(),
      [](const auto& a, const auto& b) { return a.first == b.first && a.second.equals(b.second); });
}

std::string InterfaceType::str() const {
  return "InterfaceType<" + name_.substr(name_.rfind('.') + 1) + ">";
}

bool FunctionType::equals(const Type& other) const {
  const auto* o = other.as<FunctionType>();
  return o && function_ == o->function_;
}

bool VarType::equals(const Type& other) const {
  const auto* o = other.as<VarType>();
  return o && name_ == o->name_;
}

}  // namespace wick

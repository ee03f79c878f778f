// IValue: any value of a TorchScript program in 16 bytes. Numbers, booleans and devices are stored
// in place; everything else is a reference-counted object that copies share, as in Python.
#pragma once

#include <array>
#include <complex>
#include <concepts>
#include <functional>
#include <iosfwd>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/stripes.h"
#include "core/tensor.h"
#include "core/type.h"

#pragma GCC visibility push(default)

namespace wick {

class ListObject;
class DictObject;
class TupleObject;
class Object;
class EnumObject;
class FutureObject;
class GeneratorObject;
class IValue;
using ListRef = Ref<ListObject>;
using DictRef = Ref<DictObject>;
using TupleRef = Ref<TupleObject>;
using ObjectRef = Ref<Object>;
using FutureRef = Ref<FutureObject>;
using GeneratorRef = Ref<GeneratorObject>;

// How a C++ type becomes a value and back; defined in core/value_conversions.h.
template <class T>
struct ValueConversion;

namespace detail {
template <class T>
inline constexpr bool kIsCharacter =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

// Whether a C++ type has a form as a value, and whether it is a container of such.
template <class T>
inline constexpr bool kHasValue = (std::is_arithmetic_v<T> && !kIsCharacter<T>);
template <class T>
inline constexpr bool kIsContainer = false;

template <>
inline constexpr bool kHasValue<IValue> = true;
template <>
inline constexpr bool kHasValue<Tensor> = true;
template <>
inline constexpr bool kHasValue<Device> = true;
template <>
inline constexpr bool kHasValue<DType> = true;
template <>
inline constexpr bool kHasValue<std::string> = true;
template <>
inline constexpr bool kHasValue<std::string_view> = true;
template <>
inline constexpr bool kHasValue<const char*> = true;
template <class T>
inline constexpr bool kHasValue<std::complex<T>> = true;
template <class T>
inline constexpr bool kHasValue<std::optional<T>> = kHasValue<T>;

// A vector of values is the arguments of a call, never one of them: it has no element type.
template <class T, class A>
inline constexpr bool kIsContainer<std::vector<T, A>> = kHasValue<T> && !std::is_same_v<T, IValue>;
template <class T, size_t N>
inline constexpr bool kIsContainer<std::array<T, N>> = kHasValue<T>;
template <class T, size_t N>
inline constexpr bool kIsContainer<std::span<T, N>> = kHasValue<std::remove_const_t<T>>;
template <>
inline constexpr bool kIsContainer<IntSpan> = true;
template <>
inline constexpr bool kIsContainer<DimVector> = true;
template <class K, class V, class C, class A>
inline constexpr bool kIsContainer<std::map<K, V, C, A>> = kHasValue<K>&& kHasValue<V>;
template <class K, class V, class H, class E, class A>
inline constexpr bool kIsContainer<std::unordered_map<K, V, H, E, A>> = kHasValue<K>&& kHasValue<V>;
template <class A, class B>
inline constexpr bool kIsContainer<std::pair<A, B>> = kHasValue<A>&& kHasValue<B>;
template <class... T>
inline constexpr bool kIsContainer<std::tuple<T...>> = (kHasValue<T> && ...);

template <class T>
requires(kIsContainer<T>) inline constexpr bool kHasValue<T> = true;
}  // namespace detail

class StringObject : public RefCounted {
 public:
  explicit StringObject(std::string text) : value(std::move(text)) {
    noteMemory(static_cast<int64_t>(value.capacity()));
  }
  ~StringObject() override { noteMemory(-static_cast<int64_t>(value.capacity())); }
  const std::string value;
};

class ComplexObject : public RefCounted {
 public:
  explicit ComplexObject(std::complex<double> number) : value(number) {}
  const std::complex<double> value;
};

class IValue {
 public:
  enum class Tag : uint32_t {
    None,
    Int,
    Double,
    Bool,
    Device,  // no reference count up to here
    Tensor,
    String,
    Complex,
    List,
    Dict,
    Tuple,
    Object,
    Enum,
    Future,
    Generator,
    Capsule,
  };

  IValue() : tag_(Tag::None) { payload_.as_int = 0; }
  IValue(std::nullopt_t) : IValue() {}
  IValue(int64_t v) : tag_(Tag::Int) { payload_.as_int = v; }
  IValue(int32_t v) : IValue(static_cast<int64_t>(v)) {}
  // Every other integer too. RuntimeError for one beyond int64_t.
  template <std::integral T>
  requires(!detail::kIsCharacter<T>) IValue(T v) : IValue(static_cast<int64_t>(v)) {
    if (!std::in_range<int64_t>(v)) throwTooLarge(static_cast<uint64_t>(v));
  }
  // A character is no number and no text: write int64_t{c} or std::string(1, c).
  template <class T>
  requires(detail::kIsCharacter<T>) IValue(T)
  = delete;
  IValue(double v) : tag_(Tag::Double) { payload_.as_double = v; }
  IValue(bool v) : tag_(Tag::Bool) {
    payload_.as_int = 0;
    payload_.as_bool = v;
  }
  IValue(wick::Device v) : tag_(Tag::Device) {
    payload_.as_int = 0;
    payload_.as_device = v;
  }
  // Programs carry both as ints.
  IValue(DType v) : IValue(static_cast<int64_t>(v)) {}
  IValue(MemoryFormat v) : IValue(static_cast<int64_t>(v)) {}
  IValue(std::complex<double> v) : IValue(Tag::Complex, makeRef<ComplexObject>(v).leak()) {}
  // An undefined tensor becomes None.
  IValue(wick::Tensor v);
  IValue(std::string v) : IValue(Tag::String, makeRef<StringObject>(std::move(v)).leak()) {}
  IValue(std::string_view v) : IValue(std::string(v)) {}
  IValue(const char* v) : IValue(std::string(v)) {}
  IValue(ListRef v);
  IValue(DictRef v);
  IValue(TupleRef v);
  IValue(ObjectRef v);
  IValue(Ref<EnumObject> v);
  IValue(FutureRef v);
  IValue(GeneratorRef v);
  template <class T>
  IValue(std::optional<T> v) : IValue() {
    if (v) *this = IValue(std::move(*v));
  }
  // Lists of vectors, arrays and spans, dicts of maps, tuples of tuples and pairs, of anything that
  // has a form as a value: IValue(std::vector<int64_t>{1, 2}). Needs core/value_conversions.h.
  template <class T>
  requires(detail::kIsContainer<std::remove_cvref_t<T>>) IValue(T&& v)
      : IValue(ValueConversion<std::remove_cvref_t<T>>::make(std::forward<T>(v))) {}
  template <class T>
  requires(std::is_pointer_v<T> && !std::is_same_v<T, char*>) IValue(T)
  = delete;  // a pointer would become a bool

  // Any other reference-counted object, which programs can only pass around. An absent one becomes
  // None.
  static IValue capsule(Ref<RefCounted> object) {
    return object ? IValue(Tag::Capsule, object.leak()) : IValue();
  }

  // A value without a reference of its own, for as long as somebody else keeps the object. It may
  // be copied and moved, but not destroyed: forget() it.
  static IValue borrow(const ObjectRef& object);
  // Becomes None without giving up a reference.
  void forget() { tag_ = Tag::None; }

  IValue(const IValue& o) : payload_(o.payload_), tag_(o.tag_) {
    if (isCounted()) payload_.as_object->retain();
  }
  IValue(IValue&& o) noexcept : payload_(o.payload_), tag_(o.tag_) { o.tag_ = Tag::None; }
  IValue& operator=(IValue o) noexcept {
    std::swap(payload_, o.payload_);
    std::swap(tag_, o.tag_);
    return *this;
  }
  ~IValue() {
    if (isCounted()) payload_.as_object->release();
  }

  Tag tag() const { return tag_; }
  bool isNone() const { return tag_ == Tag::None; }
  bool isInt() const { return tag_ == Tag::Int; }
  bool isDouble() const { return tag_ == Tag::Double; }
  bool isBool() const { return tag_ == Tag::Bool; }
  bool isComplex() const { return tag_ == Tag::Complex; }
  bool isNumber() const { return isInt() || isDouble() || isBool() || isComplex(); }
  bool isDevice() const { return tag_ == Tag::Device; }
  bool isTensor() const { return tag_ == Tag::Tensor; }
  bool isString() const { return tag_ == Tag::String; }
  bool isList() const { return tag_ == Tag::List; }
  bool isDict() const { return tag_ == Tag::Dict; }
  bool isTuple() const { return tag_ == Tag::Tuple; }
  bool isObject() const { return tag_ == Tag::Object; }
  bool isEnum() const { return tag_ == Tag::Enum; }
  bool isFuture() const { return tag_ == Tag::Future; }
  bool isGenerator() const { return tag_ == Tag::Generator; }
  bool isCapsule() const { return tag_ == Tag::Capsule; }

  // Each throws RuntimeError ("expected int, got str") when the tag is another.
  int64_t toInt() const { return expect(Tag::Int), payload_.as_int; }
  double toDouble() const { return expect(Tag::Double), payload_.as_double; }
  bool toBool() const { return expect(Tag::Bool), payload_.as_bool; }
  wick::Device toDevice() const { return expect(Tag::Device), payload_.as_device; }
  std::complex<double> toComplex() const {
    return expect(Tag::Complex), static_cast<ComplexObject*>(payload_.as_object)->value;
  }
  const std::string& toString() const {
    return expect(Tag::String), static_cast<StringObject*>(payload_.as_object)->value;
  }
  // None gives an undefined tensor.
  wick::Tensor toTensor() const&;
  wick::Tensor toTensor() &&;
  // References into the heap object; valid while some IValue holds it.
  ListObject& toList() const;
  DictObject& toDict() const;
  TupleObject& toTuple() const;
  Object& toObject() const;
  EnumObject& toEnum() const;
  FutureObject& toFuture() const;
  GeneratorObject& toGenerator() const;
  RefCounted& toCapsule() const { return expect(Tag::Capsule), *payload_.as_object; }
  // RuntimeError also for None.
  wick::Tensor tensor() const {
    expect(Tag::Tensor);
    return toTensor();
  }
  // As a C++ type, which may be a container (core/value_conversions.h):
  //   value.to<std::vector<int64_t>>(), value.to<std::map<std::string, wick::Tensor>>()
  // An int is also a floating-point number, a tuple also a vector. RuntimeError that tells what was
  // expected, what was found and where.
  template <class T>
  T to() const {
    return ValueConversion<T>::from(*this);
  }

  // Elements of containers. RuntimeError when the value is none of those that are named.
  // How many a list, tuple or dict holds.
  size_t size() const;
  // An element of a list or tuple by its place, from the end when negative; the value of a dict's
  // key; a field of a named tuple; an attribute of an object. RuntimeError ("list index out of
  // range: …", "KeyError: …") when there is none.
  IValue at(const IValue& key) const;
  template <std::integral T>
  IValue operator[](T index) const {
    return at(IValue(index));
  }
  IValue operator[](std::string_view key) const { return at(IValue(key)); }
  // Whether at() would find it.
  bool contains(const IValue& key) const;
  // A dict's keys with their values, in the order in which they came.
  std::vector<std::pair<IValue, IValue>> items() const;
  // The elements of a list or tuple, and the keys of a dict, as Python iterates over them. An
  // element that is added to a list meanwhile is seen; a dict's keys are those of the beginning.
  class Iterator;
  Iterator begin() const;
  std::default_sentinel_t end() const { return {}; }
  // The elements of a list or tuple.
  const std::vector<IValue>& elements() const;
  // Numbers, converted: bool and int to double, and so on. RuntimeError when it would lose the
  // kind.
  double numberToDouble() const;
  int64_t numberToInt() const;
  std::complex<double> numberToComplex() const;
  // A list or tuple of ints as sizes; a single int gives one size.
  DimVector toDims() const;
  std::vector<wick::Tensor> toTensors() const;

  // Unchecked, for the interpreter, whose programs are typed.
  int64_t rawInt() const { return payload_.as_int; }
  double rawDouble() const { return payload_.as_double; }
  bool rawBool() const { return payload_.as_bool; }
  RefCounted* rawObject() const { return payload_.as_object; }
  bool isCounted() const {
    return static_cast<uint32_t>(tag_) >= static_cast<uint32_t>(Tag::Tensor);
  }

  // Pins the object, with a tensor's storage, because its views hold that too (core/ref.h). Nothing
  // to do for a value without an object.
  void pin() const;
  void unpin() const;

  // The most precise static type of the value; lists and dicts know theirs.
  TypePtr type() const;
  // "int", "Tensor": the tag's name, for messages.
  std::string_view tagName() const;
  // Python's `is`: the same object; None, numbers and devices, which have no identity, when they
  // are of one kind and equal.
  bool isSame(const IValue& o) const;
  // Python's ==, deep (1 == 1.0 == True). Tensors compare by shape and all elements, objects by
  // identity. Takes the time that the values take in memory, however they share their parts.
  // RuntimeError when values are nested too deeply or hold themselves.
  bool equals(const IValue& o) const;
  // Equal values have equal hashes; tensors and objects hash by identity. RuntimeError ("unhashable
  // type") for lists and dicts.
  size_t hash() const;
  // The same for tables: different in each process, so that no program can choose values whose
  // hashes meet (core/keyed_hash.h).
  size_t keyHash() const;
  // Texts longer than kMaxTextBytes (core/text_limit.h) are a RuntimeError.
  // Python's repr(): 'text', 1.0, [1, 2]; tensors as formatTensor() prints them.
  std::string repr() const;
  // Python's str(): as repr(), but a string itself and a device or enum by its name.
  std::string str() const;
  // As TorchScript's own print() and str() write it: "1." for 1.0, strings without quotes also
  // inside of containers.
  std::string printed() const;
  friend std::ostream& operator<<(std::ostream& out, const IValue& value);  // repr()
  // For messages: repr(), but no more than about `bytes` of it are shown, or looked at.
  std::string shortRepr(size_t bytes = 1000) const;

 private:
  IValue(Tag tag, RefCounted* owned) : tag_(tag) { payload_.as_object = owned; }
  void expect(Tag tag) const {
    if (tag_ != tag) throwWrongTag(tag);
  }
  [[noreturn]] void throwWrongTag(Tag expected) const;
  [[noreturn]] static void throwTooLarge(uint64_t v);

  union Payload {
    Payload() : as_int(0) {}
    int64_t as_int;
    double as_double;
    bool as_bool;
    wick::Device as_device;
    RefCounted* as_object;
  } payload_;
  Tag tag_;
};
static_assert(sizeof(IValue) == 16);

class IValue::Iterator {
 public:
  using iterator_concept = std::forward_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = IValue;
  using difference_type = std::ptrdiff_t;
  using reference = IValue;
  using pointer = void;

  Iterator() = default;
  IValue operator*() const { return elements_.at(IValue(index_)); }
  Iterator& operator++() {
    ++index_;
    return *this;
  }
  Iterator operator++(int) {
    Iterator before = *this;
    ++index_;
    return before;
  }
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }
  friend bool operator==(const Iterator& a, std::default_sentinel_t) {
    return a.elements_.isNone() || static_cast<size_t>(a.index_) >= a.elements_.size();
  }

 private:
  friend class IValue;
  explicit Iterator(IValue elements) : elements_(std::move(elements)) {}
  IValue elements_;  // a list or tuple
  int64_t index_ = 0;
};

// For objects that are made without the type that they must have: UsageError.
[[noreturn]] void throwNoType(const char* object);

// More elements than any program means to have, fewer than exhaust memory at once.
inline constexpr size_t kMaxListElements = size_t{1} << 30;

class ListObject : public RefCounted {
 public:
  explicit ListObject(TypePtr type, std::vector<IValue> values = {})
      : element_type(std::move(type)), elements(std::move(values)) {
    if (!element_type) throwNoType("list");
    count();
  }
  ~ListObject() override { noteMemory(-counted_); }
  // To be called before a program's list grows, by as many elements as `op` adds. RuntimeError when
  // the list would be too long, or memory is exhausted (core/memory_limit.h).
  void makeRoom(const char* op, size_t more) {
    if (more > elements.capacity() - elements.size()) grow(op, more);
  }
  // Gives the list other elements. The old ones are released last, because they may know the list.
  void replace(std::vector<IValue> values) {
    elements.swap(values);
    count();
  }
  TypePtr element_type;
  std::vector<IValue> elements;

 private:
  void grow(const char* op, size_t more);
  void count() {
    const auto bytes = static_cast<int64_t>(elements.capacity() * sizeof(IValue));
    noteMemory(bytes - std::exchange(counted_, bytes));
  }
  int64_t counted_ = 0;  // bytes
};
ListRef makeList(TypePtr element_type, std::vector<IValue> elements = {});
ListRef makeIntList(IntSpan values);
ListRef makeTensorList(const std::vector<Tensor>& values);

// Keeps insertion order, as Python does. Keys are compared as Python's dicts do: the same object
// first (tensors only so), then ==; a NaN finds itself. A key that cannot be hashed is a
// RuntimeError, as is a dict of 2^30 keys; the dict stays as it was.
class DictObject : public RefCounted {
 public:
  DictObject(TypePtr of_keys, TypePtr of_values)
      : key_type(std::move(of_keys)), value_type(std::move(of_values)) {
    if (!key_type || !value_type) throwNoType("dict");
  }
  ~DictObject() override { noteMemory(-counted_); }
  TypePtr key_type;
  TypePtr value_type;

  size_t size() const { return size_; }
  // Valid until the dict is changed.
  const IValue* find(const IValue& key) const;
  // RuntimeError when the dict would be too large, or memory is exhausted (core/memory_limit.h).
  void set(IValue key, IValue value);
  bool erase(const IValue& key);
  void clear();
  // Takes out the entry that was inserted last; nullopt when empty.
  std::optional<std::pair<IValue, IValue>> popLast();
  // In insertion order; entries are copied out so that the dict may change meanwhile.
  std::vector<std::pair<IValue, IValue>> items() const;
  std::vector<IValue> keys() const;
  std::vector<IValue> values() const;
  // Whether test(key, value) is true for all entries, in insertion order; stops at the first for
  // which it is not. The test must not change the dict.
  template <class Test>
  bool all(Test test) const {
    for (const Entry& e : entries_) {
      if (e.hash != kTaken && !test(e.key, e.value)) return false;
    }
    return true;
  }

 private:
  struct Entry {
    IValue key;
    IValue value;
    uint64_t hash;  // kTaken: the entry was taken out
  };
  using Entries = std::vector<Entry>;
  using Index = std::vector<uint32_t>;
  static constexpr uint64_t kTaken = 0;
  static constexpr size_t kNowhere = SIZE_MAX;

  static uint64_t hashOf(const IValue& key);
  size_t locate(const IValue& key, uint64_t hash) const;
  void insertSlot(size_t entry);
  void eraseSlot(size_t entry);
  void makeIndex(size_t entries);
  void compact();
  void makeRoom();
  // Tells how much memory is held now.
  void count() {
    const auto bytes = static_cast<int64_t>(entries_.capacity() * sizeof(Entry) +
                                            index_.capacity() * sizeof(uint32_t));
    noteMemory(bytes - std::exchange(counted_, bytes));
  }

  Entries entries_;
  // Places in entries_ by hash, open addressing: a power of two of slots, at most half of them
  // used. Empty while there are few entries, which are looked through.
  Index index_;
  size_t size_ = 0;
  int64_t counted_ = 0;  // bytes
};

class TupleObject : public RefCounted {
 public:
  explicit TupleObject(std::vector<IValue> values,
                       std::shared_ptr<const TupleType> named_type = nullptr)
      : elements(std::move(values)), named(std::move(named_type)) {
    noteMemory(bytes());
  }
  ~TupleObject() override { noteMemory(-bytes()); }
  const std::vector<IValue> elements;
  const std::shared_ptr<const TupleType> named;  // null for plain tuples

 private:
  int64_t bytes() const { return static_cast<int64_t>(elements.capacity() * sizeof(IValue)); }
};
TupleRef makeTuple(std::vector<IValue> elements, std::shared_ptr<const TupleType> named = nullptr);

// An instance of a ClassType: one slot an attribute, None until set.
class Object : public RefCounted {
 public:
  // `owner` keeps the code of the class alive (the CompilationUnit).
  Object(ClassTypePtr type, std::shared_ptr<void> owner);
  ~Object() override;
  const ClassTypePtr& type() const { return type_; }
  const std::shared_ptr<void>& owner() const { return owner_; }
  // `i` must be an attribute's slot; throws InternalError for one that the class does not have.
  const IValue& slot(size_t i) const {
    if (i >= slots_.size()) throwNoSlot(i);
    return slots_[i];
  }
  void setSlot(size_t i, IValue value);
  // By name; RuntimeError when there is no such attribute.
  const IValue& attr(const std::string& name) const;
  void setAttr(const std::string& name, IValue value);

  // To be called by whoever runs a method of a module. When a second thread does, the values of the
  // module's slots and of all objects below it are pinned for as long as the slots hold them.
  // Thread-safe, as reading slots is.
  void noteThread() const {
    if (threads_.isSecond()) [[unlikely]]
      pinSlots();
  }

 private:
  [[noreturn]] void throwNoSlot(size_t i) const;
  void pinSlots() const;
  ClassTypePtr type_;
  std::shared_ptr<void> owner_;
  std::vector<IValue> slots_;
  // That ran methods; several when the slots were pinned.
  mutable ThreadsSeen threads_;
};

class EnumObject : public RefCounted {
 public:
  EnumObject(std::shared_ptr<const EnumType> of_type, std::string its_name, IValue its_value)
      : type(std::move(of_type)), name(std::move(its_name)), value(std::move(its_value)) {
    if (!type) throwNoType("enum");
  }
  const std::shared_ptr<const EnumType> type;
  const std::string name;
  const IValue value;
};

// The result of a fork. Thread-safe.
class FutureObject : public RefCounted {
 public:
  // `run` names the run whose fork completes the future; null: somebody else does.
  explicit FutureObject(TypePtr element_type, const void* run = nullptr);
  ~FutureObject() override;
  const TypePtr element_type;
  const void* const run;  // only to be compared
  bool done() const;
  // One of these, once; InternalError otherwise.
  void complete(IValue value);
  void fail(std::exception_ptr error);
  // Runs `callback` once, when done (at once if it is already).
  void whenDone(std::function<void()> callback);
  // Blocks until done; rethrows the error of a failed one.
  IValue wait();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A stream of random numbers: PyTorch's CPU generator, a 32-bit Mersenne Twister. Thread-safe by
// its lock.
class GeneratorObject : public RefCounted {
 public:
  explicit GeneratorObject(uint64_t seed);
  ~GeneratorObject() override;
  void seed(uint64_t seed);
  uint64_t currentSeed() const;  // as given; the twister uses its low 32 bits
  uint32_t next32();
  uint64_t next64();  // two draws, the first in the high half
  // The next draws, under one lock.
  void fill32(uint32_t* out, size_t n);
  // [0, 1) with 24 or 53 bits.
  float uniformFloat();
  double uniformDouble();
  // Standard normal, Box-Muller with a cached second value.
  double normal();

 private:
  struct State;
  std::unique_ptr<State> state_;
};
// The generator that operators use when none is passed; it starts from PyTorch's default seed.
GeneratorObject& defaultGenerator();

inline IValue IValue::borrow(const ObjectRef& object) {
  return IValue(Tag::Object, object.get());
}

struct ClassType::Constant {
  std::string name;
  IValue value;
};

// How Python prints a float: the shortest digits that read back, "1.0", "1e-05", "inf", "nan".
std::string formatDouble(double value);
std::string formatComplex(std::complex<double> value);
// Python's repr of a string: quotes chosen and characters escaped.
std::string quoteString(std::string_view text);
// As TorchScript prints it: "1.", "0.10000000000000001", "1e-05".
std::string printedDouble(double value);
// As Python prints a torch.Tensor, "tensor([1., 2.])"; one of more than `max_elements` elements is
// summarized. Of a tensor outside CPU memory only the size is shown.
std::string formatTensor(const Tensor& tensor, int64_t max_elements = 1000);

}  // namespace wick

#pragma GCC visibility pop

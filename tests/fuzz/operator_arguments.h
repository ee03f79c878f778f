// Arguments of operators from bytes: values of a declared type, most of which fit together, among
// them whatever a program can make that is unusual.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_schema.h"
#include "core/ivalue.h"
#include "core/tensor.h"

namespace wick {

// Reads decisions from an input; zeros when it is used up.
class ByteSource {
 public:
  explicit ByteSource(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  uint64_t next(int bytes = 1) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value = value << 8 | (rest_.empty() ? 0 : static_cast<uint8_t>(rest_[0]));
      if (!rest_.empty()) rest_.remove_prefix(1);
    }
    return value;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next(n > 256 ? 2 : 1)) % n; }
  // True once in `n` times; never when the input is used up.
  bool chance(int64_t n) { return below(n) == n - 1; }
  template <class T, size_t N>
  const T& pick(const T (&table)[N]) {
    return table[below(static_cast<int64_t>(N))];
  }
  std::string text(size_t size) {
    std::string out(rest_.substr(0, size));
    rest_.remove_prefix(out.size());
    return out;
  }

 private:
  std::string_view rest_;
};

class OperatorArguments {
 public:
  // `schema`: the operator's. Layers get arguments that suit each other.
  OperatorArguments(ByteSource& bytes, const FunctionSchema& schema) : bytes_(bytes) {
    rank_ = bytes_.below(6);
    for (int64_t i = 0; i < rank_; ++i) base_.push_back(size());
    dtype_ = dtype();
    const auto has = [&](std::string_view name) { return schema.argumentIndex(name).has_value(); };
    if (has("weight") && has("stride") && !bytes_.chance(4)) spatial_ = 1 + bytes_.below(3);
    groups_ = bytes_.chance(3) ? 2 : 1;
  }
  // Lists that hold themselves would never be freed.
  ~OperatorArguments() {
    for (const IValue& list : cycles_) list.toList().elements.clear();
  }
  OperatorArguments(const OperatorArguments&) = delete;
  OperatorArguments& operator=(const OperatorArguments&) = delete;

  // RuntimeError for types whose values no program can make by itself.
  IValue make(const Argument& argument) {
    if (argument.default_value && bytes_.below(8) < 3) return *argument.default_value;
    if (bytes_.chance(40)) return any(2);
    if (spatial_ > 0 && argument.type->kind() == TypeKind::Tensor) {
      if (argument.name == "weight") return IValue(layerTensor(true));
      if (argument.name == "input" || argument.name == "self") return IValue(layerTensor(false));
    }
    return make(*withoutVariables(argument.type), argument.name, argument.fixed_size.value_or(0),
                3);
  }

  // A value of any type.
  IValue any(int depth) {
    switch (bytes_.below(18)) {
      case 0:
        return IValue();
      case 1:
        return IValue(integer());
      case 2:
        return IValue(number());
      case 3:
        return IValue(bytes_.chance(2));
      case 4:
        return IValue(text());
      case 5:
        return IValue(std::complex<double>(number(), number()));
      case 6:
        return IValue(device());
      case 7:
        return IValue(intList(""));
      case 8:
        return IValue(makeTensorList({tensor(), tensor()}));
      case 9:
        return object();
      case 10:
        return enumerator();
      case 11:
        return sharing();
      case 12:
        return holdingItself();
      case 13:
        return make(*types::Dict(types::String(), types::Any()), "", 0, depth - 1);
      case 14:
        return make(*types::Tuple({types::Any(), types::Int()}), "", 0, depth - 1);
      case 15:
        return make(*types::List(types::List(types::Any())), "", 0, depth - 1);
      case 16:
        return make(*types::Future(types::Int()), "", 0, depth - 1);
      default:
        return IValue(tensor());
    }
  }

  DType dtype() {
    static constexpr DType kDTypes[] = {
        DType::Float, DType::Float,         DType::Long,         DType::Double, DType::Bool,
        DType::Int,   DType::Half,          DType::ComplexFloat, DType::Byte,   DType::BFloat16,
        DType::Short, DType::ComplexDouble, DType::Char,         DType::Long};
    return bytes_.pick(kDTypes);
  }

 private:
  int64_t size() {
    static constexpr int64_t kSizes[] = {2, 1, 3, 0, 4, 5, 2, 3, 1, 8, 7, 17, 33, 2, 3, 64};
    return bytes_.pick(kSizes);
  }

  int64_t integer() {
    static constexpr int64_t kIntegers[] = {
        0,  1,  2,  3,   -1,  4,         1,         2,          0,         3,
        5,  -2, -3, 8,   16,  100,       255,       256,        1 << 16,   INT32_MAX,
        -7, 6,  7,  -64, 128, INT32_MIN, INT64_MAX, INT64_MIN,  1LL << 32, 1LL << 40,
        10, 1,  2,  0,   -1,  1LL << 62, 1LL << 61, -(1 << 30), 1 << 30,   1000000007};
    const int64_t at = bytes_.below(std::ssize(kIntegers) + 1);
    return at < std::ssize(kIntegers) ? kIntegers[at] : static_cast<int64_t>(bytes_.next(8));
  }
  // One that is seldom extreme.
  int64_t smallInteger() {
    return bytes_.chance(6) ? integer() : bytes_.below(5) - bytes_.chance(6);
  }

  double number() {
    using Limits = std::numeric_limits<double>;
    static constexpr double kNumbers[] = {0.0,
                                          1.0,
                                          0.5,
                                          2.0,
                                          -1.0,
                                          1e-5,
                                          0.1,
                                          3.25,
                                          -0.0,
                                          Limits::quiet_NaN(),
                                          Limits::infinity(),
                                          -Limits::infinity(),
                                          1e308,
                                          -1e308,
                                          Limits::denorm_min(),
                                          9.3e18,
                                          -9.3e18,
                                          4294967296.0,
                                          1e39,
                                          65520.0,
                                          255.5};
    return bytes_.pick(kNumbers);
  }

  std::string text() {
    static constexpr const char* kTexts[] = {"none",
                                             "mean",
                                             "sum",
                                             "floor",
                                             "trunc",
                                             "tanh",
                                             "linear",
                                             "constant",
                                             "reflect",
                                             "replicate",
                                             "circular",
                                             "fro",
                                             "nuc",
                                             "ij",
                                             "xy",
                                             "same",
                                             "valid",
                                             "bilinear",
                                             "nearest",
                                             "bicubic",
                                             "batchmean",
                                             "reduced",
                                             "complete",
                                             "ij,jk->ik",
                                             "...ij->...ji",
                                             "ii->i",
                                             "amax",
                                             "prod",
                                             "left",
                                             "right",
                                             "cpu",
                                             "cuda:0",
                                             "backward",
                                             "ortho",
                                             "gelu",
                                             "{} {:>9}",
                                             "%d %s %5.2f",
                                             "{0:,}",
                                             "a,b,,c",
                                             " \t\n",
                                             "",
                                             "utf-8",
                                             "{:999999999999}",
                                             "%999999999d",
                                             "{:.2147483648f}",
                                             "\xc3\xa9\xff",
                                             "12",
                                             "-0x1f",
                                             "1e400"};
    const int64_t at = bytes_.below(std::ssize(kTexts) + 3);
    if (at < std::ssize(kTexts)) return kTexts[at];
    if (at == std::ssize(kTexts)) return std::string(size_t{1} << bytes_.below(20), 'a');
    return bytes_.text(static_cast<size_t>(bytes_.below(24)));
  }

  Device device() {
    static constexpr const char* kDevices[] = {"cpu", "cpu", "cpu", "cuda", "cuda:1", "meta"};
    return Device::parse(bytes_.pick(kDevices));
  }

  // ---- tensors ----

  DimVector shape() {
    DimVector s = base_;
    switch (bytes_.below(8)) {
      case 1:  // broadcasts
        for (int64_t& d : s) d = bytes_.chance(2) ? 1 : d;
        break;
      case 2:
        if (!s.empty()) s.erase(0);
        break;
      case 3:
        std::reverse(s.begin(), s.end());
        break;
      case 4:
        s = DimVector();
        for (int64_t i = bytes_.below(5); i > 0; --i) s.push_back(size());
        break;
      case 5:  // rows that count from zero
        if (!s.empty()) s = DimVector{s[0]};
        break;
      default:
        break;
    }
    int64_t elements = 1;
    for (int64_t& d : s) {
      if (elements * d > kMaxMade) d = 1;
      elements *= std::max<int64_t>(d, 1);
    }
    return s;
  }

  // The elements repeat a few values.
  Tensor filled(const DimVector& sizes, DType type) {
    constexpr size_t kValues = 5;
    std::array<double, kValues> values{};
    const bool unusual = bytes_.chance(3);
    for (double& v : values) v = unusual ? number() : static_cast<double>(bytes_.below(4));
    if (!unusual && !isIntegral(type, true)) {
      for (double& v : values) v = v / 2 - 0.25;
    }
    Tensor t = Tensor::empty(sizes, DType::Double);
    double* data = t.data<double>();
    for (int64_t i = 0; i < t.numel(); ++i) data[i] = values[static_cast<size_t>(i) % kValues];
    t = t.to(type);
    if (type == DType::Long && unusual && t.numel() > 0) t.data<int64_t>()[0] = integer();
    return t;
  }

  Tensor tensor() { return tensor(bytes_.chance(4) ? dtype() : dtype_); }
  Tensor tensor(DType type) {
    Tensor t = placed(type);
    tensors_.push_back(t);
    return t;
  }

  Tensor placed(DType type) {
    switch (bytes_.below(16)) {
      case 8:
        return expanded(type);
      case 9:
        return overlapping(type);
      case 10:
      case 11:
        return tensors_.empty() ? filled(shape(), type) : viewOf(tensors_[pickTensor()]);
      case 12:
        return withoutElements(type);
      case 13:
        return readOnly(filled(shape(), type));
      case 14:
        return viewOf(filled(shape(), type));
      case 15: {
        Tensor t = filled(shape(), type);
        if (t.dim() == 4) return t.contiguous(MemoryFormat::ChannelsLast);
        t.setRequiresGrad(isFloating(type));
        return t;
      }
      default:
        return filled(shape(), type);
    }
  }

  size_t pickTensor() { return static_cast<size_t>(bytes_.below(std::ssize(tensors_))); }

  // Many elements that are one in memory.
  Tensor expanded(DType type) {
    DimVector sizes;
    for (int64_t n = 1 + bytes_.below(3); n > 0; --n) {
      sizes.push_back(bytes_.chance(2) ? int64_t{1} << bytes_.below(46) : size());
    }
    DimVector ones(sizes.size(), 1);
    if (bytes_.chance(2)) ones[0] = sizes[0] = size();
    return filled(ones, type).expand(sizes);
  }

  // Elements of a small memory, several times.
  Tensor overlapping(DType type) {
    const Tensor memory = filled(DimVector{64}, type);
    DimVector sizes, strides;
    int64_t room = 63;
    const int64_t offset = bytes_.below(8);
    room -= offset;
    for (int64_t n = bytes_.below(5); n > 0; --n) {
      const int64_t stride = bytes_.below(5);
      const int64_t length = std::min(size(), stride == 0 ? 8 : room / stride + 1);
      room -= std::max<int64_t>(length - 1, 0) * stride;
      sizes.push_back(length);
      strides.push_back(stride);
    }
    return memory.asStrided(sizes, strides, offset);
  }

  // No elements, but a dimension that is large.
  Tensor withoutElements(DType type) {
    DimVector sizes{0};
    for (int64_t n = bytes_.below(3); n > 0; --n) sizes.push_back(int64_t{1} << bytes_.below(56));
    if (bytes_.chance(2)) std::reverse(sizes.begin(), sizes.end());
    return Tensor::empty(sizes, type);
  }

  // As tensors of a mapped file are.
  static Tensor readOnly(const Tensor& t) {
    const Tensor whole = t.contiguous();
    auto owner = std::make_shared<const Tensor>(whole);
    const Ref<Storage> memory =
        Storage::borrow(whole.rawData(), static_cast<size_t>(whole.numel()) * whole.itemSize(),
                        owner, Device(), false);
    return Tensor::fromStorage(memory, whole.dtype(), whole.sizes(), whole.strides(), 0);
  }

  Tensor viewOf(const Tensor& t) {
    const int64_t d = t.dim() == 0 ? 0 : bytes_.below(t.dim());
    switch (bytes_.below(7)) {
      case 0:
        return t;
      case 1:
        return t.dim() < 2 ? t.unsqueeze(0) : t.transpose(0, -1);
      case 2:
        return t.dim() == 0 ? t.unsqueeze(0) : t.slice(d, bytes_.below(3), t.size(d), 1);
      case 3:
        return t.dim() == 0 ? t : t.slice(d, 0, t.size(d), 1 + bytes_.below(3));
      case 4:
        return t.dim() == 0 || t.size(d) == 0 ? t.detach() : t.select(d, 0);
      case 5:
        return t.dim() == 0 || t.size(d) < 2 ? t : t.narrow(d, 1, t.size(d) - 1);
      default:
        return t.unsqueeze(d);
    }
  }

  Tensor layerTensor(bool weight) {
    constexpr int64_t kChannels = 4;
    DimVector sizes{weight ? kChannels : 1 + bytes_.below(2),
                    weight ? kChannels / groups_ : kChannels};
    for (int64_t i = 0; i < spatial_; ++i) {
      sizes.push_back(weight ? 1 + bytes_.below(3) : 3 + bytes_.below(6));
    }
    const Tensor t = filled(sizes, bytes_.chance(8) ? dtype() : DType::Float);
    return bytes_.chance(4) ? viewOf(t) : t;
  }

  // ---- containers ----

  IValue intList(std::string_view name, int64_t fixed = 0) {
    DimVector values;
    if (name.ends_with("size") || name.ends_with("sizes") || name == "shape" || name == "stride") {
      if (!bytes_.chance(3)) values = shape();
      if (values.empty() || bytes_.chance(3)) values.push_back(smallInteger());
      if (bytes_.chance(4)) values[values.size() - 1] = integer();
      return makeIntList(values);
    }
    int64_t n = fixed > 0 ? fixed : bytes_.chance(2) ? rank_ : bytes_.below(5);
    if (spatial_ > 0 && !bytes_.chance(6)) n = spatial_;
    if (bytes_.chance(40)) n = 2000;
    const bool dims = name.starts_with("dim") || name.ends_with("dims");
    for (int64_t i = 0; i < n; ++i) {
      values.push_back(dims && !bytes_.chance(8) ? bytes_.below(rank_ + 1) : smallInteger());
    }
    return makeIntList(values);
  }

  IValue list(const Type& element, std::string_view name, int64_t fixed, int depth) {
    if (element.kind() == TypeKind::Int) return intList(name, fixed);
    const int64_t n = depth <= 0 ? 0 : bytes_.chance(30) ? 300 : bytes_.below(4);
    std::vector<IValue> values;
    for (int64_t i = 0; i < n; ++i) {
      if (i > 4) {
        values.push_back(values[static_cast<size_t>(i) % 5]);  // shared
      } else {
        values.push_back(make(element, name, 0, depth - 1));
      }
    }
    return IValue(makeRef<ListObject>(element.shared_from_this(), std::move(values)));
  }

  IValue dict(const DictType& type, int depth) {
    auto out = makeRef<DictObject>(type.key(), type.value());
    for (int64_t n = depth <= 0 ? 0 : bytes_.below(5); n > 0; --n) {
      out->set(make(*type.key(), "", 0, depth - 1), make(*type.value(), "", 0, depth - 1));
    }
    return IValue(DictRef(std::move(out)));
  }

  // A list that names 2^n elements: each level holds the one before twice.
  IValue sharing() {
    IValue value = any(0);
    for (int64_t n = bytes_.below(80); n > 0; --n) {
      value = IValue(makeRef<ListObject>(types::Any(), std::vector<IValue>{value, value}));
    }
    return value;
  }

  IValue holdingItself() {
    IValue value(makeRef<ListObject>(types::Any(), std::vector<IValue>{IValue(integer())}));
    value.toList().elements.push_back(value);
    cycles_.push_back(value);
    return value;
  }

  IValue object() {
    static const ClassTypePtr type = [] {
      auto made = std::make_shared<ClassType>("__torch__.C", false);
      made->addAttribute("a", types::Any());
      return made;
    }();
    auto made = makeRef<Object>(type, nullptr);
    made->setSlot(0, IValue(integer()));
    return IValue(ObjectRef(std::move(made)));
  }

  IValue enumerator() {
    static const auto type = std::make_shared<const EnumType>(
        "__torch__.E", types::Int(),
        std::vector<std::pair<std::string, IValue>>{{"A", IValue(1)}, {"B", IValue(2)}});
    const auto& [name, value] = type->members()[static_cast<size_t>(bytes_.below(2))];
    return IValue(makeRef<EnumObject>(type, name, value));
  }

  // ---- by type ----

  IValue make(const Type& type, std::string_view name, int64_t fixed, int depth) {
    switch (type.kind()) {
      case TypeKind::Tensor:
        return IValue(name.starts_with("ind") || name == "target"
                          ? tensor(bytes_.chance(4) ? dtype() : DType::Long)
                          : tensor());
      case TypeKind::Int:
        if (name == "dtype") return IValue(bytes_.chance(12) ? integer() : int64_t(dtype()));
        if (name == "groups") return IValue(bytes_.chance(8) ? integer() : groups_);
        if (name == "memory_format") return IValue(bytes_.below(5));
        if (name.starts_with("dim") || name.ends_with("dim")) {
          return IValue(bytes_.chance(12) ? integer() : bytes_.below(rank_ + 1) - bytes_.chance(3));
        }
        return IValue(bytes_.chance(3) ? integer() : smallInteger());
      case TypeKind::Float:
        return IValue(number());
      case TypeKind::Bool:
        return IValue(bytes_.chance(2));
      case TypeKind::Number:
        if (bytes_.chance(8)) return IValue(std::complex<double>(number(), number()));
        if (bytes_.chance(8)) return IValue(bytes_.chance(2));
        return bytes_.chance(2) ? IValue(integer()) : IValue(number());
      case TypeKind::Complex:
        return IValue(std::complex<double>(number(), number()));
      case TypeKind::String:
        return IValue(text());
      case TypeKind::Device:
        return IValue(device());
      case TypeKind::Generator:
        return IValue(makeRef<GeneratorObject>(bytes_.next()));
      case TypeKind::Optional:
        return bytes_.chance(3) ? IValue() : make(*type.contained()[0], name, fixed, depth);
      case TypeKind::Union:
        return make(
            *type.contained()[static_cast<size_t>(bytes_.below(std::ssize(type.contained())))],
            name, fixed, depth);
      case TypeKind::List:
        return list(*type.contained()[0], name, fixed, depth);
      case TypeKind::AnyList:
        return list(*variable(), name, fixed, depth);
      case TypeKind::Dict:
        return dict(*type.as<DictType>(), depth);
      case TypeKind::AnyTuple:
      case TypeKind::Tuple: {
        std::vector<IValue> elements;
        for (const TypePtr& element : type.contained()) {
          elements.push_back(make(*element, name, 0, depth - 1));
        }
        return IValue(makeTuple(std::move(elements)));
      }
      case TypeKind::Future: {
        // Nobody would complete one that is not done.
        auto future = makeRef<FutureObject>(type.contained()[0]);
        future->complete(make(*type.contained()[0], name, fixed, depth - 1));
        return IValue(FutureRef(std::move(future)));
      }
      case TypeKind::AnyEnum:
        return enumerator();
      case TypeKind::AnyClass:
        return object();
      case TypeKind::None:
        return IValue();
      case TypeKind::Any:
        return any(depth);
      default:
        throw RuntimeError("no value of the type " + type.str());
    }
  }

  // The type with something for each type variable, the same all over the call.
  TypePtr withoutVariables(const TypePtr& type) {
    if (!type->hasFreeVariables()) return type;
    bind(*type);
    return *substituteTypeVariables(type, variables_);
  }
  void bind(const Type& type) {
    if (const auto* var = type.as<VarType>()) {
      if (!variables_.contains(var->name())) variables_.emplace(var->name(), variable());
    }
    for (const TypePtr& part : type.contained()) bind(*part);
  }
  TypePtr variable() {
    const TypePtr kinds[] = {types::Int(),
                             types::String(),
                             types::Tensor(),
                             types::Float(),
                             types::Bool(),
                             types::Any(),
                             types::Optional(types::Int()),
                             types::List(types::Int()),
                             types::List(types::Tensor()),
                             types::Tuple({types::String(), types::Float()}),
                             types::Dict(types::String(), types::Int()),
                             types::Complex()};
    return bytes_.pick(kinds);
  }

  static constexpr int64_t kMaxMade = 20'000;  // elements of a tensor

  ByteSource& bytes_;
  int64_t rank_ = 0;
  DimVector base_;
  DType dtype_ = DType::Float;
  int64_t spatial_ = 0;  // not 0: a convolution with so many dimensions of space
  int64_t groups_ = 1;
  std::vector<Tensor> tensors_;
  std::vector<IValue> cycles_;
  TypeBindings variables_;
};

}  // namespace wick

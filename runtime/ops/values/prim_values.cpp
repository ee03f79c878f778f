// Operators on values of any kind: identity, text, hashing, enums, devices, sizes, settings.
#include <algorithm>
#include <chrono>

#include "core/grad_mode.h"
#include "core/keyed_hash.h"
#include "core/messages.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

using I = int64_t;
using Str = const std::string&;

// ---- characters and digits ----

I ord(Str s) {
  auto fail = [&] {
    throw RuntimeError(
        fmt::format("String for ord() must be 1 character, found {} bytes", s.size()), "TypeError");
  };
  if (s.size() == 1) return static_cast<unsigned char>(s[0]);
  if (s.empty()) fail();
  unsigned char lead = static_cast<unsigned char>(s[0]);
  size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || s.size() != length) fail();
  I code = lead & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((s[i] & 0xc0) != 0x80) fail();
    code = code << 6 | (s[i] & 0x3f);
  }
  return code;
}

// The character in UTF-8.
std::string chr(I code) {
  if (code < 0 || code > 0x10ffff) {
    throw RuntimeError(fmt::format("chr() arg not in range(0x110000), found {}", code),
                       "ValueError");
  }
  uint32_t c = static_cast<uint32_t>(code);
  auto tail = [&](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3f)); };
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  if (c < 0x800) return {static_cast<char>(0xc0 | c >> 6), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xe0 | c >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | c >> 18), tail(12), tail(6), tail(0)};
}

uint64_t magnitude(I v) {
  return v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
}
std::string hex(I v) {
  return fmt::format("{}0x{:x}", v < 0 ? "-" : "", magnitude(v));
}
std::string oct(I v) {
  return fmt::format("{}0o{:o}", v < 0 ? "-" : "", magnitude(v));
}
std::string bin(I v) {
  return fmt::format("{}0b{:b}", v < 0 ? "-" : "", magnitude(v));
}

// ---- values ----

IValue unwrapOptional(IValue v) {
  WICK_CHECK(!v.isNone(), "Unwrapping null optional");
  return v;
}
I identity(const IValue& v) {
  return v.isNone() ? 0 : static_cast<I>(maskedAddress(v.rawObject()));
}
IValue enumValue(const IValue& v) {
  return v.toEnum().value;
}

std::string deviceType(Device d) {
  return Device{d.type, -1}.str();
}
IValue deviceIndex(Device d) {
  return d.index < 0 ? IValue() : IValue(static_cast<I>(d.index));
}

// ---- sizes ----

DimVector inferSizes(const DimVector& a, const DimVector& b) {
  return broadcastShapes(a, b);
}
IValue sizeIfNotEqual(const DimVector& self, const DimVector& other) {
  return self == other ? IValue() : IValue(makeIntList(self));
}
void broadcastSizes(CallFrame& frame) {
  WICK_CHECK(frame.num_args > 0, "prim::BroadcastSizes: expected at least one size");
  DimVector out = frame.args[0].toDims();
  for (size_t i = 1; i < frame.num_args; ++i) out = broadcastShapes(out, frame.args[i].toDims());
  frame.results[0] = IValue(makeIntList(out));
}
DimVector reductionSizes(const DimVector& size, const DimVector& axes, bool keepdim) {
  // A dimension of none is taken for one.
  std::vector<bool> reduced(std::max<size_t>(size.size(), 1));
  for (int64_t axis : axes) {
    reduced[static_cast<size_t>(wrapDim(axis, static_cast<I>(size.size())))] = true;
  }
  DimVector out;
  for (size_t i = 0; i < size.size(); ++i) {
    if (!reduced[i]) out.push_back(size[i]);
    if (reduced[i] && keepdim) out.push_back(1);
  }
  return out;
}
DimVector squeezedSize(const DimVector& size) {
  DimVector out;
  for (int64_t n : size) {
    if (n != 1) out.push_back(n);
  }
  return out;
}
DimVector squeezedSizeAt(DimVector size, I dim) {
  size_t d = static_cast<size_t>(wrapDim(dim, static_cast<I>(size.size())));
  if (d < size.size() && size[d] == 1) size.erase(d);
  return size;
}
DimVector unsqueezedSize(DimVector size, I dim) {
  size.insert(static_cast<size_t>(wrapDim(dim, static_cast<I>(size.size()) + 1)), 1);
  return size;
}

// ---- settings ----

void manualSeed(I seed) {
  defaultGenerator().seed(static_cast<uint64_t>(seed));
}
bool never() {
  return false;
}
// What autocast computes in where nobody says.
DType autocastDType(Str device) {
  WICK_CHECK(device == "cpu" || device == "cuda",
             "get_autocast_dtype: expected the device 'cpu' or 'cuda', got '{}'", device);
  return device == "cpu" ? DType::BFloat16 : DType::Half;
}
void neverOf(CallFrame& frame) {
  frame.results[0] = IValue(false);
}
I timePoint() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Elements of module containers are attributes, whose names are the positions of a ModuleList and
// the keys of a ModuleDict.
IValue listedModule(const IValue& container, I index) {
  const Object& object = container.toObject();
  std::string name = std::to_string(index);
  WICK_CHECK(object.type()->findAttribute(name).has_value(),
             "prim::ModuleContainerIndex: there is no module {} in {}", index,
             object.type()->name());
  return object.attr(name);
}
IValue namedModule(const IValue& container, const std::string& key) {
  const Object& object = container.toObject();
  WICK_CHECK(object.type()->findAttribute(key).has_value(),
             "prim::ModuleContainerIndex: there is no module '{}' in {}", key,
             object.type()->name());
  return object.attr(key);
}

// The interpreter suspends the frame instead; this is what waits outside of it.
IValue waitFor(const IValue& future) {
  return future.toFuture().wait();
}

// Printed programs name it; the interpreter has an instruction for the node, so that this runs only
// when someone calls the operator itself.
void raise(const std::string& message, const std::optional<std::string>& class_name) {
  std::string name = class_name.value_or("Exception");
  throw RuntimeError(message, name.substr(name.rfind('.') + 1));
}

const OperatorRecord kPrimValuesRecords[] = {
    {"aten::ord(str string) -> int", WICK_KERNEL(ord)},
    {"aten::chr(int i) -> str", WICK_KERNEL(chr)},
    {"aten::hex(int i) -> str", WICK_KERNEL(hex)},
    {"aten::oct(int i) -> str", WICK_KERNEL(oct)},
    {"aten::bin(int i) -> str", WICK_KERNEL(bin)},
    {"aten::hash.generic(t value) -> int",
     WICK_LAMBDA([](const IValue& v) { return static_cast<I>(v.hash()); })},
    {"aten::__is__(t1 self, t2 obj) -> bool",
     WICK_LAMBDA([](const IValue& a, const IValue& b) { return a.isSame(b); })},
    {"aten::__isnot__(t1 self, t2 obj) -> bool",
     WICK_LAMBDA([](const IValue& a, const IValue& b) { return !a.isSame(b); })},
    {"aten::_unwrap_optional(t(a)? optional) -> t(a)", WICK_KERNEL(unwrapOptional)},
    {"prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)",
     WICK_LAMBDA([](bool c, IValue x, IValue y) { return c ? x : y; })},
    {"prim::id(AnyClassType? x) -> int", WICK_KERNEL(identity)},
    {"prim::EnumName(AnyEnumType enum) -> str",
     WICK_LAMBDA([](const IValue& v) -> std::string { return v.toEnum().name; })},
    {"prim::EnumValue.int(AnyEnumType enum) -> int", WICK_KERNEL(enumValue)},
    {"prim::EnumValue.float(AnyEnumType enum) -> float", WICK_KERNEL(enumValue)},
    {"prim::EnumValue.str(AnyEnumType enum) -> str", WICK_KERNEL(enumValue)},
    {"aten::eq.enum(AnyEnumType a, AnyEnumType b) -> bool",
     WICK_LAMBDA([](const IValue& a, const IValue& b) { return a.equals(b); })},
    {"aten::ne.enum(AnyEnumType a, AnyEnumType b) -> bool",
     WICK_LAMBDA([](const IValue& a, const IValue& b) { return !a.equals(b); })},

    {"aten::device(str a) -> Device", WICK_LAMBDA([](Str s) { return Device::parse(s); })},
    {"prim::type(Device self) -> str", WICK_KERNEL(deviceType)},
    {"prim::index(Device self) -> int?", WICK_KERNEL(deviceIndex)},

    {"aten::Size(int[] sizes) -> int[]", WICK_LAMBDA([](IValue v) { return v; })},
    {"aten::_infer_size(int[] a, int[] b) -> int[]", WICK_KERNEL(inferSizes)},
    {"aten::_size_if_not_equal(int[] self_size, int[] other_size) -> int[]?",
     WICK_KERNEL(sizeIfNotEqual)},
    {"prim::BroadcastSizes(...) -> int[]", broadcastSizes},
    {"prim::ReductionSizes(int[] size, int[] red_axes, bool keepdim=False) -> int[]",
     WICK_KERNEL(reductionSizes)},
    {"prim::infer_squeeze_size(int[] a) -> int[]", WICK_KERNEL(squeezedSize)},
    {"prim::infer_squeeze_size.dim(int[] a, int dim) -> int[]", WICK_KERNEL(squeezedSizeAt)},
    {"prim::infer_unsqueeze_size(int[] a, int dim) -> int[]", WICK_KERNEL(unsqueezedSize)},

    {"prim::RaiseException(str msg, str? cls=None) -> ()", WICK_KERNEL(raise), kSideEffects},
    {"aten::wait(Future(t) self) -> t", WICK_KERNEL(waitFor), kSideEffects},
    {"prim::ModuleContainerIndex.list(Any self, int ind) -> Any", WICK_KERNEL(listedModule)},
    {"prim::ModuleContainerIndex.dict(Any self, str ind) -> Any", WICK_KERNEL(namedModule)},
    {"aten::warn(str message, int stacklevel=2) -> ()",
     WICK_LAMBDA([](Str message, I) { warn(message); }), kSideEffects},
    {"aten::manual_seed(int seed) -> ()", WICK_KERNEL(manualSeed), kSideEffects},
    {"aten::is_grad_enabled() -> bool", WICK_KERNEL(gradEnabled), kSideEffects},
    {"aten::set_grad_enabled(bool val) -> ()", WICK_LAMBDA([](bool on) { setGradEnabled(on); }),
     kSideEffects},
    {"aten::is_scripting() -> bool", WICK_LAMBDA([]() { return true; })},
    {"aten::_get_tracing_state() -> bool", WICK_KERNEL(never)},
    {"aten::is_autocast_enabled() -> bool", WICK_KERNEL(never)},
    {"aten::is_autocast_cpu_enabled() -> bool", WICK_KERNEL(never)},
    {"aten::get_autocast_dtype(str device_type) -> ScalarType", WICK_KERNEL(autocastDType)},
    {"aten::is_vulkan_available() -> bool", WICK_KERNEL(never)},
    {"aten::has_torch_function(...) -> bool", neverOf},
    {"prim::TimePoint() -> int", WICK_KERNEL(timePoint), kSideEffects},
};
const RegisterOperators kPrimValuesRegistered(kPrimValuesRecords);

}  // namespace

}  // namespace wick::ops

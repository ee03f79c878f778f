// Equality and hashes of values, which share their parts as a program likes: n lists that each hold
// the one before twice are a tree of 2^n. A walk that has met many containers remembers what it
// met, so that it takes the time that the values take in memory.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/error.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"

namespace wick {

namespace {

// Containers may hold themselves (List[Any]), and Any nests without end.
constexpr int kMaxDepth = 1000;
// Containers that a walk meets before it begins to remember them: most values are small.
constexpr size_t kUnremembered = 256;

bool sameNumber(int64_t i, double d) {
  // Exact: both directions, because 2^53 + 1 and 2^53 are one double.
  if (!(d >= -0x1p63 && d < 0x1p63)) return false;
  return static_cast<int64_t>(d) == i && d == std::trunc(d);
}

bool sameNumbers(const IValue& a, const IValue& b) {
  if (a.isComplex() || b.isComplex()) {
    // A real part beyond 2^53 compares exactly too.
    if (a.isComplex() && b.isComplex()) return a.toComplex() == b.toComplex();
    const IValue& c = a.isComplex() ? a : b;
    const IValue& real = a.isComplex() ? b : a;
    return c.toComplex().imag() == 0 && sameNumbers(IValue(c.toComplex().real()), real);
  }
  if (a.isDouble() && b.isDouble()) return a.rawDouble() == b.rawDouble();
  if (a.isDouble()) return sameNumber(b.numberToInt(), a.rawDouble());
  if (b.isDouble()) return sameNumber(a.numberToInt(), b.rawDouble());
  return a.numberToInt() == b.numberToInt();
}

// Whether equal(begin, end) holds for all pieces of [0, n).
template <class Equal>
bool equalInPieces(size_t n, Pace& pace, Equal&& equal) {
  constexpr size_t kPiece = size_t{1} << 20;
  for (size_t begin = 0; begin < n; begin += kPiece) {
    const size_t end = std::min(n, begin + kPiece);
    if (!equal(begin, end)) return false;
    pace.step(static_cast<int64_t>((end - begin) / 4));
  }
  return true;
}

bool sameTexts(const std::string& a, const std::string& b, Pace& pace) {
  return a.size() == b.size() && equalInPieces(a.size(), pace, [&](size_t begin, size_t end) {
           return std::memcmp(a.data() + begin, b.data() + begin, end - begin) == 0;
         });
}

bool sameTensors(const Tensor& a, const Tensor& b, Pace& pace) {
  if (a.isSame(b)) return true;
  if (!std::ranges::equal(a.sizes(), b.sizes()) || a.device() != b.device()) return false;
  if (!deviceBackend(a.device().type).holdsData()) {
    return a.dtype() == b.dtype() && a.sharesStorage(b);
  }
  DType common = promoteTypes(a.dtype(), b.dtype());
  Tensor x = moveTo(a, Device()).to(common).contiguous();
  Tensor y = moveTo(b, Device()).to(common).contiguous();
  const auto n = static_cast<size_t>(x.numel());
  return dispatchAll(common, [&]<class T>() {
    const T* p = x.data<T>();
    const T* q = y.data<T>();
    return equalInPieces(n, pace, [&](size_t begin, size_t end) {
      return std::equal(p + begin, p + end, q + begin, [](T u, T v) {
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
          return static_cast<float>(u) == static_cast<float>(v);
        } else {
          return u == v;
        }
      });
    });
  });
}

class Comparison {
 public:
  bool equal(const IValue& a, const IValue& b, int depth = 0) {
    using Tag = IValue::Tag;
    pace_.step();
    if (a.isNumber() && b.isNumber()) return sameNumbers(a, b);
    if (a.tag() != b.tag()) return false;
    if (a.isCounted() && a.rawObject() == b.rawObject()) return true;
    switch (a.tag()) {
      case Tag::None:
        return true;
      case Tag::Device:
        return a.toDevice() == b.toDevice();
      case Tag::Tensor:
        return sameTensors(a.toTensor(), b.toTensor(), pace_);
      case Tag::String:
        return sameTexts(a.toString(), b.toString(), pace_);
      case Tag::List:
      case Tag::Tuple:
      case Tag::Dict:
        return containersEqual(a, b, depth);
      case Tag::Enum:
        return *a.toEnum().type == *b.toEnum().type && a.toEnum().name == b.toEnum().name;
      default:
        return false;
    }
  }

 private:
  using Pair = std::pair<const RefCounted*, const RefCounted*>;
  struct PairHash {
    size_t operator()(const Pair& p) const {
      return keyedHash(reinterpret_cast<uintptr_t>(p.first), reinterpret_cast<uintptr_t>(p.second));
    }
  };

  // The first difference ends everything, so that a pair that was compared and left was equal.
  bool containersEqual(const IValue& a, const IValue& b, int depth) {
    WICK_CHECK(depth < kMaxDepth, kTooDeep);
    if (++met_ <= kUnremembered) return partsEqual(a, b, depth + 1);
    if (!known_) known_ = std::make_unique<Known>();
    const Pair pair(a.rawObject(), b.rawObject());
    auto [it, fresh] = known_->try_emplace(pair, false);
    if (!fresh) {
      WICK_CHECK(it->second, kTooDeep);  // they hold themselves
      return true;
    }
    if (!partsEqual(a, b, depth + 1)) return false;
    known_->find(pair)->second = true;
    return true;
  }

  bool partsEqual(const IValue& a, const IValue& b, int depth) {
    if (a.isDict()) return dictsEqual(a.toDict(), b.toDict(), depth);
    const std::vector<IValue>& x = a.elements();
    const std::vector<IValue>& y = b.elements();
    if (x.size() != y.size()) return false;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!equal(x[i], y[i], depth)) return false;
    }
    return true;
  }

  bool dictsEqual(const DictObject& x, const DictObject& y, int depth) {
    return x.size() == y.size() && x.all([&](const IValue& key, const IValue& value) {
      const IValue* other = y.find(key);
      return other && equal(value, *other, depth);
    });
  }

  static constexpr char kTooDeep[] = "maximum recursion depth exceeded in comparison";
  using Known = std::unordered_map<Pair, bool, PairHash>;  // whether the comparison has ended
  Pace pace_;
  size_t met_ = 0;
  std::unique_ptr<Known> known_;
};

// What hash() gives: the same in every process.
struct PlainMixer {
  static size_t mix(size_t seed, size_t value) {
    return (seed ^ value) * size_t{0x9e3779b97f4a7c15} + (seed >> 29);
  }
  static size_t word(int64_t value) { return std::hash<int64_t>()(value); }
  static size_t real(double value) { return std::hash<double>()(value); }
  static size_t text(const std::string& value) { return std::hash<std::string>()(value); }
};

// What tables use.
struct KeyedMixer {
  static size_t mix(size_t seed, size_t value) { return keyedHash(seed, value); }
  static size_t word(int64_t value) { return keyedHashOfNeighbour(static_cast<uint64_t>(value)); }
  static size_t real(double value) { return keyedHash(std::hash<double>()(value)); }
  static size_t text(const std::string& value) { return keyedHash(std::string_view(value)); }
};

template <class M>
class Hasher {
 public:
  size_t hash(const IValue& v, int depth = 0) {
    using Tag = IValue::Tag;
    switch (v.tag()) {
      case Tag::None:
        return 0x6e6f6e65;
      case Tag::Int:
        return M::word(v.rawInt());
      case Tag::Bool:
        return M::word(v.rawBool());
      case Tag::Double:
        return real(v.rawDouble());
      case Tag::Complex: {
        auto c = v.toComplex();
        return c.imag() == 0 ? real(c.real()) : M::mix(real(c.real()), real(c.imag()));
      }
      case Tag::Device:
        return M::mix(static_cast<size_t>(v.toDevice().type),
                      static_cast<size_t>(v.toDevice().index));
      case Tag::String:
        // A tuple may hold one long text many times.
        pace_.step(1 + static_cast<int64_t>(v.toString().size() / 16));
        return M::text(v.toString());
      case Tag::Tuple:
        return tuple(v, depth);
      case Tag::Enum:
        return M::mix(M::text(v.toEnum().type->name()), M::text(v.toEnum().name));
      case Tag::List:
      case Tag::Dict:
        throwRuntimeError("unhashable type: '{}'", v.tagName());
      default:
        return M::word(static_cast<int64_t>(maskedAddress(v.rawObject())));
    }
  }

 private:
  static size_t real(double d) {
    if (sameNumber(static_cast<int64_t>(d >= -0x1p63 && d < 0x1p63 ? d : 0), d)) {
      return M::word(static_cast<int64_t>(d));
    }
    return M::real(d);
  }

  size_t tuple(const IValue& v, int depth) {
    WICK_CHECK(depth < kMaxDepth, "maximum recursion depth exceeded in hash");
    const bool remember = ++met_ > kUnremembered;
    if (remember) {
      if (!known_) known_ = std::make_unique<Known>();
      auto it = known_->find(v.rawObject());
      if (it != known_->end()) return it->second;
    }
    size_t h = 0x7475706c;
    for (const IValue& e : v.elements()) {
      pace_.step();
      h = M::mix(h, hash(e, depth + 1));
    }
    if (remember) known_->emplace(v.rawObject(), h);
    return h;
  }

  using Known = std::unordered_map<const RefCounted*, size_t>;
  Pace pace_;
  size_t met_ = 0;
  std::unique_ptr<Known> known_;
};

}  // namespace

bool IValue::equals(const IValue& o) const {
  return Comparison().equal(*this, o);
}

size_t IValue::hash() const {
  return Hasher<PlainMixer>().hash(*this);
}

size_t IValue::keyHash() const {
  return Hasher<KeyedMixer>().hash(*this);
}

}  // namespace wick

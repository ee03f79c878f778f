#include "tests/optimizer/snapshot.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>

namespace wick {

namespace {

class Snapshot {
 public:
  std::string of(const std::vector<IValue>& values) {
    for (const IValue& v : values) add(v);
    return std::move(text_);
  }

 private:
  size_t number(const void* p) { return ids_.emplace(p, ids_.size()).first->second; }

  void add(const IValue& v) {
    if (v.isTensor()) return tensor(v.toTensor());
    if (v.isDouble()) {
      text_ += fmt::format("{:x} ", std::bit_cast<uint64_t>(v.toDouble()));
      return;
    }
    if (v.isList() || v.isTuple()) {
      bool list = v.isList();
      text_ += list ? fmt::format("list{}[", number(v.rawObject())) : "(";
      for (const IValue& e : v.elements()) add(e);
      text_ += list ? "] " : ") ";
    } else if (v.isDict()) {
      text_ += fmt::format("dict{}{{", number(v.rawObject()));
      for (const auto& [key, value] : v.toDict().items()) {
        add(key);
        add(value);
      }
      text_ += "} ";
    } else if (v.isObject()) {
      const Object& o = v.toObject();
      text_ += fmt::format("object{}{{", number(&o));
      for (size_t i = 0; i < o.type()->attributes().size(); ++i) add(o.slot(i));
      text_ += "} ";
    } else {
      text_ += v.repr() + " ";
    }
  }

  void tensor(const Tensor& t) {
    text_ +=
        fmt::format("{} in {} at {} of {} by {}: ", toString(t.dtype()), number(t.storage().get()),
                    t.offset(), formatInts(t.sizes()), formatInts(t.strides()));
    Tensor dense = t.clone(MemoryFormat::Contiguous);
    const auto* bytes = static_cast<const unsigned char*>(dense.rawData());
    for (size_t i = 0; i < dense.numel() * dense.itemSize(); ++i) {
      text_ += fmt::format("{:02x}", bytes[i]);
    }
    text_ += "\n";
  }

  std::unordered_map<const void*, size_t> ids_;
  std::string text_;
};

}  // namespace

std::string snapshot(const std::vector<IValue>& values) {
  return Snapshot().of(values);
}

void spoil(const IValue& v) {
  if (v.isTensor()) {
    v.toTensor().fill(77.0);
  } else if (v.isList()) {
    for (const IValue& e : v.elements()) spoil(e);
    v.toList().elements.clear();
  } else if (v.isTuple()) {
    for (const IValue& e : v.elements()) spoil(e);
  } else if (v.isDict()) {
    for (const IValue& e : v.toDict().values()) spoil(e);
    v.toDict().clear();
  }
}

}  // namespace wick

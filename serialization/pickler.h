// Writing pickles that PyTorch reads: protocol 2, and of its opcodes only those that both
// torch.load and torch.jit.load know.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/budget.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"

namespace wick {

struct PicklerOptions {
  // Python reads the result: lists and dicts are plain, complex numbers and dtypes Python's. Off,
  // the TorchScript loader does: typed lists and type tags are written.
  bool for_python = true;
  bool keep_requires_grad = false;
  // Of an object of a script class: what its __setstate__ takes, or nothing when its attributes
  // are saved by name. Empty: objects are refused.
  std::function<std::optional<IValue>(const Object&)> get_state;
  // What the archive calls a type; empty: its annotation.
  std::function<std::string(const Type&)> type_name;
};

// One pickle. Storages are not written: they are collected and named by number.
class Pickler {
 public:
  explicit Pickler(PicklerOptions options = {});

  // Throws RuntimeError for what a pickle cannot hold: futures, generators, objects and enums when
  // Python is to read it, lazy tensors, nesting deeper than 1000 levels. The message says which attribute of
  // which object holds it.
  void push(const IValue& value);
  // Ends the pickle and returns its bytes.
  std::string finish();
  // Storage i is named "i".
  const std::vector<Ref<Storage>>& storages() const { return storages_; }

 private:
  void op(uint8_t opcode) { out_.push_back(static_cast<char>(opcode)); }
  template <class T>
  void raw(T value);
  void pushValue(const IValue& value);
  void pushInt(int64_t value);
  void pushDouble(double value);
  void pushString(std::string_view text);
  void pushGlobal(std::string_view module, std::string_view name);
  void pushElements(const std::vector<IValue>& elements);
  void pushTuple(const std::vector<IValue>& elements);
  void pushMeta(const Tensor& tensor);
  void pushSparse(const Tensor& tensor);
  void pushInts(IntSpan values);
  void pushList(const IValue& value);
  void pushDict(const IValue& value);
  void pushTensor(const Tensor& tensor);
  void pushQuantized(const Tensor& tensor);
  void pushHooks();
  void pushStorage(const Tensor& tensor);
  void pushObject(const IValue& value);
  void pushAttributes(const Object& object);
  void pushEnum(const EnumObject& value);
  void pushScriptType(const Type& type);
  std::string typeName(const Type& type) const {
    return options_.type_name ? options_.type_name(type) : type.annotation();
  }
  // " in attribute 'layer.state'", or nothing.
  std::string where() const;
  void beginTypeTag();
  void endTypeTag(const Type& type);
  // Writes a reference when the object was written before, and remembers it otherwise.
  bool recall(const RefCounted* object);
  void remember(const IValue& value);
  void put(uint32_t index);
  void get(uint32_t index);

  // Memory that counts (core/memory_limit.h).
  class Counted {
   public:
    Counted() = default;
    Counted(Counted&& other) noexcept : bytes_(std::exchange(other.bytes_, 0)) {}
    Counted& operator=(Counted&& other) noexcept {
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Counted() { count(0); }
    void count(size_t bytes) {
      const auto now = static_cast<int64_t>(bytes);
      noteMemory(now - std::exchange(bytes_, now));
    }

   private:
    int64_t bytes_ = 0;
  };

  PicklerOptions options_;
  std::string out_;
  Counted written_;
  Pace pace_;
  uint32_t next_memo_ = 0;
  size_t depth_ = 0;
  KeyedMap<std::string, uint32_t> memoized_strings_;
  std::unordered_map<const RefCounted*, uint32_t> memoized_;
  std::vector<IValue> kept_;  // what memoized_ refers to must not die and be replaced
  std::vector<Ref<Storage>> storages_;
  // torch.load gives a storage the dtype of its first tensor, so one that is viewed as several
  // dtypes is written once for each.
  struct Written {
    size_t index;
    uint32_t memo;
  };
  std::map<std::pair<const Storage*, DType>, Written> storage_index_;
  std::vector<const std::string*> path_;  // attributes of the objects that are being written
};

}  // namespace wick

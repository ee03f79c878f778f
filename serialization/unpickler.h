// Reading the pickles that PyTorch writes, as data only.
//
// A pickle is a program for a small stack machine. The ones that torch.save and torch.jit.save
// produce use protocols 2 to 4; every opcode and every callable outside of that set is refused
// by name, so that a file can do nothing but describe values. Work and memory are proportional to
// the length of the pickle: nesting is limited, cycles are refused, and so is sharing that would
// make the value much larger when walked than it is in memory. The memory is taken off a budget.
//
// A container that an object took as part of its state is sealed: it has its final types, and the
// pickle cannot change it any more, because code may already rely on it.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "serialization/load_budget.h"
#include "serialization/pickle_structure.h"

namespace wick {

// What a persistent id asks for.
struct StorageRequest {
  std::string key;
  uint64_t bytes = 0;  // how many the tensors of this storage may use
};

// A device by its name; nullopt when it is no device.
using DeviceHook = std::function<std::optional<Device>(const std::string& name)>;

// How an unpickler reaches beyond its bytes. An empty function refuses what it stands for.
struct UnpicklerHooks {
  // The memory of a storage, on the CPU. Must have at least `bytes` bytes; the same key, the same
  // storage.
  std::function<Ref<Storage>(const StorageRequest&)> storage;
  // Returns the device for tensors that were saved on the device of this name; nullopt when it names none.
  // Empty: the CPU for all.
  DeviceHook device;
  // Returns the value of torch.device. Empty: the device of this name.
  DeviceHook device_value;
  // Tensors of no dimensions that were saved on the CPU stay there: traced programs take them for
  // numbers.
  bool numbers_stay = false;
  // The type behind a GLOBAL that names script code ("__torch__.m.Net"); null when unknown.
  std::function<TypePtr(const std::string& qualified_name)> resolve_type;
  // The type that a type tag names ("Dict[str, List[__torch__.C]]").
  std::function<TypePtr(const std::string& text)> parse_type;
  // A new instance of a script class.
  std::function<ObjectRef(const ClassTypePtr&)> new_object;
  // Gives an instance its pickled state: a dict of attributes, or what __setstate__ takes.
  std::function<void(Object&, IValue state)> set_state;
  // What the memory of the values is taken from; null does not count it.
  std::shared_ptr<LoadBudget> budget;
};

// A pickle that names code of Python, which is never run.
class CodeOfPython : public LoadError {
 public:
  CodeOfPython(const std::string& message, std::string global)
      : LoadError(message), global(std::move(global)) {}
  const std::string global;  // "models.Net"
};

// One pickle. dtypes, layouts and memory formats become ints as in TorchScript, torch.Size becomes
// a tuple, OrderedDict a dict. Containers without a type tag get the types of their elements, or
// Any.
class Unpickler {
 public:
  // `name` begins the messages ("model.pt: record 'data.pkl'"). The bytes must outlive load().
  Unpickler(std::span<const std::byte> bytes, std::string name, UnpicklerHooks hooks);
  ~Unpickler();
  Unpickler(const Unpickler&) = delete;

  // Throws LoadError with the position of what was wrong.
  IValue load();
  // How many bytes load() has read; what follows STOP is not looked at.
  size_t position() const { return position_; }

 private:
  // Operands of an opcode: the stack from here to its top.
  using Operands = size_t;
  // A GLOBAL, a storage, an array or bytes may be operands, and sit in a tuple of operands, but are not values.
  struct Item {
    IValue value;
    bool internal = false;
  };
  class GlobalObject;
  class StorageObject;
  class ArrayObject;
  class ArrayDTypeObject;

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<const Args&...> format, const Args&... args) const {
    failWith(fmt::format(format, args...));
  }
  [[noreturn]] void failWith(const std::string& message) const;
  std::span<const std::byte> take(uint64_t n);
  template <class T>
  T take();
  std::string_view takeText(uint64_t n) { return asText(take(n)); }
  std::string_view takeLine();
  static std::string_view asText(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  bool step();  // false at STOP
  bool stepLiteral(uint8_t opcode);
  bool stepStack(uint8_t opcode);
  bool stepContainer(uint8_t opcode);
  bool stepObject(uint8_t opcode);

  void charge(uint64_t bytes);
  void work(uint64_t units);
  template <class T>
  void reserve(std::vector<T>& vector, size_t more);
  void pushItem(Item item);
  void push(IValue value, bool internal = false) { pushItem({std::move(value), internal}); }
  void pushText(std::string_view text, bool internal = false);
  Item pop();
  IValue popValue(const char* what);
  Item& top();
  Operands last(size_t n) const;
  Operands sinceMark();
  void drop(Operands operands) { stack_.resize(operands); }
  // The container below the operands, which changes now.
  IValue& changedBelow(Operands operands);
  void pushInteger(std::span<const std::byte> little_endian);
  void pushTuple(Operands operands);
  void checkBuilt(const Item& item) const;
  void remember(uint64_t index);
  void recall(uint64_t index);
  void append(Operands operands);
  void setItems(Operands operands);
  void track(const IValue& container, uint64_t bytes);
  void pushList();
  IValue newDict();

  void pushGlobal(const std::string& module, const std::string& name);
  bool pushDType(const std::string& name);
  void persistentId();
  void newObject();
  void reduce();
  void build();
  Item call(const GlobalObject& function, const TupleObject& tuple);
  IValue rebuildTensor(const std::vector<IValue>& args, bool with_dtype);
  Tensor ownBools(Tensor tensor);
  Tensor copied(const Tensor& tensor);
  Tensor applyMetadata(Tensor tensor, bool conj, bool neg);
  IValue rebuildQuantized(const std::vector<IValue>& args);
  IValue rebuildSparse(const std::vector<IValue>& args);
  IValue namedLayout(const IValue& name) const;
  IValue rebuildParameter(const std::vector<IValue>& args);
  IValue rebuildFromType(const std::vector<IValue>& args);
  IValue makeEnum(const EnumType& type, const IValue& member);
  IValue typedList(const std::vector<IValue>& args, const TypePtr& element);
  IValue restoreTypeTag(const std::vector<IValue>& args);
  void setTag(const IValue& container, const TypePtr& type);
  IValue makeDevice(const std::vector<IValue>& args);
  std::optional<Device> mapped(const DeviceHook& map, const std::string& name);
  Device deviceOf(const std::string& name, const std::string& whose);
  IValue rebuildMeta(const std::vector<IValue>& args);
  IValue rebuildFromCpu(const std::vector<IValue>& args);
  IValue onSavedDevice(Tensor tensor, const IValue& device, const IValue& flag);
  const char* kindOf(const Item& item) const;
  Item encodeText(const std::vector<IValue>& args);
  Item arrayDType(const std::vector<IValue>& args);
  Item newArray(const std::vector<IValue>& args);
  bool buildArray(const IValue& target, const IValue& state);
  Tensor arrayOf(const IValue& state);
  IValue rebuildFromArray(const std::vector<IValue>& args);
  void place(const Tensor& tensor, Device device);
  void placeLike(const Tensor& tensor, const Tensor& other);
  void moveToPlaces();
  const GlobalObject* asGlobal(const IValue& value) const;
  const StorageObject* asStorage(const IValue& value) const;
  DimVector dims(const IValue& value, const char* what) const;

  void seal(const IValue& value);
  void finish();
  void release() noexcept;

  std::span<const std::byte> bytes_;
  std::string name_;
  UnpicklerHooks hooks_;
  size_t position_ = 0;
  size_t opcode_at_ = 0;
  uint64_t work_ = 0;
  std::vector<Item> stack_;
  std::vector<size_t> marks_;
  KeyedMap<uint64_t, Item> memo_;
  KeyedMap<std::string, Item> globals_;
  // Every container made, so that a half-built value can be taken apart without recursion.
  std::vector<IValue> tracked_;
  PickleStructure structure_;
  // What tensors read of a storage.
  struct StorageUse {
    Ref<Storage> storage;  // kept alive, for the address is the key
    bool as_bools;
    bool only_bools;  // as for its bytes: 0 and 1
  };
  std::unordered_map<const Storage*, StorageUse> storages_;
  // The device for the tensors of a storage, and their storage there once one was moved.
  struct Place {
    Ref<Storage> storage;  // kept alive, for the address is the key
    Device device;
    Ref<Storage> moved;
  };
  std::unordered_map<const Storage*, Place> places_;
  std::vector<Tensor> unmoved_;
  bool map_failed_ = false;  // a hook for devices threw
  // Objects between NEWOBJ and BUILD. Their attributes are not there yet, so nothing else may refer
  // to them.
  std::unordered_set<const RefCounted*> unbuilt_;
};

}  // namespace wick

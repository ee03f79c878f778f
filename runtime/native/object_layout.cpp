#include "runtime/native/object_layout.h"

#include <cstring>

#include "core/error.h"
#include "core/ivalue.h"

namespace wick::native {
namespace {

template <class T>
uint32_t findBytes(const void* object, size_t size, const T& wanted, const char* what) {
  const char* bytes = static_cast<const char*>(object);
  for (size_t offset = 0; offset + sizeof(T) <= size; offset += sizeof(T)) {
    if (std::memcmp(bytes + offset, &wanted, sizeof(T)) == 0) return static_cast<uint32_t>(offset);
  }
  WICK_ASSERT(false, "{} has no known place", what);
}

template <class Container>
void findElements(const Container& object, uint32_t& begin, uint32_t& end) {
  const IValue* data = object.elements.data();
  const IValue* behind = data + object.elements.size();
  begin = findBytes(&object, sizeof(object), data, "the first element of a container");
  end = findBytes(&object, sizeof(object), behind, "the last element of a container");
}

ObjectLayout find() {
  ObjectLayout layout{};
  constexpr int64_t kPattern = 0x0123456789abcdef;
  IValue number(kPattern);
  layout.payload = findBytes(&number, sizeof(number), kPattern, "the payload of a value");
  layout.tag = findBytes(&number, sizeof(number), IValue::Tag::Int, "the tag of a value");
  IValue truth(true);
  WICK_ASSERT(truth.rawInt() == 1, "bools are not stored as numbers");
  // The capacity must differ from the size for the end to be found.
  std::vector<IValue> elements{IValue(1), IValue(2)};
  elements.reserve(8);
  ListRef list = makeList(types::Int());
  list->elements = elements;
  list->elements.reserve(8);
  findElements(*list, layout.list_begin, layout.list_end);
  const IValue* room = list->elements.data() + list->elements.capacity();
  layout.list_capacity = findBytes(list.get(), sizeof(ListObject), room, "the room of a list");
  TupleRef tuple = makeTuple(std::move(elements));
  findElements(*tuple, layout.tuple_begin, layout.tuple_end);
  return layout;
}

}  // namespace

const ObjectLayout& ObjectLayout::get() {
  static const ObjectLayout layout = find();
  return layout;
}

std::string ObjectLayout::str() const {
  return fmt::format("{} {} {} {} {} {} {}", payload, tag, list_begin, list_end, tuple_begin,
                     tuple_end, list_capacity);
}

}  // namespace wick::native

// Where machine code finds the fields of values and containers.
#pragma once

#include <cstdint>
#include <string>

namespace wick::native {

// Offsets in bytes.
struct ObjectLayout {
  uint32_t payload;  // in an IValue: 8 bytes
  uint32_t tag;      // in an IValue: 4 bytes
  // In a list or tuple: the addresses of the first element and of the end of the last.
  uint32_t list_begin, list_end;
  uint32_t tuple_begin, tuple_end;
  uint32_t list_capacity;  // the address of the end of the room for elements

  // Found by looking at objects, once. InternalError when they are not made as the translator
  // needs.
  static const ObjectLayout& get();
  std::string str() const;
};

}  // namespace wick::native

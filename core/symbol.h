// Interned names. A Symbol is a 4-byte handle to a qualified name such as "aten::add"; two symbols
// are equal exactly when their names are. The names that the engine itself refers to are constants
// made from the table in core/interned_names.h; any other name is interned when first asked for.
// The set is open.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/interned_names.h"

namespace wick {

class Symbol {
 public:
  constexpr Symbol() = default;
  constexpr explicit Symbol(uint32_t id) : id_(id) {}

  // "aten::add". Thread-safe.
  static Symbol fromQualString(std::string_view qualified);
  static Symbol aten(std::string_view name);
  static Symbol prim(std::string_view name);
  static Symbol attr(std::string_view name);

  // "aten", "add" and "aten::add". The views live as long as the process.
  std::string_view ns() const;
  std::string_view name() const;
  std::string_view qualString() const;

  bool isAten() const { return ns() == "aten"; }
  bool isPrim() const { return ns() == "prim"; }
  constexpr uint32_t id() const { return id_; }
  constexpr explicit operator bool() const { return id_ != 0; }
  friend constexpr bool operator==(Symbol a, Symbol b) { return a.id_ == b.id_; }
  friend constexpr bool operator<(Symbol a, Symbol b) { return a.id_ < b.id_; }

 private:
  uint32_t id_ = 0;  // 0 is "no symbol"
};

namespace detail {
enum class InternedId : uint32_t {
  kNone,
#define WICK_INTERNED(ns, name) ns##_##name,
  WICK_FORALL_INTERNED(WICK_INTERNED)
#undef WICK_INTERNED
};
}  // namespace detail

#define WICK_INTERNED(ns, name)                                                                 \
  namespace ns {                                                                                \
  inline constexpr Symbol name{static_cast<uint32_t>(::wick::detail::InternedId::ns##_##name)}; \
  }
WICK_FORALL_INTERNED(WICK_INTERNED)
#undef WICK_INTERNED

}  // namespace wick

template <>
struct std::hash<wick::Symbol> {
  size_t operator()(wick::Symbol s) const { return s.id() * size_t{0x9e3779b97f4a7c15}; }
};

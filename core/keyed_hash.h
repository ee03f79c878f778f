// Hashes that nobody can foresee: mixed with a key that is random in each process, so that a
// program or a file cannot choose names and numbers that all meet in one place of a table. Tables
// whose keys come from outside use these. No result may depend on the order of such a table.
//
// All functions are thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

namespace wick {

struct HashKey {
  uint64_t words[4];
  // Drawn once, from the system.
  static const HashKey& get() {
    static const HashKey key = draw();
    return key;
  }

 private:
  static HashKey draw();
};

namespace detail {
// Both halves of the product, folded into one.
inline uint64_t foldProduct(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}
}  // namespace detail

inline uint64_t keyedHash(uint64_t word) {
  const HashKey& key = HashKey::get();
  return detail::foldProduct(detail::foldProduct(word ^ key.words[0], key.words[1]) ^ key.words[2],
                             key.words[3]);
}
// Returns the hash of an integer that is a key of a table: eight neighbours (multiples of eight and the numbers behind them)
// differ in their lowest three bits, so that they lie side by side in a table, and in their highest three.
inline uint64_t keyedHashOfNeighbour(uint64_t word) {
  const uint64_t low = word & 7;
  return keyedHash(word >> 3) ^ low ^ (low << 61);
}
// Of a sequence: seed is the hash of what stands before `word`.
inline uint64_t keyedHash(uint64_t seed, uint64_t word) {
  const HashKey& key = HashKey::get();
  return detail::foldProduct(
      detail::foldProduct(word ^ key.words[2], seed ^ key.words[1]) ^ key.words[0], key.words[3]);
}
uint64_t keyedHash(std::string_view bytes);

// Returns what programs see in place of an address: below 2^62, another number for each address, and always the same one in
// a process, from which nobody learns where something lies.
uint64_t maskedAddress(const void* address);

// For unordered containers of strings, numbers and addresses. Strings are also looked up by views
// of them.
struct KeyedHash {
  using is_transparent = void;
  size_t operator()(std::string_view bytes) const { return keyedHash(bytes); }
  template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T> size_t operator()(T value) const {
    return keyedHash(static_cast<uint64_t>(value));
  }
  template <class T>
  size_t operator()(T* object) const {
    return keyedHash(reinterpret_cast<uintptr_t>(object));
  }
  size_t operator()(const char*) const = delete;
};
template <class Key, class Value>
using KeyedMap = std::unordered_map<Key, Value, KeyedHash, std::equal_to<>>;
template <class Key>
using KeyedSet = std::unordered_set<Key, KeyedHash, std::equal_to<>>;

}  // namespace wick

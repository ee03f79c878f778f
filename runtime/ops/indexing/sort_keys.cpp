#include "runtime/ops/indexing/sort_keys.h"

#include <bit>
#include <type_traits>

#include "core/dtype_dispatch.h"

namespace wick::ops {

namespace {

// The bits of a float of sizeof(Bits) bytes in the order of its numbers.
template <class Bits, class T>
Bits orderedBits(T v) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits bits = std::bit_cast<Bits>(v + T(0));  // zeros are equal
  return (bits & kSign) != 0 ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | kSign);
}

template <class K, class T>
K sortKey(T v) {
  if constexpr (std::is_same_v<T, double>) {
    return v != v ? kNanKey<K> : orderedBits<uint64_t>(v);
  } else if constexpr (!std::is_integral_v<T>) {
    const auto number = static_cast<float>(v);
    return number != number ? kNanKey<K> : K{orderedBits<uint32_t>(number)};
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<K>(v) ^ (K{1} << (8 * sizeof(K) - 1));
  } else {
    return static_cast<K>(v);
  }
}

}  // namespace

template <class K>
void fillSortKeys(DType dtype, const void* from, int64_t count, bool descending, K* to) {
  const K mask = descending ? ~K{0} : K{0};
  dispatch<kRealNumbers | kBool>("sort", dtype, [&]<class T>() -> void {
    WICK_ASSERT(sizeof(T) <= sizeof(K), "{} as keys of {} bytes", toString(dtype), sizeof(K));
    if constexpr (sizeof(T) <= sizeof(K)) {
      const T* const elements = static_cast<const T*>(from);
      for (int64_t i = 0; i < count; ++i) to[i] = sortKey<K>(elements[i]) ^ mask;
    }
  });
}

template void fillSortKeys<uint32_t>(DType, const void*, int64_t, bool, uint32_t*);
template void fillSortKeys<uint64_t>(DType, const void*, int64_t, bool, uint64_t*);

}  // namespace wick::ops

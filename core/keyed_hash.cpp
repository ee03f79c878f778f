#include "core/keyed_hash.h"

#include <sys/random.h>

#include <chrono>
#include <cstring>
#include <random>

namespace wick {

namespace {

template <class Word>
uint64_t read(const char* p) {
  Word word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

}  // namespace

HashKey HashKey::draw() {
  HashKey key{};
  if (getrandom(key.words, sizeof(key.words), 0) != static_cast<ssize_t>(sizeof(key.words))) {
    // Without the system call the clock and an address have to do.
    uint64_t state =
        static_cast<uint64_t>(std::chrono::high_resolution_clock::now().time_since_epoch().count());
    std::mt19937_64 generator(state ^ reinterpret_cast<uintptr_t>(&key));
    for (uint64_t& word : key.words) word = generator();
  }
  // A factor that is even, or zero, would lose bits.
  for (uint64_t& word : key.words) word |= 1;
  return key;
}

uint64_t maskedAddress(const void* address) {
  // A network of Feistel's permutes the numbers of 62 bits, in which all addresses lie.
  constexpr uint64_t kHalf = (uint64_t{1} << 31) - 1;
  const auto number = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address));
  uint64_t left = number >> 31 & kHalf, right = number & kHalf;
  for (uint64_t round = 0; round < 4; ++round) {
    const uint64_t next = left ^ (keyedHash(round, right) & kHalf);
    left = right;
    right = next;
  }
  return left << 31 | right;
}

uint64_t keyedHash(std::string_view bytes) {
  const HashKey& key = HashKey::get();
  const char* p = bytes.data();
  size_t n = bytes.size();
  uint64_t hash = key.words[0] ^ (n * uint64_t{0x9e3779b97f4a7c15});
  for (; n > 16; p += 16, n -= 16) {
    hash = detail::foldProduct(read<uint64_t>(p) ^ key.words[1], read<uint64_t>(p + 8) ^ hash);
  }
  // What is left is read from both ends; the parts may overlap, for the length is hashed too.
  uint64_t low = 0;
  uint64_t high = 0;
  if (n >= 8) {
    low = read<uint64_t>(p);
    high = read<uint64_t>(p + n - 8);
  } else if (n >= 4) {
    low = read<uint32_t>(p) << 32 | read<uint32_t>(p + n - 4);
  } else if (n > 0) {
    low = read<uint8_t>(p) << 16 | read<uint8_t>(p + n / 2) << 8 | read<uint8_t>(p + n - 1);
  }
  hash = detail::foldProduct(low ^ key.words[1], high ^ hash);
  return detail::foldProduct(hash ^ key.words[2], key.words[3]);
}

}  // namespace wick

// What loading a file may take.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace wick {

// What one archive may ask for. An archive that exceeds them is refused with a LoadError; whoever
// trusts its files may raise them.
struct ArchiveLimits {
  // Of the central directory, folders and entries outside of the root among them.
  size_t max_entries = 1 << 16;
  // Bytes of one pickle, inflated. Pickles describe values; the numbers of tensors lie elsewhere.
  uint64_t max_pickle = uint64_t{64} << 20;
  // Bytes of source text that are parsed, all modules together, and the classes that it declares.
  uint64_t max_code = uint64_t{4} << 20;
  size_t max_classes = 1 << 15;
  // Memory for what is not used as it lies in the file: inflated records, copies of tensors that
  // are not aligned, and the values that pickles build. `base_memory` and `memory_ratio` times the
  // size of the file together. With the mapped file itself, and 2 MiB for what is not counted, that
  // is four times its size and 16 MiB. PyTorch deflates only source text, so tensors that somebody
  // else deflated may grow to three times the file. Compiling the source takes memory of its own,
  // which max_code bounds.
  uint64_t base_memory = uint64_t{14} << 20;
  uint64_t memory_ratio = 3;
  // Besides, so many bytes for each byte of a pickle that lies in the file as it is: what a
  // dictionary of words takes beyond its text. PyTorch never deflates pickles.
  uint64_t pickle_ratio = 20;

  // The sum for a file of so many bytes.
  uint64_t memoryFor(uint64_t file_size) const;
};

}  // namespace wick

#pragma GCC visibility pop

// Where the records of a plan repeat themselves, as those of a loop do that the program ran.
//
// A repetition is a block of records that stands in the plan several times, one behind the other:
// the same operators with the same constants, and each value comes in each block from
// - the same place in the block, or in the one before (the first block has another value then);
// - before all blocks: the same value in each, or one of a row of values.
// Numbers that are handed over may differ from block to block.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lazy/graph.h"

namespace wick::lazy {

// Blocks that are worth a loop: a short one is compiled faster as it is.
inline constexpr size_t kMinTrips = 8;

// What a record reads in each block; one for each value in the record's operands, in order.
struct Read {
  enum class From : uint8_t {
    Nothing,  // None
    Same,     // `first`, from before all blocks
    Block,    // value `index` of the block's record `record`
    Before,   // the same of the block before, and `first` in the first block
    Each,     // from before all blocks, another in each: inputs, or values made at equal distances
  };
  From from = From::Nothing;
  ValueId first = kNoValue;
  uint32_t record = 0, index = 0;
};

struct Repetition {
  size_t begin = 0;         // in the plan's records
  size_t period = 0;        // records of a block
  size_t trips = 0;         // blocks, at least kMinTrips
  std::vector<Read> reads;  // of the block's records, one behind the other
  size_t end() const { return begin + period * trips; }
};

// In the plan's order; they do not overlap. Takes time that is linear in the number of records, but
// for a bounded factor.
std::vector<Repetition> findRepetitions(std::span<const Record> records,
                                        std::span<const Graph::Origin> origins,
                                        std::span<const uint32_t> plan);

// Whether a number of the record may differ from block to block: it is handed over in one of them.
// Each of these functions looks at the same operand (and element of a list of ints) of all blocks.
enum class Numbers : uint8_t { Text, Same, Differ, Wrong };
Numbers compareNumbers(std::span<const Operand* const> blocks);
Numbers compareInts(std::span<const Operand* const> blocks, size_t element);

}  // namespace wick::lazy

// Where the text of an archive's source came from: the records code/….py.debug_pkl.
//
// Printed source is made from graphs, whose nodes know the positions in the program that they
// were compiled from. A mark says which position a piece of printed text comes from. Archives that
// are loaded and saved again keep the positions in the first program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/source_range.h"
#include "serialization/archive_reader.h"

namespace wick {

// The text from `offset` to the next mark came from `range`; one without source: from nowhere.
struct SourceMark {
  uint64_t offset;
  SourceRange range;
};

// The record of one text, marks in the order of offsets.
std::string writeMarks(const std::vector<SourceMark>& marks);
// `name` is what messages call the record; memory is taken from `limits` for a file of its size.
// Throws LoadError.
std::vector<SourceMark> readMarks(const Bytes& pickle, const std::string& name,
                                  const ArchiveLimits& limits);

// Lets originOf() know where the text of `source` came from. `read` is called once, when that is
// first asked, and may throw. Thread-safe.
void setOrigins(const std::shared_ptr<const Source>& source,
                std::function<std::vector<SourceMark>()> read);
// The position that the text at the start of a range was printed from; the range itself when it
// does not lie in printed source that has marks. Thread-safe.
SourceRange originOf(const SourceRange& range);

}  // namespace wick

// The text of an exported graph, a line a node, so that errors can show where they happened.
#pragma once

#include <memory>
#include <unordered_map>

#include "core/source_range.h"
#include "serialization/exported/schema.h"

namespace wick::exported {

// Immutable once made.
class Listing {
 public:
  // `name` begins messages about the text. Positions in the user's own program, where the nodes have them, are what
  // userRange() (core/source_origin.h) gives for ranges of this text.
  Listing(const GraphRecord& graph, const std::string& name);

  // The line of a node of the graph, or of a graph in it.
  SourceRange rangeOf(const NodeRecord& node) const;

 private:
  std::shared_ptr<const Source> source_;
  std::unordered_map<const NodeRecord*, std::pair<size_t, size_t>> lines_;
};

}  // namespace wick::exported

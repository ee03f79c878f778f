// Parts of values, and values with another part, as records.
#pragma once

#include "lazy/graph.h"

namespace wick::lazy {

// The elements of `value`, whose layout is contiguous, that lie at `view`; its end() is not behind
// that of the layout, and its dtype the same.
ValueId recordView(Graph& graph, ValueId value, const Geometry& layout, const Geometry& view);
// The value with those elements replaced by `part`, in the same layout.
ValueId recordWrite(Graph& graph, ValueId value, const Geometry& layout, const Geometry& view,
                    ValueId part);
// The value that `is` describes, as one with other strides.
ValueId recordStrides(Graph& graph, ValueId value, const Geometry& is, IntSpan strides);

}  // namespace wick::lazy

// Numbers that elements of tensors decide: x.item(), int(x), float(x), and what is computed from them.
#pragma once

namespace wick {
class Graph;
}

namespace wick::aot {

// Makes tensors without dimensions of such numbers, so that arithmetic, comparisons, conditions, bounds of
// loops and operands of operators are computed when the compiled model runs: of an int an int64, of a
// float a float64, of a bool a bool. The results of the graph that are such numbers, or tuples and lists
// of them, are tensors then. Where a number itself is needed, as a size, the graph gets an operator that
// asks for it and raises NotAhead, which names who needs it.
void numbersAsTensors(Graph& graph);

}  // namespace wick::aot

// Removes what nobody can tell apart from never having run.
#pragma once

#include "ir/graph.h"

namespace wick {

// Removes nodes whose results are unused and whose writes nobody can see, unused outputs of Ifs,
// and values carried by Loops that only feed themselves. Kept are nodes that print, raise by
// themselves, wait, draw random numbers or call what is not known, nodes that write memory from
// outside of the graph, and nodes that write memory which a kept node may read (by alias analysis,
// ir/alias_db.h). An operator that would only have raised goes. Linear.
void eliminateDeadCode(Graph& graph);

}  // namespace wick

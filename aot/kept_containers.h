// Tuples that loops carry and conditions give, taken apart for loops that stay loops (aot/kept_loops.h).
#pragma once

namespace wick {
class Graph;
class Node;
class Value;
}  // namespace wick

namespace wick::aot {

// Lets loops carry, and conditions give, the elements of tuples instead of tuples.
void takeTuplesApart(Graph& graph);

bool isTensorList(const Value* v);
// Whether the node makes a list that nothing else has.
bool makesFreshList(const Node* node);

}  // namespace wick::aot

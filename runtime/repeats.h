// What calls must not do, and what they must share, to be repeated by a device as one piece of work
// (GroupBackend::repeat).
#pragma once

#include <string>
#include <vector>

#include "core/ivalue.h"

namespace wick {

class Graph;
class GraphFunction;

// What a call of the function does that would not happen again where only the device's work is
// repeated: "prints", "sets an attribute"; empty when there is nothing. Writes to elements of tensors
// are the device's work, and warnings need not be told again. Looks into the functions that it calls
// and forks.
std::string lastingEffect(const GraphFunction& function);

// Which forks of a graph, counted in order, may be worked on at the same time as what follows them, up to
// where their futures are waited for: the whole graph does nothing but compute results, and nobody
// writes to what these are given.
std::vector<bool> forksBeside(const Graph& original);

// Adds what a method finds at its object and all that this holds: tensors, numbers and texts, with
// numbers between them that tell how they are held. Two lists with equal members are equal states
// for a method, but for the elements of the tensors. False when it holds what cannot be
// described so: tensors that are not dense, that come from others or whose gradients call somebody,
// futures, generators, objects of native classes, or too many of all.
bool collectState(const Object& object, std::vector<IValue>& state);

}  // namespace wick

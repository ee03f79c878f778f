// Branches and loops that a tensor decides: both sides are evaluated, and the graph gets an If or a
// Loop instead of an end, where the sides do nothing but compute tensors.
#pragma once

namespace wick::capture {

class EvalFrame;
class TensorVariable;

// A way that a conditional jump goes.
struct BranchSide {
  int at = 0;         // the instruction
  bool pops = false;  // takes the condition off the stack
};

// Evaluates both sides of the instruction that runs up to where they meet, and goes on there. Supposes,
// where the graph may, that a side that always raises an exception is not taken. A side that always comes back to the
// instruction is the body of a loop; a loop that counts with an int is unrolled, each iteration as a side. Throws
// GraphBreak where a side does more than compute tensors, or what they leave differs in more than
// the elements of tensors.
void branchOnTensor(EvalFrame& frame, TensorVariable& condition, BranchSide if_true,
                    BranchSide if_false);

}  // namespace wick::capture

// Single passes: IR text in, what must and must not stand in the text that comes out.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "ir/dead_code.h"
#include "ir/parser.h"
#include "ir/simple_tuples.h"
#include "ir/verifier.h"
#include "passes/common_subexpressions.h"
#include "passes/constant_pooling.h"
#include "passes/constant_propagation.h"
#include "passes/copy_loop_weights.h"
#include "passes/dead_code_elimination.h"
#include "passes/freeze.h"
#include "passes/loop_invariants.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/remove_mutation.h"
#include "passes/unroll_loops.h"

namespace wick::passes_test {
namespace {

// Runs `pass` on the text. Its lines may end with "# CHECK: TEXT" or "# CHECK-NOT: TEXT": the texts
// must occur in the result, in this order, and must not occur at all.
std::shared_ptr<Graph> check(const std::string& text, const std::function<void(Graph&)>& pass) {
  auto graph = parseGraph(text);
  pass(*graph);
  verify(*graph);
  std::string result = graph->str();
  std::istringstream lines(text);
  std::string line;
  size_t at = 0;
  while (std::getline(lines, line)) {
    if (size_t mark = line.find("# CHECK: "); mark != std::string::npos) {
      std::string wanted = line.substr(mark + 9);
      size_t found = result.find(wanted, at);
      EXPECT_NE(found, std::string::npos) << "missing: " << wanted << "\nin:\n" << result;
      if (found != std::string::npos) at = found + wanted.size();
    } else if (size_t refused = line.find("# CHECK-NOT: "); refused != std::string::npos) {
      std::string unwanted = line.substr(refused + 13);
      EXPECT_EQ(result.find(unwanted), std::string::npos) << "unwanted: " << unwanted << "\nin:\n"
                                                          << result;
    }
  }
  return graph;
}

struct Case {
  const char* name;
  std::function<void(Graph&)> pass;
  const char* text;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      // ---- dead code ----
      {"DeadCode_WritesThatNobodySeesGo", eliminateDeadCode, R"(graph(%x : Tensor):
  # CHECK-NOT: aten::add_
  # CHECK-NOT: aten::append
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::add_(%a, %one, %one)
  %l : Tensor[] = prim::ListConstruct(%b)
  %m : Tensor[] = aten::append(%l, %a)
  %r : Tensor = aten::neg(%x)
  return (%r)
)"},
      {"DeadCode_OfALineThatOnlyComputesWhatNobodyReadsGoes", eliminateDeadCode,
       R"(graph(%x : Tensor, %c : int):
  # CHECK-NOT: aten::neg
  # CHECK-NOT: value=7
  # CHECK-NOT: aten::exp
  %seven : int = prim::Constant[value=7]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::mul(%a, %seven)
  %l : Tensor[] = aten::unbind(%x, %c) # CHECK: aten::unbind
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l) # CHECK: prim::ListUnpack
  %e : Tensor = aten::exp(%q)
  %m : Tensor[] = prim::ListConstruct(%b, %e)
  %r : Tensor = aten::relu(%p) # CHECK: aten::relu
  return (%r)
)"},
      {"DeadCode_WritesThroughViewsAndContainersStay", eliminateDeadCode,
       R"(graph(%x : Tensor, %i : int):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %v : Tensor = aten::t(%a)
  %w : Tensor = aten::relu_(%v) # CHECK: aten::relu_(%v)
  %b : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%b)
  %e : Tensor = aten::__getitem__(%l, %i)
  %z : Tensor = aten::add_(%e, %one, %one) # CHECK: aten::add_(%e
  %u : Tensor = aten::relu_(%x) # CHECK: aten::relu_(%x)
  return (%a, %b)
)"},
      {"DeadCode_WritesInLoopsThatLaterTurnsRead", eliminateDeadCode,
       R"(graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=True]()
  %a : Tensor = aten::relu(%x)
  %d : Tensor = aten::relu(%x)
  %s : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %q : Tensor = aten::add(%p, %a, %one)
      %w : Tensor = aten::add_(%a, %one, %one) # CHECK: aten::add_(%a
      %y : Tensor = aten::add_(%d, %one, %one) # CHECK-NOT: aten::add_(%d
      -> (%t, %q)
  return (%s)
)"},
      {"DeadCode_RandomNumbersAndPrintsStay", eliminateDeadCode, R"(graph(%x : Tensor, %m : str):
  %n : NoneType = prim::Constant()
  %r : Tensor = aten::rand_like(%x, %n, %n, %n, %n, %n) # CHECK: aten::rand_like
   = prim::Print(%m) # CHECK: prim::Print
  return (%x)
)"},
      {"DeadCode_StatisticsThatAreReadOrSeenOutsideStay", eliminateDeadCode,
       R"(graph(%x : Tensor, %m : Tensor):
  %0 : NoneType = prim::Constant()
  %eps : float = prim::Constant[value=0.001]()
  %true : bool = prim::Constant[value=True]()
  %false : bool = prim::Constant[value=False]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %k : Tensor = aten::batch_norm(%x, %0, %0, %m, %m, %true, %eps, %eps, %true) # CHECK: %m, %m, %true
  %l : Tensor = aten::batch_norm(%x, %0, %0, %m, %m, %false, %eps, %eps, %true) # CHECK-NOT: %m, %m, %false
  %n : Tensor = aten::instance_norm(%x, %0, %0, %a, %a, %true, %eps, %eps, %true) # CHECK: %a, %a, %true
  %o : Tensor = aten::instance_norm(%x, %0, %0, %b, %b, %true, %eps, %eps, %true) # CHECK-NOT: %b, %b, %true
  return (%a)
)"},
      {"DeadCode_TheEmittersRulesKeepOperators", removeDeadValues, R"(graph(%x : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]() # CHECK-NOT: value=1
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::relu(%x) # CHECK: aten::relu
  %u : int, %v : int = prim::If(%c) # CHECK: %u : int = prim::If
    block0():
      -> (%two, %one)
    block1():
      -> (%two, %one)
  return (%u)
)"},
      // ---- common subexpressions ----
      {"CommonSubexpressions_EachTrainingMovesTheStatistics", eliminateCommonSubexpressions,
       R"(graph(%x : Tensor, %m : Tensor):
  %0 : NoneType = prim::Constant()
  %eps : float = prim::Constant[value=0.001]()
  %true : bool = prim::Constant[value=True]()
  %before : Tensor = aten::neg(%m) # CHECK: %before
  %a : Tensor = aten::batch_norm(%x, %0, %0, %m, %m, %true, %eps, %eps, %true) # CHECK: %a
  %b : Tensor = aten::batch_norm(%x, %0, %0, %m, %m, %true, %eps, %eps, %true) # CHECK: %b
  %after : Tensor = aten::neg(%m) # CHECK: %after
  return (%before, %a, %b, %after)
)"},
      {"CommonSubexpressions_MergeInScope", eliminateCommonSubexpressions,
       R"(graph(%x : Tensor, %c : bool, %n : int):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x)
  %i : int = aten::mul(%n, %n)
  %y : int = prim::If(%c)
    block0():
      %j : int = aten::mul(%n, %n) # CHECK-NOT: %j
      %k : int = aten::add(%n, %n) # CHECK: %k
      -> (%j)
    block1():
      %l : int = aten::add(%n, %n) # CHECK: %l
      -> (%l)
  %z : Tensor = aten::mul(%a, %b) # CHECK: aten::mul(%a, %a)
  return (%z, %y, %i)
)"},
      {"CommonSubexpressions_MemoryThatIsWrittenIsLeftAlone", eliminateCommonSubexpressions,
       R"(graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %w : Tensor = aten::add_(%x, %one, %one)
  %b : Tensor = aten::relu(%x) # CHECK: %b
  %c : Tensor = aten::neg(%b)
  %d : Tensor = aten::neg(%b) # CHECK: %d
  %e : Tensor = aten::add_(%d, %one, %one)
  %z : Tensor = aten::mul(%a, %c)
  return (%z)
)"},
      {"CommonSubexpressions_TheCallerKeepsItsTwoTensors", eliminateCommonSubexpressions,
       R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%x) # CHECK: %b
  %c : Tensor = aten::neg(%x)
  %d : Tensor = aten::neg(%x) # CHECK-NOT: %d
  %e : Tensor = aten::neg(%x) # CHECK: %e
  %f : Tensor = aten::abs(%d)
  return (%a, %b, %c, %e, %f)
)"},
      {"CommonSubexpressions_RandomNumbersAndEffectsAreNotMerged", eliminateCommonSubexpressions,
       R"(graph(%x : Tensor, %m : str):
  %n : NoneType = prim::Constant()
  %a : Tensor = aten::rand_like(%x, %n, %n, %n, %n, %n)
  %b : Tensor = aten::rand_like(%x, %n, %n, %n, %n, %n) # CHECK: %b
  %z : Tensor = aten::mul(%a, %b)
  return (%z)
)"},
      {"CommonSubexpressions_ObjectsWithAnIdentityAreNotMerged", eliminateCommonSubexpressions,
       R"(graph(%x : Tensor):
  %a : Tensor[] = prim::ListConstruct(%x)
  %b : Tensor[] = prim::ListConstruct(%x)
  %s : bool = aten::__is__(%a, %b) # CHECK: aten::__is__(%a, %b)
  return (%s)
)"},
      // ---- constants ----
      {"ConstantPooling_MergesAndMovesToTheBeginning", poolConstants, R"(graph(%c : bool, %n : int):
  # CHECK: value=1
  # CHECK: value=1.0
  # CHECK: prim::If
  # CHECK-NOT: %b :
  %y : int = prim::If(%c)
    block0():
      %a : int = prim::Constant[value=1]()
      %f : float = prim::Constant[value=1.0]()
      %g : int = aten::add(%a, %n)
      -> (%g)
    block1():
      %b : int = prim::Constant[value=1]()
      -> (%b)
  return (%y)
)"},
      {"ConstantPooling_TellsApartWhatProgramsTellApart", poolConstants, R"(graph():
  %a : float = prim::Constant[value=0.0]()
  %b : float = prim::Constant[value=-0.0]() # CHECK: %b
  %c : int = prim::Constant[value=1]()
  %d : bool = prim::Constant[value=True]() # CHECK: %d
  %l : int[] = prim::Constant[value=[1, 1]]()
  %m : int[] = prim::Constant[value=[1, 1]]() # CHECK: %m
  %o : int[] = aten::append(%m, %c)
  return (%a, %b, %c, %d, %l, %o)
)"},
      {"ConstantPropagation_FoldsListsThatNobodyWritesOrSees", propagateConstants,
       R"(graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %l : int[] = prim::ListConstruct(%1, %1)
  %a : int, %b : int = prim::ListUnpack(%l)
  %s : int = aten::add(%a, %b) # CHECK: value=2
  %m : int[] = prim::ListConstruct(%1, %1) # CHECK: %m : int[] = prim::ListConstruct
  %n : int[] = prim::ListConstruct(%1) # CHECK: %n : int[] = prim::ListConstruct
  %o : int[] = aten::append(%n, %1)
  return (%s, %m)
)"},
      {"ConstantPropagation_WritesToAFoldedTensorPreventFolding", propagateConstants, R"(graph():
  # CHECK: %b : Tensor = aten::neg
  %c : Tensor = prim::Constant[value=tensor<float32>[1]{1.0}]()
  %a : Tensor = aten::neg(%c)
  %d : Tensor = aten::neg(%a)
  %e : Tensor = aten::abs(%d)
  %b : Tensor = aten::neg(%c)
  %w : Tensor = aten::relu_(%b)
  %f : Tensor = aten::mul(%b, %e)
  return (%f)
)"},
      {"ConstantPropagation_BranchesAndLoopsGiveBackWhatTheyDoNotChange", propagateConstants,
       R"(graph(%c : bool, %n : int, %x : Tensor):
  %t : bool = prim::Constant[value=True]()
  %p : Tensor, %k : int = prim::If(%c)
    block0():
      %1 : int = prim::Constant[value=1]()
      -> (%x, %1)
    block1():
      %2 : int = prim::Constant[value=1]()
      -> (%x, %2)
  %q : Tensor, %r : int = prim::Loop(%n, %t, %p, %k)
    block0(%i : int, %u : Tensor, %v : int):
      %w : int = aten::add(%v, %i)
      -> (%t, %u, %w)
  return (%q, %r) # CHECK: return (%x, %r)
)"},
      // ---- peephole ----
      {"Peephole_NumbersAndBooleans", simplifyPeepholes,
       R"(graph(%i : int, %j : int, %f : float, %c : bool):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %z : float = prim::Constant[value=0.]()
  %a : int = aten::add(%i, %0)
  %b : int = aten::mul(%1, %a)
  %g : float = aten::add(%f, %z)
  %h : float = aten::sub(%f, %z)
  %e : bool = aten::eq(%i, %j)
  %n : bool = aten::__not__(%e)
  %d : bool = prim::If(%n)
    block0():
      %t : bool = prim::Constant[value=True]()
      -> (%t)
    block1():
      %u : bool = prim::Constant[value=False]()
      -> (%u)
  %m : int = aten::neg(%b)
  %o : int = aten::neg(%m)
  # CHECK: %g : float = aten::add
  # CHECK: %n : bool = aten::ne(%i, %j)
  return (%o, %g, %h, %d) # CHECK: return (%i, %g, %f, %n)
)"},
      {"Peephole_NaNKeepsComparisonsOfFloats", simplifyPeepholes, R"(graph(%f : float, %g : float):
  %a : bool = aten::lt(%f, %g)
  %b : bool = aten::__not__(%a) # CHECK: aten::__not__
  return (%b)
)"},
      {"Peephole_None", simplifyPeepholes, R"(graph(%i : int, %o : int?, %x : Tensor):
  %n : NoneType = prim::Constant()
  %a : bool = aten::__is__(%i, %n)
  %b : bool = aten::__isnot__(%n, %n)
  %c : bool = aten::__is__(%o, %n) # CHECK: aten::__is__(%o, %n)
  %d : int = prim::unchecked_cast(%i)
  %e : bool = aten::__isnot__(%o, %o) # CHECK-NOT: aten::__isnot__(%o, %o)
  return (%a, %b, %c, %d, %e) # CHECK: %c, %i, %
)"},
      {"Peephole_ListsThatNobodyWrites", simplifyPeepholes,
       R"(graph(%i : int, %j : int, %x : Tensor):
  # CHECK-NOT: aten::len(%l)
  # CHECK: aten::len(%m)
  %1 : int = prim::Constant[value=1]()
  %l : int[] = prim::ListConstruct(%i, %j)
  %a : int = aten::len(%l)
  %b : int = aten::__getitem__(%l, %1)
  %p : int, %q : int = prim::ListUnpack(%l)
  %s : int[] = aten::add(%l, %l)
  %m : int[] = prim::ListConstruct(%i)
  %w : int[] = aten::append(%m, %j)
  %c : int = aten::len(%m)
  %z : int[] = aten::size(%x)
  %r : int = aten::len(%z) # CHECK: aten::dim(%x)
  return (%a, %b, %p, %q, %c, %r, %s) # CHECK: %j, %i, %j, %c
)"},
      {"Peephole_WhatTheTypeSays", simplifyPeepholes, R"(graph(%x : Float(2, 3), %y : Float(*, 3)):
  %1 : int = prim::Constant[value=1]()
  %a : int = prim::dtype(%x) # CHECK: value=6
  %b : int = aten::size(%y, %1) # CHECK: value=3
  %d : int = aten::dim(%y) # CHECK: value=2
  %s : int[] = aten::size(%x)
  %v : Tensor = aten::view(%y, %s) # CHECK-NOT: aten::size(%x)
  %t : Tensor = aten::t(%x)
  %u : Tensor = aten::t(%t)
  %m : Tensor = aten::mul(%v, %u)
  return (%a, %b, %d, %m)
)"},
      {"Peephole_ProductsWithOneWhoseStridesMatter", simplifyPeepholes,
       R"(graph(%x : Float(1, device=cpu), %y : Float(3, 4, strides=[4, 1], device=cpu)):
  %sizes : int[] = prim::Constant[value=[3, 4]]()
  %two : int[] = prim::Constant[value=[2]]()
  %ones : int[] = prim::Constant[value=[1]]()
  %ten : int = prim::Constant[value=10]()
  %one : float = prim::Constant[value=1.]()
  %no : bool = prim::Constant[value=0]()
  %e : Float(3, 4, device=cpu) = aten::expand(%x, %sizes, %no)
  %a : Float(3, 4, device=cpu) = aten::mul(%e, %one) # CHECK: aten::mul(%e, %one)
  %b : Float(2, device=cpu) = aten::as_strided(%a, %two, %ones, %ten)
  %c : Float(2, device=cpu) = aten::neg(%b)
  %d : Float(3, 4, device=cpu) = aten::mul(%e, %one) # CHECK-NOT: %d
  %f : Float(3, 4, device=cpu) = aten::neg(%d)
  %g : Float(3, 4, device=cpu) = aten::mul(%y, %one) # CHECK-NOT: %g
  %h : Float(2, device=cpu) = aten::as_strided(%g, %two, %ones, %ten)
  %i : Float(2, device=cpu) = aten::neg(%h)
  return (%c, %f, %i)
)"},
      // ---- loops ----
      {"UnrollLoops_EarlyEndsAndLongLoopsStay", unrollLoops, R"(graph(%c : bool, %x : Tensor):
  # CHECK: prim::Loop(%2
  # CHECK: prim::Loop(%3
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=1000]()
  %t : bool = prim::Constant[value=True]()
  %y : Tensor = prim::Loop(%2, %t, %x)
    block0(%i : int, %p : Tensor):
      %q : Tensor = aten::relu(%p)
      -> (%c, %q)
  %z : Tensor = prim::Loop(%3, %t, %y)
    block0(%j : int, %u : Tensor):
      %v : Tensor = aten::relu(%u)
      -> (%t, %v)
  return (%z)
)"},
      {"LoopInvariants_LeaveTheLoopWhenTheyCannotRaise", hoistLoopInvariants,
       R"(graph(%x : Tensor, %w : Tensor, %n : int, %k : int):
  # CHECK: %a : int = aten::mul
  # CHECK: prim::Loop
  # CHECK: aten::relu(%w)
  %t : bool = prim::Constant[value=True]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %a : int = aten::mul(%k, %k)
      %r : Tensor = aten::relu(%w)
      %q : Tensor = aten::add(%p, %r, %a)
      -> (%t, %q)
  return (%y)
)"},
      {"LoopInvariants_ALoopThatRunsLetsGoOfMore", hoistLoopInvariants,
       R"(graph(%x : Tensor, %w : Tensor, %k : int):
  # CHECK: aten::relu(%w)
  # CHECK: prim::Loop
  # CHECK: aten::neg(%x)
  %n : int = prim::Constant[value=50]()
  %t : bool = prim::Constant[value=True]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %r : Tensor = aten::relu(%w)
      %q : Tensor = aten::add(%p, %r, %i)
      %s : Tensor = aten::neg(%x)
      %u : Tensor = aten::mul(%q, %s)
      -> (%t, %u)
  return (%y)
)"},
      {"LoopInvariants_NewMemoryForEachTurnAndWritesStay", hoistLoopInvariants,
       R"(graph(%x : Tensor, %w : Tensor):
  # CHECK: prim::Loop
  # CHECK: aten::relu(%w)
  # CHECK: aten::neg(%x)
  %n : int = prim::Constant[value=50]()
  %t : bool = prim::Constant[value=True]()
  %l : Tensor[] = prim::ListConstruct()
   = prim::Loop(%n, %t)
    block0(%i : int):
      %r : Tensor = aten::relu(%w)
      %m : Tensor[] = aten::append(%l, %r)
      %s : Tensor = aten::neg(%x)
      %u : Tensor = aten::add_(%s, %i, %i)
      -> (%t)
  return (%l)
)"},
      // ---- tuples ----
      {"LowerTuples_InStraightLines", [](Graph& g) { lowerSimpleTuples(g); },
       R"(graph(%x : Tensor, %n : int):
  # CHECK-NOT: prim::Tuple
  %m : int = prim::Constant[value=-1]()
  %t : (Tensor, int) = prim::TupleConstruct(%x, %n)
  %a : Tensor, %b : int = prim::TupleUnpack(%t)
  %c : int = prim::TupleIndex(%t, %m)
  return (%a, %b, %c) # CHECK: return (%x, %n, %n)
)"},
      {"LowerTuples_ThroughBranchesAndLoops", lowerTuples,
       R"(graph(%x : Tensor, %y : Tensor, %c : bool, %n : int):
  # CHECK-NOT: prim::Tuple
  %t : bool = prim::Constant[value=True]()
  %p : (Tensor, Tensor) = prim::If(%c)
    block0():
      %q : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
      -> (%q)
    block1():
      %r : (Tensor, Tensor) = prim::TupleConstruct(%y, %x)
      -> (%r)
  %s : Tensor, %u : Tensor = prim::TupleUnpack(%p)
  %v : (Tensor, Tensor) = prim::TupleConstruct(%u, %s)
  %w : (Tensor, Tensor) = prim::Loop(%n, %t, %v)
    block0(%i : int, %k : (Tensor, Tensor)):
      %e : Tensor, %f : Tensor = prim::TupleUnpack(%k)
      %g : (Tensor, Tensor) = prim::TupleConstruct(%f, %e)
      -> (%t, %g)
  %a : Tensor, %b : Tensor = prim::TupleUnpack(%w)
  return (%a, %b)
)"},
      // ---- mutation ----
      {"RemoveListMutation_BuildsListsAtOnce", removeListMutation,
       R"(graph(%x : Tensor, %y : Tensor):
  # CHECK: prim::ListConstruct(%y, %x, %a)
  # CHECK-NOT: aten::append
  # CHECK-NOT: aten::insert
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x)
  %a : Tensor = aten::relu(%y)
  %m : Tensor[] = aten::append(%l, %a)
   = aten::insert(%l, %0, %y)
  return (%l)
)"},
      {"RemoveListMutation_ListsThatSomebodySawStay", removeListMutation,
       R"(graph(%x : Tensor, %c : bool):
  # CHECK: aten::append(%l
  # CHECK: aten::append(%k
  %l : Tensor[] = prim::ListConstruct(%x)
  %n : int = aten::len(%l)
  %m : Tensor[] = aten::append(%l, %x)
  %k : Tensor[] = prim::ListConstruct(%x)
  %z : int = prim::If(%c)
    block0():
      %o : Tensor[] = aten::append(%k, %x)
      -> (%n)
    block1():
      -> (%n)
  return (%l, %k, %z)
)"},
      {"RemoveTensorMutation_WritesToUnseenTensorsBecomeNewTensors", removeTensorMutation,
       R"(graph(%x : Tensor, %y : Tensor):
  # CHECK-NOT: relu_
  # CHECK: %b : Tensor = aten::relu(%a)
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::relu_(%a)
  %c : Tensor = aten::neg(%a) # CHECK: aten::neg(%b)
  return (%a, %c) # CHECK: return (%b, %c)
)"},
      {"RemoveTensorMutation_ViewsInputsAndOtherDtypesStay", removeTensorMutation,
       R"(graph(%x : Tensor, %y : Tensor):
  # CHECK: relu_(%a)
  # CHECK: relu_(%x)
  # CHECK: mul_(%e, %f)
  %f : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::mul(%x, %y)
  %v : Tensor = aten::t(%a)
  %b : Tensor = aten::relu_(%a)
  %c : Tensor = aten::relu_(%x)
  %e : Tensor = aten::add(%x, %y, %f)
  %g : Tensor = aten::mul_(%e, %f)
  return (%v, %c, %g)
)"},
      {"RemoveTensorMutation_TypesTellOfOperandsThatFit", removeTypedTensorMutation,
       R"(graph(%x : Float(2, SS(-1)), %y : Float(SS(-1)), %z : Float(2, SS(-2)),
      %d : Double(2, SS(-1)), %u : Tensor):
  # CHECK: aten::add(%a, %y, %one)
  # CHECK: mul_(%b, %z)
  # CHECK: mul_(%c, %d)
  # CHECK: mul_(%e, %u)
  %one : int = prim::Constant[value=1]()
  %a : Float(2, SS(-1)) = aten::neg(%x)
  %a1 : Tensor = aten::add_(%a, %y, %one)
  %b : Float(2, SS(-1)) = aten::neg(%x)
  %b1 : Tensor = aten::mul_(%b, %z)
  %c : Float(2, SS(-1)) = aten::neg(%x)
  %c1 : Tensor = aten::mul_(%c, %d)
  %e : Float(2, SS(-1)) = aten::neg(%x)
  %e1 : Tensor = aten::mul_(%e, %u)
  return (%a1, %b1, %c1, %e1)
)"},
      {"CopyLoopWeights_OneCopyForAllProductsOfALoop", copyLoopWeights,
       R"(graph(%x : Tensor, %w : Tensor, %n : int):
  # CHECK: wick::loop_weight(%w, %n)
  # CHECK-NOT: aten::mm
  # CHECK: prim::Loop
  # CHECK: wick::mm_weight(%p, %a
  # CHECK: wick::mm_weight
  %t : bool = prim::Constant[value=True]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %a : Tensor = aten::t(%w)
      %q : Tensor = aten::mm(%p, %a)
      %b : Tensor = aten::t(%w)
      %r : Tensor = aten::mm(%q, %b)
      -> (%t, %r)
  return (%y)
)"},
      {"CopyLoopWeights_NotOfWhatChangesAndNotWhereTurnsAreUnknown", copyLoopWeights,
       R"(graph(%x : Tensor, %w : Tensor, %v : Tensor, %c : bool, %n : int):
  # CHECK-NOT: wick::
  %t : bool = prim::Constant[value=True]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %own : Tensor = aten::t(%p)
      %q : Tensor = aten::mm(%p, %own)
      %written : Tensor = aten::add_(%w, %q, %one)
      %a : Tensor = aten::t(%w)
      %r : Tensor = aten::mm(%q, %a)
      -> (%t, %r)
  %z : Tensor = prim::Loop(%n, %c, %y)
    block0(%j : int, %s : Tensor):
      %b : Tensor = aten::t(%v)
      %u : Tensor = aten::mm(%s, %b)
      -> (%c, %u)
  return (%z)
)"},
  };
  return all;
}

class PassesTest : public testing::TestWithParam<Case> {};

TEST_P(PassesTest, LeavesWhatTheTextSays) {
  check(GetParam().text, GetParam().pass);
}
INSTANTIATE_TEST_SUITE_P(Passes, PassesTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(UnrollLoops, ConstantTurns) {
  auto g = check(R"(graph(%x : Tensor, %n : int):
  # CHECK-NOT: prim::Loop(%2
  # CHECK: prim::Loop(%n
  %2 : int = prim::Constant[value=2]()
  %t : bool = prim::Constant[value=True]()
  %y : Tensor = prim::Loop(%2, %t, %x)
    block0(%i : int, %p : Tensor):
      %q : Tensor = aten::add(%p, %i, %i)
      -> (%t, %q)
  %z : Tensor = prim::Loop(%n, %t, %y)
    block0(%j : int, %u : Tensor):
      %v : Tensor = aten::relu(%u)
      -> (%t, %v)
  return (%z)
)",
                 unrollLoops);
  auto adds = std::count_if(g->nodes().begin(), g->nodes().end(),
                            [](const Node* n) { return n->kind() == aten::add; });
  EXPECT_EQ(adds, 2);
}

TEST(UnrollLoops, LongLoopsAreWrittenOutWhereLimitsSaySo) {
  auto g = check(R"(graph(%x : Tensor):
  # CHECK-NOT: prim::Loop
  %n : int = prim::Constant[value=40]()
  %t : bool = prim::Constant[value=True]()
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %q : Tensor = aten::relu(%p)
      -> (%t, %q)
  return (%y)
)",
                 [](Graph& graph) {
                   EXPECT_FALSE(unrollLoops(graph));
                   EXPECT_FALSE(unrollLoopsWithin(graph, {.turns = 39}));
                   EXPECT_FALSE(unrollLoopsWithin(graph, {.turns = 40, .nodes = 39}));
                   return unrollLoopsWithin(graph, {.turns = 40});
                 });
  EXPECT_EQ(std::count_if(g->nodes().begin(), g->nodes().end(),
                          [](const Node* n) { return n->kind() == Symbol::aten("relu"); }),
            40);
}

// What is written need not be said by the schema, nor be an argument itself.
TEST(Freeze, WhatOperatorsWriteStays) {
  for (const char* write :
       {"%l : Tensor[] = prim::ListConstruct(%w)\n   = aten::_foreach_zero_(%l)",
        "%z : Tensor = aten::batch_norm(%x, %0, %0, %w, %w, %true, %p, %p, %true)",
        "%z : Tensor = aten::batch_norm(%x, %0, %0, %w, %w, %false, %p, %p, %true)"}) {
    auto type = std::make_shared<ClassType>("__torch__.M", true);
    type->addAttribute("weight", types::Tensor());
    auto self = makeRef<Object>(type, nullptr);
    self->setAttr("weight", IValue(Tensor::zeros({2}, DType::Float)));
    auto graph = parseGraph(std::string(R"(graph(%self : __torch__.M, %x : Tensor):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %0 : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=True]()
  %false : bool = prim::Constant[value=False]()
  %p : float = prim::Constant[value=0.5]()
  )") + write + R"(
  %y : Tensor = aten::mul(%x, %w)
  return (%y)
)",
                            [&](const std::string& name) -> TypePtr {
                              return name == "__torch__.M" ? TypePtr(type) : nullptr;
                            });
    freezeModule(*graph, self);
    verify(*graph);
    const bool stays = graph->str().find("prim::GetAttr") != std::string::npos;
    EXPECT_EQ(stays, std::string(write).find("%false") == std::string::npos) << write;
  }
}

}  // namespace
}  // namespace wick::passes_test

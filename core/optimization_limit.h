// Counts the changes that optimization passes make and stops them at a number: the way to the one
// change that makes a program wrong.
//
// The environment variable WICK_OPT_LIMIT holds NAME=NUMBER pairs separated by colons, NAME a
// pass's source file without suffix, or `*` for all passes together:
// WICK_OPT_LIMIT="peephole=3:inline_calls=0".
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/log.h"

namespace wick {

// Replaces what WICK_OPT_LIMIT said and starts counting from zero; empty lifts all limits. Throws
// UsageError for another syntax. Counting includes every thread.
void setOptimizationLimits(std::string_view limits);
// How many changes passes made since limits were set; counted only while some are.
uint64_t optimizationsMade();
// The pass that made the last one ("peephole"); empty when none did.
std::string lastOptimizingPass();

namespace detail {
extern std::atomic<bool> limiting;
bool withinLimit(std::string_view path);
}  // namespace detail

}  // namespace wick

// Whether the pass in this file may make one more change, which the arguments describe for the log:
//   if (!WICK_MAY_OPTIMIZE("{} is {}", node->output()->debugName(), value)) return;
// A pass asks before every change that is not needed for correctness, once a change.
#define WICK_MAY_OPTIMIZE(...)                                   \
  ((!::wick::detail::limiting.load(std::memory_order_relaxed) || \
    ::wick::detail::withinLimit(__FILE__)) &&                    \
   [&] {                                                         \
     GRAPH_UPDATE(__VA_ARGS__);                                  \
     return true;                                                \
   }())

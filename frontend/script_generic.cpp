// Generic functions behind Python's functions on iterables: compiled into each caller, with the
// types of its arguments (frontend/emit_builtins.cpp).
#include "frontend/script_library.h"

namespace wick {

// Sorting pairs of key and position keeps equal keys in order; reversed, positions count down.
const char* const kScriptGeneric = R"script(
def sorted_by(values, key, reverse: bool):
    sign = -1 if reverse else 1
    keyed = [(key(v), i * sign) for i, v in enumerate(values)]
    keyed.sort(reverse)
    return [values[sign * i] for _, i in keyed]
def sort_by(values, key, reverse: bool):
    ordered = sorted_by(values, key, reverse)
    values.clear()
    values.extend(ordered)
def min_by(values, key):
    if len(values) == 0:
        raise ValueError("min() arg is an empty sequence")
    best = values[0]
    least = key(best)
    for i in range(1, len(values)):
        found = key(values[i])
        if found < least:
            best = values[i]
            least = found
    return best
def max_by(values, key):
    if len(values) == 0:
        raise ValueError("max() arg is an empty sequence")
    best = values[0]
    most = key(best)
    for i in range(1, len(values)):
        found = key(values[i])
        if found > most:
            best = values[i]
            most = found
    return best
def min_or(values, default):
    return min(values) if len(values) > 0 else default
def max_or(values, default):
    return max(values) if len(values) > 0 else default
def min_by_or(values, key, default):
    return min_by(values, key) if len(values) > 0 else default
def max_by_or(values, key, default):
    return max_by(values, key) if len(values) > 0 else default
def sum_from(values, start):
    total = start
    for v in values:
        total = total + v
    return total
def sum_of_tensors(values):
    if len(values) == 0:
        return torch.tensor(0)
    total = 0 + values[0]
    for i in range(1, len(values)):
        total = total + values[i]
    return total
def any_of(values):
    found = False
    for v in values:
        if not found and v:
            found = True
    return found
def all_of(values):
    missing = False
    for v in values:
        if not missing and not v:
            missing = True
    return not missing
def dict_from_keys(keys, value):
    return {k: value for k in keys}
def map_list(f, values):
    return [f(v) for v in values]
def map_tuples(f, values):
    return [f(*v) for v in values]
def filter_list(f, values):
    return [v for v in values if f(v)]
def filter_true(values):
    return [v for v in values if v]
)script";

}  // namespace wick

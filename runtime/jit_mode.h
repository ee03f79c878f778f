// When programs become machine code: one switch for everything that compiles.
#pragma once

#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace wick {

enum class JitMode {
  Off,         // everything is interpreted
  Background,  // another thread compiles what runs often; the interpreter goes on meanwhile
  Sync,        // the thread that runs compiles, and waits: for tests and measurements
};

// What setJitMode() set last; before that the environment variable WICK_JIT ("off", "background" or
// "sync"; RuntimeError for anything else, and for a wrong WICK_VECTOR_BITS), before that
// Background. Thread-safe.
JitMode jitMode();
void setJitMode(JitMode mode);

// How often something must have run before it is compiled, for everything that compiles alike: what
// setJitThreshold() set last, before that the environment variable WICK_JIT_THRESHOLD (RuntimeError
// when that is no number). nullopt: each has its own. With 0 everything is compiled when it first
// runs, also what would gain nothing. Thread-safe.
std::optional<uint64_t> jitThreshold();
void setJitThreshold(std::optional<uint64_t> value);

}  // namespace wick

#pragma GCC visibility pop

// When programs become machine code: one switch for everything that compiles.
#pragma once

namespace wick {

enum class JitMode {
  Off,         // everything is interpreted
  Background,  // another thread compiles what runs often; the interpreter goes on meanwhile
  Sync,        // the thread that runs compiles, and waits: for tests and measurements
};

// What setJitMode() set last; before that the environment variable WICK_JIT ("off", "background" or
// "sync"; RuntimeError for anything else), before that Background. Thread-safe.
JitMode jitMode();
void setJitMode(JitMode mode);

}  // namespace wick

// The text of an error that a call raises, for tests.
#pragma once

#include <string>

#include "core/error.h"

namespace wick::testing_errors {

// What `f()` raises: of a RuntimeError the message without its place in a program, of other errors
// of Wick all text. "no error" when it raises nothing.
template <class F>
std::string errorOf(F&& f) {
  try {
    f();
  } catch (const RuntimeError& e) {
    return e.brief();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace wick::testing_errors

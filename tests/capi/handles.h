// Handles of capi/wick.h that free themselves, and short forms for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/wick.h"

namespace wick::testing_capi {

constexpr const char* kDigits = "examples/digits.pt";

struct Free {
  void operator()(wick_value* v) const { wick_value_free(v); }
  void operator()(wick_program* p) const { wick_program_free(p); }
  void operator()(wick_module* m) const { wick_module_free(m); }
  void operator()(wick_interrupt* i) const { wick_interrupt_free(i); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;
using Value = Owned<wick_value>;

inline std::string message() {
  return wick_last_error()->message;
}

// Calls a function whose last argument takes a handle.
template <class T = wick_value, class F, class... Args>
Owned<T> made(F function, Args... arguments) {
  T* handle = nullptr;
  EXPECT_EQ(function(arguments..., &handle), WICK_OK) << message();
  EXPECT_NE(handle, nullptr);
  return Owned<T>(handle);
}

inline Value integer(int64_t v) {
  return made(wick_value_from_int, v);
}
inline Value text(const std::string& v) {
  return made(wick_value_from_string, v.c_str(), v.size());
}
inline std::string stringOf(const Value& value) {
  const char* chars = nullptr;
  size_t bytes = 0;
  EXPECT_EQ(wick_value_to_string(value.get(), &chars, &bytes), WICK_OK) << message();
  return std::string(chars, bytes);
}
inline std::string reprOf(const Value& value) {
  return stringOf(made(wick_value_repr, value.get()));
}
inline Owned<wick_program> compiled(const char* source) {
  return made<wick_program>(wick_compile, source, "test.py",
                            static_cast<const wick_limits*>(nullptr));
}
inline wick_status call(const Owned<wick_program>& program, const char* function,
                        std::vector<wick_value*> arguments, Value& result,
                        const wick_limits* limits = nullptr) {
  wick_value* out = nullptr;
  const wick_status status = wick_program_call(program.get(), function, arguments.data(),
                                               arguments.size(), nullptr, limits, &out);
  EXPECT_EQ(out != nullptr, status == WICK_OK);
  result.reset(out);
  return status;
}
inline Value called(const Owned<wick_program>& program, const char* function,
                    std::vector<wick_value*> arguments = {}) {
  Value result;
  EXPECT_EQ(call(program, function, std::move(arguments), result), WICK_OK) << message();
  return result;
}

}  // namespace wick::testing_capi

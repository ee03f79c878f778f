// Short ways to run script text on tensors and to look at integers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/quantizer.h"
#include "wick.h"

namespace wick::testing {

using Integers = std::vector<int64_t>;

// What the body returns; its arguments are the tensors a, b and c.
inline IValue run(const std::string& body, std::vector<IValue> arguments,
                  const std::string& type = "Tensor") {
  std::string signature;
  const char* names[] = {"a: Tensor", "b: Tensor", "c: Tensor"};
  for (size_t i = 0; i < arguments.size(); ++i)
    signature += (i ? ", " : "") + std::string(names[i]);
  Program program = compile("def f(" + signature + ") -> " + type + ":\n    " + body + "\n");
  // The first runs are observed, the later ones follow a plan.
  for (int i = 0; i < 2; ++i) program.call("f", arguments);
  return program.call("f", std::move(arguments));
}
inline Tensor tensor(const std::string& body, std::vector<IValue> arguments) {
  return run("return " + body, std::move(arguments)).toTensor();
}

// The elements in row-major order.
inline Integers ints(const Tensor& t) {
  const Tensor all = (isQuantized(t) ? integersOf(t) : t).contiguous().to(DType::Long);
  return {all.data<int64_t>(), all.data<int64_t>() + all.numel()};
}
inline std::vector<float> floats(const Tensor& t) {
  const Tensor all = t.contiguous().to(DType::Float);
  return {all.data<float>(), all.data<float>() + all.numel()};
}
inline Integers intsOf(const std::string& body, std::vector<IValue> arguments) {
  return ints(tensor(body, std::move(arguments)));
}

inline Tensor spread(float first, float last, int64_t n) {
  Tensor t = Tensor::empty({n}, DType::Float);
  for (int64_t i = 0; i < n; ++i) {
    t.data<float>()[i] = first + (last - first) * static_cast<float>(i) / static_cast<float>(n - 1);
  }
  return t;
}

inline std::string errorOf(const std::string& body, std::vector<IValue> arguments) {
  try {
    run("return " + body, std::move(arguments));
  } catch (const RuntimeError& e) {
    return std::string(e.message());
  }
  return "no error";
}
#define EXPECT_ERROR(text, body, ...)                                                  \
  EXPECT_NE(::wick::testing::errorOf(body, __VA_ARGS__).find(text), std::string::npos) \
      << ::wick::testing::errorOf(body, __VA_ARGS__)

}  // namespace wick::testing

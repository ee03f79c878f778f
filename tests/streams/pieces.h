// Programs over time in pieces against one call with all of the input.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "streams/from_method.h"
#include "streams/text.h"
#include "streams/time/time_stream.h"
#include "wick.h"

namespace wick::streams::testing_pieces {

inline Tensor numbers(IntSpan sizes, int64_t seed) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<float>()[i] = static_cast<float>((i * 7919 + seed * 104729) % 997) / 997 - 0.5f;
  }
  return t;
}

// Cuts the first argument into pieces of these lengths, again and again, and compares. The results may
// be further apart than `most` nowhere.
inline void expectSame(const std::string& source, const std::vector<IValue>& arguments,
                       int64_t axis, const std::vector<int64_t>& lengths, double most = 1e-5) {
  const Program program = compile(source);
  const Tensor expected = program.call("main", arguments).toTensor().contiguous();
  TimeStream stream(inlinedFunction(program.function("main"), nullptr), arguments, axis);
  const std::string text = printStream(stream.graph());
  EXPECT_EQ(printStream(parseStream(text)), text);
  const Tensor whole = arguments[0].toTensor();
  axis = axis < 0 ? axis + whole.dim() : axis;
  for (int round = 0; round < 2; ++round) {
    int64_t at = 0;  // in the result
    const auto check = [&](const std::optional<Tensor>& piece) {
      if (!piece) return;
      const int64_t length = piece->size(stream.resultAxis());
      ASSERT_EQ(piece->dtype(), expected.dtype());
      ASSERT_LE(at + length, expected.size(stream.resultAxis()));
      const Tensor wanted =
          expected.narrow(stream.resultAxis(), at, length).to(DType::Double).contiguous();
      const Tensor found = piece->to(DType::Double).contiguous();
      ASSERT_EQ(DimVector(found.sizes()), DimVector(wanted.sizes()));
      for (int64_t i = 0; i < found.numel(); ++i) {
        const double a = found.data<double>()[i], b = wanted.data<double>()[i];
        // Infinities and what is no number must be the same.
        if (a == b || (a != a && b != b)) continue;
        ASSERT_NEAR(a, b, most) << "element " << i << " of the results from step " << at << " on";
      }
      at += length;
    };
    int64_t begin = 0;
    for (size_t i = 0; begin < whole.size(axis); ++i) {
      const int64_t length = std::min(lengths[i % lengths.size()], whole.size(axis) - begin);
      check(stream.push(whole.narrow(axis, begin, length)));
      begin += length;
    }
    check(stream.finish());
    EXPECT_EQ(at, expected.size(stream.resultAxis()));
    EXPECT_THROW(stream.finish(), RuntimeError);
    stream.reset();
  }
}

}  // namespace wick::streams::testing_pieces

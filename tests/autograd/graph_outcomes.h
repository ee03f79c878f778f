// Programs whose gradients are found with graphs, and operator by operator.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "core/optimization_limit.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/jit_mode.h"
#include "wick.h"

namespace wick {

// Kernels as soon as they are asked for.
class GraphsTest : public testing::Test {
 protected:
  void SetUp() override {
    before_ = jitMode();
    setJitMode(JitMode::Sync);
  }
  void TearDown() override {
    setJitMode(before_);
    setJitThreshold(std::nullopt);
    setOptimizationLimits("");
  }

 private:
  JitMode before_;
};

struct Outcome {
  std::vector<Tensor> tensors;
  uint64_t launches = 0;
};

inline Outcome outcomeOf(const std::string& source, bool graphs) {
  setOptimizationLimits(graphs ? "" : "fusion_groups=0:form_loop_graphs=0");
  const Program program = compile(source);
  const uint64_t before = fusionStatistics().launches;
  Outcome out;
  // The second call finds what the first one made.
  for (int call = 0; call < 2; ++call) {
    out.tensors.clear();
    const IValue made = program.call("main", {});
    for (const IValue& e : made.elements()) out.tensors.push_back(e.toTensor().detach());
  }
  out.launches = fusionStatistics().launches - before;
  setOptimizationLimits("");
  return out;
}

inline void expectSame(const std::string& source, const Outcome& a, const Outcome& b,
                       double tolerance) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size()) << source;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor x = a.tensors[i].to(DType::Double).contiguous(),
                 y = b.tensors[i].to(DType::Double).contiguous();
    ASSERT_EQ(DimVector(x.sizes()), DimVector(y.sizes())) << source;
    ASSERT_EQ(a.tensors[i].dtype(), b.tensors[i].dtype()) << source;
    for (int64_t k = 0; k < x.numel(); ++k) {
      const double p = x.data<double>()[k], q = y.data<double>()[k];
      if (p == q || (std::isnan(p) && std::isnan(q))) continue;
      ASSERT_NEAR(p, q, tolerance * (1 + std::abs(q))) << "tensor " << i << " of\n" << source;
    }
  }
}

}  // namespace wick

// In-place writes over memory that an argument shares: PyTorch 1.13 raises for some operators and not for others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "wick.h"

namespace wick::overlap_test {
namespace {

// The error of the statements, "" for none. `u` and `v` are parts of `b` that share three elements, `i` are the
// numbers 0 to 3, `m` is a matrix.
std::string errorOf(const std::string& statements) {
  const Program program = compile(R"(
def f():
    b = torch.arange(8.)
    u = b[0:4]
    v = b[1:5]
    i = torch.tensor([0, 1, 2, 3])
    m = torch.arange(9.).view(3, 3)
    )" + statements + "\n    return b, u, v, i, m\n");
  try {
    program.call("f", {});
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

TEST(Overlap, PartsOfArgumentsAreRefused) {
  for (const char* write : {
           "u.copy_(v)",
           "b[1:] = b[:-1]",
           "m.copy_(m.t())",
           "u.add_(v)",
           "u.lerp_(v, 0.5)",
           "u.index_copy_(0, i, v)",
           "u.index_add_(0, i, v)",
           "u.index_put_([i], v)",
           "u[i] = v",
           "u.scatter_(0, i, v)",
           "u.scatter_add_(0, i, v)",
           "u.put_(i, v)",
           "m[i[0:3]] = m.t()",
           "u.index_reduce_(0, i, v, 'prod')",
           "u.scatter_reduce_(0, i, v, 'sum')",
           "i[0:2].index_fill_(0, i[1:3], 0)",
           "i[0:2].scatter_(0, i[0:1], 0)",
           "torch.cumsum(v, 0, out=u)",
           "torch.cumprod(v, 0, out=u)",
           "torch.logcumsumexp(v, 0, out=u)",
           "torch.gather(v, 0, i, out=u)",
           "torch.index_select(v, 0, i, out=u)",
           "torch.take(v, i, out=u)",
           "torch.cat([v[0:2], v[2:4]], 0, out=u)",
           "torch.stack([v], 0, out=b[0:4].view(1, 4))",
           "torch.masked_select(v, v > -1.0, out=u)",
           "m.addr_(m[0], m[1])",
       }) {
    EXPECT_THAT(errorOf(write), testing::HasSubstr("some elements of the input tensor")) << write;
  }
}

TEST(Overlap, TheSameTensorIsRefusedWhereOrderWouldMatter) {
  for (const char* write :
       {"u.index_copy_(0, i, u)", "u.index_add_(0, i, u)", "u.index_put_([i], u)",
        "u.index_put_([i], u, True)", "u[i] = u", "u.scatter_(0, i, u)", "u.scatter_add_(0, i, u)",
        "u.put_(i, u)", "i.index_fill_(0, i, 0)", "i.scatter_(0, i, 0)", "i.index_put_([i], i + 1)",
        "torch.gather(u, 0, i, out=u)", "torch.take(u, i, out=u)",
        "torch.cat([u, u[0:0]], 0, out=u)", "torch.nonzero(i, out=i)",
        // Passes may make new tensors of these.
        "w = u + 1\n    w.index_put_([i], w)\n    b = w",
        "w = u + 1\n    w.scatter_(0, i, w)\n    b = w"}) {
    EXPECT_THAT(errorOf(write), testing::HasSubstr("some elements of the input tensor")) << write;
  }
}

TEST(Overlap, AllElsePasses) {
  for (const char* write :
       {"u.copy_(u)", "u.add_(u)", "torch.cumsum(u, 0, out=u)", "u[0:1].copy_(u[1:2])",
        "u.addmv_(torch.ones(4, 4), v)", "torch.sum(v.expand(2, 4), [0], out=u)",
        "u.masked_fill_(u > 1.0, v[0])", "u.masked_scatter_(u > -1.0, u)",
        "u.index_add_(0, i, b[4:8])", "torch.index_copy(u, 0, i, b[4:8], out=u)",
        "torch.gather(u, 0, i, out=b[4:8])",
        "k = u > 1.0\n    k.index_put_([k], torch.tensor([False]))", "m.addmm_(m, m)"}) {
    EXPECT_EQ(errorOf(write), "") << write;
  }
}

}  // namespace
}  // namespace wick::overlap_test

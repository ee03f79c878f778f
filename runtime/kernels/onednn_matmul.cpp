#include <omp.h>

#include <optional>

#include "core/parallel.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/onednn.h"

namespace wick::onednn {

namespace {

using Desc = dnnl::memory::desc;

struct PreparedProduct {
  dnnl::matmul primitive;
  Desc a, b, out, bias, scratch;
  size_t scratch_bytes;
};

Cache<PreparedProduct>& preparedProducts() {
  static Cache<PreparedProduct>* cache = new Cache<PreparedProduct>(1024);
  return *cache;
}

Key keyOf(const Tensor& a, const Tensor& b, bool has_bias, const Tensor& out, bool constant_b,
          const Epilogue& epilogue) {
  Key key;
  key.add(threadCount());
  key.add(int64_t{has_bias} | int64_t{constant_b} << 1 | int64_t{epilogue.residual.defined()} << 2 |
          static_cast<int64_t>(epilogue.activation) << 3 | static_cast<int64_t>(a.dtype()) << 8);
  key.add(a.sizes());
  key.add(a.strides());
  key.add(b.sizes());
  key.add(b.strides());
  key.add(out.strides());
  return key;
}

// While it lives, the calling thread's primitives use no other threads.
class OneThread {
 public:
  explicit OneThread(bool wanted) : before_(wanted ? omp_get_max_threads() : 0) {
    if (before_) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

dnnl::matmul::primitive_desc describeProduct(const Desc& a, const Desc& b, const Desc* bias,
                                             const Desc& out, bool constant_b,
                                             const Epilogue& epilogue) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops ops;
  if (epilogue.residual.defined()) ops.append_binary(dnnl::algorithm::binary_add, out);
  appendActivation(ops, epilogue.activation);
  attr.set_post_ops(ops);
  const Desc any(b.dims(), b.data_type(), dnnl::memory::format_tag::any);
  const Desc& wanted = constant_b ? any : b;
  return {bias ? dnnl::matmul::desc(a, wanted, *bias, out) : dnnl::matmul::desc(a, wanted, out),
          attr, engine()};
}

std::shared_ptr<PreparedProduct> prepare(const Tensor& a, const Tensor& b, const Tensor& bias,
                                         const Tensor& out, bool constant_b,
                                         const Epilogue& epilogue) {
  auto made = std::make_shared<PreparedProduct>();
  made->a = describe(a.sizes(), a.strides(), a.dtype());
  made->out = describe(out.sizes(), out.strides(), out.dtype());
  if (bias.defined()) {
    DimVector shape(static_cast<size_t>(out.dim()), 1);
    shape.back() = bias.numel();
    made->bias = describe(shape, contiguousStrides(shape), bias.dtype());
  }
  const auto pd =
      describeProduct(made->a, describe(b.sizes(), b.strides(), b.dtype()),
                      bias.defined() ? &made->bias : nullptr, made->out, constant_b, epilogue);
  made->primitive = dnnl::matmul(pd);
  made->b = pd.weights_desc();
  made->scratch = pd.scratchpad_desc();
  made->scratch_bytes = made->scratch.get_size();
  return made;
}

}  // namespace

void packMatrix(const char* op, const Tensor& b) {
  guarded(op, [&] {
    constexpr int64_t kRows = 64;
    const DimVector a{kRows, b.size(0)}, out{kRows, b.size(1)};
    const Desc plain = describe(b.sizes(), b.strides(), b.dtype());
    const auto pd = describeProduct(describe(a, contiguousStrides(a), b.dtype()), plain, nullptr,
                                    describe(out, contiguousStrides(out), b.dtype()), true, {});
    packWeight(b, plain, pd.weights_desc());
  });
}

namespace {

void multiply(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias,
              const Tensor& out, bool constant_b, const Epilogue& epilogue) {
  guarded(op, [&] {
    OneThread limit(out.numel() * a.size(-1) <= products::kOneThreadWork);
    const Key key = keyOf(a, b, bias.defined(), out, constant_b, epilogue);
    const PreparedProduct& prepared =
        preparedProducts().get(key, [&] { return prepare(a, b, bias, out, constant_b, epilogue); });
    auto memory = [](const Desc& desc, const Tensor& t) {
      return dnnl::memory(desc, engine(), t.rawData());
    };
    const dnnl::memory src = memory(prepared.a, a), dst = memory(prepared.out, out);
    Arguments args;
    args.add(DNNL_ARG_SRC, src);
    args.add(DNNL_ARG_DST, dst);
    std::optional<PackedWeight> packed;
    dnnl::memory b_memory, bias_memory, residual_memory, scratch_memory;
    if (constant_b) {
      packed = packWeight(b, describe(b.sizes(), b.strides(), b.dtype()), prepared.b);
      args.add(DNNL_ARG_WEIGHTS, packed->memory());
    } else {
      b_memory = memory(prepared.b, b);
      args.add(DNNL_ARG_WEIGHTS, b_memory);
    }
    if (bias.defined()) {
      bias_memory = memory(prepared.bias, bias);
      args.add(DNNL_ARG_BIAS, bias_memory);
    }
    if (epilogue.residual.defined()) {
      residual_memory = memory(prepared.out, epilogue.residual);
      args.add(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, residual_memory);
    }
    if (prepared.scratch_bytes > 0) {
      scratch_memory = dnnl::memory(prepared.scratch, engine(), scratchpad(prepared.scratch_bytes));
      args.add(DNNL_ARG_SCRATCHPAD, scratch_memory);
    }
    args.execute(prepared.primitive);
  });
}

}  // namespace

void matmul(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out,
            bool constant_b, const Epilogue& epilogue) {
  attendTeam();
  checkBudget();
  // A product that takes long is computed in parts, between which the budget is looked at: some
  // ten milliseconds each.
  constexpr int64_t kMostWork = int64_t{1} << 31;
  constexpr int64_t kRows = 64;  // parts are multiples of it
  const bool batched = out.dim() == 3 && out.size(0) > 1;
  const int64_t d = batched ? 0 : out.dim() - 2;
  const int64_t n = out.size(d);
  if (!currentBudget() || n <= (batched ? 1 : kRows) ||
      static_cast<double>(out.numel()) * static_cast<double>(a.size(-1)) <= kMostWork) {
    multiply(op, a, b, bias, out, constant_b, epilogue);
    return;
  }
  const int64_t first = batched ? n / 2 : (n / 2 + kRows - 1) / kRows * kRows;
  for (const auto& [start, length] : {std::pair(int64_t{0}, first), std::pair(first, n - first)}) {
    checkBudget();
    const auto part = [&, start = start, length = length](const Tensor& t) {
      return t.defined() && t.size(d) == n ? t.narrow(d, start, length) : t;
    };
    Epilogue rest = epilogue;
    rest.residual = part(epilogue.residual);
    matmul(op, part(a), batched ? part(b) : b, bias, part(out), constant_b, rest);
  }
}

}  // namespace wick::onednn

#include <omp.h>

#include "runtime/kernels/gemm.h"
#include "runtime/kernels/onednn.h"

namespace wick::onednn {

namespace {

using Desc = dnnl::memory::desc;

struct Prepared {
  dnnl::matmul primitive;
  Desc a, b, out, bias;
  size_t scratch_bytes;
};

Cache<Prepared>& preparedCache() {
  static Cache<Prepared>* cache = new Cache<Prepared>(1024);
  return *cache;
}

Key keyOf(const Tensor& a, const Tensor& b, bool has_bias, const Tensor& out, bool constant_b) {
  Key key;
  key.add(threadCount());
  key.add(int64_t{has_bias} | int64_t{constant_b} << 1);
  key.add(a.sizes());
  key.add(a.strides());
  key.add(b.sizes());
  key.add(b.strides());
  key.add(out.strides());
  return key;
}

// A product of so many multiplications takes ten microseconds on one core: what a second thread
// saves, waking it costs, and more when the processors are busy.
constexpr int64_t kOneThreadWork = int64_t{1} << 20;

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

}  // namespace

void matmul(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& out,
            bool constant_b) {
  guarded(op, [&] {
    OneThread limit(out.numel() * a.size(-1) <= kOneThreadWork);
    Key key = keyOf(a, b, bias.defined(), out, constant_b);
    auto prepared = preparedCache().get(key, [&] {
      auto made = std::make_shared<Prepared>();
      made->a = describe(a.sizes(), a.strides());
      made->b = describe(b.sizes(), b.strides());
      made->out = describe(out.sizes(), out.strides());
      if (bias.defined()) {
        DimVector shape(static_cast<size_t>(out.dim()), 1);
        shape.back() = bias.numel();
        made->bias = describe(shape, contiguousStrides(shape));
      }
      dnnl::primitive_attr attr;
      attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      Desc b_wanted = made->b;
      if (constant_b) {
        b_wanted =
            Desc(made->b.dims(), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
      }
      dnnl::matmul::primitive_desc pd(
          bias.defined() ? dnnl::matmul::desc(made->a, b_wanted, made->bias, made->out)
                         : dnnl::matmul::desc(made->a, b_wanted, made->out),
          attr, engine());
      made->primitive = dnnl::matmul(pd);
      made->b = pd.weights_desc();
      made->scratch_bytes = pd.scratchpad_desc().get_size();
      return made;
    });
    auto memory = [](const Desc& desc, const Tensor& t) {
      return dnnl::memory(desc, engine(), t.rawData());
    };
    std::unordered_map<int, dnnl::memory> args{{DNNL_ARG_SRC, memory(prepared->a, a)},
                                               {DNNL_ARG_DST, memory(prepared->out, out)}};
    std::shared_ptr<dnnl::memory> packed;
    if (constant_b) {
      packed = packWeight(b, describe(b.sizes(), b.strides()), prepared->b);
      args.emplace(DNNL_ARG_WEIGHTS, *packed);
    } else {
      args.emplace(DNNL_ARG_WEIGHTS, memory(prepared->b, b));
    }
    if (bias.defined()) args.emplace(DNNL_ARG_BIAS, memory(prepared->bias, bias));
    if (prepared->scratch_bytes > 0) {
      Desc scratch({static_cast<int64_t>(prepared->scratch_bytes)}, dnnl::memory::data_type::u8,
                   dnnl::memory::format_tag::a);
      args.emplace(DNNL_ARG_SCRATCHPAD,
                   dnnl::memory(scratch, engine(), scratchpad(prepared->scratch_bytes)));
    }
    prepared->primitive.execute(stream(), args);
  });
}

}  // namespace wick::onednn

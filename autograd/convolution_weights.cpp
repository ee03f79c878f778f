// Activations are described as channels-last memory, as oneDNN's convolutions here are
// (runtime/kernels/onednn_conv.cpp).
#include "autograd/convolution_weights.h"

#include "core/parallel.h"
#include "runtime/kernels/onednn.h"

namespace wick::autograd {

namespace {

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

struct Prepared {
  dnnl::primitive primitive;
  Desc input, weight, grad, scratch;
  dnnl::reorder unpacks;  // the gradient as it is wanted; none when it is so already
};

onednn::Cache<Prepared>& preparedCache() {
  static auto* cache = new onednn::Cache<Prepared>(512);
  return *cache;
}

Dims dims(IntSpan values) {
  return Dims(values.begin(), values.end());
}

DimVector groupedSizes(IntSpan weight_size, int64_t groups) {
  DimVector sizes(weight_size);
  if (groups > 1) {
    sizes[0] /= groups;
    sizes.insert(0, groups);
  }
  return sizes;
}

Desc plainWeight(IntSpan sizes) {
  return onednn::describe(sizes, contiguousStrides(sizes), DType::Float);
}

std::shared_ptr<Prepared> prepare(IntSpan grad, IntSpan input, IntSpan weight_size,
                                  const ConvolutionParams& p) {
  auto made = std::make_shared<Prepared>();
  const Desc src = onednn::describe(input, onednn::channelsInnermost(input), DType::Float);
  const Desc dst = onednn::describe(grad, onednn::channelsInnermost(grad), DType::Float);
  const Desc plain = plainWeight(groupedSizes(weight_size, p.groups));
  const Desc any(plain.dims(), plain.data_type(), dnnl::memory::format_tag::any);
  Dims dilation = dims(p.dilation), after;
  for (size_t d = 0; d < p.stride.size(); ++d) {
    // What makes the gradient exactly as large as it is.
    const int64_t extent = p.dilation[d] * (weight_size[2 + d] - 1) + 1;
    after.push_back((grad[2 + d] - 1) * p.stride[d] + extent - input[2 + d] - p.padding[d]);
    --dilation[d];  // oneDNN counts the elements that are skipped
  }
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  constexpr auto kDirect = dnnl::algorithm::convolution_direct;
  const dnnl::convolution_forward::desc forward(dnnl::prop_kind::forward_training, kDirect, src,
                                                any, dst, dims(p.stride), dilation, dims(p.padding),
                                                after);
  const dnnl::convolution_forward::primitive_desc hint(forward, onednn::engine());
  const dnnl::convolution_backward_weights::desc desc(kDirect, src, any, dst, dims(p.stride),
                                                      dilation, dims(p.padding), after);
  const dnnl::convolution_backward_weights::primitive_desc pd(desc, attr, onednn::engine(), hint);
  made->primitive = dnnl::convolution_backward_weights(pd);
  made->input = pd.src_desc();
  made->weight = pd.diff_weights_desc();
  made->grad = pd.diff_dst_desc();
  made->scratch = pd.scratchpad_desc();
  if (made->weight != plain) {
    const dnnl::engine& engine = onednn::engine();
    made->unpacks =
        dnnl::reorder(dnnl::reorder::primitive_desc(engine, made->weight, engine, plain));
  }
  return made;
}

}  // namespace

Tensor weightByOneDnn(const char* op, const Tensor& grad, const Tensor& input, IntSpan weight_size,
                      const ConvolutionParams& params) {
  attendTeam();
  return onednn::guarded(op, [&] {
    onednn::Key key;
    key.add(onednn::threadCount());
    key.add(params.groups);
    key.add(grad.sizes());
    key.add(input.sizes());
    key.add(weight_size);
    key.add(params.stride);
    key.add(params.padding);
    key.add(params.dilation);
    const Prepared& prepared = preparedCache().get(
        key, [&] { return prepare(grad.sizes(), input.sizes(), weight_size, params); });
    const auto memory = [](const Desc& desc, void* data) {
      return dnnl::memory(desc, onednn::engine(), data);
    };
    const Tensor x = onednn::toChannelsInnermost(input), g = onednn::toChannelsInnermost(grad);
    Tensor out = Tensor::empty(weight_size, DType::Float);
    const Desc plain = plainWeight(groupedSizes(weight_size, params.groups));
    const bool reorders = prepared.weight != plain;
    Tensor packed = out;
    if (reorders) {
      const auto bytes = static_cast<int64_t>(prepared.weight.get_size());
      packed = Tensor::empty(DimVector{(bytes + 3) / 4}, DType::Float);
    }
    const dnnl::memory src = memory(prepared.input, x.rawData()),
                       dst = memory(prepared.grad, g.rawData()),
                       weight = memory(prepared.weight, packed.rawData());
    onednn::Arguments args;
    args.add(DNNL_ARG_SRC, src);
    args.add(DNNL_ARG_DIFF_DST, dst);
    args.add(DNNL_ARG_DIFF_WEIGHTS, weight);
    dnnl::memory scratch;
    if (const size_t bytes = prepared.scratch.get_size(); bytes > 0) {
      scratch = memory(prepared.scratch, onednn::scratchpad(bytes));
      args.add(DNNL_ARG_SCRATCHPAD, scratch);
    }
    args.execute(prepared.primitive);
    if (reorders) {
      dnnl::memory from = weight, to = memory(plain, out.rawData());
      prepared.unpacks.execute(onednn::stream(), from, to);
      onednn::stream().wait();
    }
    return out;
  });
}

}  // namespace wick::autograd

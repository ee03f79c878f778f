// Attention: scaled dot products and the fused multi-head layers that nn.Transformer's fast path
// calls.
#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

const OperatorHandle kAttention{"aten::scaled_dot_product_attention", ""};

// softmax(q k^T / sqrt(d) + mask) v and the weights. A boolean mask is true where attention is
// allowed.
Pair attend(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
            double dropout, bool causal) {
  WICK_CHECK(q.dim() >= 2 && k.dim() >= 2 && v.dim() >= 2,
             "{}: expected query, key and value of two or more dimensions, got {}, {} and {}", op,
             q.describe(), k.describe(), v.describe());
  WICK_CHECK(!causal || !mask.defined(),
             "{}: Explicit attn_mask should not be set when is_causal=True", op);
  // Both factors are scaled by the square root, which keeps half-precision products in range.
  double scale = std::pow(static_cast<double>(q.size(-1)), -0.25);
  Tensor scores = matmul(ops::mulScalar(q, scale), ops::mulScalar(k, scale).transpose(-2, -1));
  Tensor allowed = mask;
  if (causal) {
    allowed =
        ops::tril(Tensor::full(DimVector{q.size(-2), k.size(-2)}, 1, DType::Bool, q.device()));
  }
  if (allowed.defined()) {
    scores = allowed.dtype() == DType::Bool
                 ? ops::maskedFill(scores, ops::logicalNot(allowed), -HUGE_VAL)
                 : ops::add(scores, allowed);
  }
  Tensor weights = ops::softmax(scores, -1);
  if (dropout > 0) weights = ops::dropout(weights, dropout, true);
  return {matmul(weights, v), weights};
}

Pair scaledDotProductPair(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                          double dropout, bool, bool causal) {
  return attend("_scaled_dot_product_attention", q, k, v, mask, dropout, causal);
}

// The operator of later PyTorch versions; a given scale replaces 1 / sqrt(d). Unlike the older one it
// computes tensors of 16 bits in float32 and rounds the result alone.
Tensor scaledDotProduct(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                        double dropout, bool causal, std::optional<double> scale, bool enable_gqa) {
  // On CUDA what no kernel takes keeps its dtype: the products are accumulated in float32 there.
  const auto wide = [](const Tensor& t) {
    const bool narrow = t.defined() && isReducedFloat(t.dtype()) && !t.device().isCuda();
    return narrow ? Tensor(ops::toDType(t, DType::Float)) : t;
  };
  Tensor query = wide(q), key = wide(k), value = wide(v);
  if (scale) query = ops::mulScalar(query, *scale * std::sqrt(static_cast<double>(q.size(-1))));
  if (enable_gqa && q.dim() >= 3 && k.size(-3) > 0) {
    static const OperatorHandle kRepeat("aten::repeat_interleave", "self_int");
    int64_t repeats = q.size(-3) / k.size(-3);
    key = kRepeat(key, repeats, int64_t{-3});
    value = kRepeat(value, repeats, int64_t{-3});
  }
  const Tensor out = std::get<0>(
      attend("scaled_dot_product_attention", query, key, value, wide(mask), dropout, causal));
  return out.dtype() == q.dtype() ? out : Tensor(ops::toDType(out, q.dtype()));
}

// [N, T, E] as [N, heads, T, E / heads].
Tensor splitHeads(const Tensor& t, int64_t heads) {
  return t.reshape(DimVector{t.size(0), t.size(1), heads, t.size(2) / heads}).transpose(1, 2);
}

struct Heads {
  Tensor output;   // [N, T, E]
  Tensor weights;  // [N, heads, T, S], where they are wanted
  Tensor key;      // [N, heads, S, E / heads], with what came before
  Tensor value;
};

// Keys and values of earlier calls, which come in front of the new ones; undefined when there are
// none.
struct Past {
  Tensor key;
  Tensor value;
};

// A mask here is true where attention is forbidden; kind 0 is [T, T], 1 is [N, T] (padding).
Heads multiHead(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, int64_t embed,
                int64_t heads, const Tensor& qkv_weight, const Tensor& qkv_bias,
                const Tensor& proj_weight, const Tensor& proj_bias, const Tensor& mask,
                std::optional<int64_t> mask_kind, bool want_weights, const Past& past = {}) {
  WICK_CHECK(q.dim() == 3 && k.dim() == 3 && v.dim() == 3 && q.size(2) == embed,
             "{}: expected 3-D query, key and value of last size {}, got {}, {} and {}", op, embed,
             q.describe(), k.describe(), v.describe());
  WICK_CHECK(heads > 0 && embed % heads == 0, "{}: {} does not divide {}", op, heads, embed);
  WICK_CHECK(qkv_weight.dim() == 2 && qkv_weight.size(0) == 3 * embed && qkv_bias.dim() == 1 &&
                 qkv_bias.size(0) == 3 * embed,
             "{}: expected qkv_weight of {} rows, got {}", op, 3 * embed, qkv_weight.describe());
  const bool elsewhere = !q.device().isCpu();
  // On devices one product for all three costs less than three.
  const Tensor joined =
      elsewhere && k.isSame(q) && v.isSame(q) ? linear(q, qkv_weight, qkv_bias) : Tensor();
  auto project = [&](const Tensor& x, int64_t i) {
    if (joined.defined()) return splitHeads(joined.narrow(2, i * embed, embed), heads);
    return splitHeads(
        linear(x, qkv_weight.narrow(0, i * embed, embed), qkv_bias.narrow(0, i * embed, embed)),
        heads);
  };
  Tensor query = project(q, 0), key = project(k, 1), value = project(v, 2);
  if (past.key.defined() && past.value.defined()) {
    key = ops::cat(std::vector<Tensor>{past.key, key}, 2);
    value = ops::cat(std::vector<Tensor>{past.value, value}, 2);
  }
  Tensor m = mask;
  if (mask.defined() && mask_kind.value_or(0) == 1 && mask.dim() == 2) {
    m = mask.unsqueeze(1).unsqueeze(1);
  }
  const auto project_back = [&](const Tensor& attended) {
    const Tensor rows = attended.transpose(1, 2).reshape(DimVector{q.size(0), q.size(1), embed});
    return linear(rows, proj_weight, proj_bias);
  };
  if (elsewhere && !want_weights) {
    // Where the device has one kernel for all of it.
    const Tensor allowed = m.defined() && m.dtype() == DType::Bool ? ops::logicalNot(m) : m;
    return {project_back(kAttention(query, key, value, allowed)), Tensor(), key, value};
  }
  query = ops::mulScalar(query, 1 / std::sqrt(static_cast<double>(embed / heads)));
  Tensor scores = matmul(query, key.transpose(-2, -1));
  if (m.defined()) {
    scores = m.dtype() == DType::Bool ? ops::maskedFill(scores, m, -HUGE_VAL) : ops::add(scores, m);
  }
  Tensor weights = ops::softmax(scores, -1);
  return {project_back(matmul(weights, value)), weights, key, value};
}

Tensor averaged(const Tensor& weights) {
  return ops::meanDims(weights, DimVector{1});
}

Pair nativeMultiHead(const Tensor& q, const Tensor& k, const Tensor& v, int64_t embed,
                     int64_t heads, const Tensor& qkv_weight, const Tensor& qkv_bias,
                     const Tensor& proj_weight, const Tensor& proj_bias, const Tensor& mask,
                     bool need_weights, bool average, std::optional<int64_t> mask_kind) {
  Heads h = multiHead("_native_multi_head_attention", q, k, v, embed, heads, qkv_weight, qkv_bias,
                      proj_weight, proj_bias, mask, mask_kind, need_weights);
  if (!need_weights) return {h.output, Tensor()};
  return {h.output, average ? averaged(h.weights) : h.weights};
}

// One step of a decoder, which gives its keys and values to the next one.
std::tuple<Tensor, Tensor, Tensor, Tensor> decoderMultiHead(
    const Tensor& q, const Tensor& k, const Tensor& v, int64_t embed, int64_t heads,
    const Tensor& qkv_weight, const Tensor& qkv_bias, const Tensor& proj_weight,
    const Tensor& proj_bias, const Tensor& mask, const Tensor& past_key, const Tensor& past_value,
    bool need_weights, bool average) {
  Heads h = multiHead("_native_decoder_only_multi_head_attention", q, k, v, embed, heads,
                      qkv_weight, qkv_bias, proj_weight, proj_bias, mask, std::nullopt,
                      need_weights, {past_key, past_value});
  if (!need_weights) return {h.output, Tensor(), h.key, h.value};
  return {h.output, average ? averaged(h.weights) : h.weights, h.key, h.value};
}

// The layer of an encoder or, with its keys and values, of a decoder: arguments as WICK_LAYER lists
// them.
Heads transformerStep(const char* op, const CallFrame& frame, std::optional<int64_t> mask_kind,
                      const Past& past) {
  const auto tensor = [&](size_t i) { return frame.args[i].toTensor(); };
  const Tensor src = tensor(0);
  const int64_t embed = frame.args[1].toInt(), heads = frame.args[2].toInt();
  const bool use_gelu = frame.args[7].toBool(), norm_first = frame.args[8].toBool();
  const auto norm = [&](const Tensor& t, size_t parameters) {
    return ops::layerNorm(t, DimVector{embed}, tensor(parameters), tensor(parameters + 1),
                          frame.args[9].numberToDouble());
  };
  const auto feedForward = [&](const Tensor& t) {
    Tensor hidden = linear(t, tensor(14), tensor(15));
    return linear(use_gelu ? ops::gelu(hidden) : ops::relu(hidden), tensor(16), tensor(17));
  };
  Tensor x = norm_first ? norm(src, 10) : src;
  Heads attended = multiHead(op, x, x, x, embed, heads, tensor(3), tensor(4), tensor(5), tensor(6),
                             tensor(18), mask_kind, /*want_weights=*/false, past);
  x = ops::add(attended.output, src);
  if (!norm_first) x = norm(x, 10);
  Tensor before = x;
  if (norm_first) x = norm(x, 12);
  x = ops::add(feedForward(x), before);
  attended.output = norm_first ? x : norm(x, 12);
  return attended;
}
void encoderLayer(CallFrame& frame) {
  const IValue& kind = frame.args[19];
  const std::optional<int64_t> mask_kind =
      kind.isNone() ? std::nullopt : std::optional(kind.toInt());
  frame.results[0] =
      IValue(transformerStep("_transformer_encoder_layer_fwd", frame, mask_kind, {}).output);
}
void decoderLayer(CallFrame& frame) {
  const Heads h = transformerStep("_transformer_decoder_only_layer_fwd", frame, std::nullopt,
                                  {frame.args[19].toTensor(), frame.args[20].toTensor()});
  size_t i = 0;
  for (const Tensor& t : {h.output, h.key, h.value}) frame.results[i++] = IValue(t);
}

// [N, T, 3 E] with its bias as query, key and value [N, heads, T, E / heads]; the query is scaled.
std::tuple<Tensor, Tensor, Tensor> rescaledQkv(const Tensor& qkv, const Tensor& bias,
                                               int64_t heads) {
  const char* op = "_transform_bias_rescale_qkv";
  WICK_CHECK(qkv.dim() == 3 && bias.dim() == 1 && bias.size(0) == qkv.size(2) && heads > 0 &&
                 qkv.size(2) % 3 == 0 && qkv.size(2) / 3 % heads == 0,
             "{}: expected qkv [N, T, 3 E] for {} heads and its bias, got {} and {}", op, heads,
             qkv.describe(), bias.describe());
  Tensor all = ops::add(qkv, bias);
  int64_t embed = qkv.size(2) / 3;
  auto part = [&](int64_t i) {
    return splitHeads(all.narrow(2, i * embed, embed), heads).contiguous();
  };
  double scale = 1 / std::sqrt(static_cast<double>(embed / heads));
  return {ops::mulScalar(part(0), scale), part(1), part(2)};
}

// Whether every row of the mask [N, T] is true first and false behind.
bool isLeftAligned(const Tensor& t, const Tensor& mask) {
  const char* op = "_nested_tensor_from_mask_left_aligned";
  WICK_CHECK(mask.dtype() == DType::Bool && mask.dim() == 2 && t.dim() == 3 &&
                 mask.size(0) == t.size(0) && mask.size(1) == t.size(1),
             "{}: expected a tensor [N, T, E] and a mask bool[N, T], got {} and {}", op,
             t.describe(), mask.describe());
  Tensor rows = mask.contiguous();
  for (int64_t n = 0; n < rows.size(0); ++n) {
    const bool* row = rows.data<bool>() + n * rows.size(1);
    if (!std::is_sorted(row, row + rows.size(1), std::greater<>())) return false;
  }
  return true;
}

#define WICK_QKV "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias"

#define WICK_LAYER                                                                            \
  "(Tensor src, int embed_dim, int num_heads, " WICK_QKV                                      \
  ", bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, "   \
  "Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor " \
  "ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None"

#define WICK_ATTEND                                                                             \
  "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool " \
  "need_attn_weights=False, bool is_causal=False) -> (Tensor, Tensor)"

constexpr OperatorRecord kAttentionRecords[] = {
    {"aten::_scaled_dot_product_attention" WICK_ATTEND, WICK_KERNEL(scaledDotProductPair),
     kNondeterministic | kNeutral | kEagerCastUnknown},
    {"aten::_scaled_dot_product_attention_math" WICK_ATTEND, WICK_KERNEL(scaledDotProductPair),
     kNondeterministic | kNeutral},
    {"aten::_scaled_dot_product_attention_forward" WICK_ATTEND, WICK_KERNEL(scaledDotProductPair),
     kNondeterministic},
    {"aten::_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool",
     WICK_KERNEL(isLeftAligned), kNotDifferentiable},
    {"aten::_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, "
     "Tensor, Tensor)",
     WICK_KERNEL(rescaledQkv), kNeutral},
    {"aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? "
     "attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool "
     "enable_gqa=False) -> Tensor",
     WICK_KERNEL(scaledDotProduct), kNondeterministic | kNeutral | kEagerCastUnknown,
     ops::shapes::attention},
    {"aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, "
     "int num_head, " WICK_QKV
     ", Tensor? mask=None, bool need_weights=True, bool average_attn_weights=True, int? "
     "mask_type=None) -> (Tensor, Tensor)",
     WICK_KERNEL(nativeMultiHead), kNeutral | kEagerCastUnknown},
    {"aten::_transformer_encoder_layer_fwd" WICK_LAYER ", int? mask_type=None) -> Tensor",
     &encoderLayer, kEagerCastUnknown},
    {"aten::_native_decoder_only_multi_head_attention(Tensor query, Tensor key, Tensor value, int "
     "embed_dim, int num_head, " WICK_QKV
     ", Tensor? mask=None, Tensor? incr_key=None, Tensor? incr_value=None, bool "
     "need_weights=True, bool average_attn_weights=True) -> (Tensor, Tensor, Tensor, Tensor)",
     WICK_KERNEL(decoderMultiHead)},
    {"aten::_transformer_decoder_only_layer_fwd" WICK_LAYER
     ", Tensor? incr_key=None, Tensor? incr_value=None) -> (Tensor, Tensor, Tensor)",
     &decoderLayer},
};

const RegisterOperators kAttentionRegistered(kAttentionRecords);

}  // namespace
}  // namespace wick

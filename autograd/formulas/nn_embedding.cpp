// Rows picked by index, attention, packed sequences, and dropout of features.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kNnEmbeddingHelpers[] = {
    // As PyTorch's, it leaves out how often an index occurs.
    {"embedding_dense_again", R"(
def embedding_dense_again(grad: Tensor, indices: Tensor, padding_idx: int, size: List[int]) -> Tensor:
    index = indices.reshape([-1])
    rows = grad.index_select(0, index)
    if padding_idx >= 0:
        rows = rows.masked_fill((index == padding_idx).unsqueeze(1), 0)
    return rows.reshape(size)
)"},
    // The bag of each index; as many as there are bags for indices behind the last one.
    {"bag_numbers", R"(
def bag_numbers(indices: Tensor, offsets: Tensor) -> Tensor:
    places = torch.arange(indices.numel(), device=indices.device)
    return torch.bucketize(places, offsets.to(torch.long), right=True) - 1
)"},
    {"bag_padding", R"(
def bag_padding(padding_idx: Optional[int], count: int) -> int:
    if padding_idx is None:
        return -1
    return padding_idx + count if padding_idx < 0 else padding_idx
)"},
    // Which indices take part: those in a bag that are not padding.
    {"bag_taken", R"(
def bag_taken(bags: Tensor, indices: Tensor, count: int, padding: int) -> Tensor:
    taken = bags < count
    return taken & (indices != padding) if padding >= 0 else taken
)"},
    // How often indices occur, as PyTorch looks it up: for the n-th different index it takes the
    // n-th of all sorted indices.
    {"bag_frequencies", R"(
def bag_frequencies(indices: Tensor, count: int) -> Tensor:
    index = indices.to(torch.long)
    often = torch.bincount(index, None, count)
    rank = torch._unique2(index, True, True, False)[1]
    return often.index_select(0, index.sort()[0].index_select(0, rank))
)"},
    {"bag_weight_gradient", R"(
def bag_weight_gradient(grad: Tensor, indices: Tensor, offsets: Tensor, weight_size: List[int], scale_grad_by_freq: bool, mode: int, scales: Optional[Tensor], padding: int, max_indices: Tensor) -> Tensor:
    count = grad.size(0)
    bags = bag_numbers(indices, offsets)
    taken = bag_taken(bags, indices, count, padding)
    sizes = torch.zeros([count + 1], dtype=torch.long, device=bags.device).index_add(0, bags, taken.to(torch.long))[:count]
    if mode == 2:
        filled = grad.masked_fill((sizes == 0).unsqueeze(1), 0)
        return torch.zeros(weight_size, dtype=grad.dtype, device=grad.device).scatter_add(0, max_indices.to(torch.long), filled)
    each = grad
    if mode == 1:
        each = grad / sizes.clamp_min(1).to(grad.dtype).unsqueeze(1)
    rows = torch.constant_pad_nd(each, [0, 0, 0, 1], 0).index_select(0, bags)
    rows = rows.masked_fill(~taken.unsqueeze(1), 0)
    if scales is not None:
        rows = rows * scales.reshape([-1, 1])
    if scale_grad_by_freq:
        rows = rows / bag_frequencies(indices, weight_size[0]).to(rows.dtype).unsqueeze(1)
    return torch.embedding_dense_backward(rows, indices, weight_size[0], -1, False)
)"},
    {"bag_scales_gradient", R"(
def bag_scales_gradient(grad: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, padding: int, scales_size: List[int]) -> Tensor:
    bags = bag_numbers(indices, offsets)
    taken = bag_taken(bags, indices, grad.size(0), padding)
    rows = torch.constant_pad_nd(grad, [0, 0, 0, 1], 0).index_select(0, bags)
    each = (rows * weight.index_select(0, indices.to(torch.long))).sum([1])
    return each.masked_fill(~taken, 0).reshape(scales_size)
)"},
    {"attention_made", R"(
def attention_made(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool) -> Tuple[Tensor, Tensor]:
    if is_causal and attn_mask is not None:
        raise RuntimeError('Explicit attn_mask should not be set when is_causal=True')
    scale = float(query.size(-1)) ** -0.25
    scores = torch.matmul(query * scale, (key * scale).transpose(-2, -1))
    allowed = attn_mask
    if is_causal:
        allowed = torch.ones([query.size(-2), key.size(-2)], dtype=torch.bool, device=query.device).tril()
    if allowed is not None:
        if allowed.dtype == torch.bool:
            scores = scores.masked_fill(torch.logical_not(allowed), float('-inf'))
        else:
            scores = scores + allowed
    weights = torch.softmax(scores, -1)
    if dropout_p > 0:
        weights = torch.dropout(weights, dropout_p, True)
    return (torch.matmul(weights, value), weights)
)"},
    {"attention_operand", R"(
def attention_operand(t: Tensor) -> Tensor:
    # On the CPU 16 bits are computed in float32; kernels of devices do so inside.
    narrow = t.dtype == torch.float16 or t.dtype == torch.bfloat16
    return t.to(torch.float32) if narrow and not t.is_cuda else t
)"},
    {"scaled_attention_made", R"(
def scaled_attention_made(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, scale: Optional[float], enable_gqa: bool) -> Tensor:
    q = attention_operand(query)
    k = attention_operand(key)
    v = attention_operand(value)
    if scale is not None:
        q = q * (scale * float(query.size(-1)) ** 0.5)
    if enable_gqa and query.dim() >= 3 and key.size(-3) > 0:
        times = query.size(-3) // key.size(-3)
        k = torch.repeat_interleave(k, times, -3)
        v = torch.repeat_interleave(v, times, -3)
    mask = attn_mask
    if mask is not None:
        mask = attention_operand(mask)
    return attention_made(q, k, v, mask, dropout_p, is_causal)[0].to(query.dtype)
)"},
    {"attention_heads", R"(
def attention_heads(t: Tensor, heads: int) -> Tensor:
    return t.reshape([t.size(0), t.size(1), heads, t.size(2) // heads]).transpose(1, 2)
)"},
    {"multi_head_made", R"(
def multi_head_made(query: Tensor, key: Tensor, value: Tensor, embed_dim: int, num_head: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, mask: Optional[Tensor], mask_type: Optional[int], past_key: Optional[Tensor], past_value: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    w = torch.chunk(qkv_weight, 3, 0)
    b = torch.chunk(qkv_bias, 3, 0)
    q = attention_heads(torch.linear(query, w[0], b[0]), num_head)
    k = attention_heads(torch.linear(key, w[1], b[1]), num_head)
    v = attention_heads(torch.linear(value, w[2], b[2]), num_head)
    if past_key is not None and past_value is not None:
        k = torch.cat([past_key, k], 2)
        v = torch.cat([past_value, v], 2)
    scores = torch.matmul(q * (1.0 / float(embed_dim // num_head) ** 0.5), k.transpose(-2, -1))
    if mask is not None:
        m = mask
        if mask_type is not None and mask_type == 1 and mask.dim() == 2:
            m = mask.unsqueeze(1).unsqueeze(1)
        if m.dtype == torch.bool:
            scores = scores.masked_fill(m, float('-inf'))
        else:
            scores = scores + m
    weights = torch.softmax(scores, -1)
    joined = torch.matmul(weights, v).transpose(1, 2).reshape([query.size(0), query.size(1), embed_dim])
    return (torch.linear(joined, proj_weight, proj_bias), weights, k, v)
)"},
    {"native_multi_head_made", R"(
def native_multi_head_made(all: Tuple[Tensor, Tensor, Tensor, Tensor], need_weights: bool, average: bool) -> Tuple[Tensor, Optional[Tensor]]:
    weights: Optional[Tensor] = None
    if need_weights:
        weights = all[1].mean([1]) if average else all[1]
    return (all[0], weights)
)"},
    {"decoder_multi_head_made", R"(
def decoder_multi_head_made(all: Tuple[Tensor, Tensor, Tensor, Tensor], need_weights: bool, average: bool) -> Tuple[Tensor, Optional[Tensor], Tensor, Tensor]:
    pair = native_multi_head_made(all, need_weights, average)
    return (pair[0], pair[1], all[2], all[3])
)"},
    {"transformer_layer_made", R"(
def transformer_layer_made(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor, use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor, ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Optional[Tensor], mask_type: Optional[int], past_key: Optional[Tensor], past_value: Optional[Tensor]) -> Tuple[Tensor, Tensor, Tensor]:
    x = torch.layer_norm(src, [embed_dim], norm_weight_1, norm_bias_1, eps) if norm_first else src
    attended = multi_head_made(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, mask_type, past_key, past_value)
    x = attended[0] + src
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_1, norm_bias_1, eps)
    before = x
    if norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    hidden = torch.linear(x, ffn_weight_1, ffn_bias_1)
    active = torch.gelu(hidden) if use_gelu else torch.relu(hidden)
    x = torch.linear(active, ffn_weight_2, ffn_bias_2) + before
    if not norm_first:
        x = torch.layer_norm(x, [embed_dim], norm_weight_2, norm_bias_2, eps)
    return (x, attended[2], attended[3])
)"},
    {"rescaled_qkv_made", R"(
def rescaled_qkv_made(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> Tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.chunk(qkv + qkv_bias, 3, -1)
    scale = 1.0 / float(q.size(-1) // num_heads) ** 0.5
    return (attention_heads(q, num_heads).contiguous() * scale, attention_heads(k, num_heads).contiguous(), attention_heads(v, num_heads).contiguous())
)"},
    // `shift` is what became of zeros: less where an element was dropped.
    {"alpha_dropped", R"(
def alpha_dropped(self: Tensor, shift: Tensor, p: float, train: bool) -> Tensor:
    if not train or p == 0 or self.numel() == 0:
        return self
    if p == 1:
        return self.mul_(0)
    alpha = 1.7580993408473766
    a = 1 / ((alpha * alpha * p + 1) * (1 - p)) ** 0.5
    factor = torch.where(shift > alpha * a * (p - 0.5), a, 0.0).to(self.dtype)
    return self.mul_(factor).add_(shift)
)"},
    {"dropout_scale", R"(
def dropout_scale(p: float, train: Optional[bool]) -> float:
    if train is not None and not train:
        return 1.0
    return 0.0 if p == 1 else 1 / (1 - p)
)"},
    // The first steps of a packed sequence, one after the other.
    {"pack_padded_gradient", R"(
def pack_padded_gradient(grad: Tensor, size: List[int], batch_sizes: Tensor, batch_first: bool) -> Tensor:
    sizes = list_of_lengths(batch_sizes)
    time = size[1] if batch_first else size[0]
    batch = size[0] if batch_first else size[1]
    steps: List[Tensor] = []
    for part in torch.split_with_sizes(grad, sizes, 0):
        missing = [0, 0] * (part.dim() - 1) + [0, batch - part.size(0)]
        steps.append(torch.constant_pad_nd(part, missing, 0))
    whole = torch.stack(steps, 0)
    whole = torch.constant_pad_nd(whole, [0, 0] * (whole.dim() - 1) + [0, time - len(sizes)], 0)
    return whole.transpose(0, 1) if batch_first else whole
)"},
    {"pad_packed_gradient", R"(
def pad_packed_gradient(grad: Tensor, batch_sizes: Tensor, batch_first: bool) -> Tensor:
    steps = grad.transpose(0, 1) if batch_first else grad
    out: List[Tensor] = []
    sizes = list_of_lengths(batch_sizes)
    for t in range(len(sizes)):
        out.append(steps.select(0, t).narrow(0, 0, sizes[t]))
    return torch.cat(out, 0)
)"},
    // Rows or columns up to each offset meet their own matrix.
    {"grouped_mm_made", R"(
def grouped_mm_made(self: Tensor, mat2: Tensor, offs: Optional[Tensor], bias: Optional[Tensor], out_dtype: Optional[int]) -> Tensor:
    if bias is not None:
        raise RuntimeError('_grouped_mm: a bias is not supported')
    out = self
    if self.dim() == 3 and mat2.dim() == 3:
        out = torch.bmm(self, mat2)
    else:
        if offs is None:
            raise RuntimeError('_grouped_mm: expected offsets as a 1-D tensor of integers')
        parts: List[Tensor] = []
        start = 0
        ends = list_of_lengths(offs)
        for g in range(len(ends)):
            n = ends[g] - start
            if self.dim() == 2 and mat2.dim() == 2:
                parts.append(torch.mm(self.narrow(1, start, n), mat2.narrow(0, start, n)))
            elif self.dim() == 2:
                parts.append(torch.mm(self.narrow(0, start, n), mat2.select(0, g)))
            else:
                parts.append(torch.mm(self.select(0, g), mat2.narrow(1, start, n)))
            start += n
        if self.dim() == 2 and mat2.dim() == 2:
            out = torch.stack(parts, 0)
        elif self.dim() == 2:
            out = torch.cat(parts, 0)
            out = torch.constant_pad_nd(out, [0, 0, 0, self.size(0) - start], 0)
        else:
            out = torch.cat(parts, 1)
            out = torch.constant_pad_nd(out, [0, mat2.size(1) - start], 0)
    return out if out_dtype is None else out.to(out_dtype)
)"},
    {"pad_sequence_made", R"(
def pad_sequence_made(sequences: List[Tensor], batch_first: bool, padding_value: float, padding_side: str) -> Tensor:
    assert padding_side == "left" or padding_side == "right", "Expected padding_side to be one of left or right"
    longest = 0
    for t in sequences:
        longest = max(longest, t.size(0))
    rows: List[Tensor] = []
    for t in sequences:
        missing = longest - t.size(0)
        ends = [missing, 0] if padding_side == "left" else [0, missing]
        row = torch.constant_pad_nd(t, [0, 0] * (t.dim() - 1) + ends, padding_value)
        rows.append(row.to(sequences[0].dtype))
    return torch.stack(rows, 0 if batch_first else 1)
)"},
};

#define WICK_BAG(padding)                                                                        \
  "results 0\n"                                                                                  \
  "weight: bag_weight_gradient(grad0, indices, offsets, weight_size, scale_grad_by_freq, mode, " \
  "per_sample_weights, " padding                                                                 \
  ", result3)\n"                                                                                 \
  "per_sample_weights: bag_scales_gradient(grad0, weight, indices, offsets, " padding            \
  ", per_sample_weights_size)"
#define WICK_HEADS                                                                              \
  "multi_head_made(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, " \
  "proj_bias, mask, "
#define WICK_LAYER                                                                                 \
  "transformer_layer_made(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, "          \
  "proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, " \
  "ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask, "

constexpr FormulaText kNnEmbeddingFormulas[] = {
    {"aten::embedding",
     "weight: torch.embedding_dense_backward(grad, indices, weight_size[0], padding_idx, "
     "scale_grad_by_freq)"},
    {"aten::embedding_dense_backward",
     "grad_output: embedding_dense_again(grad, indices, padding_idx, grad_output_size)"},
    {"aten::embedding_bag", WICK_BAG("-1")},
    {"aten::embedding_bag.padding_idx", WICK_BAG("bag_padding(padding_idx, weight_size[0])")},
    {"aten::_embedding_bag, aten::_embedding_bag_forward_only", WICK_BAG("padding_idx")},

    {R"(aten::_scaled_dot_product_attention, aten::_scaled_dot_product_attention_math,
         aten::_scaled_dot_product_attention_forward)",
     "return attention_made(query, key, value, attn_mask, dropout_p, is_causal)"},
    {"aten::scaled_dot_product_attention",
     "return scaled_attention_made(query, key, value, attn_mask, dropout_p, is_causal, scale, "
     "enable_gqa)"},
    {"aten::_native_multi_head_attention",
     "return native_multi_head_made(" WICK_HEADS
     "mask_type, None, None), need_weights, average_attn_weights)"},
    {"aten::_native_decoder_only_multi_head_attention",
     "return decoder_multi_head_made(" WICK_HEADS
     "None, incr_key, incr_value), need_weights, average_attn_weights)"},
    {"aten::_transformer_encoder_layer_fwd", "return " WICK_LAYER "mask_type, None, None)[0]"},
    {"aten::_transformer_decoder_only_layer_fwd",
     "return " WICK_LAYER "None, incr_key, incr_value)"},
    {"aten::_transform_bias_rescale_qkv", "return rescaled_qkv_made(qkv, qkv_bias, num_heads)"},

    {"aten::_pack_padded_sequence", R"(
results 0
input: pack_padded_gradient(grad0, input_size, result1, batch_first)
)"},
    {"aten::_pad_packed_sequence", R"(
results 0
data: pad_packed_gradient(grad0, batch_sizes, batch_first)
)"},
    {"aten::_pack_sequence", "results 0\noutput: grad0"},
    {"aten::_grouped_mm", "return grouped_mm_made(self, mat2, offs, bias, out_dtype)"},
    {"transformers::grouped_mm_fallback",
     "return grouped_mm_made(input, weight, offs, None, None)"},
    {"aten::pad_sequence",
     "return pad_sequence_made(sequences, batch_first, padding_value, padding_side)"},

    {"aten::feature_dropout, aten::alpha_dropout, aten::feature_alpha_dropout", "others"},
    {"aten::dropout_", "return self.mul_(torch.dropout(torch.ones_like(self), p, train))"},
    {"aten::feature_dropout_",
     "return input.mul_(torch.feature_dropout(torch.ones_like(input), p, train))"},
    {"aten::alpha_dropout_",
     "return alpha_dropped(input, torch.alpha_dropout(torch.zeros_like(input), p, train), p, "
     "train)"},
    {"aten::feature_alpha_dropout_",
     "return alpha_dropped(input, torch.feature_alpha_dropout(torch.zeros_like(input), p, train), "
     "p, "
     "train)"},
    {"aten::native_dropout", R"(
results 0
input: grad0 * result1 * dropout_scale(p, train)
)"},
};
const RegisterFormulas kNnEmbeddingRegistered(kNnEmbeddingFormulas, kNnEmbeddingHelpers);

}  // namespace

}  // namespace wick::autograd

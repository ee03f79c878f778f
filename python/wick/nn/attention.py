"""Attention and the encoder of transformers."""

import copy
import math
from typing import Optional, Tuple

from wick import torch
from wick.nn import functional as F
from wick.nn import init
from wick.nn.containers import ModuleList
from wick.nn.layers import Dropout, LayerNorm, Linear
from wick.nn.module import Module, Parameter
from wick.torch import Tensor


class MultiheadAttention(Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0, bias=True, batch_first=False):
        super().__init__()
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(
                f"MultiheadAttention: embed_dim must be divisible by num_heads, got {embed_dim} and "
                f"{num_heads}"
            )
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.dropout = float(dropout)
        self.batch_first = batch_first
        self.in_proj_weight = Parameter(torch.empty([3 * embed_dim, embed_dim]))
        self.register_parameter(
            "in_proj_bias", Parameter(torch.zeros([3 * embed_dim])) if bias else None
        )
        self.out_proj = Linear(embed_dim, embed_dim, bias)
        init.xavier_uniform_(self.in_proj_weight)
        if bias:
            init.zeros_(self.out_proj.bias)

    def _heads(self, x: Tensor) -> Tensor:
        return x.view([x.size(0), x.size(1), self.num_heads, self.head_dim]).transpose(1, 2)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        if not self.batch_first:
            query, key, value = query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1)
        n = self.embed_dim
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if bias is not None:
            q = F.linear(query, weight[:n], bias[:n])
            k = F.linear(key, weight[n : 2 * n], bias[n : 2 * n])
            v = F.linear(value, weight[2 * n :], bias[2 * n :])
        else:
            q = F.linear(query, weight[:n])
            k = F.linear(key, weight[n : 2 * n])
            v = F.linear(value, weight[2 * n :])
        q, k, v = self._heads(q), self._heads(k), self._heads(v)
        scores = torch.matmul(q / math.sqrt(float(self.head_dim)), k.transpose(2, 3))
        if attn_mask is not None:
            mask = attn_mask
            if mask.dim() == 3:
                mask = mask.view([q.size(0), self.num_heads, mask.size(1), mask.size(2)])
            if mask.dtype == torch.bool:
                scores = scores.masked_fill(mask, -math.inf)
            else:
                scores = scores + mask
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask.unsqueeze(1).unsqueeze(2), -math.inf)
        weights = torch.dropout(torch.softmax(scores, -1), self.dropout, self.training)
        mixed = torch.matmul(weights, v).transpose(1, 2)
        mixed = mixed.reshape([mixed.size(0), mixed.size(1), n])
        result = self.out_proj(mixed)
        if not self.batch_first:
            result = result.transpose(0, 1)
        if need_weights:
            if average_attn_weights:
                weights = weights.mean(1)
            return result, weights
        return result, None


class TransformerEncoderLayer(Module):
    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
    ):
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"activation must be relu or gelu, not {activation}")
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model)
        self.norm1 = LayerNorm(d_model, layer_norm_eps)
        self.norm2 = LayerNorm(d_model, layer_norm_eps)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.norm_first = norm_first
        self.use_gelu = activation == "gelu"

    def _attend(
        self, x: Tensor, mask: Optional[Tensor], padding: Optional[Tensor]
    ) -> Tensor:
        attended, _ = self.self_attn(x, x, x, padding, False, mask)
        return self.dropout1(attended)

    def _feed(self, x: Tensor) -> Tensor:
        x = self.linear1(x)
        x = F.gelu(x) if self.use_gelu else torch.relu(x)
        return self.dropout2(self.linear2(self.dropout(x)))

    def forward(
        self,
        src: Tensor,
        src_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
    ) -> Tensor:
        x = src
        if self.norm_first:
            x = x + self._attend(self.norm1(x), src_mask, src_key_padding_mask)
            return x + self._feed(self.norm2(x))
        x = self.norm1(x + self._attend(x, src_mask, src_key_padding_mask))
        return self.norm2(x + self._feed(x))


class TransformerEncoder(Module):
    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        src: Tensor,
        mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
    ) -> Tensor:
        output = src
        for layer in self.layers:
            output = layer(output, mask, src_key_padding_mask)
        if self.norm is not None:
            output = self.norm(output)
        return output

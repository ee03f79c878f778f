// Joining, splitting and rearranging.
#include "autograd/formula.h"

namespace wick::autograd {

namespace {

constexpr HelperText kShapesHelpers[] = {
    {"cut", R"(
def cut(grad: Tensor, sizes: List[List[int]], dim: int) -> List[Tensor]:
    out: List[Tensor] = []
    at = 0
    for size in sizes:
        # An empty vector joins tensors of any shape.
        if len(size) == 1 and size[0] == 0 and grad.dim() != 1:
            out.append(torch.zeros(size, dtype=grad.dtype, device=grad.device))
        else:
            out.append(grad.narrow(dim, at, size[dim]))
            at += size[dim]
    return out
)"},
    {"blocks_of", R"(
def blocks_of(tensors: List[Tensor]) -> Tensor:
    blocks = [t.reshape([1, t.numel()]) if t.dim() < 2 else t for t in tensors]
    width = 0
    for b in blocks:
        width += b.size(1)
    rows: List[Tensor] = []
    at = 0
    for b in blocks:
        rows.append(torch.nn.functional.pad(b, [at, width - at - b.size(1)]))
        at += b.size(1)
    return torch.cat(rows, 0)
)"},
    {"unrepeated", R"(
def unrepeated(grad: Tensor, size: List[int], repeats: List[int]) -> Tensor:
    more = len(repeats) - len(size)
    shape: List[int] = []
    dims: List[int] = []
    for i in range(len(repeats)):
        dims.append(len(shape))
        shape.append(repeats[i])
        shape.append(1 if i < more else size[i - more])
    if len(shape) == 0:
        return grad
    return grad.reshape(shape).sum(dims).reshape(size)
)"},
    {"repeated_elements", R"(
def repeated_elements(self: Tensor, repeats: Tensor, dim: Optional[int]) -> Tensor:
    flat = self.reshape([-1]) if dim is None else self
    d = 0 if dim is None else dim
    times = repeats.expand([flat.size(d)]) if repeats.numel() == 1 else repeats
    return flat.index_select(d, torch.repeat_interleave(times))
)"},
    {"meshed", R"(
def meshed(tensors: List[Tensor], indexing: str) -> List[Tensor]:
    if indexing != 'ij' and indexing != 'xy':
        raise RuntimeError('torch.meshgrid: indexing must be one of "xy" or "ij", but received: ' + indexing)
    inputs = [t for t in tensors]
    swap = indexing == 'xy' and len(tensors) >= 2
    if swap:
        inputs[0] = tensors[1]
        inputs[1] = tensors[0]
    shape = [t.numel() for t in inputs]
    out: List[Tensor] = []
    for i in range(len(inputs)):
        view = [1] * len(inputs)
        view[i] = shape[i]
        out.append(inputs[i].reshape(view).expand(shape))
    if swap:
        first = out[0].transpose(0, 1)
        out[0] = out[1].transpose(0, 1)
        out[1] = first
    return out
)"},
    // The pieces may overlap where the indices descend.
    {"split_at", R"(
def split_at(self: Tensor, indices: List[int], dim: int) -> List[Tensor]:
    pieces: List[Tensor] = []
    start = 0
    for end in indices + [self.size(dim)]:
        pieces.append(torch.slice(self, dim, start, end))
        start = end
    return pieces
)"},
    // Each result has the history of its own tensor alone.
    {"expanded_alike", R"(
def expanded_alike(tensors: List[Tensor]) -> List[Tensor]:
    size = torch.broadcast_tensors([t.detach() for t in tensors])[0].size()
    return [t.expand(size) for t in tensors]
)"},
    {"combined", R"(
def combined(self: Tensor, r: int, with_replacement: bool) -> Tensor:
    places = torch.combinations(torch.arange(self.numel(), device=self.device), r, with_replacement)
    return self.index_select(0, places.reshape([-1])).reshape(places.size())
)"},
    {"unfolded_gradient", R"(
def unfolded_gradient(grad: Tensor, size: List[int], dimension: int, length: int, step: int) -> Tensor:
    if len(size) == 0:
        return grad.reshape(size)
    d = dimension if dimension >= 0 else dimension + len(size)
    count = grad.size(d)
    starts = torch.arange(count, device=grad.device) * step
    places = starts.unsqueeze(1) + torch.arange(length, device=grad.device)
    together = grad.movedim(-1, d + 1).flatten(d, d + 1)
    return torch.zeros(size, dtype=grad.dtype, device=grad.device).index_add(d, places.reshape([-1]), together)
)"},
    {"segment_reduced", R"(
def segment_reduced(part: Tensor, size: int, reduce: str, initial: Optional[number]) -> Tensor:
    if size == 0:
        # The sum of nothing keeps the result a function of the data.
        start = (0.0 if reduce == 'sum' else 1.0 if reduce == 'prod' else float('-inf') if reduce == 'max' else float('inf') if reduce == 'min' else float('nan')) if initial is None else float(initial)
        return part.sum([0], True) + start
    if reduce == 'max':
        result = part.amax([0], True)
        return result if initial is None else torch.clamp(result, min=initial)
    if reduce == 'min':
        result = part.amin([0], True)
        return result if initial is None else torch.clamp(result, max=initial)
    if reduce == 'prod':
        result = part.prod(0, True)
        return result if initial is None else result * initial
    result = part.sum([0], True)
    if initial is not None:
        result = result + initial
    return result if reduce == 'sum' else result / size
)"},
    {"segments_reduced", R"(
def segments_reduced(data: Tensor, reduce: str, lengths: Optional[Tensor], indices: Optional[Tensor], offsets: Optional[Tensor], axis: int, unsafe: bool, initial: Optional[number]) -> Tensor:
    # Where segments begin and end, of arguments that fit together: [batch, count, 2].
    bounds = torch.ops.wick.segment_bounds(data, reduce, lengths, indices, offsets, axis, unsafe)
    lead = axis if axis >= 0 else axis + data.dim()
    shape = data.size()[:lead] + [bounds.size(1)] + data.size()[lead + 1:]
    if bounds.numel() == 0:
        return data.sum() * torch.zeros(shape, dtype=data.dtype, device=data.device)
    # The dimensions in front of the segments, as one.
    batches = data.reshape([bounds.size(0)] + data.size()[lead:])
    parts: List[Tensor] = []
    rows: List[List[List[int]]] = bounds.tolist()
    for b, row in enumerate(rows):
        for ends in row:
            size = ends[1] - ends[0]
            parts.append(segment_reduced(batches[b].narrow(0, ends[0], size), size, reduce, initial))
    return torch.cat(parts, 0).reshape(shape)
)"},
};

constexpr FormulaText kShapesFormulas[] = {
    {"aten::cat, aten::_cat, aten::concat, aten::concatenate",
     "tensors: cut(grad, tensors_sizes, dim)"},
    {"aten::stack, aten::_stack", "tensors: torch.unbind(grad, dim)"},
    {"aten::hstack", R"(
return torch.cat(torch.atleast_1d(tensors), 0 if tensors[0].dim() < 2 else 1)
)"},
    {"aten::vstack, aten::row_stack", "return torch.cat(torch.atleast_2d(tensors), 0)"},
    {"aten::dstack", "return torch.cat(torch.atleast_3d(tensors), 2)"},
    {"aten::column_stack", R"(
return torch.cat([t.reshape([t.numel(), 1]) if t.dim() < 2 else t for t in tensors], 1)
)"},
    {"aten::block_diag", "return blocks_of(tensors)"},
    {"aten::unbind.int, aten::unbind_copy.int", "self: torch.stack(grads, dim)"},
    {R"(aten::split.Tensor, aten::split.sizes, aten::split, aten::split_with_sizes, aten::chunk,
         aten::unsafe_chunk, aten::unsafe_split.Tensor, aten::unsafe_split_with_sizes,
         aten::tensor_split.sections,
         aten::tensor_split.tensor_indices_or_sections, aten::split_with_sizes_copy,
         aten::split_copy.Tensor)",
     "self: torch.cat(grads, dim)"},
    {"aten::hsplit.int", "self: torch.cat(grads, 0 if len(self_size) == 1 else 1)"},
    {"aten::vsplit.int", "self: torch.cat(grads, 0)"},
    {"aten::dsplit.int", "self: torch.cat(grads, 2)"},
    {"aten::tensor_split.indices", "return split_at(self, indices, dim)"},
    {"aten::hsplit.array", "return split_at(self, indices, 0 if self.dim() == 1 else 1)"},
    {"aten::vsplit.array", "return split_at(self, indices, 0)"},
    {"aten::dsplit.array", "return split_at(self, indices, 2)"},
    {"aten::repeat", "self: unrepeated(grad, self_size, repeats)"},
    {"aten::tile", "return self.repeat([1] * (self.dim() - len(dims)) + dims)"},
    {"aten::repeat_interleave.self_int", R"(
return repeated_elements(self, torch.full([self.numel() if dim is None else self.size(dim)], repeats, dtype=torch.int64, device=self.device), dim)
)"},
    {"aten::repeat_interleave.self_Tensor", "return repeated_elements(self, repeats, dim)"},
    {"aten::roll", "self: grad.roll([-s for s in shifts], dims)"},
    {"aten::flip", "self: grad.flip(dims)"},
    {"aten::fliplr", "self: grad.flip([1])"},
    {"aten::flipud", "self: grad.flip([0])"},
    {"aten::rot90", "self: grad.rot90(-k, dims)"},
    {"aten::tril", "self: grad.tril(diagonal)"},
    {"aten::triu", "self: grad.triu(diagonal)"},
    {"aten::diag", R"(
return torch.diag_embed(self, diagonal) if self.dim() == 1 else self.diagonal(diagonal) * 1
)"},
    {"aten::diag_embed", "self: grad.diagonal(offset, dim1, dim2)"},
    {"aten::diagflat", "return torch.diag_embed(self.reshape([-1]), offset)"},
    {"aten::trace", R"(
self: grad * torch.eye(self_size[0], self_size[1], dtype=self_dtype, device=grad.device)
)"},
    {"aten::linalg_diagonal", "A: torch.diagonal_backward(grad, A_size, offset, dim1, dim2)"},
    {"aten::meshgrid", "return meshed(tensors, 'ij')"},
    {"aten::meshgrid.indexing", "return meshed(tensors, indexing)"},
    {"aten::cartesian_prod", R"(
return tensors[0] * 1 if len(tensors) == 1 else torch.stack([t.reshape([-1]) for t in meshed(tensors, 'ij')], 1)
)"},
    {"aten::combinations", "return combined(self, r, with_replacement)"},
    {"aten::movedim.int, aten::movedim.intlist, aten::moveaxis.int, aten::moveaxis.intlist",
     "self: grad.movedim(destination, source)"},
    {"aten::swapaxes", "self: grad.transpose(axis0, axis1)"},
    {"aten::swapdims", "self: grad.transpose(dim0, dim1)"},
    {"aten::mT, aten::mT.a", "self: grad.mT"},
    {"aten::mH, aten::mH.a, aten::adjoint, aten::matrix_H, aten::matrix_H.a", "self: grad.mH"},
    {"aten::numpy_T.a", R"(
self: grad.permute([len(self_size) - 1 - i for i in range(len(self_size))])
)"},
    {"aten::ravel, aten::atleast_1d, aten::atleast_2d, aten::atleast_3d",
     "self: grad.reshape(self_size)"},
    {"aten::atleast_1d.Sequence",
     "return [t.reshape([1]) if t.dim() == 0 else t for t in tensors]"},
    {"aten::atleast_2d.Sequence", R"(
return [t.reshape([1, t.numel()]) if t.dim() < 2 else t for t in tensors]
)"},
    {"aten::atleast_3d.Sequence", "return [torch.atleast_3d(t) for t in tensors]"},
    {R"(aten::broadcast_to, aten::lift, aten::lift_fresh, aten::pin_memory, aten::cpu, aten::cuda,
         aten::to.prim_Device, aten::to.prim_dtype, aten::to.prim_other, aten::_cast_Double,
         aten::_cast_Float, aten::_cast_Half, aten::_autocast_to_full_precision,
         aten::_autocast_to_reduced_precision)",
     "self: grad"},
    {"aten::broadcast_tensors", "return expanded_alike(tensors)"},
    {"aten::unfold", "self: unfolded_gradient(grad, self_size, dimension, size, step)"},
    {"aten::narrow.Tensor", R"(
self: torch.slice_backward(grad, self_size, dim, int(start), int(start) + length, 1)
)"},
    {"aten::select_scatter", R"(
self: torch.select_scatter(grad, torch.zeros(src_size, dtype=grad.dtype, device=grad.device), dim, index)
src: grad.select(dim, index)
)"},
    {"aten::slice_scatter", R"(
self: torch.slice_scatter(grad, torch.zeros(src_size, dtype=grad.dtype, device=grad.device), dim, start, end, step)
src: torch.slice(grad, dim, start, end, step)
)"},
    {"aten::diagonal_scatter", R"(
self: torch.diagonal_scatter(grad, torch.zeros(src_size, dtype=grad.dtype, device=grad.device), offset, dim1, dim2)
src: grad.diagonal(offset, dim1, dim2)
)"},
    {"aten::as_strided_scatter", R"(
self: torch.as_strided_scatter(grad.contiguous(), torch.zeros(src_size, dtype=grad.dtype, device=grad.device), size, stride, storage_offset)
src: grad.contiguous().as_strided(size, stride, storage_offset)
)"},
    {"aten::copy", R"(
self: None
src: grad
)"},
    {"aten::fill.Scalar", "self: torch.zeros_like(grad)"},
    {"aten::fill.Tensor", "self: torch.zeros_like(grad)\nvalue: grad.sum()"},
    {"prim::abs", "x: grad * x.sgn()"},
    {"aten::segment_reduce", R"(
return segments_reduced(data, reduce, lengths, indices, offsets, axis, unsafe, initial)
)"},
};
const RegisterFormulas kShapesRegistered(kShapesFormulas, kShapesHelpers);

}  // namespace

}  // namespace wick::autograd

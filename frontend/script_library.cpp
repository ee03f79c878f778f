#include "frontend/script_library.h"

#include <string>
#include <utility>

namespace wick {

namespace {

// Numbers on the left of tensors: the operators want the tensor first.
std::string numberOverloads() {
  constexpr const char* kAll = R"script(
def add(a: NUMBER, b: Tensor) -> Tensor:
    return b + a
def mul(a: NUMBER, b: Tensor) -> Tensor:
    return b * a
def sub(a: NUMBER, b: Tensor) -> Tensor:
    return torch.rsub(b, a)
def div(a: NUMBER, b: Tensor) -> Tensor:
    return torch.reciprocal(b) * a
def eq(a: NUMBER, b: Tensor) -> Tensor:
    return b == a
def ne(a: NUMBER, b: Tensor) -> Tensor:
    return b != a
)script";
  constexpr const char* kOrdered = R"script(
def lt(a: NUMBER, b: Tensor) -> Tensor:
    return b > a
def le(a: NUMBER, b: Tensor) -> Tensor:
    return b >= a
def gt(a: NUMBER, b: Tensor) -> Tensor:
    return b < a
def ge(a: NUMBER, b: Tensor) -> Tensor:
    return b <= a
def remainder(a: NUMBER, b: Tensor) -> Tensor:
    return torch.remainder(torch.tensor(a, dtype=torch.result_type(b, a), device=b.device), b)
def floor_divide(a: NUMBER, b: Tensor) -> Tensor:
    return torch.floor_divide(torch.tensor(a, dtype=torch.result_type(b, a), device=b.device), b)
)script";
  constexpr const char* kWhole = R"script(
def __and__(a: NUMBER, b: Tensor) -> Tensor:
    return b & a
def __or__(a: NUMBER, b: Tensor) -> Tensor:
    return b | a
def __xor__(a: NUMBER, b: Tensor) -> Tensor:
    return b ^ a
def __lshift__(a: NUMBER, b: Tensor) -> Tensor:
    return torch.bitwise_left_shift(torch.tensor(a, dtype=torch.result_type(b, a), device=b.device), b)
def __rshift__(a: NUMBER, b: Tensor) -> Tensor:
    return torch.bitwise_right_shift(torch.tensor(a, dtype=torch.result_type(b, a), device=b.device), b)
)script";
  constexpr const char* kRest = R"script(
def __contains__(self: str, key: str) -> bool:
    return self.find(key, 0, len(self)) != -1
def type(self: Tensor, dtype: int, non_blocking: bool = False, copy: bool = False) -> Tensor:
    return self.to(dtype, non_blocking, copy)
def tensordot(a: Tensor, b: Tensor, dims: List[List[int]], out: Optional[Tensor] = None) -> Tensor:
    if out is None:
        return torch.tensordot(a, b, dims[0], dims[1])
    return torch.tensordot(a, b, dims[0], dims[1], out=out)
def tensordot(a: Tensor, b: Tensor, dims: int = 2, out: Optional[Tensor] = None) -> Tensor:
    if dims < 0:
        raise RuntimeError("tensordot expects dims >= 0, but got dims=" + str(dims))
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError("tensordot expects dims <= the number of dimensions of both tensors")
    return torch.tensordot(a, b, [list(range(-dims, 0)), list(range(dims))], out)
def tensordot(a: Tensor, b: Tensor, dims: Tuple[List[int], List[int]], out: Optional[Tensor] = None) -> Tensor:
    return torch.tensordot(a, b, [dims[0], dims[1]], out)
def tensordot(a: Tensor, b: Tensor, dims: Tensor, out: Optional[Tensor] = None) -> Tensor:
    if dims.numel() == 1:
        n = int(dims.item())
        return torch.tensordot(a, b, [list(range(-n, 0)), list(range(n))], out)
    return torch.tensordot(a, b, torch.jit.annotate(List[List[int]], dims.tolist()), out)
)script";
  std::string out;
  auto add = [&](const char* source, const char* type) {
    std::string text(source);
    for (size_t at; (at = text.find("NUMBER")) != std::string::npos;) text.replace(at, 6, type);
    out += text;
  };
  for (const char* type : {"int", "float", "complex"}) add(kAll, type);
  for (const char* type : {"int", "float"}) add(kOrdered, type);
  add(kWhole, "int");
  // A boolean is a number, and of a lower kind than all others, as a tensor of one is.
  constexpr const char* kBool = R"script(
def NAME(a: bool, b: Tensor) -> Tensor:
    return torch.tensor(a, device=b.device) SIGN b
def NAME(a: Tensor, b: bool) -> Tensor:
    return a SIGN torch.tensor(b, device=a.device)
)script";
  constexpr std::pair<const char*, const char*> kSigns[] = {
      {"add", "+"},  {"sub", "-"},     {"mul", "*"},       {"div", "/"},
      {"eq", "=="},  {"ne", "!="},     {"lt", "<"},        {"le", "<="},
      {"gt", ">"},   {"ge", ">="},     {"remainder", "%"}, {"floor_divide", "//"},
      {"pow", "**"}, {"__and__", "&"}, {"__or__", "|"},    {"__xor__", "^"}};
  for (const auto& [name, sign] : kSigns) {
    std::string text(kBool);
    for (size_t at; (at = text.find("NAME")) != std::string::npos;) text.replace(at, 4, name);
    for (size_t at; (at = text.find("SIGN")) != std::string::npos;) text.replace(at, 4, sign);
    out += text;
  }
  return out + kRest;
}

constexpr const char* kTorch = R"script(
def is_tensor(obj: Any) -> bool:
    return isinstance(obj, Tensor)
def _assert_bool(condition: bool, message: str) -> None:
    assert condition, message
def _assert_tensor(condition: Tensor, message: str) -> None:
    assert bool(condition), message
def _unique_of(input: Tensor, sorted: bool, inverse: bool, counts: bool, dim: Optional[int]) -> Tuple[Tensor, Tensor, Tensor]:
    if dim is None:
        return torch._unique2(input, sorted, inverse, counts)
    return torch.unique_dim(input, dim, sorted, inverse, counts)
def _unique_only(input: Tensor, sorted: bool = True, dim: Optional[int] = None) -> Tensor:
    return _unique_of(input, sorted, False, False, dim)[0]
def _unique_inverse(input: Tensor, sorted: bool = True, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    return _unique_of(input, sorted, True, False, dim)[:2]
def _unique_counts(input: Tensor, sorted: bool = True, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    return _unique_of(input, sorted, False, True, dim)[::2]
def _unique_all(input: Tensor, sorted: bool = True, dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return _unique_of(input, sorted, True, True, dim)
def _consecutive_all(input: Tensor, dim: Optional[int] = None) -> Tuple[Tensor, Tensor, Tensor]:
    return torch._VF.unique_consecutive(input, True, True, dim)
def _consecutive_inverse(input: Tensor, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    return torch._VF.unique_consecutive(input, True, False, dim)[:2]
def _consecutive_counts(input: Tensor, dim: Optional[int] = None) -> Tuple[Tensor, Tensor]:
    return torch._VF.unique_consecutive(input, False, True, dim)[::2]
def _consecutive_only(input: Tensor, dim: Optional[int] = None) -> Tensor:
    return torch._VF.unique_consecutive(input, False, False, dim)[0]
def _named_cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    if compute_mode == "use_mm_for_euclid_dist_if_necessary":
        return torch._VF.cdist(x1, x2, p, None)
    if compute_mode == "use_mm_for_euclid_dist":
        return torch._VF.cdist(x1, x2, p, 1)
    if compute_mode == "donot_use_mm_for_euclid_dist":
        return torch._VF.cdist(x1, x2, p, 2)
    raise ValueError("cdist: '" + compute_mode + "' is not a compute_mode")
def _norm_number(input: Tensor, p: Optional[number], dim: Optional[List[int]] = None, keepdim: bool = False,
                 out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    dims = list(range(input.dim())) if dim is None else dim
    if out is None:
        if dtype is None:
            return torch._VF.norm(input, p, dims, keepdim)
        return torch._VF.norm(input, p, dims, keepdim, dtype=dtype)
    if dtype is None:
        return torch._VF.norm(input, p, dims, keepdim, out=out)
    return torch._VF.norm(input, p, dims, keepdim, dtype=dtype, out=out)
def _norm_number_dim(input: Tensor, p: Optional[number], dim: Optional[int] = None, keepdim: bool = False,
                     out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        return _norm_number(input, p, None, keepdim, out, dtype)
    return _norm_number(input, p, [dim], keepdim, out, dtype)
def _norm_name(input: Tensor, p: str = "fro", dim: Optional[List[int]] = None, keepdim: bool = False,
               out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    if p != "fro" and p != "nuc":
        raise RuntimeError("norm: p is 'fro', 'nuc' or a number, but got '" + p + "'")
    if dtype is not None:
        raise ValueError("norm: dtype cannot be given together with p='" + p + "'")
    if p == "fro":
        dims = dim
        if dims is None:
            dims = torch.jit.annotate(List[int], []) if out is None else list(range(input.dim()))
        return torch._VF.frobenius_norm(input, dims, keepdim) if out is None else torch._VF.frobenius_norm(input, dims, keepdim, out=out)
    if dim is None:
        return torch._VF.nuclear_norm(input, keepdim) if out is None else torch._VF.nuclear_norm(input, keepdim, out=out)
    return torch._VF.nuclear_norm(input, dim, keepdim) if out is None else torch._VF.nuclear_norm(input, dim, keepdim, out=out)
def _norm_name_dim(input: Tensor, p: str = "fro", dim: Optional[int] = None, keepdim: bool = False,
                   out: Optional[Tensor] = None, dtype: Optional[int] = None) -> Tensor:
    if dim is None:
        return _norm_name(input, p, None, keepdim, out, dtype)
    return _norm_name(input, p, [dim], keepdim, out, dtype)
def _centered_stft(input: Tensor, n_fft: int, hop_length: Optional[int] = None, win_length: Optional[int] = None,
                   window: Optional[Tensor] = None, center: bool = True, pad_mode: str = "reflect",
                   normalized: bool = False, onesided: Optional[bool] = None,
                   return_complex: Optional[bool] = None) -> Tensor:
    signal = input
    if center:
        n = input.dim()
        half = n_fft // 2
        padded = torch.nn.functional.pad(input.view([1] * (3 - n) + list(input.size())), [half, half], pad_mode)
        signal = padded.view(padded.shape[padded.dim() - n:])
    return torch._VF.stft(signal, n_fft, hop_length, win_length, window, normalized, onesided, return_complex)
def _lu_only(A: Tensor, pivot: bool = True) -> Tuple[Tensor, Tensor]:
    return torch._lu_with_info(A, pivot, True)[:2]
def _lu_infos(A: Tensor, pivot: bool = True) -> Tuple[Tensor, Tensor, Tensor]:
    return torch._lu_with_info(A, pivot, False)
)script";

constexpr const char* kFutures = R"script(
def wait_all(futures: List[Future[Tensor]]) -> List[Tensor]:
    return [torch.jit.wait(f) for f in futures]
)script";

constexpr const char* kGradMode = R"script(
class no_grad:
    def __init__(self) -> None:
        self.prev = torch.is_grad_enabled()
    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(False)
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)

class enable_grad:
    def __init__(self) -> None:
        self.prev = torch.is_grad_enabled()
    def __enter__(self) -> None:
        self.prev = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        torch.set_grad_enabled(self.prev)
)script";

constexpr const char* kProfiler = R"script(
class record_function:
    def __init__(self, name: str, args: Optional[str] = None) -> None:
        self.name = name
        self.args = args
        self.ends_at_exit = True
        self.handle = torch.zeros([1])
    def __enter__(self):
        self.handle = torch.ops.profiler._record_function_enter(self.name, self.args)
        return self
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self.ends_at_exit:
            torch.ops.profiler._record_function_exit(self.handle)
    def _call_end_callbacks_on_future(self, fut: Future[Any]) -> Future[Any]:
        if not self.ends_at_exit:
            raise RuntimeError('the range of record_function ends with another future already')
        self.ends_at_exit = False
        return torch.ops.profiler._call_end_callbacks_on_jit_fut(self.handle, fut)
)script";

// What they mean to a graph is passes/autocast.h.
constexpr const char* kAutocast = R"script(
class autocast:
    def __init__(self, device_type: str, dtype: Optional[int] = None, enabled: bool = True,
                 cache_enabled: Optional[bool] = None) -> None:
        self.fast_dtype = dtype
        self._enabled = enabled
        self.device = device_type
    def __enter__(self):
        return self
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        pass
)script";
constexpr const char* kCpuAutocast = R"script(
class autocast:
    def __init__(self, enabled: bool = True, dtype: int = torch.bfloat16, cache_enabled: bool = True) -> None:
        self.fast_dtype = dtype
        self._enabled = enabled
        self.device = 'cpu'
    def __enter__(self):
        return self
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        pass
)script";
constexpr const char* kCudaAutocast = R"script(
class autocast:
    def __init__(self, enabled: bool = True, dtype: int = torch.float16, cache_enabled: bool = True) -> None:
        self.fast_dtype = dtype
        self._enabled = enabled
        self.device = 'cuda'
    def __enter__(self):
        return self
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        pass
)script";

// As in PyTorch, a stream of another device makes that the current one.
constexpr const char* kStreams = R"script(
class StreamContext:
    def __init__(self, stream: Optional[torch.cuda.Stream]) -> None:
        self.stream = stream
        self.before = torch.cuda.current_stream(None)
        self.before_there = torch.cuda.current_stream(None)
    def __enter__(self) -> None:
        stream = self.stream
        if stream is not None:
            self.before = torch.cuda.current_stream(None)
            self.before_there = torch.cuda.current_stream(stream.device)
            torch.cuda.set_stream(stream)
    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        if self.stream is not None:
            torch.cuda.set_stream(self.before_there)
            torch.cuda.set_stream(self.before)
def stream(stream: Optional[torch.cuda.Stream]) -> StreamContext:
    return StreamContext(stream)
)script";

constexpr const char* kSparse = R"script(
def _sum_dims(input: Tensor, dim: Optional[List[int]] = None, dtype: Optional[int] = None) -> Tensor:
    if dtype is None:
        return torch._sparse_sum(input) if dim is None else torch._sparse_sum(input, dim)
    return torch._sparse_sum(input, dtype=dtype) if dim is None else torch._sparse_sum(input, dim, dtype=dtype)
def _sum_dim(input: Tensor, dim: int, dtype: Optional[int] = None) -> Tensor:
    return _sum_dims(input, [dim], dtype)
)script";

constexpr const char* kInit = R"script(
def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with torch.no_grad():
        return tensor.fill_(val)
def constant_(tensor: Tensor, val: float) -> Tensor:
    return _no_grad_fill_(tensor, val)
def ones_(tensor: Tensor) -> Tensor:
    return _no_grad_fill_(tensor, 1.0)
def zeros_(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        return tensor.zero_()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    with torch.no_grad():
        return tensor.uniform_(a, b)
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    with torch.no_grad():
        return tensor.normal_(mean, std)
def _calculate_fan_in_and_fan_out(tensor: Tensor) -> Tuple[int, int]:
    if tensor.dim() < 2:
        raise ValueError("fan in and fan out need a tensor of at least 2 dimensions")
    field = 1
    for n in tensor.shape[2:]:
        field *= n
    return tensor.size(1) * field, tensor.size(0) * field
def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    a = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    with torch.no_grad():
        return tensor.uniform_(-a, a)
def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    with torch.no_grad():
        return tensor.normal_(0.0, std)
)script";

}  // namespace

std::span<const ScriptLibraryPart> scriptLibrary() {
  static const std::string kOverloads = numberOverloads();
  static const ScriptLibraryPart kParts[] = {
      {"aten", kOverloads.c_str()},
      {"aten", kScriptExported},
      {"generic", kScriptGeneric},
      {"torch", kTorch},
      {"torch.futures", kFutures},
      {"torch.autograd.grad_mode", kGradMode},
      {"torch.autograd.profiler", kProfiler},
      {"torch.amp.autocast_mode", kAutocast},
      {"torch.cpu.amp.autocast_mode", kCpuAutocast},
      {"torch.cuda.amp.autocast_mode", kCudaAutocast},
      {"torch.cuda", kStreams},
      {"torch.nn.init", kInit},
      {"torch.sparse", kSparse},
      {"torch.nn.functional", kScriptActivations},
      {"torch.nn.functional", kScriptPooling},
      {"torch.nn.functional", kScriptNorms},
      {"torch.nn.functional", kScriptLosses},
      {"torch.nn.functional", kScriptResampling},
      {"torch.nn.functional", kScriptAttention},
  };
  return kParts;
}

}  // namespace wick

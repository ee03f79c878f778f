#include "frontend/builtin_table.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "core/error.h"
#include "core/native_class.h"
#include "core/suggestions.h"
#include "frontend/builtin_functions.h"
#include "frontend/magic_methods.h"
#include "frontend/schema_matching.h"

namespace wick {

namespace {

// How a name is spelled in a program and what it stands for. The target says what sort it is:
//   "aten::x", "prim::x"   an operator
//   "form x"               a special form of the emitter (prim::x)
//   "cast x aten::y"       a conversion to the type x by the operator y
//   "magic __x__ aten::y"  an operator that classes replace by a method
//   "module x"             a builtin module
//   "script x"             a function written in script
//   "flag f n x, y"        a function whose flag f, at position n, chooses x or else y
//   "member x"             what another member stands for
//   "overloads x y z"      script functions, tried in this order
//   "returns x"            a function without arguments that returns a constant
//   "tensor x"             a constructor of tensors of that dtype
//   "class x"              a class written in script
struct Entry {
  const char* name;
  const char* target;
};

// Names without a module.
constexpr Entry kGlobals[] = {
    {"print", "form Print"},
    {"isinstance", "form isinstance"},
    {"hasattr", "form HasAttr"},
    {"getattr", "form GetAttr"},
    {"range", "form range"},
    {"zip", "form zip"},
    {"enumerate", "form enumerate"},
    {"reversed", "form reversed"},
    {"list", "form list"},
    {"dict", "form dict"},
    {"tuple", "form tuple"},
    {"annotate", "form annotate"},
    {"unchecked_cast", "form unchecked_cast"},
    {"uninitialized", "form Uninitialized"},
    {"fork", "form fork"},
    {"cast", "form annotate"},
    {"slice", "form slice"},
    {"int", "cast int aten::Int"},
    {"float", "cast float aten::Float"},
    {"bool", "cast bool aten::Bool"},
    {"complex", "cast complex aten::Complex"},
    {"str", "cast str aten::str"},
    {"len", "form len"},
    {"map", "form map"},
    {"filter", "form filter"},
    {"hash", "magic __hash__ aten::hash"},
    {"abs", "magic __abs__ prim::abs"},
    {"divmod", "magic __divmod__ aten::divmod"},
    {"round", "magic __round__ aten::round"},
    {"min", "form min"},
    {"max", "form max"},
    {"sum", "form sum"},
    {"any", "form any"},
    {"all", "form all"},
    {"sorted", "form sorted"},
    {"pow", "aten::pow"},
    {"ord", "aten::ord"},
    {"chr", "aten::chr"},
    {"hex", "aten::hex"},
    {"oct", "aten::oct"},
    {"bin", "aten::bin"},
    {"repr", "prim::repr"},
    {"ascii", "prim::ascii"},
    {"format", "prim::formatValue"},
    {"id", "prim::id"},
    {"rangelist", "prim::rangelist"},
    {"wait", "aten::wait"},
    {"torch", "module torch"},
    {"math", "module math"},
    {"cmath", "module cmath"},
    {"warnings", "module warnings"},
    {"typing", "module typing"},
    {"F", "module torch.nn.functional"},
    {"ops", "module ops"},
};

// Members of modules that do not follow the rule of the module (see kModules).
constexpr Entry kMembers[] = {
    {"torch.jit.annotate", "form annotate"},
    {"torch.jit.isinstance", "form isinstance"},
    {"torch.jit.fork", "form fork"},
    {"torch.jit._fork", "form fork"},
    {"torch.jit.wait", "aten::wait"},
    {"torch.jit._wait", "aten::wait"},
    {"torch.jit.is_scripting", "aten::is_scripting"},
    {"torch.jit.is_tracing", "returns False"},
    {"torch._C._get_tracing_state", "returns False"},
    {"torch.onnx.is_in_onnx_export", "returns False"},
    {"torch.overrides.has_torch_function", "returns False"},
    {"torch.BoolTensor", "tensor bool"},
    {"torch.ByteTensor", "tensor uint8"},
    {"torch.CharTensor", "tensor int8"},
    {"torch.ShortTensor", "tensor int16"},
    {"torch.IntTensor", "tensor int32"},
    {"torch.LongTensor", "tensor int64"},
    {"torch.HalfTensor", "tensor float16"},
    {"torch.BFloat16Tensor", "tensor bfloat16"},
    {"torch.FloatTensor", "tensor float32"},
    {"torch.Tensor", "tensor float32"},
    {"torch.DoubleTensor", "tensor float64"},
    {"torch.jit._unwrap_optional", "aten::_unwrap_optional"},
    {"torch.jit._builtins._size", "aten::size"},
    {"torch.jit._logging.add_stat_value", "prim::AddStatValue"},
    {"torch.jit._logging.time_point", "prim::TimePoint"},
    {"torch._jit_internal.is_scripting", "aten::is_scripting"},
    {"torch.manual_seed", "aten::manual_seed"},
    {"torch.random.manual_seed", "aten::manual_seed"},
    {"torch.no_grad", "class torch.autograd.grad_mode.no_grad"},
    {"torch.enable_grad", "class torch.autograd.grad_mode.enable_grad"},
    {"torch.autograd.no_grad", "class torch.autograd.grad_mode.no_grad"},
    {"torch.autograd.enable_grad", "class torch.autograd.grad_mode.enable_grad"},
    {"torch.autocast", "class torch.amp.autocast_mode.autocast"},
    {"torch.amp.autocast", "class torch.amp.autocast_mode.autocast"},
    {"torch.cpu.amp.autocast", "class torch.cpu.amp.autocast_mode.autocast"},
    {"torch.cuda.amp.autocast", "class torch.cuda.amp.autocast_mode.autocast"},
    {"torch.cuda.Stream", "native torch.classes.cuda.Stream"},
    {"torch.cuda.Event", "native torch.classes.cuda.Event"},
    {"torch.cuda.streams.Stream", "native torch.classes.cuda.Stream"},
    {"torch.cuda.streams.Event", "native torch.classes.cuda.Event"},
    {"torch.cuda.stream", "script torch.cuda.stream"},
    {"torch.cuda.StreamContext", "class torch.cuda.StreamContext"},
    {"torch.cuda.current_device", "cuda::_current_device"},
    {"torch.cuda.set_device", "cuda::_set_device"},
    {"torch.autograd.grad", "aten::grad"},
    {"torch.utils.checkpoint.checkpoint", "form checkpoint"},
    {"torch.ops.wick.checkpoint", "form checkpoint"},
    {"ops.wick.checkpoint", "form checkpoint"},
    {"torch.ops.wick.custom_function", "form custom_function"},
    {"ops.wick.custom_function", "form custom_function"},
    {"torch.autograd.backward", "aten::backward"},
    {"torch.abs", "aten::abs"},
    {"torch.futures.collect_all", "aten::collect_all"},
    {"warnings.warn", "aten::warn"},
    {"typing.cast", "form annotate"},
    {"math.fabs", "prim::fabs"},
    {"math.pow", "aten::pow"},
    {"math.remainder", "aten::mathremainder"},
    {"math.trunc", "prim::math_trunc"},
    {"math.isqrt", "prim::math_isqrt"},
    {"math.lcm", "prim::math_lcm"},
    {"math.comb", "prim::math_comb"},
    {"math.perm", "prim::math_perm"},
    {"math.fsum", "prim::math_fsum"},
    {"math.dist", "prim::math_dist"},
    {"math.prod", "prim::math_prod"},
    {"math.isclose", "prim::math_isclose"},
    {"math.nextafter", "prim::math_nextafter"},
    {"math.ulp", "prim::math_ulp"},
    {"math.exp2", "prim::math_exp2"},
    {"math.cbrt", "prim::math_cbrt"},
    {"torch.nn.functional.linear", "aten::linear"},
    {"torch.nn.functional.gelu", "aten::gelu"},
    {"torch.sparse.mm", "aten::_sparse_mm"},
    {"torch.sparse.addmm", "aten::_sparse_addmm"},
    {"torch.sparse.sampled_addmm", "aten::sparse_sampled_addmm"},
    {"torch.sparse.softmax", "aten::_sparse_softmax"},
    {"torch.sparse.log_softmax", "aten::_sparse_log_softmax"},
    {"torch.sparse.spdiags", "aten::_spdiags"},
    {"torch.sparse.sum", "overloads torch.sparse._sum_dim torch.sparse._sum_dims"},
    {"torch.nested.to_padded_tensor", "aten::nested_to_padded_tensor"},
    {"torch.nn.functional.logsigmoid", "aten::log_sigmoid"},
    {"torch.nn.functional.hardshrink", "aten::hardshrink"},
    {"torch.nn.functional.pixel_shuffle", "aten::pixel_shuffle"},
    {"torch.Size", "form list"},
    {"torch._assert", "overloads torch._assert_bool torch._assert_tensor"},
    {"torch.unique",
     "flag return_inverse 2 member torch.unique.inverse, member torch.unique.plain"},
    {"torch.unique.inverse",
     "flag return_counts 2 script torch._unique_all, script torch._unique_inverse"},
    {"torch.unique.plain",
     "flag return_counts 2 script torch._unique_counts, script torch._unique_only"},
    {"torch.unique_consecutive",
     "flag return_inverse 1 member torch.unique_consecutive.inverse, member "
     "torch.unique_consecutive.plain"},
    {"torch.unique_consecutive.inverse",
     "flag return_counts 1 script torch._consecutive_all, script torch._consecutive_inverse"},
    {"torch.unique_consecutive.plain",
     "flag return_counts 1 script torch._consecutive_counts, script torch._consecutive_only"},
    {"torch.functional.unique", "member torch.unique"},
    {"torch.functional.unique_consecutive", "member torch.unique_consecutive"},
    {"torch.cdist", "script torch._named_cdist"},
    {"torch.functional.cdist", "script torch._named_cdist"},
    {"torch.lu", "flag get_infos 2 script torch._lu_infos, script torch._lu_only"},
    {"torch.stft", "script torch._centered_stft"},
    {"torch.functional.stft", "script torch._centered_stft"},
    {"torch.norm",
     "overloads torch._norm_name torch._norm_number torch._norm_number_dim torch._norm_name_dim"},
    {"torch.functional.norm", "member torch.norm"},
    {"torch.nn.utils.rnn.pad_sequence", "aten::pad_sequence"},
    {"torch.nn.functional.fractional_max_pool2d",
     "flag return_indices 4 script torch.nn.functional.fractional_max_pool2d_with_indices, script "
     "torch.nn.functional._fractional_max_pool2d"},
    {"torch.nn.functional.fractional_max_pool3d",
     "flag return_indices 4 script torch.nn.functional.fractional_max_pool3d_with_indices, script "
     "torch.nn.functional._fractional_max_pool3d"},
    {"torch.nn.functional.upsample_nearest",
     "overloads torch.nn.functional._upsample_nearest_int "
     "torch.nn.functional._upsample_nearest_size"},
    {"torch.nn.functional.upsample_bilinear",
     "overloads torch.nn.functional._upsample_bilinear_int "
     "torch.nn.functional._upsample_bilinear_size"},
    {"torch.nn.functional.max_pool1d",
     "flag return_indices 6 script torch.nn.functional.max_pool1d_with_indices, script "
     "torch.nn.functional._max_pool1d"},
    {"torch.nn.functional.max_pool2d",
     "flag return_indices 6 script torch.nn.functional.max_pool2d_with_indices, script "
     "torch.nn.functional._max_pool2d"},
    {"torch.nn.functional.max_pool3d",
     "flag return_indices 6 script torch.nn.functional.max_pool3d_with_indices, script "
     "torch.nn.functional._max_pool3d"},
    {"torch.nn.functional.adaptive_max_pool1d",
     "flag return_indices 2 script torch.nn.functional.adaptive_max_pool1d_with_indices, script "
     "torch.nn.functional._adaptive_max_pool1d"},
    {"torch.nn.functional.adaptive_max_pool2d",
     "flag return_indices 2 script torch.nn.functional.adaptive_max_pool2d_with_indices, script "
     "torch.nn.functional._adaptive_max_pool2d"},
    {"torch.nn.functional.adaptive_max_pool3d",
     "flag return_indices 2 script torch.nn.functional.adaptive_max_pool3d_with_indices, script "
     "torch.nn.functional._adaptive_max_pool3d"},
    {"torch.nn.functional.interpolate",
     "overloads torch.nn.functional._interpolate_size torch.nn.functional._interpolate_int "
     "torch.nn.functional._interpolate_scale"},
    {"torch.nn.functional.upsample",
     "overloads torch.nn.functional._interpolate_size torch.nn.functional._interpolate_int "
     "torch.nn.functional._interpolate_scale"},
};

// Numbers.
struct NumberEntry {
  const char* name;
  double value;
};
constexpr double kPi = 3.14159265358979323846;
constexpr double kInf = std::numeric_limits<double>::infinity();
const NumberEntry kFloats[] = {
    {"math.pi", kPi},
    {"math.e", 2.71828182845904523536},
    {"math.tau", 2 * kPi},
    {"math.inf", kInf},
    {"math.nan", std::numeric_limits<double>::quiet_NaN()},
    {"cmath.pi", kPi},
    {"cmath.e", 2.71828182845904523536},
    {"cmath.tau", 2 * kPi},
    {"cmath.inf", kInf},
    {"cmath.nan", std::numeric_limits<double>::quiet_NaN()},
    {"torch.pi", kPi},
    {"torch.e", 2.71828182845904523536},
    {"torch.inf", kInf},
    {"torch.nan", std::numeric_limits<double>::quiet_NaN()},
};

struct IntEntry {
  const char* name;
  int64_t value;
};
// Dtypes, layouts and memory formats are ints in TorchScript.
constexpr IntEntry kInts[] = {
    {"uint8", 0},
    {"int8", 1},
    {"int16", 2},
    {"short", 2},
    {"int32", 3},
    {"int", 3},
    {"int64", 4},
    {"long", 4},
    {"float16", 5},
    {"half", 5},
    {"float32", 6},
    {"float", 6},
    {"float64", 7},
    {"double", 7},
    {"complex32", 8},
    {"chalf", 8},
    {"complex64", 9},
    {"cfloat", 9},
    {"complex128", 10},
    {"cdouble", 10},
    {"bool", 11},
    {"qint8", 12},
    {"quint8", 13},
    {"qint32", 14},
    {"bfloat16", 15},
    {"quint4x2", 16},
    {"quint2x4", 17},
    {"strided", 0},
    {"sparse_coo", 1},
    {"sparse_csr", 2},
    {"_mkldnn", 3},
    {"sparse_csc", 4},
    {"sparse_bsr", 5},
    {"sparse_bsc", 6},
    {"contiguous_format", 0},
    {"preserve_format", 1},
    {"channels_last", 2},
    {"channels_last_3d", 3},
    {"per_tensor_affine", 0},
    {"per_channel_affine", 1},
    {"per_tensor_symmetric", 2},
    {"per_channel_symmetric", 3},
    {"per_channel_affine_float_qparams", 4},
};

// Modules, and the operator that a member means when the table above does not say: prefix + name.
constexpr Entry kModules[] = {
    {"torch", "aten::"},
    {"torch.nn", ""},
    {"torch.nn.functional", "aten::"},
    {"torch.nn.init", ""},
    {"torch.nn.utils", ""},
    {"torch.nn.utils.rnn", ""},
    {"torch._C", ""},
    {"torch._C._nn", "aten::"},
    {"torch._C._linalg", "aten::"},
    {"torch._C._special", "aten::"},
    {"torch._C._fft", "aten::"},
    {"torch._C._sparse", "aten::"},
    {"torch._C._VariableFunctions", "aten::"},
    {"torch._VF", "aten::"},
    {"torch.functional", "aten::"},
    {"torch.linalg", "aten::linalg_"},
    {"torch.special", "aten::special_"},
    {"torch.nested", ""},
    {"torch.sparse", ""},
    {"torch.fft", "aten::fft_"},
    {"torch.jit", ""},
    {"torch.jit._builtins", ""},
    {"torch.jit._logging", ""},
    {"torch._jit_internal", ""},
    {"torch.autograd", ""},
    {"torch.autograd.grad_mode", ""},
    {"torch.autograd.profiler", ""},
    {"torch.futures", ""},
    {"torch.random", ""},
    {"torch.utils", ""},
    {"torch.utils.checkpoint", ""},
    {"torch.cuda", "cuda::"},
    {"torch.cuda.streams", ""},
    {"torch.cuda.amp", ""},
    {"torch.cpu", ""},
    {"torch.cpu.amp", ""},
    {"torch.amp", ""},
    {"torch.ops", "ops"},
    {"torch.ops.aten", "aten::"},
    {"torch.ops.prim", "prim::"},
    {"torch.ops.wick", "wick::"},
    {"torch.ops.profiler", "profiler::"},
    {"ops", "ops"},
    {"ops.aten", "aten::"},
    {"ops.prim", "prim::"},
    {"ops.wick", "wick::"},
    {"ops.quantized", "quantized::"},
    {"torch.ops.quantized", "quantized::"},
    {"ops.prepacked", "prepacked::"},
    {"torch.ops.prepacked", "prepacked::"},
    {"torch.ops.torchvision", "torchvision::"},
    {"torch.ops.torchaudio", "torchaudio::"},
    {"torch.classes", ""},
    {"math", "aten::"},
    {"cmath", "aten::"},
    {"warnings", ""},
    {"typing", ""},
};

constexpr const char* kExceptions[] = {
    "Exception",
    "BaseException",
    "RuntimeError",
    "ValueError",
    "TypeError",
    "KeyError",
    "IndexError",
    "AssertionError",
    "AttributeError",
    "NotImplementedError",
    "ArithmeticError",
    "ZeroDivisionError",
    "OverflowError",
    "LookupError",
    "NameError",
    "StopIteration",
    "OSError",
    "IOError",
    "MemoryError",
    "UnicodeError",
    "FloatingPointError",
    "EOFError",
    "ImportError",
    "TimeoutError",
    "PermissionError",
    "RecursionError",
    "SystemError",
};

// Builtins of Python that no program can use here.
constexpr std::string_view kPythonOnly[] = {
    "set",     "frozenset",   "bytes",      "bytearray",     "memoryview", "object", "type",
    "super",   "classmethod", "iter",       "next",          "open",       "input",  "eval",
    "exec",    "compile",     "globals",    "locals",        "vars",       "dir",    "setattr",
    "delattr", "callable",    "issubclass", "staticmethod",  "property",   "aiter",  "anext",
    "help",    "breakpoint",  "__import__", "NotImplemented"};

struct PropertyEntry {
  TypeKind kind;
  const char* name;
  const char* op;
};
constexpr PropertyEntry kProperties[] = {
    {TypeKind::Tensor, "dtype", "prim::dtype"},
    {TypeKind::Tensor, "device", "prim::device"},
    {TypeKind::Tensor, "grad", "prim::grad"},
    {TypeKind::Tensor, "data", "prim::data"},
    {TypeKind::Tensor, "shape", "aten::size"},
    {TypeKind::Tensor, "is_cuda", "prim::is_cuda"},
    {TypeKind::Tensor, "is_cpu", "prim::is_cpu"},
    {TypeKind::Tensor, "is_xla", "prim::is_xla"},
    {TypeKind::Tensor, "is_xpu", "prim::is_xpu"},
    {TypeKind::Tensor, "is_sparse", "prim::is_sparse"},
    {TypeKind::Tensor, "is_sparse_csr", "prim::is_sparse_csr"},
    {TypeKind::Tensor, "is_mkldnn", "prim::is_mkldnn"},
    {TypeKind::Tensor, "is_mps", "prim::is_mps"},
    {TypeKind::Tensor, "is_quantized", "prim::is_quantized"},
    {TypeKind::Tensor, "is_vulkan", "prim::is_vulkan"},
    {TypeKind::Tensor, "is_ipu", "prim::is_ipu"},
    {TypeKind::Tensor, "is_meta", "prim::is_meta"},
    {TypeKind::Tensor, "is_nested", "prim::is_nested"},
    {TypeKind::Tensor, "is_ort", "prim::is_ort"},
    {TypeKind::Tensor, "is_leaf", "aten::is_leaf"},
    {TypeKind::Tensor, "requires_grad", "prim::requires_grad"},
    {TypeKind::Tensor, "layout", "prim::layout"},
    {TypeKind::Tensor, "T", "aten::numpy_T"},
    {TypeKind::Tensor, "H", "aten::matrix_H"},
    {TypeKind::Tensor, "mT", "aten::mT"},
    {TypeKind::Tensor, "mH", "aten::mH"},
    {TypeKind::Tensor, "itemsize", "prim::itemsize"},
    {TypeKind::Tensor, "nbytes", "prim::nbytes"},
    {TypeKind::Tensor, "ndim", "aten::dim"},
    {TypeKind::Tensor, "name", "prim::name"},
    {TypeKind::Tensor, "real", "aten::real"},
    {TypeKind::Tensor, "imag", "aten::imag"},
    {TypeKind::Tensor, "retains_grad", "aten::retains_grad"},
    {TypeKind::Device, "type", "prim::type"},
    {TypeKind::Device, "index", "prim::index"},
    {TypeKind::Complex, "real", "aten::real"},
    {TypeKind::Complex, "imag", "aten::imag"},
};

constexpr IntEntry kCastMethods[] = {
    {"byte", 0},  {"char", 1},   {"short", 2},  {"int", 3},      {"long", 4},  {"half", 5},
    {"float", 6}, {"double", 7}, {"cfloat", 9}, {"cdouble", 10}, {"bool", 11}, {"bfloat16", 15},
};

SugaredValuePtr simple(GraphFunction& fn, IValue value) {
  return std::make_shared<SimpleValue>(fn.graph()->insertConstant(std::move(value)));
}

TypePtr castType(std::string_view name) {
  if (name == "int") return types::Int();
  if (name == "float") return types::Float();
  if (name == "bool") return types::Bool();
  if (name == "complex") return types::Complex();
  return types::String();
}

std::string magicForCast(std::string_view name) {
  return "__" + std::string(name) + "__";
}

SugaredValuePtr make(std::string_view target, GraphFunction& fn);

template <size_t N>
const Entry* find(const Entry (&table)[N], std::string_view name) {
  for (const Entry& e : table) {
    if (name == e.name) return &e;
  }
  return nullptr;
}

SugaredValuePtr makeOverloads(std::string_view names) {
  std::vector<Function*> functions;
  while (!names.empty()) {
    size_t space = names.find(' ');
    functions.push_back(builtinScriptFunction(std::string(names.substr(0, space))));
    if (!functions.back()) return nullptr;
    names = space == std::string_view::npos ? "" : names.substr(space + 1);
  }
  return std::make_shared<FunctionValue>(std::move(functions));
}

// "return_indices 6 script a, aten::b"
SugaredValuePtr makeFlag(std::string_view rest, GraphFunction& fn) {
  size_t first = rest.find(' ');
  size_t second = rest.find(' ', first + 1);
  size_t comma = rest.find(", ");
  size_t position = static_cast<size_t>(rest[first + 1] - '0');
  SugaredValuePtr if_true = make(rest.substr(second + 1, comma - second - 1), fn);
  SugaredValuePtr if_false = make(rest.substr(comma + 2), fn);
  if (!if_true || !if_false) return nullptr;
  return std::make_shared<FlagDispatch>(std::string(rest.substr(0, first)), position, if_true,
                                        if_false);
}

SugaredValuePtr make(std::string_view target, GraphFunction& fn) {
  size_t space = target.find(' ');
  std::string_view sort = space == std::string_view::npos ? "" : target.substr(0, space);
  std::string_view rest = space == std::string_view::npos ? target : target.substr(space + 1);
  if (sort.empty()) {
    Symbol name = Symbol::fromQualString(rest);
    return isBuiltinOperator(name) ? std::make_shared<BuiltinFunction>(name) : nullptr;
  }
  if (sort == "form") return std::make_shared<SpecialForm>(Symbol::prim(rest));
  if (sort == "module") return std::make_shared<BuiltinModule>(std::string(rest));
  if (sort == "returns") return std::make_shared<ConstantFunction>(IValue(rest == "True"));
  if (sort == "tensor") {
    return std::make_shared<TypedTensorConstructor>(static_cast<int64_t>(*dtypeFromName(rest)));
  }
  if (sort == "flag") return makeFlag(rest, fn);
  if (sort == "member") return make(find(kMembers, rest)->target, fn);
  if (sort == "overloads") return makeOverloads(rest);
  if (sort == "script") {
    GraphFunction* function = builtinScriptFunction(std::string(rest));
    return function ? std::make_shared<FunctionValue>(function) : nullptr;
  }
  if (sort == "native") {
    const ClassTypePtr type = findNativeClass("__torch__." + std::string(rest));
    return type ? std::make_shared<ClassValue>(type) : nullptr;
  }
  if (sort == "class") {
    TypePtr type = builtinScriptType(std::string(rest));
    const auto* object = type ? type->as<ClassType>() : nullptr;
    return object ? std::make_shared<ClassValue>(object->shared()) : nullptr;
  }
  size_t second = rest.find(' ');
  std::string_view name = rest.substr(0, second);
  Symbol op = Symbol::fromQualString(rest.substr(second + 1));
  if (sort == "cast") {
    return std::make_shared<MagicFunction>(magicForCast(name),
                                           std::make_shared<CastValue>(castType(name), op));
  }
  return std::make_shared<MagicFunction>(std::string(name), std::make_shared<BuiltinFunction>(op));
}

}  // namespace

bool isExceptionName(std::string_view name) {
  for (const char* e : kExceptions) {
    if (name == e) return true;
  }
  return false;
}

SugaredValuePtr builtinValue(const std::string& name, GraphFunction& fn) {
  static const std::unordered_map<std::string_view, const Entry*> kIndex = [] {
    std::unordered_map<std::string_view, const Entry*> out;
    for (const Entry& e : kGlobals) out.emplace(e.name, &e);
    return out;
  }();
  if (auto it = kIndex.find(name); it != kIndex.end()) return make(it->second->target, fn);
  if (isExceptionName(name)) return std::make_shared<ExceptionValue>(name);
  if (name == "inf") return simple(fn, IValue(kInf));
  if (name == "nan") return simple(fn, IValue(std::numeric_limits<double>::quiet_NaN()));
  return nullptr;
}

// Whether operators are called `name::…`.
static bool isOperatorNamespace(const std::string& name) {
  if (find(kModules, "ops." + name)) return true;
  const std::vector<std::string> names = OperatorRegistry::instance().names();
  const std::string prefix = name + "::";
  const auto first = std::ranges::lower_bound(names, prefix);
  return first != names.end() && first->starts_with(prefix);
}

// Operators and classes that are registered while the program runs. Every name is a namespace of
// torch.classes, as in PyTorch; what it holds is looked up when it is asked for.
static SugaredValuePtr ownMember(const std::string& module, const std::string& name) {
  std::string_view rest = module;
  if (rest.starts_with("torch.")) rest.remove_prefix(6);
  if (module == "torch.classes" || (rest == "ops" && isOperatorNamespace(name))) {
    return std::make_shared<BuiltinModule>(module + "." + name);
  }
  if (rest.starts_with("ops.")) {
    const Symbol op = Symbol::fromQualString(fmt::format("{}::{}", rest.substr(4), name));
    return isBuiltinOperator(op) ? std::make_shared<BuiltinFunction>(op) : nullptr;
  }
  if (module.starts_with("torch.classes.")) {
    const ClassTypePtr type = findNativeClass(fmt::format("__torch__.{}.{}", module, name));
    return type ? std::make_shared<ClassValue>(type) : nullptr;
  }
  return nullptr;
}

SugaredValuePtr builtinMember(const std::string& module, const std::string& name,
                              GraphFunction& fn) {
  std::string full = module + "." + name;
  if (const Entry* e = find(kMembers, full)) {
    if (SugaredValuePtr found = make(e->target, fn)) return found;
  }
  if (find(kModules, full)) return std::make_shared<BuiltinModule>(full);
  for (const NumberEntry& e : kFloats) {
    if (full == e.name) return simple(fn, IValue(e.value));
  }
  if (module == "torch") {
    for (const IntEntry& e : kInts) {
      if (name == e.name) return simple(fn, IValue(e.value));
    }
  }
  if (GraphFunction* function = builtinScriptFunction(full)) {
    return std::make_shared<FunctionValue>(function);
  }
  if (TypePtr type = builtinScriptType(full)) {
    if (const auto* object = type->as<ClassType>()) {
      return std::make_shared<ClassValue>(object->shared());
    }
  }
  if (SugaredValuePtr found = ownMember(module, name)) return found;
  const Entry* rule = find(kModules, module);
  if (!rule || rule->target[0] == '\0' || std::string_view(rule->target) == "ops") return nullptr;
  Symbol op = Symbol::fromQualString(std::string(rule->target) + name);
  if (isBuiltinOperator(op)) return std::make_shared<BuiltinFunction>(op);
  return nullptr;
}

const std::set<std::string>& builtinNames() {
  static const std::set<std::string> kNames = [] {
    std::set<std::string> out;
    for (const Entry& e : kGlobals) out.insert(e.name);
    for (const char* e : kExceptions) out.insert(e);
    return out;
  }();
  return kNames;
}

bool isPythonOnly(std::string_view name) {
  return std::ranges::find(kPythonOnly, name) != std::ranges::end(kPythonOnly);
}

namespace {

// Whether some overload begins with a number.
bool takesNumber(Symbol name) {
  for (const Operator* op : OperatorRegistry::instance().overloads(name)) {
    const std::vector<Argument>& arguments = op->schema().arguments();
    if (!arguments.empty() && arguments[0].type->isNumeric()) return true;
  }
  return false;
}

}  // namespace

std::string suggestBuiltinMember(const std::string& module, const std::string& name) {
  std::set<std::string> names;
  std::string prefix = module + ".";
  // Members of submodules stand for these.
  auto add = [&](std::string_view full) {
    if (!full.starts_with(prefix)) return;
    full.remove_prefix(prefix.size());
    names.emplace(full.substr(0, full.find('.')));
  };
  for (const Entry& e : kMembers) add(e.name);
  for (const Entry& e : kModules) add(e.name);
  for (const NumberEntry& e : kFloats) add(e.name);
  for (const std::string& e : builtinScriptNames()) add(e);
  if (module == "torch") {
    for (const IntEntry& e : kInts) names.insert(e.name);
  }
  const Entry* rule = find(kModules, module);
  const size_t ops = module.starts_with("ops.") ? 4 : module.starts_with("torch.ops.") ? 10 : 0;
  const std::string op_prefix = rule       ? rule->target
                                : ops != 0 ? module.substr(ops) + "::"
                                           : std::string();
  if (!op_prefix.empty()) {
    bool of_numbers = module == "math" || module == "cmath";
    for (const std::string& op : OperatorRegistry::instance().names()) {
      if (!op.starts_with(op_prefix)) continue;
      if (of_numbers && !takesNumber(Symbol::fromQualString(op))) continue;
      names.insert(op.substr(op_prefix.size()));
    }
  }
  return didYouMean(name, names);
}

std::set<std::string> builtinAttributes(TypeKind kind) {
  std::set<std::string> names;
  for (const PropertyEntry& e : kProperties) {
    if (e.kind == kind) names.insert(e.name);
  }
  if (kind == TypeKind::Tensor) {
    for (const IntEntry& e : kCastMethods) names.insert(e.name);
    names.insert({"tolist", "type"});
  }
  if (kind == TypeKind::Enum) names.insert({"name", "value"});
  return names;
}

Symbol propertyOperator(TypeKind kind, const std::string& name) {
  for (const PropertyEntry& e : kProperties) {
    if (e.kind == kind && name == e.name) return Symbol::fromQualString(e.op);
  }
  return Symbol();
}

std::optional<int64_t> castMethodDType(const std::string& name) {
  for (const IntEntry& e : kCastMethods) {
    if (name == e.name) return e.value;
  }
  return std::nullopt;
}

}  // namespace wick

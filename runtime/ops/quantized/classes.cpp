// The classes of packed weights, and what archives hold of their objects.
#include "runtime/ops/object_state.h"
#include "runtime/ops/quantized/packed_params.h"

namespace wick::ops::quantized {

namespace {

using state::at;
using state::elementsOf;
using state::intOf;
using state::intsOf;
using state::optionalTensorOf;
using state::tensorOf;

// ---- linear layers: (weight, bias) ----

IValue linearState(const RefCounted& self) {
  const auto& layer = static_cast<const LinearParams&>(self);
  return IValue(makeTuple({IValue(layer.weight), IValue(layer.bias)}));
}
Ref<RefCounted> linearFrom(const IValue& state) {
  const char* what = "the state of LinearPackedParamsBase";
  const std::vector<IValue>& parts = elementsOf(what, state);
  return makeRef<LinearParams>(what, tensorOf(what, at(what, parts, 0)),
                               optionalTensorOf(what, at(what, parts, 1)));
}

// ---- convolutions: ("2", [numbers, weight], [bias]) ----

IValue convState(const RefCounted& self) {
  const auto& layer = static_cast<const ConvParams&>(self);
  std::vector<int16_t> numbers{static_cast<int16_t>(layer.dims())};
  const auto append = [&](int64_t v) {
    WICK_CHECK(v >= 0 && v <= INT16_MAX, "save: a convolution's {} is too large for the archive",
               v);
    numbers.push_back(static_cast<int16_t>(v));
  };
  for (const DimVector* values : {&layer.shape.stride, &layer.shape.padding, &layer.shape.dilation,
                                  &layer.shape.output_padding}) {
    for (int64_t v : *values) append(v);
  }
  append(layer.shape.groups);
  append(layer.shape.transposed ? 1 : 0);
  auto biases = makeRef<ListObject>(types::Optional(types::Tensor()));
  biases->elements.push_back(IValue(layer.bias));
  return IValue(
      makeTuple({IValue("2"), IValue(makeTensorList({Tensor::from(numbers), layer.weight})),
                 IValue(ListRef(std::move(biases)))}));
}

// The numbers of formats 2 and 3.
ConvParams::Shape shapeOf(const char* what, const DimVector& numbers) {
  WICK_CHECK(!numbers.empty() && (numbers[0] == 2 || numbers[0] == 3),
             "{}: expected 2 or 3 dimensions", what);
  const auto dims = static_cast<size_t>(numbers[0]);
  WICK_CHECK(numbers.size() == 1 + 4 * dims + 2, "{}: expected {} numbers, got {}", what,
             1 + 4 * dims + 2, numbers.size());
  size_t next = 1;
  const auto take = [&] {
    DimVector part(numbers.begin() + static_cast<ptrdiff_t>(next),
                   numbers.begin() + static_cast<ptrdiff_t>(next + dims));
    next += dims;
    return part;
  };
  ConvParams::Shape shape;
  shape.stride = take();
  shape.padding = take();
  shape.dilation = take();
  shape.output_padding = take();
  shape.groups = numbers[next];
  shape.transposed = (numbers[next + 1] & 1) != 0;
  return shape;
}

Ref<RefCounted> convFrom(const IValue& state) {
  const char* what = "the state of ConvPackedParamsBase";
  const std::vector<IValue>& parts = elementsOf(what, state);
  const IValue& first = at(what, parts, 0);
  if (first.isTensor()) {
    // Format 1: weight, bias, stride, padding, dilation, groups.
    ConvParams::Shape shape;
    shape.stride = intsOf(what, at(what, parts, 2));
    shape.padding = intsOf(what, at(what, parts, 3));
    shape.dilation = intsOf(what, at(what, parts, 4));
    shape.output_padding = DimVector(shape.stride.size(), 0);
    shape.groups = intOf(what, at(what, parts, 5));
    return makeRef<ConvParams>(what, first.toTensor(), optionalTensorOf(what, at(what, parts, 1)),
                               std::move(shape));
  }
  const bool third = first.isInt();
  WICK_CHECK(third ? first.toInt() == 3 : first.isString() && first.toString() == "2",
             "{}: format {} is not supported", what, first.repr());
  const std::vector<IValue>& tensors = elementsOf(what, at(what, parts, third ? 2 : 1));
  const std::vector<IValue>& optional = elementsOf(what, at(what, parts, 2));
  return makeRef<ConvParams>(
      what, tensorOf(what, at(what, tensors, 1)),
      optionalTensorOf(what, third ? at(what, tensors, 2) : at(what, optional, 0)),
      shapeOf(what, intsOf(what, third ? at(what, parts, 1) : at(what, tensors, 0))));
}

// ---- embeddings: (1, [weight], [], []) ----

IValue embeddingState(const RefCounted& self) {
  const auto& embedding = static_cast<const EmbeddingParams&>(self);
  return IValue(makeTuple({IValue(int64_t{1}), IValue(makeTensorList({embedding.weight})),
                           IValue(ListRef(makeRef<ListObject>(types::Float()))),
                           IValue(makeIntList(DimVector{embedding.bits()}))}));
}
Ref<RefCounted> embeddingFrom(const IValue& state) {
  const char* what = "the state of EmbeddingPackedParamsBase";
  const std::vector<IValue>& parts = elementsOf(what, state);
  WICK_CHECK(intOf(what, at(what, parts, 0)) == 1, "{}: expected format 1", what);
  const std::vector<IValue>& tensors = elementsOf(what, at(what, parts, 1));
  return makeRef<EmbeddingParams>(what, tensorOf(what, at(what, tensors, 0)));
}

// ---- recurrent cells: (kind, tensors, doubles, ints, layers) ----

constexpr const char* kDynamicName = "quantized_dynamic";
constexpr const char* kHalfName = "quantized_fp16";

IValue cellState(const RefCounted& self) {
  const auto& cell = static_cast<const CellParams&>(self);
  const bool dynamic = cell.kind == CellParams::Kind::Dynamic;
  std::vector<Tensor> biases;
  if (dynamic) biases = {cell.input_bias, cell.hidden_bias};
  auto layers = makeRef<ListObject>(findNativeClass(kLinearClass));
  layers->elements = {cell.input_layer, cell.hidden_layer};
  return IValue(
      makeTuple({IValue(dynamic ? kDynamicName : kHalfName), IValue(makeTensorList(biases)),
                 IValue(ListRef(makeRef<ListObject>(types::Float()))),
                 IValue(makeIntList(dynamic ? DimVector{cell.reduce_range ? 1 : 0} : DimVector())),
                 IValue(ListRef(std::move(layers)))}));
}
Ref<RefCounted> cellFrom(const IValue& state) {
  const char* what = "the state of CellParamsBase";
  const std::vector<IValue>& parts = elementsOf(what, state);
  const IValue& name = at(what, parts, 0);
  WICK_CHECK(name.isString() && (name.toString() == kDynamicName || name.toString() == kHalfName),
             "{}: cells of kind {} are not supported, expected {} or {}", what, name.repr(),
             kDynamicName, kHalfName);
  auto cell = makeRef<CellParams>();
  cell->kind = name.toString() == kDynamicName ? CellParams::Kind::Dynamic : CellParams::Kind::Half;
  const std::vector<IValue>& layers = elementsOf(what, at(what, parts, 4));
  cell->input_layer = at(what, layers, 0);
  cell->hidden_layer = at(what, layers, 1);
  linearOf(what, cell->input_layer);
  linearOf(what, cell->hidden_layer);
  if (cell->kind == CellParams::Kind::Dynamic) {
    const std::vector<IValue>& biases = elementsOf(what, at(what, parts, 1));
    cell->input_bias = tensorOf(what, at(what, biases, 0));
    cell->hidden_bias = tensorOf(what, at(what, biases, 1));
    // Archives before PyTorch 1.6 do not say, and meant seven bits.
    const DimVector flags = intsOf(what, at(what, parts, 3));
    cell->reduce_range = flags.empty() || flags[0] != 0;
  }
  return cell;
}

const RegisterNativeClass linear_class({kLinearClass,
                                        linearState,
                                        linearFrom,
                                        {{"unpack", "quantized::linear_unpack"},
                                         {"bias", "packed_class::linear_bias"}}});

std::vector<NativeMethod> convMethods(const std::string& name) {
  std::vector<NativeMethod> methods{{"weight", "packed_class::" + name + "_weight"},
                                    {"bias", "packed_class::" + name + "_bias"}};
  for (const char* method :
       {"unpack", "stride", "padding", "output_padding", "dilation", "groups", "transpose"}) {
    methods.push_back({method, "quantized::" + name + "_" + method});
  }
  return methods;
}
const RegisterNativeClass conv2d_class({kConv2dClass, convState, convFrom, convMethods("conv2d")});
const RegisterNativeClass conv3d_class({kConv3dClass, convState, convFrom, convMethods("conv3d")});

const RegisterNativeClass embedding_class({kEmbeddingClass,
                                           embeddingState,
                                           embeddingFrom,
                                           {{"bit_rate", "packed_class::embedding_bit_rate"},
                                            {"version", "packed_class::embedding_version"},
                                            {"unpack", "quantized::embedding_bag_unpack"}}});
const RegisterNativeClass cell_class({kCellClass, cellState, cellFrom, {}});

}  // namespace

}  // namespace wick::ops::quantized

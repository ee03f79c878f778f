#include "codegen/scalar/complex_recorders.h"

#include "codegen/scalar/activations.h"
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/complex_builder.h"
#include "codegen/scalar/mathematics.h"

namespace wick {

namespace {

using namespace scalar;

ComplexParts partsOf(ComplexBuilder::V v) {
  return {v.re, v.im};
}
ComplexParts partsOf(ComplexBuilder::Real v) {
  return {v.e, {}};
}
ComplexParts partsOf(ScalarExpr mask) {
  return {mask, {}};
}

template <class Def, size_t I>
auto inputOf(const ComplexParts* inputs) {
  if constexpr ((Def::kMasks >> I & 1) != 0) {
    return inputs[I].re;
  } else {
    return ComplexBuilder::V{inputs[I].re, inputs[I].im};
  }
}

template <class Def>
ComplexParts record(const ExprBuilder& real, const ComplexParts* inputs) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return partsOf(Def::apply(ComplexBuilder(real), inputOf<Def, I>(inputs)...));
  }
  (std::make_index_sequence<Def::kNumInputs>());
}

// Definitions that name the standard library's functions of real numbers.
ComplexParts recordAngle(const ExprBuilder& real, const ComplexParts* inputs) {
  return {real.atan2(inputs[0].im, inputs[0].re), {}};
}
ComplexParts recordIsInf(const ExprBuilder& real, const ComplexParts* inputs) {
  const ScalarExpr infinity = real.constant(std::numeric_limits<double>::infinity());
  return {real.either(real.eq(real.abs(inputs[0].re), infinity),
                      real.eq(real.abs(inputs[0].im), infinity)),
          {}};
}

struct Entry {
  const ScalarDefinition* definition;
  ComplexRecorder recorder;
};
template <class Def>
constexpr Entry plain() {
  return {&kScalar<Def>, {record<Def>, false}};
}
template <class Def>
constexpr Entry wide() {
  return {&kScalar<Def>, {record<Def>, true}};
}

const Entry kEntries[] = {
    plain<Add>(),
    plain<AddAlpha>(),
    plain<Sub>(),
    plain<SubAlpha>(),
    plain<Mul>(),
    plain<TrueDiv>(),
    plain<Square>(),
    plain<Cube>(),
    plain<Neg>(),
    plain<Reciprocal>(),
    plain<Identity>(),
    plain<InverseSquare>(),
    plain<Eq>(),
    plain<Ne>(),
    plain<Where>(),
    plain<MaskedFill>(),
    plain<Lerp>(),
    plain<LerpNumber>(),
    plain<Addcmul>(),
    plain<Addcdiv>(),
    plain<IsNan>(),
    plain<IsReal>(),
    plain<IsFinite>(),
    plain<Conj>(),
    plain<MakeComplex>(),
    wide<Polar>(),
    wide<Pow>(),
    wide<Abs>(),
    wide<SgnComplex>(),
    wide<Log2>(),
    wide<Log10>(),
    wide<Tan>(),
    wide<Asin>(),
    wide<Acos>(),
    wide<Atan>(),
    wide<Sinh>(),
    wide<Cosh>(),
    wide<Asinh>(),
    wide<Acosh>(),
    wide<Atanh>(),
    wide<Sqrt>(),
    wide<Exp>(),
    wide<Sin>(),
    wide<Cos>(),
    wide<Log>(),
    wide<Tanh>(),
    wide<Rsqrt>(),
    wide<Sinc>(),
    wide<Sigmoid>(),
    wide<Silu>(),
    wide<Tanhshrink>(),
    {&kScalar<Angle>, {recordAngle, true}},
    {&kScalar<IsInf>, {recordIsInf, false}},
};

}  // namespace

const ComplexRecorder* complexRecorderOf(const ScalarDefinition& definition) {
  for (const Entry& entry : kEntries) {
    if (entry.definition == &definition) return &entry.recorder;
  }
  return nullptr;
}

}  // namespace wick

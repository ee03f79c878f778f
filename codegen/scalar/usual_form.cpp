#include "codegen/scalar/usual_form.h"

#include "codegen/scalar/double_functions.h"
#include "codegen/scalar/float_power.h"
#include "codegen/scalar/float_trigonometry.h"

namespace wick {

namespace {

std::optional<UsualForm> floatForm(ScalarFunction f) {
  constexpr DType type = DType::Float;
  UsualForm form;
  const ExprBuilder b(form.arithmetic, type);
  const ScalarExpr first = form.arithmetic.input(0, type);
  const ScalarExpr second = form.arithmetic.input(1, type);
  switch (f) {
    case ScalarFunction::sin:
      form.value = floats::sin(b, first);
      form.usual = floats::sinInRange(b, first);
      return form;
    case ScalarFunction::cos:
      form.value = floats::cos(b, first);
      form.usual = floats::sinInRange(b, first);
      return form;
    case ScalarFunction::atan2:
      form.value = floats::atan2(b, first, second);
      return form;
    case ScalarFunction::fmod: {
      const ScalarExpr quotient = floats::quotientSize(b, first, second);
      form.value = floats::fmodOf(b, first, second, quotient);
      form.usual = floats::fmodInRange(b, second, quotient);
      return form;
    }
    case ScalarFunction::pow:
      form.value = floats::powOf(b, first, second);
      form.usual = floats::powInRange(b, first, second);
      return form;
    default:
      return std::nullopt;
  }
}

std::optional<UsualForm> doubleForm(ScalarFunction f) {
  constexpr DType type = DType::Double;
  UsualForm form;
  const ExprBuilder b(form.arithmetic, type);
  const ScalarExpr first = form.arithmetic.input(0, type);
  const ScalarExpr second = form.arithmetic.input(1, type);
  switch (f) {
#define WICK_FUNCTION(name)               \
  case ScalarFunction::name:              \
    form.value = doubles::name(b, first); \
    return form;
    WICK_FUNCTION(exp)
    WICK_FUNCTION(expm1)
    WICK_FUNCTION(log)
    WICK_FUNCTION(log1p)
    WICK_FUNCTION(tanh)
    WICK_FUNCTION(sigmoid)
    WICK_FUNCTION(rsqrt)
#undef WICK_FUNCTION
    case ScalarFunction::sin:
      form.value = doubles::sin(b, first);
      form.usual = doubles::sinInRange(b, first);
      return form;
    case ScalarFunction::cos:
      form.value = doubles::cos(b, first);
      form.usual = doubles::sinInRange(b, first);
      return form;
    case ScalarFunction::fmod: {
      const ScalarExpr quotient = doubles::quotientSize(b, first, second);
      form.value = doubles::fmodOf(b, first, second, quotient);
      form.usual = doubles::fmodInRange(b, second, quotient);
      return form;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<UsualForm> usualForm(ScalarFunction f, DType type) {
  if (type == DType::Float) return floatForm(f);
  if (type == DType::Double) return doubleForm(f);
  return std::nullopt;
}

}  // namespace wick

// ComplexBuilder: the builder (see plain_builder.h) that records arithmetic of complex numbers as that
// of their parts, so that engines of real numbers compute it.
//
// Products and quotients are those of core/complex_product.h, with the same bits. Functions take care
// of large, small and infinite parts as far as formulas without branches go.
#pragma once

#include <limits>
#include <numbers>

#include "codegen/scalar/expression.h"

namespace wick {

class ComplexBuilder {
 public:
  using Mask = ScalarExpr;

  // A real number, with the operators that definitions use on parts.
  struct Real {
    const ComplexBuilder* builder;
    ScalarExpr e;
    friend Real operator/(Real a, Real b) { return {a.builder, a.real().div(a.e, b.e)}; }
    friend Real operator-(Real a) { return {a.builder, a.real().neg(a.e)}; }
    friend Mask operator<(Real a, double b) { return a.real().lt(a.e, a.real().constant(b)); }
    friend Mask operator==(Real a, double b) { return a.real().eq(a.e, a.real().constant(b)); }

   private:
    const ExprBuilder& real() const { return builder->real_; }
  };
  struct V {
    ScalarExpr re, im;
  };

  // `real` records the arithmetic of parts; its dtype is theirs.
  explicit ComplexBuilder(const ExprBuilder& real) : real_(real) {}
  const ExprBuilder& parts() const { return real_; }

  static constexpr bool isInteger() { return false; }
  static constexpr bool isBool() { return false; }
  static constexpr bool isSigned() { return true; }
  static constexpr bool isFloat() { return false; }
  static constexpr bool isComplex() { return true; }

  V constant(double v) const { return {real_.constant(v), real_.constant(0)}; }

  V add(V a, V b) const { return {real_.add(a.re, b.re), real_.add(a.im, b.im)}; }
  V sub(V a, V b) const { return {real_.sub(a.re, b.re), real_.sub(a.im, b.im)}; }
  V neg(V a) const { return {real_.neg(a.re), real_.neg(a.im)}; }
  V mul(V a, V b) const {
    const ExprBuilder& r = real_;
    return {r.sub(r.mul(a.re, b.re), r.mul(a.im, b.im)),
            r.add(r.mul(a.re, b.im), r.mul(a.im, b.re))};
  }
  V div(V a, V b) const {
    const ExprBuilder& r = real_;
    // As std::max does it, which matters where a part is NaN.
    const ScalarExpr x = r.abs(b.re), y = r.abs(b.im);
    const ScalarExpr size = r.select(r.lt(x, y), y, x);
    const V p{r.div(a.re, size), r.div(a.im, size)}, q{r.div(b.re, size), r.div(b.im, size)};
    const ScalarExpr square = r.add(r.mul(q.re, q.re), r.mul(q.im, q.im));
    return {r.div(r.add(r.mul(p.re, q.re), r.mul(p.im, q.im)), square),
            r.div(r.sub(r.mul(p.im, q.re), r.mul(p.re, q.im)), square)};
  }

  // Named in branches that complex numbers never take.
  V intPow(V a, V) const { return a; }

  Mask eq(V a, V b) const { return real_.both(real_.eq(a.re, b.re), real_.eq(a.im, b.im)); }
  Mask ne(V a, V b) const { return real_.negate(eq(a, b)); }
  Mask isNan(V a) const { return real_.either(real_.isNan(a.re), real_.isNan(a.im)); }
  Mask both(Mask a, Mask b) const { return real_.both(a, b); }
  Mask either(Mask a, Mask b) const { return real_.either(a, b); }
  Mask differ(Mask a, Mask b) const { return real_.differ(a, b); }
  Mask negate(Mask a) const { return real_.negate(a); }
  V select(Mask m, V a, V b) const {
    return {real_.select(m, a.re, b.re), real_.select(m, a.im, b.im)};
  }

  Real realPart(V a) const { return {this, a.re}; }
  Real imagPart(V a) const { return {this, a.im}; }
  Real magnitude(V a) const { return {this, real_.hypot(a.re, a.im)}; }
  V makeComplex(Real re, Real im) const { return {re.e, im.e}; }
  V makeComplex(V re, V im) const { return {re.re, im.re}; }

  V exp(V z) const {
    const ExprBuilder& r = real_;
    const ScalarExpr size = r.exp(z.re), zero = r.constant(0);
    // Without the products of zero and infinity.
    const V plain{r.mul(size, r.cos(z.im)), r.mul(size, r.sin(z.im))};
    const V real{size, z.im};
    const V none{zero, r.copysign(zero, z.im)};
    const V value = select(r.eq(z.im, zero), real, plain);
    return select(r.both(r.eq(size, zero), r.isNan(r.sub(z.im, z.im))), none, value);
  }
  V log(V z) const { return {real_.log(real_.hypot(z.re, z.im)), real_.atan2(z.im, z.re)}; }
  V log2(V z) const { return scaled(log(z), std::numbers::log2e); }
  V log10(V z) const { return scaled(log(z), std::numbers::log10e); }

  V sqrt(V z) const {
    const ExprBuilder& r = real_;
    const ScalarExpr zero = r.constant(0), half = r.constant(0.5);
    const ScalarExpr t = r.sqrt(r.mul(half, r.add(r.abs(z.re), r.hypot(z.re, z.im))));
    const ScalarExpr other = r.div(r.mul(half, z.im), t);
    const V right{t, other}, left{r.abs(other), r.copysign(t, z.im)};
    const V none{zero, z.im};
    const V finite = select(r.eq(t, zero), none, select(r.lt(z.re, zero), left, right));
    // A part of infinity gives no quotient.
    const Mask tall = r.eq(r.abs(z.im), infinity());
    const Mask wide = r.eq(r.abs(z.re), infinity());
    const V on_right{z.re, r.copysign(zero, z.im)}, on_left{zero, r.copysign(infinity(), z.im)};
    return select(tall, V{infinity(), z.im},
                  select(wide, select(r.lt(z.re, zero), on_left, on_right), finite));
  }
  V rsqrt(V z) const { return div(constant(1), sqrt(z)); }
  V sigmoid(V z) const { return div(constant(1), add(constant(1), exp(neg(z)))); }
  // By logarithms, except that zero to a power of positive real part is zero.
  V pow(V z, V n) const {
    const ExprBuilder& r = real_;
    const V value = exp(mul(n, log(z)));
    const V zero = constant(0);
    const V at_zero = select(eq(n, zero), constant(1), zero);
    const Mask grows = r.either(r.gt(n.re, r.constant(0)), eq(n, zero));
    return select(r.both(eq(z, zero), grows), at_zero, value);
  }

  V sin(V z) const {
    return {real_.mul(real_.sin(z.re), real_.cosh(z.im)),
            real_.mul(real_.cos(z.re), real_.sinh(z.im))};
  }
  V cos(V z) const {
    return {real_.mul(real_.cos(z.re), real_.cosh(z.im)),
            real_.neg(real_.mul(real_.sin(z.re), real_.sinh(z.im)))};
  }
  V sinh(V z) const { return turnedBack(sin(turned(z))); }
  V cosh(V z) const { return cos(turned(z)); }
  V tan(V z) const { return turnedBack(tanh(turned(z))); }
  // Kahan's formula.
  V tanh(V z) const {
    const ExprBuilder& r = real_;
    const ScalarExpr one = r.constant(1), s = r.sinh(z.re), t = r.tan(z.im);
    const ScalarExpr beta = r.add(one, r.mul(t, t));
    const ScalarExpr below = r.add(one, r.mul(beta, r.mul(s, s)));
    const ScalarExpr c = r.sqrt(r.add(one, r.mul(s, s)));
    const V near{r.div(r.mul(beta, r.mul(c, s)), below), r.div(t, below)};
    const ScalarExpr small = r.exp(r.mul(r.constant(-2), r.abs(z.re)));
    const ScalarExpr rest = r.mul(r.constant(4), r.mul(r.mul(r.sin(z.im), r.cos(z.im)), small));
    const V far{r.copysign(one, z.re), rest};
    return select(r.gt(r.abs(z.re), r.constant(20)), far, near);
  }

  V asin(V z) const {
    const ExprBuilder& r = real_;
    const V p = sqrt(oneMinus(z)), q = sqrt(plus(z, 1));
    const ScalarExpr re = r.atan2(z.re, mul(p, q).re);
    return {re, r.asinh(mul(conjugate(p), q).im)};
  }
  V acos(V z) const {
    const ExprBuilder& r = real_;
    const V p = sqrt(oneMinus(z)), q = sqrt(plus(z, 1));
    return {r.mul(r.constant(2), r.atan2(p.re, q.re)), r.asinh(mul(conjugate(q), p).im)};
  }
  V acosh(V z) const {
    const ExprBuilder& r = real_;
    const V p = sqrt(plus(z, -1)), q = sqrt(plus(z, 1));
    return {r.asinh(mul(conjugate(p), q).re), r.mul(r.constant(2), r.atan2(p.im, q.re))};
  }
  // Odd in the real part, for which the quotient loses nothing where it is positive.
  V atanh(V z) const {
    const ExprBuilder& r = real_;
    const ScalarExpr one = r.constant(1), size = r.abs(z.re);
    const ScalarExpr below = r.sub(one, size), above = r.add(one, size);
    const ScalarExpr square = r.mul(z.im, z.im);
    const ScalarExpr ratio = r.div(r.mul(r.constant(4), size), r.add(r.mul(below, below), square));
    return {r.copysign(r.mul(r.constant(0.25), r.log1p(ratio)), z.re),
            r.mul(r.constant(0.5),
                  r.atan2(r.mul(r.constant(2), z.im), r.sub(r.mul(below, above), square)))};
  }
  V asinh(V z) const { return turnedBack(asin(turned(z))); }
  V atan(V z) const { return turnedBack(atanh(turned(z))); }

 private:
  ScalarExpr infinity() const { return real_.constant(std::numeric_limits<double>::infinity()); }
  V scaled(V a, double by) const {
    const ScalarExpr factor = real_.constant(by);
    return {real_.mul(a.re, factor), real_.mul(a.im, factor)};
  }
  // With the sign of a zero imaginary part, which decides on cuts.
  V oneMinus(V a) const { return {real_.sub(real_.constant(1), a.re), real_.neg(a.im)}; }
  V plus(V a, double real) const { return {real_.add(a.re, real_.constant(real)), a.im}; }
  V conjugate(V a) const { return {a.re, real_.neg(a.im)}; }
  // Times i, and times -i.
  V turned(V a) const { return {real_.neg(a.im), a.re}; }
  V turnedBack(V a) const { return {a.im, real_.neg(a.re)}; }

  ExprBuilder real_;
};

}  // namespace wick

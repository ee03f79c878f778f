#include "runtime/cuda/number_text.h"

#include <fmt/format.h>

#include "codegen/cuda/scalar_text.h"

namespace wick::cuda {

namespace {

constexpr const char* kNumbers = R"(
template <class R> struct wickComplex {
  R re, im;
  wickComplex() = default;
  __device__ wickComplex(R r) : re(r), im(0) {}
  __device__ wickComplex(R r, R i) : re(r), im(i) {}
};
#define WICK_OF_COMPLEX template <class R> __device__ __forceinline__ wickComplex<R>
WICK_OF_COMPLEX operator+(wickComplex<R> a, wickComplex<R> b) { return {a.re + b.re, a.im + b.im}; }
WICK_OF_COMPLEX operator-(wickComplex<R> a, wickComplex<R> b) { return {a.re - b.re, a.im - b.im}; }
WICK_OF_COMPLEX operator-(wickComplex<R> a) { return {-a.re, -a.im}; }
WICK_OF_COMPLEX operator*(wickComplex<R> a, wickComplex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
WICK_OF_COMPLEX operator/(wickComplex<R> a, wickComplex<R> b) {
  const R x = fabs(b.re), y = fabs(b.im), size = x < y ? y : x;
  const wickComplex<R> p(a.re / size, a.im / size), q(b.re / size, b.im / size);
  const R square = q.re * q.re + q.im * q.im;
  return {(p.re * q.re + p.im * q.im) / square, (p.im * q.re - p.re * q.im) / square};
}
WICK_OF_COMPLEX wickConj(wickComplex<R> a) { return {a.re, -a.im}; }
__device__ __forceinline__ float wickConj(float a) { return a; }
__device__ __forceinline__ double wickConj(double a) { return a; }
)";

}  // namespace

std::string numberType(DType type) {
  if (!isComplex(type)) return codegen::cudaType(type);
  return fmt::format("wickComplex<{}>", codegen::cudaType(toRealType(type)));
}

std::string narrowedText(const std::string& value, DType type) {
  return codegen::cudaConvert(value, wideOf(type), type);
}

// What few texts need is not made for the others.
ElementWords::ElementWords(std::string_view text, DType dtype)
    : load(codegen::cudaConvert("e", dtype, wideOf(dtype))) {
  static const std::string& plain = *new std::string(codegen::cudaPreamble(Expression()));
  if (text.starts_with("{preamble}")) preamble = plain;
  const bool any_number = text.find("{numbers}") != text.npos;
  if (any_number) numbers = kNumbers;
  const auto name = any_number ? numberType : codegen::cudaType;
  type = name(dtype);
  wide = name(wideOf(dtype));
}

}  // namespace wick::cuda

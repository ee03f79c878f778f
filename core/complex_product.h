// Products and quotients of complex numbers by the textbook's formulas, every product and sum
// rounded by itself.
//
// GCC 12 joins the two lines of such a formula to one vector, and then products with sums to
// vfmaddsub, whatever -ffp-contract=off says: z / z got an imaginary part, and elements of an array
// other numbers than those of its rest. What stands here keeps each product apart;
// -fno-tree-slp-vectorize (.bazelrc) keeps scalar formulas elsewhere.
#pragma once

#include <complex>

namespace wick {

// The product itself, out of the compiler's sight.
template <class T>
inline T rounded(T product) {
  asm("" : "+x"(product));
  return product;
}

// Without the recovery of infinities that the standard library's product does.
template <class T>
inline std::complex<T> complexProduct(std::complex<T> a, std::complex<T> b) {
  return {rounded(a.real() * b.real()) - rounded(a.imag() * b.imag()),
          rounded(a.real() * b.imag()) + rounded(a.imag() * b.real())};
}

// a times the conjugate of b, over b's absolute square. No care for its overflow: scale before.
template <class T>
inline std::complex<T> complexQuotient(std::complex<T> a, std::complex<T> b) {
  const T square = rounded(b.real() * b.real()) + rounded(b.imag() * b.imag());
  return {(rounded(a.real() * b.real()) + rounded(a.imag() * b.imag())) / square,
          (rounded(a.imag() * b.real()) - rounded(a.real() * b.imag())) / square};
}

}  // namespace wick

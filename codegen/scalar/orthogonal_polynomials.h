// Orthogonal polynomials of a degree that is given as a number, for float and double, in the
// arithmetic of the type: PyTorch's results overflow and cancel where the type does.
//
// Of n the whole part counts; below zero the polynomial is 0. Inside of (-1, 1) the Chebyshev
// families of higher degrees use their trigonometric form, elsewhere the recurrence. A degree that
// is no int64 gives 0; one beyond 100,000 gives NaN, which bounds the time of an element.
#pragma once

namespace wick::math {

template <class T>
T chebyshevT(T x, T n);
template <class T>
T chebyshevU(T x, T n);
template <class T>
T chebyshevV(T x, T n);
template <class T>
T chebyshevW(T x, T n);
template <class T>
T hermiteH(T x, T n);
template <class T>
T hermiteHe(T x, T n);
template <class T>
T laguerreL(T x, T n);
template <class T>
T legendreP(T x, T n);

}  // namespace wick::math

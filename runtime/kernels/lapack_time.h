// Whether a call of LAPACK ends in time. Nothing can interrupt such a call, and its work cannot be
// cut into parts that give the same numbers; so a call that would not end before the deadline of
// its run is refused instead. How fast this machine is gets measured with the routine itself, on
// smaller matrices, when the answer is not plain.
#pragma once

#include <complex>

namespace wick::lapack {

// What routines spend their time with. Those of one kind are about equally fast.
enum class Work { Products, Bidiagonal, Tridiagonal, Hessenberg };

// To be called before a routine that takes so many operations on numbers of type T (an addition or
// a multiplication is one, of complex numbers too). RuntimeError of class TimeoutError when the
// budget of the calling thread is exhausted, or `what` ("an LU factorization") would not end within
// it. Some nanoseconds without a deadline, and for what is short. Thread-safe.
template <class T>
void checkTime(Work work, double operations, const char* what);

extern template void checkTime<float>(Work, double, const char*);
extern template void checkTime<double>(Work, double, const char*);
extern template void checkTime<std::complex<float>>(Work, double, const char*);
extern template void checkTime<std::complex<double>>(Work, double, const char*);

// Operations of routines on an m x n matrix. Rounded up, where a routine can do with less.
double luOperations(double m, double n);
double qrOperations(double m, double n);
// job as in gesdd().
double singularOperations(char job, double m, double n);
double symmetricOperations(bool vectors, double n);
double eigenOperations(bool vectors, double n);

}  // namespace wick::lapack

// Singular and eigenvalues for kernels that are composed of them.
#pragma once

#include "core/tensor.h"

namespace wick::linalg {

struct Svd {
  Tensor u, s, vh;  // u and vh are undefined when only the values were asked for
};
Svd svd(const char* op, const Tensor& a, bool full, bool vectors);

struct Eigh {
  Tensor values, vectors;
};
// Of Hermitian matrices; one triangle of them is read; values ascend.
Eigh eigh(const char* op, const Tensor& a, bool upper, bool vectors);

}  // namespace wick::linalg

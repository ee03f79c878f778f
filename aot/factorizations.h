// Factorizations of matrices, which LAPACK computes when the compiled model runs.
#pragma once

#include <optional>
#include <string>

#include "core/tensor.h"

namespace wick::aot {

// What the compiled model raises where these are codes of factorizations that are not zero; nullopt for other tensors.
// A program that asks for codes looks whether all went well, and is told that it did.
std::optional<std::string> complaintOfCodes(const Tensor& t);

}  // namespace wick::aot

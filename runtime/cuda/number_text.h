// Texts of kernels on elements of any dtype, complex numbers among them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "core/dtype.h"

namespace wick::cuda {

// What numbers of a dtype are computed in: reduced floats in float32, others as they are.
inline DType wideOf(DType type) {
  return isReducedFloat(type) ? DType::Float : type;
}

// The type in a text: as codegen::cudaType(), and of complex numbers.
std::string numberType(DType type);
// A wide number as an element of the dtype.
std::string narrowedText(const std::string& value, DType type);

// What texts are filled with.
struct ElementWords {
  ElementWords(std::string_view text, DType dtype);

  std::string_view preamble, numbers;
  std::string type, wide, load;
};

// A text with its names replaced: {preamble}, the definitions of codegen::cudaPreamble(); {numbers}, a type
// of complex numbers with arithmetic, and wickConj() of all numbers (others have no complex elements);
// {type} of the elements and {wide} of what they are computed in; {load}, the wide number of an
// element `e`; others by fmt::arg().
template <class... More>
std::string textOf(const char* text, DType type, const More&... more) {
  const ElementWords words(text, type);
  return fmt::format(fmt::runtime(text), fmt::arg("preamble", words.preamble),
                     fmt::arg("numbers", words.numbers), fmt::arg("type", words.type),
                     fmt::arg("wide", words.wide), fmt::arg("load", words.load), more...);
}

}  // namespace wick::cuda

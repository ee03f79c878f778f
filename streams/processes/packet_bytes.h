// Values as bytes, for other processes and for files.
#pragma once

#include <string>

#include "core/ivalue.h"

namespace wick::streams {

// As torch.save writes it. Tensors come to the CPU and take no more with them than their own elements;
// tensors that are the same one stay so. RuntimeError for values that have no such form.
std::string valueBytes(const IValue& value);
// `name` is what messages call it. LoadError.
IValue valueOf(std::string bytes, const std::string& name);

}  // namespace wick::streams

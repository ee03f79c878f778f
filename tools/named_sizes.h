// Names in place of sizes in --input of `build`: Nx3x224x224xf32.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aot/size_text.h"

namespace wick::cli {

// The names in these inputs, in order, each once, with the sizes that they may have: those that `ranges`
// ("N=1..64", "L=16..512:16") and `fixed` ("N=4") tell, or else 1 to 64. A name has capital letters,
// digits and _, and stands where a size of a tensor or a whole number does.
// CommandLineError for options that cannot be read.
std::vector<aot::Symbol> namedSizes(const std::vector<std::string>& inputs,
                                    const std::vector<std::string>& ranges,
                                    const std::vector<std::string>& fixed);

// CommandLineError when an option is for a name that none of these inputs has.
void checkNames(const std::vector<std::string>& inputs, const std::vector<std::string>& ranges,
                const std::vector<std::string>& fixed);

// The inputs with numbers in place of the names.
std::vector<std::string> withSizes(const std::vector<std::string>& inputs,
                                   const std::vector<aot::Symbol>& symbols,
                                   const std::vector<int64_t>& sizes);

}  // namespace wick::cli

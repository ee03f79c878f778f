// How wide the vectors of machine code may be.
#pragma once

namespace wick::codegen {

// Bits: 128, 256 or 512, from the environment variable WICK_VECTOR_BITS, which is read once; 512
// when it is not set. RuntimeError for anything else. With 256 and
// 128, code uses no instruction of AVX-512, and with 128 also no wider registers: to test the code
// of smaller processors, and to spare those whose clock falls with wide registers. Numbers do not
// depend on it. Thread-safe.
unsigned vectorBitsLimit();

}  // namespace wick::codegen

// One command line of torchscript-cli from its words to its exit code.
#pragma once

namespace wick::cli {

inline constexpr int kDone = 0;        // exit codes
inline constexpr int kRefused = 1;     // the file or its program was refused or raised
inline constexpr int kWrongUsage = 2;  // the command line itself is wrong

// Runs what the words say, within their limits, and writes the reason of a failure to standard
// error. Throws nothing. `argv` as of main(). When a call of a library goes on for a second after
// the command's time is over, the process ends with kRefused.
int runCommand(int argc, const char* const* argv);

}  // namespace wick::cli

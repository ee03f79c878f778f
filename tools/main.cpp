// torchscript-cli. Exit codes: 0 done; 1 the file or its program was refused or raised, with the
// reason on standard error; 2 wrong usage.
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "core/error.h"
#include "core/tensor.h"
#include "tools/options.h"

namespace {

using namespace wick::cli;

constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kWrongUsage = 2;

// A program that asks for more memory than the machine has gets an error before the system ends the
// process.
void limitMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_size > 0) {
    wick::setAllocationLimit(static_cast<size_t>(pages) * static_cast<size_t>(page_size));
  }
}

int complain(const char* message, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", message);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    limitMemory();
    const Options options = parseOptions(argc, argv);
    options.verb(options);
    return kDone;
  } catch (const HelpRequested& help) {
    std::fputs(help.text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? kDone : kRefused;
  } catch (const CommandLineError& e) {
    return complain(e.what(), kWrongUsage);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kRefused);
  } catch (const std::exception& e) {
    return complain(e.what(), kRefused);
  } catch (...) {
    return complain("an error of unknown kind", kRefused);
  }
}

// Fuzz targets: bytes that become programs (claims_program.h), compiled and run within limits. A value that is not of the type
// that its function declares, a text with an address in it, and work that goes on long after its time are failures.
#pragma once

#include <time.h>

#include <cctype>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "core/budget.h"
#include "core/conform.h"
#include "frontend/compile.h"
#include "tests/fuzz/claims_program.h"
#include "tests/fuzz/import_target.h"

namespace wick {

[[noreturn]] inline void claimsFailure(const std::string& message, const std::string& program) {
  throw InternalError(__FILE__, __LINE__, message + "\n" + program.substr(0, 4000));
}

// Whether a text holds something that looks like an address.
inline bool showsAddress(std::string_view text) {
  for (size_t at = text.find("0x"); at != std::string_view::npos; at = text.find("0x", at + 2)) {
    size_t digits = 0;
    while (at + 2 + digits < text.size() &&
           std::isxdigit(static_cast<unsigned char>(text[at + 2 + digits]))) {
      ++digits;
    }
    if (digits >= 7) return true;
  }
  return false;
}

// Returns the processor time of the thread, which does not depend on what else the machine does.
inline std::chrono::nanoseconds threadTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Runs `work` under a budget of one second and 64 MB. Throws InternalError for one, for work that takes more than ten seconds of
// the thread's time, and for addresses in errors' texts.
template <class Work>
void withinBudget(const std::string& program, Work&& work) {
  const auto begin = threadTime();
  Budget budget(
      {std::chrono::steady_clock::now() + std::chrono::seconds(1), size_t{64} << 20, nullptr});
  const BudgetScope scope(&budget);
  try {
    work();
  } catch (const InternalError& error) {
    claimsFailure(error.what(), program);
  } catch (const Error& error) {
    if (showsAddress(error.what())) claimsFailure(error.what(), program);
  }
  if (threadTime() - begin > std::chrono::seconds(10)) claimsFailure("it takes too long", program);
}

// Calls the function three times, so that whatever compiles itself later has its turn.
inline void callConforming(GraphFunction& function, const std::shared_ptr<CompilationUnit>& unit,
                           std::vector<IValue> arguments, const std::string& program) {
  for (int i = 0; i < 3; ++i) {
    RunOptions options = fuzzRunOptions();
    options.max_steps = 200'000;
    options.max_memory = size_t{64} << 20;
    options.owner = unit;
    const IValue result = callFunction(function, arguments, {}, options);
    try {
      conform(result, function.schema().returns()[0].type);
    } catch (const Error& error) {
      claimsFailure(error.what(), program);
    }
    const std::string text = result.isString() ? std::string(result.toString()) : result.repr();
    if (showsAddress(text)) claimsFailure(text.substr(0, 1000), program);
  }
}

inline void sourceWithinLimits(const std::string& program) {
  withinBudget(program, [&] {
    const std::shared_ptr<CompilationUnit> unit = compileSource(program, "fuzz.py");
    GraphFunction* const main = unit->findFunction("__torch__.main");
    if (!main) claimsFailure("there is no main", program);
    callConforming(*main, unit, {}, program);
  });
}

inline void defaultValuesTarget(const std::string& bytes) {
  sourceWithinLimits(defaultValuesProgram(bytes));
}
inline void fileConstantsTarget(const std::string& bytes) {
  sourceWithinLimits(fileConstantsProgram(bytes));
}
inline void textsTarget(const std::string& bytes) {
  sourceWithinLimits(textsProgram(bytes));
}
// The first byte chooses between source and archive.
inline void castsTarget(const std::string& bytes) {
  const std::string_view choices(bytes);
  if (bytes.empty() || bytes[0] % 2 == 0) {
    return sourceWithinLimits(castsProgram(choices.substr(bytes.empty() ? 0 : 1), false));
  }
  const std::string program = castsProgram(choices.substr(1), true);
  withinBudget(program, [&] {
    const std::string archive = archiveOfSource(program);
    const Module module =
        loadModule(copyBytes(std::as_bytes(std::span(archive.data(), archive.size()))), "fuzz");
    callConforming(module.method("forward"), compilationUnitOf(module), {IValue(module.object())},
                   program);
  });
}

}  // namespace wick

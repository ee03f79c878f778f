// Every trial runs in a process of its own, so that a wrong optimization may also crash.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>
#include <optional>

#include "core/log.h"
#include "core/optimization_limit.h"
#include "passes/pipeline.h"
#include "tools/bisect.h"
#include "tools/comparison.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

// What the program did: a result, or the reason why there is none.
struct Outcome {
  std::optional<IValue> result;
  std::string error;
};

bool same(const Outcome& a, const Outcome& b, double tolerance) {
  if (a.result.has_value() != b.result.has_value()) return false;
  if (!a.result) return a.error == b.error;
  return differences(*a.result, *b.result, {.relative = tolerance}, "").empty();
}

Outcome runAt(const Options& options, OptimizationLevel level) {
  setOptimizationLevel(level);
  defaultGenerator().seed(options.seed.value_or(0));
  const LoadedFile program = LoadedFile::load(options.file, devicesOf(options));
  applyMode(options, program);
  const std::shared_ptr<GraphFunction> chosen = functionFor(options, program);
  GraphFunction& function = *chosen;
  Arguments arguments = argumentsFor(options, program, function);
  placeOnDevice(options, program, arguments);
  try {
    const IValue result = program.call(options, function, std::move(arguments.positional),
                                       std::move(arguments.named));
    fetchResult(options, result);
    return {result, {}};
  } catch (const RuntimeError& e) {
    return {{}, e.brief()};
  }
}

struct Trial {
  bool right = false;  // the optimized program did what the other does
  uint64_t made = 0;   // changes that passes made
  std::string pass;    // the last one's pass, and how the pass describes it
  std::string change;
};

std::string& lastUpdate() {
  static std::string line;
  return line;
}

Trial runTrial(const Options& options, uint64_t limit) {
  Trial trial;
  const Outcome plain = runAt(options, OptimizationLevel::None);
  setOptimizationLimits(fmt::format("*={}", limit));
  setLogFiles("*");
  setLogHandler([](std::string_view line) {
    if (line.starts_with("[UPDATE")) lastUpdate() = line;
  });
  const bool stress = options.optimize == "stress";
  const Outcome optimized =
      runAt(options, stress ? OptimizationLevel::Stress : OptimizationLevel::Default);
  trial.right = same(plain, optimized, options.tolerance);
  trial.made = optimizationsMade();
  trial.pass = lastOptimizingPass();
  trial.change = lastUpdate();
  return trial;
}

// The trial's words through a pipe: a line each for verdict, count and pass, then the change.
std::string pack(const Trial& trial) {
  return fmt::format("{}\n{}\n{}\n{}", trial.right ? 1 : 0, trial.made, trial.pass, trial.change);
}
Trial unpack(std::string_view text) {
  const auto line = [&] {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string first(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    return first;
  };
  Trial trial;
  trial.right = line() == "1";
  trial.made = std::strtoull(line().c_str(), nullptr, 10);
  trial.pass = line();
  trial.change = text;
  return trial;
}

[[noreturn]] void runBisectChild(const Options& options, uint64_t limit, int pipe) {
  int code = 0;
  std::string words;
  try {
    words = pack(runTrial(options, limit));
  } catch (const std::exception& e) {
    words = e.what();
    code = 1;
  }
  for (size_t done = 0; done < words.size();) {
    const ssize_t n = write(pipe, words.data() + done, words.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  _exit(code);  // the parent's buffers are not ours to flush
}

// Throws RuntimeError for what is not a verdict: the program does not load, for one.
Trial trialAt(const Options& options, uint64_t limit) {
  int ends[2];
  WICK_CHECK(pipe(ends) == 0, "bisect: no pipe");
  const pid_t child = fork();
  WICK_CHECK(child >= 0, "bisect: no process");
  if (child == 0) {
    close(ends[0]);
    runBisectChild(options, limit, ends[1]);
  }
  close(ends[1]);
  std::string words;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    words.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return {};  // a crash is as wrong as a wrong number
  WICK_CHECK(WEXITSTATUS(status) == 0, "{}", words);
  return unpack(words);
}

}  // namespace

void bisectVerb(const Options& options) {
  applySettings(options);
  if (!trialAt(options, 0).right) {
    print(
        "two runs without any optimization differ: the program depends on more than its inputs\n");
    return;
  }
  const Trial all = trialAt(options, std::numeric_limits<uint64_t>::max());
  if (all.right) {
    print(fmt::format("{} optimizations, and none changes the result\n", all.made));
    return;
  }
  // A trial that crashed made no count; limits beyond what there is to do allow everything.
  uint64_t last = all.made;
  for (uint64_t limit = 1; last == 0; limit *= 2) {
    if (!trialAt(options, limit).right) last = limit;
  }
  const uint64_t n =
      firstWrong(last, [&](uint64_t limit) { return trialAt(options, limit).right; });
  const Trial before = trialAt(options, n - 1);
  const Trial wrong = trialAt(options, n);
  print(fmt::format("optimization {} is the first that changes the result{}\n", n,
                    wrong.pass.empty() ? ": it makes the program crash"
                                       : fmt::format(", in {}:\n{}", wrong.pass, wrong.change)));
  if (wrong.pass.empty()) {
    print(fmt::format("the one before is in {}:\n{}", before.pass, before.change));
  }
}

}  // namespace wick::cli

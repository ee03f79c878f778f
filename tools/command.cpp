#include "tools/command.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <thread>

#include "core/budget.h"
#include "core/tensor.h"
#include "extensions/plugin.h"
#include "runtime/interpreter/slow_paths.h"
#include "serialization/file_kind.h"
#include "tools/options.h"
#include "tools/terminal.h"

namespace wick::cli {
namespace {

// A program that asks for more memory than the process can have gets an error before the system
// ends the process: the machine's memory, or half of the address space where that is limited (the
// other half is for code, stacks and files).
size_t memoryOfProcess() {
  size_t bytes = SIZE_MAX;
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_size = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_size > 0) {
    bytes = static_cast<size_t>(pages) * static_cast<size_t>(page_size);
  }
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    bytes = std::min<size_t>(bytes, space.rlim_cur / 2);
  }
  return bytes;
}

// Ends the process when the command goes on long after its time is over: within a call of a library
// that cannot be interrupted. The file that it was writing stays as it was.
class Watchdog {
 public:
  explicit Watchdog(double seconds) {
    if (seconds <= 0) return;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(seconds + kGrace));
    thread_ = std::thread([this, end] {
      std::unique_lock lock(mutex_);
      if (ended_.wait_until(lock, end, [this] { return done_; })) return;
      constexpr char kMessage[] =
          "the run exceeded its time limit, within an operator that cannot be interrupted\n";
      if (write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1) < 0) {
      }
      _exit(kRefused);
    });
  }
  ~Watchdog() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard lock(mutex_);
      done_ = true;
    }
    ended_.notify_one();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static constexpr double kGrace = 1;  // seconds
  std::mutex mutex_;
  std::condition_variable ended_;
  bool done_ = false;
  std::thread thread_;
};

void runWithinLimits(const Options& options) {
  size_t memory = memoryOfProcess();
  if (options.memory_limit != 0) memory = std::min<size_t>(memory, options.memory_limit);
  setAllocationLimit(memory);
  Budget::Bounds bounds;
  if (options.time_limit > 0) {
    bounds.deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(options.time_limit));
  }
  bounds.memory = options.memory_limit;
  Budget budget(std::move(bounds));
  const Watchdog watchdog(options.time_limit);
  const BudgetScope scope(budget.bounded() ? &budget : nullptr);
  for (const std::string& plugin : options.plugins) loadPlugin(plugin);
  options.verb(options);
}

int complain(const char* message, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s\n", paintError(stderr, message).c_str());
  return code;
}

}  // namespace

int runCommand(int argc, const char* const* argv) {
  [[maybe_unused]] static const PrintHandler as_usual =
      setPrintHandler([](const std::string& line) {
        const std::string shown = shownOn(stdout, line);
        std::fwrite(shown.data(), 1, shown.size(), stdout);
        std::fflush(stdout);
      });
  try {
    runWithinLimits(parseOptions(argc, argv));
    return kDone;
  } catch (const HelpRequested& help) {
    std::fputs(help.text.c_str(), stdout);
    return std::fflush(stdout) == 0 ? kDone : kRefused;
  } catch (const CommandLineError& e) {
    return complain(e.what(), kWrongUsage);
  } catch (const std::bad_alloc&) {
    return complain("out of memory", kRefused);
  } catch (const std::exception& e) {
    return complain(messageFor(e, Interface::CommandLine).c_str(), kRefused);
  } catch (...) {
    return complain("an error of unknown kind", kRefused);
  }
}

}  // namespace wick::cli

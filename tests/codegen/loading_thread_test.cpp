// The thread that loaded the library ends, and the process goes on: what was submitted before and
// afterwards is still compiled. Without a test framework, whose frames may not be unwound like
// that.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/compile_queue.h"
#include "runtime/jit_mode.h"

namespace {

// The initial thread is the loading one of a program; after pthread_exit it is a zombie.
bool initialThreadEnded() {
  std::string stat;
  std::getline(std::ifstream("/proc/self/stat"), stat);
  return stat.find(") Z ") != std::string::npos;
}

[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  _exit(1);
}

template <class F>
bool becomes(F holds) {
  for (int i = 0; i < 2000 && !holds(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return holds();
}

// Static, for the stack of main goes.
std::atomic<int> jobs{0};

void work() {
  if (!becomes(initialThreadEnded)) fail("the initial thread did not end");
  wick::submitCompile([] { ++jobs; });
  if (!becomes([] { return jobs == 3; })) fail("what was submitted is not compiled");
  for (int i = 4; i < 6; ++i) {
    wick::submitCompile([] { ++jobs; }, wick::CompileStart::Later);
    if (!becomes([&] { return jobs == i; })) fail("nothing is compiled any more");
  }
  wick::submitCompile([] { ++jobs; }, wick::CompileStart::Later);
  wick::waitForCompiles();
  if (jobs != 6) fail("nobody waits for what is compiled");
  _exit(0);
}

}  // namespace

int main() {
  wick::setJitMode(wick::JitMode::Background);
  wick::submitCompile([] { ++jobs; });
  wick::waitForCompiles();
  std::thread(work).detach();
  // Still waits when this thread ends.
  wick::submitCompile([] { ++jobs; }, wick::CompileStart::Later);
  pthread_exit(nullptr);
}

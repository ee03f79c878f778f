// Bounds what a program may use, for programs that come from anyone.
#include <wick/wick.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>

int main() {
  const auto program = wick::compile(R"(
def forever() -> int:
    n = 0
    while True:
        n += 1
    return n

def hoard() -> int:
    hoard: List[Tensor] = []
    while True:
        hoard.append(torch.zeros(1000))
    return len(hoard)
)");
  const auto attempt = [&](const char* function, const wick::RunOptions& options) {
    try {
      program.call(function, {}, {}, options);
    } catch (const wick::RuntimeError& error) {
      std::printf("%s: %s\n", function, error.className().c_str());
    }
  };

  wick::RunOptions time;
  time.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  attempt("forever", time);

  wick::RunOptions memory;
  memory.max_memory = size_t{16} << 20;
  attempt("hoard", memory);

  auto stop = std::make_shared<std::atomic<bool>>(false);
  wick::RunOptions interrupted;
  interrupted.interrupt = stop;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    *stop = true;
  });
  attempt("forever", interrupted);
  other.join();
}
// Prints:
// forever: TimeoutError
// hoard: MemoryError
// forever: KeyboardInterrupt

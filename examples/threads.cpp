// Serves one model from several threads: threads MODEL.
#include <wick/wick.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const auto model = wick::load(argc > 1 ? argv[1] : "digits.pt").eval();
  wick::setNumThreads(1);  // the calls are what runs at the same time
  std::atomic<int> answers = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const wick::GradModeGuard no_gradients(false);  // a setting of each thread
      const auto x = wick::Tensor::zeros({1, 1, 28, 28}, wick::DType::Float);
      for (int call = 0; call < 25; ++call) answers += model({x}).tensor().numel() == 10;
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d answers\n", answers.load());
}
// Prints:
// 100 answers

#include "core/stripes.h"

#include <algorithm>
#include <mutex>

namespace wick {

namespace {

// How many threads have each number.
struct Claims {
  std::mutex mutex;
  std::array<uint32_t, kStripes> threads{};
};

// Never destroyed: threads may end after static objects.
Claims& claims() {
  static Claims* instance = new Claims;
  return *instance;
}

// A thread that goes on after this, while its other objects are destroyed, keeps the number, which
// another thread may have by then.
struct AtThreadEnd {
  ~AtThreadEnd() {
    std::lock_guard lock(claims().mutex);
    --claims().threads[detail::thread_stripe];
  }
};

}  // namespace

uint32_t detail::claimStripe() {
  {
    std::lock_guard lock(claims().mutex);
    auto& threads = claims().threads;
    const auto least = std::min_element(threads.begin(), threads.end());
    ++*least;
    thread_stripe = static_cast<uint32_t>(least - threads.begin());
  }
  thread_local AtThreadEnd at_end;
  // Its construction is what counts.
  (void)&at_end;
  return thread_stripe;
}

uint32_t detail::threadStripeFromOutside() {
  return threadStripe();
}

}  // namespace wick

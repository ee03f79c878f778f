#include "capture/bytecode/thread_end.h"

#include <unistd.h>

namespace wick::capture {

void stopThread() {
  for (;;) pause();
}

}  // namespace wick::capture

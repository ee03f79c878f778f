#include "distributed/init.h"

#include <cstdlib>

#include "distributed/mpi.h"
#include "distributed/tcp.h"

namespace wick::distributed {

std::shared_ptr<Group> init() {
  if (std::shared_ptr<Group> there = currentGroup()) return there;
  if (!std::getenv("OMPI_COMM_WORLD_SIZE")) {
    if (const auto place = tcpPlaceOfEnvironment()) return initTcp(*place);
  }
  return initMpi();
}

void shutdown() {
  setCurrentGroup(nullptr);
}

}  // namespace wick::distributed

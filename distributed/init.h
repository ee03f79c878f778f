// How a process comes into its group, and leaves it.
#pragma once

#include <memory>

#include "distributed/group.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// Makes the processes that belong together the current group: those that mpirun started (mpi.h), else
// those that RANK and WORLD_SIZE in the environment tell of (tcp.h), else this one alone, with MPI.
// Throws what these throw. Where there is a group it is that one.
std::shared_ptr<Group> init();
// Ends the current group, when all processes have come here.
void shutdown();

}  // namespace wick::distributed

#pragma GCC visibility pop

// Processes that mpirun started.
#pragma once

#include <memory>

#include "distributed/group.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// Makes the processes of MPI's world the current group: those that `mpirun -n N` started, or this
// one alone. Open MPI is opened when this is called; nothing else needs it. RuntimeError when it is not
// there, is another MPI, or cannot begin. A process can do this once; later calls change nothing. The
// group ends at shutdown() (init.h), or with the process.
std::shared_ptr<Group> initMpi();
}  // namespace wick::distributed

#pragma GCC visibility pop

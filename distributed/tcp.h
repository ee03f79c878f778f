// Processes that find each other by an address, without MPI.
#pragma once

#include <chrono>
#include <memory>

#include "distributed/group.h"
#include "distributed/messages/sockets.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// Waits for all processes, at most as long as told. All of them speak with process 0, which reduces: it
// is there to begin with, and for few numbers. RuntimeError when a process does not come or goes away,
// and when processes ask for different things. What comes from the network is checked, but not
// encrypted: the address belongs to a network that is trusted.
std::unique_ptr<Transport> openTcp(const TcpPlace& place, std::chrono::seconds patience);

// Makes these processes the current group.
std::shared_ptr<Group> initTcp(const TcpPlace& place,
                               std::chrono::seconds patience = std::chrono::seconds(300));

}  // namespace wick::distributed

#pragma GCC visibility pop

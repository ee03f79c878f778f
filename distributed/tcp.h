// Processes that find each other by an address, without MPI.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "distributed/group.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// One process among `size`. Process 0 listens at the address, where the others find it.
struct TcpPlace {
  int rank = 0;
  int size = 1;
  std::string address = "127.0.0.1";
  uint16_t port = 29500;
};
// What the environment variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say, as torchrun sets
// them; nothing without the first two. RuntimeError for values that cannot be.
std::optional<TcpPlace> tcpPlaceOfEnvironment();

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

// Forks whose work a device does beside that of their caller.
//
// The calling thread itself queues what is forked, at once, so that results do not depend on threads and a
// call with forks can be repeated as a graph; the device is free to do it at the same time as what the
// caller queues behind it, until it waits for the future.
#pragma once

#include <memory>
#include <vector>

#include "core/ivalue.h"
#include "runtime/fusion/group_backend.h"

namespace wick {

class Code;
struct ForkSite;

// Where the work of a fork with these arguments may be done beside other work: the device that has one;
// null where there is none or it must not.
GroupBackend* besideOf(const Code& code, ForkSite& site, std::span<const IValue> arguments,
                       Device& device);

// Those of a run that nobody has waited for. Only for one thread.
class SideForks {
 public:
  SideForks() = default;
  SideForks(const SideForks&) = delete;
  SideForks& operator=(const SideForks&) = delete;
  // Keeps what was given to the fork until it is joined.
  void add(FutureRef future, std::unique_ptr<GroupBackend::SideWork> work,
           std::vector<IValue> arguments);
  // Before the future's value is used.
  void join(const FutureObject& future);
  // What goes wrong with a device is told by the next that waits for it.
  void joinAll() noexcept;

 private:
  struct Open {
    FutureRef future;
    std::vector<IValue> arguments;
    std::unique_ptr<GroupBackend::SideWork> work;  // destroyed first, which joins it
  };
  std::vector<Open> open_;
};

}  // namespace wick

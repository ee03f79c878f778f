// GroupBackend: what runs kernels of the loop IR on a type of device other than the CPU, and repeats
// whole calls there.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "codegen/loop/kernel.h"
#include "core/device.h"
#include "core/ivalue.h"
#include "runtime/fusion/walk.h"

namespace wick {

// Thread-safe.
class GroupBackend {
 public:
  virtual ~GroupBackend() = default;
  // What is kept of one kernel between its launches.
  class Code {
   public:
    virtual ~Code() = default;
  };
  // `name` is for messages and profiles. The kernel lives as long as the code.
  virtual std::unique_ptr<Code> prepare(const std::string& name, const loop::Kernel& kernel) = 0;
  // One kernel with its walk over the device's memory; `numbers` are their bits.
  struct Launch {
    Code* code;
    const Walk* walk;
    std::span<const Touch> touches;
    std::span<const int64_t> numbers;
  };
  // Queues the kernels one behind the other. Throws loop::Unsupported, having queued nothing, when
  // one of them cannot be compiled.
  virtual void launch(Device device, std::span<const Launch> launches) = 0;
  // Whether kernels that the calling thread queues run behind all that reads memory which nobody holds
  // any more, so that they may write over it.
  virtual bool writesOver(Device) { return false; }

  // A call of a function on the calling thread that nobody observes, limits or differentiates from
  // outside.
  struct Call {
    std::shared_ptr<const void> code;  // tells functions apart, while it lives
    std::span<const IValue> arguments;
    // Whether a call does nothing but compute results from its arguments, constants and `state`, and
    // write to elements of the latter; gives the constants then. Takes long; asked once for each code.
    std::function<std::optional<std::vector<Tensor>>()> constants;
    std::function<IValue(std::vector<IValue> arguments)> run;  // may be called several times
    // Adds what the call reads and may write besides its arguments: tensors, numbers and texts. A call
    // with other numbers and texts, or with tensors that lie elsewhere, is another one. Writes to
    // elements of these tensors are repeated. False where calls cannot be told apart. May be null.
    std::function<bool(std::vector<IValue>& state)> state = nullptr;
    // Results may be the device's own memory until the next call of the code writes it again, and may
    // share memory with each other.
    bool lends = false;
    std::string* why_not = nullptr;  // gets the reason where nothing is repeated
  };
  // The result of a call that the device repeats as one piece of work, as it did for equal arguments
  // before; nothing where the caller is to run it.
  virtual std::optional<IValue> repeat(const Call&) { return std::nullopt; }
  // While the result lives, what the calling thread does is no part of a call that is to be repeated: for
  // what outlives the call.
  virtual std::shared_ptr<const void> outsideRepeats() { return nullptr; }

  // Work that is done beside other work of the calling thread: what this queues up to leave(), while it
  // may queue more behind that. All of it happens on one thread; what is given to the work must not
  // be written, and not be freed before it is joined.
  class SideWork {
   public:
    // Leaves and joins, if that did not happen. Does not throw.
    virtual ~SideWork() = default;
    // The thread goes on with what it did before. Once.
    virtual void leave() = 0;
    // What the thread queues from now on waits for the work.
    virtual void join() = 0;
  };
  // Begins some. Null where the device does one thing after the other, and within side work.
  virtual std::unique_ptr<SideWork> beginBeside(Device) { return nullptr; }
  // Whether the calling thread is within side work, or in a call that is noted to be repeated: what it
  // would give to other threads it must do itself.
  virtual bool mustStayOnThread() { return false; }
};

// While one lives on the calling thread, groups on other devices than the CPU write over arguments that
// nobody asks for again, where the device can (GroupBackend::writesOver); on the CPU they always do.
class WriteOverScope {
 public:
  WriteOverScope();
  ~WriteOverScope();
  WriteOverScope(const WriteOverScope&) = delete;
  WriteOverScope& operator=(const WriteOverScope&) = delete;
  static bool isOpen();

 private:
  const bool before_;
};

// Null when the engine was built without it.
GroupBackend* groupBackend(DeviceType type);
// Whether it must for one of them (GroupBackend::mustStayOnThread).
bool mustStayOnThread();
// Set once, before anything runs.
void setGroupBackend(DeviceType type, GroupBackend* backend);

}  // namespace wick

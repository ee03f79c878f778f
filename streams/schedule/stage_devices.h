// What stages need of the devices that they compute on. The devices of a type are behind one interface
// (streams/cuda/), so that nothing here knows of them.
#pragma once

#include <functional>
#include <memory>

#include "core/device.h"
#include "streams/schedule/stage_code.h"

namespace wick::streams {

// Thread-safe, but for what is said of places.
class StageDevices {
 public:
  virtual ~StageDevices() = default;

  // A copy of a stage on its device. Work that one thread queues there is done in order.
  class Place {
   public:
    virtual ~Place() = default;
    virtual Device device() const = 0;
  };
  // A point in the work of a place.
  class Mark {
   public:
    virtual ~Mark() = default;
  };

  virtual int count() = 0;
  // Throws RuntimeError when there is no such device.
  virtual std::shared_ptr<Place> open(Device device) = 0;
  // The calling thread computes there from now on; a place has one such thread.
  virtual void enter(Place& place) = 0;
  // By the place's thread: what it queued up to now.
  virtual std::shared_ptr<Mark> mark(Place& place) = 0;
  // By the thread of `to`: replaces tensors on other devices by copies on this one, in the tuples and
  // lists of the packet too. They are copied behind `ready`, a mark of `from`, beside what `to` computes;
  // what it queues from now on waits for them. Both are null for a packet from the CPU. Nothing waits for
  // a device, but for tensors that come from the CPU.
  virtual void bring(Place& to, Packet& packet, Place* from, const Mark* ready) = 0;
  // By any one thread: waits for the mark, and brings the packet to the CPU.
  virtual void bringToCpu(Packet& packet, Place& from, const Mark& ready) = 0;
  // Of two marks of a place that have been waited for, or whose packet has been brought on.
  virtual double milliseconds(const Mark& begin, const Mark& end) = 0;
  // Waits for all that was queued on the device.
  virtual void synchronize(Device device) = 0;
};

// Calls `moved` for each tensor of the values, in tuples and lists too; it gives what takes the place.
// Named tuples become plain ones unless `keeps_names`. RuntimeError for values that nest too deeply.
void replaceTensors(Packet& packet, const std::function<Tensor(const Tensor&)>& moved,
                    bool keeps_names = true);

}  // namespace wick::streams

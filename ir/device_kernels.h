// Kernels of operators for tensors that are not on the CPU, beside the records whose kernels are for
// those on it.
//
// For a call whose tensors are on such a device, the first of these is taken:
// - the kernel that a table for the device names. One that is named after a record also serves the
//   in-place and out= forms that are derived from it.
// - the record's own kernel, where it does not look at elements: it makes a view, it works on tensors
//   of every kind (kAnyKind), or it goes through what works everywhere (kNeutral).
// - the device's general kernel, for operators that have a loop form.
// What is left is an error that names the operator and the device. Nothing falls back to the CPU,
// unless setDeviceFallback() asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/device.h"
#include "core/error_types.h"
#include "ir/operator.h"

namespace wick {

struct DeviceKernel {
  const char* op;  // with its overload: "aten::add.Tensor"
  Kernel kernel;
};

// What a table says of its operators. OneDevice: all tensors of a call must be on one. Mixed: they may
// be on several. Last: as OneDevice, and only where the device's general kernel, which is faster,
// cannot do it.
enum class TableRule : uint8_t { OneDevice, Mixed, Last };

// Static objects that add a table when the program starts. Tables live as long as the process.
struct RegisterDeviceKernels {
  RegisterDeviceKernels(DeviceType type, std::span<const DeviceKernel> kernels,
                        TableRule how = TableRule::OneDevice);
};

// Whether the operator's own kernel may be called with tensors of any device.
bool isDeviceNeutral(const Operator& op);
// The kernel that a table has for the operator, or for the record that it is derived from; null when
// there is none.
Kernel findDeviceKernel(const Operator& op, DeviceType type);

// Computes any operator that it can on a device. False when it cannot: then nothing happened. An
// in-place form comes twice: as it is, to be written where its first argument lies (which is the
// result), then as the operator that it is derived from. Of out= forms there is only the latter.
using GeneralKernel = bool (*)(CallFrame& frame, Device device);
// Set once for each type, before main().
void setGeneralKernel(DeviceType type, GeneralKernel kernel);

// Does all calls with tensors on a type of device instead of the tables. Null takes it away.
using DeviceRecorder = void (*)(CallFrame& frame);
void setDeviceRecorder(DeviceType type, DeviceRecorder recorder);
DeviceRecorder deviceRecorder(DeviceType type);
// Whether the operator's own kernel copes with tensors of several devices in one call.
bool joinsDevices(const Operator& op);
// Returns which tensors may lie elsewhere in calls with tensors on a device of the type: none; those of no dimensions on the
// CPU that are not written to; all that the operator finds a meaning for.
enum class ForeignTensors : uint8_t { None, Numbers, All };
ForeignTensors foreignTensors(const Operator& op, DeviceType type);

// The type of device that the call's tensors are on, also those in lists: the CPU when it has none,
// or when all are there; otherwise another one.
DeviceType deviceOfArguments(const Operator& op, const IValue* args, size_t num_args);

// Raised by a table's kernel (TableRule::Last) for arguments that it does not cover either.
class NotOnDevice : public RuntimeError {
 public:
  NotOnDevice() : RuntimeError("not available on the device") {}
};

// Does a call that the device "meta" has no kernel for. False when it cannot.
using AbsentKernel = bool (*)(CallFrame& frame);
// Sets it for the calling thread, and returns the one before; null takes it away.
AbsentKernel exchangeAbsentKernel(AbsentKernel kernel);

// Calls an operator that has tensors on other devices than the CPU; what Operator::callKernel()
// does. Throws RuntimeError when tensors lie on different devices, except for tensors of no
// dimensions on the CPU, which join others where numbers do.
void callOnDevice(DeviceType type, CallFrame frame);

// Writes what the kernel of an in-place or out= form gave to its destination, where it is not the
// destination itself.
void finishDerived(const Operator& op, const Tensor& destination, IValue& result);

// Whether operators without a kernel for a device are computed on the CPU, over copies. Off at
// first. What was copied so is counted by operator.
void setDeviceFallback(bool on);
bool deviceFallback();
struct FallbackCount {
  std::string op;
  uint64_t calls;
};
// Sorted by name.
std::vector<FallbackCount> deviceFallbacks();

// Returns all names in tables for the device, sorted, for tests.
std::vector<std::string> namesWithDeviceKernels(DeviceType type);

}  // namespace wick

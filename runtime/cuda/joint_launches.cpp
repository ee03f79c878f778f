#include "runtime/cuda/joint_launches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/log.h"
#include "runtime/cuda/captured_pieces.h"

namespace wick::cuda {

namespace {

// Fewer are not worth a form of their own.
constexpr size_t kLeast = 4;
constexpr size_t kMostWaiting = 512;
constexpr size_t kMostKept = size_t{64} << 20;  // bytes
// Blocks of a kernel that fills a good part of the device by itself.
constexpr unsigned kLarge = 512;

thread_local JointLaunches* joint = nullptr;

void launchAlone(LoopKernel::Ready& ready, const LoopKernel& kernel) {
  const CapturedPiece piece(ready.reads, ready.writes, /*may_branch=*/false);
  launch(ready.function, ready.grid, ready.block, ready.words.data(), kernel.name().c_str(),
         piece.stream());
}

}  // namespace

JointLaunches::JointLaunches() {
  WICK_ASSERT(!joint, "launches are joined already");
  joint = this;
}
JointLaunches::~JointLaunches() {
  joint = nullptr;
  freeKept();
}
JointLaunches* JointLaunches::current() {
  return joint;
}

bool JointLaunches::mustFollow(const Group& group, const LoopKernel::Ready& later) {
  return std::ranges::any_of(group.members, [&](const Waiting& earlier) {
    return overlap(earlier.ready.writes, later.reads) ||
           overlap(earlier.ready.writes, later.writes) ||
           overlap(earlier.ready.reads, later.writes);
  });
}

void JointLaunches::add(const LoopKernel& kernel, LoopKernel::Ready ready) {
  const bool large = ready.grid > kLarge;
  auto group = groups_.rbegin();
  for (; group != groups_.rend(); ++group) {
    if (mustFollow(*group, ready)) {
      group = groups_.rend();
      break;
    }
    const LoopKernel::Ready& first = group->members[0].ready;
    if (!large && !group->large && first.function == ready.function) break;
  }
  if (group == groups_.rend()) {
    groups_.push_back({large, {}});
    group = groups_.rbegin();
  }
  group->members.push_back({&kernel, std::move(ready)});
  if (++waiting_ >= kMostWaiting) flush();
}

void JointLaunches::flush() {
  if (groups_.empty()) return;
  // Launching asks for the stream, which comes here again.
  std::vector<Group> groups = std::exchange(groups_, {});
  waiting_ = 0;
  for (Group& group : groups) launchGroup(group);
  freeKept();
}

bool JointLaunches::keep(Device device, void* memory, size_t bytes) {
  if (groups_.empty()) return false;
  if (kept_bytes_ > kMostKept) {
    flush();
    return false;
  }
  kept_.push_back({device, memory, bytes});
  kept_bytes_ += bytes;
  return true;
}

void JointLaunches::freeKept() noexcept {
  kept_bytes_ = 0;
  for (const Kept& k : std::exchange(kept_, {})) {
    findDeviceBackend(k.device.type)->free(k.device, k.memory, k.bytes);
  }
}

void JointLaunches::launchGroup(Group& group) {
  const LoopKernel& kernel = *group.members[0].kernel;
  const codegen::CudaWords words(kernel.kernel(), group.members[0].ready.layout);
  const size_t together = codegen::cudaCallsTogether(words);
  for (size_t begin = 0; begin < group.members.size(); begin += together) {
    const size_t n = std::min(together, group.members.size() - begin);
    std::vector<Waiting> members(std::make_move_iterator(group.members.begin() + begin),
                                 std::make_move_iterator(group.members.begin() + begin + n));
    if (n >= kLeast && launchTogether(members)) continue;
    for (Waiting& w : members) launchAlone(w.ready, *w.kernel);
  }
}

// False when the joint form is not there.
bool JointLaunches::launchTogether(std::vector<Waiting>& members) {
  const LoopKernel& kernel = *members[0].kernel;
  const LoopKernel::Ready& first = members[0].ready;
  const codegen::CudaWords words(kernel.kernel(), first.layout);
  const std::string name = kernel.name() + "_joint";
  CudaDevice& device = deviceAt(currentDevice());
  std::string text = codegen::cudaJointKernelText(name, kernel.kernel(), first.layout);
  const Function function = knownFunction(device, text, name);
  if (!function) {
    const auto known = [&](const Missing& m) { return m.text == text; };
    if (std::ranges::none_of(missing_, known)) missing_.push_back({name, std::move(text)});
    return false;
  }
  const size_t together = codegen::cudaCallsTogether(words);
  std::vector<int64_t> parameter(together * words.count + (together + 1) / 2);
  std::vector<uint32_t> ends(together);
  unsigned blocks = 0;
  for (size_t i = 0; i < together; ++i) {
    if (i < members.size()) {
      std::ranges::copy(members[i].ready.words, parameter.begin() + i * words.count);
      blocks += members[i].ready.grid;
    }
    ends[i] = blocks;
  }
  std::memcpy(parameter.data() + together * words.count, ends.data(), together * sizeof ends[0]);
  launch(function, blocks, first.block, parameter.data(), kernel.name().c_str());
  return true;
}

bool JointLaunches::compileMissing(CudaDevice& device) {
  bool any = false;
  for (const Missing& m : std::exchange(missing_, {})) {
    try {
      functionOf(device, m.text, m.name);
      any = true;
    } catch (const RuntimeError& e) {
      GRAPH_DEBUG("{}: {}", m.name, e.brief());
    }
  }
  return any;
}

}  // namespace wick::cuda

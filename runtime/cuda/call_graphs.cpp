#include "runtime/cuda/call_graphs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/log.h"
#include "core/product_precision.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/joint_launches.h"
#include "runtime/cuda/side_work.h"
#include "runtime/fusion/elements.h"
#include "runtime/fusion/switches.h"

namespace wick::cuda {

namespace {

// Calls with equal arguments before the one that is captured.
constexpr int kWarmUp = 2;
// Attempts that failed for something that may pass, as compiling does.
constexpr int kMostAttempts = 3;
constexpr int kMostUnknown = 64;
// Sets of arguments of one function that are kept.
constexpr size_t kMostEntries = 8;
constexpr size_t kMostPrograms = 256;
// Fewer launches cost no more than copying results does.
constexpr size_t kLeastNodes = 3;
// Bytes of results that are copied, and of arguments.
constexpr int64_t kMostCopied = int64_t{16} << 20;
constexpr int64_t kMostGiven = int64_t{64} << 20;

bool isOn() {
  static const bool on = isSwitchedOn("WICK_CUDA_GRAPHS", true);
  return on;
}

// What two calls must share to queue the same work; where their tensors lie may differ.
using Key = std::vector<int64_t>;

struct Inputs {
  Key key;
  std::vector<const void*> places;  // of tensors, in order
  int64_t bytes = 0;
  bool are_dense = true;
  int device = -1;
  std::vector<IValue> state;  // what the call reads and writes besides
  size_t state_begins = 0;    // in the key
};

void addLayout(const Tensor& t, Key& key) {
  key.push_back(static_cast<int64_t>(t.dtype()));
  key.push_back(t.dim());
  key.insert(key.end(), t.sizes().begin(), t.sizes().end());
  key.insert(key.end(), t.strides().begin(), t.strides().end());
}

// False where a call with such arguments is not repeated.
bool describe(std::span<const IValue> arguments, Inputs& inputs) {
  Key& key = inputs.key;
  for (const IValue& v : arguments) {
    key.push_back(static_cast<int64_t>(v.tag()));
    if (v.isTensor()) {
      const Tensor t = v.toTensor();
      if (!t.defined() || t.kind() != TensorKind::Dense || t.impl()->is_conj ||
          t.device().type != DeviceType::CUDA ||
          (inputs.device >= 0 && t.device().index != inputs.device)) {
        return false;
      }
      inputs.device = t.device().index;
      addLayout(t, key);
      inputs.places.push_back(t.rawData());
      inputs.bytes += t.numel() * static_cast<int64_t>(t.itemSize());
      inputs.are_dense &= t.isNonOverlappingAndDense();
    } else if (v.isInt()) {
      key.push_back(v.toInt());
    } else if (v.isDouble()) {
      key.push_back(std::bit_cast<int64_t>(v.toDouble()));
    } else if (v.isBool()) {
      key.push_back(v.toBool());
    } else if (!v.isNone()) {
      return false;
    }
  }
  if (inputs.device < 0 || inputs.device != currentDevice()) return false;
  key.push_back(static_cast<int64_t>(defaultDType()));
  key.push_back(static_cast<int64_t>(allowedTf32()));
  key.push_back(reinterpret_cast<int64_t>(currentStream(inputs.device)));
  key.push_back(static_cast<int64_t>(driverGeneration()));
  return true;
}

// Adds what two calls must share of what they find besides their arguments, with where
// tensors lie: a graph reads and writes them there. False where such a call is not repeated.
bool describeState(const std::vector<IValue>& state, int device, Key& key) {
  for (const IValue& v : state) {
    if (v.isTensor()) {
      const Tensor t = v.toTensor();
      if (t.device() != deviceOf(device)) return false;
      key.push_back(reinterpret_cast<int64_t>(t.rawData()));
      key.push_back(t.requiresGrad());
      addLayout(t, key);
    } else if (v.isDouble()) {
      key.push_back(std::bit_cast<int64_t>(v.toDouble()));
    } else if (v.isString()) {
      const std::string_view text = v.toString();
      key.push_back(static_cast<int64_t>(text.size()));
      for (const char c : text) key.push_back(c);
    } else {
      key.push_back(v.isBool() ? static_cast<int64_t>(v.toBool()) : v.toInt());
    }
  }
  return true;
}

// A copy of the argument would not see what is written to the other.
bool shareMemory(std::span<const IValue> arguments, std::span<const IValue> state) {
  return std::ranges::any_of(arguments, [&](const IValue& a) {
    return a.isTensor() && std::ranges::any_of(state, [&](const IValue& s) {
             return s.isTensor() && s.toTensor().storage() == a.toTensor().storage();
           });
  });
}

std::vector<uint32_t> versionsOf(std::span<const IValue> values) {
  std::vector<uint32_t> versions;
  for (const IValue& v : values) {
    versions.push_back(v.isTensor() ? v.toTensor().storage()->version() : 0);
  }
  return versions;
}

template <class F>
bool allTensors(const IValue& value, F&& f) {
  return allElements(value, [&](const IValue& v) {
    return v.isTensor() ? f(v.toTensor()) : v.isNone() || v.isInt() || v.isDouble() || v.isBool();
  });
}

// The result of a call: what the graph has written into `held`, in memory of the caller's.
IValue copied(const IValue& held) {
  if (held.isTensor()) return IValue(held.toTensor().clone(MemoryFormat::Preserve));
  if (held.isTuple()) {
    std::vector<IValue> elements;
    for (const IValue& e : held.elements()) elements.push_back(copied(e));
    return IValue(makeTuple(std::move(elements), held.toTuple().named));
  }
  if (held.isList()) {
    ListRef list = makeList(held.toList().element_type);
    for (const IValue& e : held.elements()) list->elements.push_back(copied(e));
    return IValue(std::move(list));
  }
  return held;
}

struct Entry {
  Key key;
  int calls = 0;
  int attempts = 0;
  bool unfit = false;
  std::string why;  // it was not repeated
  uint64_t used = 0;

  GraphExecutable executable = nullptr;
  std::vector<const void*> places;  // where the graph reads arguments
  std::vector<Tensor> copies;       // its own, when it has any
  struct Constant {
    Tensor tensor;
    const void* place;
    uint32_t version;
  };
  std::vector<Constant> constants;  // of the program
  std::vector<Tensor> from_cpu;     // of the work: what it copied from the CPU
  IValue result;                    // in the graph's memory
  std::vector<size_t> written;      // tensors of the state, by position

  ~Entry() { release(); }
  Entry() = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  void release() {
    if (!executable) return;
    // It may still run.
    driver().synchronizeContext();
    driver().destroyGraphExecutable(executable);
    executable = nullptr;
    copies.clear();
    from_cpu.clear();
    result = IValue();
  }
  // The graph reads the elements of those of its device each time, those of others never again.
  bool constantsStay() const {
    return std::ranges::all_of(constants, [](const Constant& c) {
      return c.tensor.rawData() == c.place &&
             (c.tensor.device().isCuda() || c.tensor.storage()->version() == c.version);
    });
  }
};

struct Program {
  std::weak_ptr<const void> code;
  bool unfit = false;
  int unknown = 0;  // calls whose state could not be described
  std::vector<Tensor> constants;
  std::vector<std::unique_ptr<Entry>> entries;
};

std::nullopt_t refused(const GroupBackend::Call& call, std::string_view why) {
  if (call.why_not) *call.why_not = why;
  return std::nullopt;
}

// Whether the calling thread is within CallGraphs::run().
thread_local bool inside = false;

// Those of one device.
class CallGraphs {
 public:
  std::optional<IValue> run(const GroupBackend::Call& call, Inputs& inputs) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return refused(call, "another thread captures one");
    struct Inside {
      Inside() { inside = true; }
      ~Inside() { inside = false; }
    } const now;
    CudaDevice& device = enter(deviceOf(inputs.device));
    Program* program = find(call);
    if (!program) return refused(call, "it does more than compute results");
    if (call.state) {
      inputs.state_begins = inputs.key.size();
      if (!call.state(inputs.state) || !describeState(inputs.state, inputs.device, inputs.key)) {
        // Looking takes time, for nothing where there is too much of it.
        program->unfit = ++program->unknown >= kMostUnknown;
        return refused(call, "what it finds besides its arguments cannot be told apart");
      }
      if (shareMemory(call.arguments, inputs.state)) {
        return refused(call, "an argument shares memory with what it finds besides");
      }
    }
    Entry& entry = entryFor(*program, inputs.key);
    if (entry.unfit) return refused(call, entry.why);
    if (++entry.calls <= kWarmUp) return refused(call, "too few had the same sizes");
    if (entry.executable && !entry.constantsStay()) entry.release();
    const bool reads_there = entry.places == inputs.places;
    if (!entry.executable || (!reads_there && entry.copies.empty())) {
      const bool copies = entry.executable != nullptr;
      entry.release();
      if (!capture(call, device, *program, inputs, copies, entry)) return refused(call, entry.why);
    }
    launch(call, entry);
    for (const size_t i : entry.written) inputs.state[i].toTensor().storage()->bumpVersion();
    return call.lends ? entry.result : copied(entry.result);
  }

  bool drop(CudaDevice& device) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return false;
    bool any = false;
    for (auto& [id, program] : programs_) {
      for (const auto& entry : program.entries) any |= entry->executable != nullptr;
    }
    programs_.clear();
    if (any) {
      for (const auto& [caller, stream] : streams_) {
        device.allocator().unpin(stream);
        unpinBeside(device, stream);
      }
    }
    return any;
  }

  void addTo(CallGraphStatistics& all) {
    std::lock_guard lock(mutex_);
    all.captured += statistics_.captured;
    all.launched += statistics_.launched;
    all.refused += statistics_.refused;
  }

 private:
  // Null where calls of the function are not repeated.
  Program* find(const GroupBackend::Call& call) {
    auto it = programs_.find(call.code.get());
    if (it != programs_.end() && it->second.code.expired()) {
      programs_.erase(it);
      it = programs_.end();
    }
    if (it == programs_.end()) {
      if (programs_.size() >= kMostPrograms) {
        std::erase_if(programs_, [](const auto& p) { return p.second.code.expired(); });
        if (programs_.size() >= kMostPrograms) programs_.clear();
      }
      Program program;
      program.code = call.code;
      std::optional<std::vector<Tensor>> constants = call.constants();
      program.unfit = !constants;
      if (constants) program.constants = *std::move(constants);
      it = programs_.emplace(call.code.get(), std::move(program)).first;
    }
    return it->second.unfit ? nullptr : &it->second;
  }

  Entry& entryFor(Program& program, const Key& key) {
    ++clock_;
    for (const auto& entry : program.entries) {
      if (entry->key != key) continue;
      entry->used = clock_;
      return *entry;
    }
    if (program.entries.size() >= kMostEntries) {
      const auto oldest = std::ranges::min_element(
          program.entries, {}, [](const std::unique_ptr<Entry>& e) { return e->used; });
      program.entries.erase(oldest);
    }
    program.entries.push_back(std::make_unique<Entry>());
    program.entries.back()->key = key;
    program.entries.back()->used = clock_;
    return *program.entries.back();
  }

  // Where captures for a stream are made; all of them share its memory.
  Stream captureStream(CudaDevice& device) {
    Stream& stream = streams_[currentStream()];
    constexpr unsigned kNotBlocking = 1;
    if (!stream) check(driver().createStream(&stream, kNotBlocking), "making a stream");
    device.allocator().pin(stream);
    return stream;
  }

  // False where the caller is to run the call.
  bool capture(const GroupBackend::Call& call, CudaDevice& device, const Program& program,
               const Inputs& inputs, bool copies, Entry& entry) {
    if (copies && (!inputs.are_dense || (inputs.bytes > kMostGiven && !call.lends))) {
      entry.unfit = true;
      entry.why = "its arguments are large and lie elsewhere each time";
      return false;
    }
    std::vector<IValue> arguments(call.arguments.begin(), call.arguments.end());
    std::string why;
    try {
      const Stream stream = captureStream(device);
      Capture capturing(device, stream);
      JointLaunches joint;
      if (copies) {
        for (IValue& v : arguments) {
          if (!v.isTensor()) continue;
          const Tensor given = v.toTensor();
          const Tensor own =
              Tensor::emptyStrided(given.sizes(), given.strides(), given.dtype(), given.device());
          entry.copies.push_back(own);
          v = IValue(own);
        }
      }
      const std::vector<uint32_t> given = versionsOf(arguments);
      const std::vector<uint32_t> versions = versionsOf(inputs.state);
      IValue result = call.run(arguments);
      joint.flush();
      const Graph graph = capturing.end();
      entry.from_cpu = capturing.takeConstants();
      if (joint.compileMissing(device)) {
        entry.calls = 0;  // the next one finds them
        why = "kernels were compiled to be launched together";
      } else if (!graph) {
        why = "the driver could not note it";
      } else if (versionsOf(arguments) != given) {
        why = "it writes to its arguments";
      } else if (!isSameState(call, inputs)) {
        why = "it changes more than elements of what it finds";
      } else if (!isFitResult(result, call, arguments, program.constants, inputs.state)) {
        why = "its results are large or share memory";
      } else {
        size_t nodes = 0;
        check(driver().graphNodes(graph, nullptr, &nodes), "capturing a call");
        if (nodes < kLeastNodes) {
          why = "it is a launch or two";
        } else if (driver().instantiateGraph(&entry.executable, graph, 0) != 0) {
          why = "the driver cannot repeat it";
          entry.executable = nullptr;
        }
      }
      if (graph) driver().destroyGraph(graph);
      entry.result = std::move(result);
      noteWrites(inputs.state, versions, entry);
    } catch (const CaptureRefused& e) {
      why = e.what();
      entry.calls = 0;  // it may pass
    } catch (const std::exception& e) {
      // An error of the program: the caller runs it again, and raises it.
      why = e.what();
    }
    if (!entry.executable) {
      ++statistics_.refused;
      entry.unfit = entry.calls != 0 || ++entry.attempts >= kMostAttempts;
      entry.copies.clear();
      entry.from_cpu.clear();
      entry.result = IValue();
      GRAPH_DEBUG("a call is not repeated: {}", why);
      entry.why = std::move(why);
      return false;
    }
    ++statistics_.captured;
    entry.places = inputs.places;
    entry.constants.clear();
    for (const Tensor& t : program.constants) {
      entry.constants.push_back({t, t.rawData(), t.storage()->version()});
    }
    return true;
  }

  static void noteWrites(const std::vector<IValue>& state, const std::vector<uint32_t>& before,
                         Entry& entry) {
    entry.written.clear();
    for (size_t i = 0; i < state.size(); ++i) {
      if (state[i].isTensor() && state[i].toTensor().storage()->version() != before[i]) {
        entry.written.push_back(i);
      }
    }
  }
  static bool isSameState(const GroupBackend::Call& call, const Inputs& before) {
    if (!call.state) return true;
    std::vector<IValue> state;
    Key now(before.key.begin(), before.key.begin() + static_cast<int64_t>(before.state_begins));
    return call.state(state) && describeState(state, before.device, now) && now == before.key;
  }

  // Results must be memory of the graph's own, and, where they are copied, dense, apart from each
  // other and not too much of it.
  static bool isFitResult(const IValue& result, const GroupBackend::Call& call,
                          std::span<const IValue> used, std::span<const Tensor> constants,
                          std::span<const IValue> state) {
    std::vector<const Storage*> known;
    for (const auto list : {call.arguments, used, state}) {
      for (const IValue& v : list) {
        if (v.isTensor()) known.push_back(v.toTensor().storage().get());
      }
    }
    for (const Tensor& t : constants) known.push_back(t.storage().get());
    int64_t bytes = 0;
    const bool fits = allTensors(result, [&](const Tensor& t) {
      if (!t.defined() || t.kind() != TensorKind::Dense || t.impl()->is_conj || t.requiresGrad() ||
          t.device().type != DeviceType::CUDA || (!call.lends && !t.isNonOverlappingAndDense()) ||
          std::ranges::count(known, t.storage().get()) > 0) {
        return false;
      }
      if (call.lends) return true;
      known.push_back(t.storage().get());
      bytes += t.numel() * static_cast<int64_t>(t.itemSize());
      return true;
    });
    return fits && bytes <= kMostCopied;
  }

  void launch(const GroupBackend::Call& call, Entry& entry) {
    size_t next = 0;
    for (const IValue& v : call.arguments) {
      if (entry.copies.empty()) break;
      if (!v.isTensor()) continue;
      const Tensor& own = entry.copies[next++];
      const size_t bytes = static_cast<size_t>(own.numel()) * own.itemSize();
      if (bytes == 0) continue;
      check(driver().copyOnDevice(reinterpret_cast<Address>(own.rawData()),
                                  reinterpret_cast<Address>(v.toTensor().rawData()), bytes,
                                  currentStream()),
            "copying on a device");
    }
    check(driver().launchGraph(entry.executable, currentStream()), "launching a call's graph");
    noteLaunch("a call's graph");
    ++statistics_.launched;
  }

  std::mutex mutex_;
  std::unordered_map<const void*, Program> programs_;
  std::unordered_map<Stream, Stream> streams_;  // of the captures, by those of the calls
  uint64_t clock_ = 0;
  CallGraphStatistics statistics_;
};

std::array<CallGraphs, kMostDevices>& callGraphs() {
  static auto& all = *new std::array<CallGraphs, kMostDevices>;
  return all;
}

}  // namespace

std::optional<IValue> repeatCall(const GroupBackend::Call& call) {
  if (!isOn()) return refused(call, "WICK_CUDA_GRAPHS is off");
  if (inside || isCapturing()) return refused(call, "it is part of another graph");
  Inputs inputs;
  if (!describe(call.arguments, inputs)) {
    return refused(call, "its arguments are not all numbers and dense tensors of one device");
  }
  return callGraphs()[static_cast<size_t>(inputs.device)].run(call, inputs);
}

bool dropCallGraphs(CudaDevice& device) {
  return callGraphs()[static_cast<size_t>(device.index())].drop(device);
}

CallGraphStatistics callGraphStatistics() {
  CallGraphStatistics all;
  for (CallGraphs& graphs : callGraphs()) graphs.addTo(all);
  return all;
}

}  // namespace wick::cuda

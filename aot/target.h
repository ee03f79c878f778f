// What a model is compiled for, when that is not the CPU.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aot/program.h"
#include "aot/program_text.h"
#include "aot/step_text.h"
#include "runtime/kernels/device_layers.h"

namespace wick::aot {

struct File {
  std::string name, text;
};

class Target {
 public:
  virtual ~Target() = default;

  // ---- while a program is recorded ----

  // What makes steps of products, convolutions and pooling.
  virtual DeviceLayers& layers() const = 0;
  // The steps that do the same on the target; NotAhead where it has none.
  virtual std::vector<decltype(Step::what)> adapted(const std::string& name,
                                                    decltype(Step::what) what) const = 0;

  // ---- while it is written ----

  virtual std::unique_ptr<StepWriter> writer() const = 0;
  // What the source has besides programs.
  struct Parts {
    std::vector<File> files;
    std::vector<std::string> sources;  // of the files, those that are compiled
    std::string definitions;           // behind those of the programs, in the global namespace
    std::string library, program;      // members of the wick_aot_model
    std::string declarations;          // in the header, for C
    std::string functions;             // at the end of the source
    size_t kernels = 0;
  };
  virtual Parts parts(const StepWriter& writer, const std::string& model, const ProgramText& text,
                      int64_t memory_bytes) const = 0;
  // The expression that calls `function`, which computes the signature that was selected.
  virtual std::string callText(const std::string& function) const = 0;
};

// The target of programs that are recorded now; null: the CPU.
const Target* recordedTarget();
// What programs for the CPU that are recorded now may do (RecordOptions, aot/build.h).
struct CpuChoices {
  bool standalone = false, winograd = false;
};
const CpuChoices& recordedChoices();
// While it lives, programs are recorded for this target.
class RecordFor {
 public:
  RecordFor(const Target* target, CpuChoices choices);
  ~RecordFor();
  RecordFor(const RecordFor&) = delete;
  RecordFor& operator=(const RecordFor&) = delete;

 private:
  const Target* const before_;
  const CpuChoices choices_before_;
  DeviceLayers* layers_ = nullptr;  // that were used before
};

}  // namespace wick::aot

// A plan over processes: each has some of the stages, and the model.
//
// Items go from process 0, which reads them, through the others in order, and back to process 0. Who
// hands items on waits while too many of them are not yet taken.
#pragma once

#include <functional>
#include <memory>

#include "distributed/messages/messages.h"
#include "streams/schedule/run.h"

namespace wick::streams {

// Which stages the process has: as many as the others, up to one. UsageError when there are fewer stages
// than processes.
StageRange stagesOfProcess(size_t stages, int rank, int size);

// Which devices the stages of a process compute on: for the number of all stages and those that it has.
using PlaceStages = std::function<Pipeline::OnDevices(size_t stages, StageRange range)>;

// Process 0's side. Where another process cannot go on, or is gone, all of this throws RuntimeError that
// names it.
class ProcessPipeline {
 public:
  // As of Pipeline. `messages` outlives this. All processes have made their graphs of the same model;
  // one that has another model says so when the first run begins.
  // Stages are on the CPU unless `place` says otherwise.
  ProcessPipeline(distributed::Messages& messages, const StreamGraph& graph, Plan plan,
                  const PlaceStages& place = {});
  // Lets the others go, when nothing failed.
  ~ProcessPipeline();
  ProcessPipeline(const ProcessPipeline&) = delete;
  ProcessPipeline& operator=(const ProcessPipeline&) = delete;

  // As Pipeline::run(); the report is of all processes. What went wrong elsewhere is thrown as
  // RuntimeError; results before it were handed over.
  RunReport run(const ItemSource& source, const ResultSink& sink,
                const PipelineOptions& options = {});

  const Plan& plan() const { return plan_; }

 private:
  distributed::Messages& messages_;
  const StreamGraph& graph_;
  const Plan plan_;
  const StageRange range_;
  Pipeline here_;
  std::unique_ptr<class ProcessWire> wire_;
};

// The other processes' side: takes part in all runs, until process 0 lets it go. Throws what ends a run,
// which the caller tells the others (Messages::fail()).
void serveProcessPipeline(distributed::Messages& messages, const StreamGraph& graph,
                          const PlaceStages& place = {}, const PipelineOptions& options = {});

}  // namespace wick::streams

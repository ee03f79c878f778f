#include "tracing/trace.h"

#include <fmt/format.h>

#include "ir/function.h"
#include "tracing/tracer.h"

namespace wick {

std::shared_ptr<CompilationUnit> traceUnit(const TracedCode& code,
                                           const std::vector<IValue>& example_inputs,
                                           const TraceOptions& options) {
  tracing::Tracer tracer;
  std::vector<IValue> inputs;
  for (size_t i = 0; i < example_inputs.size(); ++i) {
    inputs.push_back(tracer.addInput(
        i < options.argument_names.size() ? options.argument_names[i] : fmt::format("input_{}", i),
        example_inputs[i]));
  }
  std::shared_ptr<Graph> graph;
  {
    const tracing::TraceScope scope(tracer);
    graph = tracer.finish(code(inputs));
  }
  // The functions that it calls live as long.
  const auto owners = std::make_shared<std::vector<std::shared_ptr<void>>>(tracer.owners());
  const std::shared_ptr<CompilationUnit> unit(new CompilationUnit, [owners](CompilationUnit* made) {
    delete made;
    owners->clear();
  });
  unit->createFunction("__torch__." + options.name, std::move(graph));
  return unit;
}

}  // namespace wick

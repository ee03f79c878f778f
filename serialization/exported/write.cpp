#include "serialization/exported/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "ir/function.h"
#include "passes/autocast.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/freeze.h"
#include "passes/inline_calls.h"
#include "passes/inline_forks.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/unroll_loops.h"
#include "runtime/hooked_call.h"
#include "serialization/archive_writer.h"
#include "serialization/exported/program_writer.h"
#include "serialization/torch_save.h"

namespace wick {
namespace {

using exported::FixedValues;
using exported::NamedTensor;
using exported::OrderedJson;
using exported::ProgramWriter;
using exported::RecordedRun;
using exported::SizeFit;

// The version of the schema that is written, and the archive's own.
constexpr int64_t kWrittenMajor = 8;
constexpr int64_t kWrittenMinor = 17;

IValue copyOf(const IValue& value);
std::vector<IValue> copyOf(const std::vector<IValue>& values) {
  std::vector<IValue> copies;
  for (const IValue& value : values) copies.push_back(copyOf(value));
  return copies;
}

void simplify(Graph& graph) {
  constexpr UnrollLimits kLimits{1024, 1 << 12, 1 << 15};
  for (int round = 0; round < 4; ++round) {
    lowerTuples(graph);
    simplifyPeepholes(graph);
    propagateConstants(graph);
    if (!unrollLoopsWithin(graph, kLimits)) break;
  }
  eliminateDeadCode(graph);
}

// The method with its calls inlined and its attributes as constants.
std::shared_ptr<Graph> straightGraph(const Module& module, GraphFunction& method) {
  method.ensureDefined();
  std::shared_ptr<Graph> graph = method.graph()->copy();
  inlineCalls(*graph);
  inlineForks(*graph);
  freezeModule(*graph, module.object());
  insertAutocasts(*graph);
  simplify(*graph);
  return graph;
}

IValue copyOf(const IValue& value) {
  if (value.isTensor()) return value.toTensor().detach().clone();
  if (value.isList()) {
    return makeRef<ListObject>(value.toList().element_type, copyOf(value.elements()));
  }
  if (value.isTuple()) return makeRef<TupleObject>(copyOf(value.elements()), value.toTuple().named);
  if (!value.isDict()) return value;
  auto dict = makeRef<DictObject>(value.toDict().key_type, value.toDict().value_type);
  for (const auto& [key, element] : value.items()) dict->set(key, copyOf(element));
  return IValue(std::move(dict));
}

std::vector<RecordedRun> record(const Graph& graph, const std::vector<std::vector<IValue>>& calls) {
  std::vector<RecordedRun> runs;
  // Runs may write to their arguments.
  for (const std::vector<IValue>& arguments : calls) runs.emplace_back(graph, copyOf(arguments));
  return runs;
}

// Puts constants in place of the numbers that are the same in all runs. True when there were any.
bool replaceFixed(const Block& block, FixedValues& fixed) {
  bool changed = false;
  for (Node* node : block.nodes()) {
    for (const Block* inner : node->blocks()) changed = replaceFixed(*inner, fixed) || changed;
    if (node->kind() == prim::Constant) continue;
    for (Value* output : node->outputs()) {
      const TypeKind kind = output->type()->kind();
      const bool is_number =
          kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Bool;
      const IValue* value = is_number && output->hasUses() ? fixed.find(output) : nullptr;
      if (!value) continue;
      Node* constant = node->graph()->createConstant(*value)->insertAfter(node);
      constant->setRange(node->range());
      output->replaceAllUsesWith(constant->output());
      changed = true;
    }
  }
  return changed;
}

// Runs the examples and simplifies the graph by what they show, until there is nothing more.
std::vector<RecordedRun> specialize(Graph& graph, const std::vector<std::vector<IValue>>& calls) {
  constexpr int kMostRounds = 8;
  std::vector<RecordedRun> runs = record(graph, calls);
  for (int round = 0; round < kMostRounds; ++round) {
    FixedValues fixed(graph, runs);
    if (!replaceFixed(*graph.block(), fixed)) break;
    simplify(graph);
    runs = record(graph, calls);
  }
  return runs;
}

std::vector<NamedTensor> tensorsOf(const Module& module) {
  std::vector<NamedTensor> out;
  for (const auto& [name, tensor] : module.parameters()) out.push_back({name, true, false, tensor});
  for (const auto& [name, tensor] : module.buffers()) out.push_back({name, false, false, tensor});
  return out;
}

// Writes each storage of the tensors once, and a table that tells the storage and the layout of each tensor.
class PayloadWriter {
 public:
  PayloadWriter(ArchiveWriter& archive, const char* folder, const char* prefix)
      : archive_(archive), folder_(folder), prefix_(prefix) {}

  void add(const NamedTensor& named, const OrderedJson& meta) {
    const Tensor tensor = named.tensor.detach();
    const Tensor here = tensor.device().isCpu() ? tensor : tensor.to(Device());
    auto [found, fresh] = paths_.try_emplace(here.storage().get(), "");
    if (fresh) {
      found->second = fmt::format("{}{}", prefix_, paths_.size() - 1);
      kept_.push_back(here);
      archive_.write(fmt::format("{}/{}", folder_, found->second),
                     std::span(static_cast<const std::byte*>(here.storage()->data()),
                               here.storage()->bytes()));
    }
    OrderedJson entry;
    entry["path_name"] = found->second;
    entry["is_param"] = named.is_parameter;
    entry["use_pickle"] = false;
    entry["tensor_meta"] = meta;
    OrderedJson offset;
    offset["as_int"] = here.offset();
    entry["tensor_meta"]["storage_offset"] = offset;
    config_[named.name] = std::move(entry);
  }

  std::string config() const {
    OrderedJson out;
    out["config"] = config_;
    return out.dump();
  }

 private:
  ArchiveWriter& archive_;
  const char* folder_;
  const char* prefix_;
  std::map<const Storage*, std::string> paths_;
  std::vector<Tensor> kept_;  // whose storages are keys
  OrderedJson config_ = OrderedJson::object();
};

OrderedJson programJson(const ProgramWriter& writer, const ExportedOptions& options) {
  OrderedJson signature;
  signature["input_specs"] = writer.input_specs;
  signature["output_specs"] = writer.output_specs;
  OrderedJson call_signature;
  call_signature["inputs"] = OrderedJson::array();
  call_signature["outputs"] = OrderedJson::array();
  call_signature["in_spec"] = writer.argument_tree;
  call_signature["out_spec"] = writer.result_tree;
  call_signature["forward_arg_names"] = writer.given_names;
  OrderedJson call;
  call["fqn"] = "";
  call["signature"] = std::move(call_signature);
  OrderedJson module;
  module["graph"] = writer.graph;
  module["signature"] = std::move(signature);
  module["module_call_graph"] = OrderedJson::array({std::move(call)});
  module["metadata"] = OrderedJson::object();
  module["treespec_namedtuple_fields"] = OrderedJson::object();
  OrderedJson ranges = OrderedJson::object();
  for (size_t k = 0; k < options.sizes.size(); ++k) {
    OrderedJson range;
    range["min_val"] = options.sizes[k].least;
    range["max_val"] = options.sizes[k].most;
    ranges[fmt::format("s{}", k)] = std::move(range);
  }
  OrderedJson version;
  version["major"] = kWrittenMajor;
  version["minor"] = kWrittenMinor;
  OrderedJson out;
  out["graph_module"] = std::move(module);
  out["opset_version"]["aten"] = 10;
  out["range_constraints"] = std::move(ranges);
  out["schema_version"] = std::move(version);
  out["verifiers"] = OrderedJson::array({"TRAINING"});
  out["torch_version"] = "2.11.0";
  out["guards_code"] = OrderedJson::array();
  return out;
}

}  // namespace

std::vector<int64_t> exampleSizes(const std::vector<DynamicSize>& sizes, int64_t example) {
  std::vector<int64_t> values;
  for (size_t k = 0; k < sizes.size(); ++k) {
    const DynamicSize& size = sizes[k];
    const int64_t first = size.least < 2 && size.most >= 2 ? 2 : size.least;
    const int64_t last = std::max<int64_t>((size.most - first) / size.step, 0);
    const std::array<int64_t, kExportExamples> places = {
        last / 2, 0, last, last / 2 + 1, 1, last - 1, last / 2 + 4};
    const int64_t place =
        places[static_cast<size_t>(example + static_cast<int64_t>(k)) % places.size()];
    values.push_back(first + std::clamp<int64_t>(place, 0, last) * size.step);
  }
  return values;
}

void saveExported(const Module& module, const std::vector<ExportExample>& examples,
                  const std::string& path, const ExportedOptions& options) {
  if (examples.empty()) throw UsageError("export: an example of the arguments is needed");
  const Module evaluated = module.clone().eval();
  const bool hooked = options.method == "forward" && evaluated.hasHooks();
  const std::shared_ptr<GraphFunction> with_hooks = hooked ? functionWithHooks(evaluated) : nullptr;
  GraphFunction& method = hooked ? *with_hooks : evaluated.method(options.method);
  const std::shared_ptr<Graph> graph = straightGraph(evaluated, method);
  const std::vector<Argument>& declared = method.schema().arguments();
  std::vector<std::string> names;
  for (size_t i = 1; i < declared.size(); ++i) names.push_back(declared[i].name);

  std::vector<std::vector<int64_t>> sizes;
  std::vector<std::vector<IValue>> calls;
  for (const ExportExample& example : examples) {
    sizes.push_back(example.sizes);
    std::vector<IValue> arguments = example.arguments;
    for (size_t i = arguments.size() + 1; i < declared.size(); ++i) {
      if (!declared[i].default_value) {
        throw UsageError(fmt::format("export: the argument '{}' lacks", declared[i].name));
      }
      arguments.push_back(*declared[i].default_value);
    }
    calls.push_back(std::move(arguments));
  }
  std::vector<exported::OpenRange> ranges;
  for (const DynamicSize& size : options.sizes) ranges.push_back({size.least, size.most});
  const SizeFit fit(std::move(sizes), std::move(ranges));
  ProgramWriter writer(*graph, specialize(*graph, calls), fit, tensorsOf(evaluated));
  writer.write(names, examples[0].arguments.size());

  ArchiveWriter archive = ArchiveWriter::toFile(path, "archive");
  archive.write("archive_format", "pt2");
  archive.write("archive_version", "0");
  archive.write(".data/version", "6\n");
  archive.write("byteorder", "little");
  archive.write("models/model.json", programJson(writer, options).dump());
  PayloadWriter weights(archive, "data/weights", "weight_");
  PayloadWriter constants(archive, "data/constants", "tensor_");
  for (size_t i = 0; i < writer.tensors().size(); ++i) {
    if (!writer.usedTensors().contains(i)) continue;
    const NamedTensor& tensor = writer.tensors()[i];
    (tensor.is_constant ? constants : weights)
        .add(tensor, writer.graph.at("tensor_values").at(writer.inputName(i)));
  }
  archive.write("data/weights/model_weights_config.json", weights.config());
  archive.write("data/constants/model_constants_config.json", constants.config());
  const IValue sample(makeRef<TupleObject>(
      std::vector<IValue>{IValue(makeRef<TupleObject>(examples[0].arguments)),
                          IValue(makeRef<DictObject>(types::String(), types::Any()))}));
  archive.write("data/sample_inputs/model.pt", saveValueToString(sample));
  archive.write(".data/serialization_id", archive.contentId());
  archive.finish();
}

}  // namespace wick

// Models compiled ahead of time within a test: written, compiled by g++, loaded and called.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "aot/build.h"
#include "aot/runtime/wick_aot.h"
#include "core/tensor.h"
#include "ir/function.h"

namespace wick::testing_aot {

// A folder of the test's own, with models that are compiled together.
class Workshop {
 public:
  explicit Workshop(const std::string& name);
  const std::string& folder() const { return folder_; }

  // Writes a model; what aot::record() and aot::build() throw.
  aot::BuildResult add(const std::string& name, GraphFunction& function,
                       const std::vector<IValue>& arguments, bool embed = false,
                       const aot::Target* target = nullptr);
  aot::BuildResult add(const std::string& name, std::vector<aot::Entry> entries, bool embed = false,
                       const aot::Target* target = nullptr);
  // Compiles all that was added, warnings being errors; what the compiler says when it refuses, or "".
  std::string compile(const std::string& compiler = "g++", const std::string& more = "");
  // The functions of a model in the library that compile() made, `forward` and `outputs` those of one
  // method.
  struct Model {
    const wick_aot_model* (*about)();
    int (*init)(wick_aot_state*, const char*);
    int (*forward)(wick_aot_state*, const wick_aot_tensor*, wick_aot_tensor*);
    int (*outputs)(wick_aot_state*, const wick_aot_tensor*, wick_aot_tensor*);
    void (*free)(wick_aot_state*);
  };
  Model load(const std::string& name, const std::string& method = "forward");
  // A function of the library behind load().
  template <class F>
  F* find(const std::string& name) const {
    return reinterpret_cast<F*>(symbol(name));
  }
  std::string weightsOf(const std::string& name) const { return folder_ + "/" + name + ".weights"; }

 private:
  void* symbol(const std::string& name) const;
  std::string folder_, library_;
  std::vector<std::string> sources_;
  void* handle_ = nullptr;
};

wick_aot_tensor describe(const Tensor& t);
// The outputs that the model has, uninitialized.
std::vector<Tensor> outputsOf(const wick_aot_model& about, int32_t signature = 0);
// Those for such inputs, at most 256; none when the model refuses.
std::vector<Tensor> outputsFor(const Workshop::Model& model, wick_aot_state& state,
                               const std::vector<Tensor>& inputs);
// Calls a model; its error where it refuses.
std::string call(const Workshop::Model& model, wick_aot_state& state,
                 const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs);
// The same with outputs that it makes, which get the sizes that the call tells.
std::string callAny(const Workshop::Model& model, wick_aot_state& state,
                    const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs);

// "2x3xf32", "4xi64" (from 0 to 3): always the same numbers.
Tensor tensorOf(const std::string& spec, uint64_t seed);
// One for each, with seeds from this one on.
std::vector<Tensor> inputsOf(const std::vector<const char*>& specs, uint64_t seed);
std::vector<IValue> valuesOf(const std::vector<Tensor>& tensors);
// Tensors and numbers of a result, in order.
std::vector<Tensor> tensorsOf(const IValue& value);
void expectSame(const Tensor& expected, const Tensor& found);
// The same of each tensor and number of a result.
void expectResults(const IValue& expected, const std::vector<Tensor>& found);

// A model of a workshop with its state, which ends with it; throws where the model does not begin.
struct Running {
  Running(Workshop& workshop, const std::string& name, const std::string& method = "forward");
  ~Running() { model.free(&state); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const Workshop::Model model;
  wick_aot_state state;
};

// Programs that are compiled together and compared with the engine.
struct Case {
  const char* name;
  std::vector<const char*> inputs;
  const char* source;
  bool loops = true;  // whether the text has a loop, where a test asks
};
std::ostream& operator<<(std::ostream& os, const Case& c);
bool hasLoop(const aot::BuildResult& built);

// Cases as methods of one model.
class CaseLibrary {
 public:
  CaseLibrary(const std::string& name, const std::vector<Case>& cases);
  // Calls the case with the numbers of the seeds in front of `end`. Errors of the engine that hold `told` are the model's.
  void compare(const Case& c, uint64_t end, const std::string& told);
  bool hasLoop(const Case& c) const { return loops_.at(c.name); }

 private:
  const std::string name_;
  Workshop workshop_;
  std::map<std::string, std::string> refused_;
  std::map<std::string, bool> loops_;
  std::map<std::string, int32_t> signatures_;
  std::string said_;
};
// The same text under the other compiler; skips where there is none.
void expectCompilesUnderClang(const std::string& name, const std::vector<Case>& cases);

}  // namespace wick::testing_aot

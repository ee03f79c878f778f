#include "tests/aot/compiled.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "codegen/llvm/jit.h"
#include "core/error_types.h"
#include "runtime/jit_mode.h"
#include "runtime/ops/common_calls.h"
#include "wick.h"

namespace wick::testing_aot {

Workshop::Workshop(const std::string& name) : folder_(testing::TempDir() + "/aot_" + name) {
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
}

aot::BuildResult Workshop::add(const std::string& name, GraphFunction& function,
                               const std::vector<IValue>& arguments, bool embed,
                               const aot::Target* target) {
  std::vector<aot::Entry> entries(1);
  aot::RecordOptions options;
  options.target = target;
  entries[0].program = aot::record(function, arguments, options);
  return add(name, std::move(entries), embed, target);
}

aot::BuildResult Workshop::add(const std::string& name, std::vector<aot::Entry> entries, bool embed,
                               const aot::Target* target) {
  aot::BuildOptions options;
  options.target = target;
  options.name = name;
  options.embed_weights = embed;
  options.vector_bits = codegen::vectorBits();
  std::string weights;
  aot::BuildResult result =
      aot::build(std::move(entries), options, [&](std::string_view part) { weights += part; });
  if (!weights.empty()) std::ofstream(weightsOf(name), std::ios::binary) << weights;
  for (const aot::File& file : result.files) {
    std::ofstream(folder_ + "/" + file.name, std::ios::binary) << file.text;
  }
  for (const std::string& source : result.sources) {
    if (std::ranges::find(sources_, source) == sources_.end()) sources_.push_back(source);
  }
  return result;
}

std::string Workshop::compile(const std::string& compiler, const std::string& more) {
  library_ = folder_ + "/models.so";
  std::string command = fmt::format(
      "cd '{}' && {} -std=c++17 -O1 -march=x86-64-v3 -ffp-contract=off -fno-math-errno "
      "-fno-trapping-math -fno-strict-aliasing -fPIC -shared -Wall -Wextra -Werror {} -o models.so",
      folder_, compiler, more);
  for (const std::string& source : sources_) command += " " + source;
  command += " -Wl,--as-needed -ldnnl -lopenblas 2>&1";
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (const size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
  const int status = pclose(pipe);
  return status == 0 ? "" : command + "\n" + output;
}

Workshop::Model Workshop::load(const std::string& name, const std::string& method) {
  if (!handle_) handle_ = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) throw std::runtime_error(dlerror());
  const auto find = [&](const char* what, auto& function) {
    void* symbol = dlsym(handle_, (name + "_" + what).c_str());
    if (!symbol) throw std::runtime_error(dlerror());
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  Model model;
  find("model", model.about);
  find("init", model.init);
  find(method.c_str(), model.forward);
  find((method + "_outputs").c_str(), model.outputs);
  find("free", model.free);
  return model;
}

void* Workshop::symbol(const std::string& name) const {
  void* found = handle_ ? dlsym(handle_, name.c_str()) : nullptr;
  if (!found) throw std::runtime_error("the library has no function " + name);
  return found;
}

wick_aot_tensor describe(const Tensor& t) {
  wick_aot_tensor described{};
  described.data = t.rawData();
  described.dtype = static_cast<int32_t>(t.dtype());
  described.rank = static_cast<int32_t>(t.dim());
  std::copy(t.sizes().begin(), t.sizes().end(), described.sizes);
  return described;
}

std::vector<Tensor> outputsOf(const wick_aot_model& about, int32_t signature) {
  std::vector<Tensor> outputs;
  for (int32_t i = 0; i < about.signatures[signature].num_outputs; ++i) {
    const wick_aot_slot& slot = about.signatures[signature].outputs[i];
    outputs.push_back(Tensor::empty(DimVector(slot.sizes, slot.sizes + slot.rank),
                                    static_cast<DType>(slot.dtype)));
  }
  return outputs;
}

std::vector<Tensor> outputsFor(const Workshop::Model& model, wick_aot_state& state,
                               const std::vector<Tensor>& inputs) {
  std::vector<wick_aot_tensor> in;
  for (const Tensor& t : inputs) in.push_back(describe(t));
  std::vector<wick_aot_tensor> out(256);
  for (wick_aot_tensor& t : out) t.rank = -1;
  std::vector<Tensor> outputs;
  if (model.outputs(&state, in.data(), out.data()) != WICK_AOT_OK) return outputs;
  for (const wick_aot_tensor& t : out) {
    if (t.rank < 0) break;
    outputs.push_back(
        Tensor::empty(DimVector(t.sizes, t.sizes + t.rank), static_cast<DType>(t.dtype)));
  }
  return outputs;
}

std::string call(const Workshop::Model& model, wick_aot_state& state,
                 const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  std::vector<wick_aot_tensor> in, out;
  for (const Tensor& t : inputs) in.push_back(describe(t));
  for (const Tensor& t : outputs) out.push_back(describe(t));
  return model.forward(&state, in.data(), out.data()) == WICK_AOT_OK ? "" : state.error;
}

std::string callAny(const Workshop::Model& model, wick_aot_state& state,
                    const std::vector<Tensor>& inputs, std::vector<Tensor>& outputs) {
  outputs = outputsFor(model, state, inputs);
  std::vector<wick_aot_tensor> in, out;
  for (const Tensor& t : inputs) in.push_back(describe(t));
  for (const Tensor& t : outputs) out.push_back(describe(t));
  if (model.forward(&state, in.data(), out.data()) != WICK_AOT_OK) return state.error;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DimVector sizes(out[i].sizes, out[i].sizes + out[i].rank);
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    if (count > outputs[i].numel()) return "more elements than there is memory for";
    outputs[i] = outputs[i].view(DimVector{-1}).narrow(0, 0, count).view(sizes);
  }
  return "";
}

Tensor tensorOf(const std::string& spec, uint64_t seed) {
  DimVector sizes;
  size_t at = 0;
  while (spec.find('x', at) != std::string::npos) {
    const size_t end = spec.find('x', at);
    sizes.push_back(std::stoll(spec.substr(at, end - at)));
    at = end + 1;
  }
  const std::string dtype = spec.substr(at);
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  uint64_t state = seed * 7919 + 12345;
  const auto next = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 40) / (1 << 24);
  };
  const auto fill = [&]<class T>(T, double low, double high) {
    std::vector<T> values;
    for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<T>(low + (high - low) * next()));
    return Tensor::fromData(values.data(), sizes);
  };
  if (dtype == "i64") return fill(int64_t{}, 0, 4);
  if (dtype == "i32") return fill(int32_t{}, -50, 50);
  if (dtype == "f64") return fill(double{}, -3, 3);
  if (dtype == "c64" || dtype == "c128") {
    sizes.push_back(2);
    n *= 2;
    return ops::viewAsComplex(dtype == "c64" ? fill(float{}, -3, 3) : fill(double{}, -3, 3));
  }
  const Tensor floats = fill(float{}, -3, 3);
  if (dtype == "f16") return floats.to(DType::Half);
  if (dtype == "bf16") return floats.to(DType::BFloat16);
  if (dtype == "bool") return floats.to(DType::Int).to(DType::Bool);
  return floats;
}

std::vector<Tensor> inputsOf(const std::vector<const char*>& specs, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const char* spec : specs) inputs.push_back(tensorOf(spec, seed++));
  return inputs;
}
std::vector<IValue> valuesOf(const std::vector<Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

std::vector<Tensor> tensorsOf(const IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isBool()) return {Tensor::scalar(value.toBool())};
  if (value.isInt()) return {Tensor::scalar(value.toInt())};
  if (value.isDouble()) return {Tensor::scalar(value.toDouble())};
  std::vector<Tensor> all;
  for (const IValue& e : value.elements()) {
    for (const Tensor& t : tensorsOf(e)) all.push_back(t);
  }
  return all;
}

void expectSame(const Tensor& expected_in, const Tensor& found) {
  const Tensor expected = expected_in.contiguous();
  ASSERT_EQ(expected.dtype(), found.dtype());
  ASSERT_EQ(DimVector(expected.sizes()), DimVector(found.sizes()));
  const auto* a = static_cast<const char*>(expected.rawData());
  const auto* b = static_cast<const char*>(found.rawData());
  const size_t item = expected.itemSize();
  int differ = 0;
  for (int64_t i = 0; i < expected.numel(); ++i) {
    differ += std::memcmp(a + i * static_cast<int64_t>(item), b + i * static_cast<int64_t>(item),
                          item) != 0;
  }
  EXPECT_EQ(differ, 0) << expected.describe() << " of " << expected.numel() << " elements";
}

void expectResults(const IValue& expected, const std::vector<Tensor>& found) {
  const std::vector<Tensor> wanted = tensorsOf(expected);
  ASSERT_EQ(wanted.size(), found.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(fmt::format("result {}", i));
    expectSame(wanted[i], found[i]);
  }
}

Running::Running(Workshop& workshop, const std::string& name, const std::string& method)
    : model(workshop.load(name, method)) {
  if (model.init(&state, workshop.weightsOf(name).c_str()) != WICK_AOT_OK) {
    throw std::runtime_error(state.error);
  }
}

std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.name;
}
bool hasLoop(const aot::BuildResult& built) {
  return built.files[1].text.find("for (int64_t round_") != std::string::npos;
}

namespace {

// Calls take(case, program, what was built of it alone).
template <class Take>
std::map<std::string, std::string> recordAll(const std::vector<Case>& cases, Take take) {
  setJitMode(JitMode::Sync);
  setJitThreshold(0);
  std::map<std::string, std::string> refused;
  for (const Case& c : cases) {
    try {
      const Program program = wick::compile(c.source);
      aot::Program recorded =
          aot::record(program.function("main"), valuesOf(inputsOf(c.inputs, 1)));
      const aot::BuildResult built =
          aot::build(recorded, {.name = "alone"}, [](std::string_view) {});
      take(c, std::move(recorded), built);
    } catch (const Error& e) {
      refused[c.name] = e.what();
    }
  }
  return refused;
}

}  // namespace

CaseLibrary::CaseLibrary(const std::string& name, const std::vector<Case>& cases)
    : name_(name), workshop_(name) {
  std::vector<aot::Entry> entries;
  refused_ = recordAll(cases, [&](const Case& c, aot::Program program, const auto& built) {
    loops_[c.name] = wick::testing_aot::hasLoop(built);
    signatures_[c.name] = static_cast<int32_t>(entries.size());
    entries.push_back({c.name, std::move(program)});
  });
  workshop_.add(name, std::move(entries));
  said_ = workshop_.compile();
}

void CaseLibrary::compare(const Case& c, uint64_t end, const std::string& told) {
  ASSERT_EQ(said_, "");
  ASSERT_EQ(refused_[c.name], "");
  Running running(workshop_, name_, c.name);
  auto& [model, state] = running;
  const Program program = wick::compile(c.source);
  int compared = 0;
  for (uint64_t seed = 1; seed < end; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::vector<Tensor> inputs = inputsOf(c.inputs, seed);
    IValue expected;
    std::string raised;
    try {
      for (int run = 0; run < 4; ++run) expected = program.call("main", valuesOf(inputs));
    } catch (const RuntimeError& e) {
      raised = e.brief();
    }
    const std::vector<Tensor> outputs = outputsOf(*model.about(), signatures_[c.name]);
    const std::string said = call(model, state, inputs, outputs);
    EXPECT_EQ(said.empty(), raised.empty()) << said << " / " << raised;
    if (raised.find(told) != std::string::npos) {
      EXPECT_THAT(said, testing::HasSubstr(raised));
    }
    if (!raised.empty() || !said.empty()) continue;
    ++compared;
    expectResults(expected, outputs);
  }
  EXPECT_GT(compared, 0);
}

void expectCompilesUnderClang(const std::string& name, const std::vector<Case>& cases) {
  if (std::system("clang++-14 --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no clang++-14";
  }
  std::vector<aot::Entry> entries;
  recordAll(cases, [&](const Case& c, aot::Program program, const auto&) {
    entries.push_back({c.name, std::move(program)});
  });
  Workshop workshop(name);
  workshop.add(name, std::move(entries));
  const char* const flags = "-Wno-deprecated -Wno-unused-command-line-argument -fsyntax-only";
  EXPECT_EQ(workshop.compile("clang++-14", flags), "");
}

}  // namespace wick::testing_aot

// Programs and modules of capi/wick.h.
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "capi/guard.h"
#include "serialization/export.h"
#include "serialization/import.h"

using namespace wick;
using namespace wick::capi;

namespace {

IValue tensorsOf(const Module::Named<Tensor>& tensors) {
  DictRef dict = makeRef<DictObject>(types::String(), types::Tensor());
  for (const auto& [name, tensor] : tensors) dict->set(name, tensor);
  return dict;
}

// The module that holds what a name with dots means, and the last part of the name.
std::pair<Module, std::string> holderOf(const Module& module, const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {module, name};
  return {module.submodule(name.substr(0, dot)), name.substr(dot + 1)};
}

// The device for null is as saved.
DeviceMap deviceMapOf(const char* device, const char* function) {
  return device ? DeviceMap(deviceOf(device, function)) : DeviceMap();
}

// Asks the caller's function for a device; std::nullopt when it names none.
std::optional<Device> askedDevice(const wick_device_map& map, const std::string& saved_on,
                                  const char* function) {
  if (!map.find) return std::nullopt;
  const char* device = nullptr;
  const uint64_t before = notedFailures();
  const wick_status status = map.find(map.data, saved_on.c_str(), &device);
  if (status != WICK_OK) throwLastError(status, before);
  return device ? std::optional(deviceOf(device, function)) : std::nullopt;
}

// Copies the table, and keeps the function.
DeviceMap deviceMapOf(const wick_device_map* map, const char* function) {
  if (!map) return DeviceMap();
  checkSize(map->struct_size, sizeof(wick_device_map), "wick_device_map", function, "map");
  if (map->count > 0 && (!map->saved_on || !map->devices)) {
    throwUsage("{}: map.count is {}, but map.saved_on or map.devices is NULL", function,
               map->count);
  }
  std::map<std::string, Device> table;
  for (size_t i = 0; i < map->count; ++i) {
    if (!map->saved_on[i]) throwUsage("{}: map.saved_on[{}] must not be NULL", function, i);
    if (!table.emplace(map->saved_on[i], deviceOf(map->devices[i], function)).second) {
      throwUsage("{}: map.saved_on has {} twice", function, map->saved_on[i]);
    }
  }
  return DeviceMap([table = std::move(table), asked = *map,
                    function](const std::string& name) -> std::optional<Device> {
    const auto found = table.find(name);
    return found != table.end() ? found->second : askedDevice(asked, name, function);
  });
}

// Loads under the limits; `load` takes LoadOptions.
template <class Load>
void loadUnder(const wick_limits* limits, DeviceMap devices, const char* function,
               wick_module** out, Load load) {
  known(out, function, "module");
  const LimitScope scope(limits, function);
  LoadOptions options;
  options.run = scope.runOptions();
  options.devices = std::move(devices);
  try {
    *out = new wick_module{load(options)};
  } catch (const LoadError&) {
    scope.check();
    throw;
  }
}

void loadFile(const char* path, DeviceMap devices, const wick_limits* limits, const char* function,
              wick_module** out) {
  known(path, function, "path");
  loadUnder(limits, std::move(devices), function, out,
            [&](const LoadOptions& options) { return loadModule(path, options); });
}

void loadMemory(std::span<const std::byte> bytes, const char* name, DeviceMap devices,
                const wick_limits* limits, const char* function, wick_module** out) {
  if (!bytes.data()) throwUsage("{}: data must not be NULL", function);
  loadUnder(limits, std::move(devices), function, out, [&](const LoadOptions& options) {
    return loadModule(copyBytes(bytes), name ? name : "<memory>", options);
  });
}

std::span<const std::byte> bytesAt(const void* data, size_t count) {
  return {static_cast<const std::byte*>(data), count};
}

// For the functions that ask a module for a value, which they store through the argument `name`.
template <class F>
wick_status ask(const wick_module* module, wick_value** out, const char* function, const char* name,
                F f) {
  return guarded([&] {
    known(out, function, name);
    give(f(known(module, function, "module").module), out);
  });
}

}  // namespace

extern "C" {

wick_status wick_compile(const char* source, const char* file_name, const wick_limits* limits,
                         wick_program** program) {
  constexpr const char* kName = "wick_compile";
  return guarded([&] {
    known(source, kName, "source");
    known(program, kName, "program");
    const LimitScope scope(limits, kName);
    *program = new wick_program{compile(source, file_name ? file_name : "<string>")};
  });
}

wick_status wick_program_functions(const wick_program* program, wick_value** names) {
  constexpr const char* kName = "wick_program_functions";
  return guarded([&] {
    known(names, kName, "names");
    give(IValue(known(program, kName, "program").program.functionNames()), names);
  });
}

wick_status wick_program_call(const wick_program* program, const char* function,
                              wick_value* const* arguments, size_t num_arguments,
                              const wick_value* named, const wick_limits* limits,
                              wick_value** result) {
  constexpr const char* kName = "wick_program_call";
  return guarded([&] {
    known(program, kName, "program");
    known(function, kName, "function");
    known(result, kName, "result");
    const LimitScope scope(limits, kName);
    const GradScope grad(std::nullopt);
    give(program->program.call(function, valuesOf(arguments, num_arguments, kName),
                               namedOf(named, kName), scope.runOptions()),
         result);
  });
}

void wick_program_free(wick_program* program) {
  delete program;
}

wick_status wick_module_load(const char* path, const wick_limits* limits, wick_module** module) {
  return guarded([&] { loadFile(path, DeviceMap(), limits, "wick_module_load", module); });
}

wick_status wick_module_load_on(const char* path, const char* device, const wick_limits* limits,
                                wick_module** module) {
  constexpr const char* kName = "wick_module_load_on";
  return guarded([&] { loadFile(path, deviceMapOf(device, kName), limits, kName, module); });
}

wick_status wick_module_load_memory(const void* data, size_t bytes, const char* name,
                                    const wick_limits* limits, wick_module** module) {
  return guarded([&] {
    loadMemory(bytesAt(data, bytes), name, DeviceMap(), limits, "wick_module_load_memory", module);
  });
}

wick_status wick_module_load_memory_on(const void* data, size_t bytes, const char* name,
                                       const char* device, const wick_limits* limits,
                                       wick_module** module) {
  constexpr const char* kName = "wick_module_load_memory_on";
  return guarded([&] {
    loadMemory(bytesAt(data, bytes), name, deviceMapOf(device, kName), limits, kName, module);
  });
}

wick_status wick_module_load_mapped(const char* path, const wick_device_map* map,
                                    const wick_limits* limits, wick_module** module) {
  constexpr const char* kName = "wick_module_load_mapped";
  return guarded([&] { loadFile(path, deviceMapOf(map, kName), limits, kName, module); });
}

wick_status wick_module_load_memory_mapped(const void* data, size_t bytes, const char* name,
                                           const wick_device_map* map, const wick_limits* limits,
                                           wick_module** module) {
  constexpr const char* kName = "wick_module_load_memory_mapped";
  return guarded([&] {
    loadMemory(bytesAt(data, bytes), name, deviceMapOf(map, kName), limits, kName, module);
  });
}

wick_status wick_module_call(const wick_module* module, const char* method,
                             wick_value* const* arguments, size_t num_arguments,
                             const wick_value* named, const wick_limits* limits,
                             wick_value** result) {
  constexpr const char* kName = "wick_module_call";
  return guarded([&] {
    const Module& called = known(module, kName, "module").module;
    known(result, kName, "result");
    auto positional = valuesOf(arguments, num_arguments, kName);
    auto by_name = namedOf(named, kName);
    const LimitScope scope(limits, kName);
    const GradScope grad(false);
    const RunOptions& options = scope.runOptions();
    give(method ? called.run(method, std::move(positional), std::move(by_name), options)
                : called(std::move(positional), std::move(by_name), options),
         result);
  });
}

wick_status wick_module_methods(const wick_module* module, wick_value** names) {
  return ask(module, names, "wick_module_methods", "names",
             [](const Module& m) { return IValue(m.methodNames()); });
}

wick_status wick_module_parameters(const wick_module* module, wick_value** parameters) {
  return ask(module, parameters, "wick_module_parameters", "parameters",
             [](const Module& m) { return tensorsOf(m.parameters()); });
}

wick_status wick_module_buffers(const wick_module* module, wick_value** buffers) {
  return ask(module, buffers, "wick_module_buffers", "buffers",
             [](const Module& m) { return tensorsOf(m.buffers()); });
}

wick_status wick_module_get_attribute(const wick_module* module, const char* name,
                                      wick_value** value) {
  constexpr const char* kName = "wick_module_get_attribute";
  return guarded([&] {
    known(module, kName, "module");
    known(name, kName, "name");
    known(value, kName, "value");
    const auto [holder, attribute] = holderOf(module->module, name);
    give(holder.attr(attribute), value);
  });
}

wick_status wick_module_set_attribute(wick_module* module, const char* name,
                                      const wick_value* value) {
  constexpr const char* kName = "wick_module_set_attribute";
  return guarded([&] {
    known(module, kName, "module");
    known(name, kName, "name");
    known(value, kName, "value");
    auto [holder, attribute] = holderOf(module->module, name);
    holder.setAttr(attribute, value->value);
  });
}

wick_status wick_module_set_training(wick_module* module, int on) {
  return guarded(
      [&] { known(module, "wick_module_set_training", "module").module.train(on != 0); });
}

wick_status wick_module_is_training(const wick_module* module, int* on) {
  constexpr const char* kName = "wick_module_is_training";
  return guarded([&] {
    known(on, kName, "on");
    *on = known(module, kName, "module").module.isTraining() ? 1 : 0;
  });
}

wick_status wick_module_to(wick_module* module, const char* device) {
  constexpr const char* kName = "wick_module_to";
  return guarded([&] {
    const Module& moved = known(module, kName, "module").module;
    moved.to(deviceOf(device, kName));
  });
}

wick_status wick_module_to_dtype(wick_module* module, wick_dtype dtype) {
  constexpr const char* kName = "wick_module_to_dtype";
  return guarded([&] {
    const Module& converted = known(module, kName, "module").module;
    converted.to(dtypeOf(dtype, kName));
  });
}

wick_status wick_module_save(const wick_module* module, const char* path,
                             const wick_limits* limits) {
  constexpr const char* kName = "wick_module_save";
  return guarded([&] {
    known(module, kName, "module");
    known(path, kName, "path");
    const LimitScope scope(limits, kName);
    SaveOptions options;
    options.run = scope.runOptions();
    saveModule(module->module, path, options);
  });
}

wick_status wick_module_save_memory(const wick_module* module, const wick_limits* limits,
                                    wick_value** bytes) {
  constexpr const char* kName = "wick_module_save_memory";
  return guarded([&] {
    known(module, kName, "module");
    known(bytes, kName, "bytes");
    const LimitScope scope(limits, kName);
    SaveOptions options;
    options.run = scope.runOptions();
    give(saveModuleToString(module->module, options), bytes);
  });
}

wick_status wick_module_to_value(const wick_module* module, wick_value** value) {
  return ask(module, value, "wick_module_to_value", "value",
             [](const Module& m) { return IValue(m.object()); });
}

wick_status wick_module_from_value(const wick_value* value, wick_module** module) {
  constexpr const char* kName = "wick_module_from_value";
  return guarded([&] {
    known(module, kName, "module");
    *module = new wick_module{known(value, kName, "value").value.to<Module>()};
  });
}

void wick_module_free(wick_module* module) {
  delete module;
}

}  // extern "C"

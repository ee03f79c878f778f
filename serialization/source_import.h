// Compiles the printed source of an archive on demand.
//
// A name "__torch__.a.b.C" is looked for in the module "__torch__.a.b", whose source is parsed when
// first asked for; its classes and functions are declared when first referred to, so that files may
// refer to each other in any order and to themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/keyed_hash.h"
#include "frontend/compile_errors.h"
#include "frontend/resolver.h"
#include "frontend/tree_views.h"
#include "ir/function.h"
#include "serialization/device_map.h"

namespace wick {

// Used by one thread. Hands itself to the functions it declares, which use it until they are
// compiled: call compileAll() before the unit is shared. The unit must outlive it.
class SourceImporter : public Resolver, public std::enable_shared_from_this<SourceImporter> {
 public:
  // The source of a module ("__torch__.a.b"); null when there is none.
  using SourceLoader = std::function<std::shared_ptr<const Source>(const std::string& module)>;

  // `version` is the archive's; it chooses the meaning of operators that changed.
  static std::shared_ptr<SourceImporter> create(CompilationUnit& unit, SourceLoader loader,
                                                int64_t version);
  // What CONSTANTS.cN indexes. Set once, before anything that refers to it is compiled.
  void setConstants(std::vector<IValue> constants) { constants_ = std::move(constants); }

  // The map of devices in the source; without it they stay as written. As setConstants().
  void setDevices(DeviceMap devices) { devices_ = std::move(devices); }

  // CompileError for one class more; named tuples, enums and interfaces count. Unlimited at first.
  void setMaxClasses(size_t count) { max_classes_ = count; }

  // Null when the archive does not define the name. Throws CompileError for what it defines badly.
  TypePtr findType(const std::string& qualified_name);
  GraphFunction* findFunction(const std::string& qualified_name);
  // A type expression, "Dict[str, __torch__.m.C]".
  TypePtr parseType(const std::string& text);
  // Compiles every function declared so far, and what these refer to in turn. With `errors` hands
  // the errors over; CompileError without.
  void compileAll(CompileErrors* errors = nullptr);

  SugaredValuePtr resolveValue(const std::string& name, GraphFunction& fn,
                               const SourceRange& range) override;
  TypePtr resolveType(const std::string& name, const SourceRange& range) override;

  // CONSTANTS.name.
  const IValue& constant(const SourceRange& range, const std::string& name) const;
  // The device that the source calls by this name; nullopt when it is no device.
  std::optional<Device> device(const std::string& name) const;
  int64_t version() const { return version_; }

 private:
  SourceImporter(CompilationUnit& unit, SourceLoader loader, int64_t version);
  void parseModule(const std::string& module);
  TypePtr importClassDef(const std::string& qualified_name, const ClassDef& definition);
  TypePtr importClass(const std::string& qualified_name, const ClassDef& definition,
                      bool is_module);
  TypePtr importNamedTuple(const std::string& qualified_name, const ClassDef& definition);
  TypePtr importEnum(const std::string& qualified_name, const ClassDef& definition);
  TypePtr importInterface(const std::string& qualified_name, const ClassDef& definition,
                          bool is_module);
  TypePtr typeOf(const Expr& expr);
  IValue constantOf(const Expr& expr, const TypePtr& type);

  CompilationUnit& unit_;
  std::vector<IValue> constants_;
  std::optional<DeviceMap> devices_;
  SourceLoader loader_;
  int64_t version_;
  size_t classes_ = 0;
  size_t max_classes_ = SIZE_MAX;
  size_t depth_ = 0;  // of classes that are being declared because others name them
  KeyedSet<std::string> parsed_modules_;
  // Parsed but not declared yet, by qualified name.
  KeyedMap<std::string, TreeRef> pending_;
};

}  // namespace wick

// Which operators run on CUDA devices.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ir/device_kernels.h"
#include "ir/operator.h"

namespace wick::coverage_test {
namespace {

std::set<std::string> allNames() {
  std::set<std::string> names;
  for (const std::string& name : OperatorRegistry::instance().names()) {
    for (const Operator* op :
         OperatorRegistry::instance().overloads(Symbol::fromQualString(name))) {
      const FunctionSchema& schema = op->schema();
      names.insert(schema.overload().empty() ? schema.name()
                                             : schema.name() + "." + schema.overload());
    }
  }
  return names;
}

TEST(Coverage, TablesNameOperatorsThatExist) {
  const std::set<std::string> known = allNames();
  for (const std::string& name : namesWithDeviceKernels(DeviceType::CUDA)) {
    EXPECT_EQ(known.count(name), 1) << name;
  }
}

}  // namespace
}  // namespace wick::coverage_test

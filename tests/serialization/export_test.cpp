// Saved modules: what is read back, and what a second saving gives.
#include "serialization/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/serialization/import_testing.h"

namespace wick {
namespace {

using testing::HasSubstr;

Module smallModule() {
  return loadModule(dataPath("small_module.pt"));
}

TEST(ExportTest, ASavedModuleGivesTheSameBytesAgain) {
  const std::string first = saveModuleToString(smallModule());
  const Module again = loadModule(bytesOf(first), "first");
  EXPECT_EQ(saveModuleToString(again), first);
  EXPECT_EQ(saveModuleToString(smallModule()), first);
}

TEST(ExportTest, AttributesAndMethodsSurvive) {
  const Module original = smallModule();
  const Module again = loadModule(bytesOf(saveModuleToString(original)), "again");
  EXPECT_EQ(again.methodNames(), original.methodNames());
  const auto before = original.attributes(), after = again.attributes();
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_EQ(before[i].first, after[i].first);
    EXPECT_EQ(before[i].second.tag(), after[i].second.tag()) << before[i].first;
    if (!before[i].second.isTensor()) continue;
    EXPECT_TRUE(before[i].second.equals(after[i].second)) << before[i].first;
  }
  EXPECT_EQ(again.parameters().size(), original.parameters().size());
  EXPECT_EQ(again.buffers().size(), original.buffers().size());
}

TEST(ExportTest, ExtraFilesAreKept) {
  SaveOptions options;
  options.extra_files = {{"notes.txt", "hello"}, {"deep/er.bin", std::string("\0\1", 2)}};
  std::unordered_map<std::string, std::string> extra;
  LoadOptions load;
  load.extra_files = &extra;
  loadModule(bytesOf(saveModuleToString(smallModule(), options)), "extra", load);
  EXPECT_EQ(extra.at("notes.txt"), "hello");
  EXPECT_EQ(extra.at("deep/er.bin"), std::string("\0\1", 2));
  options.extra_files.push_back(options.extra_files[0]);
  EXPECT_THROW(saveModuleToString(smallModule(), options), RuntimeError);
}

}  // namespace
}  // namespace wick

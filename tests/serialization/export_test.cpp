// Saved modules: what is read back, and what a second saving gives.
#include "serialization/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include "core/error.h"
#include "serialization/python_printer.h"
#include "serialization/source_origins.h"
#include "tests/serialization/import_testing.h"

namespace wick::export_test {
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

TEST(ExportTest, PlacesOfTheProgramAreKept) {
  const std::string bytes = saveModuleToString(smallModule());
  ArchiveReader archive(bytesOf(bytes), "saved");
  size_t known = 0;
  for (const std::string& record : archive.records()) {
    if (!record.ends_with(".debug_pkl")) continue;
    for (const SourceMark& mark : readMarks(archive.read(record), record, {})) {
      known += mark.range.valid();
    }
  }
  EXPECT_GT(known, 0u);
}

TEST(ExportTest, DamagedPlacesAreRefusedWhenTheyAreAskedFor) {
  std::string record;
  ArchiveReader archive(bytesOf(contentsOf("small_module.pt")), "small_module.pt");
  for (const std::string& name : archive.records()) {
    if (name.ends_with(".debug_pkl")) record = name;
  }
  ASSERT_FALSE(record.empty());
  const std::string marks(archive.read(record).text());
  // Every text that ends early is refused, none ends the process.
  for (size_t size = 0; size < marks.size(); ++size) {
    EXPECT_THROW(readMarks(bytesOf(marks.substr(0, size)), "cut", {}), LoadError);
  }
  const Module module = loadModule(bytesOf(changed({{record, "garbage"}})), "changed");
  try {
    saveModuleToString(module);
    FAIL() << "accepted";
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), HasSubstr(record));
  }
}

// Ten thousand operators with a tenth as many constants, in a twentieth of the time that the
// sanitizers may take.
TEST(ExportTest, LargeGraphsArePrintedInLinearTime) {
  constexpr int kNodes = 10000;
  GraphFunction function("__torch__.f", std::make_shared<Graph>());
  Graph& graph = *function.graph();
  Value* value = graph.addInput("x", types::Tensor());
  Value* one = graph.insertConstant(IValue(int64_t{1}));
  for (int i = 0; i < kNodes; ++i) {
    Value* other = value;
    if (i % 10 == 0) other = graph.insertConstant(IValue(Tensor::zeros({2}, DType::Float)));
    Node* add = graph.insertNode(graph.create(Symbol::aten("add"), {value, other, one}));
    value = add->output();
    value->setType(types::Tensor());
  }
  graph.registerOutput(value);
  function.setSchema(defaultSchemaFor("f", graph));
  const auto start = std::chrono::steady_clock::now();
  PythonPrinter printer;
  printer.printFunction(function);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
  RecordProperty("milliseconds", std::to_string(time.count()));
  std::printf("%.1f ms\n", time.count());
  EXPECT_LT(time.count(), 2000);
  EXPECT_EQ(printer.constants().size(), kNodes / 10u);
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
}  // namespace wick::export_test

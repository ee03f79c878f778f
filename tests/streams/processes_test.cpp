// Pipelines over processes, here threads, and results in files.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "runtime/call.h"
#include "streams/from_method.h"
#include "streams/processes/kept_items.h"
#include "streams/processes/packet_bytes.h"
#include "streams/processes/run.h"
#include "streams/schedule/plan.h"
#include "tests/error_text.h"
#include "tests/free_port.h"
#include "wick.h"

namespace wick::streams::processes_test {
namespace {

using distributed::Messages;
using std::chrono::seconds;
using testing::HasSubstr;
using testing_errors::errorOf;
using testing_ports::freePort;

std::string temporary(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove(path);
  return path;
}

Tensor numbers(int64_t rows, int64_t columns, int64_t seed) {
  Tensor t = Tensor::empty({rows, columns}, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<float>()[i] = static_cast<float>((i * 7919 + seed * 104729) % 1000) / 1000 - 0.5f;
  }
  return t;
}

bool haveSameBits(const Tensor& a, const Tensor& b) {
  return a.numel() == b.numel() &&
         std::memcmp(a.contiguous().data<float>(), b.contiguous().data<float>(),
                     static_cast<size_t>(a.numel()) * sizeof(float)) == 0;
}

// A program with its stream graph.
struct Streamed {
  explicit Streamed(const std::string& source)
      : text(compile(source)), program(inlinedFunction(text.function("main"), nullptr)) {
    graph = fromMethod(program, nullptr, nullptr);
  }
  Plan plan() const {
    Plan plan;
    for (size_t i = 0; i < graph.filters.size(); ++i) plan.stages.push_back({i, i + 1, 1, 0, 0});
    plan.queue = 2;
    return plan;
  }
  Program text;
  std::shared_ptr<GraphFunction> program;
  StreamGraph graph;
};

const char* const kNet = R"(
def main(x: Tensor, w: Tensor, scale: float) -> Tuple[Tensor, float]:
    a = torch.relu(x @ w) * scale
    b = torch.softmax(a @ w + a, -1)
    c = torch.tanh(b @ w)
    assert float(x[0, 0]) < 100.0, "too large"
    return torch.layer_norm(c @ w + a, [16]), scale * 2.0
)";

// What each process does, with a model of its own. The errors, by process.
std::vector<std::string> together(int size,
                                  const std::function<void(Messages&, const Streamed&)>& work,
                                  const std::vector<std::string>& sources) {
  const uint16_t port = freePort();
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      std::unique_ptr<Messages> messages;
      try {
        messages = std::make_unique<Messages>(
            [&] {
              return distributed::openTcpCarrier({rank, size, "127.0.0.1", port}, seconds(60));
            },
            seconds(60));
        const Streamed net(sources[static_cast<size_t>(rank) % sources.size()]);
        work(*messages, net);
      } catch (const Error& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        if (messages) messages->fail(error.what());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return errors;
}

std::vector<IValue> itemOf(int64_t i) {
  return {numbers(8, 16, i), numbers(16, 16, 1), 0.5 + static_cast<double>(i)};
}

TEST(ProcessPipelineTest, ResultsAreThoseOfCalls) {
  // A kernel adds a sum in another order than an operator does, so no call takes the operator.
  const JitMode before = jitMode();
  setJitMode(JitMode::Sync);
  for (const int size : {2, 3}) {
    const auto errors =
        together(size,
                 [](Messages& messages, const Streamed& net) {
                   if (messages.rank() > 0) return serveProcessPipeline(messages, net.graph);
                   ProcessPipeline pipeline(messages, net.graph, net.plan());
                   // Twice, with other numbers of items.
                   for (const int64_t count : {37, 1, 0}) {
                     std::vector<IValue> results;
                     const RunReport report = pipeline.run(
                         [&](int64_t i) -> std::optional<std::vector<IValue>> {
                           if (i == count) return std::nullopt;
                           return itemOf(i);
                         },
                         [&](int64_t i, IValue result) {
                           EXPECT_EQ(i, static_cast<int64_t>(results.size()));
                           results.push_back(std::move(result));
                         });
                     EXPECT_EQ(report.items, count);
                     ASSERT_EQ(report.stages.size(), net.graph.filters.size());
                     for (const StageTimes& times : report.stages) EXPECT_EQ(times.items, count);
                     ASSERT_EQ(results.size(), static_cast<size_t>(count));
                     for (int64_t i = 0; i < count; ++i) {
                       const IValue once = callFunction(*net.program, itemOf(i));
                       const std::vector<IValue>& got = results[static_cast<size_t>(i)].elements();
                       EXPECT_TRUE(haveSameBits(once.elements()[0].toTensor(), got[0].toTensor()));
                       EXPECT_EQ(once.elements()[1].toDouble(), got[1].toDouble());
                     }
                   }
                 },
                 {kNet});
    EXPECT_THAT(errors, testing::Each(""));
  }
  setJitMode(before);
}

TEST(ProcessPipelineTest, ErrorsNameProcessItemAndStage) {
  const auto errors = together(3,
                               [](Messages& messages, const Streamed& net) {
                                 if (messages.rank() > 0)
                                   return serveProcessPipeline(messages, net.graph);
                                 ProcessPipeline pipeline(messages, net.graph, net.plan());
                                 int64_t results = 0;
                                 PipelineOptions options;
                                 options.first_item = 100;
                                 const std::string error = errorOf([&] {
                                   pipeline.run(
                                       [](int64_t i) -> std::optional<std::vector<IValue>> {
                                         std::vector<IValue> item = itemOf(i);
                                         if (i == 9) item[0].toTensor().data<float>()[0] = 500;
                                         return item;
                                       },
                                       [&](int64_t, IValue) { ++results; }, options);
                                 });
                                 EXPECT_THAT(error, HasSubstr("item 109, stage "));
                                 EXPECT_THAT(error, HasSubstr("too large"));
                                 EXPECT_LE(results, 9);
                               },
                               {kNet});
  EXPECT_THAT(errors[1], HasSubstr("too large"));
  EXPECT_THAT(errors[2], HasSubstr("too large"));
}

TEST(ProcessPipelineTest, AnInterruptEndsIt) {
  // While there are items, and while results are waited for.
  for (const bool at_the_end : {false, true}) {
    const auto errors =
        together(2,
                 [at_the_end](Messages& messages, const Streamed& net) {
                   if (messages.rank() > 0) return serveProcessPipeline(messages, net.graph);
                   ProcessPipeline pipeline(messages, net.graph, net.plan());
                   PipelineOptions options;
                   const auto interrupt = std::make_shared<std::atomic<bool>>(false);
                   options.interrupt = interrupt;
                   EXPECT_THAT(errorOf([&] {
                                 pipeline.run(
                                     [&](int64_t i) -> std::optional<std::vector<IValue>> {
                                       if (at_the_end && i == 1) return std::nullopt;
                                       if (i == 3) interrupt->store(true);
                                       return itemOf(i);
                                     },
                                     [&](int64_t, IValue) {
                                       if (!at_the_end) return;
                                       std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                       interrupt->store(true);
                                       std::this_thread::sleep_for(std::chrono::milliseconds(50));
                                     },
                                     options);
                               }),
                               HasSubstr("the run was interrupted"));
                 },
                 {kNet});
    EXPECT_THAT(errors[1], HasSubstr("the run was interrupted"));
  }
}

TEST(ProcessPipelineTest, WhatReadsAndTakesItemsMayFail) {
  for (const bool source : {true, false}) {
    const auto errors =
        together(2,
                 [&](Messages& messages, const Streamed& net) {
                   if (messages.rank() > 0) return serveProcessPipeline(messages, net.graph);
                   ProcessPipeline pipeline(messages, net.graph, net.plan());
                   EXPECT_THAT(errorOf([&] {
                                 pipeline.run(
                                     [&](int64_t i) -> std::optional<std::vector<IValue>> {
                                       if (source && i == 5) throw UsageError("no item 5");
                                       return itemOf(i);
                                     },
                                     [&](int64_t i, IValue) {
                                       if (!source && i == 5) throw UsageError("no item 5");
                                     });
                               }),
                               HasSubstr("no item 5"));
                 },
                 {kNet});
    EXPECT_THAT(errors[1], HasSubstr("process 0: no item 5"));
  }
}

TEST(ProcessPipelineTest, AnotherModelIsNamed) {
  const auto errors = together(
      2,
      [](Messages& messages, const Streamed& net) {
        if (messages.rank() > 0) return serveProcessPipeline(messages, net.graph);
        ProcessPipeline pipeline(messages, net.graph, net.plan());
        pipeline.run([](int64_t i) -> std::optional<std::vector<IValue>> { return itemOf(i); },
                     [](int64_t, IValue) {});
      },
      {kNet, "def main(x: Tensor) -> Tensor:\n    return torch.erf(torch.sin(x))\n"});
  EXPECT_THAT(errors[0], HasSubstr("process 1: the plan is for another model"));
  EXPECT_THAT(errors[1], HasSubstr("the plan is for another model"));
}

// A process that begins a run by a message that no ProcessPipeline sends.
TEST(ProcessPipelineTest, NumbersThatAreNotWholeAreErrors) {
  for (const char* numbers :
       {R"("first_item": 1e300, "threads": 1)", R"("first_item": 0.5, "threads": 1)",
        R"("first_item": 0, "threads": 1e300)", R"("first_item": 0)"}) {
    const auto errors = together(2,
                                 [&](Messages& messages, const Streamed& net) {
                                   if (messages.rank() > 0)
                                     return serveProcessPipeline(messages, net.graph);
                                   nlohmann::json round =
                                       nlohmann::json::parse("{" + std::string(numbers) + "}");
                                   round["plan"] = planText(net.plan(), net.graph);
                                   constexpr uint32_t kRound = 1;
                                   messages.send(1, kRound, round.dump());
                                   messages.receive(seconds(60));
                                 },
                                 {kNet});
    EXPECT_THAT(errors[1], HasSubstr("without the whole number")) << numbers;
  }
}

TEST(ProcessPipelineTest, StagesAreDealtOut) {
  size_t next = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const StageRange range = stagesOfProcess(7, rank, 3);
    EXPECT_EQ(range.first, next);
    EXPECT_GE(range.last - range.first, 2u);
    next = range.last;
  }
  EXPECT_EQ(next, 7u);
  EXPECT_THAT(errorOf([] { stagesOfProcess(2, 0, 3); }), HasSubstr("expected at least 3 stages"));
}

TEST(PacketBytesTest, TensorsTakeTheirOwnElements) {
  const Tensor all = numbers(1000, 1000, 3);
  const Tensor row = all.narrow(0, 5, 1), column = all.narrow(1, 5, 1);
  const std::string bytes = valueBytes(IValue(makeTuple({row, column, 2, 1.5, "text", row})));
  EXPECT_LT(bytes.size(), 20000u);
  const std::vector<IValue> back = valueOf(bytes, "test").elements();
  EXPECT_TRUE(haveSameBits(back[0].toTensor(), row));
  EXPECT_TRUE(haveSameBits(back[1].toTensor(), column));
  EXPECT_EQ(back[2].toInt(), 2);
  EXPECT_EQ(back[3].toDouble(), 1.5);
  EXPECT_EQ(back[4].repr(), "'text'");
  EXPECT_TRUE(back[0].toTensor().storage() == back[5].toTensor().storage());
  EXPECT_THROW(valueOf(bytes.substr(0, bytes.size() / 2), "test"), Error);
}

const KeptItems::Facts kFacts = {{"model", "a"}, {"--run", "b"}};

TEST(KeptItemsTest, GoOnBehindWhatIsThere) {
  const std::string path = temporary("kept");
  {
    KeptItems kept(path, kFacts);
    EXPECT_EQ(kept.count(), 0);
    for (int64_t i = 0; i < 3; ++i) kept.keep(IValue(numbers(2, 2, i)));
    EXPECT_THAT(errorOf([&] { KeptItems(path, kFacts); }), HasSubstr("another process"));
  }
  KeptItems kept(path, kFacts);
  EXPECT_EQ(kept.count(), 3);
  kept.keep(IValue(makeTuple({3})));
  kept.sync();
  const std::vector<IValue> items = kept.read();
  ASSERT_EQ(items.size(), 4u);
  EXPECT_TRUE(haveSameBits(items[2].toTensor(), numbers(2, 2, 2)));
  EXPECT_EQ(items[3].elements()[0].toInt(), 3);
}

// Wherever the process dies: at each length of the file those items are there that it holds whole.
TEST(KeptItemsTest, WhatIsNotWholeIsCutOff) {
  const std::string path = temporary("kept");
  std::vector<uint64_t> ends;
  {
    KeptItems kept(path, kFacts);
    ends.push_back(std::filesystem::file_size(path));
    for (int64_t i = 0; i < 2; ++i) {
      kept.keep(IValue(numbers(2, 2, i)));
      ends.push_back(std::filesystem::file_size(path));
    }
  }
  const std::string copy = temporary("copy");
  for (uint64_t length = 0; length <= ends[2]; length += length < 40 ? 1 : 37) {
    std::filesystem::remove(copy);
    std::filesystem::copy_file(path, copy);
    std::filesystem::resize_file(copy, length);
    const int64_t whole = length >= ends[2] ? 2 : length >= ends[1] ? 1 : 0;
    KeptItems kept(copy, kFacts);
    ASSERT_EQ(kept.count(), whole) << length;
    kept.keep(IValue(7));
    EXPECT_EQ(kept.read().back().toInt(), 7);
  }
  // A byte that changed on the disk.
  std::filesystem::remove(copy);
  std::filesystem::copy_file(path, copy);
  std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(ends[1]) - 10);
  file.put('#');
  file.close();
  EXPECT_EQ(KeptItems(copy, kFacts).count(), 0);
}

TEST(KeptItemsTest, AFullDiskIsAnError) {
  const std::string path = temporary("kept");
  KeptItems kept(path, kFacts);
  kept.keep(IValue(1));
  // Files may grow by a few bytes only.
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto no_signal = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit now = before;
  now.rlim_cur = std::filesystem::file_size(path) + 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
  EXPECT_THAT(errorOf([&] { kept.keep(IValue(numbers(8, 8, 1))); }),
              HasSubstr("kept: cannot be written: File too large"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, no_signal);
  // What is there is whole.
  EXPECT_EQ(kept.read().size(), 1u);
}

TEST(KeptItemsTest, AFileThatBecomesShorterIsAnError) {
  const std::string path = temporary("kept");
  KeptItems kept(path, kFacts);
  kept.keep(IValue(numbers(8, 8, 1)));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 10);
  EXPECT_THAT(errorOf([&] { kept.read(); }),
              HasSubstr("kept: it became shorter while it was read"));
}

// A file of kept items with these facts, as text, and a version.
std::string headed(const std::string& facts, uint32_t version = 1) {
  const auto bytes = [](auto number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
  };
  const auto checksum =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(facts.data()), facts.size()));
  return "wickkept" + bytes(version) + bytes(checksum) + bytes(uint64_t{facts.size()}) + facts;
}

TEST(KeptItemsTest, WhatDoesNotBeginAsItShouldIsLeftAlone) {
  const std::string path = temporary("kept");
  const auto refused = [&](const std::string& contents) {
    std::ofstream(path, std::ios::binary) << contents;
    const std::string error = errorOf([&] { KeptItems(path, kFacts); });
    std::ostringstream now;
    now << std::ifstream(path, std::ios::binary).rdbuf();
    EXPECT_EQ(now.str(), contents) << "changed";
    return error;
  };
  // The head of a file that holds items, with one bit wrong at a time.
  std::filesystem::remove(path);
  KeptItems(path, kFacts).keep(IValue(1));
  std::ostringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  for (size_t byte = 0; byte < 24; ++byte) {
    std::string wrong = whole.str();
    wrong[byte] ^= 1;
    EXPECT_THAT(refused(wrong), HasSubstr("not a file of kept items")) << byte;
  }
  EXPECT_THAT(refused(headed("{}", 2)), HasSubstr("not a file of kept items"));
  EXPECT_THAT(refused(headed("[]")), HasSubstr("made with another model"));
  EXPECT_THAT(refused(headed(R"({"model": 1)")), HasSubstr("kept: not JSON"));
  // Deep enough to overflow the stack of who writes it into a message.
  const std::string deep(200'000, '[');
  EXPECT_THAT(refused(headed(R"({"model": )" + deep + std::string(deep.size(), ']') + "}")),
              HasSubstr("kept: lists or objects nest too deeply"));
  // Characters of two bytes are not cut in half.
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "ä";
  EXPECT_THAT(refused(headed(R"({"model": ")" + umlauts + R"("})")),
              testing::EndsWith("found \"" + umlauts.substr(0, 58)));
}

TEST(KeptItemsTest, OtherFilesAreLeftAlone) {
  const std::string path = temporary("kept");
  KeptItems(path, kFacts).keep(IValue(1));
  const std::string error = errorOf([&] {
    KeptItems(path, {{"model", "a"}, {"--run", "another"}});
  });
  EXPECT_THAT(error, HasSubstr("made with another --run"));
  EXPECT_THAT(error, HasSubstr("\"another\""));
  EXPECT_EQ(KeptItems(path, kFacts).count(), 1);
  const std::string other = temporary("other");
  std::ofstream(other) << "something else";
  EXPECT_THAT(errorOf([&] { KeptItems(other, kFacts); }), HasSubstr("not a file of kept items"));
  EXPECT_EQ(std::filesystem::file_size(other), 14u);
  EXPECT_THAT(errorOf([&] { KeptItems(testing::TempDir(), kFacts); }),
              HasSubstr("cannot be opened"));
  EXPECT_NE(fileMark(other), fileMark(path));
  EXPECT_THROW(fileMark(temporary("none")), RuntimeError);
}

}  // namespace
}  // namespace wick::streams::processes_test

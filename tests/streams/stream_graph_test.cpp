// Text, arrangement and balance of stream graphs, and overrides.
#include "streams/stream_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "streams/balance.h"
#include "streams/overrides.h"
#include "streams/picture.h"
#include "streams/text.h"
#include "tests/error_text.h"

namespace wick::streams::stream_graph_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_errors::errorOf;

const char* const kResidual = R"(stream "Net.forward" (x : Tensor) -> (z : Tensor) {
  filter conv1d "stem" (x pop 2 peek 9) -> (a : Tensor) {
    stride = [2]
    state weight = float32[8, 4, 9]
  }
  splitjoin {
    split duplicate
    pipeline {
      filter conv1d "one" (a) -> (b : Tensor)
      stateful replicas 2 filter dropout "two" (b) -> (c : Tensor)
    }
    identity a
    join roundrobin(1, 1)
  }
  filter add "add" (c, a) -> (d : Tensor, t : Tuple[int, List[Tensor]] push 2)
  feedback (h) {
    filter cell "cell" (d, h delay 1) -> (h : Tensor)
  }
  network {
    filter f "f \"quoted\"" (h, t pop 2) -> (z : Tensor) {
      text = 'a\nb'
    }
  }
}
)";

TEST(StreamTextTest, ReadsBackWhatItPrints) {
  const StreamGraph graph = parseStream(kResidual);
  EXPECT_EQ(printStream(graph), kResidual);
  ASSERT_EQ(graph.filters.size(), 6u);
  EXPECT_EQ(graph.filters[0].inputs[0].peek, 9);
  EXPECT_EQ(graph.filters[0].options[0].second, "[2]");
  EXPECT_TRUE(graph.filters[2].stateful);
  EXPECT_EQ(graph.filters[2].most_replicas, 2);
  EXPECT_EQ(graph.filters[3].outputs[1].type, "Tuple[int, List[Tensor]]");
  EXPECT_EQ(graph.filters[5].name, "f \"quoted\"");
  EXPECT_EQ(graph.filters[5].options[0].second, "'a\nb'");
}

TEST(StreamTextTest, NamesThePlaceOfMistakes) {
  const auto error = [](const std::string& text) { return errorOf([&] { parseStream(text); }); };
  EXPECT_THAT(error(""), HasSubstr("line 1, column 1: expected 'stream', found the end"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> (y : Tensor) {\n  filtre\n}"),
              HasSubstr("line 2, column 3: expected filter, pipeline"));
  EXPECT_THAT(error("stream \"s\" () -> () {\n  filter f \"f\" (x) -> (y : Tensor)\n}"),
              HasSubstr("filter 'f' reads 'x', which nothing produces"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> () {\n  filter f \"f\" (x pop 0) -> ()\n}"),
              HasSubstr("expected pop and push of at least 1"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> () {\n  filter f \"f\" (y) -> ()\n"
                    "  filter g \"g\" (x) -> (y : Tensor)\n}"),
              HasSubstr("a feedback needs a delay"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> () {\n  filter f \"f\" (x) -> ()\n"
                    "  filter g \"f\" (x) -> ()\n}"),
              HasSubstr("there are two filters 'f'"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> () { splitjoin { split roundrobin(1, 2) "
                    "identity x join roundrobin(1) } }"),
              HasSubstr("a weight in 'split' for each of the 1 branches"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> () { splitjoin { split duplicate "
                    "identity x join roundrobin(1, 1) } }"),
              HasSubstr("a weight in 'join' for each of the 1 branches"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor, x : Tensor) -> () {\n  filter f \"f\" (x) -> ()\n}"),
              HasSubstr("the stream has two inputs 'x'"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> () {\n  filter f \"f\" (x) -> (y : Tensor)\n"
                    "  filter g \"g\" (x) -> (y : Tensor)\n}"),
              HasSubstr("'y' has two producers, the second is filter 'g'"));
  EXPECT_THAT(error("stream \"s\" (x : Tensor) -> (y : Tensor) {\n  filter f \"f\" (x) -> ()\n}"),
              HasSubstr("the stream gives 'y', which nothing produces"));
  std::string deep = "stream \"s\" () -> () {";
  for (int i = 0; i < 10000; ++i) deep += "pipeline {";
  EXPECT_THAT(error(deep), HasSubstr("at most 200 parts within each other"));
}

// Filters of one channel each: "name inputs… > outputs…".
StreamGraph wired(
    const std::vector<std::string>& inputs,
    const std::vector<std::pair<std::vector<std::string>, std::vector<std::string>>>& fs,
    const std::vector<std::string>& outputs) {
  StreamGraph graph;
  graph.name = "s";
  const auto ports = [](const std::vector<std::string>& names) {
    std::vector<Port> list;
    for (const std::string& name : names) list.push_back({name, "Tensor"});
    return list;
  };
  graph.inputs = ports(inputs);
  for (const auto& [in, out] : fs) {
    Filter f;
    f.name = "f" + std::to_string(graph.filters.size());
    f.kind = "f";
    f.inputs = ports(in);
    f.outputs = ports(out);
    graph.filters.push_back(std::move(f));
  }
  graph.outputs = ports(outputs);
  graph.root = arrange(graph);
  validate(graph);
  return graph;
}

TEST(ArrangeTest, PipelinesAndSplitJoins) {
  const std::string residual = printStream(
      wired({"x"}, {{{"x"}, {"a"}}, {{"a"}, {"b"}}, {{"b"}, {"c"}}, {{"c", "a"}, {"d"}}}, {"d"}));
  EXPECT_THAT(residual, HasSubstr("  filter f \"f0\" (x) -> (a : Tensor)\n"
                                  "  splitjoin {\n"
                                  "    split duplicate\n"
                                  "    pipeline {\n"
                                  "      filter f \"f1\" (a) -> (b : Tensor)\n"
                                  "      filter f \"f2\" (b) -> (c : Tensor)\n"
                                  "    }\n"
                                  "    identity a\n"
                                  "    join roundrobin(1, 1)\n"
                                  "  }\n"
                                  "  filter f \"f3\" (c, a) -> (d : Tensor)\n"));
  // Each part of what a filter takes apart goes to a branch of its own.
  const std::string parts = printStream(wired(
      {"x"}, {{{"x"}, {"a", "b"}}, {{"a"}, {"c"}}, {{"b"}, {"d"}}, {{"c", "d"}, {"y"}}}, {"y"}));
  EXPECT_THAT(parts, HasSubstr("split roundrobin(1, 1)"));
  EXPECT_THAT(parts, HasSubstr("join roundrobin(1, 1)"));
}

TEST(ArrangeTest, WhatHasNoFormIsANetwork) {
  // c reads a and b, d reads b and c: no branches.
  const StreamGraph graph = wired(
      {"x"},
      {{{"x"}, {"a"}}, {{"a"}, {"b"}}, {{"a", "b"}, {"c"}}, {{"b", "c"}, {"d"}}, {{"d"}, {"e"}}},
      {"e"});
  const std::string text = printStream(graph);
  EXPECT_THAT(text, HasSubstr("network {"));
  EXPECT_EQ(printStream(parseStream(text)), text);
  EXPECT_THAT(streamDot(graph), HasSubstr("f2 -> f3"));
}

TEST(BalanceTest, FiringsOfARound) {
  const Balance b = balance(parseStream(R"(stream "s" (x : Tensor) -> (z : Tensor) {
    filter up "up" (x) -> (a : Tensor push 3)
    filter down "down" (a pop 2) -> (b : Tensor)
    filter copy "copy" (b) -> (z : Tensor)
  })"));
  EXPECT_EQ(b.input_rounds, 2);
  EXPECT_THAT(b.firings, ElementsAre(2, 3, 3));
  EXPECT_THAT(b.first_firings, ElementsAre(0, 0, 0));
  EXPECT_EQ(b.buffers[1].capacity, 4);
}

TEST(BalanceTest, WindowsAreFilledFirst) {
  const Balance b = balance(parseStream(R"(stream "s" (x : Tensor) -> (z : Tensor) {
    filter fir "one" (x pop 2 peek 9) -> (a : Tensor)
    filter fir "two" (a peek 5) -> (z : Tensor)
  })"));
  EXPECT_THAT(b.firings, ElementsAre(1, 1));
  EXPECT_EQ(b.input_rounds, 2);
  EXPECT_THAT(b.first_firings, ElementsAre(4, 0));
  EXPECT_EQ(b.first_input_rounds, 4 * 2 + 7);
  EXPECT_EQ(b.buffers[0].capacity, 9);
  EXPECT_EQ(b.buffers[1].capacity, 5);
}

TEST(BalanceTest, UnbalancedStreamsAreErrors) {
  const std::string unbalanced = errorOf([] {
    balance(parseStream(R"(stream "s" (x : Tensor) -> (z : Tensor) {
      splitjoin {
        split duplicate
        filter half "half" (x pop 2) -> (a : Tensor)
        filter all "all" (x) -> (b : Tensor)
        join roundrobin(1, 1)
      }
      filter add "add" (a, b) -> (z : Tensor)
    })"));
  });
  EXPECT_THAT(unbalanced, HasSubstr("the stream is unbalanced at '"));
  EXPECT_THAT(unbalanced, HasSubstr("filter 'add' pops 1"));
  const std::string still = errorOf([] {
    balance(parseStream(R"(stream "s" (x : Tensor) -> (h : Tensor) {
      feedback (h) { filter cell "cell" (x, h pop 2 delay 1) -> (h : Tensor push 2) }
    })"));
  });
  EXPECT_THAT(still, HasSubstr("filter 'cell' waits for 2 elements of 'h'"));
  const std::string large = errorOf([] {
    balance(parseStream(R"(stream "s" (x : Tensor) -> (z : Tensor) {
      filter a "a" (x pop 9223372036854775807) -> (y : Tensor push 9223372036854775806)
      filter b "b" (y pop 9223372036854775805) -> (z : Tensor)
    })"));
  });
  EXPECT_THAT(large, HasSubstr("too large"));
}

// Graphs that no text made are looked at before anything is done with them.
TEST(ArrangeTest, FiltersOccurOnce) {
  StreamGraph graph = wired({"x"}, {{{"x"}, {"a"}}, {{"a"}, {"b"}}}, {"b"});
  graph.root.parts.push_back(graph.root.parts[0]);
  EXPECT_THAT(errorOf([&] { validate(graph); }),
              HasSubstr("filter 'f0' occurs 2 times in the arrangement, expected once"));
  graph.filters[1].inputs[0].value = "c";
  EXPECT_THAT(errorOf([&] { balance(graph); }), HasSubstr("nothing produces 'c'"));
}

TEST(BalanceTest, FeedbackWithDelayRuns) {
  const Balance b = balance(parseStream(R"(stream "s" (x : Tensor) -> (h : Tensor) {
    feedback (h) { filter cell "cell" (x, h delay 1) -> (h : Tensor) }
  })"));
  EXPECT_THAT(b.firings, ElementsAre(1));
}

TEST(OverridesTest, ReadsRulesAndRefusesOthers) {
  const Overrides o = parseOverrides(
      R"({"layers": [{"layer": "layer1.*", "grain": "module", "filter_name": "block",
                      "options": ["stride"], "srcs": 1, "stateful": true, "replicas": 3}]})");
  ASSERT_EQ(o.rules.size(), 1u);
  EXPECT_EQ(*o.rules[0].grain, LayerRule::Grain::Module);
  EXPECT_THAT(*o.rules[0].options, ElementsAre("stride"));
  EXPECT_EQ(*o.rules[0].replicas, 3);
  const auto error = [](const char* text) { return errorOf([&] { parseOverrides(text); }); };
  EXPECT_THAT(error("{"), HasSubstr("not JSON"));
  EXPECT_THAT(error("[]"), HasSubstr("the list \"layers\""));
  EXPECT_THAT(error(R"({"layers": [{"layer": "a", "colour": 1}]})"),
              HasSubstr("rule 1: there is no key \"colour\""));
  EXPECT_THAT(error(R"({"layers": [{"layer": "a"}, {"grain": "module"}]})"),
              HasSubstr("rule 2: expected \"layer\", \"class\" or \"operator\""));
  EXPECT_THAT(error(R"({"layers": [{"layer": "a", "replicas": 0}]})"),
              HasSubstr("expected a number from 1"));
  EXPECT_THAT(error(std::string(100000, '[').c_str()), HasSubstr("too deeply"));
  EXPECT_THAT(
      error(R"({"layers": [3]})"),
      HasSubstr("overrides, rule 1: expected an object in the list of \"layers\", found 3"));
  EXPECT_THAT(error(R"({"layers": {"layer": "a"}})"),
              HasSubstr("overrides: expected a list for \"layers\", found {\"layer\":\"a\"}"));
  EXPECT_THAT(error(R"({"layers": [{"layer": ""}]})"),
              HasSubstr("rule 1: expected a text that is not empty for \"layer\", found \"\""));
  EXPECT_THAT(error(R"({"layers": [{"class": ["A"]}]})"),
              HasSubstr("expected a text that is not empty for \"class\", found [\"A\"]"));
  EXPECT_THAT(error(R"({"layers": [{"layer": "a", "options": "stride"}]})"),
              HasSubstr("expected a list of texts for \"options\", found \"stride\""));
  EXPECT_THAT(
      error(R"({"layers": [{"layer": "a", "grain": "fine"}]})"),
      HasSubstr("expected \"module\", \"operators\" or \"before\" for \"grain\", found \"fine\""));
  EXPECT_THAT(error(R"({"layers": [{"layer": "a", "stateful": 1}]})"),
              HasSubstr("expected true or false for \"stateful\", found 1"));
}

TEST(OverridesTest, PatternsWithStars) {
  EXPECT_TRUE(fitsPattern("layer1.*", "layer1.0.conv1"));
  EXPECT_TRUE(fitsPattern("*conv*", "layer1.0.conv1"));
  EXPECT_TRUE(fitsPattern("*", ""));
  EXPECT_FALSE(fitsPattern("layer1.*", "layer2.0"));
  EXPECT_FALSE(fitsPattern("layer1", "layer1.0"));
}

}  // namespace
}  // namespace wick::streams::stream_graph_test

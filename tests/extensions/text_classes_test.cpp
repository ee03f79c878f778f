// torchtext's vocabularies, vectors and regular expressions: in programs, in modules through all
// tiers, in archives, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/run_options.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::text_classes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_errors::errorOf;
using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

constexpr const char* kVocabProgram = R"(
from typing import Dict, List, Optional

def make(tokens: List[str], default: Optional[int]) -> torch.classes.torchtext.Vocab:
    return torch.classes.torchtext.Vocab(tokens, default)

def size(v: torch.classes.torchtext.Vocab) -> int:
    return v.__len__()

def contains(v: torch.classes.torchtext.Vocab, token: str) -> bool:
    return v.__contains__(token)

def index(v: torch.classes.torchtext.Vocab, token: str) -> int:
    return v.__getitem__(token)

def token(v: torch.classes.torchtext.Vocab, i: int) -> str:
    return v.lookup_token(i)

def tokens(v: torch.classes.torchtext.Vocab, i: List[int]) -> List[str]:
    return v.lookup_tokens(i)

def indices(v: torch.classes.torchtext.Vocab, tokens: List[str]) -> List[int]:
    return v.lookup_indices(tokens)

def insert(v: torch.classes.torchtext.Vocab, token: str, i: int) -> List[str]:
    v.insert_token(token, i)
    return v.get_itos()

def append(v: torch.classes.torchtext.Vocab, token: str) -> List[str]:
    v.append_token(token)
    return v.get_itos()

def set_default(v: torch.classes.torchtext.Vocab, i: Optional[int]) -> Optional[int]:
    v.set_default_index(i)
    return v.get_default_index()

def stoi(v: torch.classes.torchtext.Vocab) -> Dict[str, int]:
    return v.get_stoi()
)";

const Program& vocabProgram() {
  static const Program program = compile(kVocabProgram);
  return program;
}
IValue vocabOf(const Strings& tokens, std::optional<int64_t> default_index = {}) {
  return vocabProgram().call("make", {tokens, default_index});
}
IValue ask(const char* function, const IValue& vocab, std::vector<IValue> more = {}) {
  more.insert(more.begin(), vocab);
  return vocabProgram().call(function, std::move(more));
}

// An object of the class that a program makes.
IValue madeBy(const std::string& class_name, const std::string& arguments) {
  const Program p = compile("def f():\n    return torch.classes.torchtext." + class_name + "(" +
                            arguments + ")\n");
  return p.call("f", {});
}

// A module that holds the object, saved.
std::string saved(const IValue& object, const std::string& forward) {
  ModuleBuilder b("Net");
  b.registerAttribute("held", object.toObject().type(), object);
  b.define(forward);
  return b.build().saveToString();
}
Module loaded(const std::string& bytes) {
  return loadFromMemory(std::as_bytes(std::span(bytes)));
}

TEST(TextVocabTest, LooksUpBothWays) {
  const IValue v = vocabOf({"a", "b", "", "naïve"});
  EXPECT_EQ(ask("size", v).toInt(), 4);
  EXPECT_TRUE(ask("contains", v, {"naïve"}).toBool());
  EXPECT_TRUE(ask("contains", v, {""}).toBool());
  EXPECT_FALSE(ask("contains", v, {"c"}).toBool());
  EXPECT_EQ(ask("index", v, {"b"}).toInt(), 1);
  EXPECT_EQ(ask("token", v, {3}).toString(), "naïve");
  EXPECT_EQ(ask("tokens", v, {Ints{2, 0, 0}}).to<Strings>(), (Strings{"", "a", "a"}));
  EXPECT_EQ(ask("indices", v, {Strings{"naïve", "a"}}).to<Ints>(), (Ints{3, 0}));
  const IValue stoi = ask("stoi", v);
  EXPECT_EQ((stoi.to<std::map<std::string, int64_t>>()),
            (std::map<std::string, int64_t>{{"a", 0}, {"b", 1}, {"", 2}, {"naïve", 3}}));
}

TEST(TextVocabTest, WhatIsUnknownHasTheDefaultIndex) {
  const IValue v = vocabOf({"a"});
  EXPECT_THAT(errorOf([&] { ask("index", v, {"x"}); }),
              HasSubstr("Token x not found and default index is not set"));
  EXPECT_THAT(errorOf([&] {
                ask("indices", v, {Strings{"a", "x"}});
              }),
              HasSubstr("Token x not found and default index is not set"));
  EXPECT_EQ(ask("set_default", v, {-7}).toInt(), -7);
  EXPECT_EQ(ask("indices", v, {Strings{"x", "a"}}).to<Ints>(), (Ints{-7, 0}));
  EXPECT_TRUE(ask("set_default", v, {IValue()}).isNone());
  EXPECT_THROW(ask("index", v, {"x"}), RuntimeError);
}

TEST(TextVocabTest, GrowsAtItsEndAndWithin) {
  const IValue v = vocabOf({"a", "c"});
  EXPECT_EQ(ask("insert", v, {"b", 1}).to<Strings>(), (Strings{"a", "b", "c"}));
  EXPECT_EQ(ask("insert", v, {"start", 0}).to<Strings>(), (Strings{"start", "a", "b", "c"}));
  EXPECT_EQ(ask("insert", v, {"end", 4}).to<Strings>(), (Strings{"start", "a", "b", "c", "end"}));
  EXPECT_EQ(ask("append", v, {"last"}).to<Strings>().back(), "last");
  EXPECT_EQ(ask("indices", v, {Strings{"start", "a", "b", "c", "end", "last"}}).to<Ints>(),
            (Ints{0, 1, 2, 3, 4, 5}));
}

TEST(TextVocabTest, ErrorsAreTorchtexts) {
  const IValue v = vocabOf({"a", "b"});
  const auto message = [&](const char* function, std::vector<IValue> arguments) {
    return errorOf([&] { ask(function, v, arguments); });
  };
  EXPECT_THAT(errorOf([] {
                vocabOf({"a", "b", "a"});
              }),
              HasSubstr("Duplicate token found in tokens list: a"));
  EXPECT_THAT(message("append", {"b"}),
              HasSubstr("Token b already exists in the Vocab with index: 1"));
  EXPECT_THAT(message("insert", {"b", 0}), HasSubstr("Token b already exists in the Vocab"));
  EXPECT_THAT(message("insert", {"c", 3}),
              HasSubstr("Specified index 3 is out of bounds for vocab of size 2"));
  EXPECT_THAT(message("insert", {"c", -1}),
              HasSubstr("Specified index -1 is out of bounds for vocab of size 2"));
  EXPECT_THAT(message("token", {2}),
              HasSubstr("Specified index 2 is out of bounds for vocab of size 2"));
  EXPECT_THAT(
      message("tokens", {Ints{0, INT64_MIN}}),
      HasSubstr("Specified index -9223372036854775808 at position 1 is out of bounds for vocab"));
  EXPECT_EQ(ask("size", v).toInt(), 2);
}

// As torchtext.vocab.Vocab and a classifier behind it are scripted.
constexpr const char* kClassifier = R"(
def forward(self, lines: List[List[str]]) -> Tensor:
    rows: List[Tensor] = []
    for line in lines:
        ids = torch.tensor(self.held.lookup_indices(line))
        rows.append(torch.relu(ids.to(torch.float32) * 2.0 - 1.0).sum())
    return torch.stack(rows)
)";

TEST(TextVocabTest, InModulesThroughAllTiers) {
  const Module module = loaded(saved(vocabOf({"<unk>", "good", "bad", "film"}, 0), kClassifier));
  const std::vector<Strings> lines = {{"good", "film"}, {"a", "bad", "film"}, {}};
  for (int call = 0; call < 8; ++call) {
    const Tensor scores = module({lines}).tensor();
    EXPECT_THAT((std::vector<float>(scores.span<float>().begin(), scores.span<float>().end())),
                ElementsAre(6, 8, 0));
  }
}

TEST(TextVocabTest, ArchivesHoldThem) {
  for (const std::optional<int64_t> default_index : {std::optional<int64_t>(), {2}}) {
    const std::string bytes = saved(vocabOf({"x", "", "ü"}, default_index), kClassifier);
    const Module copy = loaded(bytes);
    const IValue held = copy.attr("held");
    EXPECT_EQ(ask("tokens", held, {Ints{0, 1, 2}}).to<Strings>(), (Strings{"x", "", "ü"}));
    EXPECT_EQ(copy.saveToString(), bytes);
    if (default_index) {
      EXPECT_EQ(ask("index", held, {"nothing"}).toInt(), 2);
    } else {
      EXPECT_THROW(ask("index", held, {"nothing"}), RuntimeError);
    }
  }
}

// An endless program that makes objects and fills one ends at its limits.
TEST(TextVocabTest, CountsAgainstTheLimits) {
  const Program p = compile(R"(
def grow() -> int:
    v = torch.classes.torchtext.Vocab(["a"], None)
    i = 0
    while True:
        v.append_token("x" * 1000 + str(i))
        i += 1
    return i
)");
  RunOptions options;
  options.max_memory = size_t{20} << 20;
  EXPECT_THROW(p.call("grow", {}, {}, options), RuntimeError);
}

TEST(TextVectorsTest, HasAVectorForEachToken) {
  const Program p = compile(R"(
from typing import List, Tuple

def f() -> Tuple[Tensor, Tensor, int, int]:
    table = torch.tensor([[1., 2.], [3., 4.]])
    v = torch.classes.torchtext.Vectors(["a", "b"], [1, 0], table, torch.tensor([9., 9.]))
    none = v.__len__()
    found = v.lookup_vectors(["a", "x", "b", "a"])
    v.__setitem__("a", torch.tensor([5., 6.]))
    v.__setitem__("c", torch.tensor([7., 8.]))
    return found, v.lookup_vectors(["a", "b", "c"]), none, v.__len__()

def out_of_range() -> Tensor:
    v = torch.classes.torchtext.Vectors(["a"], [7], torch.ones(2, 2), torch.ones(2))
    return v.__getitem__("a")

def mismatch():
    torch.classes.torchtext.Vectors(["a"], [0, 1], torch.ones(2, 2), torch.ones(2))

def twice():
    torch.classes.torchtext.Vectors(["a", "a"], [0, 1], torch.ones(2, 2), torch.ones(2))

def scalar():
    v = torch.classes.torchtext.Vectors([], [], torch.ones([]), torch.ones(2))
    v.__setitem__("a", torch.ones(2))
)");
  for (int call = 0; call < 3; ++call) {
    const IValue result = p.call("f", {});
    const std::vector<IValue>& parts = result.elements();
    const Tensor first = parts[0].tensor(), second = parts[1].tensor();
    EXPECT_THAT(first.span<float>(), ElementsAre(3, 4, 9, 9, 1, 2, 3, 4));
    EXPECT_THAT(second.span<float>(), ElementsAre(5, 6, 1, 2, 7, 8));
    EXPECT_EQ(parts[2].toInt(), 0);
    EXPECT_EQ(parts[3].toInt(), 3);
  }
  EXPECT_THAT(errorOf([&] { p.call("out_of_range", {}); }), HasSubstr("out of range"));
  EXPECT_THAT(errorOf([&] { p.call("mismatch", {}); }),
              HasSubstr("Mismatching sizes for tokens and indices. Size of tokens: 1, size of "
                        "indices: 2."));
  EXPECT_THAT(errorOf([&] { p.call("twice", {}); }),
              HasSubstr("Duplicate token found in tokens list: a"));
  EXPECT_THROW(p.call("scalar", {}), RuntimeError);
}

TEST(TextVectorsTest, ArchivesHoldThem) {
  const IValue v = madeBy("Vectors", "['a', 'b'], [1, 0], torch.eye(2), torch.zeros(2)");
  const std::string bytes = saved(v, R"(
def forward(self, words: List[str]) -> Tensor:
    return self.held.lookup_vectors(words)
)");
  const Module copy = loaded(bytes);
  EXPECT_THAT(copy({Strings{"a", "?", "b"}}).tensor().span<float>(), ElementsAre(0, 1, 0, 0, 1, 0));
  EXPECT_EQ(loaded(copy.saveToString())({Strings{"a"}}).tensor().span<float>()[1], 1);
}

Strings split(const std::string& arguments, const std::string& text) {
  const Program p =
      compile("def f(text: str):\n    return torch.classes.torchtext.RegexTokenizer(" + arguments +
              ").forward(text)\n");
  return p.call("f", {text}).to<Strings>();
}

std::string sub(const std::string& pattern, const std::string& text, const std::string& with) {
  static const Program p = compile(R"(
def f(pattern: str, text: str, replacement: str) -> str:
    return torch.classes.torchtext.Regex(pattern).Sub(text, replacement)
)");
  return p.call("f", {pattern, text, with}).toString();
}

// The patterns that torchtext's basic_english_normalize has, on its example.
TEST(TextRegexTest, NormalizesEnglish) {
  const std::string arguments =
      "['\\\\\\'', '\\\\\"', '\\\\.', '<br \\\\/>', ',', '\\\\(', '\\\\)', '\\\\!', '\\\\?', "
      "'\\\\;', '\\\\:', '\\\\s+'], "
      "[\" '  \", '', ' . ', ' ', ' , ', ' ( ', ' ) ', ' ! ', ' ? ', ' ', ' ', ' '], True";
  EXPECT_EQ(split(arguments, "Basic English Normalization for a Line of Text"),
            (Strings{"basic", "english", "normalization", "for", "a", "line", "of", "text"}));
  EXPECT_EQ(split(arguments, "It's \"FINE\", (really)<br />Yes!; no?"),
            (Strings{"it", "'", "s", "fine", ",", "(", "really", ")", "yes", "!", "no", "?"}));
  EXPECT_EQ(split("[], [], False", "  One  two "), (Strings{"One", "two"}));
  EXPECT_EQ(split("[], [], True", ""), Strings());
}

TEST(TextRegexTest, ReplacesAllMatches) {
  EXPECT_EQ(sub("b+", "abbbcb", "x"), "axcx");
  EXPECT_EQ(sub("(\\w+) (\\w+)", "one two, three four", "\\2-\\1"), "two-one, four-three");
  // Empty matches, as RE2's own tests have them.
  EXPECT_EQ(sub("a*", "baac", "(\\0)"), "()b(aa)c()");
  EXPECT_EQ(sub("b*", "foo", "bar"), "barfbarobarobar");
  EXPECT_EQ(sub("", "äb", "-"), "-ä-b-");
  EXPECT_EQ(sub("^", "ab", "x"), "xab");
  EXPECT_EQ(sub("x*", std::string("\xff\xc3", 2), "-"), "-\xff-\xc3-");
  EXPECT_EQ(sub("[[:cntrl:]]", std::string("a\0b", 3), "0"), "a0b");
}

TEST(TextRegexTest, HostilePatternsEndSoon) {
  EXPECT_THAT(errorOf([] { sub("(?=a)", "a", "b"); }), HasSubstr("Regex: the pattern '(?=a)'"));
  EXPECT_THROW(sub("(", "a", "b"), RuntimeError);
  EXPECT_THROW(sub("((a{1000}){1000}){1000}", "a", "b"), RuntimeError);
  EXPECT_THAT(errorOf([] { sub("a", "a", "\\1"); }), HasSubstr("the replacement '\\1'"));
  EXPECT_THAT(errorOf([] { split("['a'], [], False", ""); }),
              HasSubstr("Expected `patterns` and `replacements` to have same size!"));
  // Exponential for an engine that goes back.
  EXPECT_EQ(sub("(a*)*b", std::string(100000, 'a'), "x"), std::string(100000, 'a'));
  // Each pattern makes the text a hundred times as long.
  std::string patterns, replacements;
  for (int i = 0; i < 10; ++i) {
    patterns += "'a',";
    replacements += "'" + std::string(100, 'a') + "',";
  }
  EXPECT_THROW(split("[" + patterns + "], [" + replacements + "], False", "a"), RuntimeError);
}

// Matches that a replacement repeats, and a search that takes each byte for each instruction.
TEST(TextRegexTest, HostileReplacementsAreBounded) {
  std::string same;
  for (int i = 0; i < 100000; ++i) same += "\\0";
  EXPECT_THAT(errorOf([&] { sub("a*", std::string(100000, 'a'), same); }),
              HasSubstr("Regex: a text of 10000000000 bytes is too long"));
  const Program program = compile(R"(
def main(pattern: str, size: int) -> int:
    return len(torch.classes.torchtext.Regex(pattern).Sub("a" * size, "\\1"))
)",
                                  "slow.py");
  RunOptions options;
  const std::string slow = "((a?){1,30}){1,30}b";
  const auto begin = std::chrono::steady_clock::now();
  options.deadline = begin + std::chrono::milliseconds(500);
  EXPECT_EQ(program.call("main", {slow, 10}, {}, options).toInt(), 10);
  EXPECT_THROW(program.call("main", {slow, 10'000'000}, {}, options), RuntimeError);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

TEST(TextRegexTest, ArchivesHoldThem) {
  const IValue tokenizer = madeBy("RegexTokenizer", "['b'], [' '], True");
  const std::string bytes = saved(tokenizer, R"(
def forward(self, text: str) -> List[str]:
    return self.held.forward(text)
)");
  const Module copy = loaded(bytes);
  EXPECT_EQ(copy({"ABcb D"}).to<Strings>(), (Strings{"a", "c", "d"}));
  EXPECT_EQ(copy.saveToString(), bytes);
  const std::string regex = saved(madeBy("Regex", "'[0-9]+'"), R"(
def forward(self, text: str) -> str:
    return self.held.Sub(text, '#')
)");
  EXPECT_EQ(loaded(regex)({"a12b3"}).toString(), "a#b#");
}

}  // namespace
}  // namespace wick::text_classes_test

// torchtext's tokenizers against results worked out by hand and published examples of their
// algorithms, in archives, and with hostile tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/run_options.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::text_encoders_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_errors::errorOf;
using Strings = std::vector<std::string>;
using Ints = std::vector<int64_t>;

Module loaded(const std::string& bytes) {
  return loadFromMemory(std::as_bytes(std::span(bytes)));
}

std::string utf8(int c) {
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
}

// GPT-2's texts for bytes: what can be printed stands for itself, the others for letters behind
// U+0100 in order.
std::vector<std::string> byteTexts() {
  std::vector<std::string> texts;
  int next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool shown = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    texts.push_back(utf8(shown ? b : next++));
  }
  return texts;
}

// Each argument of the encoders, as a program makes them of lists.
struct Tables {
  Strings tokens;  // numbered in order
  Strings merges;  // "l o", in order
  std::string separator = "\x01";
  Strings bytes = byteTexts();
};

const Program& encoderProgram() {
  static const Program program = compile(R"(
from typing import Dict, List, Tuple

def tables(tokens: List[str], merges: List[str], separator: str, bytes: List[str]
           ) -> Tuple[Dict[str, int], Dict[str, int], str, Dict[int, str]]:
    numbers: Dict[str, int] = {}
    for i, token in enumerate(tokens):
        numbers[token] = i
    ranks: Dict[str, int] = {}
    for i, merge in enumerate(merges):
        ranks[merge.replace(' ', separator)] = i
    texts: Dict[int, str] = {}
    for i, byte in enumerate(bytes):
        texts[i] = byte
    return numbers, ranks, separator, texts

def gpt2(t: Tuple[Dict[str, int], Dict[str, int], str, Dict[int, str]]
         ) -> torch.classes.torchtext.GPT2BPEEncoder:
    return torch.classes.torchtext.GPT2BPEEncoder(t[0], t[1], t[2], t[3], False)

def clip(t: Tuple[Dict[str, int], Dict[str, int], str, Dict[int, str]]
         ) -> torch.classes.torchtext.CLIPEncoder:
    return torch.classes.torchtext.CLIPEncoder(t[0], t[1], t[2], t[3], False)

def gpt2_encode(e: torch.classes.torchtext.GPT2BPEEncoder, text: str) -> List[int]:
    return e.encode(text)

def gpt2_tokenize(e: torch.classes.torchtext.GPT2BPEEncoder, text: str) -> List[str]:
    return e.tokenize(text)

def gpt2_decode(e: torch.classes.torchtext.GPT2BPEEncoder, numbers: List[int]) -> str:
    return e.decode(numbers)

def gpt2_special(e: torch.classes.torchtext.GPT2BPEEncoder, standard: Dict[str, str],
                 more: List[str]) -> int:
    return e.add_special_tokens(standard, more)

def clip_encode(e: torch.classes.torchtext.CLIPEncoder, text: str) -> List[int]:
    return e.encode(text)

def clip_tokenize(e: torch.classes.torchtext.CLIPEncoder, text: str) -> List[str]:
    return e.tokenize(text)

def words(text: str) -> List[str]:
    return torch.ops.torchtext.gpt2_bpe_pre_tokenizer(text)
)");
  return program;
}
IValue call(const char* function, std::vector<IValue> arguments) {
  return encoderProgram().call(function, std::move(arguments));
}
IValue encoderOf(const char* kind, const Tables& t) {
  return call(kind, {call("tables", {t.tokens, t.merges, t.separator, t.bytes})});
}

// "low lower newest": the merges of the paper on byte pair encoding, and the space as a part of
// words, which is how GPT-2 has it.
Tables smallGpt2() {
  Tables t;
  t.tokens = byteTexts();
  t.merges = {"l o", "lo w", "e r", "Ġ low", "n e", "ne w"};
  for (const char* token : {"lo", "low", "er", "Ġlow", "ne", "new", "<|endoftext|>"}) {
    t.tokens.push_back(token);
  }
  return t;
}

TEST(TextGpt2Test, SeparatesWords) {
  const auto words = [](const std::string& text) { return call("words", {text}).to<Strings>(); };
  EXPECT_EQ(words("Hello World!, how are you?"),
            (Strings{"Hello", " World", "!,", " how", " are", " you", "?"}));
  EXPECT_EQ(words("I'm sure they'll've said it'd do"),
            (Strings{"I", "'m", " sure", " they", "'ll", "'ve", " said", " it", "'d", " do"}));
  // Whitespace before a word gives it its last space.
  EXPECT_EQ(words("multi      space"), (Strings{"multi", "     ", " space"}));
  EXPECT_EQ(words("a \t\n b\n\nc  "), (Strings{"a", " \t\n", " b", "\n", "\n", "c", "  "}));
  EXPECT_EQ(words("x\v y"), (Strings{"x", "\v", " y"}));
  EXPECT_EQ(words("Hélló  WoŕlḊ¿ 3½"), (Strings{"Hélló", " ", " WoŕlḊ", "¿", " 3½"}));
  EXPECT_EQ(words("日本語2024年"), (Strings{"日本語", "2024", "年"}));
  EXPECT_EQ(words(""), Strings());
  EXPECT_EQ(words("a\xff\xfe"
                  "b"),
            (Strings{"a", "b"}));
}

TEST(TextGpt2Test, JoinsByRank) {
  const IValue e = encoderOf("gpt2", smallGpt2());
  const auto tokens = [&](const std::string& text) {
    return call("gpt2_tokenize", {e, text}).to<Strings>();
  };
  EXPECT_EQ(tokens("low"), (Strings{"low"}));
  EXPECT_EQ(tokens("low lower newer"), (Strings{"low", "Ġlow", "er", "Ġ", "new", "er"}));
  EXPECT_EQ(tokens("lolo"), (Strings{"lo", "lo"}));
  EXPECT_EQ(tokens("é"), (Strings{"Ã", "©"}));
  EXPECT_EQ(call("gpt2_encode", {e, "low lower"}).to<Ints>(), (Ints{257, 259, 258}));
  EXPECT_EQ(call("gpt2_encode", {e, ""}).to<Ints>(), Ints());
  for (const char* text : {"low lower newer", "Hélló  WoŕlḊ¿", "a\n\tb", ""}) {
    const IValue numbers = call("gpt2_encode", {e, text});
    EXPECT_EQ(call("gpt2_decode", {e, numbers}).toString(), text);
  }
}

// Pairs are joined from the left, and a round ends before the next pair is chosen.
TEST(TextGpt2Test, JoinsFromTheLeft) {
  Tables t;
  t.tokens = {"a", "aa", "aaa", "aaaa", "b", "ab", "aab"};
  t.merges = {"a a", "a b", "aa aa"};
  const IValue e = encoderOf("gpt2", t);
  const auto tokens = [&](const std::string& text) {
    return call("gpt2_tokenize", {e, text}).to<Strings>();
  };
  EXPECT_EQ(tokens("aaa"), (Strings{"aa", "a"}));
  EXPECT_EQ(tokens("aaab"), (Strings{"aa", "ab"}));
  EXPECT_EQ(tokens("aaaaa"), (Strings{"aaaa", "a"}));
  EXPECT_EQ(tokens("aaaaaaab"), (Strings{"aaaa", "aa", "ab"}));
}

TEST(TextGpt2Test, SpecialTokensStayWhole) {
  Tables t = smallGpt2();
  const IValue e = encoderOf("gpt2", t);
  const std::map<std::string, std::string> standard = {{"unk_token", "<|endoftext|>"},
                                                       {"sep_token", "[SEP]"}};
  const auto add = [&](const std::map<std::string, std::string>& roles, const Strings& more) {
    return call("gpt2_special", {e, roles, more}).toInt();
  };
  EXPECT_EQ(add(standard, {"NOW"}), 2);
  EXPECT_EQ(add(standard, {"NOW", "THEN"}), 1);
  EXPECT_EQ(
      call("gpt2_tokenize", {e, "<|endoftext|> low NOW [SEP]low [SPAM]"}).to<Strings>(),
      (Strings{"<|endoftext|>", "low", "NOW", "[SEP]", "low", "Ġ", "[", "S", "P", "A", "M", "]"}));
  const auto n = static_cast<int64_t>(t.tokens.size());
  EXPECT_EQ(call("gpt2_encode", {e, "low NOW <|endoftext|>THEN[SEP]"}).to<Ints>(),
            (Ints{257, n + 1, n - 1, n + 2, n}));
  EXPECT_EQ(call("gpt2_decode", {e, Ints{257, n + 1, n - 1, 257}}).toString(),
            "low NOW <|endoftext|> low");
  EXPECT_THAT(errorOf([&] { add({}, {""}); }), HasSubstr("a special token is empty"));
  EXPECT_THAT(errorOf([&] { add({}, {"C++"}); }), HasSubstr("cannot be read"));
  EXPECT_THAT(errorOf([&] { add({}, {"z*"}); }), HasSubstr("no error"));
  EXPECT_THAT(errorOf([&] {
                call("gpt2_tokenize", {e, "low"});
              }),
              HasSubstr("a special token is found where no text is"));
}

TEST(TextGpt2Test, WhatTheTablesLackIsAnError) {
  Tables t = smallGpt2();
  t.tokens.pop_back();
  t.tokens.pop_back();
  const IValue e = encoderOf("gpt2", t);
  EXPECT_THAT(errorOf([&] {
                call("gpt2_encode", {e, "new"});
              }),
              HasSubstr("Argument passed to at() was not in the map: token 'new'"));
  EXPECT_THAT(errorOf([&] {
                call("gpt2_decode", {e, Ints{9999}});
              }),
              HasSubstr("Argument passed to at() was not in the map: token number 9999"));
  t.bytes.resize('b');
  EXPECT_THAT(errorOf([&] {
                call("gpt2_tokenize", {encoderOf("gpt2", t), "ab"});
              }),
              HasSubstr("Argument passed to at() was not in the map: byte 98"));
  t.separator = "";
  EXPECT_THAT(errorOf([&] { encoderOf("gpt2", t); }), HasSubstr("`seperator` not to be empty"));
}

TEST(TextGpt2Test, HostileTablesEndSoon) {
  // torchtext never ends with the first two: a merge that is found and joins nothing.
  Tables t;
  t.tokens = {"a"};
  t.bytes.assign(256,
                 "a\x01"
                 "a");
  t.merges = {"a a",
              "a\x01"
              "a a\x01"
              "a"};
  EXPECT_EQ(call("gpt2_tokenize", {encoderOf("gpt2", t), "xy"}).to<Strings>().size(), 2u);
  t.bytes.assign(256, "");
  t.merges = {" ", "a "};
  EXPECT_EQ(call("gpt2_tokenize", {encoderOf("gpt2", t), "xyz"}).to<Strings>(), (Strings{""}));
  // Quadratic when each merge looks at the whole word.
  Tables chain;
  std::string text = "a";
  for (int i = 0; i < 2000; ++i) {
    chain.merges.push_back(text + " a");
    text += "a";
  }
  RunOptions options;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const IValue e = encoderOf("gpt2", chain);
  const IValue tokens =
      encoderProgram().call("gpt2_tokenize", {e, std::string(1000000, 'a')}, {}, options);
  EXPECT_EQ(tokens.size(), 500000);
  // A word that becomes longer than memory may.
  Tables wide;
  wide.bytes.assign(256, std::string(1 << 20, 'x'));
  options.max_memory = size_t{64} << 20;
  EXPECT_THROW(
      encoderProgram().call("gpt2_tokenize", {encoderOf("gpt2", wide), std::string(100000, 'a')},
                            {}, options),
      RuntimeError);
}

Tables smallClip() {
  Tables t;
  t.tokens = byteTexts();
  for (const std::string& byte : byteTexts()) t.tokens.push_back(byte + "</w>");
  t.merges = {"l o", "lo w</w>", "lo w", "e r</w>", "low er</w>"};
  for (const char* token :
       {"lo", "low</w>", "low", "er</w>", "lower</w>", "<|startoftext|>", "<|endoftext|>"}) {
    t.tokens.push_back(token);
  }
  return t;
}

TEST(TextClipTest, WordsHaveEnds) {
  const IValue e = encoderOf("clip", smallClip());
  const auto tokens = [&](const std::string& text) {
    return call("clip_tokenize", {e, text}).to<Strings>();
  };
  EXPECT_EQ(tokens("low lower\tlo"), (Strings{"low</w>", "lower</w>", "l", "o</w>"}));
  EXPECT_EQ(tokens("<|startoftext|>low!, 42 it's<|endoftext|>"),
            (Strings{"<|startoftext|>", "low</w>", "!", ",</w>", "4</w>", "2</w>", "i", "t</w>",
                     "'", "s</w>", "<|endoftext|>"}));
  // Without regard to case it is one word, but not the mark.
  EXPECT_EQ(tokens("<|ENDOFTEXT|>").front(), "<");
  EXPECT_EQ(tokens(" \n"), Strings());
  EXPECT_EQ(call("clip_encode", {e, "lower <|endoftext|> x"}).to<Ints>(),
            (Ints{516, 518, 256 + 'x'}));
}

// data/torchtext.pt was written by PyTorch 1.13: a scripted module that holds an object of each
// class, with the states that torchtext gives them.
TEST(TextArchiveTest, WhatPyTorchWroteIsLoadedAndSavedAgain) {
  std::ifstream file("tests/extensions/data/torchtext.pt", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  Module module = loaded(bytes);
  for (int round = 0; round < 2; ++round) {
    const std::vector<IValue> parts = module({"Good film. 12 x UNAFFABLE [SEP] low"}).elements();
    EXPECT_EQ(parts[3].to<Strings>(),
              (Strings{"good", "film", ".", "12", "x", "unaffable", "[sep]", "low"}));
    EXPECT_EQ(parts[0].to<Ints>(), (Ints{1, 3, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(parts[1].tensor().span<float>()[8], 3);
    EXPECT_EQ(parts[2].toString(), "Good film. # x UNAFFABLE [SEP] low");
    EXPECT_EQ(parts[7].to<Strings>(), (Strings{"[UNK]", "[UNK]", "[UNK]", "[UNK]", "[UNK]", "un",
                                               "##aff", "##able", "[SEP]", "[UNK]"}));
    EXPECT_EQ(parts[6].to<Ints>(), (Ints{0, 0, 0, 0, 0, 1, 2, 3, 4, 0}));
    const std::vector<IValue> sizes = module.run("sizes", {"bad"}).elements();
    EXPECT_EQ(sizes[0].toInt(), 2);
    EXPECT_EQ(sizes[1].toInt(), 2);
    EXPECT_TRUE(sizes[2].toBool());
    module = loaded(module.saveToString());
  }
}

}  // namespace
}  // namespace wick::text_encoders_test

// An entry: one way to run a frame that was captured, for as long as its guards hold.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capture/bytecode/frame.h"
#include "capture/effects/recipe.h"
#include "capture/guards/source.h"
#include "capture/open_sizes.h"
#include "capture/world.h"

namespace wick::capture {

struct Entry {
  GuardTree guards;
  // The world that the graph belongs to, and its state() when it was captured.
  const World* world = nullptr;
  int64_t state = 0;
  std::optional<int64_t> autocast;       // its autocast(), where the entry depends on that
  std::shared_ptr<CapturedGraph> graph;  // null: no operators
  std::vector<int> inputs;               // registers
  std::set<int> arrays;                  // those of them that hold arrays of numpy
  Recipe recipe;
  // The frame runs plainly when the guards hold.
  bool plain = false;
  // The register of the value that the frame returns, -1 if a continuation follows.
  int value = -1;
  // The continuation: its code, the registers of the cells of its closure and of its arguments.
  Object continuation;
  std::vector<int> cells;
  std::vector<int> arguments;
  // Why the graph ended, and where: empty if it did not.
  std::string break_reason;
  std::string break_file;
  int break_line = 0;
  bool raises = false;  // the graph ended because the program raises an exception
  int64_t hits = 0;
  // The sizes that elements decide are supposed to be those of the call that was captured.
  bool guesses_all = false;
  // Some branches are supposed not to raise; the graph tells when one does.
  bool expects = false;
  // The open sizes. With `checks_sizes` each new combination of them is evaluated before it runs: a
  // graph that writes must not fail on its way.
  std::map<SizePlace, int> size_symbols;
  bool checks_sizes = false;
  std::set<std::vector<int64_t>> checked_sizes;

  // Returns whether guesses about sizes and branches are wrong too often for the entry to be worth it.
  bool isOftenWrong() const {
    const int64_t wrong = graph ? graph->numWrongGuesses() : 0;
    return wrong > 0 && 4 * wrong > hits;
  }
  // Returns whether the entry may be used; `registers` gets what the guards kept.
  bool matches(const FrameRoots& roots, std::vector<Object>& registers) const;
  // Returns the tensors that the graph is called with. Throws PythonError.
  std::vector<Object> tensorsFrom(const std::vector<Object>& registers) const;
  // Runs the entry. Returns the value of the frame (a new reference), null with an exception set, or
  // nothing if the frame is to run plainly.
  std::optional<PyObject*> run(FrameView frame, std::vector<Object>& registers) const;
  // Returns guards, graph and recipe as text.
  std::string text() const;
};

// Returns the roots of a frame that starts.
FrameRoots rootsOf(FrameView frame);

}  // namespace wick::capture

#include "capture/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <unordered_map>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/frame.h"
#include "capture/resume/continuation.h"
#include "capture/values/builtin.h"
#include "capture/values/function.h"
#include "capture/values/generator.h"

namespace wick::capture {
namespace {

constexpr int kMaxAttempts = 30;
// So many of them may run a graph to find the sizes that elements decide: the others end it earlier.
constexpr int kMaxSizeAttempts = 20;

// Continuations by root code. They keep their code.
Continuations& continuationsOf(PyCodeObject* code) {
  static auto& known = *new std::unordered_map<PyObject*, std::unique_ptr<Continuations>>;
  auto& found = known[reinterpret_cast<PyObject*>(code)];
  if (!found) found = std::make_unique<Continuations>(code);
  return *found;
}

// A place to end the graph at: before the root frame's step `number`.
struct Stop {
  int64_t number = -1;  // none
  std::string reason;
  bool raises = false;  // the program raises an exception there
};

// Runs the entry's graph for the sizes that elements decide, and takes them as hints. Returns whether
// there are more than before.
bool takeMeasuredSizes(FrameView frame, const Entry& entry, SizeSettings& sizes) {
  std::vector<Object> registers;
  if (!entry.graph || entry.graph->writes() || !entry.matches(rootsOf(frame), registers)) {
    return false;
  }
  const std::shared_ptr<void> kept = entry.world->keepState();
  std::vector<int64_t> found = entry.graph->measured(entry.tensorsFrom(registers));
  const SizeTable& table = entry.guards.sizes();
  if (found.size() != static_cast<size_t>(table.numSymbols())) return false;
  found.resize(table.numBeforeWrongGuess(found));
  if (found.size() <= sizes.hints.size()) return false;
  sizes.hints = std::move(found);
  return true;
}

// One evaluation of the frame from its start.
class Attempt {
 public:
  Attempt(const World& world, FrameView frame, const Stop& stop, const SizeSettings& sizes)
      : frame_(frame), stop_(stop), roots_(rootsOf(frame)), capture_(world, roots_, sizes) {}

  // Returns the entry. Throws GraphBreak, with failedStep() set; Raised if the frame raises.
  std::unique_ptr<Entry> run() {
    PyObject* const function = reinterpret_cast<PyObject*>(frame_.function());
    auto* const variable = capture_.as<FunctionVariable>(
        capture_.read(capture_.guards.root(Access::kFunction), function));
    if (!variable) breakGraph("the frame has no function");
    EvalFrame frame(capture_, variable, nullptr);
    for (int i = 0; i < frame_.slotCount(); ++i) {
      PyObject* const object = frame_.slot(i);
      if (!object) continue;
      Source* const source = capture_.guards.root(
          Access::kSlot, i, frame.code->slots[static_cast<size_t>(i)].name.get());
      frame.slots[static_cast<size_t>(i)] = capture_.read(source, object);
    }
    while (frame.status == EvalFrame::Status::kRunning) {
      if (steps_ == stop_.number) return finish(frame);
      capture_.root_step = steps_;
      frame.step();
      ++steps_;
    }
    return finish(frame);
  }

  // Returns an entry that runs the frame plainly, for as long as the guards hold that
  // were added so far.
  std::unique_ptr<Entry> plain(const std::string& reason) {
    auto entry = std::make_unique<Entry>();
    entry->plain = true;
    entry->break_reason = reason;
    entry->raises = stop_.raises;
    capture_.guards.finish();
    entry->guards.take(capture_.guards);
    return entry;
  }

  // Finds what the sizes are that elements decide, as far as the graph has come, for the hints of the next
  // attempt. Returns whether there are more than before. Nothing can be done with the attempt then.
  bool findSizes(FrameView frame, SizeSettings& sizes) {
    if (!capture_.guards.sizes().hasAnyDecided() || capture_.left_branch) return false;
    Entry entry;
    try {
      addInputs(entry);
      entry.graph = capture_.recording->finish({});
      entry.world = &world();
      entry.state = world().state();
      capture_.guards.finish();
      entry.guards.take(capture_.guards);
    } catch (const GraphBreak&) {
      return false;
    }
    return takeMeasuredSizes(frame, entry, sizes);
  }

  // Sets the stop for the next attempt. Returns an entry if there can be none.
  std::unique_ptr<Entry> endEarlier(Stop& stop, const Stop& next, bool last) {
    const bool again = !last && next.number > 0 && (stop.number < 0 || next.number < stop.number);
    stop = next;
    return again ? nullptr : plain(next.reason);
  }

  int64_t failedStep() const { return steps_; }
  // Returns the world that the graph belongs to.
  const World& world() const { return capture_.recording->world(); }
  const Capture& capture() const { return capture_; }

 private:
  void addInputs(Entry& entry) {
    for (Source* input : capture_.inputs()) {
      entry.inputs.push_back(capture_.guards.keep(input));
      if (capture_.isArrayInput(input)) entry.arrays.insert(entry.inputs.back());
    }
  }

  std::unique_ptr<Entry> finish(EvalFrame& frame) {
    entry_ = std::make_unique<Entry>();
    capture_.root_step = steps_;
    for (const GeneratorVariable* each : capture_.generators) {
      if (!each->isPending()) continue;
      throw GraphBreak{"a generator is left within a `try` or `with`", {}, each->born};
    }
    Builder builder(capture_.guards);
    std::vector<int*> wanted;
    if (frame.status == EvalFrame::Status::kReturned) {
      entry_->value = builder.build(frame.value);
      wanted.push_back(&entry_->value);
    } else {
      buildContinuation(frame, builder);
      for (int& each : entry_->cells) wanted.push_back(&each);
      for (int& each : entry_->arguments) wanted.push_back(&each);
    }
    replayEffects(builder);
    addInputs(*entry_);
    guardDistinct();
    entry_->recipe = builder.finish(std::move(wanted));
    if (capture_.recording->numOperators() > 0) {
      entry_->graph = capture_.recording->finish(builder.outputs());
    }
    capture_.guards.finish();
    entry_->guards.take(capture_.guards);
    return std::move(entry_);
  }

  // Objects that the program changes must not be reachable by another name, unless they were.
  void guardDistinct() {
    std::unordered_map<PyTypeObject*, std::vector<Variable*>> changed, known;
    for (Variable* each : capture_.modified()) {
      if (each->source) changed[each->type()].push_back(each);
    }
    for (Variable* each : capture_.known()) {
      if (each->source && each->used && changed.count(each->type()) != 0) {
        known[each->type()].push_back(each);
      }
    }
    constexpr size_t kFewPairs = 256;
    for (const auto& [type, ones] : changed) {
      const std::vector<Variable*>& others = known[type];
      // Many are compared all at once, those that do not change with each other too.
      const bool few = ones.size() * others.size() <= kFewPairs;
      for (Variable* each : others) {
        if (!few) capture_.guards.addDistinct(each->source);
      }
      for (Variable* each : ones) {
        for (Variable* other : others) {
          if (few) guardDistinctPair(each, other);
        }
      }
    }
  }

  void guardDistinctPair(Variable* changed, Variable* other) {
    if (other == changed ||
        (other->source->access == Access::kPinned && changed->source->access == Access::kPinned)) {
      return;
    }
    capture_.guards.addPair(changed->source, other->source, false);
  }

  void replayEffects(Builder& builder) {
    // By index: replaying may build, and builds never modify.
    for (Variable* each : capture_.modified()) each->replay(capture_, builder);
    if (capture_.recording->gradMode() != capture_.recording->initialGradMode()) {
      builder.effect(StepKind::kGradMode, {}, {}, capture_.recording->gradMode());
    }
    if (const std::optional<int64_t> autocast = capture_.recording->leftAutocast()) {
      builder.effect(StepKind::kAutocast, {}, {}, *autocast);
    }
  }

  static bool isNull(Variable* entry) {
    auto* const mark = dynamic_cast<MarkVariable*>(entry);
    return mark && mark->kind == MarkVariable::Kind::kNull;
  }

  // The exception that is handled while the entry of the stack is there.
  Variable* handledAt(EvalFrame& frame, size_t index) {
    for (size_t i = index + 1; i < frame.stack.size(); ++i) {
      auto* const mark = dynamic_cast<MarkVariable*>(frame.stack[i]);
      if (mark && mark->kind == MarkVariable::Kind::kPreviousException) return mark->previous;
    }
    return capture_.handled;
  }

  void buildContinuation(EvalFrame& frame, Builder& builder) {
    entry_->break_reason = stop_.reason;
    entry_->raises = stop_.raises;
    entry_->break_file = PyUnicode_AsUTF8(frame.code->filename.get());
    PyCodeObject* root = frame.function->code();
    int at = Continuations::groupStart(*frame.code, frame.at);
    entry_->break_line = frame.code->instructions[static_cast<size_t>(at)].location.line;
    std::vector<int> slot_of(frame.slots.size());
    for (size_t i = 0; i < slot_of.size(); ++i) slot_of[i] = static_cast<int>(i);
    const ContinuationInfo* const info = Continuations::find(root);
    if (info) {
      at = info->instructions[static_cast<size_t>(at)];
      if (at < 0) breakGraph("the beginning of a continuation");
      slot_of = info->slots;
      root = reinterpret_cast<PyCodeObject*>(info->root.get());
    }
    try {
      Continuations& all = continuationsOf(root);
      const Layout layout = layoutFor(all, at, frame, slot_of, [&](int index) {
        return info ? info->instructions[static_cast<size_t>(index)] : index;
      });
      for (const Parameter& each : parametersOf(all.root(), layout)) {
        entry_->arguments.push_back(builder.build(argumentOf(frame, layout, each, slot_of)));
      }
      for (const int kind : {static_cast<int>(kCellSlot), static_cast<int>(kFreeSlot)}) {
        for (size_t i = 0; i < all.root().slots.size(); ++i) {
          if (!(all.root().slots[i].kind & kind)) continue;
          Variable* const cell = frame.slots[static_cast<size_t>(slot_of[i])];
          if (!cell) breakGraph("a cell is missing");
          entry_->cells.push_back(builder.build(cell));
        }
      }
      entry_->continuation = all.breakAt(at, layout);
    } catch (const BytecodeError& error) {
      breakGraph(error.what());
    }
  }

  Variable* argumentOf(EvalFrame& frame, const Layout& layout, const Parameter& parameter,
                       const std::vector<int>& slot_of) {
    if (parameter.stack < 0) {
      return frame.slots[static_cast<size_t>(slot_of[static_cast<size_t>(parameter.slot)])];
    }
    const auto index = static_cast<size_t>(parameter.stack);
    if (layout.stack[index].kind != StackKind::kPrevious) return frame.stack[index];
    Variable* const handled = handledAt(frame, index);
    if (!handled) breakGraph("a handler without an exception");
    return handled;
  }

  // `index_of` maps instructions of the frame's code to those of the root.
  template <class IndexOf>
  Layout layoutFor(Continuations& all, int at, EvalFrame& frame, const std::vector<int>& slot_of,
                   const IndexOf& index_of) {
    const std::optional<FrameState> state = all.stateBefore(at);
    if (!state || state->stack.size() != frame.stack.size()) {
      breakGraph("a state that no path leads to");
    }
    Layout layout;
    layout.stack = state->stack;
    for (size_t i = 0; i < layout.stack.size(); ++i) {
      StackEntry& entry = layout.stack[i];
      if (entry.kind == StackKind::kNullOrValue) {
        entry.kind = isNull(frame.stack[i]) ? StackKind::kNull : StackKind::kValue;
      }
      if (entry.kind == StackKind::kOffset && entry.instruction < 0) {
        auto* const mark = dynamic_cast<MarkVariable*>(frame.stack[i]);
        if (!mark || mark->instruction < 0) breakGraph("a handler without an offset");
        entry.instruction = index_of(mark->instruction);
        if (entry.instruction < 0) breakGraph("a handler of the beginning of a continuation");
      }
    }
    for (size_t i = 0; i < all.root().slots.size(); ++i) {
      const bool local = (all.root().slots[i].kind & (kCellSlot | kFreeSlot)) == 0;
      layout.bound.push_back(local && frame.slots[static_cast<size_t>(slot_of[i])] != nullptr);
    }
    return layout;
  }

  const FrameView frame_;
  const Stop& stop_;
  const FrameRoots roots_;
  Capture capture_;
  std::unique_ptr<Entry> entry_;
  int64_t steps_ = 0;
};

}  // namespace

namespace {

using InputSizesByText = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// Supposes, where a graph ends, that the sizes that elements decide are exactly those of the call, if that
// lets the graph go on.
class ExactSizes {
 public:
  // Changes the settings; returns whether another attempt is to be made with them.
  bool tries(SizeSettings& sizes, bool decided, const std::string& reason) {
    if (!tried_) {
      if (sizes.guesses_all || !sizes.guesses || sizes.hints.empty() || !sizes.examples.empty() ||
          !decided) {
        return false;
      }
      tried_ = sizes.guesses_all = true;
      reason_ = reason;
      return true;
    }
    const bool same = !reason_.empty() && reason == reason_;
    reason_.clear();
    if (same) sizes.guesses_all = false;
    return same;
  }

 private:
  bool tried_ = false;
  std::string reason_;  // why the graph ended without it; empty when that is settled
};

// Evaluates the frame until an entry comes of it.
std::unique_ptr<Entry> evaluate(const World& world, FrameView frame, SizeSettings& sizes,
                                InputSizesByText& inputs) {
  Stop stop;
  ExactSizes exact;
  for (int i = 0; i < kMaxAttempts; ++i) {
    // Each attempt begins as the program does.
    std::shared_ptr<void> kept = world.keepState();
    Attempt attempt(world, frame, stop, sizes);
    std::unique_ptr<Entry> entry;
    try {
      entry = attempt.run();
    } catch (const GraphBreak& reason) {
      const bool decided = attempt.capture().guards.sizes().hasAnyDecided();
      const bool elsewhere = reason.other_world && !sizes.arrays_elsewhere;
      sizes.arrays_elsewhere |= elsewhere;
      const bool again = i < kMaxSizeAttempts &&
                         (elsewhere || (sizes.asks_all && attempt.findSizes(frame, sizes)) ||
                          exact.tries(sizes, decided, reason.reason));
      if (again) {
        stop = {};
        continue;
      }
      int64_t step = attempt.failedStep();
      // The object that cannot be made again comes from an earlier step: the graph ends before it.
      if (reason.born >= 0 && reason.born < step) step = reason.born;
      const std::string within = reason.place.empty() ? "" : ", in " + reason.place;
      entry =
          attempt.endEarlier(stop, {step, reason.reason + within, false}, i + 1 == kMaxAttempts);
    } catch (const Raised& raised) {
      // The instruction raises the exception itself, with the traceback and the handlers of Python.
      entry = attempt.endEarlier(
          stop, {attempt.failedStep(), "it raises " + describe(*raised.exception), true},
          i + 1 == kMaxAttempts);
    }
    if (!entry) continue;
    kept.reset();
    entry->world = &attempt.world();
    entry->state = entry->world->state();
    if (attempt.capture().recording->asksAutocast()) entry->autocast = entry->world->autocast();
    entry->size_symbols = attempt.capture().openPlaces();
    entry->expects = attempt.capture().numExpected() > 0;
    entry->guesses_all = sizes.guesses_all;
    inputs = attempt.capture().inputSizes();
    return entry;
  }
  throw InternalError(__FILE__, __LINE__, "attempts that do not end");
}

// Returns whether both do the same for all sizes that they fit.
bool areSame(const Entry& a, const Entry& b) {
  if (a.plain != b.plain || a.value != b.value || a.raises != b.raises || a.cells != b.cells ||
      a.arguments != b.arguments || a.inputs != b.inputs || a.arrays != b.arrays ||
      a.world != b.world || a.autocast != b.autocast ||
      a.continuation.get() != b.continuation.get() ||
      (a.graph == nullptr) != (b.graph == nullptr)) {
    return false;
  }
  return a.guards.lines() == b.guards.lines() && a.recipe.lines() == b.recipe.lines() &&
         (!a.graph || a.graph->contents() == b.graph->contents());
}

// Returns sizes that fit the entry and all differ from its own; no sizes if there are no such.
std::vector<int64_t> otherSizes(const SizeTable& table) {
  const int count = table.numSymbols();
  std::mt19937 random(count);
  constexpr int kTries = 400;
  for (int i = 0; i < kTries; ++i) {
    std::vector<int64_t> sizes;
    const auto all = static_cast<int64_t>(random() % 16 + 2);
    const bool together = i % 2 == 1;
    for (int symbol = 0; symbol < count; ++symbol) {
      const int64_t hint = table.hintOf(symbol);
      const int64_t by = together ? all : static_cast<int64_t>(random() % 16 + 1);
      // Multiples for sizes that are divided, sums for others.
      const bool sum = together ? i % 4 == 1 : random() % 2 == 0;
      const bool fixed = table.isFixed(symbol) || table.isGuessedExactly(symbol);
      sizes.push_back(fixed                            ? hint
                      : table.isElement(symbol)        ? hint + 1
                      : sum || table.isDecided(symbol) ? hint + by
                                                       : hint * (by % 8 + 2));
    }
    if (table.matches(sizes) && table.guessesHold(sizes)) return sizes;
  }
  // Smaller ones, where an upper bound is near.
  for (int i = 0; i < kTries; ++i) {
    std::vector<int64_t> sizes;
    for (int symbol = 0; symbol < count; ++symbol) {
      const int64_t hint = table.hintOf(symbol);
      const int64_t other = 2 + static_cast<int64_t>(random() % static_cast<uint64_t>(hint + 8));
      const bool fixed = table.isFixed(symbol) || table.isGuessedExactly(symbol);
      sizes.push_back(fixed ? hint : other == hint ? hint + 1 : other);
    }
    if (table.matches(sizes) && table.guessesHold(sizes)) return sizes;
  }
  return {};
}

}  // namespace

bool isSameForSizes(const World& world, FrameView frame, const Entry& entry,
                    const std::vector<int64_t>& sizes) {
  SizeSettings settings;
  settings.symbols = entry.size_symbols;
  settings.examples = sizes;
  settings.decided = entry.guards.sizes().mayDecide();
  settings.guesses = entry.guards.sizes().hasGuesses();
  settings.expects = entry.expects;
  settings.guesses_all = entry.guesses_all;
  InputSizesByText inputs;
  try {
    return areSame(entry, *evaluate(world, frame, settings, inputs));
  } catch (const Error&) {
    return false;
  }
}

std::unique_ptr<Entry> captureFrame(const World& world, FrameView frame, OpenSizes mode,
                                    SizeHistory& history) {
  SizeSettings settings;
  settings.mode = mode;
  settings.history = &history;
  settings.guesses = settings.expects = history.guesses;
  settings.hints = history.hints;
  settings.asks_all = settings.guesses && settings.hints.empty();
  for (;;) {
    InputSizesByText inputs;
    std::unique_ptr<Entry> entry = evaluate(world, frame, settings, inputs);
    const SizeTable& table = entry->guards.sizes();
    if (settings.asks_all && table.hasAnyDecided()) {
      settings.asks_all = takeMeasuredSizes(frame, *entry, settings);
      continue;
    }
    if (!table.isAllFixed()) {
      // A size that went into the entry by a way that nobody saw shows with other sizes.
      const std::vector<int64_t> others = otherSizes(table);
      if (others.empty() || !isSameForSizes(world, frame, *entry, others)) {
        if (entry->size_symbols.empty()) {
          // An operator fits these sizes alone.
          const bool again = settings.hints.empty() || settings.guesses_all;
          if (again) settings.decided = false;
          settings.guesses_all = !again;
          continue;
        }
        // The symbols of the next attempt are others.
        settings.guesses_all = false;
        settings.hints = history.hints;
        settings.asks_all = settings.guesses && settings.hints.empty();
        for (const auto& [place, symbol] : entry->size_symbols) settings.closed.insert(place);
        continue;
      }
      entry->checks_sizes =
          entry->graph && entry->graph->isImpure() && !entry->size_symbols.empty();
    }
    // A graph that writes must not fail on its way, as it may by a size that nobody knows before.
    if (table.hasAnyDecided() && entry->graph && entry->graph->writes()) {
      settings.decided = false;
      continue;
    }
    if (entry->expects && entry->graph && entry->graph->writes()) {
      settings.expects = false;
      continue;
    }
    for (const auto& [source, sizes] : inputs) history.note(source, sizes);
    return entry;
  }
}

}  // namespace wick::capture

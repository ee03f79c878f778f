// Rates relative to the outside are fractions, found by walking along the channels; scaled to the
// smallest integers they are the firings of a round. The schedule is then played: readers fire
// first, so that channels hold as little as the rates allow, until the windows are filled, and then
// once more for a round.
#include "streams/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/budget.h"
#include "core/error_types.h"

namespace wick::streams {

namespace {

// Firings of all filters in a round, and elements of a channel, that are still counted one by one.
constexpr int64_t kMostFirings = int64_t{1} << 22;

struct Fraction {
  int64_t top = 0;
  int64_t bottom = 1;
  bool operator==(const Fraction&) const = default;
};

[[noreturn]] void tooLarge() {
  throw UsageError("the rates of the stream are too large or too different to be balanced");
}

int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) tooLarge();
  return product;
}

// a * b / c.
Fraction scaled(const Fraction& a, int64_t b, int64_t c) {
  const int64_t by_top = std::gcd(b, a.bottom), by_bottom = std::gcd(a.top, c);
  Fraction f{times(a.top / by_bottom, b / by_top), times(a.bottom / by_top, c / by_bottom)};
  const int64_t common = std::gcd(f.top, f.bottom);
  return {f.top / common, f.bottom / common};
}

// Index of what stands for the outside.
constexpr size_t kOutside = SIZE_MAX;

struct Channel {
  size_t from;  // filter or kOutside
  size_t to;
  const Port* out;
  const Port* in;
  int64_t held = 0;
  int64_t most = 0;
};

class Balancer {
 public:
  explicit Balancer(const StreamGraph& graph) : graph_(graph), rates_(graph.filters.size()) {
    std::unordered_map<std::string, std::pair<size_t, const Port*>> made;
    for (const Port& port : graph.inputs) made[port.value] = {kOutside, &port};
    for (size_t i = 0; i < graph.filters.size(); ++i) {
      for (const Port& port : graph.filters[i].outputs) made[port.value] = {i, &port};
    }
    const auto connect = [&](const Port& port, size_t reader) {
      const auto producer = made.find(port.value);
      if (producer == made.end()) {
        throw UsageError(fmt::format("nothing produces '{}'", port.value));
      }
      channels_.push_back(
          {producer->second.first, reader, producer->second.second, &port, port.delay, port.delay});
    };
    for (size_t i = 0; i < graph.filters.size(); ++i) {
      for (const Port& port : graph.filters[i].inputs) connect(port, i);
    }
    // Outside of the graph what it gives is taken at any rate.
    reading_.resize(graph.filters.size());
    writing_.resize(graph.filters.size());
    for (size_t c = 0; c < channels_.size(); ++c) {
      reading_[channels_[c].to].push_back(c);
      if (channels_[c].from != kOutside) writing_[channels_[c].from].push_back(c);
    }
  }

  Balance solve() {
    findRates();
    scale();
    play();
    return std::move(result_);
  }

 private:
  std::string nameOf(size_t filter) const {
    return filter == kOutside ? "the outside"
                              : fmt::format("filter '{}'", graph_.filters[filter].name);
  }

  // Pieces that nothing connects with the outside run once a round.
  void findRates() {
    std::optional<Fraction> outside;
    const auto rate = [&](size_t filter) -> std::optional<Fraction>& {
      return filter == kOutside ? outside : rates_[filter];
    };
    std::vector<std::vector<size_t>> at(graph_.filters.size() + 1);
    const auto place = [&](size_t filter) { return filter == kOutside ? at.size() - 1 : filter; };
    for (size_t c = 0; c < channels_.size(); ++c) {
      at[place(channels_[c].from)].push_back(c);
      at[place(channels_[c].to)].push_back(c);
    }
    std::vector<size_t> open;
    const auto from = [&](size_t seed) {
      rate(seed) = Fraction{1, 1};
      open.push_back(seed);
      while (!open.empty()) {
        const size_t filter = open.back();
        open.pop_back();
        for (size_t c : at[place(filter)]) {
          const Channel& channel = channels_[c];
          const bool forwards = channel.from == filter;
          const Fraction known = *rate(filter);
          const Fraction other = forwards ? scaled(known, channel.out->rate, channel.in->rate)
                                          : scaled(known, channel.in->rate, channel.out->rate);
          const size_t neighbour = forwards ? channel.to : channel.from;
          if (!rate(neighbour)) {
            rate(neighbour) = other;
            open.push_back(neighbour);
          } else if (*rate(neighbour) != other) {
            unbalanced(channel, *rate(channel.from), *rate(channel.to));
          }
        }
      }
    };
    from(kOutside);
    for (size_t i = 0; i < rates_.size(); ++i) {
      if (!rates_[i]) from(i);
    }
    outside_ = *outside;
  }

  [[noreturn]] void unbalanced(const Channel& c, const Fraction& from, const Fraction& to) const {
    throw UsageError(fmt::format(
        "the stream is unbalanced at '{}': {} pushes {} and fires {}/{} times a round, {} pops {} "
        "and fires {}/{} times, so that the channel would grow or run dry",
        c.in->value, nameOf(c.from), c.out->rate, from.top, from.bottom, nameOf(c.to), c.in->rate,
        to.top, to.bottom));
  }

  void scale() {
    int64_t multiple = outside_.bottom;
    for (const auto& rate : rates_) {
      multiple = times(multiple / std::gcd(multiple, rate->bottom), rate->bottom);
    }
    int64_t common = times(outside_.top, multiple / outside_.bottom);
    for (const auto& rate : rates_) {
      result_.firings.push_back(times(rate->top, multiple / rate->bottom));
      common = std::gcd(common, result_.firings.back());
    }
    for (int64_t& firings : result_.firings) firings /= common;
    result_.input_rounds = times(outside_.top, multiple / outside_.bottom) / common;
    int64_t all = result_.input_rounds;
    for (int64_t firings : result_.firings) {
      if (__builtin_add_overflow(all, firings, &all) || all > kMostFirings) {
        throw UsageError(
            fmt::format("a round of the stream has more than {} firings; make the rates more alike",
                        kMostFirings));
      }
    }
  }

  bool ready(size_t filter) const {
    return std::ranges::all_of(
        reading_[filter], [&](size_t c) { return channels_[c].held >= channels_[c].in->peek; });
  }

  void put(size_t c) {
    Channel& channel = channels_[c];
    if (__builtin_add_overflow(channel.held, channel.out->rate, &channel.held)) tooLarge();
    channel.most = std::max(channel.most, channel.held);
  }

  void fire(size_t filter) {
    for (size_t c : reading_[filter]) channels_[c].held -= channels_[c].in->rate;
    for (size_t c : writing_[filter]) put(c);
  }

  void take() {
    for (size_t c = 0; c < channels_.size(); ++c) {
      if (channels_[c].from == kOutside) put(c);
    }
  }

  // Before the first round a filter fires until its readers can fire as often as a round wants.
  void play() {
    const std::vector<int64_t> first = firstFirings();
    result_.first_firings = first;
    int64_t all = 0;
    for (int64_t firings : first) all += firings;
    if (all > kMostFirings) tooLarge();
    run(first, result_.first_input_rounds, "before the first round");
    run(result_.firings, result_.input_rounds, "in a round");
    for (size_t c = 0; c < channels_.size(); ++c) {
      result_.buffers.push_back({channels_[c].in->value, channels_[c].to, channels_[c].most});
    }
  }

  // From the end backwards: enough that each window holds peek - pop elements when a round begins.
  std::vector<int64_t> firstFirings() {
    std::vector<int64_t> first(graph_.filters.size());
    const auto need = [&](const Channel& channel, int64_t reader_firings) {
      int64_t elements = times(reader_firings, channel.in->rate);
      if (__builtin_add_overflow(elements, channel.in->peek - channel.in->rate, &elements)) {
        tooLarge();
      }
      elements -= channel.held;
      return elements <= 0 ? 0 : (elements - 1) / channel.out->rate + 1;
    };
    for (size_t i = graph_.filters.size(); i-- > 0;) {
      for (size_t c : writing_[i]) {
        // A feedback brings its own beginning.
        if (channels_[c].to <= i) continue;
        first[i] = std::max(first[i], need(channels_[c], first[channels_[c].to]));
      }
    }
    for (const Channel& channel : channels_) {
      if (channel.from != kOutside) continue;
      result_.first_input_rounds =
          std::max(result_.first_input_rounds, need(channel, first[channel.to]));
    }
    return first;
  }

  void run(std::vector<int64_t> left, int64_t inputs, const char* when) {
    int64_t open = inputs + std::accumulate(left.begin(), left.end(), int64_t{0});
    while (open > 0) {
      checkBudget();
      bool fired = false;
      for (size_t i = left.size(); i-- > 0;) {
        while (left[i] > 0 && ready(i)) {
          fire(i);
          --left[i];
          --open;
          fired = true;
        }
      }
      if (fired) continue;
      if (inputs > 0) {
        take();
        --inputs;
        --open;
        continue;
      }
      stuck(left, when);
    }
  }

  [[noreturn]] void stuck(const std::vector<int64_t>& left, const char* when) const {
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i] == 0) continue;
      for (size_t c : reading_[i]) {
        const Channel& channel = channels_[c];
        if (channel.held >= channel.in->peek) continue;
        throw UsageError(fmt::format(
            "the stream stands still {}: {} waits for {} elements of '{}' from {}, and there are "
            "{}; a feedback needs as much delay as is read before it is written",
            when, nameOf(i), channel.in->peek, channel.in->value, nameOf(channel.from),
            channel.held));
      }
    }
    throw InternalError(__FILE__, __LINE__, "a filter waits for nothing and cannot work");
  }

  const StreamGraph& graph_;
  std::vector<std::optional<Fraction>> rates_;
  Fraction outside_;
  std::vector<Channel> channels_;
  std::vector<std::vector<size_t>> reading_;  // channels by filter
  std::vector<std::vector<size_t>> writing_;
  Balance result_;
};

}  // namespace

Balance balance(const StreamGraph& graph) {
  return Balancer(graph).solve();
}

}  // namespace wick::streams

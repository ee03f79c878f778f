#include "runtime/interpreter/call_places.h"

#include <atomic>
#include <utility>

#include "core/source_origin.h"
#include "ir/graph.h"

namespace wick {
namespace {

std::atomic<bool> noted{false};
constinit thread_local const CallPlaceScope* innermost = nullptr;
constinit thread_local uint64_t calls = 0;

bool isOfAuthor(const SourceRange& range) {
  return range.valid() && !isInEngine(range);
}

// Inlined calls stand around the node.
SourceRange placeOf(const Node& node) {
  SourceRange range = node.range();
  const InlinedCall* call = node.inlinedFrom().get();
  while (!isOfAuthor(range) && call) {
    range = call->call_site;
    call = call->caller.get();
  }
  return isOfAuthor(range) ? range : SourceRange();
}

}  // namespace

void noteCallPlaces() {
  noted.store(true, std::memory_order_relaxed);
}
bool callPlacesAreNoted() {
  return noted.load(std::memory_order_relaxed);
}

uint64_t currentCall() {
  return innermost ? innermost->number_ : 0;
}

SourceRange placeOfCurrentCall() {
  for (const CallPlaceScope* at = innermost; at; at = at->outer_) {
    const auto index = static_cast<size_t>(&at->instruction_ - at->code_.instructions().data());
    const Node* node = at->code_.nodeOf(index);
    SourceRange place = node ? placeOf(*node) : SourceRange();
    if (place.valid()) return place;
  }
  return {};
}

CallPlaceScope::CallPlaceScope(const Code& code, const Instruction& instruction)
    : code_(code),
      instruction_(instruction),
      outer_(std::exchange(innermost, this)),
      number_(++calls) {}

CallPlaceScope::~CallPlaceScope() {
  innermost = outer_;
}

}  // namespace wick

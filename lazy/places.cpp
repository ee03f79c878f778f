#include "lazy/places.h"

#include <utility>

#include "lazy/lazy.h"
#include "runtime/interpreter/call_places.h"

namespace wick::lazy {

namespace {

thread_local SourceRange said;
// The call of a script within which it was said; 0: outside of all.
thread_local uint64_t said_within = 0;

}  // namespace

void setPlace(SourceRange place) {
  said = std::move(place);
  said_within = currentCall();
}

SourceRange placeOfCall() {
  if (!wantsPlaces()) return {};
  const uint64_t now = currentCall();
  if (now != 0 && now != said_within) {
    SourceRange place = placeOfCurrentCall();
    if (place.valid()) return place;
  }
  return said;
}

}  // namespace wick::lazy

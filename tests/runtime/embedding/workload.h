// How much a test of threads does. Such tests are worth repeating, under a sanitizer too, where a
// shorter run that is repeated more often finds more than a long one.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace wick {

// `usual` iterations, or that many times WICK_TEST_SHARE (0 to 1) of the environment; at least one.
inline int workload(int usual) {
  const char* share = std::getenv("WICK_TEST_SHARE");
  return share == nullptr ? usual : std::max(1, static_cast<int>(usual * std::atof(share)));
}

}  // namespace wick

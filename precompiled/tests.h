// The same for tests.
#include <gtest/gtest.h>

#include "precompiled/engine.h"

// The files beside these tests.
#pragma once

#include <fstream>
#include <span>
#include <sstream>
#include <string>

#include "serialization/archive_reader.h"

namespace wick {

inline std::string dataPath(const std::string& name) {
  return "tests/serialization/data/" + name;
}

inline std::string contentsOf(const std::string& name) {
  std::ifstream file(dataPath(name), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Bytes bytesOf(const std::string& text) {
  return copyBytes(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace wick

// What the tests of imported modules share: small_module.pt, whole or with records replaced.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"
#include "serialization/import.h"
#include "tests/serialization/data_files.h"

namespace wick {

// small_module.pt with some records replaced or added; an empty text leaves the record out.
inline std::string changed(const std::vector<std::pair<std::string, std::string>>& changes) {
  ArchiveReader archive(bytesOf(contentsOf("small_module.pt")), "small_module.pt");
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "changed");
  for (const std::string& record : archive.records()) {
    std::string text(archive.read(record).text());
    for (const auto& [name, replacement] : changes) {
      if (name == record) text = replacement;
    }
    if (!text.empty() || record == "constants.pkl") writer.write(record, text);
  }
  for (const auto& [name, added] : changes) {
    if (!archive.has(name) && !added.empty()) writer.write(name, added);
  }
  writer.finish();
  return out;
}

inline std::string sourceOf(const std::string& record) {
  ArchiveReader archive(bytesOf(contentsOf("small_module.pt")), "small_module.pt");
  return std::string(archive.read(record).text());
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
  return text;
}

}  // namespace wick

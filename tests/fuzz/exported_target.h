// Fuzz targets: a program of torch.export, as a whole package and as the text of its program and its weights.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serialization/archive_writer.h"
#include "tests/fuzz/import_target.h"

namespace wick {

// The two texts of an input, with a line of this kind between them.
inline constexpr std::string_view kExportedBorder = "\n====\n";
// Records of weights, each of so many bytes.
inline constexpr size_t kExportedWeights = 16;
inline constexpr size_t kExportedWeightBytes = 4096;

// A package with a program and a description of its weights, whose bytes are always the same.
inline std::string exportedPackage(std::string_view program, std::string_view config) {
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "fuzz");
  std::string bytes;
  for (size_t i = 0; i < kExportedWeightBytes; ++i) bytes += static_cast<char>(i % 61);
  for (size_t i = 0; i < kExportedWeights; ++i) {
    writer.write("data/weights/weight_" + std::to_string(i), bytes);
  }
  writer.write("data/weights/model_weights_config.json", config);
  writer.write("models/model.json", program);
  writer.write("archive_format", std::string_view("pt2"));
  writer.finish();
  return out;
}

inline void exportedProgramTarget(const std::string& input) {
  const size_t border = input.find(kExportedBorder);
  const std::string_view text = input;
  const std::string_view config = border == std::string::npos
                                      ? R"({"config": {}})"
                                      : text.substr(border + kExportedBorder.size());
  loadAndRunTarget(exportedPackage(text.substr(0, border), config));
}

// Changes a JSON value here and there: other numbers and texts, members and elements that lack, stand twice, or come from
// another place.
class JsonChanger {
 public:
  explicit JsonChanger(std::mt19937_64& random) : random_(random) {}

  void change(nlohmann::json& json) {
    std::vector<nlohmann::json*> all;
    collect(json, all);
    for (size_t n = 1 + below(4); n > 0; --n) {
      nlohmann::json& value = *all[below(all.size())];
      switch (below(6)) {
        case 0:
          value = interesting();
          break;
        case 1:
          value = nlohmann::json(*all[below(all.size())]);
          break;
        case 2:
          remove(value);
          break;
        case 3:
          repeat(value);
          break;
        default:
          adjust(value, *all[below(all.size())]);
          break;
      }
      all.clear();
      collect(json, all);
    }
  }

 private:
  size_t below(size_t bound) { return bound == 0 ? 0 : static_cast<size_t>(random_() % bound); }

  static void collect(nlohmann::json& json, std::vector<nlohmann::json*>& all) {
    all.push_back(&json);
    if (!json.is_structured()) return;
    for (auto& part : json) collect(part, all);
  }

  nlohmann::json interesting() {
    static const std::array<const char*, 24> kTexts = {"null",
                                                       "true",
                                                       "false",
                                                       "0",
                                                       "1",
                                                       "-1",
                                                       "2147483648",
                                                       "9223372036854775807",
                                                       "-9223372036854775808",
                                                       "1e308",
                                                       R"("")",
                                                       R"("x")",
                                                       R"("self")",
                                                       R"("Infinity")",
                                                       R"("torch.ops.aten.add.Tensor")",
                                                       "[]",
                                                       "{}",
                                                       R"({"as_none": true})",
                                                       R"({"as_int": 1000000000000})",
                                                       R"({"as_tensor": {"name": "x"}})",
                                                       R"({"as_sym_int": {"as_name": "x"}})",
                                                       R"({"as_ints": [4611686018427387904, 4]})",
                                                       R"({"as_float": "NaN"})",
                                                       R"({"as_string": "x"})"};
    return nlohmann::json::parse(kTexts[below(kTexts.size())]);
  }

  void remove(nlohmann::json& value) {
    if (!value.is_structured() || value.empty()) return;
    auto at = value.begin();
    std::advance(at, below(value.size()));
    value.erase(at);
  }

  void repeat(nlohmann::json& value) {
    if (!value.is_array() || value.empty()) return;
    const nlohmann::json element = value[below(value.size())];
    for (size_t n = 1 + below(8); n > 0; --n)
      value.insert(value.begin() + static_cast<std::ptrdiff_t>(below(value.size() + 1)), element);
  }

  // A change that keeps the type: most of these are read to the end.
  void adjust(nlohmann::json& value, const nlohmann::json& other) {
    if (value.is_number_integer()) {
      value = static_cast<int64_t>(below(12)) - 2;
    } else if (value.is_string() && other.is_string()) {
      value = nlohmann::json(other);
    } else if (value.is_array() && value.size() > 1) {
      std::swap(value[below(value.size())], value[below(value.size())]);
    } else if (value.is_boolean()) {
      value = !value.get<bool>();
    }
  }

  std::mt19937_64& random_;
};

// A changed copy of an input of exportedProgramTarget.
inline std::string changeExported(const std::string& input, std::mt19937_64& random) {
  const size_t border = input.find(kExportedBorder);
  nlohmann::json program = nlohmann::json::parse(input.substr(0, border));
  nlohmann::json config = nlohmann::json::parse(input.substr(border + kExportedBorder.size()));
  JsonChanger(random).change(random() % 5 == 0 ? config : program);
  return program.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         std::string(kExportedBorder) +
         config.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace wick

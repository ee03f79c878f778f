// Conditions on sizes that a program was exported under, as PyTorch writes them: "L['x'].size()[0] % 2 == 0".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wick::exported {

// A step on the way to an argument: L['x'][0]['key'] has the steps x, 0 and key.
struct GuardPath {
  std::vector<std::string> steps;
};
// Returns the variable that holds the argument; nullopt when there is none.
using GuardVariable = std::function<std::optional<std::string>(const GuardPath& path)>;

// Returns the condition as an expression of TorchScript; nullopt for text that is no such condition.
std::optional<std::string> guardText(const std::string& guard, const GuardVariable& variable);

}  // namespace wick::exported

#include "core/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace wick {

namespace {

int processorsOfMask() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  return static_cast<int>(std::thread::hardware_concurrency());
}

// Processors that "QUOTA PERIOD" stands for; infinity for "max", no number or no limit.
double processorsOfQuota(const std::string& quota, const std::string& period) {
  const double most = std::atof(quota.c_str()), each = std::atof(period.c_str());
  return most > 0 && each > 0 ? most / each : INFINITY;
}

std::string firstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The least quota of the group `path` and of those around it, below the folder `root`.
template <class Read>
double leastQuota(const std::string& root, std::string path, Read read) {
  double least = INFINITY;
  while (true) {
    least = std::min(least, read(root + path));
    if (path.empty() || path == "/") return least;
    path.erase(path.rfind('/'));
  }
}

double processorsOfGroups() {
  double least = INFINITY;
  std::ifstream groups("/proc/self/cgroup");  // lines of "NUMBER:CONTROLLERS:PATH"
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, leastQuota("/sys/fs/cgroup", path, [](const std::string& folder) {
                         std::istringstream limit(firstLine(folder + "/cpu.max"));
                         std::string quota, period;
                         limit >> quota >> period;
                         return processorsOfQuota(quota, period);
                       }));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      least = std::min(least, leastQuota("/sys/fs/cgroup/cpu", path, [](const std::string& folder) {
                         return processorsOfQuota(firstLine(folder + "/cpu.cfs_quota_us"),
                                                  firstLine(folder + "/cpu.cfs_period_us"));
                       }));
    }
  }
  return least;
}

}  // namespace

int availableProcessors() {
  static const int count = [] {
    const double granted = std::ceil(processorsOfGroups());
    return std::max(1, static_cast<int>(std::min<double>(processorsOfMask(), granted)));
  }();
  return count;
}

}  // namespace wick

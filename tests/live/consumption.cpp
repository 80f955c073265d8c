// SPDX-License-Identifier: MIT
#include "live/consumption.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "live/child_process.hpp"

namespace rtev::test {

namespace fs = std::filesystem;

std::uint64_t memory_of(pid_t pid) {
  const fs::path process = "/proc/" + std::to_string(pid);
  std::ifstream status(process / "status");
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) bytes = std::stoull(line.substr(line.find_first_of("0123456789"))) << 10;
  std::set<std::uint64_t> seen;
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(process / "fd", gone)) {
    struct stat file{};
    if (!fs::read_symlink(entry, gone).native().starts_with("/memfd:") || ::stat(entry.path().c_str(), &file) != 0)
      continue;
    if (seen.insert(file.st_ino).second) bytes += static_cast<std::uint64_t>(file.st_blocks) * 512;
  }
  for (const pid_t child : children_of(pid)) bytes += memory_of(child);
  return bytes;
}

std::size_t descriptors_of(pid_t pid) {
  const fs::directory_iterator descriptors("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<std::size_t>(std::ranges::distance(descriptors));
}

std::chrono::duration<double> cpu_of(pid_t pid) {
  const fs::path process = "/proc/" + std::to_string(pid);
  std::ifstream stat(process / "stat");
  stat.ignore(1 << 10, ')');
  std::string field;
  for (int i = 0; i < 11; ++i) stat >> field;
  double ticks = 0;
  for (int i = 0; i < 4; ++i) {
    double of_kind = 0;  // utime, stime, and those of children that ended
    stat >> of_kind;
    ticks += of_kind;
  }
  auto sum = std::chrono::duration<double>(ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  for (const pid_t child : children_of(pid)) sum += cpu_of(child);
  return sum;
}

}  // namespace rtev::test

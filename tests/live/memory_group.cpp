// SPDX-License-Identifier: MIT
#include "live/memory_group.hpp"

#include <unistd.h>

#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;

template <typename Value>
bool write_value(const fs::path& file, const Value& value) {
  std::ofstream stream(file);
  stream << value << std::flush;
  return static_cast<bool>(stream);
}

/// Where memory is limited, and the file that does it; nothing if it is nowhere.
std::pair<fs::path, const char*> find_root() {
  std::ifstream mounts("/proc/self/mounts");
  for (std::string device, path, type, options, rest; mounts >> device >> path >> type >> options;) {
    std::getline(mounts, rest);
    if (type == "cgroup" && ("," + options + ",").contains(",memory,")) return {path, "memory.limit_in_bytes"};
    if (type == "cgroup2" && write_value(fs::path(path) / "cgroup.subtree_control", "+memory"))
      return {path, "memory.max"};
  }
  return {};
}

}  // namespace

std::optional<MemoryGroup> MemoryGroup::make() {
  const auto [root, limit_file] = find_root();
  if (limit_file == nullptr) return std::nullopt;
  MemoryGroup group(root / ("rtev-test-" + std::to_string(::getpid())), limit_file);
  std::error_code failed;
  if (!fs::create_directory(group.path_, failed) || !fs::create_directory(group.child(), failed)) return std::nullopt;
  return group;
}

MemoryGroup::MemoryGroup(MemoryGroup&& other) noexcept
    : path_(std::exchange(other.path_, {})), limit_file_(other.limit_file_) {}

MemoryGroup::~MemoryGroup() {
  if (path_.empty()) return;
  // Processes leave it some time after they were waited for.
  poll_until([this] {
    ::rmdir(child().c_str());
    return ::rmdir(path_.c_str()) == 0;
  });
}

bool MemoryGroup::limit(std::uint64_t bytes) const {
  return write_value(path_ / limit_file_, bytes);
}

bool MemoryGroup::add(pid_t pid) const {
  return write_value(path_ / "cgroup.procs", pid);
}

}  // namespace rtev::test

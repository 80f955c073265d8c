// SPDX-License-Identifier: MIT
// Mappings with paths as long as they may be, and how much memory it takes to look at them.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "base/unique_fd.hpp"

namespace rtev::enable {

/// A file below this folder. The kernel prints each byte of most of its path as four: 7 kB in a line of /proc/PID/maps.
inline std::filesystem::path make_long_path(std::filesystem::path folder, const std::string& name) {
  constexpr int folders = 7;
  constexpr std::size_t name_bytes = 250;
  for (int i = 0; i < folders; ++i) folder /= std::string(name_bytes, '\n');
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name) << "content";
  return folder / name;
}

/// Maps the first page of a file again and again: the kernel does not join these mappings.
inline void map_often(const std::filesystem::path& file, int times) {
  constexpr std::size_t page_bytes = 4096;
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  for (int i = 0; i < times; ++i) ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool keeps_freed_memory = true;
#elif defined(__has_feature)
inline constexpr bool keeps_freed_memory = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool keeps_freed_memory = false;
#endif

/// By how much the memory of this process grows at the most meanwhile. 0 with a sanitizer, which keeps what was freed.
inline std::size_t peak_kib_of(const std::function<void()>& run) {
  const auto peak = [] {
    std::ifstream status("/proc/self/status");
    std::string word;
    while (status >> word && word != "VmHWM:") {
    }
    std::size_t kib = 0;
    status >> kib;
    return kib;
  };
  std::ofstream("/proc/self/clear_refs") << "5";  // begins anew
  const std::size_t before = peak();
  run();
  return keeps_freed_memory ? 0 : peak() - std::min(before, peak());
}

}  // namespace rtev::enable

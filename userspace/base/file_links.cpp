// SPDX-License-Identifier: MIT
#include "base/file_links.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <system_error>
#include <thread>
#include <utility>

namespace rtev {
namespace {

CloseLinks& background_links() {
  static CloseLinks close;
  return close;
}

/// As many as UprobeManager has binaries. They only wait: 512 links take 0.1 s, and 0.5 s in 64 threads (Linux 6.18).
constexpr std::size_t max_close_threads = 512;

}  // namespace

std::vector<FileLinks> close_links_in_background(int mappings, std::vector<FileLinks> files) {
  if (background_links()) return background_links()(mappings, std::move(files));
  close_links_now(std::move(files));
  return {};
}

void close_links_now(std::vector<FileLinks> files) {
  std::vector<UniqueFd> links;
  for (FileLinks& file : files) std::ranges::move(file.links, std::back_inserter(links));
  close_in_parallel(std::move(links));
}

void set_background_links(CloseLinks close) {
  background_links() = std::move(close);
}

void close_in_parallel(std::vector<UniqueFd> fds) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < fds.size(); i = next++) fds[i].reset();
  };
  std::vector<std::jthread> helpers;
  try {
    for (std::size_t i = 1; i < std::min(fds.size(), max_close_threads); ++i) helpers.emplace_back(work);
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // No more threads available: those that run do the rest.
  }
  work();
}

}  // namespace rtev

// SPDX-License-Identifier: MIT
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/unique_fd.hpp"

namespace rtev {

/// A file, and the links of its uprobes. To close a link may take long: see MappingsCheck.
struct FileLinks {
  std::shared_ptr<UniqueFd> file{};
  std::vector<UniqueFd> links{};
  UniqueFd closed{};  ///< the write end of a pipe, closed after the links
};

/// Has another process close links: those of a file as soon as check_mappings(mappings, file) is RTEV_MAPPINGS_FREE,
/// also after the end of this process. Returns what could not be handed over. Without set_background_links() this
/// process closes them, at once. Thread-safe.
std::vector<FileLinks> close_links_in_background(int mappings, std::vector<FileLinks> files);

/// Closes links at once, and waits for that.
void close_links_now(std::vector<FileLinks> files);

/// How they are closed in the background. Returns what could not be handed over.
using CloseLinks = std::function<std::vector<FileLinks>(int mappings, std::vector<FileLinks> files)>;

/// Call it while no other thread may close links. Nothing: at once again.
void set_background_links(CloseLinks close);

/// Closes descriptors in many threads at once, and waits for them. The kernel waits for a grace period for each link:
/// so the waits overlap.
void close_in_parallel(std::vector<UniqueFd> fds);

}  // namespace rtev

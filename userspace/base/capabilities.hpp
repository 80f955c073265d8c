// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <span>

namespace rtev {

/// Of the capabilities that the calling thread may use, keeps and uses those that are in `kept` (CAP_BPF, ...). The
/// others are gone for good, also for threads and processes that it starts afterwards. False (errno) if that fails.
bool keep_capabilities(std::span<const unsigned> kept);
inline bool keep_capabilities(std::initializer_list<unsigned> kept) {
  return keep_capabilities(std::span(kept.begin(), kept.size()));
}

/// Whether the calling thread may use it (CAP_BPF, ...) now.
bool has_capability(unsigned capability);

}  // namespace rtev

// SPDX-License-Identifier: MIT
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace rtev {

/// Of the capabilities that the calling thread may use, keeps and uses those that are in `kept` (CAP_BPF, ...). The
/// others are gone for good, also for threads and processes that it starts afterwards. False (errno) if that fails.
bool keep_capabilities(std::span<const unsigned> kept);
inline bool keep_capabilities(std::initializer_list<unsigned> kept) {
  return keep_capabilities(std::span(kept.begin(), kept.size()));
}

/// Whether the calling thread may use it (CAP_BPF, ...) now.
bool has_capability(unsigned capability);

/// What to do where one is missing ("CAP_BPF"). `is_root`: root can lack it, too, as in containers and systemd units.
std::string hint_for_capability(std::string_view name, bool is_root);

}  // namespace rtev

// SPDX-License-Identifier: MIT
// Which domains and threads of programs are shown: --domain and --tid.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rtev {

struct ThreadSelection {
  std::vector<std::int32_t> domains{};  ///< empty: all
  std::vector<std::int32_t> tids{};     ///< empty: all

  bool is_all() const { return domains.empty() && tids.empty(); }
  /// `domain` is -1 and `tid` 0 if unknown.
  bool accepts(std::int32_t domain, std::int32_t tid) const { return has(domains, domain) && has(tids, tid); }

 private:
  static bool has(const std::vector<std::int32_t>& wanted, std::int32_t number) {
    return wanted.empty() || std::ranges::find(wanted, number) != wanted.end();
  }
};

}  // namespace rtev

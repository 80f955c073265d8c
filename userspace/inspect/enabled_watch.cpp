// SPDX-License-Identifier: MIT
#include "inspect/enabled_watch.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string_view>

#include "base/background_close.hpp"
#include "base/parse.hpp"
#include "base/state_directory.hpp"
#include "inspect/proc_lines.hpp"

namespace rtev {

EnabledWatch::EnabledWatch() {
  if (!open_state_directory(enabled_directory)) return;
  UniqueFd fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK), close_in_background);
  if (fd && ::inotify_add_watch(fd.get(), enabled_directory, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR) >= 0)
    fd_ = std::move(fd);
}

std::vector<EnabledWatch::Change> EnabledWatch::take() const {
  std::vector<Change> changes;
  alignas(inotify_event) std::array<char, 1 << 14> buffer;
  for (ssize_t got = 0; fd_ && (got = ::read(fd_.get(), buffer.data(), buffer.size())) > 0;) {
    for (ssize_t at = 0; at < got;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      // Padded with zeros.
      std::string_view name(event.len > 0 ? buffer.data() + at + sizeof event : "");
      at += static_cast<ssize_t>(sizeof event + event.len);
      const auto pid = parse_number<std::int32_t>(take_until(name, '-'));
      const auto start_ticks = parse_number<std::uint64_t>(name);
      if (!pid || !start_ticks) continue;
      changes.push_back({.pid = *pid,
                         .start_ticks = *start_ticks,
                         .enabled = (event.mask & IN_MOVED_TO) != 0 ? Enabled::on : Enabled::off});
    }
  }
  return changes;
}

}  // namespace rtev

// SPDX-License-Identifier: MIT
// Messages to the log of the host.
#pragma once

#include <string>
#include <string_view>

namespace rtev {

/// Where syslogd or journald takes messages.
inline constexpr const char* system_log_path = "/dev/log";

/// Notes a message (a notice of a daemon) for who looks after the host. It must be escaped. Never waits: if there is no
/// log, or it does not take the message at once, the message is not noted. Thread-safe.
void log_notice(std::string_view message, const std::string& path = system_log_path);

}  // namespace rtev

// SPDX-License-Identifier: MIT
// The socket that an agent listens on.
#pragma once

#include <string>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::agent {

/// Listens on "ADDRESS:PORT" or "[ADDRESS]:PORT", numbers both. Not blocking, closed on exec.
Result<UniqueFd> listen_on(const std::string& address);

/// The socket that the service manager passes (LISTEN_FDS); none if it passes none. Not blocking, closed on exec. Call
/// it once, before there are threads: it removes the variables from the environment.
UniqueFd take_passed_socket();

/// The address that a socket is bound to, for messages: "127.0.0.1:9464".
std::string address_of(const UniqueFd& socket);

}  // namespace rtev::agent

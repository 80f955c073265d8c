// SPDX-License-Identifier: MIT
// Messages between the tracer and its helper process.
#pragma once

#include <optional>
#include <utility>

#include "helper/archive.hpp"
#include "rtev/error.hpp"

namespace rtev::helper {

/// Two connected sockets (SOCK_SEQPACKET). Closed on exec.
Result<std::pair<UniqueFd, UniqueFd>> make_channel();

/// Lets this end send messages of any length that is needed, with CAP_NET_ADMIN. Queries are short.
void allow_long_messages(int socket);

/// False if the other end is gone, or the message is too long. Waits for room, unless `dont_wait`.
bool send(int socket, const Message& message, bool dont_wait = false);
/// Waits for a message, unless `dont_wait`. Nothing at the end, or if there is none yet (errno EAGAIN).
std::optional<Message> receive(int socket, bool dont_wait);

}  // namespace rtev::helper

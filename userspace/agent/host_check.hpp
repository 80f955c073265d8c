// SPDX-License-Identifier: MIT
// Which names a server may be called by. A web page whose name is made to point to the address of the server (DNS
// rebinding) could read all of it, and its requests have that name as Host.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rtev::agent {

/// `host`: the value of a Host header, with or without a port. True for addresses, "localhost", the name of this host,
/// and names that match one of `allowed` (globs, in either case), as well as for an empty one: no browser sends that.
bool is_known_host(std::string_view host, std::span<const std::string> allowed);

}  // namespace rtev::agent

// SPDX-License-Identifier: MIT
// Parses a program or library for unwinding and naming its frames. Runs in the helper process: the file is its user's.
#pragma once

#include <cstddef>
#include <vector>

#include "base/change_check.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// The object tables of an open ELF file (see object_tables.hpp). Parts that the file does not have, or that make no
/// sense, are empty. Fails if it is no ELF file of this kind of machine, or cannot be read: EAGAIN while it is being
/// changed. Does not move the descriptor's offset.
///
/// Work and memory are bounded by the size of the file, and by constants.
Result<std::vector<std::byte>> build_object_tables(int fd, const ChangeCheck& check = {});

}  // namespace rtev

// SPDX-License-Identifier: MIT
// Programs whose tables for stacks are expensive: they run as before.
#pragma once

#include <cstddef>
#include <string>

namespace rtev::hostile {

/// The program with 63 MB of .eh_frame: one function has 6.3 million instructions, each with an expression of its own.
std::string with_many_expressions(std::string program);

/// The program with so many more symbols, each at an address of its own and with a name of 120 bytes.
std::string with_many_symbols(std::string program, std::size_t symbols);

}  // namespace rtev::hostile

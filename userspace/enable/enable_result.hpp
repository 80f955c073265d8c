// SPDX-License-Identifier: MIT
// The results of switching the events of a program on or off.
#pragma once

#include <cstdint>

namespace rtev::enable {

/// What became of the attempt to switch the events of a running program on, or off.
enum class EnableResult : std::uint8_t {
  done,              ///< its runtime has made its ring; its events are paused
  resumed,           ///< its events were paused, and go on
  nothing_to_do,     ///< its events are on already, or off
  gone,              ///< it ended meanwhile, or runs another program
  not_ocaml,         ///< it runs no OCaml 5 program
  unknown_version,   ///< its version of OCaml is not one that was tested
  no_symbols,        ///< its program was stripped of symbols that it takes
  denied,            ///< its memory may not be written, or what guards it failed
  unexpected_value,  ///< its memory does not hold what it should
  directory,         ///< it could not make its ring there
  space,             ///< there is too little space for the ring
  limit,             ///< it has a limit that is too small for the ring
  memory,            ///< its control group has too little memory left for the ring
  seccomp,           ///< a filter of system calls might stop it
  profile,           ///< a security profile might stop it
  stopped,           ///< it is stopped, or a debugger is attached
  suspect,           ///< it came to harm, or another process of the same program did
  not_running,       ///< it did not run in time
  no_answer,         ///< the kernel did not answer questions about it in time
};

constexpr bool is_good(EnableResult result) {
  return result <= EnableResult::nothing_to_do;
}

}  // namespace rtev::enable

// SPDX-License-Identifier: MIT
// OCaml programs to trace, from tests/ocaml.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "live/child_process.hpp"

namespace rtev::bench {

/// False if the build found no OCaml to compile them.
inline bool has_ocaml() {
  return *RTEV_OCAML_VERSION != '\0';
}

/// Command to run one with events on and the ring file in `directory`.
inline test::Command ocaml_program(const std::string& name, const std::filesystem::path& directory,
                                   const std::vector<std::string>& arguments = {}) {
  test::Command command{.argv = {std::string(RTEV_OCAML_PROGRAMS) + '/' + name}};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.env = {{"OCAML_RUNTIME_EVENTS_START", "1"}, {"OCAML_RUNTIME_EVENTS_DIR", directory.string()}};
  return command;
}

}  // namespace rtev::bench

// SPDX-License-Identifier: MIT
// What a program is called: by the kernel, by its file, and for bytecode by what its interpreter runs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rtev {

/// Any bytes, and each may be empty.
struct ProgramNames {
  std::string_view comm;      ///< the kernel's name of the main thread, cut after 15 bytes
  std::string_view exe{};     ///< path of the program's file
  std::string_view script{};  ///< path of the bytecode that it runs, as it was started; empty for native code
};

/// The end of a path.
std::string_view file_name_of(std::string_view path);

/// True of the program that runs bytecode: "ocamlrun", "ocamlrund", and since OCaml 5.5 names such as
/// "x86_64-pc-linux-gnu-ocamlrun-a104". Many programs have this file.
bool is_bytecode_interpreter(std::string_view exe);

/// The bytecode that an interpreter runs, of its arguments, each ended by a 0; empty if they do not say.
std::string bytecode_of(std::string_view arguments);

/// What people call it: the comm, unless the kernel cut the file's name for it. Of bytecode the name of its file.
std::string_view full_name(const ProgramNames& names);

/// The path that tells it from others of its name.
std::string_view path_of(const ProgramNames& names);

/// `name` with those directories before it that tell its path from the others: "one/main.exe" for
/// /home/a/one/bin/main.exe where another one is /home/a/two/bin/main.exe.
std::string distinct_name(std::string_view name, std::string_view path, const std::vector<std::string>& others);

}  // namespace rtev

// SPDX-License-Identifier: MIT
// What a program is called: by the kernel, by its file, and for bytecode and dynamic loaders by the file that they run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rtev {

/// Any bytes, and each may be empty.
struct ProgramNames {
  std::string_view comm;      ///< the kernel's name of the main thread, cut after 15 bytes
  std::string_view exe{};     ///< path of the program's file
  std::string_view script{};  ///< of a program that runs_another_file(): its path, as it was started; else empty
};

/// The end of a path.
std::string_view file_name_of(std::string_view path);

/// True of the program that runs bytecode: "ocamlrun", "ocamlrund", and since OCaml 5.5 names such as
/// "x86_64-pc-linux-gnu-ocamlrun-a104".
bool is_bytecode_interpreter(std::string_view exe);

/// True for the path of a dynamic loader: ld-linux-x86-64.so.2, ld-musl-x86_64.so.1, ld.so… For a program that is run
/// through one (`ld.so PROGRAM`), the loader is the program to the kernel.
bool is_loader_path(std::string_view path);

/// True of both: many programs have this file.
inline bool runs_another_file(std::string_view exe) {
  return is_bytecode_interpreter(exe) || is_loader_path(exe);
}

/// That other file, of the arguments of the process, each ended by a 0; empty if they do not say.
std::string script_of(std::string_view exe, std::string_view arguments);

/// What people call it: the comm, unless the kernel cut the file's name for it, or it is the name of a file that runs
/// another one: then that of the other.
std::string_view full_name(const ProgramNames& names);

/// The path that tells it from others of its name.
std::string_view path_of(const ProgramNames& names);

/// `name` with those directories before it that tell its path from the others: "one/main.exe" for
/// /home/a/one/bin/main.exe where another one is /home/a/two/bin/main.exe.
std::string distinct_name(std::string_view name, std::string_view path, const std::vector<std::string>& others);

}  // namespace rtev

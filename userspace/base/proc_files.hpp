// SPDX-License-Identifier: MIT
// Files of /proc, found where no other user can keep this process waiting.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace rtev {

/// The root of a procfs instance of this process's own, which is mounted nowhere; -1 if it may not make one
/// (CAP_SYS_ADMIN). In /proc any user can lock the directory of any process: rename(2) locks it before the kernel looks
/// at rights. Who looks up a name there waits then, and cannot be killed. Each instance has directories of its own. The
/// first call makes it; children inherit it.
int own_proc();

/// How the *at() functions of the system find a path: what is below /proc in own_proc(), if there is one.
struct ProcPlace {
  int directory;
  const char* name;  ///< part of the path
};
ProcPlace proc_place(const std::string& path);
ProcPlace proc_place(std::string&& path) = delete;

UniqueFd open_proc(const std::filesystem::path& path, int flags);

/// Target of a symbolic link as the kernel prints it; empty if it cannot be read.
std::string link_target(const std::filesystem::path& link);

/// Calls `visit` for each name in a directory but "." and "..", in no order, until it returns false.
void visit_names(UniqueFd directory, const std::function<bool(std::string_view name)>& visit);
void visit_names(const std::filesystem::path& directory, const std::function<bool(std::string_view name)>& visit);

}  // namespace rtev

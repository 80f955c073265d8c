// SPDX-License-Identifier: MIT
#include "inspect/loader.hpp"

namespace rtev {
namespace {

/// OCaml's own plugins are libraries, too.
bool is_library_name(std::string_view name) {
  return name.ends_with(".so") || name.contains(".so.") || name.ends_with(".cmxs");
}

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool is_loader_path(std::string_view path) {
  const std::string_view name = name_of(path);
  return (name.starts_with("ld-") || name.starts_with("ld.")) && is_library_name(name);
}

bool is_loaded_program(const Mapping& mapping) {
  return mapping.permissions.size() == 4 && mapping.permissions[2] == 'x' && mapping.path.starts_with('/') &&
         !is_library_name(name_of(mapping.path));
}

}  // namespace rtev

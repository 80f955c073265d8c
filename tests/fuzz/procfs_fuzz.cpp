// SPDX-License-Identifier: MIT
// Any text as a file of /proc. The first byte selects which. What the parsers accept they accept again when it is
// printed as the kernel would.
#include <fmt/core.h>
#include <sys/sysmacros.h>

#include <filesystem>

#include "base/program_names.hpp"
#include "fuzz/fuzzing.hpp"
#include "inspect/procfs.hpp"
#include "support/temp_dir.hpp"

namespace rtev::fuzz {
namespace {

namespace fs = std::filesystem;

/// As the kernel escapes blanks and backslashes in mountinfo.
std::string octal(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view(" \t\n\\#").contains(c))
      escaped += fmt::format("\\{:03o}", static_cast<unsigned>(c));
    else
      escaped += c;
  }
  return escaped;
}

void check_mapping(std::string_view line) {
  const auto mapping = parse_mapping(line);
  if (!mapping) return;
  check(mapping->begin < mapping->end, "a mapping has an end after its begin");
  const auto again =
      parse_mapping(fmt::format("{:08x}-{:08x} {} {:08x} {:02x}:{:02x} {} {}{}", mapping->begin, mapping->end,
                                mapping->permissions, mapping->offset, major(mapping->device), minor(mapping->device),
                                mapping->inode, mapping->path, mapping->deleted ? " (deleted)" : ""));
  check(again && again->begin == mapping->begin && again->end == mapping->end && again->offset == mapping->offset &&
            again->permissions == mapping->permissions && again->device == mapping->device &&
            again->inode == mapping->inode && again->path == mapping->path && again->deleted == mapping->deleted,
        "a mapping, printed and parsed again", line);
  check(!is_ring_mapping(*mapping) || is_ring_path(mapping->path), "a ring's mapping has a ring's path");
  check(!is_loaded_program(*mapping) || !is_runtime_library(*mapping), "a runtime's library is no program");
  if (is_ring_path(mapping->path)) check(mapping->path.ends_with(".events"), "the path of a ring", line);
}

void check_mount(std::string_view line) {
  const auto mount = parse_mount(line);
  if (!mount) return;
  const auto again =
      parse_mount(fmt::format("{} 1 {}:{} {} {} rw shared:1 - {} none rw", mount->id, major(mount->device),
                              minor(mount->device), octal(mount->root), octal(mount->point), mount->type));
  check(again && again->id == mount->id && again->device == mount->device && again->root == mount->root &&
            again->point == mount->point && again->type == mount->type,
        "a mount, printed and parsed again", line);
}

void check_stat(std::string_view text) {
  const auto stat = parse_stat(text);
  if (!stat) return;
  std::string printed = fmt::format("1 ({}) {} 1 1 1 1 1 {}", stat->comm, stat->state,
                                    (stat->kernel_thread ? 0x200000 : 0) | (stat->ending ? 0x4 : 0));
  for (int field = 10; field < 20; ++field) printed += " 1";
  printed +=
      fmt::format(" {} 1 {} 1", static_cast<std::int64_t>(stat->threads), static_cast<std::int64_t>(stat->start_ticks));
  const auto again = parse_stat(printed);
  check(again && again->comm == stat->comm && again->state == stat->state && again->threads == stat->threads &&
            again->kernel_thread == stat->kernel_thread && again->ending == stat->ending &&
            again->start_ticks == stat->start_ticks,
        "a stat file, printed and parsed again", text);
}

/// The files of process 7, in memory: links to descriptors.
class Files {
 public:
  Files() {
    fs::create_directories(dir_ / "7");
    fs::create_directories(dir_ / "self/fdinfo");
    const std::string target = fmt::format("/proc/self/fd/{}", file_.get());
    for (const char* name : {"7/status", "7/timens_offsets", "7/maps", "7/stat", "self/mountinfo", "self/fdinfo/7"})
      fs::create_symlink(target, dir_ / name);
  }

  void read(std::uint8_t which, std::string_view text) const {
    resize(file_, 0);
    check(::pwrite(file_.get(), text.data(), text.size(), 0) == std::ssize(text), "pwrite");
    switch (which) {
      case 0:
        check(procfs_.ns_pid(7) > 0, "a pid is positive");
        static_cast<void>(procfs_.max_rss_bytes(7));
        return;
      case 1:
        static_cast<void>(procfs_.clock_offset_ns(7));
        return;
      case 2:
        procfs_.visit_mappings(7, [](const Mapping& mapping) {
          check(mapping.begin < mapping.end, "mappings");
          return true;
        });
        return;
      case 3:
        static_cast<void>(procfs_.living_threads(7));
        return;
      case 4:
        static_cast<void>(procfs_.mounts());
        return;
      default:
        static_cast<void>(procfs_.open_file(7));
        return;
    }
  }

 private:
  UniqueFd file_ = file_of({});
  test::TempDir dir_;
  Procfs procfs_{dir_.path()};
};

}  // namespace

void procfs(Bytes bytes) {
  Input input(bytes);
  const auto which = input.take<std::uint8_t>();
  const std::string_view text = text_of(input.rest());
  switch (which % 16) {
    case 10:
      return check_stat(text);
    case 11:
      return check_mapping(text);
    case 12:
      return check_mount(text);
    case 13:
      if (const auto number = ring_number(text)) check(is_ring_path(text) && *number >= 0, "number of a ring", text);
      static_cast<void>(script_of("/lib/ld.so", text));
      static_cast<void>(script_of("ocamlrun", text));
      return;
    default:
      static const Files files;
      files.read(which % 16, text);
  }
}

}  // namespace rtev::fuzz

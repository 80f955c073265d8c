// SPDX-License-Identifier: MIT
#include "inspect/process_view.hpp"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <expected>
#include <set>
#include <utility>

#include "base/subordinate_users.hpp"
#include "inspect/enabled_list.hpp"

namespace rtev {
namespace {

/// A program has one ring, a forked child its parent's for a moment. A process that maps more is not an OCaml program,
/// and must not use up our descriptors.
constexpr std::size_t max_mapped_rings = 4;

/// Files shared with others that an OCaml program may have mapped besides its ring.
constexpr std::size_t max_shared_files = 64;

/// The record of a ring is written right before its mapping exists: looked for again at this interval, this often.
constexpr timespec mapping_retry{.tv_sec = 0, .tv_nsec = 50'000};
constexpr int mapping_tries = 10;

/// The header of a ring file, and the indices of the 128 domains that OCaml has by default.
constexpr std::size_t ring_header_bytes = 16 << 10;

constexpr std::uint64_t page_bytes = 4096, large_page_bytes = 2u << 20;

bool is_shared_file(const Mapping& mapping) {
  return mapping.permissions.size() == 4 && mapping.permissions[1] == 'w' && mapping.permissions[3] == 's' &&
         mapping.offset == 0 && mapping.path.starts_with('/');
}

bool covers(const Mapping& mapping, std::uint64_t address) {
  return mapping.begin <= address && address < mapping.end;
}

/// Reads the beginning of a ring into memory. Whoever reads the ring does not wait for the disk, and what is not in
/// memory it reads late: see PageCheck.
void load_header(const UniqueFd& ring) {
  std::array<std::byte, ring_header_bytes> read;
  [[maybe_unused]] const ssize_t got = ::pread(ring.get(), read.data(), read.size(), 0);
}

/// Closes a ring file whose owner may write there what the process did not. `user`: the charged_user() of the process.
/// `may_be`: tells whether the process may be this user, too.
template <typename MayBe>
void refuse_if_of_other_user(OpenedRing& ring, std::uint32_t user, MayBe may_be) {
  struct stat status{};
  if (!ring.fd || ::fstat(ring.fd.get(), &status) != 0) return;
  if (status.st_uid == 0 || charged_user(status.st_uid) == user || may_be(status.st_uid)) return;
  ring.of_other_user = true;
  ring.fd.reset();
}

/// For a process that maps the ring now.
void refuse_if_of_other_user(OpenedRing& ring, std::uint32_t user, const Procfs& procfs, std::int32_t pid) {
  refuse_if_of_other_user(ring, user, [&](uid_t owner) { return procfs.may_be_user(pid, owner); });
}

bool is_unsafe(const Error& error) {
  return error.code == unsafe_file_system;
}

Image open_image(const Procfs& procfs, const ProcessQuery& query) {
  Image image;
  if (auto file = procfs.open_exe(query.pid)) image.file = std::move(*file);
  image.exe = procfs.exe_path(query.pid);
  if (runs_another_file(image.exe)) image.script = script_of(image.exe, procfs.raw_arguments(query.pid));
  image.ns_pid = procfs.ns_pid(query.pid);
  if (image.exe.empty() && query.program) {
    // The process is gone, but its program is still on disk in most cases.
    if (auto program = open_by_place(procfs, *query.program)) {
      image.file = std::move(program->fd);
      image.exe = std::move(program->path);
    }
  }
  return image;
}

/// Why the ring is not mapped at its announced address.
enum class NotMapped : std::uint8_t { nothing_there, other_file };

/// Opens the ring through its mapping. The kernel may have moved the beginning of the mapping before the announced
/// address, to a boundary of large pages.
std::expected<OpenedRing, NotMapped> open_announced_mapping(const Procfs& procfs, std::int32_t pid,
                                                            const AnnouncedRing& ring) {
  NotMapped why = NotMapped::nothing_there;
  const std::uint64_t aligned = ring.address & ~(large_page_bytes - 1);
  for (const std::uint64_t begin : {ring.address, aligned, aligned - large_page_bytes}) {
    const Mapping mapping{.begin = begin, .end = begin + ((ring.length + page_bytes - 1) & ~(page_bytes - 1))};
    OpenedRing opened{.fd = {},
                      .path = procfs.mapping_path(pid, mapping),
                      .clock_offset_ns = ring.clock_offset_ns,
                      .begin = begin,
                      .length = ring.length};
    auto fd = procfs.open_mapping(pid, mapping);
    if (!fd && !(is_unsafe(fd.error()) && is_ring_path(opened.path))) {
      if (is_unsafe(fd.error()) && covers(mapping, ring.address)) why = NotMapped::other_file;
      continue;
    }
    if (opened.path.empty()) opened.path = ring.place.path;
    if (fd) {
      opened.fd = std::move(*fd);
      const auto open = procfs.open_file(opened.fd.get());
      if (!open || open->inode != ring.place.inode) {
        if (covers(mapping, ring.address)) why = NotMapped::other_file;
        continue;
      }
      opened.inode = open->inode;
      refuse_if_of_other_user(opened, ring.user, procfs, pid);
      if (opened.fd) load_header(opened.fd);
    }
    return opened;
  }
  return std::unexpected(why);
}

/// Where a file is, or was, in this mount namespace.
std::string ring_path(const Procfs& procfs, const FilePlace& place) {
  const auto candidates = find_candidates(place, procfs.mounts());
  return candidates.empty() ? place.path : candidates.front().path();
}

void look_for_announced(const Procfs& procfs, const ProcessQuery& query, ProcessView& view) {
  const AnnouncedRing& ring = *query.announced_ring;
  for (int tries = 0; tries < mapping_tries; ++tries) {
    auto opened = open_announced_mapping(procfs, query.pid, ring);
    if (opened) {
      view.rings.push_back(std::move(*opened));
      return;
    }
    // A mapping that was replaced does not come back, and a process could have us look at it all the time.
    if (opened.error() == NotMapped::other_file) break;
    if (!procfs.stat(query.pid)) break;
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &mapping_retry, nullptr);
  }
  view.announced_path = ring_path(procfs, ring.place);
  if (!is_ring_path(ring.place.path)) return;
  if (auto file = open_by_place(procfs, ring.place)) {
    view.placed_ring.emplace(
        OpenedRing{.fd = std::move(file->fd), .path = std::move(file->path), .clock_offset_ns = ring.clock_offset_ns});
    // The process does not map it, so its pid may be another one's by now.
    refuse_if_of_other_user(*view.placed_ring, ring.user, [](uid_t) { return false; });
    if (view.placed_ring->fd) load_header(view.placed_ring->fd);
  }
}

/// Opens files that a process maps, each once, if it is one of those that are wanted.
class MappedFiles {
 public:
  MappedFiles(const Procfs& procfs, const ProcessQuery& query, ProcessView& view)
      : procfs_(procfs), query_(query), view_(view) {}

  void visit(const Mapping& mapping) {
    const bool is_ring = query_.mapped_rings && is_ring_mapping(mapping);
    if ((is_ring || (query_.shared_files && is_shared_file(mapping))) && !is_left(mapping))
      open(mapping, is_ring ? max_mapped_rings : max_shared_files);
    using enum ProcessQuery::Runtime;
    if (view_.runtime || query_.runtime == none) return;
    // Its first page is the first that is mapped; the code, by which a program is told from its data, may follow.
    if (mapping.offset == 0) first_page_ = mapping;
    if (!(query_.runtime == library ? is_runtime_library(mapping) : is_loaded_program(mapping))) return;
    if (auto fd = procfs_.open_mapping(query_.pid, mapping))
      view_.runtime = {.fd = std::move(*fd), .begin = first_page_.path == mapping.path ? first_page_.begin : 0};
  }

 private:
  /// If rtev-bpf has switched the events of a program off, its ring stays mapped, also in children that it forks then.
  bool is_left(const Mapping& mapping) const {
    if (!mapping.deleted || !is_ring_mapping(mapping)) return false;
    const auto stat = procfs_.stat(query_.pid);
    return ring_number(mapping.path) != procfs_.ns_pid(query_.pid) ||
           (stat && enabled_by_us(query_.pid, stat->start_ticks) == Enabled::off);
  }

  void open(const Mapping& mapping, std::size_t max_files) {
    if (files_.size() >= max_files || !files_.emplace(mapping.device, mapping.inode).second) return;
    auto fd = procfs_.open_mapping(query_.pid, mapping);
    if (!fd && !is_unsafe(fd.error())) return;
    const auto mapped = fd ? procfs_.open_file(fd->get()) : std::nullopt;
    const bool is_ring = is_ring_mapping(mapping);
    OpenedRing ring{.fd = fd ? std::move(*fd) : UniqueFd(),
                    .path = mapping.path,
                    .clock_offset_ns = procfs_.clock_offset_ns(query_.pid),
                    .begin = mapping.begin,
                    .length = mapping.end - mapping.begin,
                    .inode = mapped ? mapped->inode : 0};
    refuse_if_of_other_user(ring, procfs_.user(query_.pid), procfs_, query_.pid);
    // Files of other names need not be rings: programs share those of other users, too.
    if (ring.of_other_user && !is_ring) return;
    if (ring.fd && is_ring) load_header(ring.fd);
    view_.rings.push_back(std::move(ring));
  }

  const Procfs& procfs_;
  const ProcessQuery& query_;
  ProcessView& view_;
  Mapping first_page_{};
  std::set<std::pair<std::uint64_t, std::uint64_t>> files_;  ///< device and inode
};

}  // namespace

std::optional<RingFileId> identify_ring(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return std::nullopt;
  return RingFileId{status.st_dev, status.st_ino};
}

ProcessView look_at(const Procfs& procfs, const ProcessQuery& query) {
  ProcessView view;
  if (query.all_pids) {
    view.pids = procfs.pids();
    return view;
  }
  if (query.started_with) {
    for (const std::int32_t pid : procfs.started_with(query.started_with->variable, query.started_with->user)) {
      const auto stat = procfs.stat(pid);
      view.started.push_back({.pid = pid, .comm = stat ? stat->comm : std::string()});
    }
    return view;
  }
  // First: the shortest of programs have their ring for 2 ms.
  if (query.announced_ring) look_for_announced(procfs, query, view);
  view.stat = procfs.stat(query.pid);
  if (view.stat && view.stat->kernel_thread) return view;
  if (query.image)
    view.image = open_image(procfs, query);
  else if (query.user)
    view.image.exe = procfs.exe_path(query.pid);
  if (query.user || query.image) view.image.user = procfs.user(query.pid);
  if (view.stat) {
    view.image.start_ticks = view.stat->start_ticks;
    view.image.start_code = view.stat->start_code;
    view.image.comm = view.stat->comm;
  }
  if (query.mapped_rings || query.shared_files || query.runtime != ProcessQuery::Runtime::none) {
    MappedFiles files(procfs, query, view);
    procfs.visit_mappings(query.pid, [&](const Mapping& mapping) {
      files.visit(mapping);
      return true;
    });
  }
  if (query.peak_memory) view.peak_memory_bytes = procfs.max_rss_bytes(query.pid);
  if (query.arguments) view.arguments = procfs.arguments(query.pid);
  if (query.service) view.service = procfs.service(query.pid);
  if (query.word_address != 0) view.word = procfs.read_word(query.pid, query.word_address);
  return view;
}

}  // namespace rtev

// SPDX-License-Identifier: MIT
#include "enable/requirements.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/proc_files.hpp"
#include "base/run_parameters.hpp"
#include "enable/process_status.hpp"
#include "enable/ring_directories.hpp"
#include "enable/ring_place.hpp"

namespace rtev::enable {
namespace {

/// 2^31 is negative in the runtime's int.
constexpr std::uint64_t max_ring_bits = 31, max_domains = 4096;

/// For names of user events.
constexpr std::uint64_t reserved_names_bytes = 1 << 16;

/// What the ring takes besides: the runtime allocates a little, and maps the file.
constexpr std::uint64_t spare_bytes = 4 << 20;
constexpr std::size_t max_path_bytes = 4096;

/// The longest a ring's file gets, and the parts of it that the program writes to at first: see ReservedRing::make().
struct RingSize {
  std::uint64_t bytes = 0;
  RingParts parts{};
};

/// Domains for which a ring has its blocks from the beginning. A domain has two threads at most times.
constexpr std::uint64_t max_reserved_rings = 16;

/// Words of a domain's ring, and domains, as the runtime took them from the environment.
struct RingShape {
  std::uint64_t words = 0, domains = 0;
};

RingShape ring_shape(const Target& target) {
  std::string parameters;
  for (const char* name : {"OCAMLRUNPARAM", "CAMLRUNPARAM"})
    if (parameters.empty()) parameters = target.process.started_with(name).value_or("");
  const std::uint64_t bits = std::min(run_parameter(parameters, 'e').value_or(default_ring_bits), max_ring_bits);
  RingShape shape{.words = std::uint64_t{1} << bits, .domains = default_ring_domains};
  if (const std::uint64_t place = target.place(target.runtime.start_sites.ring_words); place != 0) {
    // An int, which need not be aligned to a word.
    const auto aligned = target.memory().word(place & ~7ull);
    const auto known = aligned ? static_cast<std::uint32_t>(*aligned >> (place % 8 * 8)) : 0;
    if (std::has_single_bit(known)) shape.words = known;
  }
  // Before OCaml 5.3 it was no parameter.
  if (target.runtime.family != Family::before_5_3)
    shape.domains = std::min<std::uint64_t>(run_parameter(parameters, 'd').value_or(shape.domains), max_domains);
  return shape;
}

RingSize ring_size(const Target& target, std::uint64_t threads) {
  const auto [words, domains] = ring_shape(target);
  const std::uint64_t ring_bytes = words * sizeof(std::uint64_t), heads_bytes = domains * ring_domain_bytes + 4096,
                      rings = std::clamp<std::uint64_t>(threads, 1, std::min(domains, max_reserved_rings));
  return {.bytes = ring_names_bytes + domains * ring_bytes + heads_bytes,
          .parts = {.first_bytes = heads_bytes + rings * ring_bytes,
                    .names_begin = domains * ring_bytes,
                    .names_bytes = heads_bytes + reserved_names_bytes}};
}

/// Of AppArmor or SELinux; empty if there is none.
std::string security_profile(const HeldProcess& process) {
  auto text = process.read("attr/current", max_path_bytes).value_or("");
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text == "unconfined" || text == "kernel" ? std::string() : text;
}

std::uint64_t open_files(const HeldProcess& process) {
  std::uint64_t count = 0;
  visit_names(process.open("fd", O_RDONLY | O_DIRECTORY), [&count](std::string_view) { return ++count > 0; });
  return count;
}

/// The runtime opens one: its program dies if it cannot. Who makes the program open files, as a client does, must not
/// be able to take the last ones between this and that.
bool has_spare_files(std::uint64_t files, std::uint64_t limit) {
  return files + std::clamp<std::uint64_t>(limit / 8, 16, 256) <= limit;
}

std::string megabytes(std::uint64_t bytes) {
  constexpr std::uint64_t megabyte = 1 << 20;
  if (bytes == UINT64_MAX) return "no limit";
  return bytes < megabyte ? fmt::format("{} kB", bytes >> 10) : fmt::format("{} MB", bytes / megabyte);
}

/// Collects what was looked at.
class List {
 public:
  void add(EnableResult result, std::string what, bool is_met, std::string found, std::string hint) {
    requirements_.push_back({.result = result,
                             .what = std::move(what),
                             .is_met = is_met,
                             .found = std::move(found),
                             .hint = is_met ? std::string() : std::move(hint)});
  }
  std::vector<Requirement> take() { return std::move(requirements_); }

 private:
  std::vector<Requirement> requirements_;
};

/// The directory that the runtime goes to by itself: see Requirements::directory. Nothing if that is not known.
std::optional<std::string> own_directory(const Target& target) {
  const std::uint64_t variable = target.place(target.runtime.start_sites.directory);
  if (variable == 0) return target.process.started_with("OCAML_RUNTIME_EVENTS_DIR").value_or("");
  const auto pointer = target.memory().word(variable);
  if (!pointer) return std::nullopt;
  return *pointer == 0 ? std::string() : target.memory().text(*pointer, max_path_bytes);
}

/// What space the place lacks for a ring of this size; empty if it has enough.
std::string lacks_space(const RingPlace& place, std::uint64_t bytes) {
  if (place.free_bytes >= bytes && place.free_files > 0) return {};
  return fmt::format("{} free, {} for the ring at most", megabytes(place.free_bytes), megabytes(bytes));
}

/// A directory for the ring, and what was found there.
struct LookedAt {
  std::string directory{};
  std::expected<RingPlace, NoAnswer> place = std::unexpected(NoAnswer::late);

  bool is_usable(std::uint64_t bytes) const {
    return place && place->is_usable() && lacks_space(*place, bytes).empty();
  }
};

/// The first directory that can be used, or else the first one. Nothing if the program has no path of one. Each that
/// does not answer costs a second: after the second of these no more are looked at.
std::optional<LookedAt> choose(const HeldProcess& process, const std::vector<std::string>& directories,
                               bool may_be_readable, std::uint64_t bytes, std::set<std::string>& silent) {
  constexpr int max_silent = 2;
  int unanswered = 0;
  std::optional<LookedAt> first;
  for (const std::string& directory : directories) {
    if (unanswered == max_silent) break;
    LookedAt here{.directory = directory};
    if (!silent.contains(directory)) {
      here.place = look_at_ring_place(process, {.path = directory, .may_be_readable = may_be_readable});
      if (!here.place && here.place.error() == NoAnswer::late) {
        silent.insert(directory);
        ++unanswered;
      }
    }
    if (here.is_usable(bytes)) return here;
    if (!first) first = std::move(here);
  }
  return first;
}

void add_place(List& list, const std::expected<RingPlace, NoAnswer>& place, const std::string& name,
               std::uint64_t bytes) {
  const std::string hint = directory_hint;
  if (!place) {
    Refused none = no_answer_of(name, place.error());
    return list.add(none.result, "directory of the ring", false, std::move(none.why), std::move(none.hint));
  }
  if (place->is_unsafe)
    return list.add(EnableResult::directory, "directory of the ring", false,
                    name + ": its file system is not known, or may not answer (FUSE, NFS)", hint);
  if (!place->insecure.empty())
    return list.add(EnableResult::directory, "directory of the ring", false, name + ": " + place->insecure, hint);
  const int error = place->open_error != 0 ? place->open_error : place->access_error;
  list.add(EnableResult::directory, "directory of the ring", error == 0,
           error == 0 ? name : name + ": " + std::generic_category().message(error), hint);
  if (error != 0) return;
  list.add(EnableResult::directory, free_name, !place->is_taken,
           place->is_taken ? "there is a file of that name" : "free",
           "if no process of another container writes to it, remove it");
  const std::string lacking = lacks_space(*place, bytes);
  list.add(EnableResult::space, "space for the ring", lacking.empty(),
           lacking.empty() ? megabytes(place->free_bytes) + " free" : lacking,
           "free some space there, or start it with another OCAML_RUNTIME_EVENTS_DIR");
}

}  // namespace

Checked<void> check_ring_size(const Target& target) {
  const auto [words, domains] = ring_shape(target);
  if (can_make_rings(words, domains)) return {};
  const bool is_small = words >> min_ring_bits == 0;
  return refuse(
      EnableResult::ring_size,
      fmt::format("rings of {} words for {} domains each (OCAMLRUNPARAM: e, d) are too {} for OCaml's runtime, "
                  "{}",
                  words, domains, is_small ? "small" : "large",
                  is_small ? "which hangs in its first event" : "which dies of them"),
      "start it with rings of another size, e.g. OCAMLRUNPARAM=e=16");
}

const Requirement* Requirements::missing() const {
  const auto found = std::ranges::find(list, false, &Requirement::is_met);
  return found == list.end() ? nullptr : &*found;
}

bool has_spare_files(const HeldProcess& process) {
  const auto limits = process.read("limits");
  return limits && has_spare_files(open_files(process), parse_limits(*limits).open_files);
}

Requirements check_requirements(const Target& target, const Allowed& allowed, std::optional<std::uint64_t> memory_left,
                                std::set<std::string>& silent) {
  List list;
  const HeldProcess& process = target.process;
  const auto status_text = process.read("status"), limits_text = process.read("limits");
  const auto parsed_status = status_text.and_then(parse_status);
  if (!parsed_status || !limits_text) {
    list.add(EnableResult::gone, "process", false, "it ended", {});
    return {.list = list.take()};
  }
  const ProcessStatus& status = *parsed_status;
  const ProcessLimits limits = parse_limits(*limits_text);
  const bool is_free = status.tracer_pid == 0;
  list.add(EnableResult::debugged, "debugger", is_free, is_free ? "none" : "one is attached", "detach the debugger");

  list.add(EnableResult::seccomp, "filter of system calls", status.seccomp == 0 || allowed.confined,
           status.seccomp == 0 ? "none" : "it has one (seccomp)", confined_hint);
  const std::string profile = security_profile(process);
  list.add(EnableResult::profile, "security profile", profile.empty() || allowed.confined,
           profile.empty() ? "none" : profile, confined_hint);

  const auto path = own_directory(target);
  if (!path) {
    list.add(EnableResult::unexpected_value, "directory of the ring", false, "it cannot be read", {});
    return {.list = list.take()};
  }
  const auto [bytes, parts] = ring_size(target, status.threads);
  // The second one says whether the first one is final: see Target::is_initialised().
  const bool can_be_led = target.runtime.start_sites.directory != 0 && target.runtime.start_sites.ring_words != 0;
  std::vector<std::string> directories;
  if (!path->empty())
    directories.push_back(*path);
  else if (can_be_led)
    directories = ring_directories(target);
  const std::size_t room = room_for_directory(target);
  const bool has_room =
      !path->empty() || std::erase_if(directories, [room](const std::string& one) { return one.size() >= room; }) == 0;
  const bool is_absolute = path->empty() || path->starts_with('/');
  const bool may_be_readable = !path->empty() || allowed.readable;
  const auto chosen = is_absolute ? choose(process, directories, may_be_readable, bytes, silent) : std::nullopt;
  const RingPlace* const place = chosen && chosen->place ? &*chosen->place : nullptr;
  if (place != nullptr && place->open_error == ESRCH) {
    list.add(EnableResult::gone, "process", false, "it ended", {});
    return {.list = list.take()};
  }
  Requirements requirements{.parts = parts};
  if (chosen) {
    requirements.directory = {.path = chosen->directory, .may_be_readable = may_be_readable};
    requirements.is_led = path->empty();
    add_place(list, chosen->place, chosen->directory, bytes);
  } else {
    list.add(EnableResult::directory, "directory of the ring", false,
             !is_absolute ? *path + " is a relative path"
             : !has_room  ? "its memory has no room for the path of one"
                          : "it has no absolute path of a directory",
             directory_hint);
  }

  list.add(EnableResult::limit, "largest file (RLIMIT_FSIZE)", limits.file_bytes >= bytes, megabytes(limits.file_bytes),
           "raise its limit: prlimit --fsize");
  const bool has_addresses =
      limits.address_space - std::min(limits.address_space, status.memory_bytes) >= bytes + spare_bytes;
  list.add(EnableResult::limit, "address space (RLIMIT_AS)", has_addresses, megabytes(limits.address_space),
           "raise its limit: prlimit --as");
  const std::uint64_t files = open_files(process);
  list.add(EnableResult::limit, "open files (RLIMIT_NOFILE)", has_spare_files(files, limits.open_files),
           fmt::format("{} of {}", files, limits.open_files), files_hint);
  // What lies on a disk can leave memory again.
  const std::uint64_t memory_needed = place != nullptr && place->is_memory ? bytes + spare_bytes : spare_bytes;
  list.add(EnableResult::memory, "memory of its control group", memory_left.value_or(UINT64_MAX) >= memory_needed,
           !memory_left                 ? "unknown"
           : *memory_left == UINT64_MAX ? "no limit"
                                        : megabytes(*memory_left) + " left",
           "raise the limit of the group (memory.max)");
  requirements.list = list.take();
  return requirements;
}

}  // namespace rtev::enable

// SPDX-License-Identifier: MIT
#include "inspect/tracking.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspect/proc_lines.hpp"

namespace rtev {
namespace {

/// A path as /proc/PID/maps prints it: with its newlines escaped, and nothing else. Device and inode cannot be compared
/// instead: on overlayfs and btrfs those of maps are not those of stat(2).
std::string as_mapped(std::string path) {
  constexpr std::string_view escaped = "\\012";
  for (std::size_t at = 0; (at = path.find('\n', at)) != std::string::npos; at += escaped.size())
    path.replace(at, 1, escaped);
  return path;
}

/// Where the first page of the runtime's file is mapped, minus where it was linked to be; nothing if it is not mapped.
std::optional<std::uint64_t> load_bias(std::int32_t pid, const Procfs& procfs, const RuntimeBinary& runtime) {
  const std::vector<Mapping> mappings = procfs.mappings(pid);
  std::string program = procfs.exe_path(pid);
  if (is_loader_path(program)) {
    const auto loaded = std::ranges::find_if(mappings, is_loaded_program);
    program = loaded == mappings.end() ? std::string{} : loaded->path;
  } else {
    program = as_mapped(std::move(program));
  }
  for (const Mapping& mapping : mappings) {
    const bool is_runtime = runtime.shared_library ? is_runtime_library(mapping) : mapping.path == program;
    if (is_runtime && mapping.offset == 0) return mapping.begin - runtime.link_base;
  }
  return std::nullopt;
}

/// The number of a block of thread-local variables, if that is what a word of the process is.
std::uint32_t tls_module(std::uint64_t word) {
  constexpr std::uint64_t max_libraries = 1u << 16;
  return word <= max_libraries ? static_cast<std::uint32_t>(word) : 0;
}

}  // namespace

bool has_paused_events(std::int32_t pid, const Procfs& procfs, const RuntimeBinary& runtime) {
  const auto bias = load_bias(pid, procfs, runtime);
  return runtime.paused_flag != 0 && bias && procfs.read_word(pid, runtime.paused_flag + *bias).value_or(0) != 0;
}

rtev_tracked tracking_of(std::int32_t pid, const Procfs& procfs, const Binary& binary) {
  const RuntimeBinary& runtime = binary.runtime;
  rtev_tracked tracked{};
  tracked.binary = binary.id;
  tracked.id_offset = runtime.id_offset;
  const auto bias = load_bias(pid, procfs, runtime);
  if (runtime.shared_library && bias)
    tracked.tls_module = tls_module(procfs.read_word(pid, runtime.tls_module_word + *bias).value_or(0));
  if (!runtime.shared_library || tracked.tls_module != 0) {
    tracked.domain_self_tls = runtime.domain_self_tls;
    tracked.caml_state_tls = runtime.caml_state_tls;
  }
  if (bias) {
    const auto place = [&](const CodeRange& range, __u64& begin, __u64& end) {
      if (range.begin == 0) return;
      begin = range.begin + *bias;
      end = range.end + *bias;
    };
    place(runtime.backup_thread, tracked.backup_begin, tracked.backup_end);
    place(runtime.tick_thread, tracked.tick_begin, tracked.tick_end);
  }
  return tracked;
}

}  // namespace rtev

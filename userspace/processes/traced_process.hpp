// SPDX-License-Identifier: MIT
// One process image as discovery knows it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "inspect/binary_cache.hpp"
#include "inspect/process_view.hpp"
#include "inspect/tracking.hpp"
#include "stream/registry.hpp"

namespace rtev {

/// How long events may be held back until their program is inspected, which names them, from when the tracer learnt of
/// the image. After that they are freed with the names that most programs have.
inline constexpr std::uint64_t naming_timeout_ns = 500'000'000;

/// Which program an image runs, and how far it has been identified. See ProgramIdentifier.
struct ProgramState {
  /// The program needs a shared runtime, which the dynamic linker maps some time after the exec.
  struct Loading {
    std::shared_ptr<const Binary> program;
    std::uint64_t due_ns;  ///< when to look again
    std::uint64_t wait_ns;
    bool asked = false;  ///< the process is being looked at
  };
  bool by_loader = false;                    ///< run by a dynamic loader, and its program not found yet
  bool library_tried = false;                ///< its shared runtime has been searched for
  std::optional<FileIdentity> exe{};         ///< the program file
  std::optional<FileIdentity> inspecting{};  ///< the file whose inspection it waits for
  std::optional<Loading> loading{};          ///< while its runtime is not mapped yet
  std::shared_ptr<const Binary> binary{};    ///< the file that contains the runtime
  std::uint64_t start_code = 0;              ///< lowest address of the program's code; 0 = unknown
  std::uint64_t runtime_begin = 0;           ///< address of the first page of another file with the runtime
};

/// How far the kernel moved the file with the runtime from where it was linked to be; nothing if that is not known.
inline std::optional<std::uint64_t> bias_of(const ProgramState& program) {
  if (!program.binary) return std::nullopt;
  return program.runtime_begin != 0 ? bias_of_mapping(program.binary->runtime, program.runtime_begin)
                                    : bias_of_program(program.binary->runtime, program.start_code);
}

/// The rings of an image. See RingAcquisition.
struct ImageRings {
  /// A ring that was opened through a mapping of the process.
  struct Mapped {
    std::uint64_t inode;  ///< the kernel's own number
    std::uint64_t opened_ns;
  };
  /// Where BPF checks how full a ring gets: see rtev_tracked.
  struct Indices {
    std::uint64_t address = 0;
    std::uint32_t stride = 0, part_shift = 0;
  };
  std::vector<std::uint32_t> slots{};
  Indices indices{};  ///< of the last one
  std::vector<RingFileId> files{};
  std::vector<Mapped> mapped{};
  std::uint64_t announced_ns = 0;  ///< when the last of them was announced or found
  bool state_known = false;        ///< active or paused, as its program said since it came into view
};

/// A process image: a pid between two execs. A process is identified by its pid and start time, an image also by the
/// exec generation in its ProcessInfo.
struct TracedProcess {
  std::int32_t pid = 0;
  std::uint64_t start_ticks = 0;
  std::uint32_t user = 0;
  ProcessAction origin = ProcessAction::found;  ///< how the image began or came into view: found, exec or fork
  std::int32_t peer = 0;                        ///< of a fork: the parent
  std::uint64_t since_ns = 0;                   ///< when that was
  std::uint64_t learnt_ns = 0;                  ///< when the tracer learnt of it: later, if it seldom reads its records
  /// Peak memory of the process before this image, in pages, which its figure at the end includes. Empty: unknown.
  std::optional<std::uint32_t> max_rss_before{};
  ProcessInfo info{};                   ///< until the registry has it, see ProcessTable::info()
  bool has_ring = false;                ///< known to be an OCaml program by its ring
  std::optional<ProcessIndex> index{};  ///< set once it is known to be an OCaml program: it is part of the stream
  bool asks_service = false;            ///< ProcessTable::ask_service() has no answer yet
  ProgramState program{};
  ImageRings rings{};
};

/// The earlier of two times, as far as they are known.
inline std::optional<std::uint64_t> earliest(std::optional<std::uint64_t> one, std::optional<std::uint64_t> other) {
  return one && other ? std::min(one, other) : (one ? one : other);
}

inline std::uint64_t naming_deadline_ns(const TracedProcess& process) {
  return std::max(process.since_ns, process.learnt_ns) + naming_timeout_ns;
}

/// True if its events wait for the inspection of its program, or for the name of its service.
inline bool waits_for_names(const TracedProcess& process, std::uint64_t now_ns) {
  return (process.program.inspecting || process.asks_service) && process.index && now_ns < naming_deadline_ns(process);
}

}  // namespace rtev

// SPDX-License-Identifier: MIT
// What a process looks like from outside: its program and the files that it maps. Files are opened while the process
// maps them, so that they stay readable when it is gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/program_names.hpp"
#include "base/service_identity.hpp"
#include "base/unique_fd.hpp"
#include "inspect/file_place.hpp"
#include "inspect/procfs.hpp"

namespace rtev {

/// The program that a process runs.
struct Image {
  std::uint64_t start_ticks = 0;
  std::uint32_t user = 0;        ///< real user id
  std::uint64_t start_code = 0;  ///< lowest address of its code; 0 = unknown
  std::int32_t ns_pid = 0;
  std::string comm;
  std::string exe;     ///< its path, as the kernel prints it; empty if the process was gone
  std::string script;  ///< see ProgramNames
  UniqueFd file;       ///< the program, open; none if the process was gone, or its file system may not answer

  ProgramNames names() const { return {.comm = comm, .exe = exe, .script = script}; }
};

/// A ring file that a process maps, or mapped. Readable whatever becomes of the process and of the file's name.
struct OpenedRing {
  UniqueFd fd;       ///< none if its file system may not answer, or of_other_user
  std::string path;  ///< as the mapping names it
  std::int64_t clock_offset_ns = 0;
  std::uint64_t begin = 0, length = 0;  ///< of the mapping, where that is known
  std::uint64_t inode = 0;              ///< of the file as the kernel maps it, where that is known: see OpenFile
  bool of_other_user = false;           ///< neither root nor a user of the process owns the file
};

using RingFileId = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode

/// The file behind an open descriptor, if fstat(2) succeeds.
std::optional<RingFileId> identify_ring(int fd);

/// The file of a runtime that is not the program itself.
struct MappedRuntime {
  UniqueFd fd;
  std::uint64_t begin = 0;  ///< where the file's first page is mapped
};

/// A ring that BPF announced.
struct AnnouncedRing {
  FilePlace place;
  std::int64_t clock_offset_ns = 0;
  std::uint64_t address = 0, length = 0;  ///< of its mapping
  std::uint32_t user = 0;                 ///< charged_user() of the process
};

/// Processes of this user that were started with this in their environment: "NAME=value".
struct StartedWith {
  std::string variable;
  std::uint32_t user = 0;
};

struct NamedProcess {
  std::int32_t pid;
  std::string comm;  ///< empty if unknown
};

/// A file with one content, as the kernel numbers it in mappings.
struct MappedFile {
  std::uint64_t device = 0, inode = 0;
  std::int64_t changed_ns = 0;  ///< of the inode, which another file may have later; 0 = the file could not be opened
  auto operator<=>(const MappedFile&) const = default;
};

/// Code that a process maps.
struct MappedCode {
  std::uint64_t begin = 0, end = 0;  ///< addresses
  std::uint64_t offset = 0;          ///< in the file
  MappedFile file{};                 ///< 0, 0: none
  std::string path{};                ///< as the mapping names it; the end of a very long one
  /// What is needed to unwind and name the file's code, in sealed memory: see ObjectTables. None for files that were
  /// known, that have none, or that could not be looked at this time.
  UniqueFd tables{};
  bool has_none = false;  ///< the file was read, and makes no sense
};

/// What to find out about a process. All of it is optional, and read in one go.
struct ProcessQuery {
  enum class Runtime : std::uint8_t { none, library, loaded_program };

  std::int32_t pid = 0;
  bool careful = false;                           ///< see Procfs::set_careful()
  bool user = false;                              ///< only the user and the path of the program, besides `stat`
  bool image = false;                             ///< the program
  std::optional<FilePlace> program{};             ///< where the program is on disk, if the process is gone
  std::optional<AnnouncedRing> announced_ring{};  ///< this ring
  bool mapped_rings = false;                      ///< rings that the process maps, each once and not more than a few
  bool shared_files = false;        ///< files of any name that it may write to and shares: a ring may have been renamed
  Runtime runtime = Runtime::none;  ///< a shared runtime that it maps, or the program that a loader runs
  bool peak_memory = false;
  bool arguments = false;
  bool service = false;            ///< which service it belongs to
  std::uint64_t word_address = 0;  ///< of a word of its memory, see Procfs::read_word(); 0 = none
  /// The code that it maps, with tables for its files but these.
  std::optional<std::vector<MappedFile>> code_but{};
  bool builds_tables = true;  ///< for that; else tables are those that there are already
  // Not about this process, but all of the host:
  bool all_pids = false;
  std::optional<StartedWith> started_with{};
};

/// The answer. Nothing is set of a process that is gone, except for what is opened by its place on disk.
struct ProcessView {
  std::optional<ProcessStat> stat{};
  Image image{};
  std::vector<OpenedRing> rings{};  ///< announced, mapped, or shared files
  /// The announced ring by its place on disk, since it is not mapped. The next program may write it by now.
  std::optional<OpenedRing> placed_ring{};
  std::string announced_path{};  ///< of an announced ring that is not mapped
  std::optional<MappedRuntime> runtime{};
  std::optional<std::uint64_t> peak_memory_bytes{};
  std::string arguments{};  ///< with blanks between them, cut after a few kilobytes; any bytes
  ServiceIdentity service{};
  std::optional<std::uint64_t> word{};
  std::vector<MappedCode> code{};
  std::vector<std::int32_t> pids{};  ///< of all processes
  std::vector<NamedProcess> started{};
  /// The process did not answer in time, and everything else is missing. It is not asked again.
  bool no_answer = false;
};

/// Answers a query. May take long, and may never return: see Procfs.
ProcessView look_at(const Procfs& procfs, const ProcessQuery& query);

}  // namespace rtev

// SPDX-License-Identifier: MIT
// The directory where a program makes its ring, and the file of the ring that is made there for it.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <utility>

#include "base/unique_fd.hpp"
#include "enable/as_program.hpp"
#include "enable/held_process.hpp"
#include "enable/refused.hpp"
#include "inspect/procfs.hpp"

namespace rtev::enable {

/// What is there, as the program finds it.
struct RingPlace {
  int open_error = 0;      ///< errno
  bool is_unsafe = false;  ///< its file system may not answer
  std::string insecure{};  ///< not empty: who else could replace the directory or files in it
  int access_error = 0;    ///< errno, of making a file there
  bool is_taken = false;   ///< a file of the ring's name is there
  bool is_memory = false;  ///< its file system is memory
  std::uint64_t free_bytes = 0, free_files = 0;

  bool is_usable() const { return open_error == 0 && !is_unsafe && insecure.empty() && access_error == 0 && !is_taken; }
};

/// A directory for a ring.
struct RingPath {
  std::string path;  ///< absolute, for the program
  /// Others than its user may read it. They can lock it then, by reading it into memory that does not answer: the
  /// program waits for them when it removes its ring, and so do its children when they make theirs.
  bool may_be_readable = false;
};

/// Looks at a directory as the program would: with its user and groups, below its root directory.
std::expected<RingPlace, NoAnswer> look_at_ring_place(const HeldProcess& process, const RingPath& path);

/// Why a program is refused whose directory, which messages call `name`, gave no answer.
Refused no_answer_of(const std::string& name, NoAnswer reason);

inline constexpr const char* directory_hint =
    "start it with OCAML_RUNTIME_EVENTS_DIR set to the absolute path of a directory that only its user may write to, "
    "read and search";

/// Parts of the file of a ring.
struct RingParts {
  std::uint64_t first_bytes = 0;  ///< from the beginning: what describes the rings, and the first ones
  std::uint64_t names_begin = 0, names_bytes = 0;
};

/// Which file a ring is.
struct RingIdentity {
  std::uint64_t inode = 0;   ///< as the kernel numbers it in mappings
  std::uint64_t device = 0;  ///< st_dev; 0: not known, of a file that was found in a mapping

  bool operator==(const RingIdentity&) const = default;
};

/// An empty file of the ring's name, which rtev-bpf made with the rights of the program and of which it knows that
/// nobody else has made it. OCaml's runtime opens the file that it finds (O_RDWR | O_CREAT in all versions), so nobody
/// can put another one into its way. Its destructor removes the file, with the rights of the program, unless it was
/// kept.
class ReservedRing {
 public:
  /// Refuses if there is a file of that name, or the directory is not safe: see SafePath. These parts have their blocks
  /// when this returns, where the file system can do that, and is not in memory: a write to a page without one ends
  /// the program when the file system is full.
  static Checked<ReservedRing> make(const Procfs& procfs, const HeldProcess& process, const RingPath& path,
                                    const RingParts& parts);
  ReservedRing(ReservedRing&& other) noexcept = default;
  ReservedRing& operator=(ReservedRing&&) = delete;
  ~ReservedRing();

  /// As the runtime opens it.
  const std::string& path() const { return path_; }
  const RingIdentity& identity() const { return identity_; }
  /// Whether the name still leads to this file.
  bool is_in_place(const Procfs& procfs) const;
  /// It is the program's from now on.
  void keep() { directory_.reset(); }

 private:
  ReservedRing(Credentials credentials, UniqueFd directory, std::string path, const RingIdentity& identity)
      : credentials_(std::move(credentials)),
        directory_(std::move(directory)),
        path_(std::move(path)),
        identity_(identity) {}
  std::string name() const { return path_.substr(path_.rfind('/') + 1); }

  Credentials credentials_;
  UniqueFd directory_;
  std::string path_;
  RingIdentity identity_;
};

/// Removes this file with the rights of the program, if `path`, as the kernel names it, still leads to it. False if the
/// file stays. May take a second.
bool remove_ring_file(const Procfs& procfs, const HeldProcess& process, const std::string& path,
                      const RingIdentity& ring);

}  // namespace rtev::enable

// SPDX-License-Identifier: MIT
// What was found out about binaries, so that each is inspected once however many processes run it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "inspect/binary.hpp"
#include "rtev/error.hpp"

namespace rtev {

/// An OCaml binary of this run.
struct Binary {
  std::uint32_t id;  ///< not 0, never used for another binary
  RuntimeBinary runtime;
};

/// A file with one content: two equal identities are the same bytes.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;  ///< of the inode; unlike the other times it cannot be set back
  bool operator==(const FileIdentity&) const = default;
  /// The same file, whatever its content.
  bool same_file(const FileIdentity& other) const { return device == other.device && inode == other.inode; }
};

/// Binaries by file identity, also those that turned out not to be OCaml. Remembers a bounded number of them, and those
/// in use. Thread-safe.
class BinaryCache {
 public:
  static constexpr std::size_t default_capacity = 8192;

  explicit BinaryCache(std::size_t capacity = default_capacity) : capacity_(capacity), max_size_(capacity) {}

  static Result<FileIdentity> identify(int fd);

  /// Nothing if the file is not known; nullptr if it is known not to be OCaml.
  std::optional<std::shared_ptr<const Binary>> find(const FileIdentity& identity) const;
  /// Remembers the result of inspect_binary(). If another thread was faster, its result stays. Returns what find()
  /// will.
  std::shared_ptr<const Binary> insert(const FileIdentity& identity, std::optional<RuntimeBinary> runtime);

  /// Whether anything but the cache refers to a binary.
  static bool in_use(const std::weak_ptr<const Binary>& binary) { return binary.use_count() > 1; }

  /// Number of files remembered.
  std::size_t size() const;

 private:
  struct Hash {
    std::size_t operator()(const FileIdentity& identity) const;
  };

  mutable std::mutex mutex_;
  std::size_t capacity_, max_size_;
  std::uint32_t last_id_ = 0;
  std::unordered_map<FileIdentity, std::shared_ptr<const Binary>, Hash> binaries_;
};

}  // namespace rtev

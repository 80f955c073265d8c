// SPDX-License-Identifier: MIT
// Creates the file of a RingWriter and maps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"
#include "ring/layout.hpp"
#include "ring/ring_producer.hpp"
#include "rtev/error.hpp"
#include "rtev/names.hpp"

namespace rtev {

/// The header that OCaml's runtime writes into a file of this shape.
FileHeader make_header(std::uint64_t rings, std::uint64_t ring_words, bool names);
/// Size of such a file in bytes, as OCaml's runtime creates it: without the ProducerMark.
std::uint64_t file_size(const FileHeader& header);

/// A ring file of this process, mapped for writing. The destructor does not remove the file.
class RingFile {
 public:
  struct Shape {
    std::uint32_t rings;
    std::uint64_t ring_words;
    bool names;
    Family family;
  };

  /// Creates `path` with empty rings. Replaces a file of that name.
  static Result<RingFile> create(std::string path, const Shape& shape);

  bool is_open() const { return memory_ != nullptr; }
  const std::string& path() const { return path_; }
  RingProducer producer(std::uint32_t ring) const;
  /// At most 127 bytes, id below user_event_slots; only if the shape has names.
  void write_name(std::uint16_t id, std::string_view name) const;
  /// Removes the file, if the path still names it.
  void remove() const;

 private:
  FileHeader header_{};
  std::string path_;
  MemoryMap memory_;
  std::uint64_t device_ = 0, inode_ = 0;
};

}  // namespace rtev

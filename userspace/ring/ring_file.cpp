// SPDX-License-Identifier: MIT
#include "ring/ring_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/unique_fd.hpp"

namespace rtev {
namespace {

/// A temporary file that is removed again unless it gets its final name.
struct Draft {
  UniqueFd fd;
  std::string path;

  explicit Draft(const std::filesystem::path& final_path)
      : path((final_path.parent_path() / ("." + final_path.filename().string() + ".XXXXXX")).string()) {
    fd.reset(::mkostemp(path.data(), O_CLOEXEC));
    if (!fd) path.clear();
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

bool write_at(int fd, std::uint64_t offset, const void* bytes, std::size_t size) {
  const ssize_t written = ::pwrite(fd, bytes, size, static_cast<off_t>(offset));
  if (written >= 0 && static_cast<std::size_t>(written) != size) errno = ENOSPC;
  return written == static_cast<ssize_t>(size);
}

/// True if this process has the file mapped for writing: another RingWriter, or OCaml's runtime.
bool is_mapped_here(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return false;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with(path) && line.contains(" rw-s ") && line.contains(" " + std::to_string(status.st_ino) + " "))
      return true;
  }
  return false;
}

bool exceeds_file_limit(std::uint64_t size) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

}  // namespace

FileHeader make_header(std::uint64_t rings, std::uint64_t ring_words, bool names) {
  const std::uint64_t ring_bytes = ring_words * sizeof(std::uint64_t);
  const std::uint64_t data_offset = sizeof(FileHeader) + rings * ring_header_bytes;
  return {.version = 1,
          .max_domains = rings,
          .ring_header_size_bytes = ring_header_bytes,
          .ring_size_bytes = ring_bytes,
          .ring_size_elements = ring_words,
          .headers_offset = sizeof(FileHeader),
          .data_offset = data_offset,
          .custom_events_offset = names ? data_offset + rings * ring_bytes : 0};
}

std::uint64_t file_size(const FileHeader& header) {
  return header.custom_events_offset != 0 ? header.custom_events_offset + user_event_names_bytes
                                          : header.data_offset + header.max_domains * header.ring_size_bytes;
}

Result<RingFile> RingFile::create(std::string path, const Shape& shape) {
  RingFile file;
  file.header_ = make_header(shape.rings, shape.ring_words, shape.names);
  std::uint64_t size = file_size(file.header_);
  const auto failure = [&](const char* what, const char* hint = "") { return errno_error(errno, what, path, hint); };

  if (is_mapped_here(path)) {
    return std::unexpected(Error{.what = "cannot create ring file",
                                 .subject = path,
                                 .why = "this process has created it already",
                                 .hint = "use another directory for each writer"});
  }
  if (exceeds_file_limit(size + sizeof(ProducerMark))) {
    errno = EFBIG;  // the attempt would kill the process (SIGXFSZ)
    return failure("cannot create ring file", "raise the limit of file sizes (ulimit -f) or make fewer, smaller rings");
  }
  Draft draft(path);
  if (!draft.fd) return failure("cannot create ring file", "its directory must exist and be writable");
  const int fd = draft.fd.get();
  ProducerMark mark{.magic = ProducerMark::magic_value,
                    .version = ProducerMark::current_version,
                    .family = static_cast<std::uint32_t>(shape.family),
                    .producer = "librtev"};
  const std::uint64_t mark_offset = size;
  if (shape.names) size += sizeof mark;
  struct stat status{};
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0 || !write_at(fd, 0, &file.header_, sizeof file.header_) ||
      (shape.names && !write_at(fd, mark_offset, &mark, sizeof mark)) || ::fstat(fd, &status) != 0)
    return failure("cannot write ring file");
  file.device_ = status.st_dev;
  file.inode_ = status.st_ino;

  // Renamed before it is mapped: rtev-bpf notices the mapping, and opens the file by its name.
  if (::rename(draft.path.c_str(), path.c_str()) != 0) return failure("cannot name ring file");
  draft.path = path;
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return failure("cannot map ring file");
  // The file is sparse: reading ahead would only fill memory with holes.
  ::madvise(memory, size, MADV_RANDOM);
  file.memory_ = MemoryMap(static_cast<std::byte*>(memory), Unmap{size});
  draft.path.clear();
  file.path_ = std::move(path);
  return file;
}

RingProducer RingFile::producer(std::uint32_t ring) const {
  const auto words = [&](std::uint64_t offset) { return reinterpret_cast<std::uint64_t*>(memory_.get() + offset); };
  return {words(header_.headers_offset + ring * header_.ring_header_size_bytes),
          {words(header_.data_offset + ring * header_.ring_size_bytes), header_.ring_size_elements}};
}

void RingFile::write_name(std::uint16_t id, std::string_view name) const {
  char* const slot = reinterpret_cast<char*>(memory_.get()) + header_.custom_events_offset + id * user_event_name_bytes;
  // The first byte last: a reader that finds the slot filled reads the whole name.
  std::ranges::copy(name.substr(1), slot + 1);
  std::atomic_ref(*slot).store(name.front(), std::memory_order_release);
}

void RingFile::remove() const {
  struct stat status{};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_)
    ::unlink(path_.c_str());
}

}  // namespace rtev

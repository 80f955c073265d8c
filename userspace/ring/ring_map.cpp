// SPDX-License-Identifier: MIT
#include "ring/ring_map.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "ring/sigbus_guard.hpp"

namespace rtev {
namespace {

/// An atomic load from memory that another process writes. The mapping is read-only, so the object cannot be a
/// std::atomic and std::atomic_ref wants it non-const.
std::uint64_t load_acquire(const std::byte* address) {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_ACQUIRE);
}

}  // namespace

Result<RingMap> RingMap::open(UniqueFd fd, std::string name, FileChecks checks) {
  RingMap map;
  map.fd_ = std::move(fd);
  map.name_ = std::move(name);
  map.checks_ = std::move(checks);
  if (auto mapped = map.map(); !mapped) return std::unexpected(std::move(mapped.error()));
  return map;
}

/// Of a file that may have changed since it was mapped.
Result<RingMap::Header> RingMap::read_header() const {
  if (is_being_changed())
    return std::unexpected(
        Error{.what = "cannot open ring", .subject = name_, .why = "its file is being changed", .code = EAGAIN});
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0) return errno_error(errno, "cannot open ring", name_);
  if (!S_ISREG(status.st_mode))
    return std::unexpected(Error{.what = "cannot open ring", .subject = name_, .why = "not a regular file"});

  // Rings are sparse files: reading ahead would only fill memory with holes.
  ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_RANDOM);
  // By pread(), because a file that shrinks meanwhile is then a short read instead of a SIGBUS.
  FileHeader header{};
  const ssize_t got = ::pread(fd_.get(), &header, sizeof header, 0);
  if (got < 0) return errno_error(errno, "cannot read ring", name_);
  if (static_cast<std::size_t>(got) < sizeof header) {
    return std::unexpected(Error{.what = "cannot read ring",
                                 .subject = name_,
                                 .why = "the file has only " + std::to_string(got) + " bytes, too few for a header",
                                 .code = EAGAIN});
  }
  const auto layout = check_layout(header, static_cast<std::uint64_t>(status.st_size));
  if (!layout) {
    const Error& error = layout.error();
    return std::unexpected(Error{.what = "cannot read ring",
                                 .subject = name_,
                                 .why = error.why,
                                 .hint = error.hint,
                                 .code = error.code != 0 ? error.code : EAGAIN});
  }
  return Header{.header = header, .layout = *layout};
}

Result<void> RingMap::map() {
  auto read = read_header();
  if (!read) return std::unexpected(std::move(read.error()));
  const std::uint64_t end = read->layout.mapped_bytes();
  void* const base = ::mmap(nullptr, end, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (base == MAP_FAILED) return errno_error(errno, "cannot map ring", name_);
  ::madvise(base, end, MADV_RANDOM);

  install_sigbus_guard();
  mapping_ = MemoryMap(static_cast<std::byte*>(base), Unmap{end});
  header_ = read->header;
  layout_ = read->layout;
  return {};
}

bool RingMap::load_indices(std::span<RingIndices> indices) const {
  struct Task {
    const std::byte* header;
    std::uint64_t stride;
    RingIndices* out;
    std::size_t count;
  } task{at(layout_.headers_offset), layout_.ring_header_stride, indices.data(), indices.size()};
  return run_guarded(
      task.header, layout_.rings * layout_.ring_header_stride,
      [](void* context) {
        const Task& todo = *static_cast<Task*>(context);
        const std::byte* header = todo.header;
        for (std::size_t ring = 0; ring < todo.count; ++ring, header += todo.stride) {
          // Head first: a head loaded after the tail could be newer than it.
          todo.out[ring].head = load_acquire(header);
          todo.out[ring].tail = load_acquire(header + sizeof(std::uint64_t));
        }
      },
      &task);
}

bool RingMap::load_head_after_copy(std::uint32_t ring, std::uint64_t& head) const {
  struct Task {
    const std::byte* address;
    std::uint64_t value;
  } task{at(layout_.headers_offset + ring * layout_.ring_header_stride), 0};
  const bool ok = run_guarded(
      task.address, sizeof(std::uint64_t),
      [](void* context) {
        Task& todo = *static_cast<Task*>(context);
        // Pairs with the writer, which moves the head before it overwrites: if it has overwritten any copied word, the
        // new head is seen here.
        std::atomic_thread_fence(std::memory_order_acquire);
        todo.value = load_acquire(todo.address);
      },
      &task);
  head = task.value;
  return ok;
}

PageRange RingMap::indices_range(std::uint32_t rings) const {
  return {at(layout_.headers_offset), rings * layout_.ring_header_stride};
}

std::uint32_t RingMap::rings_on_pages_of(std::uint32_t rings) const {
  const std::uint64_t end = layout_.headers_offset + rings * layout_.ring_header_stride;
  const std::uint64_t page_end = (end + page_bytes - 1) / page_bytes * page_bytes;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>((page_end - layout_.headers_offset) / layout_.ring_header_stride, layout_.rings));
}

PageRange RingMap::words_range(std::uint32_t ring, std::uint64_t position, std::uint64_t size) const {
  const std::uint64_t until_wrap = layout_.ring_words - (position & (layout_.ring_words - 1));
  return {at(offset_of(ring, position)), std::min(size, until_wrap) * sizeof(std::uint64_t)};
}

PageRange RingMap::names_range(std::uint64_t offset, std::uint64_t bytes) const {
  const std::uint64_t begin = std::max(offset, layout_.names_offset);
  return {at(begin), std::min(offset + bytes, layout_.names_offset + user_event_names_bytes) - begin};
}

void RingMap::look_at(std::span<PageRange> ranges, std::size_t wanted) const {
  if (!checks_.look_at_pages) return;
  checks_.look_at_pages(ranges);
  if (!checks_.load_pages) return;
  ranges = ranges.first(std::min(ranges.size(), wanted));
  const auto is_absent = [](const PageRange& range) { return range.state == PageState::absent; };
  for (auto range = std::ranges::find_if(ranges, is_absent); range != ranges.end();) {
    const std::byte* const begin = range->address;
    const std::byte* end = begin;
    // Adjacent ranges are one request.
    for (; range != ranges.end() && is_absent(*range) && (range->address == end || end == begin); ++range)
      end = range->address + range->bytes;
    checks_.load_pages(fd_.get(), static_cast<std::uint64_t>(begin - at(0)), static_cast<std::size_t>(end - begin));
    range = std::find_if(range, ranges.end(), is_absent);
  }
}

std::uint64_t RingMap::offset_of(std::uint32_t ring, std::uint64_t position) const {
  const std::uint64_t index = position & (layout_.ring_words - 1);
  return layout_.data_offset + (ring * layout_.ring_words + index) * sizeof(std::uint64_t);
}

std::span<const std::uint64_t> RingMap::words(std::uint32_t ring, std::uint64_t position, std::uint64_t size) const {
  return {reinterpret_cast<const std::uint64_t*>(at(offset_of(ring, position))), size};
}

bool RingMap::read_words(std::uint32_t ring, std::uint64_t position, std::span<std::uint64_t> copy) const {
  return ::pread(fd_.get(), copy.data(), copy.size_bytes(), static_cast<off_t>(offset_of(ring, position))) ==
         std::ssize(std::as_bytes(copy));
}

bool RingMap::copy_words(std::uint32_t ring, std::uint64_t position, std::span<std::uint64_t> copy) const {
  return guarded_copy(copy.data(), words(ring, position, copy.size()).data(), copy.size_bytes());
}

bool RingMap::copy_name(std::uint16_t id, std::string& name) const {
  name.clear();
  if (layout_.names_offset == 0 || id >= user_event_slots) return true;
  std::array<char, user_event_name_bytes> slot;
  if (!guarded_copy(slot.data(), at(layout_.names_offset + id * user_event_name_bytes), slot.size())) return false;
  name.assign(slot.data(), ::strnlen(slot.data(), slot.size() - 1));
  return true;
}

std::optional<ProducerMark> RingMap::read_mark() const {
  if (layout_.names_offset == 0) return std::nullopt;
  ProducerMark mark;
  const auto offset = static_cast<off_t>(layout_.names_offset + user_event_names_bytes);
  if (::pread(fd_.get(), &mark, sizeof mark, offset) != ssize_t{sizeof mark}) return std::nullopt;
  return mark;
}

bool RingMap::same_header() const {
  FileHeader header;
  return guarded_copy(&header, mapping_.get(), sizeof header) && std::memcmp(&header, &header_, sizeof header) == 0;
}

void RingMap::unload_pages() const {
  ::madvise(mapping_.get(), mapping_.get_deleter().bytes, MADV_DONTNEED);
}

RingMap::Change RingMap::refresh(Recreated recreated) {
  struct stat status{};
  const bool whole = ::fstat(fd_.get(), &status) == 0 &&
                     static_cast<std::uint64_t>(status.st_size) >= mapping_.get_deleter().bytes && same_header();
  if (whole) return Change::none;
  if (recreated == Recreated::is_mapped ? map().has_value() : read_header().has_value()) return Change::recreated;
  // same_header() is false from now on, even if the file gets the old header again.
  header_ = {};
  return Change::truncated;
}

}  // namespace rtev

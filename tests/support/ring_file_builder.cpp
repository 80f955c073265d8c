// SPDX-License-Identifier: MIT
#include "support/ring_file_builder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "ring/ring_file.hpp"

namespace rtev::test {
namespace make {

namespace {
Words with_payload(bool user, unsigned type, std::uint64_t time, std::uint16_t id,
                   std::span<const std::uint64_t> payload = {}) {
  Words words{message::first_word(payload.size() + 2, user, type, id), time};
  words.insert(words.end(), payload.begin(), payload.end());
  return words;
}
}  // namespace

Words begin(std::uint64_t time, std::uint16_t id) {
  return with_payload(false, message::begin, time, id);
}
Words end(std::uint64_t time, std::uint16_t id) {
  return with_payload(false, message::end, time, id);
}
Words counter(std::uint64_t time, std::uint16_t id, std::uint64_t value) {
  return with_payload(false, message::counter, time, id, {&value, 1});
}
Words alloc(std::uint64_t time, const std::array<std::uint64_t, 20>& buckets) {
  return with_payload(false, message::alloc, time, 0, buckets);
}
Words lifecycle(std::uint64_t time, Lifecycle id, std::int64_t datum) {
  const auto word = static_cast<std::uint64_t>(datum);
  return with_payload(false, message::lifecycle, time, static_cast<std::uint16_t>(id), {&word, 1});
}
Words ring_stop(std::uint64_t time) {
  return with_payload(false, message::lifecycle, time, 1);
}
Words user_unit(std::uint64_t time, std::uint16_t id) {
  return with_payload(true, message::unit, time, id);
}
Words user_int(std::uint64_t time, std::uint16_t id, std::int64_t value) {
  const auto word = static_cast<std::uint64_t>(value);
  return with_payload(true, message::integer, time, id, {&word, 1});
}
Words user_begin(std::uint64_t time, std::uint16_t id) {
  return with_payload(true, message::span_begin, time, id);
}
Words user_end(std::uint64_t time, std::uint16_t id) {
  return with_payload(true, message::span_end, time, id);
}
Words user_custom(std::uint64_t time, std::uint16_t id, std::span<const std::byte> bytes) {
  // As in an OCaml string: the last byte is the number of unused bytes of the last word before it.
  Words payload((bytes.size() + 8) / 8, 0);
  auto* raw = reinterpret_cast<std::byte*>(payload.data());
  std::ranges::copy(bytes, raw);
  raw[payload.size() * 8 - 1] = static_cast<std::byte>(payload.size() * 8 - 1 - bytes.size());
  return with_payload(true, message::custom, time, id, payload);
}
Words user_custom(std::uint64_t time, std::uint16_t id, std::string_view bytes) {
  return user_custom(time, id, std::as_bytes(std::span(bytes)));
}

}  // namespace make

namespace {

FileHeader layout_of(const RingFileOptions& options) {
  return make_header(options.domains, std::uint64_t{1} << options.words_log2, options.names);
}

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::uint64_t RingFileBuilder::file_size(const Options& options) {
  return rtev::file_size(layout_of(options));
}

RingFileBuilder::RingFileBuilder(const Options& options) : layout_(layout_of(options)), rings_(options.domains) {
  map(-1);
  initialise();
}

RingFileBuilder::RingFileBuilder(const std::filesystem::path& path, const Options& options)
    : layout_(layout_of(options)), rings_(options.domains) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) fail("open");
  if (::ftruncate(fd, static_cast<off_t>(rtev::file_size(layout_))) != 0) {
    ::close(fd);
    fail("ftruncate");
  }
  map(fd);
  ::close(fd);
  initialise();
}

RingFileBuilder::RingFileBuilder(RingFileBuilder&& other) noexcept
    : layout_(other.layout_), memory_(std::exchange(other.memory_, {})), rings_(std::move(other.rings_)) {}

RingFileBuilder::~RingFileBuilder() {
  if (!memory_.empty()) ::munmap(memory_.data(), memory_.size());
}

void RingFileBuilder::map(int fd) {
  const std::size_t size = rtev::file_size(layout_);
  const int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
  void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) fail("mmap");
  memory_ = {static_cast<std::byte*>(memory), size};
}

void RingFileBuilder::initialise() {
  // Field by field, the version first, heads and tails last, since a reader may run at the same time. OCaml 5.0 does
  // not write the last field.
  const auto fields = std::bit_cast<std::array<std::uint64_t, sizeof(FileHeader) / 8>>(layout_);
  auto* const words = reinterpret_cast<std::uint64_t*>(memory_.data());
  for (std::size_t i = 0; i < fields.size() - !has_names(); ++i)
    std::atomic_ref(words[i]).store(fields[i], std::memory_order_release);
  for (std::uint32_t domain = 0; domain < layout_.max_domains; ++domain) {
    set_head(domain, 0);
    set_tail(domain, 0);
  }
}

FileHeader& RingFileBuilder::header() {
  return *reinterpret_cast<FileHeader*>(memory_.data());
}

void RingFileBuilder::save(const std::filesystem::path& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(memory_.data()), static_cast<std::streamsize>(memory_.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

void RingFileBuilder::append(std::uint32_t domain, std::span<const std::uint64_t> words) {
  Ring& ring = rings_.at(domain);
  const std::uint64_t length = words.size(), capacity = ring_words();
  const std::uint64_t to_end = capacity - (ring.tail & (capacity - 1));
  const std::uint64_t padding = to_end < length ? to_end : 0;
  if (length == 0 || length + padding >= capacity) throw std::length_error("a message larger than the ring");

  while (ring.tail + length + padding - ring.head >= capacity) {
    ring.head += ring.lengths.front();
    ring.lengths.pop_front();
    set_head(domain, ring.head);
  }
  if (padding != 0) {
    set_word(domain, ring.tail, message::first_word(padding, false, message::padding, 0));
    publish(domain, static_cast<std::uint32_t>(padding));
  }
  for (std::uint64_t i = 0; i < length; ++i) set_word(domain, ring.tail + i, words[i]);
  publish(domain, static_cast<std::uint32_t>(length));
}

void RingFileBuilder::fill(std::uint32_t domain, std::span<const std::uint64_t> words) {
  Ring& ring = rings_.at(domain);
  while (ring.tail + words.size() < ring_words()) {
    for (const std::uint64_t word : words) data_word(domain, ring.tail++) = word;
    ring.lengths.push_back(static_cast<std::uint32_t>(words.size()));
  }
  set_tail(domain, ring.tail);
}

void RingFileBuilder::publish(std::uint32_t domain, std::uint32_t length) {
  Ring& ring = rings_[domain];
  ring.tail += length;
  ring.lengths.push_back(length);
  set_head(domain, ring.head);
  set_tail(domain, ring.tail);
}

void RingFileBuilder::set_name(std::uint16_t id, std::string_view name) {
  if (!has_names() || id >= user_event_slots) throw std::out_of_range("no such slot");
  auto* const slot =
      reinterpret_cast<char*>(memory_.data() + layout_.custom_events_offset + id * user_event_name_bytes);
  const std::size_t size = std::min<std::size_t>(name.size(), user_event_name_bytes - 1);
  std::fill_n(std::copy_n(name.begin(), size, slot), user_event_name_bytes - 1 - size, '\0');
}

std::uint64_t& RingFileBuilder::head_word(std::uint32_t domain) const {
  if (domain >= layout_.max_domains) throw std::out_of_range("no such ring");
  return *reinterpret_cast<std::uint64_t*>(memory_.data() + layout_.headers_offset + domain * ring_header_bytes);
}

std::uint64_t& RingFileBuilder::tail_word(std::uint32_t domain) const {
  return *(&head_word(domain) + 1);
}

std::uint64_t& RingFileBuilder::data_word(std::uint32_t domain, std::uint64_t index) const {
  if (domain >= layout_.max_domains) throw std::out_of_range("no such ring");
  const std::uint64_t word = domain * ring_words() + (index & (ring_words() - 1));
  return *reinterpret_cast<std::uint64_t*>(memory_.data() + layout_.data_offset + word * 8);
}

std::uint64_t RingFileBuilder::head(std::uint32_t domain) const {
  return std::atomic_ref(head_word(domain)).load(std::memory_order_acquire);
}
std::uint64_t RingFileBuilder::tail(std::uint32_t domain) const {
  return std::atomic_ref(tail_word(domain)).load(std::memory_order_acquire);
}
void RingFileBuilder::set_head(std::uint32_t domain, std::uint64_t head) {
  std::atomic_ref(head_word(domain)).store(head, std::memory_order_release);
  // The runtime got this order only with the fix of pull request 15016: the new head must be visible before the data
  // that overwrites what it gave up. Otherwise tests would fail on weakly ordered machines without any fault of the
  // reader.
  std::atomic_thread_fence(std::memory_order_release);
}
void RingFileBuilder::set_tail(std::uint32_t domain, std::uint64_t tail) {
  std::atomic_ref(tail_word(domain)).store(tail, std::memory_order_release);
}
std::uint64_t RingFileBuilder::word(std::uint32_t domain, std::uint64_t index) const {
  return std::atomic_ref(data_word(domain, index)).load(std::memory_order_relaxed);
}
void RingFileBuilder::set_word(std::uint32_t domain, std::uint64_t index, std::uint64_t value) {
  std::atomic_ref(data_word(domain, index)).store(value, std::memory_order_relaxed);
}

}  // namespace rtev::test

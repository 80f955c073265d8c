// SPDX-License-Identifier: MIT
#include "forged_ring.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>

#include "attacker.hpp"

namespace rtev::hostile {

void publish(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

std::uint64_t now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

ForgedRing::ForgedRing(const std::filesystem::path& dir, const Shape& shape) : shape_(shape), tails_(shape.domains) {
  data_offset_ = header_words + shape.domains * index_words;
  names_offset_ = data_offset_ + shape.domains * shape.words;
  bytes_ = names_offset_ * 8 + names * name_bytes;
  const std::string path = dir / (std::to_string(::getpid()) + ".events");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes_)) != 0) fail(path);
  // The mapping keeps it.
  if (shape.leased && ::fcntl(fd, F_SETLEASE, F_WRLCK) != 0) fail("lease of " + path);
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) fail("mmap " + path);
  ::close(fd);
  memory_ = static_cast<std::uint64_t*>(memory);
  const std::array<std::uint64_t, header_words> header{
      1,           shape.domains,    index_words * 8,  shape.words * 8,
      shape.words, header_words * 8, data_offset_ * 8, names_offset_ * 8};
  for (std::size_t i = 0; i < header.size(); ++i) publish(memory_[i], header[i]);
  for (std::uint64_t domain = 0; domain < shape.domains; ++domain) {
    if (head(domain) != 0) publish(head(domain), 0);
    if (tail(domain) != 0) publish(tail(domain), 0);
  }
}

ForgedRing::~ForgedRing() {
  ::munmap(memory_, bytes_);
}

std::uint64_t& ForgedRing::word(std::uint64_t domain, std::uint64_t position) {
  return memory_[data_offset_ + domain * shape_.words + (position & (shape_.words - 1))];
}

void ForgedRing::write(std::uint64_t domain, std::uint64_t id) {
  constexpr std::uint64_t user_event = std::uint64_t{1} << 53;
  const std::uint64_t position = tails_[domain], end = position + message_words;
  publish(head(domain), end > shape_.words ? end - shape_.words : 0);
  publish(word(domain, position), message_words << 54 | user_event | id << 36);
  publish(word(domain, position + 1), now_ns());
  publish(tail(domain), end);
  tails_[domain] = end;
}

void ForgedRing::claim(std::uint64_t domain, std::uint64_t words) {
  publish(tail(domain), tails_[domain] += words & ~std::uint64_t{1});
}

void ForgedRing::publish_domains(std::uint64_t domains) {
  const std::uint64_t data_offset = header_words + domains * index_words;
  publish(header(6), data_offset * 8);
  publish(header(7), (data_offset + domains * shape_.words) * 8);
  publish(header(1), domains);
}

void ForgedRing::set_name(std::uint64_t id, std::string_view name) {
  char* const slot = reinterpret_cast<char*>(memory_ + names_offset_) + id * name_bytes;
  const std::size_t length = std::min<std::size_t>(name.size(), name_bytes - 1);
  std::memcpy(slot, name.data(), length);
  std::memset(slot + length, 0, name_bytes - length);
}

}  // namespace rtev::hostile

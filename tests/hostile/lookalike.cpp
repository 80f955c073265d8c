// SPDX-License-Identifier: MIT
#include "lookalike.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "attacker.hpp"

extern "C" [[gnu::weak]] lookalike begin_lookalike();
extern "C" [[gnu::weak]] int is_touched(const lookalike* program);

namespace rtev::hostile {
namespace {

constexpr std::size_t ring_bytes = 1u << 20;

lookalike begin() {
  if (begin_lookalike == nullptr) throw std::runtime_error("this program does not look like one of OCaml");
  return begin_lookalike();
}

}  // namespace

Lookalike::Lookalike() : words_(begin()) {}

bool Lookalike::await_request() const {
  constexpr int nap_us = 200;
  pollfd end{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (!is_asked()) {
    ::usleep(nap_us);
    if (::poll(&end, 1, 0) != 0) return false;
  }
  return true;
}

bool Lookalike::start_events(const std::filesystem::path& rings) const {
  const std::filesystem::path path = rings / (std::to_string(::getpid()) + ".events");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, ring_bytes) != 0 ||
      ::mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED)
    return false;
  ::close(file);
  *words_.enabled = 1;
  return true;
}

bool Lookalike::is_untouched() const {
  return is_touched(&words_) == 0;
}

}  // namespace rtev::hostile

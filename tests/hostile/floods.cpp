// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "attacker.hpp"
#include "forged_ring.hpp"

/// Only the program that the tracer probes has it.
extern "C" [[gnu::weak]] void stw_teardown_runtime_events();

namespace rtev::hostile {

int ring_flood(const Directory& dir) {
  constexpr std::size_t bytes = 4096;
  std::uint64_t number = 0;
  return repeat([&] {
    const std::string path = dir / (std::to_string(number++ % 100) + ".events");
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (::ftruncate(fd, bytes) == 0) {
      void* const mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (mapping != MAP_FAILED) ::munmap(mapping, bytes);
    }
    ::close(fd);
  });
}

int fork_storm(const Directory& /*dir*/) {
  return repeat([] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    if (child > 0) ::waitpid(child, nullptr, 0);
  });
}

int exec_flood_step(const Directory& dir) {
  ForgedRing ring(dir, {.domains = 1, .words = 64});
  ring.write(0, 0);
  become("exec-flood-step", dir);
}

int exec_flood(const Directory& dir) {
  const pid_t child = fork_dependent();
  if (child == 0) become("exec-flood-step", dir);
  constexpr int pause_ms = 10;
  const int status = repeat([] {}, pause_ms);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return status;
}

int save_flood(const Directory& dir) {
  constexpr std::uint64_t domains = 4096, words_of_page = 512;
  return repeat_in_children([&] {
    ForgedRing ring(dir, {.domains = domains, .words = words_of_page});
    for (std::uint64_t domain = 0; domain < domains; ++domain) ring.write(domain, 0);
    // BPF saves the ring before this process runs the next program, since it still maps it.
    std::filesystem::remove(dir / (std::to_string(::getpid()) + ".events"));
    become("nothing", dir);
  });
}

int teardown_flood(const Directory& dir) {
  constexpr std::uint64_t domains = 128, words = 64;
  constexpr int saves = 60;
  if (stw_teardown_runtime_events == nullptr) become(own_program() + "-probed", "teardown-flood", dir);
  become_stranger(dir);
  return repeat([&] {
    ForgedRing ring(dir, {.domains = domains, .words = words});
    ring.header(0) = 0;  // no version that a reader knows
    for (int save = 0; save < saves; ++save) {
      for (std::uint64_t domain = 0; domain < domains; ++domain) ring.claim(domain, ForgedRing::message_words);
      stw_teardown_runtime_events();
    }
  });
}

int switch_flood(const Directory& dir) {
  become_stranger(dir);
  ForgedRing ring(dir, {});
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  if (::sched_setaffinity(0, sizeof first, &first) != 0) fail("sched_setaffinity");
  std::atomic<int> turn = 0;
  const auto take_turns = [&turn](int own) {
    while (true) {
      turn.wait(own);
      turn = own;
      turn.notify_one();
    }
  };
  std::thread(take_turns, 0).detach();
  std::thread(take_turns, 1).detach();
  return end_all(repeat([&] { ring.write(0, 0); }, 10));
}

int large_rings(const Directory& dir) {
  constexpr std::uint64_t domains = 128, words = std::uint64_t{1} << 20;
  constexpr int until_it_is_read_ms = 50;
  return repeat_in_children([&] {
    ForgedRing ring(dir, {.domains = domains, .words = words});
    const std::filesystem::path file = dir / (std::to_string(::getpid()) + ".events");
    if (const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC); ::posix_fallocate(fd, 0, domains * words * 8) != 0)
      fail(file);
    ring.write(0, 0);
    ::poll(nullptr, 0, until_it_is_read_ms);
    std::filesystem::remove(file);
    ::_exit(0);
  });
}

int ending_rings(const Directory& dir) {
  become_stranger(dir);
  return repeat_in_children([&] {
    ForgedRing ring(dir, {});
    for (std::uint64_t words = 0; words < ring.shape().words; words += ForgedRing::message_words) ring.write(0, 0);
    std::filesystem::remove(dir / (std::to_string(::getpid()) + ".events"));
    ::_exit(0);
  });
}

}  // namespace rtev::hostile

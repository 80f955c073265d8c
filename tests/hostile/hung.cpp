// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attacker.hpp"
#include "forged_ring.hpp"
#include "probed_program.hpp"
#include "silent_mount.hpp"

namespace rtev::hostile {
namespace {

constexpr std::size_t ring_bytes = 1u << 20;

/// Not faster than the tracer would take what is announced, or it would take a part only.
constexpr int announcement_ms = 3;

enum class Hang {
  mounted,   ///< the file system is mounted where its processes see it
  detached,  ///< it is not in the table of mounts any more
};

void detach(const Directory& mount) {
  if (::umount2(mount.c_str(), MNT_DETACH) != 0) fail("umount");
}

int* map_ring(int file) {
  void* const mapping = ::mmap(nullptr, ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapping == MAP_FAILED) fail("mmap");
  return static_cast<int*>(mapping);
}

/// Where a child waits for its parent.
class Gate {
 public:
  Gate() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) fail("pipe");
  }
  void open() const {
    if (::write(ends_[1], "g", 1) != 1) fail("write");
  }
  /// In the child: it ends if the parent ends first.
  void pass() const {
    ::close(ends_[1]);
    char go = 0;
    if (::read(ends_[0], &go, 1) != 1) ::_exit(1);
  }

 private:
  std::array<int, 2> ends_{};
};

int announce_hung_rings(const Directory& dir, Hang hang) {
  const SilentMount mount(dir / "mount");
  mount.serve(::getpid());
  std::vector<int> rings;
  for (int number = 1; number <= 8; ++number) {
    rings.push_back(::open((mount / (std::to_string(number) + ".events")).c_str(), O_RDWR | O_CLOEXEC));
    if (rings.back() < 0) fail("cannot open a ring");
  }
  if (hang == Hang::detached) detach(dir / "mount");
  become_stranger(dir);
  map_ring(rings.front());  // stays mapped, for scans to find
  return end_all(repeat(
      [&] {
        for (const int ring : rings) ::munmap(map_ring(ring), ring_bytes);
      },
      announcement_ms));
}

int write_honest_ring(const Directory& dir) {
  become_stranger(dir);
  ForgedRing ring(dir, {});
  return repeat([&] { ring.write(0, 0); }, 1);
}

int run_hung_program(const Directory& dir, std::string_view step) {
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(own), {}};
  const SilentMount mount(dir / "mount");
  mount.serve(::getpid(), bytes);
  become(mount / "program", step, dir);
}

void lock_own_memory(const SilentMount& mount) {
  MapLock(mount).hold();
  fail("the file system answered");
}

}  // namespace

int hung_ring(const Directory& dir) {
  return announce_hung_rings(dir, Hang::mounted);
}

int hung_detached_ring(const Directory& dir) {
  return announce_hung_rings(dir, Hang::detached);
}

int hung_program(const Directory& dir) {
  return run_hung_program(dir, "hung-program-step");
}

int hung_detached_program(const Directory& dir) {
  return run_hung_program(dir, "hung-detached-program-step");
}

int hung_program_step(const Directory& dir) {
  return end_all(write_honest_ring(dir));
}

int hung_detached_program_step(const Directory& dir) {
  detach(dir / "mount");
  return end_all(write_honest_ring(dir));
}

int hung_directory(const Directory& dir) {
  const SilentMount mount(dir / "mount");
  mount.serve(::getpid());
  if (::chdir((dir / "mount").c_str()) != 0) fail("chdir");
  return end_all(write_honest_ring(dir));
}

int hung_mapping(const Directory& dir) {
  const SilentMount mount(dir / "mount");
  const Gate gate;
  const pid_t child = fork_dependent();
  if (child == 0) {
    mount.leave();
    gate.pass();
    become_stranger(dir);
    const ProbedProgram program(dir / "program");
    while (!program.is_probed()) ::poll(nullptr, 0, 1);
    lock_own_memory(mount);
  }
  mount.serve(child);
  become_stranger(dir);
  const ProbedProgram program(dir / "program");
  program.run(dir);
  gate.open();
  return end_all(repeat([] {}, announcement_ms));
}

int hung_memory(const Directory& dir) {
  const SilentMount mount(dir / "mount");
  const Gate gate;
  const pid_t child = fork_dependent();
  if (child == 0) {
    mount.leave();
    gate.pass();
    become_stranger(dir);
    ForgedRing ring(dir, {});
    ring.write(0, 0);
    lock_own_memory(mount);
  }
  mount.serve(child);
  become_stranger(dir);
  gate.open();
  while (state_of(child) != 'D')
    if (state_of(child) == 'Z' || ::poll(nullptr, 0, 1) < 0) fail("its memory is not locked");
  return end_all(repeat([] {}, announcement_ms));
}

}  // namespace rtev::hostile

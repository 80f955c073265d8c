// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "attacker.hpp"
#include "lookalike.hpp"
#include "silent_mount.hpp"

namespace rtev::hostile {
namespace {

constexpr std::size_t page_bytes = lookalike_page_bytes;

/// A program that enabling may write to, although it was started by root.
void become_dumpable_stranger(const Directory& dir) {
  become_stranger(dir);
  ::prctl(PR_SET_DUMPABLE, 1);
}

constexpr unsigned longest_lock_s = 20;  // who waits for it cannot be killed

int open_silent(const SilentMount& mount) {
  const int file = ::open((mount / "file").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) fail("cannot open a file");
  return file;
}

/// Locks a directory: its names are written to a page that never comes.
void lock_directory(const SilentMount& mount, const std::string& path) {
  void* const page = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, open_silent(mount), 0);
  if (page == MAP_FAILED) fail("mmap");
  const pid_t reader = fork_dependent();
  if (reader == 0) {
    ::syscall(SYS_getdents64, ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), page, page_bytes);
    ::_exit(1);
  }
  while (state_of(reader) == 'R') ::poll(nullptr, 0, 1);
  if (state_of(reader) == 'Z') fail("the directory is not locked");
}

/// Locks the directory above one that may be read: rename(2) locks both, the upper one first, before the kernel looks
/// at rights.
void lock_above(const SilentMount& mount, const Directory& directory) {
  lock_directory(mount, directory);
  const pid_t renamer = fork_dependent();
  if (renamer == 0) {
    ::rename((directory / "none").c_str(), (directory.parent_path() / "none").c_str());
    ::_exit(1);
  }
  while (state_of(renamer) != 'D') {
    if (state_of(renamer) == 'Z') fail("the directory above is not locked");
    ::poll(nullptr, 0, 1);
  }
}

/// Of /proc/PID/stat.
struct Ancestry {
  std::string name, parent;
};
Ancestry ancestry_of(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  Ancestry found;
  std::string number, state;
  stat >> number >> found.name >> state >> found.parent;
  return found;
}

/// Empty if there is none.
std::string find_worker() {
  const std::string name = "(rtev-enabler)";
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    const Ancestry worker = ancestry_of(pid);
    if (worker.name != name) continue;
    // The supervisor is a child of the tracer, and the worker has children.
    const Ancestry supervisor = ancestry_of(worker.parent);
    if (supervisor.name == name && ancestry_of(supervisor.parent).name != name) return pid;
  }
  return {};
}

bool await_go() {
  char go = 0;
  return ::read(STDIN_FILENO, &go, 1) == 1;
}

void await_end() {
  while (await_go()) {
  }
}

}  // namespace

int locked_journal(const Directory& /*dir*/) {
  struct Lock {
    const char* path;
    int file = -1;
  };
  std::array<Lock, 2> locks{{{.path = "/run/rtev-bpf/hooks"}, {.path = "/run/rtev-bpf/hooks/lock"}}};
  return repeat(
      [&] {
        for (Lock& lock : locks) {
          if (lock.file < 0) lock.file = ::open(lock.path, O_RDONLY | O_CLOEXEC);
          if (lock.file >= 0) ::flock(lock.file, LOCK_EX | LOCK_NB);
        }
        if (locks.front().file < 0) fail("cannot open the journal");
      },
      1);
}

int crashing_words(const Directory& /*dir*/) {
  const rlimit no_core{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const Lookalike program;
  say("ready");
  if (program.await_request()) ::raise(SIGSEGV);
  return 0;
}

/// As a stranger, calls `lock` with a file system that never answers, and keeps what it locks.
template <typename Lock>
int keep_locked(const Directory& dir, Lock&& lock) {
  const SilentMount mount(dir / "mount");
  mount.serve(::getpid());
  become_stranger(dir);
  lock(mount);
  return end_all(repeat([] {}, 1));
}

int locked_directory(const Directory& dir) {
  return keep_locked(dir, [&](const SilentMount& mount) {
    const Directory rings = dir / "rings";
    std::filesystem::create_directory(rings);
    lock_directory(mount, rings);
  });
}

int locked_above(const Directory& dir) {
  return keep_locked(dir, [&](const SilentMount& mount) {
    std::string directory;
    std::ifstream(dir / "plan") >> directory;
    ::alarm(longest_lock_s);
    lock_above(mount, directory);
  });
}

int locked_worker(const Directory& dir) {
  return keep_locked(dir, [](const SilentMount& mount) {
    say("ready");
    std::string worker;
    while (worker.empty()) worker = find_worker();
    ::alarm(longest_lock_s);
    lock_above(mount, "/proc/" + worker + "/task");
    say(("locked " + worker).c_str());
  });
}

int locked_state(const Directory& dir) {
  return keep_locked(dir, [&](const SilentMount& mount) {
    std::filesystem::create_directory(dir / "held");
    lock_directory(mount, dir / "held");
    const pid_t other = fork_dependent();
    if (other == 0) {
      // Where names may be looked up the directory that a file goes to is locked first, and the one that it comes from
      // is waited for.
      ::rename((dir / "held/none").c_str(), "/run/rtev-bpf/enabled/none");
      ::_exit(0);
    }
    while (state_of(other) == 'R') ::poll(nullptr, 0, 1);
  });
}

int silent_flags(const Directory& dir) {
  const SilentMount mount(dir / "mount");
  mount.serve(::getpid());
  become_dumpable_stranger(dir);
  const int silent = open_silent(mount);
  const Lookalike program;
  say("ready");
  if (!program.await_request() || !program.start_events(dir)) return 1;
  say("started");
  await_go();
  void* const flags = const_cast<unsigned long*>(program.words().enabled);
  if (::mmap(flags, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, silent, 0) != flags) fail("mmap");
  say("silent");
  await_end();
  return 0;
}

int locked_when_asked(const Directory& dir) {
  const SilentMount mount(dir / "mount");
  mount.serve(::getpid());
  become_dumpable_stranger(dir);
  const MapLock lock(mount);
  const Lookalike program;
  say("ready");
  if (!await_go() || !program.await_request()) return 1;
  say("asked");
  lock.hold();
  return 0;
}

}  // namespace rtev::hostile

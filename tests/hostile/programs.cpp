// SPDX-License-Identifier: MIT
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "attacker.hpp"
#include "crafted_program.hpp"
#include "forged_ring.hpp"
#include "probed_program.hpp"

namespace rtev::hostile {
namespace {

namespace fs = std::filesystem;

constexpr int announcement_ms = 2;

/// Nearly as many as a process may have.
void add_mappings() {
  constexpr std::size_t count = 64'000, page = 4096;
  void* const memory =
      ::mmap(nullptr, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  // Neighbours with the same rights would be one mapping.
  for (std::size_t i = 0; i < count; i += 2)
    if (::mprotect(static_cast<char*>(memory) + i * page, page, PROT_READ) != 0) fail("mprotect");
}

void announce_ring(const Directory& dir) {
  ForgedRing ring(dir, {.domains = 1, .words = 64});
  ring.write(0, 0);
}

constexpr ForgedRing::Shape two_domains{.domains = 2, .words = 4096};

void write_unnamed_events(ForgedRing& ring) {
  constexpr std::uint64_t events = 1000;
  for (std::uint64_t id = 0; id < events; ++id) ring.write(id % two_domains.domains, id);
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_program(const fs::path& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) fail(path);
  fs::permissions(path, fs::perms(0700));
}

void replace_program(const fs::path& path, const std::string& bytes) {
  const fs::path next = path.parent_path() / "next";
  write_program(next, bytes);
  fs::rename(next, path);
}

/// This program with as many sections as a header can count. Each is all of the file and might hold constants, so that
/// a search for a text reads the file once for each of them.
std::string program_of_many_sections() {
  constexpr std::size_t count = SHN_LORESERVE - 1;
  std::string bytes = read_file("/proc/self/exe");
  const Elf64_Shdr all{.sh_name = 0,
                       .sh_type = SHT_PROGBITS,
                       .sh_flags = SHF_ALLOC,
                       .sh_addr = 0,
                       .sh_offset = 0,
                       .sh_size = bytes.size(),
                       .sh_link = 0,
                       .sh_info = 0,
                       .sh_addralign = 1,
                       .sh_entsize = 0};
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_shoff = bytes.size();
  header.e_shnum = count;
  header.e_shentsize = sizeof all;
  header.e_shstrndx = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  for (std::size_t i = 0; i < count; ++i) bytes.append(reinterpret_cast<const char*>(&all), sizeof all);
  return bytes;
}

void touch(const fs::path& path) {
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) fail(path);
}

/// Lets programs of OCaml write their rings to a directory.
void trace_programs(const Directory& dir) {
  ::setenv("OCAML_RUNTIME_EVENTS_START", "1", 1);
  ::setenv("OCAML_RUNTIME_EVENTS_DIR", dir.c_str(), 1);
}

/// Runs a program whose output nobody reads.
pid_t run(const fs::path& program, int input, const char* argument = nullptr) {
  const pid_t child = fork_dependent();
  if (child > 0) return child;
  ::dup2(input, STDIN_FILENO);
  ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
  ::execl(program.c_str(), "program", argument, nullptr);
  ::_exit(127);
}

/// Input that never comes.
int silence() {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) fail("pipe");
  return pipe[0];
}

/// The argument with which a program of tests/ocaml stands still.
constexpr const char* still = "point";

/// Runs ever new copies of `dir`/program, so many at a time.
int run_copies(const Directory& dir, std::size_t at_once) {
  const fs::path program = dir / "program";
  const std::string bytes = read_file(program);
  const int input = silence();
  trace_programs(dir);
  std::deque<pid_t> running;
  const auto start = [&] {
    replace_program(program, bytes + std::to_string(now_ns()));
    running.push_back(run(program, input));
  };
  while (running.size() < at_once) start();
  return repeat(
      [&] {
        start();
        ::kill(running.front(), SIGKILL);
        ::waitpid(running.front(), nullptr, 0);
        fs::remove(dir / (std::to_string(running.front()) + ".events"));
        running.pop_front();
      },
      announcement_ms);
}

}  // namespace

int many_mappings(const Directory& dir) {
  add_mappings();
  const pid_t other = fork_dependent();
  if (other == 0) {
    while (true) {
      announce_ring(dir);
      ::poll(nullptr, 0, announcement_ms);
    }
  }
  const int status = repeat([&] { announce_ring(dir); }, announcement_ms);
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
  return status;
}

int many_sections(const Directory& dir) {
  const fs::path program = dir / "sections";
  write_program(program, program_of_many_sections());
  return repeat([&] {
    touch(program);
    const pid_t child = fork_dependent();
    if (child == 0) become(program, "nothing", dir);
    ::waitpid(child, nullptr, 0);
  });
}

int touched_program(const Directory& dir) {
  const fs::path program = dir / "program";
  const std::string bytes = read_file(program);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  trace_programs(dir);
  std::uint64_t round = 0;
  return repeat([&] {
    if (++round % 2 == 0)
      touch(program);
    else
      replace_program(program, bytes);
    int status = 0;
    ::waitpid(run(program, null), &status, 0);
    if (status != 0) fail("the program failed");
  });
}

int many_programs(const Directory& dir) {
  become_stranger(dir);
  return end_all(run_copies(dir, 200));
}

int expensive_tables(const Directory& dir) {
  constexpr std::size_t at_once = 4;
  const fs::path program = dir / "expensive";
  become_stranger(dir);
  write_program(program, with_many_expressions(read_file(dir / "program")));
  const int input = silence();
  trace_programs(dir);
  std::deque<pid_t> running;
  return end_all(repeat(
      [&] {
        touch(program);
        running.push_back(run(program, input, still));
        if (running.size() <= at_once) return;
        ::kill(running.front(), SIGKILL);
        ::waitpid(running.front(), nullptr, 0);
        fs::remove(dir / (std::to_string(running.front()) + ".events"));
        running.pop_front();
      },
      100));
}

int full_tables(const Directory& dir) {
  // Small parts, so that the share is nearly full in whichever order they are read.
  constexpr std::size_t copies = 20, symbols = 4'000;
  become_stranger(dir);
  const std::string bytes = with_many_symbols(read_file(dir / "program"), symbols);
  const int input = silence();
  trace_programs(dir);
  for (std::size_t copy = 0; copy < copies; ++copy) {
    const fs::path name = dir / ("copy" + std::to_string(copy));
    write_program(name, bytes);
    run(name, input, still);
  }
  return end_all(repeat([&] {
    const pid_t last = run(dir / "program", input, still);
    ::poll(nullptr, 0, 100);
    ::kill(last, SIGKILL);
    ::waitpid(last, nullptr, 0);
    fs::remove(dir / (std::to_string(last) + ".events"));
  }));
}

int long_forks(const Directory& dir) {
  constexpr std::size_t bytes = std::size_t{4} << 30;
  become_stranger(dir);
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  // Only page tables, of a mapping that fork(2) copies.
  *static_cast<volatile char*>(memory) = 1;
  if (::madvise(memory, bytes, MADV_POPULATE_READ) != 0) fail("madvise");
  std::vector<pid_t> children;
  for (int forker = 0; forker < 4; ++forker) {
    children.push_back(fork_dependent());
    if (children.back() != 0) continue;
    const sched_param none{};
    ::sched_setscheduler(0, SCHED_IDLE, &none);
    while (true) {
      const pid_t child = fork_dependent();
      if (child == 0) ::_exit(0);
      ::waitpid(child, nullptr, 0);
    }
  }
  ::munmap(memory, bytes);
  for (long cpu = ::sysconf(_SC_NPROCESSORS_ONLN); cpu > 0; --cpu) {
    children.push_back(fork_dependent());
    if (children.back() != 0) continue;
    constexpr int nice = 10;
    ::setpriority(PRIO_PROCESS, 0, nice);
    while (true) {
    }
  }
  const int status = run_copies(dir, 4);
  // At idle priority they would go on dying beside whatever runs next.
  for (const pid_t child : children) ::kill(child, SIGKILL);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  return end_all(status);
}

int mapped_program(const Directory& dir) {
  constexpr int processes = 6, mappings_of_each = 60'000;
  become_stranger(dir);
  const ProbedProgram program(dir / "program");
  program.run(dir);
  bool is_mapped = false;
  return end_all(repeat(
      [&] {
        if (is_mapped || !program.is_probed()) return;
        is_mapped = true;
        for (int process = 0; process < processes; ++process) {
          if (fork_dependent() != 0) continue;
          for (int i = 0; i < mappings_of_each; ++i) program.map();
          ::pause();
        }
      },
      announcement_ms));
}

int threads_that_exec_step(const Directory& dir) {
  ForgedRing ring(dir, two_domains);
  write_unnamed_events(ring);
  return 0;
}

int threads_that_exec(const Directory& dir) {
  constexpr int processes = 4;
  const fs::path program = dir / "rtev-attack";
  become_stranger(dir);
  // Strangers may not reach the folder of the original.
  write_program(program, read_file("/proc/self/exe"));
  return repeat_beside(processes, [&] {
    const pid_t child = fork_dependent();
    if (child == 0) {
      ForgedRing ring(dir, two_domains);
      write_unnamed_events(ring);
      std::thread([&] { become(program, "threads-that-exec-step", dir); }).detach();
      while (true) ring.write(0, 1);
    }
    ::waitpid(child, nullptr, 0);
    fs::remove(dir / (std::to_string(child) + ".events"));
  });
}

int many_mounts(const Directory& dir) {
  constexpr int doublings = 16;
  const fs::path tree = dir / "tree", changing = dir / "changing";
  fs::create_directory(tree);
  fs::create_directory(changing);
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail("cannot leave the mount namespace");
  for (int doubling = 0; doubling < doublings; ++doubling) {
    const fs::path place = tree / std::to_string(doubling);
    fs::create_directory(place);
    if (::mount(tree.c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) fail("mount");
  }
  const pid_t stranger = fork_dependent();
  if (stranger == 0) {
    become_stranger(dir);
    while (true) {
      announce_ring(dir);
      ::poll(nullptr, 0, announcement_ms);
    }
  }
  const int status = repeat(
      [&] {
        if (::mount(dir.c_str(), changing.c_str(), nullptr, MS_BIND, nullptr) != 0) fail("mount");
        if (::umount2(changing.c_str(), MNT_DETACH) != 0) fail("umount");
      },
      announcement_ms);
  ::kill(stranger, SIGKILL);
  ::waitpid(stranger, nullptr, 0);
  return status;
}

}  // namespace rtev::hostile

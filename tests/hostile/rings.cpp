// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <thread>

#include "attacker.hpp"
#include "forged_ring.hpp"

namespace rtev::hostile {
namespace {

/// Makes things up.
class Inventor {
 public:
  explicit Inventor(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  /// Around zero, around a small number, around a time, or anything.
  std::uint64_t number() {
    switch (below(5)) {
      case 0:
        return below(4) - 2;
      case 1:
        return below(1 << 16);
      case 2:
        return now_ns() + below(2'000'000'000) - 1'000'000'000;
      case 3:
        return std::uint64_t{1} << below(64);
      default:
        return random_();
    }
  }

 private:
  std::mt19937_64 random_;
};

/// What a reader may take for a program that goes on writing.
void mutate(ForgedRing& ring, Inventor& inventor) {
  const std::uint64_t domain = inventor.below(ring.shape().domains), words = ring.shape().words;
  switch (inventor.below(16)) {
    case 0:
      return ring.claim(domain, inventor.below(2 * words));
    case 1:
      return publish(ring.head(domain), ring.tail(domain) - inventor.below(words));
    case 2:
      return ring.set_name(inventor.below(ForgedRing::names), std::string(inventor.below(128), '\x1b'));
    default:
      return publish(ring.word(domain, ring.tail(domain) - inventor.below(words)), inventor.number());
  }
}

/// What a reader may take for the end of the ring.
void destroy(ForgedRing& ring, Inventor& inventor) {
  const std::uint64_t domain = inventor.below(ring.shape().domains);
  switch (inventor.below(3)) {
    case 0:
      return publish(ring.head(domain), inventor.number());
    case 1:
      return publish(ring.tail(domain), inventor.number());
    default:
      return publish(ring.header(inventor.below(ForgedRing::header_words)), inventor.number());
  }
}

/// A ring's life. Most of it passes before the first change after which a reader may give it up.
[[noreturn]] void write_and_mutate(const Directory& dir, std::uint64_t seed) {
  constexpr std::uint64_t domains = 8, events_of_turn = 64, life_ns = 100'000'000, good_ns = 80'000'000;
  ForgedRing ring(dir, {.domains = domains, .words = 4096});
  Inventor inventor(seed);
  const std::uint64_t begin = now_ns();
  for (std::uint64_t now = begin; now < begin + life_ns; now = now_ns()) {
    const std::uint64_t domain = inventor.below(domains);
    for (std::uint64_t event = 0; event < events_of_turn; ++event) ring.write(domain, inventor.below(16));
    if (now < begin + good_ns)
      mutate(ring, inventor);
    else
      destroy(ring, inventor);
  }
  ::_exit(0);
}

/// Claims this many words in each domain of each process, and then more and more.
int claim_words(const Directory& dir, std::uint64_t words) {
  constexpr int processes = 8, pause_ms = 10;
  constexpr std::uint64_t domains = 4096, more_words = 1000;
  become_stranger(dir);
  for (int process = 0; process < processes; ++process) {
    if (fork_dependent() > 0) continue;
    ForgedRing ring(dir, {.domains = domains});
    for (;; words = more_words, ::poll(nullptr, 0, pause_ms))
      for (std::uint64_t domain = 0; domain < domains; ++domain) {
        ring.claim(domain, words);
        publish(ring.head(domain), ring.tail(domain) - std::min(ring.tail(domain), more_words));
      }
  }
  return end_all(repeat([] {}, pause_ms));
}

}  // namespace

int mutating_writer(const Directory& dir) {
  std::uint64_t seed = 0;
  return repeat([&] {
    const pid_t child = fork_dependent();
    if (child == 0) write_and_mutate(dir, seed);
    ++seed;
    ::waitpid(child, nullptr, 0);
    std::filesystem::remove(dir / (std::to_string(child) + ".events"));
  });
}

int name_flood(const Directory& dir) {
  ForgedRing ring(dir, {});
  std::uint64_t round = 0;
  const auto rename = [&](std::uint64_t id) {
    std::string name = "round " + std::to_string(round) + " of " + std::to_string(id) + ' ';
    name.resize(ForgedRing::name_bytes - 1, 'x');
    ring.set_name(id, name);
  };
  for (std::uint64_t id = 0; id < ForgedRing::names; ++id) rename(id);
  return repeat([&] {
    ++round;
    for (std::uint64_t id = 0; id < ForgedRing::names; ++id) {
      rename(id);
      ring.write(0, id);
    }
  });
}

int short_lived_names(const Directory& dir) {
  constexpr int processes = 4, life_ms = 3;
  constexpr std::uint64_t words = 1 << 15;
  become_stranger(dir);
  return repeat_beside(processes, [&] {
    const pid_t child = fork_dependent();
    if (child == 0) {
      const std::string pid = std::to_string(::getpid());
      ::prctl(PR_SET_NAME, ("\x1b[2J" + pid + "\n\t").c_str());
      ForgedRing ring(dir, {.domains = 1, .words = words});
      for (std::uint64_t id = 0; id < ForgedRing::names; ++id) {
        std::string name = "\x1b]0;" + pid + '_' + std::to_string(id);
        name.resize(ForgedRing::name_bytes - 1, 'x');
        ring.set_name(id, name);
        ring.write(0, id);
      }
      ::poll(nullptr, 0, life_ms);
      std::filesystem::remove(dir / (pid + ".events"));
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  });
}

int growing_header(const Directory& dir) {
  constexpr std::uint64_t words = 64, more_domains = 64;
  constexpr std::size_t bytes = 4 << 20;  // room for all domains
  constexpr int until_it_is_open = 20, event_ms = 2, until_it_is_checked_ms = 40;
  return repeat_in_children([&] {
    ForgedRing ring(dir, {.domains = 1, .words = words});
    const std::filesystem::path file = dir / (std::to_string(::getpid()) + ".events");
    std::filesystem::resize_file(file, bytes);
    for (int event = 0; event < until_it_is_open; ++event) {
      ring.write(0, 0);
      ::poll(nullptr, 0, event_ms);
    }
    ring.publish_domains(more_domains);
    ::poll(nullptr, 0, until_it_is_checked_ms);
    std::filesystem::remove(file);
    ::_exit(0);
  });
}

int leased_ring(const Directory& dir) {
  constexpr int processes = 8, life_ms = 3;
  become_stranger(dir);
  ::signal(SIGIO, SIG_IGN);  // sent when another process opens the file
  return repeat_beside(processes, [&] {
    std::filesystem::remove(dir / (std::to_string(::getpid()) + ".events"));
    ForgedRing ring(dir, {.leased = true});
    ring.write(0, 0);
    ::poll(nullptr, 0, life_ms);
  });
}

int sparse_rings(const Directory& dir) {
  return claim_words(dir, 0);
}

int huge_indices(const Directory& dir) {
  return claim_words(dir, std::uint64_t{1} << 63);
}

int long_names(const Directory& dir) {
  constexpr std::uint64_t events_of_turn = 1024;
  constexpr int processes = 16, pause_ms = 1;
  if (const pid_t parent = ::getpid(); fork_dependent() == 0) {
    const ForgedRing other(dir, {});  // of a user whose events are to be delayed
    // The end of a parent that has become another user sends no signal.
    constexpr int look_ms = 100;
    while (::getppid() == parent) ::poll(nullptr, 0, look_ms);
    ::_exit(0);
  }
  become_stranger(dir);
  std::string name = "beacon";  // which the tracer is to print
  name.resize(ForgedRing::name_bytes - 1, '\x01');
  for (int process = 0; process < processes; ++process) {
    if (fork_dependent() > 0) continue;
    ForgedRing ring(dir, {});
    ring.set_name(0, name);
    while (true) {
      for (std::uint64_t event = 0; event < events_of_turn; ++event) ring.write(0, 0);
      ::poll(nullptr, 0, pause_ms);
    }
  }
  return end_all(repeat([] {}, pause_ms));
}

int many_domains(const Directory& dir) {
  constexpr std::uint64_t domains = 4096, words_of_page = 512;
  ForgedRing ring(dir, {.domains = domains, .words = words_of_page});
  return repeat([&] {
    for (std::uint64_t domain = 0; domain < domains; ++domain) ring.write(domain, 0);
  });
}

int small_rings(const Directory& dir) {
  constexpr std::uint64_t domains = 4, events_of_turn = 1024;
  ForgedRing ring(dir, {.domains = domains, .words = 64});
  return repeat([&] {
    for (std::uint64_t event = 0; event < events_of_turn; ++event) ring.write(event % domains, 0);
  });
}

int memfd_ring(const Directory& dir) {
  const std::string name = std::to_string(::getpid()) + ".events";
  const int file = ::memfd_create(name.c_str(), MFD_CLOEXEC);
  if (file < 0) fail("memfd_create");
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(file), dir / name);
  ForgedRing ring(dir, {});
  return repeat([&] { ring.write(0, 0); });
}

int punched_ring(const Directory& dir) {
  constexpr std::size_t gigabyte = 1 << 30, page = 4096;
  constexpr std::uint64_t events_of_turn = 1024;
  become_stranger(dir);
  ForgedRing ring(dir, {});
  std::jthread puncher([&](const std::stop_token& stop) {
    const std::string path = dir / (std::to_string(::getpid()) + ".events");
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    const auto words = static_cast<off_t>(ring.words_offset() / page * page);
    if (::ftruncate(file, words + static_cast<off_t>(gigabyte)) != 0) fail("ftruncate");
    void* const memory = ::mmap(nullptr, gigabyte, PROT_READ | PROT_WRITE, MAP_SHARED, file, words);
    if (memory == MAP_FAILED) fail("mmap");
    const std::span bytes(static_cast<char*>(memory), gigabyte);
    while (!stop.stop_requested()) {
      // fallocate(2) would show that the file is being changed.
      for (std::size_t at = page * 512; at < bytes.size(); at += page) bytes[at] = 1;
      if (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, words, gigabyte) != 0) fail("fallocate");
    }
  });
  return repeat([&] {
    for (std::uint64_t event = 0; event < events_of_turn; ++event) ring.write(0, 0);
  });
}

int collapsed_ring(const Directory& dir) {
  constexpr std::size_t huge_page = 2 << 20, page = 4096;
  constexpr int mappings = 30'000;
  constexpr int madv_collapse = 25;  // MADV_COLLAPSE of Linux 6.1, which C libraries may not have
  constexpr std::uint64_t events_of_turn = 1024;
  become_stranger(dir);
  ForgedRing ring(dir, {});
  std::jthread collapser([&](const std::stop_token& stop) {
    const std::string path = dir / (std::to_string(::getpid()) + ".events");
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (::ftruncate(file, huge_page) != 0) fail("ftruncate");
    const auto map = [&](void* at, int flags) {
      void* const memory = ::mmap(at, huge_page, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);
      if (memory == MAP_FAILED) fail("mmap");
      return memory;
    };
    // Each page is looked for in all of them.
    for (int mapping = 0; mapping < mappings; ++mapping) map(nullptr, 0);
    void* const space = ::mmap(nullptr, 2 * huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto aligned = (reinterpret_cast<std::uintptr_t>(space) + huge_page - 1) / huge_page * huge_page;
    auto* const memory = static_cast<volatile char*>(map(reinterpret_cast<void*>(aligned), MAP_FIXED));
    while (!stop.stop_requested()) {
      for (std::size_t at = 0; at < huge_page; at += page) memory[at] = memory[at];
      // A huge page may be missing for a moment; the next turn tries again.
      if (::madvise(reinterpret_cast<void*>(aligned), huge_page, madv_collapse) != 0 && errno != EAGAIN &&
          errno != ENOMEM && errno != EBUSY)
        fail("madvise");
      // Splits the huge page.
      if (::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, huge_page - page, page) != 0) fail("fallocate");
    }
  });
  return repeat([&] {
    for (std::uint64_t event = 0; event < events_of_turn; ++event) ring.write(0, 0);
  });
}

int huge_rings(const Directory& dir) {
  constexpr std::uint64_t domains = 15, words = std::uint64_t{1} << 35;
  constexpr int processes = 40, event_ms = 10;
  become_stranger(dir);
  for (int process = 0; process < processes; ++process) {
    if (fork_dependent() > 0) continue;
    ForgedRing ring(dir, {.domains = domains, .words = words});
    for (std::uint64_t domain = 0;; domain = (domain + 1) % domains) {
      ring.write(domain, 0);
      ::poll(nullptr, 0, event_ms);
    }
  }
  return end_all(repeat([] {}, event_ms));
}

}  // namespace rtev::hostile

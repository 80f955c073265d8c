// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attacker.hpp"
#include "lookalike.hpp"
#include "silent_mount.hpp"

namespace rtev::hostile {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t page_bytes = lookalike_page_bytes;

/// Word of the domain's state that asks it to call the hook.
constexpr std::size_t request_word = 32;

/// Where guarded_words() has its words, and what the hook is.
constexpr const char *hook_variable = "GUARDED_HOOK", *value_variable = "GUARDED_VALUE",
                     *request_variable = "GUARDED_REQUEST";

/// Runs for some microseconds at a time.
int watch(const Lookalike& program) {
  say("ready");
  while (program.await_request()) {
    constexpr int nap_us = 100;
    while (program.is_asked()) ::usleep(nap_us);
  }
  // What is written besides the hook stays.
  if (!program.is_untouched()) say("touched");
  say("done");
  return 0;
}

/// Whether something has read or written this page since it was emptied.
class PageWatch {
 public:
  explicit PageWatch(volatile unsigned long* page)
      : page_(const_cast<unsigned long*>(page)), map_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    if (map_ < 0) fail("pagemap");
    // Memory that is not a file's: of those the kernel maps pages beside the one that is asked for, too.
    if (::mmap(page_, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      fail("mmap");
  }
  bool is_present() const {
    std::uint64_t entry = 0;
    const auto number = reinterpret_cast<std::uintptr_t>(page_) / page_bytes;
    return ::pread(map_, &entry, sizeof entry, static_cast<off_t>(number * sizeof entry)) == sizeof entry &&
           entry >> 63 != 0;
  }
  void empty() const { ::madvise(page_, page_bytes, MADV_DONTNEED); }
  bool wait(std::chrono::milliseconds limit) const {
    for (const auto end = Clock::now() + limit; Clock::now() < end;)
      if (is_present()) return true;
    return false;
  }

 private:
  unsigned long* page_;
  int map_;
};

void pause(std::chrono::milliseconds time) {
  ::poll(nullptr, 0, static_cast<int>(time.count()));
}

std::uint64_t address_of(const volatile void* word) {
  return reinterpret_cast<std::uintptr_t>(word);
}

/// Runs the set-user-ID program, which has its words where this one has the hook and the request.
[[noreturn]] void become_guarded(const Lookalike& program, const Directory& dir) {
  ::setenv(hook_variable, std::to_string(address_of(program.words().hook)).c_str(), 1);
  ::setenv(value_variable, std::to_string(reinterpret_cast<std::uintptr_t>(program.words().start)).c_str(), 1);
  ::setenv(request_variable, std::to_string(address_of(program.words().state + request_word)).c_str(), 1);
  become(dir / "../guarded", "guarded-words", dir);
}

std::uint64_t number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::stoull(text);
}

volatile std::uint64_t* map_word(std::uint64_t address) {
  void* const page = reinterpret_cast<void*>(address & ~(page_bytes - 1));  // NOLINT(performance-no-int-to-ptr)
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  if (::mmap(page, page_bytes, PROT_READ | PROT_WRITE, flags, -1, 0) != page) fail("cannot map a word");
  return reinterpret_cast<volatile std::uint64_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

int watched_words(const Directory& /*dir*/) {
  return watch(Lookalike());
}

int hidden_words(const Directory& /*dir*/) {
  ::prctl(PR_SET_DUMPABLE, 0);
  return watch(Lookalike());
}

int two_users_words(const Directory& /*dir*/) {
  constexpr uid_t real = 65534, effective = 12345;
  if (::setresgid(real, real, real) != 0 || ::setresuid(real, effective, effective) != 0) fail("setresuid");
  ::prctl(PR_SET_DUMPABLE, 1);
  return watch(Lookalike());
}

int ambient_words(const Directory& dir) {
  constexpr std::uint32_t overrides = 1u << CAP_DAC_OVERRIDE;
  ::prctl(PR_SET_KEEPCAPS, 1);
  become_stranger(dir);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const std::array<__user_cap_data_struct, 2> data{
      {{.effective = overrides, .permitted = overrides, .inheritable = overrides}, {}}};
  if (::syscall(SYS_capset, &header, data.data()) != 0 ||
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) != 0)
    fail("cannot keep a capability");
  become("watched-words", dir);
}

int guarded_words(const Directory& /*dir*/) {
  const std::uint64_t value = number_in(value_variable);
  volatile std::uint64_t* const hook = map_word(number_in(hook_variable));
  volatile std::uint64_t* const request = map_word(number_in(request_variable));
  *hook = value;
  *request = 1;
  say("guarded");
  pollfd end{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  ::poll(&end, 1, -1);
  if (*hook != value || *request != 1) say("changed");
  say("done");
  return 0;
}

int forged_entry(const Directory& dir) {
  const SilentMount mount(dir / "mount");
  mount.serve(::getpid());
  become_stranger(dir);
  become("forged-entry-step", dir);
}

int forged_entry_by_helper(const Directory& dir) {
  const SilentMount mount(dir / "mount", SilentMount::Helper{});
  mount.serve(::getpid());
  become("forged-entry-step", dir);
}

int forged_entry_step(const Directory& dir) {
  using std::chrono_literals::operator""ms;
  const Lookalike program;
  const int silent = ::open((dir / "mount/file").c_str(), O_RDWR | O_CLOEXEC);
  if (silent < 0) fail("cannot open a file");
  // Enabling reads the hook, then the witness: when it checks the program, and right before it replaces the hook.
  const PageWatch witness(program.words().witness);
  say("ready");
  if (!witness.wait(10'000ms)) fail("nobody looks at this program");
  pause(2ms);  // a word is read twice
  witness.empty();
  if (!witness.wait(5000ms)) fail("nobody is about to replace the hook");
  void* const hook = const_cast<lookalike_hook*>(program.words().hook);
  if (::mmap(hook, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, silent, 0) != hook)
    fail("cannot map the hook");
  pause(500ms);  // until the write has begun
  become_guarded(program, dir);
}

int killed_entry(const Directory& dir) {
  constexpr int attempts = 3;  // the last one has the longest time
  const Lookalike program;
  say("ready");
  for (int attempt = 1; program.await_request(); ++attempt) {
    if (attempt == attempts) {
      say("replaced");
      std::array<char, 1> go{};
      [[maybe_unused]] const ssize_t got = ::read(STDIN_FILENO, go.data(), go.size());
      become_guarded(program, dir);
    }
    constexpr int nap_us = 100;
    while (program.is_asked()) ::usleep(nap_us);
  }
  return 0;
}

}  // namespace rtev::hostile

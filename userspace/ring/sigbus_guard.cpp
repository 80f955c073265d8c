// SPDX-License-Identifier: MIT
#include "ring/sigbus_guard.hpp"

#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace rtev {
namespace {

struct Guard {
  sigjmp_buf escape;
  std::uintptr_t begin;
  std::uintptr_t end;
};

/// Atomic, because the compiler must not drop a store that only the signal handler reads.
thread_local constinit std::atomic<Guard*> active = nullptr;
struct sigaction previous_action;

/// Keeps the guarded accesses between the two stores that bracket them.
void activate(Guard* guard) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  active.store(guard, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Calls only async-signal-safe functions; the jump leaves a plain memory access of the same thread.
void on_sigbus(int signal_number, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (Guard* guard = active.load(std::memory_order_relaxed);
      guard != nullptr && address >= guard->begin && address < guard->end) {
    // The jump skips the return from the handler, which would have restored the mask.
    pthread_sigmask(SIG_SETMASK, &static_cast<const ucontext_t*>(context)->uc_sigmask, nullptr);
    siglongjmp(guard->escape, 1);
  }
  if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
    previous_action.sa_sigaction(signal_number, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal_number);
  } else if (info->si_code > 0) {
    // The access is repeated on return and ends the process, as it would without this handler.
    signal(SIGBUS, SIG_DFL);
  } else if (previous_action.sa_handler == SIG_DFL) {
    // Sent by a process: nothing would be repeated.
    signal(SIGBUS, SIG_DFL);
    raise(SIGBUS);
  }
}

}  // namespace

void install_sigbus_guard() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
  });
}

bool run_guarded(const void* begin, std::size_t size, void (*task)(void*), void* context) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  Guard guard;
  guard.begin = address;
  guard.end = address + size;
  if (sigsetjmp(guard.escape, 0) != 0) {
    activate(nullptr);
    return false;
  }
  activate(&guard);
  task(context);
  activate(nullptr);
  return true;
}

bool guarded_copy(void* to, const void* from, std::size_t size) {
  struct Copy {
    void* to;
    const void* from;
    std::size_t size;
  } copy{to, from, size};
  return run_guarded(
      from, size,
      [](void* context) {
        const Copy& task = *static_cast<Copy*>(context);
        std::memcpy(task.to, task.from, task.size);
      },
      &copy);
}

}  // namespace rtev

// SPDX-License-Identifier: MIT
// Attacks by names that programs choose for themselves.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "attacker.hpp"
#include "forged_ring.hpp"

namespace rtev::hostile {

int many_services_step(const Directory& dir) {
  ForgedRing ring(dir, {.domains = 1, .words = 64});
  constexpr int pause_ms = 100;
  while (true) {
    ring.write(0, 0);
    ::poll(nullptr, 0, pause_ms);
  }
}

int many_services(const Directory& dir) {
  constexpr int services = 40, pause_ms = 10;
  become_stranger(dir);
  for (int service = 0; service < services; ++service) {
    if (fork_dependent() > 0) continue;
    ::setenv("OTEL_SERVICE_NAME", ("spam-" + std::to_string(service)).c_str(), 1);
    become("/proc/self/exe", "many-services-step", dir);  // also where this user may not look for it
  }
  return end_all(repeat([] {}, pause_ms));
}

int losing_names(const Directory& dir) {
  constexpr int turns = 50, pause_ms = 2;
  constexpr std::uint64_t words = 64;
  become_stranger(dir);
  std::uint64_t number = 0;
  return repeat([&] {
    const std::string name = "loser-" + std::to_string(number++);
    const pid_t child = fork_dependent();
    if (child == 0) {
      ::prctl(PR_SET_NAME, name.c_str());
      ForgedRing ring(dir, {.domains = 1, .words = words});
      for (int turn = 0; turn < turns; ++turn) {
        for (std::uint64_t event = 0; event < words; ++event) ring.write(0, 0);
        ::poll(nullptr, 0, pause_ms);
      }
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
  });
}

}  // namespace rtev::hostile

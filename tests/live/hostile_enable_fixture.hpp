// SPDX-License-Identifier: MIT
// Fixture of the attacks on `rtev-bpf enable`.
#pragma once

#include <sys/types.h>

#include <set>
#include <vector>

#include "live/harness.hpp"

namespace rtev::test {

/// Another unprivileged user than `nobody`, who attacks.
inline constexpr uid_t victim_user = 12345;

/// One of the programs of tests/hostile: "rtev-attack-enabled".
fs::path attack_program(const char* name);

/// A copy with an owner and permissions.
fs::path copy_as(const fs::path& from, const fs::path& to, uid_t owner, mode_t mode);

std::set<fs::path> files_in(const fs::path& directory);

class HostileEnableLive : public LiveTest {
 protected:
  static constexpr const char* suspects_directory = "/run/rtev-bpf/suspects";

  void SetUp() override;
  void TearDown() override;

  /// Skips the test if there is no such file. In CI, fails instead.
  static void need(const fs::path& file);
  /// Where files are in memory (in the guests), one that only its owner may use has a file system of its own: rings are
  /// made nowhere else in memory.
  fs::path make_directory(const fs::path& name, uid_t owner, mode_t mode = 0700);
  static Command enabling(const std::vector<pid_t>& pids, const char* patience = "10s");
  /// An attack by an unprivileged user, who makes his rings where his other files are.
  static Command attack(const fs::path& program, const char* name, const fs::path& own) {
    return {.argv = {program, name, own}, .env = {{"OCAML_RUNTIME_EVENTS_DIR", own}}, .user = nobody};
  }

 private:
  std::set<fs::path> suspects_before_;
  std::vector<fs::path> mounts_;
};

}  // namespace rtev::test

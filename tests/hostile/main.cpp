// SPDX-License-Identifier: MIT
// usage: rtev-attack NAME DIRECTORY
#include <unistd.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string_view>

#include "attacks.hpp"

namespace rtev::hostile {
namespace {

struct Attack {
  std::string_view name;
  int (*run)(const Directory& dir);
};

constexpr auto attacks = std::to_array<Attack>({
    {"mutating-writer", mutating_writer},
    {"name-flood", name_flood},
    {"short-lived-names", short_lived_names},
    {"growing-header", growing_header},
    {"leased-ring", leased_ring},
    {"sparse-rings", sparse_rings},
    {"huge-indices", huge_indices},
    {"long-names", long_names},
    {"many-domains", many_domains},
    {"small-rings", small_rings},
    {"memfd-ring", memfd_ring},
    {"punched-ring", punched_ring},
    {"collapsed-ring", collapsed_ring},
    {"huge-rings", huge_rings},
    {"ring-flood", ring_flood},
    {"fork-storm", fork_storm},
    {"exec-flood", exec_flood},
    {"save-flood", save_flood},
    {"teardown-flood", teardown_flood},
    {"switch-flood", switch_flood},
    {"large-rings", large_rings},
    {"ending-rings", ending_rings},
    {"many-mappings", many_mappings},
    {"many-sections", many_sections},
    {"touched-program", touched_program},
    {"many-programs", many_programs},
    {"expensive-tables", expensive_tables},
    {"full-tables", full_tables},
    {"mapped-program", mapped_program},
    {"long-forks", long_forks},
    {"threads-that-exec", threads_that_exec},
    {"many-mounts", many_mounts},
    {"hung-ring", hung_ring},
    {"hung-detached-ring", hung_detached_ring},
    {"hung-program", hung_program},
    {"hung-detached-program", hung_detached_program},
    {"hung-directory", hung_directory},
    {"hung-memory", hung_memory},
    {"hung-mapping", hung_mapping},
    {"many-services", many_services},
    {"losing-names", losing_names},
    {"swapped-rings", swapped_rings},
    {"planted-rings", planted_rings},
    {"forged-entry", forged_entry},
    {"forged-entry-by-helper", forged_entry_by_helper},
    {"killed-entry", killed_entry},
    {"watched-words", watched_words},
    {"hidden-words", hidden_words},
    {"two-users-words", two_users_words},
    {"ambient-words", ambient_words},
    {"locked-journal", locked_journal},
    {"locked-state", locked_state},
    {"crashing-words", crashing_words},
    {"locked-directory", locked_directory},
    {"locked-above", locked_above},
    {"locked-worker", locked_worker},
    {"silent-flags", silent_flags},
    {"locked-when-asked", locked_when_asked},
    // What these programs run in turn.
    {"exec-flood-step", exec_flood_step},
    {"threads-that-exec-step", threads_that_exec_step},
    {"hung-program-step", hung_program_step},
    {"hung-detached-program-step", hung_detached_program_step},
    {"many-services-step", many_services_step},
    {"forged-entry-step", forged_entry_step},
    {"guarded-words", guarded_words},
    {"nothing", nothing},
});

}  // namespace
}  // namespace rtev::hostile

int main(int argc, char** argv) {
  using rtev::hostile::attacks;
  // Attackers compete for the cpu with an honest program that the test watches.
  [[maybe_unused]] const int priority = ::nice(argc == 3 ? 1 : 0);
  for (const auto& attack : attacks) {
    if (argc != 3 || attack.name != argv[1]) continue;
    try {
      return attack.run(argv[2]);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "rtev-attack: %s\n", error.what());
      return 1;
    }
  }
  std::fprintf(stderr, "usage: rtev-attack NAME DIRECTORY\n");
  return 2;
}

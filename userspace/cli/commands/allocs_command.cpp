// SPDX-License-Identifier: MIT
// rtev-bpf allocs: who allocates.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/subcommands.hpp"
#include "cli/profile_output.hpp"

namespace rtev::cli {
namespace {

constexpr const char* allocs_footer =
    "A stack is taken whenever half of a minor heap is used up, which costs a program next to nothing. The "
    "sample is what is allocated at that moment. So the figures have two biases. A loop whose allocations divide half "
    "a minor heap without a rest is always sampled at the same place. And the first domain that fills its heap makes "
    "all domains collect, so that the others are sampled less: the samples of each domain are scaled to the bytes that "
    "its counter says.\n"
    "Blocks of more than 256 words go into the major heap directly. Counters say how much that is. Stacks on a CPU say "
    "where most of the time of such allocations is spent.\n"
    "\n"
    "Examples:\n"
    "  rtev-bpf allocs -- ./server                   of a program that it starts\n"
    "  rtev-bpf allocs -p 1234 -d 10s -o heap.pb.gz  for pprof\n"
    "  rtev-bpf allocs -i trace.fxt                  of a recording";

}  // namespace

Subcommand add_allocs_command(CLI::App& root) {
  auto options = std::make_shared<AnalysisOptions>();
  CLI::App* const app = root.add_subcommand("allocs", "show who allocates, by line");
  app->footer(allocs_footer);
  app->add_flag("--full", options->full, "show more sites, and the whole tree of calls");
  add_profile_options(*app, *options);
  // On a CPU for blocks that go into the major heap directly.
  options->stacks.on_cpu = options->stacks.allocations = true;
  return {.app = app,
          .run =
              [options](const Invocation& invocation) {
                return run_profile(*options, invocation, {.kind = SampleKind::allocation},
                                   [&](const ProfileReport& report) {
                                     return options->json ? allocs_json(report) : allocs_text(report);
                                   });
              },
          .takes_command = true};
}

}  // namespace rtev::cli

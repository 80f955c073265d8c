// SPDX-License-Identifier: MIT
#include "cli/profile_output.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "base/exit_status.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/reading.hpp"
#include "cli/tracing.hpp"
#include "formats/profile/profile_files.hpp"

namespace rtev::cli {
namespace {

/// What a sample that differs from all others takes, with its part of the tree.
constexpr std::size_t bytes_per_key = 256;

}  // namespace

void add_profile_options(CLI::App& app, AnalysisOptions& options) {
  std::string files;
  for (const ProfileFileInfo& info : profile_files()) {
    options.file_suffixes.push_back(info.suffix);
    files += (files.empty() ? "" : ", ") + std::string(info.purpose) + " (" + std::string(info.suffix) + ")";
  }
  add_analysis_options(app, options, StackUse::by_command);
  app.get_option("--output")
      ->description("write to FILE instead of stdout: the report (.txt, .json), or by its suffix " + files +
                    ". Without a name: rtev-HOST-TIME.txt or .json");
}

int run_profile(const AnalysisOptions& options, const Invocation& invocation, ProfileOptions profile,
                const std::function<std::string(const ProfileReport& report)>& report_text) {
  auto output = open_output(options.output);
  if (!output) return report(output.error());
  profile.of_recording = !options.input.empty();
  profile.input = input_argument(options.input);
  profile.full = options.full;
  profile.traces_switches = options.input.empty() && options.sched != RTEV_SCHED_OFF && !lacks_bpf(options);
  profile.max_keys = options.memory_limit / 4 / bytes_per_key;
  const auto file = profile_file_of(options.output);
  Profile sink(std::move(profile));
  bool has_samples = false;
  const int status = analyse(options, invocation, sink, **output, [&](const Registry& registry) {
    const ProfileReport found = sink.report(registry);
    has_samples = found.shown(found.all).samples > 0;
    if (!file) return report_text(found);
    if (!has_samples && !options.quiet) say(report_text(found));
    return has_samples ? profile_file(found, *file) : std::string();
  });
  return status == exit_ok && !options.input.empty() && !has_samples ? exit_failure : status;
}

}  // namespace rtev::cli

// SPDX-License-Identifier: MIT
// usage: make_document rtev-bpf|rtev-load TEMPLATE OUTPUT
// Run by the build: fills the template of a manual page (.scd.in, for scdoc) or of a completion (.bash.in, .zsh.in,
// .fish.in) from the options of a program.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/exit_status.hpp"
#include "cli/command_line.hpp"
#include "completions/shell_options.hpp"
#include "load/load_options.hpp"
#include "man/options_to_scdoc.hpp"

namespace {

using rtev::completions::Shell;

rtev::Result<std::string> fill(std::string_view path, std::string_view text, const CLI::App& program) {
  constexpr std::array<std::pair<std::string_view, Shell>, 3> shells{
      {{".bash.in", Shell::bash}, {".zsh.in", Shell::zsh}, {".fish.in", Shell::fish}}};
  for (const auto& [suffix, shell] : shells)
    if (path.ends_with(suffix)) return rtev::completions::fill_completion(text, program, shell);
  return rtev::man::fill_template(text, program);
}

int make_document(const CLI::App& program, const char* template_path, const char* output_path) {
  std::ifstream input(template_path);
  const auto document = fill(template_path, std::string(std::istreambuf_iterator<char>(input), {}), program);
  if (!document) {
    fmt::print(stderr, "make_document: {}: {}\n", template_path, document.error().message());
    return rtev::exit_failure;
  }
  std::ofstream output(output_path);
  output << *document;
  output.close();
  return input && output ? rtev::exit_ok : rtev::exit_failure;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return rtev::exit_usage;
  if (argv[1] == std::string_view("rtev-bpf")) return make_document(rtev::cli::CommandLine().app(), argv[2], argv[3]);
  rtev::load::LoadOptions options;
  CLI::App load;
  set_up_command_line(load, options);
  return make_document(load, argv[2], argv[3]);
}

// SPDX-License-Identifier: MIT
// usage: make_page rtev-bpf|rtev-load TEMPLATE OUTPUT
// Run by the build: fills a template, so that scdoc can make a manual page of it.
#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "base/exit_status.hpp"
#include "cli/command_line.hpp"
#include "load/load_options.hpp"
#include "man/options_to_scdoc.hpp"
#include "rtev/version.hpp"

namespace {

int make_page(const CLI::App& program, const char* template_path, const char* output_path) {
  std::ifstream input(template_path);
  const auto page = rtev::man::fill_template(std::string(std::istreambuf_iterator<char>(input), {}), program);
  if (!page) {
    fmt::print(stderr, "make_page: {}: {}\n", template_path, page.error().message());
    return rtev::exit_failure;
  }
  std::ofstream output(output_path);
  output << *page;
  output.close();
  return input && output ? rtev::exit_ok : rtev::exit_failure;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return rtev::exit_usage;
  if (argv[1] == std::string_view("rtev-bpf")) return make_page(rtev::cli::CommandLine().app(), argv[2], argv[3]);
  rtev::load::LoadOptions options;
  CLI::App load("", "rtev-load");
  load.set_help_flag("-h,--help", "print this help");
  load.set_version_flag("--version", RTEV_VERSION, "print the version");
  add_load_options(load, options);
  add_ring_options(load, options);
  add_run_options(load, options);
  return make_page(load, argv[2], argv[3]);
}

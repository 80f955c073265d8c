// SPDX-License-Identifier: MIT
#include "live/harness.hpp"

#include <unistd.h>

#include <cstdlib>

namespace rtev::test {

std::string ocaml_program(const std::string& name) {
  const char* other = std::getenv("RTEV_OCAML_PROGRAMS");
  return std::string(other != nullptr ? other : RTEV_OCAML_PROGRAMS) + "/" + name;
}

std::string ocaml_compiler() {
  return RTEV_OCAMLOPT;
}

std::string live_obstacle() {
  if (::geteuid() != 0) return "live tests load eBPF programs, which only root may";
  if (!fs::exists("/sys/kernel/btf/vmlinux")) return "this kernel has no BTF";
  if (!fs::exists(ocaml_program("hello"))) return "no OCaml 5 was found when the tests were built (RTEV_OCAML_PREFIX)";
  if (!fs::exists(tool())) return "there is no " + tool();
  return {};
}

void LiveTest::SetUp() {
  const std::string obstacle = live_obstacle();
  if (obstacle.empty()) return;
  if (std::getenv("CI") != nullptr) FAIL() << obstacle;
  GTEST_SKIP() << obstacle;
}

Command LiveTest::program(const std::string& name, std::vector<std::string> arguments) const {
  Command command{.argv = std::move(arguments), .env = {{"OCAML_RUNTIME_EVENTS_DIR", dir.path()}}};
  command.argv.insert(command.argv.begin(), ocaml_program(name));
  return command;
}

Command LiveTest::with_events(const std::string& name, std::vector<std::string> arguments) const {
  Command command = program(name, std::move(arguments));
  command.env["OCAML_RUNTIME_EVENTS_START"] = "1";
  return command;
}

Command LiveTest::preserved(const std::string& name, std::vector<std::string> arguments) const {
  Command command = with_events(name, std::move(arguments));
  command.env["OCAML_RUNTIME_EVENTS_PRESERVE"] = "1";
  return command;
}

Command LiveTest::copied(Command command, const std::string& name) const {
  fs::copy_file(command.argv[0], dir / name, fs::copy_options::overwrite_existing);
  command.argv[0] = dir / name;
  return command;
}

pid_t LiveTest::run_to_end(const Command& command, int code) {
  Process process(command);
  const Outcome outcome = run_through(process);
  EXPECT_EQ(outcome.status.code(), code) << outcome.err;
  return process.pid();
}

void LiveTest::occupy_cpus() {
  for (long cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_ONLN); ++cpu)
    spinners_.emplace_back(Command{.argv = {"sh", "-c", "while :; do :; done"}});
}

}  // namespace rtev::test

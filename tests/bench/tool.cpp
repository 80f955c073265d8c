// SPDX-License-Identifier: MIT
#include "bench/tool.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "base/clock.hpp"

namespace rtev::bench {

std::uint64_t cpu_ns(pid_t pid) {
  std::uint64_t sum = 0;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream file(task.path() / "schedstat");
    std::uint64_t on_cpu = 0;
    if (file >> on_cpu) sum += on_cpu;
  }
  return sum;
}

std::uint64_t total_cpu_ns(pid_t pid) {
  clockid_t clock{};
  if (::clock_getcpuclockid(pid, &clock) != 0) throw std::runtime_error("the program ended too early");
  return clock_ns(clock);
}

Tool::Tool(const std::vector<std::string>& arguments, std::optional<int> cpu) {
  test::Command command{.argv = {RTEV_TOOL}, .cpu = cpu};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  test::start_ready(process_, std::move(command));
}

test::Outcome Tool::interrupt() {
  process_->signal(SIGINT);
  test::Outcome outcome = process_->wait();
  if (outcome.status.code() != 0) throw std::runtime_error("rtev-bpf failed: " + outcome.err);
  return outcome;
}

std::vector<std::string> to_nothing(std::vector<std::string> more) {
  more.insert(more.end(), {"--sched", "off", "-f", "jsonl", "--events", "process"});
  return more;
}

std::vector<std::string> with_pid(std::vector<std::string> arguments, pid_t pid) {
  arguments.insert(arguments.end(), {"-p", std::to_string(pid)});
  return arguments;
}

nlohmann::json summary_of(const std::string& lines) {
  const std::size_t end = lines.find_last_not_of('\n');
  if (end == std::string::npos) return nlohmann::json::object();
  const std::size_t begin = lines.rfind('\n', end) + 1;
  auto summary = nlohmann::json::parse(lines.substr(begin, end + 1 - begin), nullptr, false);
  return summary.is_object() ? summary : nlohmann::json::object();
}

ToolFigures figures_of(const std::string& lines, pid_t pid) {
  const nlohmann::json summary = summary_of(lines);
  for (const auto& process : summary.at("processes")) {
    const auto& words = process.at("words");
    if (process.at("pid") == pid)
      return {.events = process.at("events"), .lost_words = words.at("lost"), .written_words = words.at("written")};
  }
  throw std::runtime_error("rtev-bpf has no summary of process " + std::to_string(pid));
}

}  // namespace rtev::bench

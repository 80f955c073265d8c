// SPDX-License-Identifier: MIT
#include "bench/tool.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
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

std::uint64_t tree_cpu_ns(pid_t pid) {
  // Kernels without CONFIG_PROC_CHILDREN do not list children.
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (!std::isdigit(static_cast<unsigned char>(name[0]))) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    // "PID (COMM) STATE PPID ...": a COMM may contain anything.
    const std::size_t after = stat.rfind(')');
    if (after != std::string::npos) children.emplace(std::stoi(stat.substr(after + 4)), std::stoi(name));
  }
  std::uint64_t sum = 0;
  std::vector<pid_t> tree{pid};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    clockid_t clock{};
    if (::clock_getcpuclockid(tree[i], &clock) == 0) sum += clock_ns(clock);
    const auto [begin, end] = children.equal_range(tree[i]);
    for (auto child = begin; child != end; ++child) tree.push_back(child->second);
  }
  return sum;
}

Tool::Tool(const std::vector<std::string>& arguments, std::optional<int> cpu, bool terminal) {
  test::Command command{.argv = {RTEV_TOOL}, .cpu = cpu, .terminal = terminal};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  test::start_ready(process_, std::move(command));
}

test::Outcome Tool::interrupt() {
  process_->signal(SIGINT);
  test::Outcome outcome = process_->wait();
  if (outcome.status.code() != 0) throw std::runtime_error("rtev-bpf failed: " + outcome.err);
  return outcome;
}

std::vector<std::string> to_nothing(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"-f", "jsonl", "--events", "process"});
  return arguments;
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

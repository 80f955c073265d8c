// SPDX-License-Identifier: MIT
#include "live/process_checks.hpp"

#include <bpf/bpf.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <numeric>
#include <sstream>
#include <system_error>
#include <thread>

#include "base/unique_fd.hpp"
#include "live/oracle.hpp"

namespace rtev::test {
namespace {

int fd_by_id(const std::string& kind, std::uint32_t id) {
  if (kind == "prog") return ::bpf_prog_get_fd_by_id(id);
  if (kind == "map") return ::bpf_map_get_fd_by_id(id);
  if (kind == "link") return ::bpf_link_get_fd_by_id(id);
  return ::bpf_btf_get_fd_by_id(id);
}

}  // namespace

std::map<pid_t, Trace> by_process(const Trace& trace) {
  std::map<pid_t, Trace> processes;
  for (const Json& event : trace.events) {
    if (event.contains("pid")) processes[event["pid"]].events.push_back(event);
  }
  for (const Json& process : trace.summary["processes"])
    processes[process["pid"]].summary["processes"].push_back(process);
  return processes;
}

void stop(Process& process) {
  process.signal(SIGSTOP);
  siginfo_t stopped{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(process.pid()), &stopped, WSTOPPED), 0);
}

Command without_core(Command command) {
  const std::vector<std::string> shell{"sh", "-c", R"(ulimit -c 0; exec "$0" "$@")"};
  command.argv.insert(command.argv.begin(), shell.begin(), shell.end());
  return command;
}

std::vector<std::int64_t> steps(const Trace& trace, pid_t pid, const std::string& comm) {
  std::vector<std::int64_t> numbers;
  for (const Json& event : trace.of(pid, "user")) {
    if (event["name"] == "step" && (comm.empty() || event["comm"] == comm)) numbers.push_back(event["value"]);
  }
  return numbers;
}

std::vector<std::int64_t> count_to(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

BpfObjects bpf_objects_of(pid_t pid) {
  BpfObjects objects;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fdinfo")) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      for (const char* kind : {"prog", "map", "link", "btf"}) {
        const std::string label = std::string(kind) + "_id:";
        if (line.starts_with(label)) objects.emplace(kind, std::stoul(line.substr(label.size())));
      }
    }
  }
  return objects;
}

BpfObjects outliving(BpfObjects objects) {
  // The kernel frees them asynchronously, after one or two grace periods.
  const auto deadline = std::chrono::steady_clock::now() + wait_timeout;
  for (;;) {
    std::erase_if(objects, [](const auto& object) { return !UniqueFd(fd_by_id(object.first, object.second)); });
    if (objects.empty() || std::chrono::steady_clock::now() > deadline) return objects;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace rtev::test

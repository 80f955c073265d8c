// SPDX-License-Identifier: MIT
#include "live/place.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rtev::test {
namespace {

fs::path process_file(pid_t pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

/// Last number of NSpid: what getpid(2) returns in the process.
pid_t own_number(pid_t pid) {
  std::ifstream status(process_file(pid, "status"));
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("NSpid:")) continue;
    std::istringstream numbers(line.substr(line.find(':') + 1));
    pid_t last = 0;
    for (pid_t number = 0; numbers >> number;) last = number;
    return last;
  }
  throw std::runtime_error("no NSpid of " + std::to_string(pid));
}

/// Clock ticks between the start of the host and of the process.
std::uint64_t start_of(pid_t pid) {
  std::ifstream file(process_file(pid, "stat"));
  std::string stat(std::istreambuf_iterator<char>(file), {});
  // The name may contain anything, so parse after its closing parenthesis: field 3 comes next, the start time is field
  // 22.
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return std::stoull(field);
}

const char* const engine_script = R"(
mount -t tmpfs tmpfs "$ROOT/mnt"
mkdir "$ROOT/mnt/upper" "$ROOT/mnt/work" "$ROOT/mnt/all"
mount -t overlay -o "lowerdir=$ROOT/image,upperdir=$ROOT/mnt/upper,workdir=$ROOT/mnt/work" overlay "$ROOT/mnt/all"
mkdir "$ROOT/mnt/all/old"
cd "$ROOT/mnt/all"
pivot_root . old
exec "$@")";

}  // namespace

bool Place::has_pid_namespace() const {
  return std::ranges::find(unshare, "--pid") != unshare.end();
}

fs::path Place::path(const fs::path& root, const std::string& name) const {
  return (own_root ? fs::path("/") : root) / name;
}

Place engine_place() {
  return {.label = "Engine",
          .what = "overlayfs, pivot_root and namespaces as container engines make them",
          .unshare = {"--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"},
          .script = engine_script,
          .own_root = true};
}

pid_t innermost(pid_t command) {
  for (pid_t pid = command;; command = pid) {
    std::ifstream children(process_file(command, "task/" + std::to_string(command) + "/children"));
    if (!(children >> pid)) return command;
  }
}

void create_root(const fs::path& root) {
  for (const char* name : {"bin", "rings", "old", "mnt", "image/bin", "image/rings"})
    fs::create_directories(root / name);
  // Accessible to every user.
  for (const char* name : {"rings", "image/rings"}) fs::permissions(root / name, fs::perms(01777));
  for (const char* bin : {"bin", "image/bin"}) fs::copy_file(ocaml_program("contained"), root / bin / "contained");
}

Command in_place(const Place& place, const fs::path& root, Strings argv) {
  Command command{
      .argv = {}, .env = {{"ROOT", root}, {"OCAML_RUNTIME_EVENTS_DIR", place.path(root, "rings")}}, .user = place.user};
  if (!place.unshare.empty()) {
    // The program is a child of unshare: only children enter new pid and time namespaces.
    command.argv = {"unshare", "--fork", "--kill-child"};
    std::ranges::copy(place.unshare, std::back_inserter(command.argv));
  }
  std::ranges::copy(Strings{"sh", "-ec", place.script, "sh"}, std::back_inserter(command.argv));
  std::ranges::move(argv, std::back_inserter(command.argv));
  return command;
}

namespace {

Command contained(const Place& place, const fs::path& root, const std::string& count) {
  Command command = in_place(place, root, {place.path(root, "bin/contained"), count});
  command.env["OCAML_RUNTIME_EVENTS_START"] = "1";
  return command;
}

/// Pid of the program, once it is ready.
pid_t program_of(Process& process) {
  process.lines_until("ready");
  return innermost(process.pid());
}

}  // namespace

Contained::Contained(const Place& place, const fs::path& root, const std::string& count)
    : clock_offset_s_(place.clock_offset_s),
      process_(contained(place, root, count)),
      pid_(program_of(process_)),
      inner_pid_(own_number(pid_)),
      start_ticks_(start_of(pid_)),
      oracle_(process_file(pid_, "root").string() + place.path(root, "rings").string(), inner_pid_) {}

void Contained::run() {
  process_.go_until("both");
  for (const auto& task : fs::directory_iterator(process_file(pid_, "task")))
    threads_.insert(std::stoi(task.path().filename()));
  process_.close_stdin();
  const std::string line = process_.line_with("wrote ");
  const Outcome outcome = process_.wait();
  if (outcome.status.code() != 0) throw std::runtime_error("contained: " + outcome.err);
  user_events_ = std::stoul(line.substr(line.find(' ')));
}

void Contained::expect_in(const Trace& trace) {
  expect_process_info(trace);
  EXPECT_EQ(difference(on_host_clock(oracle_.take(), clock_offset_s_), records(trace.from_rings(pid_))), "");
  EXPECT_EQ(trace.of(pid_, "user").size(), user_events_);
  expect_all_delivered(trace, pid_);
  // Times from the kernel; those of the ring must agree.
  const std::uint64_t end = trace.action(pid_, "exit")["ts"];
  for (const Json& event : trace.from_rings(pid_)) ASSERT_LE(event["ts"], end);
  expect_turns(trace);
}

Records on_host_clock(const Records& records, std::int64_t clock_offset_s) {
  Records shifted;
  for (const auto& [domain, lines] : records) {
    for (const std::string& line : lines) {
      std::int64_t time = 0;
      const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), time);
      if (error != std::errc{}) throw std::runtime_error("cannot parse the time: " + line);
      shifted[domain].push_back(std::to_string(time - clock_offset_s * 1'000'000'000) + rest);
    }
  }
  return shifted;
}

void Contained::expect_process_info(const Trace& trace) const {
  const std::vector<Json> story = trace.of(pid_, "process");
  ASSERT_FALSE(story.empty());
  EXPECT_EQ(story.front()["comm"], "contained");
  EXPECT_EQ(story.front()["ns_pid"], inner_pid_);
  EXPECT_EQ(story.front()["start_ticks"], start_ticks_);
  EXPECT_THAT(story.front().value("exe", ""), ::testing::EndsWith("/bin/contained"));
  EXPECT_THAT(trace.action(pid_, "ring").value("path", ""),
              ::testing::EndsWith("/rings/" + std::to_string(inner_pid_) + ".events"));
  EXPECT_EQ(trace.action(pid_, "exit")["status"], Json({{"code", 0}}));
  // The stream waits for the inspection only a short time, and a busy machine inspects programs late.
  for (const Json& process : trace.summary["processes"]) {
    if (process["pid"] == pid_) {
      EXPECT_EQ(process["version"], "5.3");
    }
  }
}

void Contained::expect_turns(const Trace& trace) const {
  std::set<int> domains;
  std::size_t turns = 0;
  for (const Json& event : trace.of("switch")) {
    const Json& thread = event["prev"];
    if (thread["pid"] != pid_) continue;
    ++turns;
    EXPECT_TRUE(threads_.contains(thread["tid"])) << event;
    if (!thread.contains("domain")) continue;
    domains.insert(thread["domain"].get<int>());
    if (thread["tid"] == pid_) {
      EXPECT_EQ(thread["domain"], 0) << event;
    }
  }
  EXPECT_GT(turns, 0u);
  EXPECT_EQ(domains, (std::set{0, 1}));
}

}  // namespace rtev::test

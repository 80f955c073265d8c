// SPDX-License-Identifier: MIT
// Attacks by unprivileged users on what `rtev-bpf enable` has for all users: its journal, its time, its memory of
// programs that came to harm. Beside each, a program of another user has its events switched on.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "enable/child_places.hpp"
#include "enable/suspects.hpp"
#include "live/hostile_enable_fixture.hpp"
#include "live/memory_group.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

class HostileEnableSharesLive : public HostileEnableLive {
 protected:
  Process dozing(uid_t user) {
    const std::string number = std::to_string(user);
    Command command = copied(program("dozing", {"5"}), "dozing-" + number);
    command.user = user;
    command.env["OCAML_RUNTIME_EVENTS_DIR"] = make_directory("rings-" + number, user);
    return {command, "ready"};
  }
  /// An attack that is root's until it has made its file system.
  static Command silent_attack(const char* name, const fs::path& own) {
    Command command = attack(attack_program("rtev-attack-enabled"), name, own);
    command.user.reset();
    return command;
  }
};

std::vector<pid_t> pids_of(const std::deque<Process>& processes) {
  std::vector<pid_t> pids;
  std::ranges::transform(processes, std::back_inserter(pids), &Process::pid);
  return pids;
}

/// What `enable` prints of a program.
std::string switched_on(const Process& process) {
  return std::to_string(process.pid()) + " (dozing";
}
std::string left_alone(const Process& process) {
  return "cannot switch on the events of " + std::to_string(process.pid());
}

TEST_F(HostileEnableSharesLive, OthersDoNotLockTheJournal) {
  covers("enable", "while another user locks what he can of the journal");
  const fs::path own = make_directory("own", nobody);
  Process victim = dozing(0);
  EXPECT_EQ(run_tool({"enable", "--dry-run", "-p", std::to_string(victim.pid())}).status.code(), 0);
  // As an earlier version made them.
  for (const char* made : {"/run/rtev-bpf", "/run/rtev-bpf/hooks"}) fs::permissions(made, fs::perms(0755));
  Process attacker(attack(attack_program("rtev-attack"), "locked-journal", own), "ready");
  victim.go();
  const Outcome outcome = run(enabling({victim.pid()}));
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
}

TEST_F(HostileEnableSharesLive, AUserWithManyProgramsThatDieHasNoMoreSuspects) {
  covers("enable", "many programs of a user that die when they are switched on: a bounded number is remembered");
  const std::size_t count = enable::Suspects::max_of_user + 2;
  const fs::path own = make_directory("own", nobody);
  const auto start = [&](std::size_t number) {
    const fs::path copy = copy_as(attack_program("rtev-attack-enabled"), own / std::to_string(number), nobody, 0755);
    return attack(copy, "crashing-words", own);
  };
  std::deque<Process> attackers;
  for (std::size_t number = 0; number < count; ++number) attackers.emplace_back(start(number), "ready");
  run(enabling(pids_of(attackers)));
  EXPECT_LE(std::ranges::count_if(
                files_in(suspects_directory),
                [](const fs::path& entry) { return entry.native().ends_with("-" + std::to_string(nobody)); }),
            static_cast<std::ptrdiff_t>(enable::Suspects::max_of_user));
  Process another(start(count), "ready"), victim = dozing(victim_user);
  victim.go();
  const Outcome outcome = run(enabling({another.pid(), victim.pid()}));
  EXPECT_THAT(outcome.err, HasSubstr("processes of many programs of its user came to harm"));
  EXPECT_THAT(outcome.out, HasSubstr(switched_on(victim)));
}

class SilentEnableLive : public HostileEnableSharesLive {
 protected:
  void SetUp() override {
    HostileEnableSharesLive::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    need("/dev/fuse");
  }
  /// Starts programs whose rings are to be in a directory below `own` that does not answer.
  std::deque<Process> start_behind_locked_directory(const fs::path& own, int count) const {
    Command command = attack(attack_program("rtev-attack-enabled"), "watched-words", own);
    command.env["OCAML_RUNTIME_EVENTS_DIR"] = own / "rings";
    std::deque<Process> programs;
    for (int number = 0; number < count; ++number) programs.emplace_back(command, "ready");
    return programs;
  }
};

/// Whether it waits uninterruptibly.
bool is_hung(const std::string& pid) {
  std::ifstream stat("/proc/" + pid + "/stat");
  const std::string text(std::istreambuf_iterator<char>(stat), {});
  return text.contains(") D ");
}

/// Processes of the tool.
std::set<pid_t> hung_children_of(pid_t pid) {
  std::set<pid_t> hung;
  for (const pid_t child : family_of(pid))
    if (is_hung(std::to_string(child))) hung.insert(child);
  return hung;
}

/// The process that works on programs; 0 if there is none now.
pid_t worker_of(const Process& enable) {
  const auto supervisors = children_named(enable.pid(), "rtev-enabler");
  const auto workers = supervisors.empty() ? supervisors : children_named(supervisors.front(), "rtev-enabler");
  return workers.empty() ? 0 : workers.front();
}

TEST_F(SilentEnableLive, DirectoriesThatDoNotAnswerCostAUserOnly) {
  covers("enable", "directories of a user's rings that do not answer");
  constexpr int programs = 20;
  constexpr std::size_t most_left = 4;
  const fs::path own = make_directory("own", nobody);
  Process attacker(silent_attack("locked-directory", own), "ready");
  std::deque<Process> attackers = start_behind_locked_directory(own, programs);
  Process victim = dozing(0);
  std::vector<pid_t> pids = pids_of(attackers);
  pids.push_back(victim.pid());
  victim.go();
  Process enable(enabling(pids));
  enable.line_with(switched_on(victim));
  for (const Process& process : attackers) enable.error_with(left_alone(process));
  EXPECT_LE(hung_children_of(enable.pid()).size(), most_left);
}

TEST_F(SilentEnableLive, WhatHangsKeepsItsPlaceWhenTheWorkerIsReplaced) {
  covers("enable", "SIGKILL of the worker, twice, while directories of a user's rings do not answer");
  constexpr int programs = 4, kills = 2;
  const fs::path own = make_directory("own", nobody);
  Process attacker(silent_attack("locked-directory", own), "ready");
  std::deque<Process> attackers = start_behind_locked_directory(own, programs);
  Process victim = dozing(0);
  std::vector<pid_t> pids = pids_of(attackers);
  pids.push_back(victim.pid());
  victim.go();
  Process enable(enabling(pids));
  std::set<pid_t> hung;
  for (int killed = 0; killed < kills; ++killed) {
    std::set<pid_t> present;
    ASSERT_TRUE(poll_until([&] {
      present = hung_children_of(enable.pid());
      return !present.empty();
    }));
    hung.merge(present);
    const pid_t worker = worker_of(enable);
    ::kill(worker, SIGKILL);
    ASSERT_TRUE(poll_until([&] { return worker_of(enable) != worker; }));
  }
  enable.line_with(switched_on(victim));
  for (const Process& process : attackers) enable.error_with(left_alone(process));
  hung.merge(hung_children_of(enable.pid()));
  std::erase_if(hung, [](pid_t child) { return !is_hung(std::to_string(child)); });
  EXPECT_LE(hung.size(), enable::ChildPlaces::most_of_user);
}

TEST_F(SilentEnableLive, ALockOfAProcesssDirectoryKeepsNobodyWaiting) {
  covers("enable", "a program whose directory in /proc another user keeps locked: `ps`, `enable -n`, `enable`");
  const fs::path own = make_directory("own", nobody);
  Process victim = dozing(victim_user);
  std::ofstream(own / "plan") << "/proc/" << victim.pid() << "/task";
  Process attacker(silent_attack("locked-above", own), "ready");
  victim.go();
  EXPECT_THAT(run_tool({"ps"}).out, HasSubstr("dozing"));
  EXPECT_THAT(run_tool({"enable", "--dry-run", "-n", "dozing-*"}).out, HasSubstr(switched_on(victim)));
  const Outcome outcome = run(enabling({victim.pid()}));
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_TRUE(attacker.running()) << "one of them waited until the lock was gone";
}

TEST_F(SilentEnableLive, ALockOfAControlGroupKeepsNobodyWaiting) {
  covers("enable", "a program whose control group's directory another user keeps locked");
  const auto group = MemoryGroup::make();
  if (!group) GTEST_SKIP() << "there is no place for a control group";
  const fs::path own = make_directory("own", nobody);
  Process victim = dozing(victim_user);
  ASSERT_TRUE(group->add(victim.pid()));
  std::ofstream(own / "plan") << group->child().native();
  Process attacker(silent_attack("locked-above", own), "ready");
  victim.go();
  const Outcome outcome = run(enabling({victim.pid()}));
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_TRUE(attacker.running()) << "it waited until the lock was gone";
}

TEST_F(SilentEnableLive, ALockOfTheWorkersDirectoryIsBlamedOnNobody) {
  covers("enable", "a user who locks the directory in /proc of the process that looks into programs");
  const fs::path own = make_directory("own", nobody);
  Process attacker(silent_attack("locked-worker", own), "ready");
  Tracer tracer({"--enable", "-n", "dozing-*", "--events", "process"});
  const std::string worker = attacker.line_with("locked").substr(std::string("locked ").size());
  Process victim = dozing(victim_user);
  victim.go();
  EXPECT_THAT(tracer.process().line_with(R"("result":)"), HasSubstr(R"("result":"done")"));
  EXPECT_TRUE(poll_until([&worker] { return !is_hung(worker); }, std::chrono::seconds(5)));
  tracer.interrupt();
  EXPECT_TRUE(attacker.running()) << "it waited until the lock was gone";
}

/// A new directory in the file system of /run.
struct RunDirectory {
  const fs::path path = "/run/rtev-attack-" + std::to_string(::getpid());
  RunDirectory() { fs::create_directory(path); }
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;
  ~RunDirectory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

TEST_F(SilentEnableLive, OthersDoNotLockWhatIsNotedOfPrograms) {
  covers("enable", "while another user renames files from a directory that he has locked into those of root");
  Process before = dozing(victim_user), victim = dozing(0);
  before.go();
  EXPECT_EQ(run(enabling({before.pid()})).status.code(), 0) << "so that the directories are there";
  const RunDirectory own;
  Process attacker(silent_attack("locked-state", own.path), "ready");
  victim.go();
  const Outcome outcome = run(enabling({victim.pid()}));
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
}

TEST_F(SilentEnableLive, AWorkerThatHangsKeepsNoOtherRunWaiting) {
  covers("enable", "SIGKILL of the supervisor alone, while its worker waits for a program");
  Process attacker(silent_attack("locked-when-asked", make_directory("own", nobody)), "ready"), victim = dozing(0);
  Process enable(enabling({attacker.pid()}, "20s"));
  attacker.go_until("asked");
  ASSERT_TRUE(poll_until([&] { return !hung_children_of(enable.pid()).empty(); })) << "the worker does not hang";
  for (const pid_t supervisor : children_of(enable.pid())) ::kill(supervisor, SIGKILL);
  victim.go();
  const Outcome outcome = run(enabling({victim.pid()}));
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
}

/// Forks again and again, and measures how long that takes.
class Forks {
 public:
  Forks()
      : thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            began_ns_ = monotonic_ns();
            const pid_t child = ::fork();
            if (child == 0) ::_exit(0);
            longest_ns_ = longest_ns();
            began_ns_ = 0;
            ::waitpid(child, nullptr, 0);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));  // not to be a load
          }
        }) {}
  /// Also of one that has not ended.
  std::uint64_t longest_ns() const {
    const std::uint64_t began_ns = began_ns_;
    return began_ns == 0 ? longest_ns_.load() : std::max(longest_ns_.load(), monotonic_ns() - began_ns);
  }

 private:
  std::atomic<std::uint64_t> began_ns_ = 0, longest_ns_ = 0;
  std::jthread thread_;
};

TEST_F(SilentEnableLive, ProgramsThatDoNotAnswerAtTheEndKeepNobodyWaiting) {
  covers("enable", "`--enable`: programs that do not answer at the end");
  // A fork that waits for them ends only with them.
  constexpr std::uint64_t limit_ns = 10'000'000'000;
  Process others = dozing(victim_user);
  others.go();
  // Ends after the attackers: it may wait for them.
  Forks forks;
  Tracer tracer({"--enable", "-n", "rtev-attack*", "-n", "dozing-*", "--events", "process"});
  std::deque<Process> attackers;
  for (const char* own : {"first", "second"})
    attackers.emplace_back(silent_attack("silent-flags", make_directory(own, nobody)), "ready");
  for (std::size_t on = 0; on <= attackers.size(); ++on) tracer.process().line_with(R"("result":"done")");
  for (Process& attacker : attackers) attacker.go_until("silent");
  tracer.interrupt();
  EXPECT_LT(forks.longest_ns(), limit_ns);
  attackers.clear();  // `ps` would wait for them
  EXPECT_THAT(ps_line(others.pid()), AnyOf(HasSubstr(" none "), HasSubstr(" paused ")));
}

}  // namespace
}  // namespace rtev::test

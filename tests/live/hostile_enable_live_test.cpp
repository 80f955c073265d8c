// SPDX-License-Identifier: MIT
// Attacks on `rtev-bpf enable` by unprivileged users: on root's files, on others' programs, and through set-user-ID
// programs. RTEV_ATTACK_TRIES: how often each race is tried.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/parse.hpp"
#include "base/unique_fd.hpp"
#include "live/hostile_enable_fixture.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

/// More than a page, and than the header of a ring.
const std::string content(64 << 10, 'x');

int tries() {
  constexpr int in_ci = 10;
  const char* const text = std::getenv("RTEV_ATTACK_TRIES");
  return text == nullptr ? in_ci : parse_number<int>(text).value_or(in_ci);
}

/// Programs that are switched on by one run.
constexpr int at_once = 10;

/// Not read where a ring was written over it: that is of 64 MB.
bool is_unchanged(const fs::path& file, std::size_t bytes = content.size()) {
  return fs::file_size(file) == bytes && read_file(file) == content.substr(0, bytes);
}

fs::path make_file(const fs::path& path, uid_t owner, mode_t mode) {
  std::ofstream(path) << content;
  EXPECT_EQ(::chown(path.c_str(), owner, owner), 0);
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  return path;
}

/// One who shows mappings of removed rings to `enable`, and others in their place when it opens them.
class RingSwapper {
 public:
  RingSwapper(const fs::path& own, const fs::path& targets, Command command)
      : own_(own), roots_(targets / "root"), others_(targets / "other"), process_(command, "ready") {
    gone_ = UniqueFd(::open((targets / "gone").c_str(), O_RDONLY | O_CLOEXEC));
    fs::remove(targets / "gone");
  }
  pid_t pid() const { return process_.pid(); }
  /// Ends it. True if its events were switched on, and it attacked then.
  bool has_attacked() {
    const auto lines = process_.go_until("done");
    return std::ranges::find(lines, "attacked") != lines.end();
  }
  /// Of what it showed in place of the ring: a file of root, one of another user, and one of those that was removed.
  bool has_changed_others() const {
    std::string left(content.size(), '\0');
    const bool is_whole = ::pread(gone_.get(), left.data(), left.size(), 0) == static_cast<ssize_t>(left.size());
    return !is_unchanged(roots_) || !is_unchanged(others_) || !is_whole || left != content;
  }
  /// Of its own files that look like removed rings, and have a name.
  bool has_changed_own() const {
    constexpr std::size_t page = 4096;
    return !is_unchanged(own_ / "with-link", page) ||
           !is_unchanged(own_ / (std::to_string(pid()) + ".events (deleted)"), page);
  }

 private:
  fs::path own_, roots_, others_;
  Process process_;
  UniqueFd gone_;  ///< a file that the attacker has opened before it was removed
};

TEST_F(HostileEnableLive, OnlyRemovedRingsAreFreed) {
  int attacked = 0, others = 0, own = 0;
  for (int tried = 0; tried < tries();) {
    std::deque<RingSwapper> attackers;
    std::vector<pid_t> pids;
    for (int number = 0; number < at_once && tried < tries(); ++number, ++tried) {
      const fs::path place = "try-" + std::to_string(tried);
      const fs::path targets = make_directory(place / "targets", 0, 0755),
                     files = make_directory(place / "own", nobody);
      make_file(targets / "root", 0, 0644);
      make_file(targets / "other", victim_user, 0644);
      make_file(targets / "gone", victim_user, 0644);
      attackers.emplace_back(files, targets, attack(attack_program("rtev-attack-enabled"), "swapped-rings", files));
      pids.push_back(attackers.back().pid());
    }
    run(enabling(pids));
    for (RingSwapper& attacker : attackers) {
      attacked += attacker.has_attacked();
      others += attacker.has_changed_others();
      own += attacker.has_changed_own();
    }
  }
  EXPECT_EQ(others, 0) << "of " << attacked << " attacks";
  EXPECT_EQ(own, 0) << "of " << attacked << " attacks";
  EXPECT_GT(attacked, 0) << "nobody's events were switched on";
}

struct SharedPlace {
  const char* label;
  const char* way;  ///< how its attacker acts: see rtev-attack
  mode_t mode;
  enum class Owner : std::uint8_t { root, attacker, victim, victim_in_attackers } owner;
};

std::ostream& operator<<(std::ostream& out, const SharedPlace& place) {
  return out << place.label;
}

class PlantedInLive : public HostileEnableLive, public ::testing::WithParamInterface<SharedPlace> {
 protected:
  /// A program of this user that makes its ring in a place which others may write to.
  Command victim(const std::string& name, uid_t user) {
    using enum SharedPlace::Owner;
    const SharedPlace& place = GetParam();
    fs::path rings = fs::path("rings") / name;
    if (place.owner == victim_in_attackers) rings = make_directory(rings, nobody) / "rings";
    rings = make_directory(rings, place.owner == root ? 0 : place.owner == attacker ? nobody : user, place.mode);
    if ((place.mode & S_ISVTX) == 0 && place.owner == SharedPlace::Owner::victim) {
      EXPECT_EQ(::chown(rings.c_str(), user, nobody), 0);
    }
    // Each has a binary of its own: what one comes to does not save the others.
    Command command = copied(program("dozing", {"5"}), "program-" + name);
    command.env = {{"OCAML_RUNTIME_EVENTS_DIR", rings}, {"OCAMLRUNPARAM", "s=512"}};
    command.user = user;
    return command;
  }
};

TEST_P(PlantedInLive, NoProgramDiesAndNoFileIsWritten) {
  const fs::path own = make_directory("own", nobody), targets = make_directory("targets", 0, 0755);
  // All kinds of files are put there by a signal, since their number is odd.
  constexpr std::array ways{"signal", "creation", "signal", "flicker"};
  int died = 0, written = 0, victims_count = 0;
  for (int tried = 0; tried < tries();) {
    std::deque<Process> victims;
    std::vector<pid_t> pids;
    std::vector<fs::path> files;
    std::ofstream plan(own / "plan");
    for (int number = 0; number < at_once && tried < tries(); ++number, ++tried) {
      const uid_t user = tried / 2 % 2 == 0 ? 0 : victim_user;
      const Command command = victim(std::to_string(tried), user);
      victims.emplace_back(command, "ready");
      const pid_t pid = victims.back().pid();
      pids.push_back(pid);
      files.push_back(make_file(targets / std::to_string(pid), user, 0600));
      plan << pid << ' ' << command.env.at("OCAML_RUNTIME_EVENTS_DIR") << ' ' << GetParam().way
           << ways.at(static_cast<std::size_t>(tried) % ways.size()) << '\n';
    }
    plan.close();
    Process attacker({.argv = {attack_program("rtev-attack"), "planted-rings", own}, .user = nobody}, "ready");
    for (Process& victim : victims) victim.go();
    run(enabling(pids, "3s"));
    for (const std::string& line : attacker.go_until("done")) written += line.starts_with("wrote");
    for (const fs::path& file : files) written += !is_unchanged(file);
    for (Process& victim : victims) died += !victim.running();
    victims_count += static_cast<int>(victims.size());
  }
  EXPECT_EQ(died, 0) << "of " << victims_count << " programs";
  EXPECT_EQ(written, 0) << "of " << victims_count << " files";
}

INSTANTIATE_TEST_SUITE_P(Places, PlantedInLive,
                         ::testing::Values(SharedPlace{"Sticky", "", 01777, SharedPlace::Owner::root},
                                           SharedPlace{"Attackers", "", 0777, SharedPlace::Owner::attacker},
                                           SharedPlace{"Group", "", 0775, SharedPlace::Owner::victim},
                                           SharedPlace{"InAttackers", "parent-", 0755,
                                                       SharedPlace::Owner::victim_in_attackers}),
                         by_label);

/// A ring with a relative path would be made where the program works at that moment.
TEST_F(HostileEnableLive, AProgramThatWorksInAnothersDirectoryFollowsNoLinks) {
  covers("enable", "root's program that works and forks in the directory of a user, who has put links there");
  constexpr int pids = 4000;  // of it and its children
  const fs::path home = make_directory("home", 0), others = make_directory("others", nobody),
                 secret = make_file(dir / "secret", 0, 0600);
  Command command = program("wandering", {others});
  command.env = {{"HOME", home}, {"PWD", ""}};
  command.directory = make_directory("own", 0);
  Process process(command, "ready");
  for (pid_t pid = process.pid(); pid < process.pid() + pids; ++pid) {
    const fs::path link = others / (std::to_string(pid) + ".events");
    fs::create_symlink(secret, link);
    ASSERT_EQ(::lchown(link.c_str(), nobody, nobody), 0);
  }
  Process enable(enabling({process.pid()}));
  process.go();
  EXPECT_THAT(enable.line_with(std::to_string(process.pid())), HasSubstr(home.native()));
  const Outcome outcome = run_through(process);
  EXPECT_EQ(outcome.status.code(), 0) << outcome.err;
  EXPECT_TRUE(is_unchanged(secret));
}

class ForgedEntryLive : public HostileEnableLive, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    HostileEnableLive::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    need("/dev/fuse");
    if (GetParam()) need("/usr/bin/fusermount3");
    if (IsSkipped() || HasFatalFailure()) return;
    copy_as(attack_program("rtev-attack"), dir / "guarded", 0, 04755);
  }
};

/// The hook of a program that executed a set-user-ID program meanwhile is not put back there.
TEST_P(ForgedEntryLive, ASetUserIdProgramIsNotWrittenTo) {
  const bool by_helper = GetParam();
  const fs::path own = make_directory("own", nobody);
  Command command =
      attack(attack_program("rtev-attack-enabled"), by_helper ? "forged-entry-by-helper" : "forged-entry", own);
  command.user.reset();  // it prepares the mount, then it is the same user
  Process attacker(command, "ready");
  Process enable(enabling({attacker.pid()}, "10s"));
  attacker.line_with("guarded");
  enable.wait();
  run(enabling({attacker.pid()}, "100ms"));  // puts back what was left
  EXPECT_THAT(attacker.go_until("done"), Not(Contains("changed")));
}

INSTANTIATE_TEST_SUITE_P(Mounts, ForgedEntryLive, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "ByFusermount" : "ByRoot"; });

TEST_F(HostileEnableLive, ASetUserIdProgramIsNotWrittenToAfterAKill) {
  copy_as(attack_program("rtev-attack"), dir / "guarded", 0, 04755);
  const fs::path own = make_directory("own", nobody);
  Process attacker(attack(attack_program("rtev-attack-enabled"), "killed-entry", own), "ready");
  Process enable(enabling({attacker.pid()}, "10s"));
  attacker.lines_until("replaced");
  // Stopped first: one of them would put the hook back when another one ends.
  std::vector<pid_t> all{enable.pid()};
  for (std::size_t next = 0; next < all.size(); ++next)
    std::ranges::copy(children_of(all[next]), std::back_inserter(all));
  for (const int signal : {SIGSTOP, SIGKILL})
    for (const pid_t pid : all) ::kill(pid, signal);
  enable.wait();
  attacker.go();
  attacker.lines_until("guarded");
  run(enabling({attacker.pid()}, "100ms"));
  EXPECT_THAT(attacker.go_until("done"), Not(Contains("changed")));
}

TEST_F(HostileEnableLive, AUserWhoKillsHisProgramBarsItForHimselfOnly) {
  const Command doze = copied(program("dozing", {"5"}), "shared");
  const auto start = [&](uid_t user) {
    Command command = doze;
    command.user = user;
    command.env["OCAML_RUNTIME_EVENTS_DIR"] = make_directory(std::to_string(user), user);
    return command;
  };
  Process killed(start(nobody), "ready"), own(start(nobody), "ready"), others(start(victim_user), "ready");
  for (Process* process : {&killed, &own, &others}) process->go();
  Process enable(enabling({killed.pid()}));
  enable.line_with("events on after");
  killed.signal(SIGSEGV);
  EXPECT_THAT(enable.wait().err, HasSubstr("died by signal"));
  const Outcome of_others = run(enabling({others.pid()}));
  EXPECT_EQ(of_others.status.code(), 0) << of_others.err;
  EXPECT_THAT(run(enabling({own.pid()})).err, HasSubstr("came to harm"));
}

TEST_F(HostileEnableLive, WhatIsNotedOfAProgramIsRootsAndGoesWithIt) {
  constexpr int programs = 50, most_left = 3;
  constexpr std::chrono::seconds most_time{3};
  const Command doze = copied(program("dozing", {"5"}), "short");
  Tracer tracer({"--enable", "-n", "short", "--sched", "off", "--events", "process"});
  std::vector<pid_t> pids;
  const auto entries = [&] {
    std::vector<fs::path> found;
    for (const fs::path& entry : files_in("/run/rtev-bpf/enabled")) {
      const auto pid = parse_leading_number<pid_t>(entry.filename().native());
      if (pid && std::ranges::find(pids, *pid) != pids.end()) found.push_back(entry);
    }
    return found;
  };
  std::set<fs::path> seen;
  for (int started = 0; started < programs; started += at_once) {
    std::deque<Process> running;
    std::set<fs::path> now;
    for (int number = 0; number < at_once; ++number) {
      running.emplace_back(doze, "ready");
      running.back().go();
      pids.push_back(running.back().pid());
    }
    poll_until(
        [&] {
          std::ranges::for_each(entries(), [&](const fs::path& entry) {
            struct stat file{};
            if (seen.contains(entry) || ::stat(entry.c_str(), &file) != 0) return;
            EXPECT_EQ(file.st_mode & 07777, 0600u) << entry;
            now.insert(entry);
            seen.insert(entry);
          });
          return now.size() > at_once / 2;
        },
        most_time);
  }
  EXPECT_GT(seen.size(), programs / 4u);
  EXPECT_TRUE(poll_until([&] { return entries().size() <= most_left; }));
  tracer.stop();
}

/// A program that only looks like one that events can be switched on in, and what is said of it.
struct Refused {
  const char* label;
  const char* program;
  const char* attack;
  const char* why;
  uid_t owner = 0;
  mode_t mode = 0755;
  bool has_capabilities = false;
  uid_t user = nobody;
  uid_t effective = nobody;  ///< whose rights it has, and whose directory its ring would be in
};

std::ostream& operator<<(std::ostream& out, const Refused& refused) {
  return out << refused.label;
}

class RefusedEnableLive : public HostileEnableLive, public ::testing::WithParamInterface<Refused> {};

/// As setcap(8) writes it: CAP_NET_RAW, effective.
void give_capabilities(const fs::path& file) {
  const std::array<std::uint32_t, 5> data{VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE, 1u << CAP_NET_RAW, 0, 0, 0};
  ASSERT_EQ(::setxattr(file.c_str(), "security.capability", data.data(), sizeof data, 0), 0);
}

TEST_P(RefusedEnableLive, IsNamedAndNotWrittenTo) {
  const Refused& refused = GetParam();
  const fs::path own = make_directory("own", refused.effective);
  const fs::path copy = copy_as(attack_program(refused.program), dir / "program", refused.owner, refused.mode);
  if (refused.has_capabilities) give_capabilities(copy);
  Command command = attack(copy, refused.attack, own);
  command.user = refused.user;
  Process process(command, "ready");
  const Outcome outcome = run(enabling({process.pid()}, "500ms"));
  EXPECT_EQ(outcome.status.code(), 1);
  EXPECT_THAT(outcome.err, HasSubstr(refused.why));
  EXPECT_THAT(process.go_until("done"), Not(Contains("touched")));
}

INSTANTIATE_TEST_SUITE_P(Programs, RefusedEnableLive,
                         ::testing::Values(Refused{"OxCamlByItsText", "rtev-attack-oxcaml", "watched-words",
                                                   "OxCaml 5.2.0+ox: not supported by enable"},
                                           Refused{"OxCamlByItsFunctions", "rtev-attack-oxcaml-functions",
                                                   "watched-words", "OxCaml 5.2.0+ox: not supported by enable"},
                                           Refused{"NoVersion", "rtev-attack-versionless", "watched-words", "version"},
                                           Refused{.label = "SetUserId",
                                                   .program = "rtev-attack-enabled",
                                                   .attack = "watched-words",
                                                   .why = "set-user-ID",
                                                   .owner = victim_user,
                                                   .mode = 04755,
                                                   .effective = victim_user},
                                           Refused{.label = "SetGroupId",
                                                   .program = "rtev-attack-enabled",
                                                   .attack = "watched-words",
                                                   .why = "set-user-ID",
                                                   .owner = victim_user,
                                                   .mode = 02755},
                                           Refused{.label = "Capabilities",
                                                   .program = "rtev-attack-enabled",
                                                   .attack = "watched-words",
                                                   .why = "capabilities",
                                                   .has_capabilities = true},
                                           Refused{.label = "AmbientCapabilities",
                                                   .program = "rtev-attack-enabled",
                                                   .attack = "ambient-words",
                                                   .why = "capabilities that its user has not",
                                                   .user = 0},
                                           Refused{"NotDumpable", "rtev-attack-enabled", "hidden-words", "dumpable"},
                                           Refused{.label = "TwoUsers",
                                                   .program = "rtev-attack-enabled",
                                                   .attack = "two-users-words",
                                                   .why = "user",
                                                   .user = 0,
                                                   .effective = victim_user}),
                         by_label);

}  // namespace
}  // namespace rtev::test

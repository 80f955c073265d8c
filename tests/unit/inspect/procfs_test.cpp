// SPDX-License-Identifier: MIT
#include "inspect/procfs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace rtev {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc.
std::vector<Mapping> mappings(const Procfs& procfs, std::int32_t pid) {
  std::vector<Mapping> found;
  procfs.visit_mappings(pid, [&](Mapping mapping) {
    found.push_back(std::move(mapping));
    return true;
  });
  return found;
}

class ProcfsTest : public testing::Test {
 protected:
  ProcfsTest() {
    std::string name = (fs::temp_directory_path() / "rtev-procfs-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    procfs_ = Procfs{root_};
  }
  ~ProcfsTest() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  void write(const std::string& name, std::string_view text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream{root_ / name, std::ios::binary} << text;
  }
  void link(const std::string& name, const std::string& target) {
    fs::create_directories((root_ / name).parent_path());
    fs::create_symlink(target, root_ / name);
  }

  fs::path root_;
  Procfs procfs_;
};

constexpr std::string_view after_comm =
    " S 41 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 10 11 18446744073709551615 1 1\n";

TEST_F(ProcfsTest, ListsProcessesOnly) {
  for (const char* name : {"1", "42", "4194304", "self", "sys", "12x", "-5", "0", "99999999999", "+7", "007a"})
    fs::create_directories(root_ / name);
  EXPECT_THAT(procfs_.pids(), testing::UnorderedElementsAre(1, 42, 4194304));
  EXPECT_TRUE(Procfs{root_ / "nowhere"}.pids().empty());
}

TEST_F(ProcfsTest, AUserThatCannotBeReadIsNotRoot) {
  EXPECT_NE(procfs_.user(1), 0u);
  fs::create_directories(root_ / "1");
  std::ofstream(root_ / "1" / "status") << "Uid:\t0\t0\t0\t0\n";
  EXPECT_EQ(procfs_.user(1), 0u);
}

TEST_F(ProcfsTest, PidsThatWereGivenOutLater) {
  fs::create_directories(root_ / "sys/kernel");
  std::ofstream(root_ / "sys/kernel/pid_max") << "100\n";
  EXPECT_EQ(procfs_.last_pid(), 0);
  EXPECT_THAT(procfs_.pids_after(0), ::testing::IsEmpty());
  std::ofstream(root_ / "loadavg") << "0.10 0.20 0.30 1/200 2\n";
  EXPECT_EQ(procfs_.last_pid(), 2);
  EXPECT_THAT(procfs_.pids_after(2), ::testing::IsEmpty());
  EXPECT_THAT(procfs_.pids_after(97), ::testing::ElementsAre(98, 99, 1, 2)) << "they begin anew at the largest one";
}

TEST_F(ProcfsTest, EnvironmentsOfAUser) {
  write("7/environ", std::string_view("A=1\0DIR=/tmp/x\0B=2\0", 19));
  write("8/environ", std::string_view("DIR=/tmp/xy\0XDIR=/tmp/z\0LAST=1", 31));
  const uid_t us = ::geteuid();
  using testing::ElementsAre;
  using testing::IsEmpty;
  EXPECT_THAT(procfs_.started_with("DIR=/tmp/x", us), ElementsAre(7));
  EXPECT_THAT(procfs_.started_with("DIR=/tmp/xy", us), ElementsAre(8));
  EXPECT_THAT(procfs_.started_with("LAST=1", us), ElementsAre(8));
  EXPECT_THAT(procfs_.started_with("DIR=/tmp/z", us), IsEmpty()) << "a whole variable";
  EXPECT_THAT(procfs_.started_with("DIR=/tmp", us), IsEmpty());
  EXPECT_THAT(procfs_.started_with("DIR=/tmp/x", us + 1), IsEmpty()) << "another user's";
}

TEST_F(ProcfsTest, EnvironmentOfAProcessInTheMiddleOfItsExecIsWaitedFor) {
  write("7/environ", "");
  write("7/stat", "7 (server)" + std::string{after_comm});
  write("8/environ", "");  // a zombie's
  // Whichever comes first.
  std::thread exec([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    write("7/environ", std::string_view("DIR=/tmp/x\0", 11));
  });
  const auto found = procfs_.started_with("DIR=/tmp/x", ::geteuid());
  exec.join();
  EXPECT_THAT(found, testing::ElementsAre(7));
}

TEST_F(ProcfsTest, EnvironmentOfAProcessThatDoesNotGetOnWithItsExecMayBeAny) {
  write("7/environ", "");
  write("7/stat", "7 (server)" + std::string{after_comm});
  EXPECT_THAT(procfs_.started_with("DIR=/tmp/x", ::geteuid()), testing::ElementsAre(7));
}

TEST_F(ProcfsTest, EnvironmentMayBeEmpty) {
  write("7/environ", "");
  std::string stat = "7 (server) S 41 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 10 11 12 4096 1";
  for (int field = 28; field <= 49; ++field) stat += " 0";
  write("7/stat", stat + " 140723412340 140723412340 0\n");
  EXPECT_EQ(procfs_.stat(7).value().environment_end, 140723412340u);
  EXPECT_THAT(procfs_.started_with("DIR=/tmp/x", ::geteuid()), testing::IsEmpty());
}

TEST_F(ProcfsTest, Stat) {
  write("42/stat", "42 (server)" + std::string{after_comm});
  const auto stat = procfs_.stat(42);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->comm, "server");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->start_ticks, 987654321u);
  EXPECT_EQ(stat->start_code, 0u) << "1 is what the kernel shows if it is a secret";
  write("42/stat", "42 (server) S 41 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 10 11 12 4096 1\n");
  EXPECT_EQ(procfs_.stat(42).value().start_code, 4096u);
}

TEST_F(ProcfsTest, StatOfHostileNames) {
  for (const std::string comm :
       {"", " ", ")", "(", ") (", "a) R 1 2 3 (b", ") S 1 1 1", "new\nline", "\xff\x01\x1b[31m", "(((((", ")))))"}) {
    write("42/stat", "42 (" + comm + ")" + std::string{after_comm});
    const auto stat = procfs_.stat(42);
    ASSERT_TRUE(stat) << comm;
    EXPECT_EQ(stat->comm, comm);
    EXPECT_EQ(stat->start_ticks, 987654321u) << comm;
  }
}

TEST_F(ProcfsTest, StatThatIsNotWhole) {
  EXPECT_FALSE(procfs_.stat(42));
  const std::string whole = "42 (server)" + std::string{after_comm};
  // Until something follows the start time it may be cut off, and would be another process's.
  const std::size_t start_end = whole.find("987654321") + 9;
  for (std::size_t size = 0; size <= start_end; ++size) {
    write("42/stat", whole.substr(0, size));
    EXPECT_FALSE(procfs_.stat(42)) << size;
  }
  write("42/stat", whole.substr(0, start_end + 1));
  EXPECT_TRUE(procfs_.stat(42));
  write("42/stat", "42 (server) S x 42 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654321 10\n");
  EXPECT_FALSE(procfs_.stat(42));
  write("42/stat", "42 )server( S 1\n");
  EXPECT_FALSE(procfs_.stat(42));
}

/// "TID (COMM) …" of a thread in a group of `threads`, as after its end or not.
std::string thread_stat(int tid, bool ending, int threads) {
  return std::to_string(tid) + " (server) " + (ending ? "Z 41 42 42 0 -1 4228108" : "S 41 42 42 0 -1 4194560") +
         " 1 2 3 4 5 6 7 8 20 0 " + std::to_string(threads) + " 0 987654321 10 11 12 1 1\n";
}

TEST_F(ProcfsTest, StatTellsOfTheEndAndOfThreads) {
  write("42/stat", thread_stat(42, false, 7));
  EXPECT_FALSE(procfs_.stat(42).value().ending);
  EXPECT_EQ(procfs_.stat(42).value().threads, 7u);
  write("42/stat", thread_stat(42, true, 1));
  EXPECT_TRUE(procfs_.stat(42).value().ending);
  EXPECT_EQ(procfs_.stat(42).value().threads, 1u);
  EXPECT_FALSE(procfs_.stat(42).value().kernel_thread);
  write("2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0 0 0 0\n");
  EXPECT_TRUE(procfs_.stat(2).value().kernel_thread);
}

TEST_F(ProcfsTest, SurvivorsOfTheMainThread) {
  const auto survivors = [&](bool main_ended, int threads) {
    write("42/stat", thread_stat(42, main_ended, threads));
    write("42/task/42/stat", thread_stat(42, main_ended, threads));
    return procfs_.living_threads(42);
  };
  EXPECT_TRUE(procfs_.living_threads(42).empty()) << "no such process";
  EXPECT_TRUE(survivors(true, 2).empty()) << "its threads are gone meanwhile";
  write("42/task/43/stat", thread_stat(43, true, 3));
  EXPECT_TRUE(survivors(true, 3).empty()) << "all are about to end";
  write("42/task/44/stat", thread_stat(44, false, 3));
  write("42/task/x/stat", thread_stat(45, false, 3));
  fs::create_directories(root_ / "42/task/46");
  EXPECT_THAT(survivors(true, 3), testing::ElementsAre(44));
  EXPECT_TRUE(survivors(false, 3).empty()) << "the main thread lives";
  EXPECT_TRUE(survivors(true, 1).empty()) << "a zombie like any other";
  for (int tid = 100; tid < 400; ++tid) write("42/task/" + std::to_string(tid) + "/stat", thread_stat(tid, false, 303));
  EXPECT_EQ(survivors(true, 303).size(), 4u);
}

TEST_F(ProcfsTest, WithoutItsMainThreadAProcessIsReadThroughAnother) {
  // As the kernel shows it: the directory of the process tells nothing, that of a thread that lives everything.
  write("42/stat", thread_stat(42, true, 3));
  write("42/status", "NSpid:\t42\t1\n");
  write("42/maps", "");
  write("42/environ", "");
  write("42/timens_offsets", "");
  write("42/task/43/stat", thread_stat(43, true, 3));
  write("42/task/44/stat", thread_stat(44, false, 3));
  write("44/status", "NSpid:\t44\t3\nVmHWM:\t7 kB\n");
  write("44/maps", "1000-2000 rw-s 00000000 00:2b 77 /run/42.events\n");
  write("44/environ", std::string_view("A=1\0", 4));
  write("44/timens_offsets", "monotonic 1 0\n");
  write("44/mem", "12345678");
  write("ring", "ring");
  link("44/map_files/1000-2000", (root_ / "ring").string());
  link("44/exe", (root_ / "ring").string());

  ASSERT_EQ(mappings(procfs_, 42).size(), 1u);
  EXPECT_TRUE(procfs_.open_mapping(42, mappings(procfs_, 42).front()));
  EXPECT_TRUE(procfs_.open_exe(42));
  EXPECT_EQ(procfs_.exe_path(42), (root_ / "ring").string());
  EXPECT_EQ(procfs_.read_word(42, 0), 0x3837363534333231u);
  EXPECT_EQ(procfs_.max_rss_bytes(42), 7u * 1024);
  EXPECT_EQ(procfs_.clock_offset_ns(42), -1'000'000'000);
  EXPECT_THAT(procfs_.started_with("A=1", ::geteuid()), testing::ElementsAre(42, 44));
  EXPECT_EQ(procfs_.ns_pid(42), 1) << "its own";

  write("42/stat", thread_stat(42, false, 3));
  EXPECT_TRUE(mappings(procfs_, 42).empty()) << "what lives tells itself";
}

TEST_F(ProcfsTest, UsersThatAProcessMayBe) {
  EXPECT_FALSE(procfs_.may_be_user(42, 0)) << "no such process";
  write("42/status", "Name:\tUid: 7\nUid:\t1000\t1001\t1002\t1001\nGid:\t5\t5\t5\t5\n");
  write("42/uid_map", "         0          0 4294967295\n");
  for (const uid_t user : {1000, 1001, 1002}) EXPECT_TRUE(procfs_.may_be_user(42, user)) << user;
  for (const uid_t user : {0, 5, 7, 999, 1003}) EXPECT_FALSE(procfs_.may_be_user(42, user)) << user;
  write("42/uid_map", "         0       1000          1\n         1     100000      65536\n");
  for (const uid_t user : {1000, 100000, 165535}) EXPECT_TRUE(procfs_.may_be_user(42, user)) << user;
  for (const uid_t user : {0, 99999, 165536}) EXPECT_FALSE(procfs_.may_be_user(42, user)) << user;
  write("42/uid_map", "0 1\nx y z\n\n");
  EXPECT_FALSE(procfs_.may_be_user(42, 1)) << "no map";
}

TEST_F(ProcfsTest, NamespacePid) {
  EXPECT_EQ(procfs_.ns_pid(42), 42) << "no such process";
  const auto ns_pid = [&](const std::string& status) {
    write("42/status", status);
    return procfs_.ns_pid(42);
  };
  EXPECT_EQ(ns_pid("Name:\tx\nPid:\t42\nNSpid:\t42\nNSpgid:\t9\n"), 42);
  EXPECT_EQ(ns_pid("Name:\tx\nNSpid:\t42\t7\t1\nNSpgid:\t9\t9\t9\n"), 1);
  EXPECT_EQ(ns_pid("Name:\tNSpid: 5\\nNSpid: 6\nNSpid:\t42\t7\n"), 7) << "the name forges nothing";
  EXPECT_EQ(ns_pid("Name:\tx\nGroups:\t" + std::string(100'000, '1') + "\nNSpid:\t42\t3\n"), 3);
  EXPECT_EQ(ns_pid("Name:\tx\n"), 42) << "a kernel without pid namespaces";
  EXPECT_EQ(ns_pid("NSpid:\n"), 42);
  EXPECT_EQ(ns_pid("NSpid:\t42\t-3\n"), 42);
  EXPECT_EQ(ns_pid("NSpid:\t42\t99999999999\n"), 42);
}

TEST_F(ProcfsTest, ExePath) {
  EXPECT_EQ(procfs_.exe_path(42), "");
  link("42/exe", "/usr/bin/a b");
  link("43/exe", "/usr/bin/gone (deleted)");
  EXPECT_EQ(procfs_.exe_path(42), "/usr/bin/a b");
  EXPECT_EQ(procfs_.exe_path(43), "/usr/bin/gone");
}

TEST_F(ProcfsTest, OpensTheProgramItself) {
  write("program",
        "\x7f"
        "ELF...");
  link("42/exe", (root_ / "program").string());
  const auto fd = procfs_.open_exe(42);
  ASSERT_TRUE(fd) << fd.error().why;
  char bytes[4] = {};
  EXPECT_EQ(::pread(fd->get(), bytes, sizeof bytes, 0), 4);
  EXPECT_EQ((std::string_view{bytes, sizeof bytes}),
            "\x7f"
            "ELF");

  const auto gone = procfs_.open_exe(43);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ENOENT);
}

TEST_F(ProcfsTest, OpensTheFileBehindAMapping) {
  write("ring", "ring");
  link("42/map_files/7f0012345000-7f0012346000", (root_ / "ring").string());
  link("42/map_files/1000-2000", (root_ / "ring").string());
  EXPECT_TRUE(procfs_.open_mapping(42, {.begin = 0x7f0012345000, .end = 0x7f0012346000}));
  EXPECT_TRUE(procfs_.open_mapping(42, {.begin = 0x1000, .end = 0x2000})) << "no leading zeros";
  const auto missing = procfs_.open_mapping(42, {.begin = 0x1000, .end = 0x3000});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ENOENT);
  EXPECT_EQ(missing.error().subject, (root_ / "42/map_files/1000-3000").string());
}

TEST_F(ProcfsTest, OpensRegularFilesOnly) {
  // A fifo without a writer would keep a careless opener waiting for ever.
  ASSERT_EQ(::mkfifo((root_ / "fifo").c_str(), 0600), 0);
  link("42/map_files/1000-2000", (root_ / "fifo").string());
  link("42/map_files/2000-3000", "/dev/null");
  link("42/map_files/3000-4000", root_.string());
  for (const std::uint64_t begin : {0x1000, 0x2000, 0x3000}) {
    const auto fd = procfs_.open_mapping(42, {.begin = begin, .end = begin + 0x1000});
    ASSERT_FALSE(fd) << begin;
    EXPECT_EQ(fd.error().why, "not a regular file");
  }
}

TEST_F(ProcfsTest, Mappings) {
  write("42/maps",
        "55d0c0a00000-55d0c0a01000 r-xp 00001000 fe:01 131 /usr/bin/server\n"
        "not a mapping\n"
        "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
        "7f1000000000-7f1004103000 rw-s 00000000 00:2b 77                         /run/my app/42.events (deleted)\n"
        "7f2000000000-7f2000001000 r--p 00000000 fe:01 13");
  const auto found = mappings(procfs_, 42);
  ASSERT_EQ(found.size(), 3u) << "the last line is cut off";
  EXPECT_EQ(found[0].path, "/usr/bin/server");
  EXPECT_EQ(found[1].path, "");
  EXPECT_EQ(found[2].path, "/run/my app/42.events");
  EXPECT_TRUE(is_ring_mapping(found[2]));
  EXPECT_TRUE(mappings(procfs_, 43).empty());
}

TEST_F(ProcfsTest, MappingsAreReadUntilTheVisitorHasEnough) {
  std::string text;
  for (std::uint64_t i = 1; i <= 2'000; ++i) {
    char line[64];
    std::snprintf(line, sizeof line, "%lx000-%lx000 rw-p 00000000 00:00 0 \n", i, i + 1);
    text += line;
  }
  write("42/maps", text);
  EXPECT_EQ(mappings(procfs_, 42).size(), 2'000u);
  std::size_t visited = 0;
  procfs_.visit_mappings(42, [&](const Mapping&) { return ++visited < 10; });
  EXPECT_EQ(visited, 10u);
  write("42/maps", std::string(100'000, 'x') + "\n" + text);
  EXPECT_TRUE(mappings(procfs_, 42).empty()) << "no line of the kernel's is that long";
}

TEST_F(ProcfsTest, ClockOffset) {
  EXPECT_EQ(procfs_.clock_offset_ns(42), 0) << "no time namespaces";
  const auto offset = [&](std::string_view text) {
    write("42/timens_offsets", text);
    return procfs_.clock_offset_ns(42);
  };
  EXPECT_EQ(offset("monotonic           0         0\nboottime            0         0\n"), 0);
  EXPECT_EQ(offset("monotonic        1000         5\nboottime            7         0\n"), -1'000'000'000'005);
  EXPECT_EQ(offset("boottime            7         0\nmonotonic          -1 500000000\n"), 500'000'000);
  EXPECT_EQ(offset("boottime            7         0\n"), 0);
  EXPECT_EQ(offset("monotonic  x 0\n"), 0);
  EXPECT_EQ(offset("monotonic  12\n"), 0);
  EXPECT_EQ(offset("monotonic  9223372036854775807 0\n"), 0) << "overflows";
  EXPECT_EQ(offset("monotonic  9223372036 999999999\n"), 0) << "overflows";
}

TEST_F(ProcfsTest, ClockOffsetOfChildrenIsNotOurs) {
  write("42/timens_offsets", "monotonic 1000 0\n");
  link("42/ns/time", "time:[4026531834]");
  link("42/ns/time_for_children", "time:[4026532177]");
  EXPECT_EQ(procfs_.clock_offset_ns(42), 0);
  write("43/timens_offsets", "monotonic 1000 0\n");
  link("43/ns/time", "time:[4026532177]");
  link("43/ns/time_for_children", "time:[4026532177]");
  EXPECT_EQ(procfs_.clock_offset_ns(43), -1'000'000'000'000);
}

TEST(Procfs, KnowsThisProcess) {
  const Procfs procfs;
  const std::int32_t self = ::getpid();
  EXPECT_THAT(procfs.pids(), testing::Contains(self));
  const auto stat = procfs.stat(self);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->state, 'R');
  EXPECT_GT(stat->start_ticks, 0u);
  EXPECT_EQ(procfs.exe_path(self), fs::read_symlink("/proc/self/exe"));
  EXPECT_TRUE(procfs.open_exe(self));
  EXPECT_TRUE(std::ranges::any_of(mappings(procfs, self), [](const Mapping& mapping) {
    return mapping.permissions == "r-xp" && mapping.path == fs::read_symlink("/proc/self/exe");
  }));
}

TEST_F(ProcfsTest, MountsAreThoseOfWholeLines) {
  write("self/mountinfo",
        "1 0 0:3 / / rw - tmpfs none rw\nnonsense\n2 1 0:4 / /mnt rw - tmpfs none rw\n3 1 0:4 / /m rw - tmpfs n");
  const auto mounts = procfs_.mounts();
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[1].point, "/mnt");
  EXPECT_TRUE(Procfs{root_ / "nowhere"}.mounts().empty());
}

TEST_F(ProcfsTest, OpenFile) {
  write("self/fdinfo/7", "pos:\t0\nflags:\t012000000\nmnt_id:\t29\nino:\t18446744073709551615\n");
  const auto open = procfs_.open_file(7);
  ASSERT_TRUE(open);
  EXPECT_EQ(open->mount, 29);
  EXPECT_EQ(open->inode, 18446744073709551615u);
  write("self/fdinfo/7", "pos:\t0\nmnt_id:\t29\n");
  EXPECT_FALSE(procfs_.open_file(7));
  EXPECT_FALSE(procfs_.open_file(8));
}

}  // namespace
}  // namespace rtev

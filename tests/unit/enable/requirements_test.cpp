// SPDX-License-Identifier: MIT
// What a program lacks to make its ring, and what changes before it is made. The program is a child of another user;
// its variables are words of this process, of which it has copies.
#include "enable/requirements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "enable/ring_place.hpp"
#include "support/temp_dir.hpp"
#include "unit/enable/child.hpp"

namespace rtev::enable {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RequirementsTest : public ::testing::Test {
 protected:
  static constexpr uid_t user = 12345, attacker = 54321;
  /// Small rings: 128 domains with 8 kB each, and 1 MB of names.
  static constexpr std::uint32_t ring_words = 1024;
  static constexpr rlim_t ring_bytes = (1 << 20) + 128 * (ring_words * 8 + 80) + 4096;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "makes files of other users, which takes root";
    own(dir_.path(), user, 0755);
    name(dir_.path());
  }
  /// The runtime's own directory.
  void name(const std::string& directory) {
    text_ = directory;
    directory_ = reinterpret_cast<std::uint64_t>(text_.c_str());
  }
  static void own(const fs::path& path, uid_t owner, mode_t mode) {
    ASSERT_EQ(::chown(path.c_str(), owner, owner), 0);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  /// The program; `before` is what it did before it was held, and `after` what it does then.
  Requirements check(
      const std::function<void()>& before = [] {}, const std::function<void()>& after = [] {},
      bool allow_confined = true) {
    Child child(
        [&] {
          ::chdir(dir_.path().c_str());
          ::setresgid(user, user, user);
          before();
          ::setresuid(user, user, user);
          ::prctl(PR_SET_DUMPABLE, 1);
        },
        after);
    ring_ = dir_ / (std::to_string(child.pid()) + ".events");
    auto held = HeldProcess::hold(child.pid(), 0);
    EXPECT_TRUE(held && held->may_write());
    if (!held) return {};
    Target target{.process = std::move(*held)};
    if (can_be_led_) target.runtime.start_sites.directory = reinterpret_cast<std::uint64_t>(&directory_);
    target.runtime.start_sites.spare = {.begin = 8, .end = 8 + room_};
    if (knows_ring_words_) target.runtime.start_sites.ring_words = reinterpret_cast<std::uint64_t>(&words_);
    child.go_on();
    return check_requirements(target, {.confined = allow_confined, .readable = allow_readable_}, memory_left_, silent_);
  }
  static void expect_missing(const Requirements& found, EnableResult result, const std::string& why) {
    const Requirement* const missing = found.missing();
    ASSERT_NE(missing, nullptr);
    EXPECT_EQ(missing->result, result) << missing->what;
    EXPECT_THAT(missing->what + ": " + missing->found, HasSubstr(why));
  }
  static std::function<void()> limit(int resource, rlim_t value) {
    return [=] {
      const rlimit limit{.rlim_cur = value, .rlim_max = value};
      ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
    };
  }

  test::TempDir dir_;
  fs::path ring_;
  std::string text_;
  alignas(8) std::uint64_t directory_ = 0;
  std::uint64_t room_ = 128;
  bool can_be_led_ = true, knows_ring_words_ = true, allow_readable_ = false;
  std::optional<std::uint64_t> memory_left_ = UINT64_MAX;
  std::set<std::string> silent_;
  alignas(8) std::uint32_t words_ = ring_words;
};

TEST_F(RequirementsTest, AreMetByAnOrdinaryProgram) {
  const Requirements found = check();
  EXPECT_EQ(found.missing(), nullptr) << found.missing()->what << ": " << found.missing()->found;
}

TEST_F(RequirementsTest, RingsAreOfASizeThatTheRuntimeCanMake) {
  Child child([] {});
  auto held = HeldProcess::hold(child.pid(), 0);
  ASSERT_TRUE(held);
  Target target{.process = std::move(*held)};
  EXPECT_TRUE(check_ring_size(target)) << "the size is not known: the runtime's own";
  target.runtime.start_sites.ring_words = reinterpret_cast<std::uint64_t>(&words_);
  for (const unsigned bits : {3u, 16u, 20u, 0u, 2u, 21u, 22u, 31u}) {
    words_ = 1u << bits;
    // The child has a copy of it.
    Child copy([] {});
    auto program = HeldProcess::hold(copy.pid(), 0);
    ASSERT_TRUE(program);
    Target with_words{.process = std::move(*program), .runtime = target.runtime};
    const auto checked = check_ring_size(with_words);
    EXPECT_EQ(checked.has_value(), bits >= 3 && bits <= 20) << bits;
    if (!checked) {
      EXPECT_EQ(checked.error().result, EnableResult::ring_size);
    }
  }
}

TEST_F(RequirementsTest, OfAProgramThatEndsAreNotMet) {
  std::optional<Child> child(std::in_place, [] {});
  auto held = HeldProcess::hold(child->pid(), 0);
  ASSERT_TRUE(held);
  const Target target{.process = std::move(*held)};
  child.reset();
  expect_missing(check_requirements(target, {.confined = true}, memory_left_, silent_), EnableResult::gone, "ended");
}

TEST_F(RequirementsTest, AreInTheDirectoryThatTheProgramNames) {
  const fs::path named = dir_ / "named";
  fs::create_directory(named);
  own(named, user, 0755);
  name(named);
  const Requirements found = check();
  EXPECT_EQ(found.missing(), nullptr);
  EXPECT_EQ(found.directory.path, named);
  EXPECT_FALSE(found.is_led) << "it goes there by itself";
  own(named, attacker, 0755);
  expect_missing(check(), EnableResult::directory, "belongs to user 54321");
  fs::remove(named);
  expect_missing(check(), EnableResult::directory, "No such file");
}

TEST_F(RequirementsTest, AreNotMetIfTheDirectoryCannotBeRead) {
  directory_ = 8;
  expect_missing(check(), EnableResult::unexpected_value, "cannot be read");
  name(std::string(5000, 'x'));
  expect_missing(check(), EnableResult::unexpected_value, "cannot be read");
}

TEST_F(RequirementsTest, AreOfTheDirectoryAsItIsThen) {
  const fs::path place = dir_ / "place";
  const auto make = [&] {
    fs::create_directory(place);
    own(place, user, 0755);
  };
  make();
  name(place);
  EXPECT_EQ(check().missing(), nullptr);
  for (const mode_t mode : {0777, 01777})
    expect_missing(check([] {}, [&] { ::chmod(place.c_str(), mode); }), EnableResult::directory, "others may write");
  own(place, user, 0755);
  expect_missing(check([] {}, [&] { ::rmdir(place.c_str()); }), EnableResult::directory, "No such file");
}

TEST_F(RequirementsTest, WantAnAbsolutePath) {
  name(".");
  expect_missing(check(), EnableResult::directory, ". is a relative path");
}

TEST_F(RequirementsTest, WantAFreeName) {
  const auto take_name = [this] {
    const fs::path name = dir_ / (std::to_string(::getpid()) + ".events");
    UniqueFd(::open(name.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  };
  expect_missing(check([] {}, take_name), EnableResult::directory, free_name);
}

TEST_F(RequirementsTest, WantALimitOfFilesAboveTheRing) {
  EXPECT_EQ(check([] {}, limit(RLIMIT_FSIZE, ring_bytes)).missing(), nullptr);
  expect_missing(check([] {}, limit(RLIMIT_FSIZE, ring_bytes - 1)), EnableResult::limit, "RLIMIT_FSIZE");
}

TEST_F(RequirementsTest, WantAddressesForTheRing) {
  expect_missing(check([] {}, limit(RLIMIT_AS, ring_bytes)), EnableResult::limit, "RLIMIT_AS");
}

TEST_F(RequirementsTest, WantMemoryInTheControlGroup) {
  memory_left_ = 3 << 20;
  expect_missing(check(), EnableResult::memory, "memory of its control group: 3 MB left");
  memory_left_ = 16 << 20;
  EXPECT_EQ(check().missing(), nullptr);
}

TEST_F(RequirementsTest, SayWhatIsNotKnownOfTheControlGroup) {
  const auto said = [this](std::optional<std::uint64_t> left) {
    memory_left_ = left;
    const Requirements found = check();
    const auto memory = std::ranges::find(found.list, EnableResult::memory, &Requirement::result);
    return memory == found.list.end() ? std::string() : memory->found;
  };
  EXPECT_EQ(said(std::nullopt), "unknown");
  EXPECT_EQ(said(UINT64_MAX), "no limit");
  memory_left_.reset();
  EXPECT_EQ(check().missing(), nullptr);
}

TEST_F(RequirementsTest, WantADescriptor) {
  // It has standard ones, and those that this process has.
  expect_missing(check([] {}, limit(RLIMIT_NOFILE, 3)), EnableResult::limit, "RLIMIT_NOFILE");
}

TEST_F(RequirementsTest, WantMoreForLargerRings) {
  words_ = 1 << 20;
  expect_missing(check([] {}, limit(RLIMIT_FSIZE, ring_bytes)), EnableResult::limit, "RLIMIT_FSIZE");
  words_ = (1u << 30) + 1;
  EXPECT_EQ(check([] {}, limit(RLIMIT_FSIZE, rlim_t{100} << 20)).missing(), nullptr) << "no ring is so large";
}

TEST_F(RequirementsTest, WantNoDebugger) {
  expect_missing(check([] {}, [] { ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); }), EnableResult::debugged, "");
}

TEST_F(RequirementsTest, WantNoFilterOfSystemCallsUnlessThatIsAllowed) {
  const auto filter = [] {
    sock_filter allow{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW};
    const sock_fprog program{.len = 1, .filter = &allow};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  };
  expect_missing(check([] {}, filter, false), EnableResult::seccomp, "seccomp");
  EXPECT_EQ(check([] {}, filter).missing(), nullptr);
}

/// Where the runtime is led: by variables that the program was started with.
class LedTest : public RequirementsTest {
 protected:
  void SetUp() override {
    RequirementsTest::SetUp();
    directory_ = 0;
    for (const auto& [name, owner] :
         {std::pair("home", user), std::pair("second", user), std::pair("others", attacker)}) {
      fs::create_directory(dir_ / name);
      own(dir_ / name, owner, 0700);
    }
  }
  /// What is found if these are the variables, each with a blank behind it.
  Requirements led_by(const std::string& variables) {
    return check([&] { overwrite(variables); });
  }
  std::string variable(const std::string& name, const char* directory) const {
    return name + "=" + (dir_ / directory).native() + " ";
  }

 private:
  /// The environment of this process, where the kernel has put it.
  static void overwrite(std::string variables) {
    std::ifstream file("/proc/self/stat");
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    for (int field = 3; field < 50; ++field) fields >> text;
    std::uint64_t begin = 0, end = 0;
    fields >> begin >> end;
    ASSERT_LT(variables.size(), end - begin);
    std::ranges::replace(variables, ' ', '\0');
    variables.resize(end - begin);
    std::ranges::copy(variables, reinterpret_cast<char*>(begin));  // NOLINT(performance-no-int-to-ptr)
  }
};

TEST_F(LedTest, ToTheFirstDirectoryThatCanBeUsed) {
  const Requirements home = led_by(variable("TMPDIR", "second") + variable("HOME", "home"));
  EXPECT_EQ(home.missing(), nullptr);
  EXPECT_EQ(home.directory.path, dir_ / "home");
  EXPECT_TRUE(home.is_led);
  const Requirements second = led_by(variable("HOME", "others") + variable("TMPDIR", "second"));
  EXPECT_EQ(second.missing(), nullptr);
  EXPECT_EQ(second.directory.path, dir_ / "second");
}

TEST_F(LedTest, NotToOneThatOthersMayReadUnlessThatIsAllowed) {
  own(dir_ / "home", user, 0755);
  EXPECT_EQ(led_by(variable("HOME", "home") + variable("TMPDIR", "second")).directory.path, dir_ / "second");
  expect_missing(led_by(variable("HOME", "home")), EnableResult::directory, "others may read or search it");
  allow_readable_ = true;
  EXPECT_EQ(led_by(variable("HOME", "home")).missing(), nullptr);
}

TEST_F(LedTest, OnlyWhereItsPathHasRoom) {
  room_ = (dir_ / "home").native().size() / 8 * 8;
  expect_missing(led_by(variable("HOME", "home")), EnableResult::directory, "no room for the path");
  room_ += 8;
  EXPECT_EQ(led_by(variable("HOME", "home")).missing(), nullptr) << "with the zero behind it";
}

TEST_F(LedTest, NotToOneThatDidNotAnswer) {
  silent_.insert(dir_ / "home");
  EXPECT_EQ(led_by(variable("HOME", "home") + variable("TMPDIR", "second")).directory.path, dir_ / "second");
  expect_missing(led_by(variable("HOME", "home")), EnableResult::no_answer, "did not answer");
}

TEST_F(LedTest, NowhereIfNoneCanBeUsed) {
  expect_missing(led_by(variable("HOME", "others")), EnableResult::directory, "belongs to user 54321");
  expect_missing(led_by("HOME=home "), EnableResult::directory, "no absolute path");
  expect_missing(led_by(variable("NOT_HOME", "home")), EnableResult::directory, "no absolute path");
}

TEST_F(LedTest, NowhereIfItIsUnknownWhetherTheRuntimeIsSetUp) {
  knows_ring_words_ = false;
  expect_missing(led_by(variable("HOME", "home")), EnableResult::directory, "no absolute path");
}

TEST_F(LedTest, NowhereIfTheRuntimeHasNoVariableForIt) {
  can_be_led_ = false;
  expect_missing(led_by(variable("HOME", "home")), EnableResult::directory, "no absolute path");
  const Requirements named = led_by(variable("OCAML_RUNTIME_EVENTS_DIR", "home"));
  EXPECT_EQ(named.missing(), nullptr);
  EXPECT_EQ(named.directory.path, dir_ / "home");
}

}  // namespace
}  // namespace rtev::enable

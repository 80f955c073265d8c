// SPDX-License-Identifier: MIT
// What is done with the rights of a program is done with no others, and its user cannot disturb it.
#include "enable/as_program.hpp"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/temp_dir.hpp"

namespace rtev::enable {
namespace {

constexpr uid_t user = 12345;
constexpr gid_t group = 12346, second_group = 12347;

class AsProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "takes root";
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0777), 0);
    std::ofstream(dir_ / "of-root") << "x";
    ASSERT_EQ(::chmod((dir_ / "of-root").c_str(), 0600), 0);
    std::ofstream(dir_ / "of-group") << "x";
    ASSERT_EQ(::chown((dir_ / "of-group").c_str(), 0, second_group), 0);
    ASSERT_EQ(::chmod((dir_ / "of-group").c_str(), 0640), 0);
  }
  /// What happens as a program of this user; nothing if there is no answer.
  template <typename Test>
  static std::optional<bool> as_program(const Test& test) {
    auto answer = run_in_child({}, [&] {
      bool is_true = become({.user = user, .group = group, .groups = {second_group}}) && test();
      helper::Message message;
      helper::Writer{message}(is_true);
      return message;
    });
    if (!answer) return std::nullopt;
    bool is_true = false;
    helper::Reader reader(*answer);
    reader(is_true);
    return is_true;
  }
  bool can_open(const char* name) const {
    return UniqueFd(::open((dir_ / name).c_str(), O_RDONLY | O_CLOEXEC)).get() >= 0;
  }

  test::TempDir dir_;
};

TEST_F(AsProgramTest, FilesAreOfItsUser) {
  EXPECT_EQ(as_program([this] {
              return UniqueFd(::open((dir_ / "made").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)).get() >=
                     0;
            }),
            true);
  struct stat status{};
  ASSERT_EQ(::stat((dir_ / "made").c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, user);
  EXPECT_EQ(status.st_gid, group);
}

TEST_F(AsProgramTest, OnlyItsUsersFilesAreOpened) {
  EXPECT_EQ(as_program([this] { return can_open("of-group"); }), true);
  EXPECT_EQ(as_program([this] { return can_open("of-root"); }), false);
}

TEST_F(AsProgramTest, RightsDoNotComeBack) {
  EXPECT_EQ(as_program([] { return ::setresuid(0, 0, 0) == 0 && ::setgroups(0, nullptr) == 0; }), false);
}

TEST_F(AsProgramTest, ItsUserCannotSignalIt) {
  EXPECT_EQ(as_program([] {
              // A signal takes one of the first two ids of its target: see kill(2).
              std::array<uid_t, 3> ids{1, 1, 1};
              return ::getresuid(ids.data(), &ids[1], &ids[2]) == 0 && ids == std::array<uid_t, 3>{0, 0, 0};
            }),
            true);
}

}  // namespace
}  // namespace rtev::enable

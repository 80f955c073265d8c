// SPDX-License-Identifier: MIT
// The file of a ring that is made for a program: nobody else's, in nobody else's directory. The program is a child of
// another user, the directory changes under its feet.
#include "enable/ring_place.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "support/temp_dir.hpp"
#include "unit/enable/child.hpp"
#include "unit/enable/own_mounts.hpp"

namespace rtev::enable {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RingPlaceTest : public ::testing::Test {
 protected:
  static constexpr uid_t user = 12345, attacker = 54321;
  static constexpr std::uint64_t first_bytes = 1 << 16;

  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "makes files of other users, which takes root";
    own(dir_.path(), user, 0700);
    start_program();
  }
  void start_program() {
    child_.emplace([this] {
      ::chdir(dir_.path().c_str());
      ::setresgid(user, user, user);
      ::setresuid(user, user, user);
      ::prctl(PR_SET_DUMPABLE, 1);
    });
    auto held = HeldProcess::hold(child_->pid(), 0);
    ASSERT_TRUE(held) << held.error().why;
    process_.emplace(std::move(*held));
    ring_ = dir_ / (std::to_string(child_->pid()) + ".events");
  }
  static void own(const fs::path& path, uid_t owner, mode_t mode) {
    ASSERT_EQ(::lchown(path.c_str(), owner, owner), 0);
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  }
  Checked<ReservedRing> make(bool may_be_readable = false) const {
    return ReservedRing::make(procfs_, *process_, {.path = dir_.path(), .may_be_readable = may_be_readable},
                              {.first_bytes = first_bytes, .names_begin = 1 << 20, .names_bytes = 1});
  }
  void expect_refused(const std::string& why) const {
    const auto made = make();
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().result, EnableResult::directory);
    EXPECT_THAT(made.error().why, HasSubstr(why));
  }

  test::TempDir dir_;
  Procfs procfs_;
  std::optional<Child> child_;
  std::optional<HeldProcess> process_;
  fs::path ring_;
};

TEST_F(RingPlaceTest, IsAnEmptyFileOfTheProgram) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().why;
  struct stat status{};
  ASSERT_EQ(::lstat(ring_.c_str(), &status), 0);
  EXPECT_TRUE(S_ISREG(status.st_mode));
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  EXPECT_EQ(status.st_uid, user);
  EXPECT_EQ(status.st_gid, user);
  EXPECT_EQ(status.st_size, 0);
  EXPECT_EQ(made->identity(), (RingIdentity{.inode = status.st_ino, .device = status.st_dev}));
  EXPECT_EQ(made->path(), ring_);
  EXPECT_TRUE(made->is_in_place(procfs_));
}

TEST_F(RingPlaceTest, HasItsFirstBlocks) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().why;
  const UniqueFd file(::open(ring_.c_str(), O_RDWR | O_CLOEXEC));
  // As the runtime does.
  ASSERT_EQ(::ftruncate(file.get(), 1 << 24), 0);
  struct stat status{};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  constexpr blkcnt_t block_bytes = 512;
  EXPECT_GE(status.st_blocks, static_cast<blkcnt_t>(first_bytes) / block_bytes + 1);
}

TEST_F(RingPlaceTest, IsNotMadeWhereOthersMayPutLinksForChildren) {
  own(dir_.path(), 0, 01777);
  expect_refused("others may write to it");
}

TEST_F(RingPlaceTest, IsNotMadeWhereOthersCanLockTheDirectory) {
  for (const mode_t mode : {0704, 0701}) {
    own(dir_.path(), user, mode);
    expect_refused("others may read or search it");
    EXPECT_TRUE(make(true)) << "if that is allowed";
  }
  own(dir_.path(), user, 0750);
  EXPECT_TRUE(make()) << "its group is the program's";
  ASSERT_EQ(::chown(dir_.path().c_str(), user, attacker), 0);
  expect_refused("others may read or search it");
}

TEST_F(RingPlaceTest, IsNotMadeWhereAnAccessListLetsOthersRead) {
  static constexpr auto no_id = static_cast<std::uint32_t>(ACL_UNDEFINED_ID);
  struct Entry {
    std::uint16_t tag, rights;
    std::uint32_t id;
  };
  struct List {
    std::uint32_t version = POSIX_ACL_XATTR_VERSION;
    std::array<Entry, 5> entries{Entry{ACL_USER_OBJ, 7, no_id},
                                 {ACL_USER, 5, attacker},
                                 {ACL_GROUP_OBJ, 0, no_id},
                                 {ACL_MASK, 5, no_id},
                                 {ACL_OTHER, 0, no_id}};
  } list;
  if (::setxattr(dir_.path().c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
    GTEST_SKIP() << "no access lists here";
  expect_refused("others may read or search it");
}

TEST_F(RingPlaceTest, IsNotMadeInMemoryThatOthersCanFill) {
  with_own_mounts([this] {
    const fs::path memory = dir_ / "memory", inside = memory / "inside";
    fs::create_directory(memory);
    ASSERT_TRUE(mount_memory(memory.c_str()));
    fs::create_directory(inside);
    own(inside, user, 0700);
    start_program();
    // Another user may have a directory there, too.
    for (const auto& [owner, mode, is_refused] :
         {std::tuple(0u, 0755u, true), {user, 0711u, true}, {attacker, 0700u, true}, {user, 0700u, false}}) {
      own(memory, owner, mode);
      const auto made = ReservedRing::make(procfs_, *process_, {inside}, {});
      EXPECT_EQ(!made, is_refused) << owner << ' ' << mode;
    }
  });
}

TEST_F(RingPlaceTest, IsRemovedUnlessItIsKept) {
  {
    const auto made = make();
  }
  EXPECT_FALSE(fs::exists(ring_));
  {
    make()->keep();
  }
  EXPECT_TRUE(fs::exists(ring_));
}

TEST_F(RingPlaceTest, IsNotMadeWhereSomethingIs) {
  std::ofstream(ring_) << "of somebody";
  expect_refused("File exists");
  fs::remove(ring_);
  fs::create_directory(ring_);
  expect_refused("File exists");
  fs::remove(ring_);
  fs::create_symlink(dir_ / "victim", ring_);
  expect_refused("File exists");
  EXPECT_FALSE(fs::exists(dir_ / "victim"));
}

TEST_F(RingPlaceTest, IsNotMadeInADirectoryOfAnother) {
  own(dir_.path(), attacker, 0777);
  expect_refused("belongs to user 54321");
  own(dir_.path(), user, 0777);
  expect_refused("others may write");
  EXPECT_FALSE(fs::exists(ring_));
}

TEST_F(RingPlaceTest, IsNotMadeWhereTheProgramMayNot) {
  own(dir_.path(), 0, 0750);
  ASSERT_EQ(::chown(dir_.path().c_str(), 0, user), 0);
  expect_refused("Permission denied");
  EXPECT_EQ(look_at_ring_place(*process_, {dir_.path()})->access_error, EACCES);
}

TEST_F(RingPlaceTest, IsNotMadeWhereTheProgramDoesNotCome) {
  const fs::path inside = dir_ / "hidden" / "inside";
  fs::create_directories(inside);
  own(inside, user, 0700);
  own(dir_ / "hidden", 0, 0700);
  EXPECT_EQ(look_at_ring_place(*process_, {inside})->access_error, EACCES);
  EXPECT_FALSE(ReservedRing::make(procfs_, *process_, {inside}, {}));
}

TEST_F(RingPlaceTest, ThatWasReplacedStays) {
  {
    const auto made = make();
    ASSERT_TRUE(made);
    fs::rename(ring_, dir_ / "moved");
    std::ofstream(ring_) << "another one";
    EXPECT_FALSE(made->is_in_place(procfs_));
  }
  EXPECT_TRUE(fs::exists(ring_));
}

TEST_F(RingPlaceTest, IsRemovedFromTheDirectoryInWhichItWasMade) {
  const fs::path place = dir_ / "place", moved = dir_ / "moved";
  fs::create_directory(place);
  own(place, user, 0700);
  {
    const auto made = ReservedRing::make(procfs_, *process_, {place}, {});
    ASSERT_TRUE(made) << made.error().why;
    fs::rename(place, moved);
    fs::create_directory(place);
    fs::create_hard_link(moved / ring_.filename(), place / ring_.filename());
  }
  EXPECT_FALSE(fs::exists(moved / ring_.filename()));
  EXPECT_TRUE(fs::exists(place / ring_.filename())) << "a directory that took its place";
}

TEST_F(RingPlaceTest, IsNotRemovedByAUserWhoMayNot) {
  {
    const auto made = make();
    ASSERT_TRUE(made);
    own(dir_.path(), 0, 0755);
  }
  EXPECT_TRUE(fs::exists(ring_));
}

TEST_F(RingPlaceTest, ThatIsAnothersByNowStays) {
  {
    const auto made = make();
    ASSERT_TRUE(made);
    ASSERT_EQ(::chown(ring_.c_str(), attacker, attacker), 0);
  }
  EXPECT_TRUE(fs::exists(ring_));
}

TEST_F(RingPlaceTest, IsNotMadeInADirectoryThatWasReplacedAfterTheLook) {
  const fs::path place = dir_ / "place", trap = dir_ / "trap";
  for (const auto& path : {place, trap}) fs::create_directory(path);
  own(place, user, 0700);
  own(trap, attacker, 0777);
  ASSERT_TRUE(look_at_ring_place(*process_, {place})->is_usable());
  fs::remove(place);
  fs::create_symlink(trap, place);
  EXPECT_THAT(ReservedRing::make(procfs_, *process_, {place}, {}).error().why, HasSubstr("belongs to user 54321"));
  EXPECT_TRUE(fs::is_empty(trap));
}

TEST_F(RingPlaceTest, OfAProgramThatHasEndedIsRemoved) {
  {
    const auto made = make();
    ASSERT_TRUE(made);
    child_.reset();
  }
  EXPECT_FALSE(fs::exists(ring_));
  EXPECT_FALSE(make());
}

TEST_F(RingPlaceTest, IsSeenWhenItsNameIsTaken) {
  EXPECT_TRUE(look_at_ring_place(*process_, {dir_.path()})->is_usable());
  fs::create_symlink("nowhere", ring_);
  EXPECT_TRUE(look_at_ring_place(*process_, {dir_.path()})->is_taken);
}

TEST_F(RingPlaceTest, IsRemovedByItsNumberOnly) {
  std::ofstream(ring_) << "ring";
  own(ring_, user, 0600);
  struct stat status{};
  ASSERT_EQ(::stat(ring_.c_str(), &status), 0);
  EXPECT_FALSE(remove_ring_file(procfs_, *process_, ring_, {.inode = status.st_ino + 1}));
  EXPECT_TRUE(fs::exists(ring_));
  EXPECT_FALSE(remove_ring_file(procfs_, *process_, ring_, {.inode = status.st_ino, .device = status.st_dev + 1}));
  EXPECT_TRUE(remove_ring_file(procfs_, *process_, ring_, {.inode = status.st_ino, .device = status.st_dev}));
  EXPECT_FALSE(fs::exists(ring_));
}

TEST_F(RingPlaceTest, IsNotRemovedFromADirectoryOfAnother) {
  std::ofstream(ring_) << "ring";
  struct stat status{};
  ASSERT_EQ(::stat(ring_.c_str(), &status), 0);
  own(dir_.path(), attacker, 0755);
  EXPECT_FALSE(remove_ring_file(procfs_, *process_, ring_, {.inode = status.st_ino}));
  EXPECT_TRUE(fs::exists(ring_));
}

}  // namespace
}  // namespace rtev::enable

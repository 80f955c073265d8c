// SPDX-License-Identifier: MIT
#include "base/subordinate_users.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "support/temp_dir.hpp"

namespace rtev {
namespace {

TEST(SubordinateUsers, IdsOfARangeBelongToItsOwner) {
  const test::TempDir dir;
  const std::string subuid = dir / "subuid", passwd = dir / "passwd";
  std::ofstream(passwd) << "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbad\n";
  std::ofstream(subuid) << "ann:100000:65536\n1001:165536:10\nnobody-known:300000:10\nann:4294967290:100\n"
                           "ann:x:1\nann:5\n:\n\n";
  const SubordinateUsers users(subuid, passwd);
  EXPECT_EQ(users.owner(0), 0u);
  EXPECT_EQ(users.owner(99'999), 99'999u);
  EXPECT_EQ(users.owner(100'000), 1000u);
  EXPECT_EQ(users.owner(165'535), 1000u);
  EXPECT_EQ(users.owner(165'536), 1001u);
  EXPECT_EQ(users.owner(165'546), 165'546u);
  EXPECT_EQ(users.owner(300'000), 300'000u);
  EXPECT_EQ(users.owner(4'294'967'295), 1000u);
}

TEST(SubordinateUsers, TenantsInRangesOfRootAreNotRoot) {
  const test::TempDir dir;
  const std::string subuid = dir / "subuid", passwd = dir / "passwd";
  std::ofstream(passwd) << "root:x:0:0:root:/root:/bin/sh\n";
  std::ofstream(subuid) << "root:1000000:1000000000\n";
  const SubordinateUsers users(subuid, passwd);
  EXPECT_EQ(users.owner(1'065'534), users.owner(1'048'576)) << "a block of 65,536 ids is one user";
  EXPECT_NE(users.owner(1'065'534), 0u);
  EXPECT_NE(users.owner(1'065'534), users.owner(1'120'000));
  EXPECT_EQ(users.owner(0), 0u);
}

TEST(SubordinateUsers, WithoutFilesIdsAreUsers) {
  const test::TempDir dir;
  EXPECT_EQ(SubordinateUsers(dir / "none", dir / "none").owner(100'000), 100'000u);
}

}  // namespace
}  // namespace rtev

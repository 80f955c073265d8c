// SPDX-License-Identifier: MIT
#include "rtev/version.hpp"

#include <gtest/gtest.h>

namespace {

TEST(Version, IsTheOneOfTheCmakePackage) {
  EXPECT_STREQ(RTEV_VERSION, RTEV_CMAKE_VERSION);
  EXPECT_STREQ(RTEV_VERSION, (std::to_string(RTEV_VERSION_MAJOR) + "." + std::to_string(RTEV_VERSION_MINOR) + "." +
                              std::to_string(RTEV_VERSION_PATCH))
                                 .c_str());
}

#if RTEV_VERSION_NUMBER < 1'000
#error "the preprocessor must be able to compare versions"
#endif

}  // namespace

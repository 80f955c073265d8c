// SPDX-License-Identifier: MIT
#include "base/service_identity.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rtev {
namespace {

using namespace std::string_view_literals;

TEST(ServiceIdentity, ComesFromTheEnvironment) {
  const auto identity = parse_service_identity(
      "0::/system.slice/web.service\n",
      "PATH=/bin\0OTEL_RESOURCE_ATTRIBUTES=service.name=other, service.version = 2.1%2C1 ,x\0OTEL_SERVICE_NAME=web\0HOSTNAME=web-1\0"sv);
  EXPECT_EQ(identity,
            (ServiceIdentity{
                .name = "web", .version = "2.1,1", .cgroup = "/system.slice/web.service", .host_name = "web-1"}));
}

TEST(ServiceIdentity, TheNameMayBeAResourceAttribute) {
  EXPECT_EQ(parse_service_identity("", "OTEL_RESOURCE_ATTRIBUTES=service.name=a%20b"sv).name, "a b");
  EXPECT_EQ(parse_service_identity("", "OTEL_RESOURCE_ATTRIBUTES=service.name=a%2"sv).name, "a%2");
  EXPECT_EQ(parse_service_identity("", "OTEL_RESOURCE_ATTRIBUTES=service.name=%zz%"sv).name, "%zz%");
}

TEST(ServiceIdentity, OlderHostsHaveAHierarchyOfSystemd) {
  EXPECT_EQ(parse_service_identity("12:cpu:/x\n1:name=systemd:/system.slice/a.service\n0::/\n", "").cgroup,
            "/system.slice/a.service");
  EXPECT_EQ(parse_service_identity("0::/\n", "").cgroup, "/");
  EXPECT_EQ(parse_service_identity("0::/a", "").cgroup, "/a");
}

TEST(ServiceIdentity, BoundsWhatAProcessChose) {
  const std::string long_text(10'000, 'x');
  const auto identity = parse_service_identity("0::/" + long_text, "OTEL_SERVICE_NAME=" + long_text);
  EXPECT_EQ(identity.name.size(), ServiceIdentity::max_bytes);
  EXPECT_EQ(identity.cgroup.size(), ServiceIdentity::max_bytes);
  EXPECT_TRUE(parse_service_identity("\n\n::\n", "=\0\0==\0"sv).is_empty());
}

}  // namespace
}  // namespace rtev

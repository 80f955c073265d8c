// SPDX-License-Identifier: MIT
#include "metrics/group_name.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/escape.hpp"
#include "unit/stream/world.hpp"

namespace rtev {
namespace {

const std::string id(64, 'a');
constexpr const char* short_id = "aaaaaaaaaaaa";

struct Place {
  std::string path, unit, container, workload;
  std::string host_name{};
};

TEST(ControlGroupName, UnderstandsWhatManagesProcesses) {
  const std::string pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c.slice/";
  const Place places[]{
      // systemd
      {"/system.slice/web.service", "web.service", "", ""},
      {"/system.slice/system-getty.slice/getty@tty1.service", "getty@tty1.service", "", ""},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service", "editor.service", "", ""},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.gnome.Terminal.slice/vte-spawn-1.scope", "", "",
       ""},
      {"/user.slice/user-0.slice/session-3.scope", "", "", ""},
      {"/init.scope", "", "", ""},
      {"/", "", "", ""},
      {"", "", "", ""},
      // Docker with systemd and without
      {"/system.slice/docker-" + id + ".scope", "", short_id, ""},
      {"/docker/" + id, "", short_id, ""},
      {"/docker/" + id + "/init", "", short_id, ""},
      {"/system.slice/docker.service", "docker.service", "", ""},
      // Podman, as root and as a user
      {"/machine.slice/libpod-" + id + ".scope", "", short_id, ""},
      {"/machine.slice/libpod-" + id + ".scope/container", "", short_id, ""},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + id + ".scope", "", short_id, ""},
      {"/system.slice/web.service/libpod-payload-" + id, "web.service", short_id, ""},
      // Kubernetes: containerd, CRI-O, without systemd
      {pod + "cri-containerd-" + id + ".scope", "", short_id, "web", "web-7d4b9c6f5d-x2x7z"},
      {pod + "crio-" + id + ".scope", "", short_id, "db", "db-0"},
      {"/kubepods/besteffort/pod1b2c/" + id, "", short_id, "report", "report-28391820-x2x7z"},
      {"/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + id, "containerd.service", short_id,
       "web", "web-0"},
      // LXC and systemd-nspawn
      {"/lxc.payload.build", "", "build", "build"},
      {"/lxc/build/system.slice/web.service", "web.service", "build", "build"},
      {"/machine.slice/machine-build.scope", "", "build", "build"},
      {"/machine.slice/systemd-nspawn@build.service/payload", "systemd-nspawn@build.service", "build", "build"},
      // Not an id
      {"/docker/" + std::string(31, 'a'), "", "", ""},
      {"/docker/" + std::string(64, 'g'), "", "", ""},
      {"//web.service//", "web.service", "", ""},
  };
  for (const Place& place : places) {
    const ControlGroupName name = parse_control_group({.cgroup = place.path, .host_name = place.host_name});
    EXPECT_EQ(name.unit, place.unit) << place.path;
    EXPECT_EQ(name.container, place.container) << place.path;
    EXPECT_EQ(name.workload, place.workload) << place.path;
  }
}

TEST(ControlGroupName, AWorkloadIsAPodWithoutWhatIsGenerated) {
  const std::pair<const char*, const char*> pods[]{
      {"web-7d4b9c6f5d-x2x7z", "web"},  // a Deployment
      {"my-web-app-7d4b9c6f5d-x2x7z", "my-web-app"},
      {"web-599f64c8b-bbbbb", "web"},  // shorter hashes exist
      {"db-0", "db"},                  // a StatefulSet
      {"db-12", "db"},
      {"report-28391820-x2x7z", "report"},  // a CronJob
      {"agent-x2x7z", "agent"},             // a DaemonSet or a Job
      {"web", "web"},
      {"web-app", "web-app"},
      {"-0", "-0"},
      {"", ""},
  };
  for (const auto& [pod, workload] : pods)
    EXPECT_EQ(parse_control_group({.cgroup = "/kubepods/pod1/" + id, .host_name = pod}).workload, workload) << pod;
}

TEST(GroupTemplate, TakesTheFirstNameThatAProcessHas) {
  const auto name_of = [](const char* text, const ProcessInfo& process) {
    return GroupTemplate::parse(text).value().name_of(process);
  };
  ProcessInfo process = test::World::default_info();
  process.service = {.name = "shop", .version = "2.1", .cgroup = "/system.slice/web.service"};
  const auto standard = [&] { return name_of(std::string(GroupTemplate::standard).c_str(), process); };
  EXPECT_EQ(standard(), "shop");
  EXPECT_EQ(name_of("{service}/{version}", process), "shop/2.1");
  EXPECT_EQ(name_of("{unit}", process), "web.service");
  EXPECT_EQ(name_of("{cgroup}", process), "/system.slice/web.service");
  EXPECT_EQ(name_of("ocaml", process), "ocaml");
  EXPECT_EQ(name_of("{container}", process), "unknown");
  EXPECT_EQ(name_of("{container|version}-{comm}", process), "2.1-server");
  process.service.name.clear();
  EXPECT_EQ(standard(), "web.service");
  process.service.cgroup.clear();
  EXPECT_EQ(standard(), "server");
  // Bytecode programs are run by the same program.
  process.exe = "/usr/bin/ocamlrun";
  process.comm = "app.byte";
  EXPECT_EQ(standard(), "app.byte");
  process.exe = "/usr/bin/x86_64-pc-linux-gnu-ocamlrun-a104";
  EXPECT_EQ(standard(), "app.byte");
  process.comm = "x86_64-pc-linux";
  process.script = "/srv/other.byte";
  EXPECT_EQ(standard(), "other.byte");
  process.exe = "/lib/ld-linux-x86-64.so.2";
  process.comm = "ld-linux-x86-64";
  process.script = "/srv/shop";
  EXPECT_EQ(standard(), "shop");
  process.exe.clear();
  process.comm = "app.byte";
  EXPECT_EQ(standard(), "app.byte");
  process.comm.clear();
  EXPECT_EQ(standard(), "unknown");
}

TEST(GroupTemplate, SaysWhatIsWrongWithIt) {
  for (const char* text :
       {"", "{", "}", "{}", "{exe", "exe}", "{exe}}", "{{exe}", "{pid}", "{exe|}", "{|exe}", "{ exe}"}) {
    const auto parsed = GroupTemplate::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().subject, text);
    EXPECT_FALSE(parsed.error().why.empty());
  }
}

TEST(GroupTemplate, NamesArePrintableAndShort) {
  const GroupTemplate by_service = GroupTemplate::parse("{service}").value();
  for (const std::string& hostile : test::hostile_strings()) {
    ProcessInfo process;
    process.service.name = hostile;
    EXPECT_EQ(by_service.name_of(process), escaped(hostile.substr(0, GroupTemplate::max_name_bytes)));
    process.service = {.cgroup = "/" + hostile + "/docker-" + id + ".scope/" + hostile, .host_name = hostile};
    for (const char* text : {"{cgroup}", "{unit|container|workload}"})
      EXPECT_FALSE(GroupTemplate::parse(text).value().name_of(process).contains('\n'));
  }
  ProcessInfo process;
  process.service.name.assign(512, 'x');
  EXPECT_EQ(by_service.name_of(process).size(), GroupTemplate::max_name_bytes);
}

}  // namespace
}  // namespace rtev

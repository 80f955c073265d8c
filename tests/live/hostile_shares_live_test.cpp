// SPDX-License-Identifier: MIT
// An unprivileged user who takes all that a tracer has to give, beside a program of root that must have its share.
#include <unistd.h>

#include <algorithm>
#include <string>

#include "live/agent_fixture.hpp"
#include "support/poll_until.hpp"

namespace rtev::test {
namespace {

class HostileSharesLive : public AnalysisLive {
 protected:
  void SetUp() override {
    AnalysisLive::SetUp();
    fs::create_directory(attack_dir_);
  }
  void TearDown() override { fs::remove_all(attack_dir_); }

  Command attack(const std::string& name) const { return {.argv = {RTEV_ATTACK, name, attack_dir_}}; }

 private:
  /// Another user has to get there.
  const fs::path attack_dir_ = "/dev/shm/rtev-shares." + std::to_string(::getpid());
};

TEST_F(HostileSharesLive, NamesDoNotHideServicesOfOthers) {
  const Agent agent({"--max-groups", "20"});
  Command early = with_events("long_pause", {"0.01"}), late = early;
  early.env["OTEL_SERVICE_NAME"] = "early";
  late.env["OTEL_SERVICE_NAME"] = "late";
  Process before(early, "ready");
  const auto runs = [](const char* group) {
    return [group](const Exposition& now) {
      const auto found = now.values.find({"ocaml_processes", {{"group", group}}});
      return found != now.values.end() && found->second == 1;
    };
  };
  agent.scrape_until(runs("early"));
  Process attacker(attack("many-services"), "ready");
  agent.scrape_until([](const Exposition& now) { return now.value("rtev_bpf_groups_folded_total") > 10; });
  Process after(late, "ready");
  agent.scrape_until(runs("late"));
  const Exposition last = agent.scrape();
  EXPECT_EQ(last.value("ocaml_processes", {{"group", "early"}}), 1);
  EXPECT_GT(last.value("ocaml_processes", {{"group", "other"}}), 5);
}

TEST_F(HostileSharesLive, NamesDoNotUseUpTheDumpsOfOthers) {
  const Agent agent({"--keep", "300ms", "--on", "lost", "--on", "pause>100ms", "--after", "1ms", "--max-dumps", "4/1h",
                     "--dumps", dir / "dumps"},
                    {{"RUNTIME_DIRECTORY", (dir / "run").string()}});
  Process honest(with_events("long_pause", {"0.2"}), "ready");
  Process attacker(attack("losing-names"), "ready");
  agent.scrape_until([](const Exposition& now) {
    return now.value("rtev_bpf_dumps_suppressed_total", {{"reason", "max-dumps"}}) > 0;
  });
  const std::string end = "pause-" + std::to_string(honest.pid()) + ".fxt.gz";
  EXPECT_TRUE(poll_until([&] {
    honest.go_until("paused");
    return std::ranges::any_of(fs::directory_iterator(dir / "dumps"),
                               [&](const auto& entry) { return entry.path().string().ends_with(end); });
  }));
}

}  // namespace
}  // namespace rtev::test

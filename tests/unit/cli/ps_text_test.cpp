// SPDX-License-Identifier: MIT
// What ps prints, as in golden/ps.txt and golden/ps.json.
#include "cli/ps_text.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "support/files.hpp"

namespace rtev::cli {
namespace {

using testing::AllOf, testing::HasSubstr, testing::Not;

ProcessInfo process(std::int32_t pid, std::string comm, std::string version) {
  ProcessInfo info;
  info.pid = pid;
  info.user = 0;
  info.name = info.comm = std::move(comm);
  info.exe = "/usr/bin/" + info.comm;
  info.runtime = ocaml_runtime;
  info.version = std::move(version);
  info.ring = RingState::active;
  info.ring_path = "/run/" + std::to_string(pid) + ".events";
  info.domains = 2;
  return info;
}

class PsText : public testing::Test {
 protected:
  PsText() {
    silent_.ring = RingState::none;
    silent_.domains = 0;
    rows_ = {{.info = &shop_,
              .use = {.events_per_second = 5520.4,
                      .cpu_share = 0.574,
                      .memory_bytes = 289'000'000,
                      .arguments = "./shop --port 8080"},
              .gc_share = 0.126,
              .heap_bytes = 283'000'000,
              .uptime_s = 3 * 3600 + 5},
             {.info = &silent_,
              .use = {.cpu_share = 0.0, .memory_bytes = 5'780'000, .arguments = "silent \x1b[31m\nline"},
              .uptime_s = 9}};
  }

  ProcessInfo shop_ = process(4242, "shop", "5.3"), silent_ = process(17, "silent", "");
  std::vector<PsRow> rows_;
};

TEST_F(PsText, Table) {
  EXPECT_EQ(ps_table(rows_, 0), test::golden("cli/golden/ps.txt"));
}

TEST_F(PsText, Json) {
  EXPECT_EQ(nlohmann::json::parse(ps_json(rows_, 0.5)), nlohmann::json::parse(test::golden("cli/golden/ps.json")));
}

TEST_F(PsText, LinesAreCutToTheTerminal) {
  const std::string table = ps_table(rows_, 95);
  EXPECT_THAT(table, AllOf(HasSubstr("  shop --…\n"), Not(HasSubstr("./"))));
}

TEST_F(PsText, NamesForScripts) {
  silent_.name = silent_.comm = "\x1b[31m\n";
  EXPECT_EQ(ps_names(rows_), "4242\tshop\n17\t\\x1B[31m\\x0A\n");
  shop_.ended = true;
  EXPECT_EQ(ps_names(rows_), "17\t\\x1B[31m\\x0A\n");
}

TEST_F(PsText, SwitchedOnIsAColumnWhereThereIsOne) {
  EXPECT_THAT(ps_table(rows_, 0), Not(HasSubstr("ENABLED")));
  rows_[0].is_enabled = true;
  EXPECT_THAT(ps_table(rows_, 0), HasSubstr("ENABLED"));
}

}  // namespace
}  // namespace rtev::cli

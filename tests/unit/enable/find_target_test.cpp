// SPDX-License-Identifier: MIT
// Programs that are refused before anything is written, by what their file has and where it is mapped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <string>

#include "enable/target.hpp"
#include "support/temp_dir.hpp"
#include "unit/enable/lookalike.hpp"

namespace rtev::enable {
namespace {

using ::testing::HasSubstr;

class FindTargetTest : public ::testing::Test {
 protected:
  Checked<Target> find(const Lookalike& program, const std::function<void()>& first = [] {}) const {
    program.write(dir_ / "program");
    const LookalikeChild child(dir_ / "program", first);
    return find(child);
  }
  static Checked<Target> find(const Child& child) {
    auto process = HeldProcess::hold(child.pid(), 0);
    if (!process) return std::unexpected(process.error());
    return find_target(Procfs(), std::move(*process));
  }
  static void expect_refused(const Checked<Target>& found, EnableResult result, const std::string& why) {
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().result, result);
    EXPECT_THAT(found.error().why, HasSubstr(why));
  }
  /// The fields of a domain's state, as the assembly code of OCaml 5.3 has them.
  static std::vector<test::ElfSymbol> fields(std::uint64_t id) {
    std::vector<test::ElfSymbol> symbols;
    for (const auto& [name, word] :
         std::initializer_list<std::pair<const char*, std::uint64_t>>{{"young_limit", 0},
                                                                      {"young_ptr", 1},
                                                                      {"young_start", 2},
                                                                      {"young_end", 3},
                                                                      {"action_pending", 7},
                                                                      {"requested_external_interrupt", 32},
                                                                      {"id", id}})
      symbols.push_back({.name = std::string("domain_field_caml_") + name,
                         .value = word,
                         .size = 0,
                         .type = STT_NOTYPE,
                         .absolute = true});
    return symbols;
  }

  test::TempDir dir_;
};

TEST_F(FindTargetTest, AProgramOfAKnownVersionIsFound) {
  Lookalike{}.write(dir_ / "program");
  const LookalikeChild child(dir_ / "program");
  const auto found = find(child);
  ASSERT_TRUE(found) << found.error().why;
  EXPECT_EQ(found->comm, "program");
  EXPECT_EQ(found->start_function() - found->bias, Lookalike::start);
  EXPECT_EQ(found->hook() - found->bias, Lookalike::hook);
  EXPECT_EQ(found->code.begin, found->bias + Lookalike::text);
  EXPECT_TRUE(found->check_unchanged(Procfs()));
}

TEST_F(FindTargetTest, ItsOwnSymbolsHaveToFitItsVersion) {
  EXPECT_TRUE(find({.version_text = "", .besides = fields(36)}));
  expect_refused(find({.version_text = "", .besides = fields(35)}), EnableResult::unknown_version, "not laid out like");
}

TEST_F(FindTargetTest, AVersionThatWasNotTestedIsRefused) {
  for (const char* version : {"5.2.0", "5.3.0~beta1", "5.3.0+trunk", "5.4.0", "6.3.0", "x"})
    expect_refused(find({.version_text = version}), EnableResult::unknown_version,
                   std::string("OCaml ") + version + ": not supported");
  expect_refused(find({.version_text = ""}), EnableResult::unknown_version, "does not say which version");
}

TEST_F(FindTargetTest, OxCamlIsRefusedByName) {
  expect_refused(find({.version_text = "5.3.0+ox"}), EnableResult::unknown_version, "OxCaml 5.3.0+ox");
  Lookalike silent{.version_text = "", .besides = fields(36)};
  for (const char* name : {"caml_alloc_local", "caml_refresh_locals"})
    silent.besides.push_back({.name = name, .value = Lookalike::text + 0x800});
  expect_refused(find(silent), EnableResult::unknown_version, "OxCaml: not supported");
}

TEST_F(FindTargetTest, EachSymbolIsNeeded) {
  for (const char* symbol : {"caml_runtime_events_start", "caml_domain_external_interrupt_hook",
                             "caml_domain_external_interrupt_hook_default", "caml_enter_blocking_section_hook",
                             "runtime_events_enabled", "runtime_events_paused", "caml_state"})
    expect_refused(find({.lacking = symbol}), EnableResult::no_symbols, "lacks symbols");
}

TEST_F(FindTargetTest, VariablesHaveToLieInWritableMemory) {
  for (const char* symbol : {"caml_domain_external_interrupt_hook", "caml_enter_blocking_section_hook",
                             "runtime_events_enabled", "runtime_events_paused", "runtime_events_path"})
    for (const std::uint64_t place : {Lookalike::text + 0x800, Lookalike::page + 0x104, std::uint64_t{0x100000}})
      expect_refused(
          find({.lacking = symbol,
                .besides =
                    {{.name = std::string(symbol) + ".lto_priv.0", .value = place, .size = 8, .type = STT_OBJECT}}}),
          EnableResult::unexpected_value, "not mapped as its file says");
}

TEST_F(FindTargetTest, AProgramOfAnotherLanguageIsRefused) {
  const Child child([] {});
  expect_refused(find(child), EnableResult::not_ocaml, "no OCaml 5 program");
}

TEST_F(FindTargetTest, WhatMayNotBeWrittenIsRefusedAlsoIfItIsOCaml) {
  if (::geteuid() != 0) GTEST_SKIP() << "changes its user, which takes root";
  const auto found = find({}, [] { ::setresuid(12345, 12345, 0); });
  // An exec makes the saved user id that of the others.
  EXPECT_TRUE(found) << found.error().why;
  Lookalike{}.write(dir_ / "program");
  ::chown((dir_ / "program").c_str(), 54321, 54321);
  ::chmod((dir_ / "program").c_str(), 04755);
  const LookalikeChild child(dir_ / "program", [] { ::setresuid(12345, 12345, 12345); });
  expect_refused(find(child), EnableResult::privileged, "set-user-ID");
}

TEST_F(FindTargetTest, AProcessThatRunsAnotherProgramByNowIsGone) {
  Lookalike{}.write(dir_ / "program");
  Child child([] {}, [this] { ::execl((dir_ / "program").c_str(), "program", nullptr); });
  auto process = HeldProcess::hold(child.pid(), 0);
  ASSERT_TRUE(process);
  child.go_on();
  expect_refused(find_target(Procfs(), std::move(*process)), EnableResult::gone, "another program");
}

}  // namespace
}  // namespace rtev::enable

// SPDX-License-Identifier: MIT
// A program whose runtime has not set up its events yet, as when a busy host is slow to start it: nothing is prepared
// for it before that. The program is a copy that spins where it would set them up.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "base/parse.hpp"
#include "base/processor.hpp"
#include "base/unique_fd.hpp"
#include "live/harness.hpp"
#include "live/variety.hpp"

namespace rtev::test {
namespace {

class EnableStartLive : public LiveTest {
 protected:
  static constexpr std::size_t code_bytes = 64;
  /// A jump to itself, and what follows.
  inline static const std::string spin = own_processor.elf == EM_X86_64 ? "\xeb\xfe" : std::string("\0\0\0\x14", 4);

  void SetUp() override {
    LiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Outcome names = run({.argv = {"nm", original_.program()}});
    std::istringstream symbols(names.out);
    for (std::string address, kind, name; symbols >> address >> kind >> name;)
      if (name == "caml_runtime_events_init") address_ = std::stoull(address, nullptr, 16);
    ASSERT_NE(address_, 0u) << names.err;
    code_.resize(code_bytes);
    {
      Process whole({.argv = {original_.program()}}, "ready");
      ASSERT_EQ(::pread(open_memory(whole, O_RDONLY).get(), code_.data(), code_bytes, static_cast<off_t>(address_)),
                static_cast<ssize_t>(code_bytes));
    }
    std::ifstream file(original_.program(), std::ios::binary);
    std::string content(std::istreambuf_iterator<char>(file), {});
    const std::size_t place = content.find(code_);
    ASSERT_NE(place, std::string::npos);
    content.replace(place, spin.size(), spin);
    std::ofstream(copy_, std::ios::binary) << content;
    fs::permissions(copy_, fs::perms(0755));
  }
  static UniqueFd open_memory(const Process& process, int flags) {
    return UniqueFd(::open(fmt::format("/proc/{}/mem", process.pid()).c_str(), flags | O_CLOEXEC));
  }
  /// Lets it go on with its start.
  void go_on(const Process& process) const {
    ASSERT_EQ(::pwrite(open_memory(process, O_RDWR).get(), code_.data(), spin.size(), static_cast<off_t>(address_)),
              static_cast<ssize_t>(spin.size()));
  }
  Command enable_command(const Process& process, const std::string& patience) const {
    return {.argv = {tool(), "enable", "-p", std::to_string(process.pid()), "-d", patience}};
  }

  const Variety original_{.ocaml = "5.3", .build = {.kind = "no_pie", .what = "no_pie"}};
  const fs::path copy_ = dir.path() / "slow";
  std::uint64_t address_ = 0;
  std::string code_;
};

TEST_F(EnableStartLive, NothingIsPreparedBeforeItsRuntimeHasSetUpItsEvents) {
  covers("enable", "a program that starts slowly");
  const fs::path rings = dir.path() / "rings", work = dir.path() / "work";
  for (const fs::path& made : {rings, work}) fs::create_directory(made);
  fs::permissions(rings, fs::perms(0700));
  Process process({.argv = {copy_, "await", "again"}, .env = {{"HOME", rings}}, .directory = work});
  Process early(enable_command(process, "1s"));
  bool is_prepared = false;
  while (early.running()) is_prepared = is_prepared || !fs::is_empty(rings) || !fs::is_empty(work);
  EXPECT_FALSE(is_prepared);
  const Outcome too_early = early.wait();
  EXPECT_EQ(too_early.status.code(), 1);
  EXPECT_THAT(too_early.err, HasSubstr("its runtime has not set up its events yet"));

  // The next one waits for it.
  Process enabling(enable_command(process, "30s"));
  go_on(process);
  process.lines_until("ready");
  process.go();
  EXPECT_EQ(enabling.wait().status.code(), 0);
  EXPECT_TRUE(fs::is_empty(work));
  EXPECT_EQ(run_through(process).status.code(), 0);
}

}  // namespace
}  // namespace rtev::test

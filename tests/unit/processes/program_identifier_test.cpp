// SPDX-License-Identifier: MIT
#include "processes/program_identifier.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "support/immediate_queries.hpp"
#include "support/temp_dir.hpp"

namespace rtev {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using enum ProgramIdentifier::Outcome;

constexpr std::int32_t pid = 42;
constexpr std::uint64_t ms = 1'000'000;

/// What a file is, as far as the cache knows.
enum class Kind : std::uint8_t { ocaml, other, needs_library, not_known };

class ProgramIdentifierTest : public testing::Test {
 protected:
  ProgramIdentifierTest() {
    fs::create_directories(proc_ / "42");
    set_maps({});
  }

  /// The process maps this file, with its code.
  void set_maps(const fs::path& file) {
    constexpr const char* range = "10000-11000";
    std::ofstream maps(proc_ / "42/maps");
    if (file.empty()) return;
    maps << range << " r-xp 00000000 fe:01 13 " << file.native() << "\n";
    fs::create_directories(proc_ / "42/map_files");
    fs::create_symlink(file, proc_ / "42/map_files" / range);
  }
  fs::path make(const std::string& name, Kind kind) {
    std::ofstream(dir_ / name) << name;
    if (kind == Kind::not_known) return dir_ / name;
    std::optional<RuntimeBinary> runtime;
    if (kind != Kind::other) runtime.emplace().needs_library = kind == Kind::needs_library;
    cache_.insert(BinaryCache::identify(open(dir_ / name).get()).value(), runtime);
    return dir_ / name;
  }
  static UniqueFd open(const fs::path& path) { return UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)}; }

  ProgramIdentifier::Outcome identify(const fs::path& file) {
    return looked(identifier_.identify(process_, open(file)), process_);
  }
  /// Continues with what looking at the process has found.
  ProgramIdentifier::Outcome looked(ProgramIdentifier::Outcome outcome, TracedProcess& process) {
    queries_.process(now_ns_);
    for (auto& [found_pid, since_ns, runtime] : identifier_.take_looked()) {
      EXPECT_EQ(found_pid, pid);
      outcome = looked(identifier_.found_runtime(process, std::move(runtime)), process);
    }
    return outcome;
  }
  /// Looks again if it is time; `waiting` if it is not.
  ProgramIdentifier::Outcome retry() {
    identifier_.retry(now_ns_);
    return looked(waiting, *table_.find(pid));
  }
  bool is_asked() const { return !queries_.is_idle(); }
  /// Waits for the inspection that was requested.
  void await_inspection() {
    pollfd inspected{.fd = inspector_.event_fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&inspected, 1, 10'000), 1);
    ASSERT_THAT(inspector_.take_inspected(), ElementsAre(process_.program.inspecting.value()));
  }
  /// The process as the table has it: due() looks there.
  void put_into_table() { table_.insert(process_); }

  const test::TempDir dir_, proc_;
  std::uint64_t now_ns_ = 1'000 * ms;
  Registry registry_;
  test::ImmediateQueries queries_{proc_.path()};
  bool is_running_ = true;
  ProcessTable table_{[this](std::int32_t) { return is_running_; }, registry_};
  BinaryCache cache_;
  Inspector inspector_{cache_, [](int, const std::shared_ptr<const Binary>&, std::uint32_t) { return true; }};
  ProgramIdentifier identifier_{queries_, table_, cache_, inspector_, false, [this] { return now_ns_; }};
  TracedProcess process_{.pid = pid, .start_ticks = 70};
};

TEST_F(ProgramIdentifierTest, KnownFile) {
  EXPECT_EQ(identify(make("server", Kind::ocaml)), found);
  EXPECT_EQ(process_.program.binary->id, 1u);
  EXPECT_TRUE(process_.program.exe);
  process_ = {.pid = pid, .start_ticks = 70};
  EXPECT_EQ(identify(make("sh", Kind::other)), not_ocaml);
  EXPECT_FALSE(process_.program.binary);
}

TEST_F(ProgramIdentifierTest, UnknownFileIsInspectedFirst) {
  EXPECT_EQ(identify(make("server", Kind::not_known)), waiting);
  await_inspection();
  EXPECT_EQ(cache_.find(*process_.program.inspecting), nullptr) << "the file is no ELF file";
  EXPECT_EQ(identifier_.resume(process_, nullptr), not_ocaml);
  EXPECT_FALSE(process_.program.inspecting);
}

TEST_F(ProgramIdentifierTest, FileThatCannotBeOpened) {
  EXPECT_EQ(identify("/nowhere"), not_ocaml);
  process_.has_ring = true;
  EXPECT_EQ(identify("/nowhere"), unknown) << "its ring shows that it is an OCaml program";
}

TEST_F(ProgramIdentifierTest, ProcessThatEndedWithoutARingIsOfNoInterest) {
  const fs::path server = make("server", Kind::ocaml);
  is_running_ = false;
  EXPECT_EQ(identify(server), not_ocaml);
  process_.index = 1;
  EXPECT_EQ(identify(server), found) << "it is part of the stream";
  process_.index.reset();
  ProgramIdentifier even_gone(queries_, table_, cache_, inspector_, true, [] { return 0; });
  EXPECT_EQ(even_gone.identify(process_, open(server)), found);
}

TEST_F(ProgramIdentifierTest, RuntimeInALibraryThatIsMapped) {
  const fs::path program = make("server", Kind::needs_library), library = make("libasmrun_shared.so", Kind::ocaml);
  set_maps(library);
  EXPECT_EQ(identify(program), found);
  EXPECT_EQ(process_.program.binary->id, 2u);
  EXPECT_TRUE(process_.program.exe->same_file(BinaryCache::identify(open(program).get()).value()));
}

TEST_F(ProgramIdentifierTest, RuntimeInALibraryOfAnotherVersion) {
  const fs::path program = make("server", Kind::needs_library), library = make("libasmrun_shared.so", Kind::other);
  set_maps(library);
  EXPECT_EQ(identify(program), not_ocaml);
}

TEST_F(ProgramIdentifierTest, LibraryIsLookedForLessAndLessOftenUntilItIsMapped) {
  const fs::path program = make("server", Kind::needs_library), library = make("libasmrun_shared.so", Kind::ocaml);
  EXPECT_EQ(identify(program), waiting);
  put_into_table();
  TracedProcess& process = *table_.find(pid);
  std::uint64_t wait = ms / 2;
  for (int tries = 0; tries < 3; ++tries) {
    EXPECT_EQ(identifier_.next_retry_ns(), now_ns_ + wait);
    identifier_.retry(now_ns_ + wait - 1);
    EXPECT_FALSE(is_asked());
    now_ns_ += wait;
    EXPECT_EQ(retry(), waiting);
    wait *= 2;
  }
  process.has_ring = true;
  set_maps(library);
  identifier_.note_ring(process);
  EXPECT_EQ(looked(waiting, process), found) << "a ring shows that the runtime is there";
  EXPECT_EQ(process.program.runtime_begin, 0x10000u);
  EXPECT_FALSE(identifier_.next_retry_ns());
}

TEST_F(ProgramIdentifierTest, LibraryThatIsNeverMappedIsLookedForOnceAMinute) {
  constexpr std::uint64_t minute = 60'000 * ms;
  EXPECT_EQ(identify(make("server", Kind::needs_library)), waiting);
  put_into_table();
  int tries = 0;
  for (; identifier_.next_retry_ns().value() < now_ns_ + minute; ++tries) {
    now_ns_ = *identifier_.next_retry_ns();
    EXPECT_EQ(retry(), waiting);
  }
  EXPECT_LT(tries, 20);
  now_ns_ += minute;
  EXPECT_EQ(retry(), waiting);
  EXPECT_EQ(identifier_.next_retry_ns(), now_ns_ + minute);
}

TEST_F(ProgramIdentifierTest, OnlySoManyImagesOfAUserWait) {
  constexpr std::int32_t most = ProgramIdentifier::max_waiting_of_user;
  const auto add = [&](std::int32_t new_pid, std::uint32_t user, std::uint64_t due_ns) -> TracedProcess& {
    TracedProcess& process = table_.insert({.pid = new_pid, .start_ticks = 70, .user = user});
    process.program.loading = {.program = nullptr, .due_ns = due_ns, .wait_ns = ms};
    identifier_.await_library(process);
    return process;
  };
  for (std::int32_t i = 1; i <= most; ++i) add(i, 1000, now_ns_ + 2 * ms);
  TracedProcess& further = add(most + 1, 1000, now_ns_ + ms);
  EXPECT_EQ(identifier_.next_retry_ns(), now_ns_ + 2 * ms);
  add(most + 2, 1001, now_ns_ + ms);
  EXPECT_EQ(identifier_.next_retry_ns(), now_ns_ + ms) << "of another user";
  identifier_.note_ring(further);
  EXPECT_TRUE(is_asked());
  identifier_.retry(now_ns_ + 2 * ms);
  EXPECT_FALSE(identifier_.next_retry_ns());
  add(most + 3, 1000, now_ns_ + 3 * ms);
  EXPECT_EQ(identifier_.next_retry_ns(), now_ns_ + 3 * ms) << "the others do not wait any more";
}

TEST_F(ProgramIdentifierTest, ImageThatEndedIsNotLookedAt) {
  EXPECT_EQ(identify(make("server", Kind::needs_library)), waiting);
  put_into_table();
  process_.program.loading->due_ns += ms;
  put_into_table();
  identifier_.retry(now_ns_ + ms);
  EXPECT_FALSE(is_asked()) << "that was the turn of the image before";
  EXPECT_FALSE(identifier_.next_retry_ns());
}

TEST_F(ProgramIdentifierTest, LibraryIsNotAwaitedOnceThereIsARing) {
  process_.has_ring = true;
  EXPECT_EQ(identify(make("server", Kind::needs_library)), unknown);
  EXPECT_FALSE(identifier_.next_retry_ns());
}

TEST_F(ProgramIdentifierTest, ForkedProcessWaitsForTheLibraryOfItsParent) {
  process_.program.loading = {.program = nullptr, .due_ns = now_ns_ + ms, .wait_ns = ms, .asked = true};
  identifier_.await_library(process_);
  put_into_table();
  identifier_.retry(now_ns_);
  EXPECT_FALSE(is_asked());
  identifier_.retry(now_ns_ + ms);
  EXPECT_TRUE(is_asked());
}

/// To the kernel, the loader is the program.
TEST_F(ProgramIdentifierTest, ProgramThatALoaderRuns) {
  const fs::path loader = make("ld.so", Kind::other), server = make("server", Kind::needs_library),
                 library = make("libasmrun_shared.so", Kind::ocaml);
  process_.program.by_loader = true;
  EXPECT_EQ(identify(loader), waiting) << "the program is not mapped yet";
  put_into_table();
  TracedProcess& process = *table_.find(pid);
  set_maps(server);
  now_ns_ += ms;
  EXPECT_EQ(retry(), waiting) << "nor is its library";
  EXPECT_FALSE(process.program.by_loader);
  fs::remove_all(proc_ / "42/map_files");
  set_maps(library);
  now_ns_ += 10 * ms;
  EXPECT_EQ(retry(), found);
  EXPECT_EQ(process.program.binary->id, 2u);
}

}  // namespace
}  // namespace rtev

// SPDX-License-Identifier: MIT
// Files of RingWriter read by OCaml's own reader, compared with files of OCaml's runtime. For the opposite direction
// see reader_live_test.cpp.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <numeric>
#include <rtev/ring_reader.hpp>
#include <rtev/ring_writer.hpp>

#include "live/harness.hpp"
#include "live/oracle.hpp"
#include "ring/layout.hpp"

namespace rtev::test {
namespace {

constexpr Family family = Family::since_5_3;
constexpr std::uint16_t phases_of_5_3 = 48, counters_of_5_3 = 26;

/// Writes events and remembers what OCaml's reader should return.
class CheckedWriter {
 public:
  CheckedWriter(const fs::path& directory, std::uint32_t domains, unsigned log2_words)
      : writer_(*RingWriter::create(
            {.directory = directory, .domains = domains, .log2_words = log2_words, .preserve = true, .clock = [] {
               return ++now_;
             }})) {
    expect(0, "lifecycle", "ring_start", std::to_string(::getpid()));
  }

  RingWriter& writer() { return writer_; }
  Records& expected() { return expected_; }

  void phases(std::uint32_t domain) {
    for (std::uint16_t id = 0; id < phases_of_5_3; ++id) {
      const std::string name(phase_name(family, id));
      check(writer_.domain(domain).begin(*find_phase(family, name)));
      expect(domain, "begin", name, "-");
      check(writer_.domain(domain).end(*find_phase(family, name)));
      expect(domain, "end", name, "-");
    }
  }
  void counter(std::uint32_t domain, std::uint16_t id, std::uint64_t value, const std::string& shown) {
    const std::string name(counter_name(family, id));
    check(writer_.domain(domain).counter(*find_counter(family, name), value));
    expect(domain, "counter", name, shown);
  }
  void counter(std::uint32_t domain, std::uint16_t id, std::uint64_t value) {
    counter(domain, id, value, std::to_string(value));
  }
  void alloc(std::uint32_t domain) {
    std::array<std::uint64_t, alloc_bucket_count> buckets;
    std::iota(buckets.begin(), buckets.end(), 1'000);
    check(writer_.domain(domain).alloc(buckets));
    std::string shown;
    for (const std::uint64_t bucket : buckets) shown += (shown.empty() ? "" : ",") + std::to_string(bucket);
    expect(domain, "alloc", "", shown);
  }
  void lifecycle(std::uint32_t domain, Lifecycle what, std::int64_t datum) {
    check(writer_.domain(domain).lifecycle(what, datum));
    expect(domain, "lifecycle", std::string(lifecycle_name(static_cast<std::uint16_t>(what))), std::to_string(datum));
  }
  void unit(std::uint32_t domain, const std::string& name) {
    check(writer_.domain(domain).write(event(name, UserType::unit)));
    expect(domain, "user_unit", name, "-");
  }
  void number(std::uint32_t domain, const std::string& name, std::int32_t value) {
    check(writer_.domain(domain).write(event(name, UserType::integer), value));
    expect(domain, "user_int", name, std::to_string(value));
  }
  void span(std::uint32_t domain, const std::string& name) {
    check(writer_.domain(domain).begin(event(name, UserType::span)));
    expect(domain, "user_begin", name, "-");
    check(writer_.domain(domain).end(event(name, UserType::span)));
    expect(domain, "user_end", name, "-");
  }
  void custom(std::uint32_t domain, const std::string& name, std::size_t size) {
    std::vector<std::byte> bytes(size);
    std::string hex;
    for (std::size_t i = 0; i < size; ++i) {
      bytes[i] = static_cast<std::byte>(i * 7 + size);
      hex += "0123456789abcdef"[(i * 7 + size) >> 4 & 15];
      hex += "0123456789abcdef"[(i * 7 + size) & 15];
    }
    check(writer_.domain(domain).write(event(name, UserType::custom), bytes));
    expect(domain, "user_custom", name, hex.empty() ? "-" : hex);
  }
  void pause_and_resume(std::uint32_t domain) {
    writer_.pause(domain);
    expect(domain, "lifecycle", "ring_pause", "0");
    writer_.resume(domain);
    expect(domain, "lifecycle", "ring_resume", "0");
  }
  void stop() {
    writer_.stop();
    expect(0, "lifecycle", "ring_stop", "0");
  }

 private:
  UserEvent event(const std::string& name, UserType type) { return writer_.register_event(name, type).value(); }
  static void check(WriteStatus status) { EXPECT_EQ(status, WriteStatus::written); }
  void expect(std::uint32_t domain, const std::string& kind, const std::string& name, const std::string& value) {
    expected_[static_cast<int>(domain)].push_back(record(now_, kind, name, value));
  }

  static inline std::uint64_t now_ = 0;
  RingWriter writer_;
  Records expected_;
};

class WriterLive : public LiveTest {
 protected:
  Records read_by_ocaml() const { return oracle(dir.path(), ::getpid()); }
};

TEST_F(WriterLive, OcamlReadsEveryKind) {
  CheckedWriter checked(dir.path(), 3, 14);
  checked.phases(1);
  for (std::uint16_t id = 0; id < counters_of_5_3; ++id) checked.counter(1, id, id * 1'000'003u);
  checked.counter(1, 4, 0x3fff'ffff'ffff'ffff);
  checked.counter(1, 4, UINT64_MAX, "-1");  // OCaml keeps 63 bits
  checked.alloc(2);
  checked.lifecycle(2, Lifecycle::domain_spawn, ::getpid());
  checked.lifecycle(2, Lifecycle::fork_parent, 12345);
  checked.lifecycle(2, Lifecycle::fork_child, 0);
  checked.lifecycle(2, Lifecycle::domain_terminate, ::getpid());
  checked.pause_and_resume(0);
  checked.unit(0, "plain");
  checked.unit(0, "αβγ – 事件");
  checked.unit(0, "say \"hi\" \\ done");
  for (const std::int32_t value : {0, 1, -1, INT32_MAX, INT32_MIN}) checked.number(1, "number", value);
  checked.span(2, "request");
  for (const std::size_t size : {0, 1, 6, 7, 8, 9, 255, 1023, 1024}) checked.custom(0, "blob", size);
  checked.stop();
  EXPECT_EQ(difference(checked.expected(), read_by_ocaml()), "");
}

TEST_F(WriterLive, OcamlFollowsEventsRegisteredLater) {
  CheckedWriter checked(dir.path(), 2, 12);
  checked.unit(0, "early");
  FollowingOracle follower(dir.path(), ::getpid());
  checked.unit(0, "of nobody's vocabulary");
  checked.number(1, "late number", -5);
  checked.span(0, "late span");
  checked.custom(1, "blob", 33);
  checked.stop();
  EXPECT_EQ(difference(checked.expected(), follower.take()), "");
}

TEST_F(WriterLive, OcamlReadsARingThatWrappedAround) {
  CheckedWriter checked(dir.path(), 1, 8);
  for (std::size_t i = 0; i < 200; ++i) {
    checked.custom(0, "blob", i * 31 % 900);
    checked.span(0, "request");
    checked.counter(0, 5, i);
  }
  Records read = read_by_ocaml();
  auto reader = RingReader::open(ring_of(::getpid()));
  ASSERT_TRUE(reader);
  const auto overwritten = reader->accounting().before_attach + reader->accounting().lost;
  ASSERT_GT(overwritten, 0u);
  EXPECT_EQ(read[0].front(), record(0, "lost", "", std::to_string(overwritten)));
  read[0].erase(read[0].begin());
  auto& expected = checked.expected()[0];
  ASSERT_LT(read[0].size(), expected.size());
  ASSERT_GT(read[0].size(), 3u);
  expected.erase(expected.begin(), expected.end() - std::ssize(read[0]));
  EXPECT_EQ(difference(checked.expected(), read), "");
}

TEST_F(WriterLive, OcamlFollowsAWrappingRing) {
  // 131 words, 65, and 78, which do not fit into the last 60 words of the ring.
  CheckedWriter checked(dir.path(), 1, 8);
  checked.custom(0, "blob", 1000);
  FollowingOracle follower(dir.path(), ::getpid());
  for (const std::size_t size : {500, 600}) checked.custom(0, "blob", size);
  EXPECT_EQ(difference(checked.expected(), follower.take()), "");
}

TEST_F(WriterLive, FileDiffersFromOcamlsByTheMarkOnly) {
  Command command = preserved("hello");
  command.env["OCAMLRUNPARAM"] = "e=9,d=4";
  const auto ocamls = ring_of(run_to_end(command));
  CheckedWriter checked(dir.path(), 4, 9);
  const auto ours = ring_of(::getpid());
  EXPECT_EQ(read_file(ours).substr(0, sizeof(FileHeader)), read_file(ocamls).substr(0, sizeof(FileHeader)));
  EXPECT_EQ(fs::file_size(ours), fs::file_size(ocamls) + sizeof(ProducerMark));
  EXPECT_EQ(fs::status(ours).permissions(), fs::status(ocamls).permissions());
  EXPECT_EQ(RingReader::open(ocamls)->producer(), std::nullopt);
  EXPECT_EQ(RingReader::open(ours)->producer(), (Producer{.name = "librtev", .family = family}));
}

TEST_F(WriterLive, RuntimeThatTakesTheFileOverRemovesTheMark) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = RingWriter::create({.directory = dir.path(), .domains = 4, .log2_words = 12, .preserve = true});
    writer->domain(3).begin(Phase{1});
    if (std::freopen("/dev/null", "w", stdout) == nullptr) ::_exit(126);
    const std::string directory = "OCAML_RUNTIME_EVENTS_DIR=" + dir.path().string();
    const std::string program = ocaml_program("hello");
    const char* const environment[] = {directory.c_str(), "OCAML_RUNTIME_EVENTS_START=1",
                                       "OCAML_RUNTIME_EVENTS_PRESERVE=1", "OCAMLRUNPARAM=e=12,d=4", nullptr};
    const char* const arguments[] = {program.c_str(), nullptr};
    ::execve(program.c_str(), const_cast<char**>(arguments), const_cast<char**>(environment));
    ::_exit(127);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto reader = RingReader::open(ring_of(child));
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ(reader->producer(), std::nullopt);
  EXPECT_EQ(reader->accounting(3).written, 0u);
  EXPECT_GT(reader->accounting(0).written, 0u);
}

}  // namespace
}  // namespace rtev::test

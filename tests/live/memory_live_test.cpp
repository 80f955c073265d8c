// SPDX-License-Identifier: MIT
// Maximum resident memory in reports: of ended programs, of running ones, and from recordings.

#include "live/analysis_fixture.hpp"

namespace rtev::test {
namespace {

constexpr std::uint64_t mib = 1 << 20;

class MemoryLive : public AnalysisLive {
 protected:
  /// Expects about that much memory. A tolerance is needed: the kernel counts pages of each cpu in batches.
  static void expect_about(const Json& bytes, std::uint64_t held) {
    ASSERT_TRUE(bytes.is_number_unsigned()) << bytes;
    EXPECT_THAT(bytes.get<std::uint64_t>(), AllOf(Ge(held - held / 16), Lt(2 * held + 32 * mib)));
  }
  /// The images of the only process, in the order in which they ran.
  static std::vector<Json> images(const Json& report) {
    std::vector<Json> images = report["processes"];
    std::ranges::sort(images, {}, [](const Json& image) { return image["begin_ns"].get<std::uint64_t>(); });
    return images;
  }
};

TEST_F(MemoryLive, EndedProgramHasItsMaximum) {
  const auto [report, out, status] = report_of({"stats"}, {ocaml_program("memory"), "64"});
  EXPECT_EQ(status.code(), 0);
  ASSERT_EQ(report["processes"].size(), 1u) << report;
  expect_about(report["processes"][0]["max_rss_bytes"], 64 * mib);
}

TEST_F(MemoryLive, RecordingHasTheMaximum) {
  for (const char* file : {"run.fxt", "run.fxt.gz"}) {
    SCOPED_TRACE(file);
    const std::string path = record(file, {ocaml_program("memory"), "64"}).path;
    const Json of_recording = report({"stats", "-i", path});
    ASSERT_EQ(of_recording["processes"].size(), 1u) << of_recording;
    expect_about(of_recording["processes"][0]["max_rss_bytes"], 64 * mib);
    expect_about(dumped(path).summary["processes"][0]["max_rss_bytes"], 64 * mib);
  }
}

TEST_F(MemoryLive, ExcludesEarlierProgramsOfTheProcess) {
  const std::string path = record("run.fxt", {ocaml_program("memory"), "64", "1", "160"}).path;
  const std::vector<Json> ran = images(report({"stats", "-i", path}));
  ASSERT_EQ(ran.size(), 3u);
  expect_about(ran[0]["max_rss_bytes"], 64 * mib);
  EXPECT_EQ(ran[1]["max_rss_bytes"], nullptr) << "less than the first had; how much is unknown";
  expect_about(ran[2]["max_rss_bytes"], 160 * mib);
}

TEST_F(MemoryLive, RunningProgramHasItsMaximumSoFar) {
  Process process(with_events("busy_alloc", {"30"}), "ready");
  Tracer tracer({"-p", std::to_string(process.pid())});
  process.go_until("done");
  const Trace trace = tracer.stop();
  const Json entry = trace.process(process.pid());
  ASSERT_TRUE(entry["max_rss_bytes"].is_number_unsigned()) << entry;
  EXPECT_THAT(entry["max_rss_bytes"].get<std::uint64_t>(), AllOf(Ge(mib), Lt(256 * mib)));
}

}  // namespace
}  // namespace rtev::test

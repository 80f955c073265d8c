// SPDX-License-Identifier: MIT
// Files of profiles: what is in them, and that no name can break them.
#include "formats/profile/profile_files.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/pprof_check.hpp"
#include "unit/analysis/profile/profile_fixture.hpp"

namespace rtev::test {
namespace {

using testing::AllOf, testing::ElementsAre, testing::HasSubstr, testing::Not, testing::SizeIs;

class ProfileFilesTest : public ProfileTest {
 protected:
  void run() {
    samples(100, {"main", "App.run:1", "App.parse:7"}, 3);
    samples(200, {"main", "App.run:2", "App.parse:8"}, 1);
    sample(300, a_sample(stack({"main", "App.run:1", "md5"}), 1));
  }
  /// The data of a flame graph.
  static nlohmann::json html_data(const std::string& html) {
    const std::string begin = "<script id=\"data\" type=\"application/json\">";
    const std::size_t at = html.find(begin) + begin.size();
    return nlohmann::json::parse(html.substr(at, html.find("</script>", at) - at));
  }
};

TEST_F(ProfileFilesTest, SuffixesChooseThem) {
  EXPECT_EQ(profile_file_of("a.folded"), ProfileFile::folded);
  EXPECT_EQ(profile_file_of("a.pb.gz"), ProfileFile::pprof);
  EXPECT_EQ(profile_file_of("dir.x/a.speedscope.json"), ProfileFile::speedscope);
  EXPECT_EQ(profile_file_of("a.html"), ProfileFile::html);
  for (const char* const other : {"a.json", "a.gz", "a.pb", "a", "", "a.htm"}) EXPECT_FALSE(profile_file_of(other));
}

TEST_F(ProfileFilesTest, FoldedStacksAreMergedByFunction) {
  run();
  EXPECT_EQ(folded_stacks(report()), "server/4242;main;App.run;App.parse 4\nserver/4242;main;App.run;md5 1\n");
}

TEST_F(ProfileFilesTest, FoldedSleepsAreMicroseconds) {
  make({.kind = SampleKind::off_cpu});
  sample(100, a_sample(stack({"main", "read"})), SampleKind::off_cpu);
  EXPECT_EQ(folded_stacks(report()), "server/4242;main;read 10000\n");
}

TEST_F(ProfileFilesTest, FoldedNamesHaveNoSemicolons) {
  samples(100, {"main", "a;b"}, 1);
  EXPECT_EQ(folded_stacks(report()), "server/4242;main;a,b 1\n");
}

TEST_F(ProfileFilesTest, AnonymousFunctionsHaveTheirLines) {
  samples(100, {"App.run:1", "App.(fun):3"}, 2);
  samples(200, {"App.run:1", "App.(fun):9"}, 1);
  EXPECT_EQ(folded_stacks(report()), "server/4242;App.run;App.(fun):3 2\nserver/4242;App.run;App.(fun):9 1\n");
  EXPECT_THAT(read_pprof(pprof_profile(report())).stacks.front().frames,
              ElementsAre("App.(fun):3 src/app.ml:3", "App.run src/app.ml:1"));
}

TEST_F(ProfileFilesTest, Pprof) {
  profile->header({.version = "1.2", .start_ns = 1, .start_realtime_ns = 1'700'000'000'000'000'000});
  run();
  const PprofContent content = read_pprof(gunzip(profile_file(report(), ProfileFile::pprof)));
  EXPECT_THAT(content.sample_types, ElementsAre("samples/count", "cpu/nanoseconds"));
  ASSERT_THAT(content.stacks, SizeIs(3));
  const PprofStack& first = content.stacks.front();
  EXPECT_THAT(first.frames, ElementsAre("App.parse src/app.ml:7", "App.run src/app.ml:1", "main"));
  EXPECT_THAT(first.values, ElementsAre(3, 3 * period));
  EXPECT_EQ(first.labels.at("process"), "server");
  EXPECT_EQ(first.labels.at("pid"), "4242");
  EXPECT_EQ(first.labels.at("domain"), "0");
  EXPECT_EQ(content.build_ids.at("/usr/bin/server"), "abcd");
  EXPECT_EQ(content.period, static_cast<std::int64_t>(period));
  EXPECT_EQ(content.time_ns, 1'700'000'000'000'000'000);
  EXPECT_EQ(content.duration_ns, 1'000'000'000);
}

TEST_F(ProfileFilesTest, SayWhichRunTheyAreOf) {
  profile->header({.version = "1.2",
                   .host = "shop-1",
                   .command_line = {"rtev-bpf", "profile", "--", "./server", "\x1b"},
                   .start_ns = 1,
                   .start_realtime_ns = 1'700'000'000'000'000'000});
  run();
  EXPECT_THAT(read_pprof(pprof_profile(report())).comments,
              ElementsAre("rtev-bpf 1.2", "shop-1", "rtev-bpf profile -- ./server \\x1B"));
  EXPECT_THAT(flame_graph_html(report()),
              HasSubstr(">2023-11-14T22:13:20Z, shop-1, rtev-bpf profile -- ./server \\x1B</p>"));
}

TEST_F(ProfileFilesTest, PprofOfAllocations) {
  make({.kind = SampleKind::allocation});
  sample(100, a_sample(stack({"App.run:1", "caml_call_gc"})), SampleKind::allocation);
  feed(Events(world.slot).add(100, EventKind::counter, counter_minor_allocated, 4096));
  const PprofContent content = read_pprof(pprof_profile(report()));
  EXPECT_THAT(content.sample_types, ElementsAre("samples/count", "alloc_space/bytes"));
  EXPECT_THAT(content.stacks.at(0).values, ElementsAre(1, 4096));
}

TEST_F(ProfileFilesTest, PprofOfAllocationsWhoseSizesAreUnknown) {
  make({.kind = SampleKind::allocation});
  sample(100, a_sample(stack({"App.run:1", "caml_call_gc"})), SampleKind::allocation);
  EXPECT_THAT(read_pprof(pprof_profile(report())).sample_types, ElementsAre("samples/count", "alloc_samples/count"));
}

TEST_F(ProfileFilesTest, SpeedscopeHasAProfileForEachDomain) {
  run();
  const auto json = nlohmann::json::parse(speedscope_profile(report()));
  ASSERT_EQ(json["profiles"].size(), 2U);
  const auto& first = json["profiles"][0];
  EXPECT_EQ(first["name"], "server/4242 domain 0");
  EXPECT_EQ(first["unit"], "nanoseconds");
  EXPECT_EQ(first["endValue"], 4 * period);
  EXPECT_EQ(first["weights"], nlohmann::json({3 * period, period}));
  std::vector<std::string> frames;
  for (const auto& index : first["samples"][0]) frames.push_back(json["shared"]["frames"][index.get<int>()]["name"]);
  EXPECT_THAT(frames, ElementsAre("main", "App.run", "App.parse"));
}

TEST_F(ProfileFilesTest, FlameGraphHtml) {
  run();
  const std::string html = flame_graph_html(report());
  EXPECT_THAT(html, HasSubstr("<title>CPU time of server/4242</title>"));
  EXPECT_THAT(html, Not(HasSubstr("http://")));
  EXPECT_THAT(html, Not(HasSubstr("https://")));
  const auto data = html_data(html);
  // all, the process, main, App.run, App.parse, md5
  ASSERT_EQ(data["nodes"].size(), 4u * 6);
  EXPECT_EQ(data["nodes"][2], 5 * period);
  EXPECT_EQ(data["nodes"][3], 5);
  EXPECT_EQ(data["names"][data["functions"][0][0].get<int>()][0], "App.parse");
}

TEST_F(ProfileFilesTest, FlameGraphHtmlSaysWhereTheTimeGoesWithoutScripts) {
  for (int function = 0; function < 12; ++function)
    samples(100, {"main", "App.f" + std::to_string(function) + "<:7"}, 20 - function);
  const ProfileReport found = report();
  std::string html = flame_graph_html(found);
  html.resize(html.find("<script"));
  EXPECT_THAT(html, HasSubstr("<h1>CPU time of server/4242</h1>"));
  EXPECT_THAT(html, HasSubstr("174 samples in 1.00s stand for 1.74s."));
  EXPECT_THAT(html, HasSubstr("<tr><td>11%<td>11%<td>20<td>App.f0&lt;<td>app.ml:7</tr>"));
  EXPECT_THAT(html, HasSubstr("App.f9&lt;"));
  EXPECT_THAT(html, Not(HasSubstr("App.f10&lt;"))) << "only the first ten";
}

TEST_F(ProfileFilesTest, OfAComparisonTheyHaveWhatIsInside) {
  world.user_names = {{1, "request"}};
  make({.in = SpanCondition{.pattern = "request", .min_ns = 100}});
  play("1000 [1");
  samples(1010, {"App.slow:1"}, 2);
  play("1200 ]1");
  samples(2000, {"App.fast:1"}, 5);
  const ProfileReport found = report();
  EXPECT_EQ(folded_stacks(found), "server/4242;App.slow 2\n");
  EXPECT_THAT(read_pprof(pprof_profile(found)).stacks, SizeIs(1));
  EXPECT_EQ(html_data(flame_graph_html(found))["nodes"][3], 2);
}

TEST_F(ProfileFilesTest, WithoutSamplesTheyAreValid) {
  const ProfileReport found = report();
  EXPECT_EQ(folded_stacks(found), "");
  EXPECT_THAT(read_pprof(pprof_profile(found)).stacks, SizeIs(0));
  EXPECT_EQ(nlohmann::json::parse(speedscope_profile(found))["profiles"].size(), 1U);
  EXPECT_THAT(flame_graph_html(found), AllOf(HasSubstr("<p>no samples</p>"), Not(HasSubstr("<table"))));
}

TEST_F(ProfileFilesTest, NoNameBreaksThem) {
  StackTable& stacks = world.registry.stacks();
  std::vector<std::string> names = hostile_strings();
  names.insert(names.end(),
               {"</script><script>alert(1)</script>", "<!--", "a;b 5", "@@", "<img src=x onerror=alert(1)>"});
  for (const std::string& name : names) {
    make({});
    world.registry.process(world.process).name = world.registry.process(world.process).comm = name;
    const FrameIndex frame = stacks.add_frame(
        {.kind = FrameKind::ocaml, .line = 3, .function = name, .file = name, .object = name, .build_id = name});
    sample(100, a_sample(stacks.add_stack(stacks.add_stack(0, frame), frame)));
    const ProfileReport found = report();

    const std::string folded = folded_stacks(found);
    EXPECT_EQ(std::ranges::count(folded, '\n'), 1);
    EXPECT_EQ(std::ranges::count(folded, ';'), 2);
    EXPECT_TRUE(folded.ends_with(" 1\n"));
    EXPECT_THAT(read_pprof(pprof_profile(found)).stacks.at(0).frames, SizeIs(2));
    EXPECT_TRUE(nlohmann::json::accept(speedscope_profile(found)));
    const std::string html = flame_graph_html(found);
    EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
    EXPECT_THAT(html, Not(HasSubstr("<img")));
    EXPECT_THAT(html, Not(HasSubstr("<!--")));
    EXPECT_EQ(html_data(html)["nodes"].size(), 4u * 4);
  }
}

TEST_F(ProfileFilesTest, TheirSizeIsBounded) {
  // Each prefix of a deep stack is a path of its own.
  const auto samples_with = [&](const std::string& name) {
    make({});
    StackTable& stacks = world.registry.stacks();
    StackIndex index = 0;
    for (std::uint32_t depth = 0; depth < 4000; ++depth) {
      const std::string function = name + std::to_string(depth);
      index = stacks.add_stack(index, stacks.add_frame({.kind = FrameKind::ocaml, .function = function}));
      sample(100, a_sample(index));
    }
    return report();
  };
  const std::string folded = folded_stacks(samples_with(std::string(1000, 'x')));
  EXPECT_LT(folded.size(), 80u << 20);
  EXPECT_THAT(folded.substr(folded.rfind('\n', folded.size() - 2)), HasSubstr("\n[left out] "));
  std::int64_t samples = 0;
  for (const PprofStack& stack : read_pprof(pprof_profile(samples_with("f"))).stacks) samples += stack.values.at(0);
  EXPECT_EQ(samples, 4000) << "what is left out is counted";
}

}  // namespace
}  // namespace rtev::test

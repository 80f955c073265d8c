// SPDX-License-Identifier: MIT
// The HTML report: its figures are those of the reports, it loads nothing, and no name breaks it.
#include "formats/report/html_report.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base64.hpp"
#include "base/escape.hpp"
#include "base/html_text.hpp"
#include "base/text_format.hpp"
#include "formats/output/output.hpp"
#include "support/html_report_data.hpp"
#include "unit/analysis/html_report/html_report_stream.hpp"
#include "web/embedded_files.hpp"

namespace rtev::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class HtmlReportTest : public testing::Test {
 protected:
  std::string html() {
    HtmlReportSink sink({.input = "server.fxt"});
    stream.run(sink);
    return html_report(sink.report(world.registry));
  }

  /// What is left where policies allow neither.
  static std::string without_style_and_script(std::string text) {
    for (const auto& [begin, end] : {std::pair{"<style", "</style>"}, {"<script", "</script>"}}) {
      for (std::size_t at; (at = text.find(begin)) != std::string::npos;)
        text.erase(at, text.find(end, at) + std::string_view(end).size() - at);
    }
    return text;
  }

  World world;
  HtmlReportStream stream{world};
};

TEST_F(HtmlReportTest, ItsFiguresAreThoseOfTheReports) {
  stream.collects = true;
  const json data = report_data_of(html());
  Stats stats;
  StringOutput unused;
  Latency latency({}, unused);
  Pauses pauses({.input = "server.fxt"});
  Spans spans({.pattern = "*"});
  Stalls stalls({});
  for (Sink* const sink : std::vector<Sink*>{&stats, &latency, &pauses, &spans, &stalls}) stream.run(*sink);
  EXPECT_EQ(data["stats"], json::parse(stats.report_json(world.registry)));
  EXPECT_EQ(data["latency"], json::parse(latency.report_json(world.registry)));
  EXPECT_EQ(data["pauses"], json::parse(pauses.report_json()));
  json all_spans = json::parse(spans.report_json());
  for (json& span : all_spans["spans"]) span["slowest"].get_ref<json::array_t&>().resize(3);  // as many as a report has
  EXPECT_EQ(data["spans"], all_spans);
  EXPECT_EQ(data["stalls"], json::parse(stalls.report_json()));
}

TEST_F(HtmlReportTest, SumsOverTimeAreThoseOfTheReports) {
  const json data = report_data_of(html());
  const json& series = data["series"];
  std::uint64_t pauses = 0, paused_ns = 0, longest_ns = 0, bytes = 0, sections = 0;
  for (std::size_t i = 2; i < series["pauses"].size(); i += 3) pauses += series["pauses"][i].get<std::uint64_t>();
  for (const auto& ns : series["paused_ns"]) {
    EXPECT_LE(ns, 2 * series["width_ns"].get<std::uint64_t>()) << "there are two domains";
    paused_ns += ns.get<std::uint64_t>();
  }
  for (const auto& ns : series["longest_ns"]) longest_ns = std::max(longest_ns, ns.get<std::uint64_t>());
  for (const auto& column : series["minor_bytes"]) bytes += column.get<std::uint64_t>();
  for (const auto& column : series["sections"]) sections += column.get<std::uint64_t>();
  EXPECT_EQ(pauses, data["latency"]["all"]["count"]);
  EXPECT_EQ(paused_ns, data["latency"]["all"]["total_ns"]);
  EXPECT_EQ(longest_ns, data["latency"]["all"]["max_ns"]);
  EXPECT_EQ(bytes, data["stats"]["total"]["words"]["minor"].get<std::uint64_t>() * 8);
  EXPECT_EQ(sections, data["stats"]["total"]["stw_led"]);
  EXPECT_EQ(data["arrivals"]["count"], stream.rounds);
  EXPECT_EQ(data["arrivals"]["last"][0]["domain"], 1);
}

TEST_F(HtmlReportTest, EachOfTheWorstPausesHasATimeline) {
  const json data = report_data_of(html());
  ASSERT_EQ(data["timeline_of"].size(), data["pauses"]["pauses"].size());
  for (const auto& index : data["timeline_of"]) EXPECT_LT(index.get<std::size_t>(), data["timelines"].size());
  EXPECT_EQ(data["causes"].size(), data["pauses"]["groups"].size());
}

TEST_F(HtmlReportTest, WithoutScriptsItHasVerdictFindingsAndTiles) {
  stream.collects = true;
  HtmlReportSink sink({.input = "server.fxt"});
  stream.run(sink);
  const HtmlReport report = sink.report(world.registry);
  const std::string text = without_style_and_script(html_report(report));
  EXPECT_THAT(text, HasSubstr("<title>server/4242 - rtev-bpf report</title>"));
  EXPECT_THAT(text, HasSubstr(" · from server.fxt</p>"));
  EXPECT_THAT(text_between(text, "<section id=\"verdict\"", "</section>"),
              HasSubstr(std::string(to_string(report.findings.front().score))));
  for (const Finding& finding : report.findings) {
    EXPECT_THAT(text, HasSubstr(html_text(finding.title)));
    EXPECT_THAT(text, HasSubstr(html_text(finding.text)));
    EXPECT_THAT(text, HasSubstr(html_text(finding.command)));
  }
  const Histogram& pauses = report.latency.all.wall;
  EXPECT_THAT(text, HasSubstr(fmt::format("<dt>longest pause</dt><dd>{}<span", Duration{pauses.max()})));
  EXPECT_THAT(text, HasSubstr(fmt::format("<dt>pauses</dt><dd>{}<span", Grouped{pauses.count()})));
  EXPECT_THAT(text, HasSubstr("<dt>lost of rings</dt><dd>nothing<span"));
}

TEST_F(HtmlReportTest, LoadsNothingAndIsSmallWithoutItsData) {
  const std::string text = html();
  for (const char* const scheme : {"http://", "https://", "ws://", "url(//", "src=", "@import"}) {
    std::string rest = text;
    // The name of a namespace is none of an address.
    for (std::size_t at; (at = rest.find("http://www.w3.org/2000/svg")) != std::string::npos;) rest.erase(at, 26);
    EXPECT_THAT(rest, Not(HasSubstr(scheme)));
  }
  EXPECT_LE(text.size() - packed_report_data(text).size(), 80'000u);
  EXPECT_THAT(text, HasSubstr("default-src 'none'; style-src 'sha256-"));
  EXPECT_THAT(text, Not(HasSubstr("unsafe")));
}

// That the hashes are right is seen in a browser: PagesLive.
TEST_F(HtmlReportTest, ThePolicyAllowsItsOwnScriptAndStyle) {
  const std::string text = html();
  const std::string policy = text_between(text, "http-equiv=\"Content-Security-Policy\" content=\"", "\">");
  EXPECT_EQ(text_between(text, "<style>", "</style>"), web::report_style.text);
  EXPECT_THAT(policy, HasSubstr("style-src 'sha256-" + base64(web::report_style.sha256) + "'"));
  EXPECT_EQ(text_between(text, "<script>", "</script>"), web::report_script.text);
  EXPECT_THAT(policy, HasSubstr("script-src 'sha256-" + base64(web::report_script.sha256) + "'"));
}

TEST_F(HtmlReportTest, NoNameBreaksIt) {
  std::vector<std::string> names = hostile_strings();
  names.insert(names.end(), {"</script><script>owned=1</script>", "<!--", "<img src=x onerror=owned=1>", "@@", "{}"});
  stream.rounds = 12;
  for (const std::string& name : names) {
    world.registry.process(world.process).name = world.registry.process(world.process).comm = name;
    world.registry.process(world.process).exe = name;
    world.user_names[1] = name;
    const std::string text = html();
    EXPECT_THAT(text, Not(HasSubstr("<script>owned")));
    EXPECT_THAT(text, Not(HasSubstr("<img")));
    EXPECT_EQ(printable_message(without_style_and_script(text)), without_style_and_script(text)) << "nothing unseen";
    EXPECT_NO_THROW(report_data_of(text)) << name;
    EXPECT_TRUE(std::ranges::all_of(packed_report_data(text),
                                    [](char c) { return std::isalnum(c) || c == '+' || c == '/' || c == '='; }));
  }
}

TEST_F(HtmlReportTest, WithoutEventsItIsValid) {
  stream.rounds = 0;
  const json data = report_data_of(html());
  EXPECT_EQ(data["latency"]["all"]["count"], 0);
  HtmlReportSink sink({});
  const std::string empty = without_style_and_script(html_report(sink.report(world.registry)));
  EXPECT_THAT(empty, HasSubstr("<h1 id=\"title\">no OCaml process</h1>"));
  EXPECT_THAT(empty, HasSubstr("<a href=\"#method\">No OCaml process was seen</a>"));
}

TEST_F(HtmlReportTest, AnHourIsNoLargerThanAFewMegabytes) {
  stream.rounds = 36'000;
  EXPECT_LT(html().size(), 5'000'000u);
}

}  // namespace
}  // namespace rtev::test

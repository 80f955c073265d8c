// SPDX-License-Identifier: MIT
#include "metrics/user_metrics.hpp"

#include "unit/metrics/metrics_fixture.hpp"

namespace rtev::test {
namespace {

class UserMetricsTest : public MetricsTest {
 protected:
  UserMetricsTest() {
    world.user_names = {{1, "request"}, {2, "db.query"},         {3, "db.commit"},
                        {4, "queue"},   {5, "trace.span.enter"}, {6, "trace.span.exit"}};
    make({.user = {.events = {"db.*"}, .spans = {"request", "db.query"}, .values = {"queue"}}});
  }
};

TEST_F(UserMetricsTest, NothingIsCountedThatWasNotAskedFor) {
  make({});
  play("100 [1 200 ]1");
  for (const auto& [name, family] : collected().families) EXPECT_FALSE(name.starts_with("ocaml_user_")) << name;
}

TEST_F(UserMetricsTest, GlobsChooseNames) {
  feed(Events(world.slot)
           .add("100 [1 150 [2 250 ]2 400 ]1")
           .add(500, EventKind::user_unit, 3)
           .add(600, EventKind::user_int, 4, static_cast<std::uint64_t>(-7))
           .add(700, EventKind::user_int, 4, static_cast<std::uint64_t>(-9)));
  EXPECT_EQ(histogram("ocaml_user_span_duration{group=server,span=request}").sum_ns(), 300U);
  EXPECT_EQ(histogram("ocaml_user_span_duration{group=server,span=db.query}").sum_ns(), 100U);
  EXPECT_EQ(value("ocaml_user_events{group=server,event=db.query}"), 1);  // its begin
  EXPECT_EQ(value("ocaml_user_events{group=server,event=db.commit}"), 1);
  EXPECT_EQ(value("ocaml_user_events{group=server,event=request}"), std::nullopt);
  EXPECT_EQ(value("ocaml_user_value{group=server,name=queue}"), -9);
}

TEST_F(UserMetricsTest, SpansOfLibrariesHaveTheirOwnNames) {
  feed(Events(world.slot)
           .add_bytes(100, EventKind::user_custom, "request", 5)
           .add_bytes(300, EventKind::user_custom, "request", 6)
           .add_bytes(400, EventKind::user_custom, "unknown", 5)
           .add_bytes(500, EventKind::user_custom, "unknown", 6));
  EXPECT_EQ(histogram("ocaml_user_span_duration{group=server,span=request}").sum_ns(), 200U);
  EXPECT_EQ(collected().histograms.count("ocaml_user_span_duration{group=server,span=unknown}"), 0U);
}

TEST_F(UserMetricsTest, ASpanWhoseBeginWasLostCountsNothing) {
  play("100 [1 200 ? 300 ]1 400 ]2 500 [1@1");
  feed(Events(world.slot).add(600, Lifecycle::domain_terminate, 0, 1));
  play("700 ]1@1");
  EXPECT_EQ(collected().histograms.count("ocaml_user_span_duration{group=server,span=request}"), 0U);
}

TEST_F(UserMetricsTest, ANameMayComeLate) {
  world.user_names.erase(2);
  play("100 [2 200 ]2");
  EXPECT_EQ(collected().histograms.count("ocaml_user_span_duration{group=server,span=db.query}"), 0U);
  world.user_names[2] = "db.query";
  play("300 [2 500 ]2");
  EXPECT_EQ(histogram("ocaml_user_span_duration{group=server,span=db.query}").sum_ns(), 200U);
}

TEST_F(UserMetricsTest, NamesAreFewShortAndPrintable) {
  make({.user = {.events = {"*"}}});
  world.user_names[0] = std::string(1000, 'x') + "\n";
  for (std::uint16_t id = 1; id <= 100; ++id) world.user_names[id] = fmt::format("\x1b name {}", id);
  for (std::uint16_t id = 0; id <= 100; ++id) feed(Events(world.slot).add(100, EventKind::user_unit, id));
  std::int64_t sum = 0;
  std::size_t names = 0;
  for (const auto& [series, amount] : collected().values) {
    if (!series.starts_with("ocaml_user_events{")) continue;
    sum += amount;
    ++names;
    EXPECT_LT(series.size(), 200U);
    EXPECT_FALSE(series.contains('\x1b')) << series;
  }
  EXPECT_EQ(sum, 101);
  EXPECT_EQ(names, UserFigures::max_names + 1);
  EXPECT_EQ(value("ocaml_user_events{group=server,event=other}"),
            101 - static_cast<std::int64_t>(UserFigures::max_names));
}

TEST_F(UserMetricsTest, AnotherProgramMayGiveAnIdAnotherName) {
  play("100 [1 200 ]1");
  process(300, ProcessAction::exit);
  const ProcessIndex next = add_process(5, "server");
  world.user_names[1] = "db.query";
  feed(Events(world.add_ring(next)).add("400 [1 450 ]1"));
  EXPECT_EQ(histogram("ocaml_user_span_duration{group=server,span=db.query}").sum_ns(), 50U);
}

}  // namespace
}  // namespace rtev::test

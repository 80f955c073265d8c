// SPDX-License-Identifier: MIT
#include "cli/agent/agent_run.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "agent/listen_socket.hpp"
#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/text_format.hpp"
#include "base/utc_time.hpp"
#include "cli/messages.hpp"
#include "cli/tracing.hpp"
#include "formats/output/output.hpp"
#include "metrics/otlp.hpp"
#include "metrics/own_metrics.hpp"
#include "metrics/prometheus_text.hpp"
#include "rtev/version.hpp"
#include "stream/run_clock.hpp"

namespace rtev::cli {
namespace {

/// Metrics are looked at every few seconds at most, and a look at a ring costs the same whatever is in it.
constexpr std::chrono::milliseconds agent_delay{1000};

/// How long both agents read at least: what began before the next one did and ends after it has taken over is not
/// seen whole by either. At most, for a flight recorder that keeps more.
constexpr std::uint64_t min_overlap_ns = 2'000'000'000, max_overlap_ns = 60'000'000'000;
/// How far ahead the time is from which on the next one counts: the last one must learn it before.
constexpr std::uint64_t ahead_ns = 500'000'000, max_ahead_ns = 10'000'000'000;
/// How long the last one may take to give its figures: it completes a dump first.
constexpr std::uint64_t figures_timeout_ns = 60'000'000'000;
/// How long /healthz says what is lost before the agent ends.
constexpr std::uint64_t loss_notice_ns = 1'000'000'000;
/// How long requests for metrics that the last one has taken may take.
constexpr std::uint64_t last_answers_ns = 3'000'000'000;

std::uint64_t ns_of(std::chrono::nanoseconds time) {
  return static_cast<std::uint64_t>(time.count());
}

UniqueFd copy_of(int fd) {
  return fd >= 0 ? UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)) : UniqueFd();
}

/// Of the flight recorder.
void add_dump_metrics(MetricVisitor& visitor, const flight::RecorderFigures& figures) {
  visitor.family({.name = "rtev_bpf_dumps", .unit = "", .help = "Dumps of the flight recorder, by result."});
  const auto result = [&](std::string_view name, std::uint64_t count) {
    const MetricLabel label[]{{"result", name}};
    visitor.value(label, static_cast<std::int64_t>(count));
  };
  result("written", figures.written);
  result("failed", figures.failed);
  visitor.family({.name = "rtev_bpf_dumps_suppressed",
                  .unit = "",
                  .help = "Conditions that were met without a dump, by reason; joined: another dump has that time."});
  for (std::size_t i = 0; i < figures.suppressed.size(); ++i) {
    const MetricLabel label[]{{"reason", to_string(static_cast<flight::Suppressed>(i))}};
    visitor.value(label, static_cast<std::int64_t>(figures.suppressed[i]));
  }
  const MetricLabel joined[]{{"reason", "joined"}};
  visitor.value(joined, static_cast<std::int64_t>(figures.joined));
}

EventKinds unused_events(const MetricsOptions& metrics) {
  EventKinds unused = kinds_of({EventKind::alloc});
  if (!metrics.user.any() && !metrics.tasks) {
    unused |= kinds_of({EventKind::user_unit, EventKind::user_int, EventKind::user_begin, EventKind::user_end,
                        EventKind::user_custom});
  }
  return unused;
}

std::string utc_text(std::uint64_t realtime_ns) {
  UtcTime utc;
  std::array<char, UtcTime::length> text{};
  return std::string(utc.put(text, realtime_ns));
}

}  // namespace

/// Tells the service manager from the loop that moves events, so that it notices when that stalls.
class AgentRun::Hooks final : public ForwardingSink {
 public:
  // A cast: else the cut would be copied, as another sink that forwards.
  explicit Hooks(AgentRun& run) : ForwardingSink(static_cast<Sink&>(*run.cut_)), run_(run) {}

  void advance(std::uint64_t time_ns, const Registry& registry) override {
    sink_.advance(time_ns, registry);
    if (run_.predecessor_) run_.ask_for_place(time_ns);
  }
  void flush() override {
    sink_.flush();
    const auto interval = run_.manager_.watchdog_interval();
    if (!interval || run_.predecessor_) return;
    const std::uint64_t now = monotonic_ns();
    if (now - last_ns_ < ns_of(*interval)) return;
    last_ns_ = now;
    run_.manager_.notify("WATCHDOG=1");
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    if (!run_.is_replaced_ && !run_.predecessor_) run_.manager_.notify("STOPPING=1");
    sink_.summary(summary, registry);
    run_.server_.reset();
    if (run_.is_replaced_) run_.hand_over();
  }

 private:
  AgentRun& run_;
  std::uint64_t last_ns_ = 0;
};

int run_agent(const AgentOptions& options, const Invocation& invocation) {
  const auto run = [&](Background* background) {
    AgentRun agent(options, background);
    if (auto prepared = agent.prepare(); !prepared) return report(prepared.error());
    return agent.trace(invocation);
  };
  if (!options.replaced) return run(nullptr);
  return Background::run([&](Background& background) { return run(&background); });
}

Result<void> AgentRun::prepare() {
  if (options_.replaced) {
    auto asked = Predecessor::ask(*options_.replaced);
    if (!asked) return std::unexpected(std::move(asked.error()));
    predecessor_.emplace(std::move(*asked));
    Offer& offer = predecessor_->offer();
    if (offer.manager) manager_ = agent::ServiceManager(std::move(offer.manager), offer.watchdog);
  }
  auto listener = open_listener();
  if (!listener) return std::unexpected(std::move(listener.error()));
  if (!*listener && !options_.otlp && !options_.flight.is_on())
    return std::unexpected(Error{.what = "the agent would have nothing to do",
                                 .subject = {},
                                 .why = "it serves no metrics (--listen ''), pushes none and keeps nothing",
                                 .hint = "add --otlp, --keep or --on, or leave out --listen"});
  listener_ = copy_of(listener->get());
  auto network = agent::NetworkProcess::start(network_options(std::move(*listener)));
  if (!network) return std::unexpected(std::move(network.error()));
  network_.emplace(std::move(*network));
  if (options_.flight.is_on()) {
    auto started = FlightRun::start(options_.flight);
    if (!started) return std::unexpected(std::move(started.error()));
    flight_ = std::move(*started);
    if (predecessor_) flight_->recorder().hold();
  } else if (auto opened = ControlServer::open(ControlKind::agent)) {
    server_.emplace(std::move(*opened));
  } else {
    report(opened.error());
    say("rtev-bpf: this agent can be restarted, but not replaced\n");
  }
  if (flight_) both_.emplace(metrics_, *flight_);
  cut_.emplace(both_ ? static_cast<Sink&>(*both_) : metrics_);
  metrics_.on_folded([max = options_.metrics.max_groups](const std::string& group, std::uint32_t user) {
    say(
        fmt::format("rtev-bpf: there are more than {}: '{}' of user {} and further ones are counted in the group "
                    "\"other\"\nhint: rtev_bpf_groups_folded_total counts their processes; --max-groups allows more "
                    "groups, --group names them\n",
                    Counted{max, "group", "groups"}, group, user));
  });
  return {};
}

Result<UniqueFd> AgentRun::open_listener() {
  if (UniqueFd passed = agent::take_passed_socket()) {
    is_passed_socket_ = true;
    return passed;
  }
  if (predecessor_) {
    Offer& offer = predecessor_->offer();
    is_passed_socket_ = offer.is_passed_socket;
    if (offer.listener && (offer.is_passed_socket || offer.listen == options_.listen)) return std::move(offer.listener);
  }
  if (options_.listen.empty()) return UniqueFd();
  return agent::listen_on(options_.listen);
}

agent::NetworkOptions AgentRun::network_options(UniqueFd listener) {
  agent::NetworkOptions network{.listener = std::move(listener),
                                .allowed_hosts = options_.allowed_hosts,
                                .otlp = options_.otlp,
                                .waits = predecessor_.has_value()};
  if (network.otlp) {
    network.otlp->headers = options_.otlp_headers;
    network.otlp->interval = std::chrono::ceil<std::chrono::milliseconds>(options_.otlp_interval);
    network.otlp->spans = options_.metrics.pause_span_ns != 0;
  }
  return network;
}

int AgentRun::trace(const Invocation& invocation) {
  Hooks sink(*this);
  // Whoever explains pauses needs all switches: other programs took the CPU.
  const bool explains = flight_ || options_.metrics.pause_span_ns != 0;
  const StringOutput output;  // to which nothing is written
  const auto answer_all = [&] {
    network_->answer([&](agent::Request request) { return answer(request); });
    if (network_->has_ended() && !is_replaced_) lose("network");
  };
  const auto on_ready = [&] {
    ready_ns_ = monotonic_ns();
    since_ns_ = metrics_.run().start_realtime_ns;
    if (!predecessor_) serve();
  };
  std::vector<LiveSession::Watched> watched{{.fd = network_->event_fd(), .on_readable = answer_all},
                                            {.fd = successor_.event_fd(), .on_readable = [&] { hear_successor(); }}};
  if (predecessor_) watched.push_back({.fd = predecessor_->event_fd(), .on_readable = [&] { hear_predecessor(); }});
  const int status = cli::trace(options_, invocation,
                                {.sink = sink,
                                 .output = output,
                                 .max_delay = agent_delay,
                                 .is_full = [&] { return has_to_end(); },
                                 .unused = explains ? EventKinds() : unused_events(options_.metrics),
                                 .sums_usage = !explains,
                                 .shows_services = true,
                                 .watched = std::move(watched),
                                 .on_ready = on_ready,
                                 .on_lost = [&](std::string_view part) { lose(part); },
                                 .is_service = true,
                                 .adopts_enabled = options_.replaced.has_value(),
                                 .leaves_enabled = [&] { return leaves_enabled_ || predecessor_.has_value(); }});
  // It was asked to end before it took over.
  const bool is_too_early = options_.replaced && predecessor_;
  return has_failed_ || is_too_early ? exit_failure : status;
}

/// From now on this is the agent of the host.
void AgentRun::serve() {
  const auto welcome = [this](std::string_view request, UniqueFd& connection) {
    return request == replace_request ? successor_.welcome(connection, offer()) : std::string();
  };
  if (flight_) flight_->serve(welcome);
  if (server_)
    if (const auto started = server_->start(welcome); !started) report(started.error());
  manager_.notify("READY=1");
  if (!options_.quiet && listener_) say(fmt::format("Metrics: http://{}/metrics\n", agent::address_of(listener_)));
}

Offer AgentRun::offer() const {
  return {.version = RTEV_VERSION,
          .listen = options_.listen,
          .is_passed_socket = is_passed_socket_,
          .groups = options_.groups,
          .watchdog = manager_.watchdog_interval(),
          .listener = copy_of(listener_.get()),
          .manager = copy_of(manager_.socket())};
}

/// All metrics but those of the network process.
void AgentRun::visit(MetricVisitor& visitor) {
  CarryingVisitor all(visitor, carried_);
  visit_counted(all);
  add_own_metrics(all, metrics_.run());
  all.end();
}

/// What another agent that runs at the same time counts, too.
void AgentRun::visit_counted(MetricVisitor& visitor) {
  metrics_.visit(visitor);
  if (flight_) add_dump_metrics(visitor, flight_->recorder().figures());
}

RunHeader AgentRun::run_now() const {
  RunHeader run = metrics_.run();
  follow_clock(run);
  return run;
}

std::string AgentRun::answer(agent::Request request) {
  switch (request) {
    case agent::Request::health:
      return lost_;
    case agent::Request::metrics: {
      PrometheusText text;
      visit(text);
      return std::string(text.text());
    }
    case agent::Request::otlp_metrics: {
      const RunHeader run = run_now();
      OtlpMetrics otlp(run, monotonic_ns(), since_ns_);
      visit(otlp);
      return otlp.request();
    }
    case agent::Request::otlp_spans: {
      const auto spans = metrics_.take_pause_spans();
      // Requests one after the other are one request.
      return std::exchange(carried_spans_, {}) + (spans.empty() ? std::string() : otlp_spans(spans, run_now()));
    }
  }
  return {};
}

/// Once this agent has read for long enough. Also looks whether the last one takes too long.
void AgentRun::ask_for_place(std::uint64_t time_ns) {
  if (has_failed_ || ready_ns_ == 0) return;
  if (has_its_end_ && cut_ns_ != 0) return take_over();
  const std::uint64_t now = monotonic_ns();
  if (asked_ns_ != 0) {
    if (now > asked_ns_ + figures_timeout_ns)
      fail({.what = "cannot replace the agent",
            .subject = std::to_string(predecessor_->pid()),
            .why = "it does not answer",
            .hint = "restart it if it hangs"});
    return;
  }
  const std::uint64_t overlap_ns =
      std::clamp(flight_ ? options_.flight.recorder().history.keep_ns : 0, min_overlap_ns, max_overlap_ns);
  if (time_ns < ready_ns_ + overlap_ns) return;
  asked_ns_ = now;
  const std::uint64_t from_ns = now + ahead_ns;
  cut_->cut_at(from_ns, StreamCut::Rest::given,
               [this](std::uint64_t cut_ns, const Registry& registry) { return begin_to_count(cut_ns, registry); });
  predecessor_->take_at(from_ns, options_.enable);
}

bool AgentRun::begin_to_count(std::uint64_t time_ns, const Registry& registry) {
  visit_counted(carried_.own);
  static_cast<void>(metrics_.take_pause_spans());
  if (flight_) flight_->recorder().take_over_at(time_ns, registry);
  cut_ns_ = time_ns;
  return true;
}

void AgentRun::hear_predecessor() {
  switch (predecessor_->receive()) {
    case Predecessor::News::none:
      return;
    case Predecessor::News::failed:
      return fail(predecessor_->failure());
    case Predecessor::News::figures: {
      auto figures = predecessor_->figures();
      has_its_end_ = true;
      if (!figures) {
        report(figures.error());
      } else {
        figures_ = std::move(*figures);
      }
      break;
    }
    case Predecessor::News::gone:
      if (has_its_end_) break;
      has_its_end_ = asked_ns_ != 0;
      if (!has_its_end_)
        return fail({.what = "cannot replace the agent",
                     .subject = std::to_string(predecessor_->pid()),
                     .why = "it has ended",
                     .hint = "start an agent without --replace"});
      break;
  }
  if (cut_ns_ != 0) take_over();
}

void AgentRun::take_over() {
  const pid_t pid = predecessor_->pid();
  const std::string version = predecessor_->offer().version, groups = predecessor_->offer().groups;
  predecessor_.reset();
  std::string result;
  auto before = figures_ ? MetricSnapshot::parse(figures_->metrics) : Result<MetricSnapshot>(MetricSnapshot());
  if (!before) report(before.error());
  if (!figures_ || !before) {
    // Its own counters have what both have seen.
    carried_ = {};
    result = "what it had counted is lost, so counters begin anew";
  } else {
    result = "counters go on";
    carried_.before = std::move(*before);
    if (groups != options_.groups) {
      carried_.before.keep_groups([](const std::string&) { return false; });
      result += ", but those of groups begin anew, as --group has changed";
    }
    carried_.limit_groups(options_.metrics.max_groups + 1);  // with "other"
    carried_spans_ = std::move(figures_->spans);
    if (figures_->since_ns != 0) since_ns_ = figures_->since_ns;
  }
  figures_.reset();
  network_->begin();
  serve();
  const std::uint64_t now_ns = monotonic_ns();
  say(fmt::format("rtev-bpf: agent {} has replaced agent {} (version {}) at {}; both have read for {}; {}\n",
                  ::getpid(), pid, escaped(version), utc_text(clock_ns(CLOCK_REALTIME) - (now_ns - cut_ns_)),
                  Duration{cut_ns_ - metrics_.run().start_ns}, result));
  background_->ready();
}

void AgentRun::fail(const Error& error) {
  has_failed_ = true;
  report(error);
}

/// The agent has given up the rights to start a process. Its service manager starts all of them.
void AgentRun::lose(std::string_view part) {
  lost_ += fmt::format("{}: its process has ended\n", part);
  if (has_failed_) return;
  if (!network_->has_ended()) end_ns_ = monotonic_ns() + loss_notice_ns;
  fail({.what = "the agent ends",
        .subject = {},
        .why = fmt::format("its {} process has ended, and it has no right to start it again", part),
        .hint = "start it again; as a service it is started again"});
}

void AgentRun::hear_successor() {
  const auto from_ns = successor_.take();
  if (!successor_.is_there()) return cut_->cancel();
  if (!from_ns) return;
  const bool is_near = *from_ns <= monotonic_ns() + max_ahead_ns;
  const bool is_cut = is_near && cut_->cut_at(*from_ns, StreamCut::Rest::dropped,
                                              [this](std::uint64_t cut_ns, const Registry& registry) {
                                                return stop_to_count(cut_ns, registry);
                                              });
  if (!is_cut) successor_.refuse("it has counted for longer already: the host is overloaded");
}

bool AgentRun::stop_to_count(std::uint64_t time_ns, const Registry& registry) {
  if (!successor_.is_there()) return false;
  if (flight_) flight_->recorder().take_over_at(time_ns, registry);
  network_->finish();
  end_ns_ = monotonic_ns() + last_answers_ns;
  is_replaced_ = true;
  return true;
}

bool AgentRun::has_to_end() const {
  const bool is_late = monotonic_ns() > end_ns_;
  return (has_failed_ && is_late) || (is_replaced_ && (network_->has_ended() || is_late));
}

void AgentRun::hand_over() {
  MetricSnapshot counted;
  visit(counted);
  const Figures figures{.since_ns = since_ns_, .metrics = counted.text(), .spans = answer(agent::Request::otlp_spans)};
  // Before the next one says that it is ready, which the service manager takes from the main process only.
  manager_.notify(fmt::format("MAINPID={}", successor_.pid()));
  if (!successor_.give(figures))
    return fail({.what = "cannot give the agent",
                 .subject = std::to_string(successor_.pid()),
                 .why = "it has ended while it took over",
                 .hint = "start an agent"});
  leaves_enabled_ = successor_.enables();
  if (!options_.quiet) say(fmt::format("Agent {} has taken over.\n", successor_.pid()));
}

}  // namespace rtev::cli

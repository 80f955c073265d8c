// SPDX-License-Identifier: MIT
// One run of an agent, from the one that it replaces, if any, to the one that replaces it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/network_process.hpp"
#include "agent/service_manager.hpp"
#include "base/exit_status.hpp"
#include "cli/agent/agent_options.hpp"
#include "cli/agent/background.hpp"
#include "cli/agent/predecessor.hpp"
#include "cli/agent/successor.hpp"
#include "cli/control_socket.hpp"
#include "cli/flight_run.hpp"
#include "metrics/carried_metrics.hpp"
#include "metrics/metrics_sink.hpp"
#include "rtev/error.hpp"
#include "stream/stream_cut.hpp"
#include "stream/tee_sink.hpp"

namespace rtev::cli {

/// Runs an agent to its end, also in the background, as its options say. Returns the exit status.
int run_agent(const AgentOptions& options, const Invocation& invocation);

/// All is done by the thread that moves events, and none of it waits, but for Successor::welcome().
class AgentRun {
 public:
  /// Calls background->ready() when the agent has replaced another one. Null: it runs in the foreground.
  AgentRun(const AgentOptions& options, Background* background)
      : options_(options), background_(background), metrics_(options.metrics) {}

  /// What has to be there before the tracer is confined.
  Result<void> prepare();
  /// Traces until the end. Returns the exit status.
  int trace(const Invocation& invocation);

 private:
  class Hooks;

  Result<UniqueFd> open_listener();
  agent::NetworkOptions network_options(UniqueFd listener);
  Offer offer() const;
  void serve();
  std::string answer(agent::Request request);
  RunHeader run_now() const;  ///< with times of day by the clock of now
  void visit(MetricVisitor& visitor);
  void visit_counted(MetricVisitor& visitor);

  // Of the next one.
  void ask_for_place(std::uint64_t time_ns);
  bool begin_to_count(std::uint64_t time_ns, const Registry& registry);
  void hear_predecessor();
  void take_over();
  void fail(const Error& error);
  void lose(std::string_view part);

  // Of the last one.
  void hear_successor();
  bool stop_to_count(std::uint64_t time_ns, const Registry& registry);
  void hand_over();
  bool has_to_end() const;

  const AgentOptions& options_;
  Background* background_;
  agent::ServiceManager manager_;
  bool is_passed_socket_ = false;
  UniqueFd listener_;  ///< for the next one
  std::optional<agent::NetworkProcess> network_;
  std::optional<ControlServer> server_;  ///< if there is no flight recorder, which has one
  MetricsSink metrics_;
  std::unique_ptr<FlightRun> flight_;
  std::optional<TeeSink> both_;
  std::optional<StreamCut> cut_;

  std::optional<Predecessor> predecessor_;
  std::uint64_t ready_ns_ = 0, asked_ns_ = 0, cut_ns_ = 0;  ///< 0: not yet
  std::optional<Figures> figures_;                          ///< of the last one
  bool has_its_end_ = false;
  CarriedMetrics carried_;
  std::string carried_spans_;
  std::uint64_t since_ns_ = 0;  ///< CLOCK_REALTIME: when the first agent began to count

  Successor successor_;
  bool is_replaced_ = false;
  bool leaves_enabled_ = false;  ///< the next one takes care of programs whose events are on
  std::uint64_t end_ns_ = 0;     ///< until then it waits for its network process, if it is replaced or has failed
  bool has_failed_ = false;
  std::string lost_;  ///< a line for each process that has ended and cannot be started again
};

}  // namespace rtev::cli

// SPDX-License-Identifier: MIT
// A flight recorder with all that it has outside of its process: the directory of its dumps, its socket, its program.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/control_socket.hpp"
#include "cli/flight_options.hpp"
#include "flight/flight_recorder.hpp"
#include "rtev/error.hpp"
#include "session/command/program_runner.hpp"
#include "stream/sink.hpp"

namespace rtev::cli {

/// SIGUSR2 asks it for a dump while it exists. There can be one at a time.
class FlightRun final : public ForwardingSink {
 public:
  /// Opens files and forks: call it before there are threads, and before the tracer is confined.
  static Result<std::unique_ptr<FlightRun>> start(const FlightOptions& options);
  ~FlightRun() override;

  void summary(const RunSummary& summary, const Registry& registry) override;

  /// The run has begun: answers requests for dumps from now on, and others by `other`.
  void serve(ControlServer::Handler other);

  flight::FlightRecorder& recorder() { return *recorder_; }
  /// What was written and what was not, for the end of a run; whole lines.
  std::string figures_text() const;

 private:
  FlightRun(std::unique_ptr<flight::FlightRecorder> recorder, std::unique_ptr<ProgramRunner> runner,
            std::optional<ControlServer> server);

  std::unique_ptr<ProgramRunner> runner_;  ///< the recorder's thread uses it
  std::unique_ptr<flight::FlightRecorder> recorder_;
  std::optional<ControlServer> server_;
};

}  // namespace rtev::cli

// SPDX-License-Identifier: MIT
// Fixture of the tests of `rtev-bpf agent`: running agents and Prometheus servers.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "live/analysis_fixture.hpp"
#include "live/http.hpp"
#include "live/metrics_store.hpp"

namespace rtev::test {

using Labels = std::map<std::string, std::string>;

/// Metrics in the text format of Prometheus, by name and labels. Names of histograms have _bucket, _sum and _count.
struct Exposition {
  std::map<std::pair<std::string, Labels>, double> values{};

  /// A line that it does not understand fails the test.
  static Exposition parse(const std::string& text);
  /// Fails the test if there is none, or if there are several.
  double value(const std::string& name, const Labels& labels = {}) const;
  bool has(const std::string& name, const Labels& labels) const { return values.contains({name, labels}); }
};

/// A running agent that listens on a port of its own.
class Agent {
 public:
  explicit Agent(Strings arguments = {}, std::map<std::string, std::string> env = {});

  Process& process() { return *process_; }
  pid_t pid() const { return process_->pid(); }
  std::uint16_t port() const { return port_; }
  Exposition scrape() const;
  /// Scrapes until this is true; fails the test after wait_timeout.
  Exposition scrape_until(const std::function<bool(const Exposition&)>& done) const;
  /// The same until so many processes of a group have ended.
  Exposition scrape_until_ended(const std::string& group, double count) const;
  /// Of a request; 0: no answer.
  int status(const std::string& path) const;
  /// All processes of the agent.
  std::vector<pid_t> pids() const { return family_of(pid()); }
  /// The process that talks to the network; 0: there is none.
  pid_t network_worker() const;

 private:
  std::optional<Process> process_;
  std::uint16_t port_ = 0;
};

std::string comm_of(pid_t pid);
/// Gone, or dead and not waited for.
bool has_ended(pid_t pid);

class AgentLive : public AnalysisLive {
 protected:
  void SetUp() override;

  /// Runs promtool; its output. It must succeed.
  static std::string promtool(Strings arguments, const std::string& input = {});
};

/// Path of a file in contrib/.
fs::path contrib_file(const std::string& name);

}  // namespace rtev::test

// SPDX-License-Identifier: MIT
#include "load/process.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/file_io.hpp"
#include "load/domain.hpp"
#include "load/event_clock.hpp"
#include "load/report.hpp"

namespace rtev::load {
namespace {

constexpr const char* resource_hint = "start fewer processes or domains";

/// The sum, or `never` if it overflows.
std::uint64_t later(std::uint64_t time_ns, const std::optional<LoadOptions::Duration>& duration) {
  if (!duration) return never;
  const auto ns = static_cast<std::uint64_t>(duration->count());
  return time_ns > never - ns ? never : time_ns + ns;
}

/// A domain and its part of the report. Aligned, because different threads write to different domains.
struct alignas(128) Domain {
  explicit Domain(DomainWriter domain_writer) : writer(domain_writer) {}

  DomainWriter writer;
  std::optional<DomainRun> run;  ///< nothing for an idle load
  std::uint64_t lifecycles = 0;
  std::uint64_t first_ns = 0, last_ns = 0;
  std::string failure;  ///< why its thread could not be started

  /// Call it after an event of this thread.
  void note_time() {
    last_ns = last_time();
    if (first_ns == 0) first_ns = last_ns;
  }
};

class LoadProcess {
 public:
  LoadProcess(const ProcessTask& task, RingWriter writer) : task_(task), writer_(std::move(writer)) {}

  Result<void> prepare();
  Result<ProcessReport> run();

 private:
  /// Runs the threads of domain `index`, one after the other.
  void run_domain(std::uint32_t index);
  /// Runs one incarnation of the domain in the current thread.
  void run_incarnation(Domain& domain, std::uint64_t end_ns);
  void write(Domain& domain, std::uint64_t end_ns);
  void lifecycle(Domain& domain, Lifecycle what);
  Result<ProcessReport> report(std::uint64_t start_ns);

  const ProcessTask& task_;
  RingWriter writer_;
  std::vector<UserEvent> user_events_;
  std::vector<Domain> domains_;
  std::uint64_t end_ns_ = never;
};

Result<void> LoadProcess::prepare() {
  const LoadOptions& options = task_.options;
  if (options.format != RingWriter::Format::before_5_1) {
    for (const UserEventSpec& spec : user_events) {
      auto event = writer_.register_event(spec.name, spec.type);
      if (!event) return std::unexpected(std::move(event.error()));
      user_events_.push_back(*event);
    }
  }
  domains_.reserve(options.domains);
  for (std::uint32_t i = 0; i < options.domains; ++i) domains_.emplace_back(writer_.domain(i));
  // The writer has written ring_start to domain 0.
  domains_[0].lifecycles = 1;
  domains_[0].note_time();
  return {};
}

Result<ProcessReport> LoadProcess::run() {
  const LoadOptions& options = task_.options;
  const std::uint64_t start_ns = monotonic_ns();
  end_ns_ = std::min({task_.end_ns, later(start_ns, options.duration), later(start_ns, options.process_lifetime)});
  if (!options.is_idle()) {
    DomainOptions how{.pace = {}, .events = options.events.value_or(UINT64_MAX), .user_events = user_events_};
    if (options.rate) how.pace.emplace(start_ns, *options.rate);
    for (std::uint32_t i = 0; i < options.domains; ++i)
      domains_[i].run.emplace(domains_[i].writer, task_.plans[i], how);
  }
  {
    std::vector<std::jthread> threads;
    threads.reserve(domains_.size() - 1);
    try {
      for (std::uint32_t i = 1; i < options.domains; ++i) threads.emplace_back([this, i] { run_domain(i); });
    } catch (...) {
      request_stop();  // otherwise the running threads would be waited for
      throw;
    }
    // As in OCaml, the main thread runs domain 0.
    write(domains_[0], end_ns_);
  }
  refresh_time();
  writer_.stop(0);
  ++domains_[0].lifecycles;
  domains_[0].note_time();
  return report(start_ns);
}

void LoadProcess::run_domain(std::uint32_t index) {
  Domain& domain = domains_[index];
  const auto& lifetime = task_.options.domain_lifetime;
  if (!lifetime) return run_incarnation(domain, end_ns_);
  try {
    do {
      std::jthread([&] { run_incarnation(domain, std::min(end_ns_, later(monotonic_ns(), lifetime))); }).join();
    } while (!stop_requested() && monotonic_ns() < end_ns_ && !(domain.run && domain.run->is_done()));
  } catch (const std::system_error& error) {
    domain.failure = error.what();
    request_stop();
  }
}

void LoadProcess::run_incarnation(Domain& domain, std::uint64_t end_ns) {
  lifecycle(domain, Lifecycle::domain_spawn);
  write(domain, end_ns);
  lifecycle(domain, Lifecycle::domain_terminate);
}

void LoadProcess::write(Domain& domain, std::uint64_t end_ns) {
  if (!domain.run) return sleep_until(end_ns);
  domain.run->run_until(end_ns);
  refresh_time();
}

void LoadProcess::lifecycle(Domain& domain, Lifecycle what) {
  if (domain.writer.lifecycle(what, ::getpid()) != WriteStatus::written) return;
  ++domain.lifecycles;
  domain.note_time();
}

Result<ProcessReport> LoadProcess::report(std::uint64_t start_ns) {
  ProcessReport report{
      .pid = ::getpid(), .path = writer_.path(), .duration_ns = monotonic_ns() - start_ns, .domains = {}};
  for (std::uint32_t i = 0; i < domains_.size(); ++i) {
    const Domain& domain = domains_[i];
    if (!domain.failure.empty())
      return std::unexpected(Error{.what = "cannot start a thread", .why = domain.failure, .hint = resource_hint});
    DomainReport& domain_report = report.domains.emplace_back();
    if (domain.run) {
      if (domain.run->failure() != WriteStatus::written) {
        return std::unexpected(Error{.what = "cannot write an event to",
                                     .subject = report.path,
                                     .why = std::string(to_string(domain.run->failure()))});
      }
      domain_report.events = domain.run->counts();
    }
    domain_report.events[static_cast<std::size_t>(EventKind::lifecycle)] += domain.lifecycles;
    domain_report.words = writer_.words_written(i);
    domain_report.first_ns = domain.first_ns;
    domain_report.last_ns = domain.last_ns;
  }
  return report;
}

/// Waits until the parent opens the gate by closing its end.
void wait_for_gate(int gate_fd) {
  char none = 0;
  while (!stop_requested() && ::read(gate_fd, &none, 1) < 0 && errno == EINTR) continue;
}

void send(int fd, Tag tag, std::string_view text = {}) {
  std::string message(1, static_cast<char>(tag));
  message += text;
  // An error means that the parent has ended.
  write_all(fd, message.size(),
            [&](std::size_t offset) { return ::write(fd, message.data() + offset, message.size() - offset); });
}

Result<ProcessReport> run_load(const ProcessTask& task) {
  auto writer = RingWriter::create(task.options.writer(task.directory));
  if (!writer) return std::unexpected(std::move(writer.error()));
  LoadProcess process(task, std::move(*writer));
  if (auto prepared = process.prepare(); !prepared) return std::unexpected(std::move(prepared.error()));
  send(task.report_fd, Tag::ready);
  wait_for_gate(task.gate_fd);
  return process.run();
}

Result<ProcessReport> try_load(const ProcessTask& task) try {
  return run_load(task);
} catch (const std::exception& error) {
  // Out of threads or memory.
  return std::unexpected(Error{.what = "cannot continue", .why = error.what(), .hint = resource_hint});
}

}  // namespace

void run_process(const ProcessTask& task) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != task.parent) ::_exit(0);  // the parent ended before the prctl()
  unblock_stop_signals();
  if (!task.name.empty()) ::prctl(PR_SET_NAME, task.name.c_str());

  const auto report = try_load(task);
  if (report) {
    send(task.report_fd, Tag::report, encode(*report));
  } else {
    send(task.report_fd, Tag::error,
         report.error().message() + (report.error().hint.empty() ? "" : "\nhint: " + report.error().hint));
  }
  if (task.is_temporary && ::getppid() != task.parent)
    ::rmdir(task.directory.c_str());  // succeeds only in the last process
  ::_exit(report ? 0 : 1);
}

}  // namespace rtev::load

// SPDX-License-Identifier: MIT
#include "agent/network_process.hpp"

#include <event2/event.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>

#include "agent/metrics_http.hpp"
#include "base/capabilities.hpp"
#include "base/child_end.hpp"
#include "base/restarts.hpp"
#include "helper/channel.hpp"
#include "helper/helper_process.hpp"
#include "session/confinement.hpp"

namespace rtev::agent {
namespace {

constexpr rlim_t max_descriptors = 64;
constexpr rlim_t max_memory_bytes = rlim_t{256} << 20;
constexpr int restart_ms = 1000;

struct FreeBase {
  void operator()(event_base* freed) const { ::event_base_free(freed); }
};

void limit(int resource, rlim_t most) {
  const rlimit value{.rlim_cur = most, .rlim_max = most};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

/// Until the tracer closes the channel.
[[noreturn]] void serve(int channel, NetworkOptions options) {
  limit(RLIMIT_NOFILE, max_descriptors);
  limit(RLIMIT_AS, max_memory_bytes);
  limit(RLIMIT_CORE, 0);
  const std::unique_ptr<event_base, FreeBase> base(::event_base_new());
  if (!base || !confine_network_process()) ::_exit(1);
  TracerClient tracer(base.get(), channel);
  std::optional<OtlpExporter> exporter;
  if (options.otlp) exporter.emplace(base.get(), std::move(*options.otlp), tracer);
  std::optional<MetricsHttp> http;
  if (options.listener)
    http.emplace(
        base.get(), std::move(options.listener), tracer,
        [&exporter] { return exporter ? exporter->metrics_text() : std::string(); },
        MetricsHttpOptions{.allowed_hosts = std::move(options.allowed_hosts)});
  const auto end = [&base] { ::event_base_loopbreak(base.get()); };
  tracer.on_finish([&] { http ? http->finish(end) : end(); });
  ::event_base_dispatch(base.get());
  ::_exit(0);
}

/// Serves in a process of its own, as often as it takes: a network is full of surprises.
[[noreturn]] void supervise(int channel, NetworkOptions options) {
  ::setsid();
  ::prctl(PR_SET_NAME, "rtev-network");
  // What confine_network_process() needs. It is forked again, so nothing more may be left.
  keep_capabilities({CAP_SETUID, CAP_SETGID});
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP})
    ::signal(signal, SIG_IGN);
  // The first message says that it may begin; none comes if the tracer ends before.
  if (options.waits && !helper::receive(channel, false)) ::_exit(0);
  for (bool is_first = true;; is_first = false) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (!is_first) helper::send(channel, {.bytes = {std::byte{replaced_notice}}, .fds = {}}, true);
      serve(channel, std::move(options));
    }
    int status = 0;
    if (pid > 0) ::waitpid(pid, &status, 0);
    // Waits, unless the tracer is gone.
    pollfd end{.fd = channel, .events = 0, .revents = 0};
    if ((pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) || ::poll(&end, 1, restart_ms) > 0) ::_exit(0);
  }
}

}  // namespace

Result<NetworkProcess> NetworkProcess::start(NetworkOptions options) {
  auto channel = helper::make_channel();
  if (!channel) return std::unexpected(std::move(channel.error()));
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(errno, "cannot start the process that serves metrics");
  if (pid == 0) {
    channel->first.reset();
    helper::close_but({channel->second.get(), options.listener.get()});  // what else is open is none of its business
    supervise(channel->second.get(), std::move(options));
  }
  return NetworkProcess(std::move(channel->first), pid);
}

NetworkProcess::~NetworkProcess() {
  channel_.reset();
  await_end(pid_);
}

void NetworkProcess::order(Order order) const {
  helper::send(channel_.get(), {.bytes = {static_cast<std::byte>(order)}, .fds = {}}, true);
}

void NetworkProcess::answer(const std::function<std::string(Request request)>& make) {
  // The process asks for one of each kind at a time.
  for (std::size_t asked = 0; asked <= static_cast<std::size_t>(last_request); ++asked) {
    const auto message = helper::receive(channel_.get(), true);
    if (!message && errno != EAGAIN) has_ended_ = true;
    if (!message || message->bytes.size() != 1) return;
    if (message->bytes.front() == std::byte{replaced_notice}) {
      count_restart(Part::network);
      continue;
    }
    const auto request = static_cast<Request>(message->bytes.front());
    if (request > last_request) return;
    const std::string content = make(request);
    helper::Message answer{.bytes = {static_cast<std::byte>(request)}, .fds = {}};
    UniqueFd file(::memfd_create("metrics", MFD_CLOEXEC));
    if (file && ::write(file.get(), content.data(), content.size()) == static_cast<ssize_t>(content.size()))
      answer.fds.push_back(std::move(file));
    helper::send(channel_.get(), answer, true);
  }
}

}  // namespace rtev::agent

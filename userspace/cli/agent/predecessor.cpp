// SPDX-License-Identifier: MIT
#include "cli/agent/predecessor.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "cli/control_socket.hpp"

namespace rtev::cli {
namespace {

constexpr int offer_timeout_ms = 10'000;

Error error_of(pid_t pid, std::string why, std::string hint = "it goes on as it was") {
  return {.what = "cannot replace the agent",
          .subject = std::to_string(pid),
          .why = std::move(why),
          .hint = std::move(hint)};
}

}  // namespace

Result<Predecessor> Predecessor::ask(pid_t pid) {
  auto connection = connect_to_agent(pid);
  if (!connection) return std::unexpected(std::move(connection.error()));
  ucred peer{};
  socklen_t size = sizeof peer;
  // The socket could be that of a process which had this pid.
  if (::getsockopt(connection->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != pid)
    return std::unexpected(error_of(pid, "its socket belongs to another process", "restart the agent"));
  pollfd answers{.fd = connection->get(), .events = POLLIN, .revents = 0};
  const bool is_sent = ::send(connection->get(), replace_request.data(), replace_request.size(), MSG_NOSIGNAL) > 0;
  if (!is_sent || ::poll(&answers, 1, offer_timeout_ms) <= 0)
    return std::unexpected(error_of(pid, "it does not answer", "restart the agent if it hangs"));
  auto message = cli::receive(connection->get());
  if (!message)
    return std::unexpected(
        error_of(pid, "it refuses", "it may belong to another user, or be a recorder: only agents can be replaced"));
  if (message->word != "offer") {
    const std::string_view why = message->field("why");
    return std::unexpected(error_of(pid, why.empty() ? "it refuses" : std::string(why)));
  }
  return Predecessor(pid, std::move(*connection), offer_of(std::move(*message)));
}

bool Predecessor::take_at(std::uint64_t time_ns, bool enables) const {
  return send(connection_.get(),
              {.word = "take", .fields = {{"at", std::to_string(time_ns)}, {"enable", enables ? "1" : "0"}}});
}

Predecessor::News Predecessor::receive() {
  auto message = cli::receive(connection_.get());
  if (!message) return errno == EAGAIN ? News::none : News::gone;
  last_ = std::move(*message);
  return last_.word == "figures" ? News::figures : News::failed;
}

Error Predecessor::failure() const {
  return error_of(pid_, std::string(last_.field("why")));
}

}  // namespace rtev::cli

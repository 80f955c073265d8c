// SPDX-License-Identifier: MIT
#include "cli/control_socket.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/proc_files.hpp"
#include "cli/own_directory.hpp"
#include "session/command/sudo_user.hpp"

namespace rtev::cli {
namespace {

constexpr std::string_view recorder_prefix = "recorder-", agent_prefix = "agent-", suffix = ".sock", good = "ok ",
                           bad = "failed ";
constexpr mode_t socket_mode = 0600;
constexpr std::size_t max_answer = 8192, max_request = 256;
/// How long a client may take to say what it wants.
constexpr int request_timeout_ms = 1000;

std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

UniqueFd new_socket(int flags = 0) {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
}

Result<UniqueFd> connect_to(const std::string& path) {
  const auto address = address_of(path);
  if (!address) return errno_error(ENAMETOOLONG, "cannot ask the recorder at", path);
  UniqueFd socket = new_socket();
  if (!socket || ::connect(socket.get(), generic(*address), sizeof *address) != 0)
    return errno_error(errno, "cannot ask the recorder at", path, "rtev-bpf record --keep starts one");
  return socket;
}

std::string socket_name(std::string_view prefix, pid_t pid) {
  return fmt::format("{}{}{}", prefix, pid, suffix);
}

std::vector<std::string> socket_names(const std::string& directory) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(directory.c_str()), ::closedir);
  if (!opened) return names;
  while (const dirent* const entry = ::readdir(opened.get())) {
    const std::string_view name = entry->d_name;
    if ((name.starts_with(recorder_prefix) || name.starts_with(agent_prefix)) && name.ends_with(suffix))
      names.emplace_back(name);
  }
  return names;
}

bool is_running(const std::string& name) {
  const std::size_t begin = name.find('-') + 1;
  const std::string pid = name.substr(begin, name.size() - begin - suffix.size());
  return static_cast<bool>(open_proc("/proc/" + pid, O_PATH));
}

bool may_ask(int client, uid_t user) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(client, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == 0 || peer.uid == user);
}

/// Empty if none comes in time.
std::string take_request(int client) {
  pollfd asks{.fd = client, .events = POLLIN, .revents = 0};
  if (::poll(&asks, 1, request_timeout_ms) <= 0) return {};
  std::string request(max_request, '\0');
  const ssize_t size = ::recv(client, request.data(), request.size(), MSG_DONTWAIT);
  request.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return request;
}

}  // namespace

Result<ControlServer> ControlServer::open(ControlKind kind) {
  const std::string folder = runtime_directory();
  auto directory = open_own_directory(folder);
  if (!directory) return std::unexpected(std::move(directory.error()));
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  for (const std::string& name : socket_names(folder))
    if (!is_running(name)) ::unlinkat(directory->get(), name.c_str(), 0);
  const std::string name = socket_name(kind == ControlKind::recorder ? recorder_prefix : agent_prefix, ::getpid());
  const std::string path = folder + "/" + name;
  if (!address_of(path)) return errno_error(ENAMETOOLONG, "cannot make the socket", path);
  UniqueFd socket = new_socket(SOCK_NONBLOCK);
  // The file gets the mode of the socket.
  if (!socket || ::fchmod(socket.get(), socket_mode) != 0) return errno_error(errno, "cannot make the socket", path);
  return ControlServer(std::move(*directory), std::move(socket), name, path);
}

ControlServer::~ControlServer() {
  ends_.signal();
  if (!thread_.joinable()) return;
  thread_.join();
  ::unlinkat(directory_.get(), name_.c_str(), 0);
}

Result<void> ControlServer::start(Handler handler) {
  const auto address = address_of(path_);
  ::unlinkat(directory_.get(), name_.c_str(), 0);  // of a process that had this pid
  if (::bind(socket_.get(), generic(*address), sizeof *address) != 0 || ::listen(socket_.get(), 8) != 0)
    return errno_error(errno, "cannot make the socket", path_);
  thread_ = std::thread([socket = socket_.get(), ends = ends_.get(), user = calling_user(),
                         handler = std::move(handler)] { run(socket, ends, user, handler); });
  return {};
}

void ControlServer::run(int socket, int ends, uid_t user, const Handler& handler) {
  while (true) {
    std::array<pollfd, 2> wait{pollfd{.fd = ends, .events = POLLIN, .revents = 0},
                               pollfd{.fd = socket, .events = POLLIN, .revents = 0}};
    // It is interrupted when the process is stopped and goes on.
    if (::poll(wait.data(), wait.size(), -1) <= 0) continue;
    if (wait[0].revents != 0) return;
    UniqueFd client(::accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client || !may_ask(client.get(), user)) continue;
    const std::string request = take_request(client.get());
    if (request.empty()) continue;
    const std::string answer = handler(request, client);
    if (client) [[maybe_unused]]
      const ssize_t sent = ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  }
}

std::vector<std::string> running_recorders() {
  std::vector<std::string> running;
  const std::string folder = runtime_directory();
  const auto rights = FileRights::of_caller();
  if (!rights) return running;
  for (const std::string& name : socket_names(folder))
    if (name.starts_with(recorder_prefix) && is_running(name)) running.push_back(fmt::format("{}/{}", folder, name));
  return running;
}

Result<UniqueFd> connect_to_agent(pid_t pid) {
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  for (const std::string_view prefix : {recorder_prefix, agent_prefix}) {
    auto socket = connect_to(fmt::format("{}/{}", runtime_directory(), socket_name(prefix, pid)));
    if (socket) return socket;
  }
  return std::unexpected(Error{.what = "cannot replace process",
                               .subject = std::to_string(pid),
                               .why = "it is no agent of this user that can be replaced",
                               .hint = "systemctl show -p MainPID rtev-bpf-agent prints the one of the service; agents "
                                       "of older versions cannot be replaced: restart them"});
}

std::string dump_answer(const Result<std::string>& file) {
  if (file) return std::string(good) + *file;
  const Error& error = file.error();
  return std::string(bad) + error.message() + (error.hint.empty() ? "" : "\n" + error.hint);
}

Result<std::string> ask_for_dump(const std::string& socket_path) {
  const auto rights = FileRights::of_caller();
  if (!rights) return std::unexpected(rights.error());
  auto socket = connect_to(socket_path);
  if (!socket) return std::unexpected(std::move(socket.error()));
  constexpr std::string_view request = "dump";
  [[maybe_unused]] const ssize_t sent = ::send(socket->get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer(max_answer, '\0');
  const ssize_t size = ::recv(socket->get(), answer.data(), answer.size(), 0);
  answer.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (answer.starts_with(good)) return answer.substr(good.size());
  Error error{.what = "the recorder made no dump", .why = "it ended, or does not answer this user"};
  if (answer.starts_with(bad)) {
    const std::size_t line_end = std::min(answer.find('\n'), answer.size());
    error.why = answer.substr(bad.size(), line_end - bad.size());
    error.hint = answer.substr(std::min(line_end + 1, answer.size()));
  }
  return std::unexpected(std::move(error));
}

}  // namespace rtev::cli

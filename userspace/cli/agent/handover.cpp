// SPDX-License-Identifier: MIT
#include "cli/agent/handover.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "base/parse.hpp"
#include "helper/channel.hpp"
#include "metrics/carried_metrics.hpp"

namespace rtev::cli {
namespace {

/// None if it cannot be made.
UniqueFd file_of(const std::string& content) {
  UniqueFd file(::memfd_create("figures", MFD_CLOEXEC));
  if (file && ::write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) return {};
  return file;
}

Result<std::string> content_of(const UniqueFd& file) {
  constexpr const char* what = "cannot read what the last agent has counted";
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return errno_error(errno, what);
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > MetricSnapshot::max_bytes)
    return std::unexpected(Error{.what = what, .why = "it is too long"});
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t got = ::pread(file.get(), content.data(), content.size(), 0);
  if (got != static_cast<ssize_t>(content.size())) return errno_error(got < 0 ? errno : EIO, what);
  return content;
}

}  // namespace

std::string_view AgentMessage::field(std::string_view name) const {
  const auto found = fields.find(name);
  return found != fields.end() ? std::string_view(found->second) : std::string_view();
}

std::optional<std::uint64_t> AgentMessage::number(std::string_view name) const {
  return parse_number<std::uint64_t>(field(name));
}

std::string encoded(const AgentMessage& message) {
  std::string text = message.word;
  for (const auto& [name, value] : message.fields) {
    std::string line = value;
    std::erase(line, '\n');
    text.append("\n").append(name).append("=").append(line);
  }
  return text;
}

AgentMessage decoded(std::string_view text) {
  AgentMessage message{.word = std::string(take_until(text, '\n'))};
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view name = take_until(line, '=');
    if (!name.empty()) message.fields.emplace(name, line);
  }
  return message;
}

bool send(int connection, AgentMessage message) {
  const std::string text = encoded(message);
  helper::Message sent{.bytes = {}, .fds = std::move(message.fds)};
  sent.add(text.data(), text.size());
  return helper::send(connection, sent, true);
}

std::optional<AgentMessage> receive(int connection) {
  auto received = helper::receive(connection, true);
  if (!received) return std::nullopt;
  AgentMessage message = decoded({reinterpret_cast<const char*>(received->bytes.data()), received->bytes.size()});
  message.fds = std::move(received->fds);
  return message;
}

AgentMessage message_of(Offer offer) {
  AgentMessage message{.word = "offer",
                       .fields = {{"version", std::move(offer.version)},
                                  {"listen", std::move(offer.listen)},
                                  {"passed", offer.is_passed_socket ? "1" : "0"},
                                  {"groups", std::move(offer.groups)}}};
  if (offer.watchdog) message.fields.emplace("watchdog", std::to_string(offer.watchdog->count()));
  const auto add = [&](const char* name, UniqueFd fd) {
    if (!fd) return;
    message.fields.emplace(name, std::to_string(message.fds.size()));
    message.fds.push_back(std::move(fd));
  };
  add("listener", std::move(offer.listener));
  add("manager", std::move(offer.manager));
  return message;
}

Offer offer_of(AgentMessage message) {
  const auto taken = [&](std::string_view name) {
    const auto index = message.number(name);
    return index && *index < message.fds.size() ? std::move(message.fds[*index]) : UniqueFd();
  };
  Offer offer{.version = std::string(message.field("version")),
              .listen = std::string(message.field("listen")),
              .is_passed_socket = message.field("passed") == "1",
              .groups = std::string(message.field("groups")),
              .listener = taken("listener"),
              .manager = taken("manager")};
  constexpr std::uint64_t max_us = 3'600'000'000;
  if (const auto us = message.number("watchdog"); us && *us > 0 && *us <= max_us)
    offer.watchdog = std::chrono::microseconds(*us);
  return offer;
}

AgentMessage message_of(const Figures& figures) {
  AgentMessage message{.word = "figures", .fields = {{"since", std::to_string(figures.since_ns)}}};
  message.fds.push_back(file_of(figures.metrics));
  message.fds.push_back(file_of(figures.spans));
  return message;
}

Result<Figures> figures_of(const AgentMessage& message) {
  if (message.fds.size() < 2)
    return std::unexpected(Error{.what = "cannot read what the last agent has counted", .why = "it is not there"});
  auto metrics = content_of(message.fds[0]), spans = content_of(message.fds[1]);
  if (!metrics) return std::unexpected(std::move(metrics.error()));
  if (!spans) return std::unexpected(std::move(spans.error()));
  return Figures{
      .since_ns = message.number("since").value_or(0), .metrics = std::move(*metrics), .spans = std::move(*spans)};
}

}  // namespace rtev::cli

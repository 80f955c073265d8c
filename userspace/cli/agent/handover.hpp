// SPDX-License-Identifier: MIT
// What a running agent and the one that replaces it say to each other.
//
//   next                             last
//   "replace"                  ->          how to serve in its place: Offer
//                              <-  "offer"
//   reads along
//   "take" at=T enable=0 or 1  ->          counts what is until T, and ends
//                              <-  "figures"
//
// In place of its message the last one may send "failed". If the next one closes the connection before T, the last one
// goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

inline constexpr std::string_view replace_request = "replace";

/// A message: a word, and fields by name. Versions ignore fields that they do not know.
struct AgentMessage {
  std::string word{};
  std::map<std::string, std::string, std::less<>> fields{};
  std::vector<UniqueFd> fds{};

  /// Empty if there is none.
  std::string_view field(std::string_view name) const;
  std::optional<std::uint64_t> number(std::string_view name) const;
};
std::string encoded(const AgentMessage& message);  ///< without descriptors
/// Fields without a name are left out.
AgentMessage decoded(std::string_view text);

/// False if the other side is gone, or does not read. Does not wait.
bool send(int connection, AgentMessage message);
/// Does not wait. Nothing if there is none yet (errno EAGAIN), or the other side is gone.
std::optional<AgentMessage> receive(int connection);

/// What an agent needs in order to serve in place of another one.
struct Offer {
  std::string version{};
  std::string listen{};           ///< what its --listen says
  bool is_passed_socket = false;  ///< the service manager's
  std::string groups{};           ///< what its --group says
  std::optional<std::chrono::microseconds> watchdog{};
  UniqueFd listener{}, manager{};  ///< none: it has none
};
AgentMessage message_of(Offer offer);
Offer offer_of(AgentMessage message);

/// What an agent has counted until its end.
struct Figures {
  std::uint64_t since_ns = 0;  ///< CLOCK_REALTIME: when the first agent began to count
  std::string metrics{};       ///< see MetricSnapshot
  std::string spans{};         ///< pauses as a request of OTLP that were not pushed yet
};
AgentMessage message_of(const Figures& figures);
/// An error if they are too long.
Result<Figures> figures_of(const AgentMessage& message);

}  // namespace rtev::cli

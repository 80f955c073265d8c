// SPDX-License-Identifier: MIT
#include "bench/live_stream.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

namespace rtev::bench {

LiveStream::LiveStream(std::vector<std::string> arguments) {
  const std::string path = directory_ / "stream";
  if (::mkfifo(path.c_str(), 0600) != 0) throw std::system_error(errno, std::generic_category(), "mkfifo");
  // Opened first and for reading and writing, so that neither side blocks.
  fd_ = UniqueFd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!fd_) throw std::system_error(errno, std::generic_category(), "open " + path);
  reader_ = std::jthread([this](const std::stop_token& stop) { read(stop); });
  arguments.insert(arguments.end(), {"-f", "jsonl", "-o", path});
  tool_.emplace(arguments);
}

Recorded LiveStream::stop() {
  tool_->interrupt();
  reader_.request_stop();
  reader_.join();
  const nlohmann::json summary = summary_of(last_line_);
  for (const auto& [kind, count] : summary.at("events").items()) {
    const bool is_of_a_ring = kind != "lost" && kind != "process" && kind != "switch" && kind != "wakeup";
    if (is_of_a_ring) recorded_.events += count.get<std::uint64_t>();
  }
  return recorded_;
}

void LiveStream::read(const std::stop_token& stop) {
  constexpr int look_for_stop_ms = 50;
  std::array<char, 65536> chunk;
  std::string rest;
  while (true) {
    // Read after the last event was written, so that what is in the pipe then is all.
    const bool last = stop.stop_requested();
    const ssize_t size = ::read(fd_.get(), chunk.data(), chunk.size());
    if (size <= 0) {
      if (last) return;
      pollfd readable{.fd = fd_.get(), .events = POLLIN, .revents = 0};
      ::poll(&readable, 1, look_for_stop_ms);
      continue;
    }
    rest.append(chunk.data(), static_cast<std::size_t>(size));
    std::size_t begin = 0;
    for (std::size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1)
      see(std::string_view(rest).substr(begin, end - begin));
    rest.erase(0, begin);
  }
}

void LiveStream::see(std::string_view line) {
  constexpr std::string_view loss = R"("type":"lost")", summary = R"("type":"summary")";
  // The type comes first but for a time, so that only the beginning has to be searched.
  const std::string_view beginning = line.substr(0, 100);
  if (beginning.contains(summary)) last_line_ = line;
  if (!beginning.contains(loss)) return;
  const auto json = nlohmann::json::parse(line);
  if (!json.contains("words")) return;  // of the scheduler
  recorded_.lost_words += json.at("words").get<std::uint64_t>();
  recorded_.gaps.push_back(json.at("to"));
}

}  // namespace rtev::bench

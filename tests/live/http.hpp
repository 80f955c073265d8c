// SPDX-License-Identifier: MIT
// HTTP on loopback: a client, and a server that takes what is posted.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"

namespace rtev::test {

/// Names of headers are in lower case.
struct HttpResponse {
  int status = 0;  ///< 0: no answer
  std::map<std::string, std::string> headers{};
  std::string body{};
};

/// A connection to a port of 127.0.0.1. Throws std::system_error.
UniqueFd connect_to(std::uint16_t port);
/// One request, whose connection is closed afterwards. `headers`: lines with \r\n.
HttpResponse http(std::uint16_t port, const std::string& path, const std::string& method = "GET",
                  const std::string& headers = {});
/// A port of 127.0.0.1 that was unused a moment ago.
std::uint16_t free_port();
std::string percent_encoded(std::string_view text);

/// Answers 200 to all requests and keeps what was posted.
class HttpReceiver {
 public:
  struct Request {
    std::string path{};
    std::map<std::string, std::string> headers{};
    std::string body{};
  };

  HttpReceiver();
  HttpReceiver(const HttpReceiver&) = delete;
  HttpReceiver& operator=(const HttpReceiver&) = delete;
  ~HttpReceiver();

  std::uint16_t port() const { return port_; }
  std::size_t count();
  /// Request `index`, counted from 0. Waits for it; throws std::runtime_error after wait_timeout.
  Request wait_for(std::size_t index);

 private:
  void serve();

  UniqueFd listener_;
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> requests_;  // guarded by mutex_
  std::jthread server_;
};

}  // namespace rtev::test

// SPDX-License-Identifier: MIT
#include "live/http.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "live/child_process.hpp"

namespace rtev::test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(port);
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return place;
}

UniqueFd tcp_socket() {
  return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/// Binds to a free port and returns it.
std::uint16_t bind_any(const UniqueFd& socket) {
  sockaddr_in place = loopback(0);
  socklen_t size = sizeof place;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&place), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &size) != 0)
    throw std::system_error(errno, std::generic_category(), "bind");
  return ntohs(place.sin_port);
}

/// More bytes of a connection; false at its end, or if none come for long.
bool receive(const UniqueFd& connection, std::string& text) {
  std::array<char, 65536> buffer;
  pollfd fd{connection.get(), POLLIN, 0};
  if (::poll(&fd, 1, static_cast<int>(std::chrono::milliseconds(wait_timeout).count())) <= 0) return false;
  const ssize_t size = ::recv(connection.get(), buffer.data(), buffer.size(), 0);
  if (size <= 0) return false;
  text.append(buffer.data(), static_cast<std::size_t>(size));
  return true;
}

constexpr std::string_view head_end = "\r\n\r\n";

std::map<std::string, std::string> parse_headers(std::string_view head) {
  std::map<std::string, std::string> headers;
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos; at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    const std::size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    std::string name(line.substr(0, colon));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    headers[name] = line.substr(colon + 2);
  }
  return headers;
}

}  // namespace

UniqueFd connect_to(std::uint16_t port) {
  UniqueFd connection = tcp_socket();
  const sockaddr_in place = loopback(port);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0)
    throw std::system_error(errno, std::generic_category(), "connect");
  return connection;
}

HttpResponse http(std::uint16_t port, const std::string& path, const std::string& method, const std::string& headers) {
  const UniqueFd connection = connect_to(port);
  // Version 1.0, so that no answer comes in chunks.
  const std::string request = method + " " + path + " HTTP/1.0\r\nHost: 127.0.0.1\r\n" + headers + "\r\n";
  ::send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string text;
  while (receive(connection, text)) {
  }
  const std::size_t end = text.find(head_end);
  if (end == std::string::npos) return {};
  const std::string_view head = std::string_view(text).substr(0, end);
  const std::size_t blank = head.find(' ');
  return {.status = blank == std::string_view::npos ? 0 : std::stoi(std::string(head.substr(blank + 1, 3))),
          .headers = parse_headers(head),
          .body = text.substr(end + head_end.size())};
}

std::uint16_t free_port() {
  return bind_any(tcp_socket());
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += digits[byte >> 4];
      encoded += digits[byte & 15];
    }
  }
  return encoded;
}

HttpReceiver::HttpReceiver() : listener_(tcp_socket()), port_(bind_any(listener_)) {
  if (::listen(listener_.get(), 8) != 0) throw std::system_error(errno, std::generic_category(), "listen");
  server_ = std::jthread([this] { serve(); });
}

HttpReceiver::~HttpReceiver() {
  ::shutdown(listener_.get(), SHUT_RDWR);
}

void HttpReceiver::serve() {
  while (true) {
    const UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    std::string text;
    std::size_t end = std::string::npos;
    while ((end = text.find(head_end)) == std::string::npos && receive(connection, text)) {
    }
    if (end == std::string::npos) continue;
    const std::size_t blank = text.find(' '), next = text.find(' ', blank + 1);
    if (next == std::string::npos) continue;
    Request request{
        .path = text.substr(blank + 1, next - blank - 1), .headers = parse_headers(text.substr(0, end)), .body = {}};
    const auto length = request.headers.find("content-length");
    const std::size_t size = length != request.headers.end() ? std::stoul(length->second) : 0;
    const std::size_t begin = end + head_end.size();
    while (text.size() < begin + size && receive(connection, text)) {
    }
    request.body = text.substr(begin);
    constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    ::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    const std::lock_guard lock(mutex_);
    requests_.push_back(std::move(request));
    changed_.notify_all();
  }
}

std::size_t HttpReceiver::count() {
  const std::lock_guard lock(mutex_);
  return requests_.size();
}

HttpReceiver::Request HttpReceiver::wait_for(std::size_t index) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, wait_timeout, [&] { return requests_.size() > index; }))
    throw std::runtime_error("nothing was posted");
  return requests_[index];
}

}  // namespace rtev::test

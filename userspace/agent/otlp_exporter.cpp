// SPDX-License-Identifier: MIT
#include "agent/otlp_exporter.hpp"

#include <event2/buffer.h>
#include <event2/util.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <string_view>
#include <utility>

#include "base/enum_names.hpp"
#include "base/escape.hpp"
#include "base/parse.hpp"
#include "formats/output/gzip_output.hpp"
#include "metrics/prometheus_text.hpp"

namespace rtev::agent {
namespace {

constexpr std::chrono::milliseconds max_retry{60'000};
constexpr std::chrono::seconds max_retry_after{300};
constexpr ev_ssize_t max_response_header_bytes = 16 << 10, max_response_bytes = 64 << 10;

/// What a collector says that it could take later.
bool is_temporary(int status) {
  constexpr std::array temporary{429, 502, 503, 504};
  return std::ranges::find(temporary, status) != temporary.end();
}

timeval timeval_of(std::chrono::milliseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(),
          .tv_usec = std::chrono::duration_cast<std::chrono::microseconds>(time - seconds).count()};
}

struct FreeUri {
  void operator()(evhttp_uri* freed) const { ::evhttp_uri_free(freed); }
};

}  // namespace

std::string_view to_string(ExportResult result) {
  static constexpr std::string_view names[]{"ok", "retried", "failed"};
  return name_at(names, result);
}

Result<OtlpOptions> parse_otlp_url(const std::string& url) {
  const auto refused = [&](std::string why) {
    return std::unexpected(Error{.what = "cannot send metrics to",
                                 .subject = escaped(url),
                                 .why = std::move(why),
                                 .hint = "give the URL of a collector on this host, e.g. http://127.0.0.1:4318; it can "
                                         "send on with TLS"});
  };
  const std::unique_ptr<evhttp_uri, FreeUri> uri(::evhttp_uri_parse(url.c_str()));
  const char* const scheme = uri ? ::evhttp_uri_get_scheme(uri.get()) : nullptr;
  const char* const host = uri ? ::evhttp_uri_get_host(uri.get()) : nullptr;
  if (scheme == nullptr || host == nullptr || *host == '\0') return refused("it is not a URL");
  if (std::string_view(scheme) != "http") return refused("its scheme is not http");
  if (::evhttp_uri_get_userinfo(uri.get()) != nullptr || ::evhttp_uri_get_query(uri.get()) != nullptr ||
      ::evhttp_uri_get_fragment(uri.get()) != nullptr)
    return refused("it has more than a host, a port and a path; --otlp-header sends secrets");
  OtlpOptions options{.host = host};
  if (const int port = ::evhttp_uri_get_port(uri.get()); port > 0) options.port = static_cast<std::uint16_t>(port);
  const char* const path = ::evhttp_uri_get_path(uri.get());
  if (path != nullptr) options.base_path = path;
  while (options.base_path.ends_with('/')) options.base_path.pop_back();
  return options;
}

OtlpExporter::OtlpExporter(event_base* base, OtlpOptions options, TracerClient& tracer)
    : base_(base),
      options_(std::move(options)),
      tracer_(tracer),
      dns_(::evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS | EVDNS_BASE_DISABLE_WHEN_INACTIVE)) {
  add(Request::otlp_metrics, "/v1/metrics");
  if (options_.spans) add(Request::otlp_spans, "/v1/traces");
}

void OtlpExporter::add(Request request, const std::string& path) {
  Signal& signal = *signals_.emplace_back(std::make_unique<Signal>());
  signal.exporter = this;
  signal.request = request;
  signal.path = options_.base_path + path;
  const auto on_time = [](evutil_socket_t, short, void* due) {
    Signal& due_signal = *static_cast<Signal*>(due);
    if (!due_signal.is_posted) return due_signal.exporter->push(due_signal);
    // The timeout of evhttp begins anew with each byte that comes. Frees the request, too.
    due_signal.connection.reset();
    due_signal.exporter->on_response(due_signal, nullptr);
  };
  signal.timer.reset(::event_new(base_, -1, 0, on_time, &signal));
  schedule(signal, options_.first_retry);
}

void OtlpExporter::push(Signal& signal) {
  if (!signal.body.empty()) return post(signal);
  tracer_.ask(signal.request, [this, &signal](const std::optional<std::string>& content) {
    if (!content || content->empty()) return schedule(signal, options_.interval);
    signal.body = gzip_compressed(*content);
    if (signal.body.size() <= max_held_bytes || signal.request == Request::otlp_metrics) return post(signal);
    signal.body.clear();
    ++requests_[static_cast<std::size_t>(ExportResult::failed)];
    schedule(signal, options_.interval);
  });
}

void OtlpExporter::post(Signal& signal) {
  // Addresses of IPv6 have brackets in URLs only.
  std::string host = options_.host;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  signal.connection.reset(::evhttp_connection_base_new(base_, dns_.get(), host.c_str(), options_.port));
  const timeval timeout = timeval_of(options_.timeout);
  ::evhttp_connection_set_timeout_tv(signal.connection.get(), &timeout);
  ::evhttp_connection_set_max_headers_size(signal.connection.get(), max_response_header_bytes);
  ::evhttp_connection_set_max_body_size(signal.connection.get(), max_response_bytes);
  signal.is_posted = true;
  schedule(signal, options_.timeout);
  evhttp_request* const request = ::evhttp_request_new(
      [](evhttp_request* response, void* sent) {
        Signal& sent_signal = *static_cast<Signal*>(sent);
        sent_signal.exporter->on_response(sent_signal, response);
      },
      &signal);
  evkeyvalq* const headers = ::evhttp_request_get_output_headers(request);
  ::evhttp_add_header(headers, "Host", fmt::format("{}:{}", options_.host, options_.port).c_str());
  ::evhttp_add_header(headers, "Content-Type", "application/x-protobuf");
  ::evhttp_add_header(headers, "Content-Encoding", "gzip");
  ::evhttp_add_header(headers, "User-Agent", "rtev-bpf");
  ::evhttp_add_header(headers, "Connection", "close");
  for (const auto& [name, value] : options_.headers) ::evhttp_add_header(headers, name.c_str(), value.c_str());
  evbuffer* const body = ::evhttp_request_get_output_buffer(request);
  ::evbuffer_add(body, signal.body.data(), signal.body.size());
  // Owns the request, also if it fails.
  if (::evhttp_make_request(signal.connection.get(), request, EVHTTP_REQ_POST, signal.path.c_str()) != 0)
    on_response(signal, nullptr);
}

/// `response`: null if there was none.
void OtlpExporter::on_response(Signal& signal, evhttp_request* response) {
  signal.is_posted = false;
  const int status = response != nullptr ? ::evhttp_request_get_response_code(response) : 0;
  const auto count = [&](ExportResult result) { ++requests_[static_cast<std::size_t>(result)]; };
  constexpr int first_error = 300;
  const bool is_taken = status != 0 && status < first_error;
  report_change(signal, !is_taken, status);
  if (status == 0 || is_temporary(status)) {
    count(ExportResult::retried);
    auto wait = std::min(options_.first_retry * (1 << std::min(signal.tries, 6U)), max_retry);
    ++signal.tries;
    const char* const after = response != nullptr
                                  ? ::evhttp_find_header(::evhttp_request_get_input_headers(response), "Retry-After")
                                  : nullptr;
    const auto seconds = parse_number<std::uint32_t>(after != nullptr ? after : "");
    if (seconds)
      wait = std::max<std::chrono::milliseconds>(wait, std::min(std::chrono::seconds(*seconds), max_retry_after));
    // Many agents must not come back at the same time.
    static std::minstd_rand random(std::random_device{}());
    wait += std::chrono::milliseconds(random() % static_cast<std::uint64_t>(wait.count() / 2 + 1));
    if (signal.request == Request::otlp_metrics) signal.body.clear();  // then newer ones are sent
    return schedule(signal, wait);
  }
  // Another answer would be the same next time.
  count(is_taken ? ExportResult::ok : ExportResult::failed);
  signal.tries = 0;
  signal.body.clear();
  schedule(signal, options_.interval);
}

/// When requests begin to fail, and when they succeed again. `status`: of the response; 0: there was none.
void OtlpExporter::report_change(Signal& signal, bool has_failed, int status) const {
  if (has_failed == std::exchange(signal.has_failed, has_failed)) return;
  const std::string url = escaped(fmt::format("http://{}:{}{}", options_.host, options_.port, signal.path));
  const std::string why = status == 0 ? "no answer" : fmt::format("status {}", status);
  const std::string text =
      has_failed ? fmt::format("warning: cannot push to {}: {}; rtev-bpf tries again\nhint: {}\n", url, why,
                               status == 0 ? "is a collector running there?" : "see the log of the collector")
                 : fmt::format("rtev-bpf: pushes to {} succeed again\n", url);
  // Whoever read the messages may be gone: fmt::print() would throw.
  static_cast<void>(std::fputs(text.c_str(), stderr));
}

void OtlpExporter::schedule(Signal& signal, std::chrono::milliseconds after) {
  const timeval time = timeval_of(after);
  ::event_add(signal.timer.get(), &time);
}

std::string OtlpExporter::metrics_text() const {
  PrometheusText text;
  text.family({.name = "rtev_bpf_otlp_requests", .unit = "", .help = "Requests to the collector, by how they ended."});
  for (std::size_t result = 0; result < requests_.size(); ++result) {
    const MetricLabel labels[]{{"result", to_string(static_cast<ExportResult>(result))}};
    text.value(labels, static_cast<std::int64_t>(requests_[result]));
  }
  return std::string(text.text());
}

}  // namespace rtev::agent

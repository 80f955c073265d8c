// SPDX-License-Identifier: MIT
// rtev-load: processes that write runtime events like OCaml 5 programs, at a given rate.

#include <fmt/core.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/standard_streams.hpp"
#include "load/fleet.hpp"
#include "load/load_options.hpp"
#include "load/stop.hpp"
#include "rtev/error.hpp"
#include "rtev/version.hpp"

namespace rtev::load {
namespace {

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help and --version
  const std::string text = error.what();
  fmt::print(stderr, "rtev-load: {}\n{}", printable_message(text),
             text.contains("hint:") ? "" : "hint: rtev-load --help\n");
  return exit_usage;
}

int report(const Error& error) {
  fmt::print(stderr, "rtev-load: {}\n", printable_message(error.message()));
  if (!error.hint.empty()) fmt::print(stderr, "hint: {}\n", printable_message(error.hint));
  return exit_failure;
}

/// Makes hundreds of processes with many threads possible: small stacks, and a pipe for each process.
void raise_limits() {
  constexpr std::size_t thread_stack_bytes = 128 << 10;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, thread_stack_bytes);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);

  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

void print_summary(const LoadOptions& options, const Totals& totals, std::uint64_t duration_ns) {
  const double seconds = static_cast<double>(duration_ns) / 1e9;
  fmt::print(stderr, "rtev-load: {} events ({} words) by {} {} in {:.3f} s", totals.total(), totals.words,
             totals.processes, totals.processes == 1 ? "process" : "processes", seconds);
  if (seconds > 0 && !options.is_idle()) {
    const double writers = static_cast<double>(options.processes) * options.domains;
    fmt::print(stderr, ", {:.0f} events/s per domain", static_cast<double>(totals.total()) / seconds / writers);
    if (options.rate) fmt::print(stderr, " (requested: {})", *options.rate);
  }
  fmt::print(stderr, "\n");
}

/// A new directory for the ring files of a load, accessible only to its user; removed with its files.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create() {
    const char* const parent = std::getenv("TMPDIR");
    std::string path = std::string(parent != nullptr && *parent != '\0' ? parent : "/tmp") + "/rtev-load.XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)
      return errno_error(errno, "cannot create directory", path, "name another one with --directory");
    return TemporaryDirectory(std::move(path));
  }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

int run_load(const LoadOptions& options) {
  catch_stop_signals();
  const sigset_t open_mask = block_stop_signals();
  raise_limits();

  std::optional<TemporaryDirectory> temporary;
  Fleet::Place place{.directory = options.directory, .is_temporary = options.directory.empty()};
  if (place.is_temporary) {
    auto created = TemporaryDirectory::create();
    if (!created) return report(created.error());
    place.directory = temporary.emplace(std::move(*created)).path();
  }
  std::vector<Plan> plans;
  for (std::uint32_t i = 0; i < options.domains && !options.is_idle(); ++i)
    plans.push_back(Plan::make(options.plan(i)));

  Fleet fleet(options, plans, place, open_mask);
  const auto totals = fleet.run();
  if (!totals) return report(totals.error());
  if (!options.quiet) print_summary(options, *totals, fleet.duration_ns());
  return exit_ok;
}

int run(int argc, char** argv) {
  LoadOptions options = options_from_environment();
  CLI::App app;
  set_up_command_line(app, options);
  try {
    app.parse(argc, argv);
    check_options(options);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  return run_load(options);
}

}  // namespace
}  // namespace rtev::load

int main(int argc, char** argv) {
  rtev::reserve_standard_streams();
  try {
    return rtev::load::run(argc, argv);
  } catch (const std::exception& error) {
    // Only the standard library throws, e.g. when memory runs out.
    fmt::print(stderr, "rtev-load: fatal error: {}\n", rtev::printable_message(error.what()));
    return rtev::exit_failure;
  }
}

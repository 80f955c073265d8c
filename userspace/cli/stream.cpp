// SPDX-License-Identifier: MIT
#include "cli/stream.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "session/sudo_user.hpp"
#include "sinks/filter.hpp"
#include "sinks/jsonl.hpp"
#include "sinks/text.hpp"

namespace rtev::cli {
namespace {

bool wants_color(const Options& options, int fd) {
  if (options.color != ColorMode::automatic) return options.color == ColorMode::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

/// A trace may hold what other users' programs do: it is for the caller's eyes only.
Result<UniqueFd> create_file(const std::string& path) {
  constexpr mode_t private_mode = 0600;
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, private_mode));
  if (fd) {
    // The caller of sudo gets what sudo made.
    if (const auto user = SudoUser::of_environment(); user && ::fchown(fd.get(), user->uid, user->gid) != 0)
      return errno_error(errno, "cannot give to the calling user", path);
    return fd;
  }
  // O_CREAT for the kernel's sake: with it a file that another user laid out in /tmp is refused (fs.protected_regular).
  if (errno == EEXIST)
    fd.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOCTTY | O_CLOEXEC, private_mode));
  if (!fd) return errno_error(errno, "cannot write to", path, "give another file with -o");
  return fd;
}

}  // namespace

Result<Stream> Stream::open(const Options& options) {
  Stream stream;
  if (options.output.empty() || options.output == "-") {
    stream.output_ = std::make_unique<FdOutput>(STDOUT_FILENO, "stdout");
  } else {
    auto file = create_file(options.output);
    if (!file) return std::unexpected(std::move(file.error()));
    stream.output_ = std::make_unique<FdOutput>(std::move(*file), options.output);
  }
  if (options.format == Format::jsonl) {
    stream.format_ = std::make_unique<JsonlSink>(*stream.output_);
  } else {
    const bool to_file = !options.output.empty() && options.output != "-";
    const TextOptions text{.color = wants_color(options, to_file ? -1 : STDOUT_FILENO)};
    stream.format_ = std::make_unique<TextSink>(*stream.output_, text);
  }
  if (!options.events.empty()) {
    auto filter = EventFilter::parse(options.events);
    if (!filter) return std::unexpected(std::move(filter.error()));
    stream.filter_ = std::make_unique<FilterSink>(*stream.format_, std::move(*filter));
  }
  return stream;
}

int finish_output(const Output& output, int exit_status) {
  const auto& error = output.error();
  if (!error) return exit_status;
  if (error->code != EPIPE) return report(*error);
  // As any program at the head of a pipe: end by the signal that was held back until the cleaning up was done.
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  return exit_failure;
}

}  // namespace rtev::cli

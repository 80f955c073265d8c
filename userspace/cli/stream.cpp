// SPDX-License-Identifier: MIT
#include "cli/stream.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "cli/messages.hpp"
#include "formats/text/run_summary.hpp"
#include "session/command/sudo_user.hpp"
#include "stream/filter.hpp"

namespace rtev::cli {
namespace {

/// How long data may stay in memory before it is in the file: in the sink, then in the outputs behind it.
constexpr std::uint64_t held_interval_ns = 250'000'000, sync_interval_ns = 500'000'000;

bool wants_color(ColorMode color, int fd) {
  if (color != ColorMode::automatic) return color == ColorMode::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

/// Only the user may read the file: the trace may be of other users' programs.
Result<std::unique_ptr<FdOutput>> create_file(const std::string& path) {
  constexpr mode_t private_mode = 0600;
  const auto output = [&](UniqueFd file, bool created) -> Result<std::unique_ptr<FdOutput>> {
    auto made = std::make_unique<FdOutput>(std::move(file), path);
    made->wait_for_begin(created);
    if (!made->is_regular_file()) return made;
    // Two writers would overwrite each other's data. The lock is held until the file is closed.
    if (::flock(made->fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return errno_error(EBUSY, "cannot write to", path, "another program writes to it: give another file with -o");
    made->spare_page_cache();
    return made;
  };
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, private_mode));
  if (fd) {
    // Under sudo the file belongs to the user who called it.
    if (const auto user = SudoUser::of_environment(); user && ::fchown(fd.get(), user->uid, user->gid) != 0)
      return errno_error(errno, "cannot change the owner of", path);
    return output(std::move(fd), true);
  }
  // O_CREAT lets the kernel refuse a file that another user put into /tmp (fs.protected_regular).
  if (errno == EEXIST) fd.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC, private_mode));
  if (!fd) return errno_error(errno, "cannot write to", path, "give another file with -o");
  struct stat status{};
  const auto user = SudoUser::of_environment();
  if (::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid != ::geteuid() &&
      (!user || status.st_uid != user->uid)) {
    return std::unexpected(Error{.what = "cannot write to",
                                 .subject = path,
                                 .why = "it belongs to another user, who could read the trace",
                                 .hint = "remove it first, or give another file with -o"});
  }
  auto existing = output(std::move(fd), false);
  if (existing && S_ISREG(status.st_mode) && ::fchmod((*existing)->fd(), private_mode) != 0)
    return errno_error(errno, "cannot restrict the permissions of", path, "give another file with -o");
  return existing;
}

/// True for /dev/stdout and other names of the file that stdout is: writing to it twice would overwrite data.
bool is_stdout(const std::string& path) {
  struct stat named{}, own{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &own) == 0 && named.st_dev == own.st_dev &&
         named.st_ino == own.st_ino && !S_ISCHR(own.st_mode);
}

/// Begins the file with the stream's header, syncs buffered data every half second, and finishes the file at the end.
class FinishingSink final : public ForwardingSink {
 public:
  FinishingSink(Sink& sink, FdOutput& file, Output& output) : ForwardingSink(sink), file_(file), output_(output) {}

  void header(const RunHeader& header) override {
    file_.begin();
    sink_.header(header);
  }
  void flush() override {
    sink_.flush();
    const std::uint64_t now = monotonic_ns();
    if (now - last_sync_ns_ < sync_interval_ns) return;
    output_.sync();
    last_sync_ns_ = now;
  }
  void summary(const RunSummary& summary, const Registry& registry) override {
    sink_.summary(summary, registry);
    sink_.flush();
    output_.finish();
  }

 private:
  FdOutput& file_;
  Output& output_;
  std::uint64_t last_sync_ns_ = 0;
};

}  // namespace

Result<std::unique_ptr<FdOutput>> open_output(const std::string& path) {
  if (path.empty() || path == "-" || is_stdout(path)) return std::make_unique<FdOutput>(STDOUT_FILENO, "stdout");
  return create_file(path);
}

Result<Stream> Stream::open(const OutputOptions& options, Format otherwise) {
  Stream stream;
  const Result<Format> format = options.format ? *options.format : format_of_file(options.path, otherwise);
  if (!format) return std::unexpected(format.error());
  auto opened = open_output(options.path);
  if (!opened) return std::unexpected(std::move(opened.error()));
  stream.output_ = std::move(*opened);
  stream.format_ = *format;
  if (info_of(*format).is_binary && stream.output_->is_terminal()) {
    return std::unexpected(Error{.what = "refusing to write binary data to",
                                 .subject = "a terminal",
                                 .why = fmt::format("{} is a binary format", info_of(*format).name),
                                 .hint = "give a file with -o, or redirect stdout"});
  }
  Output* output = stream.output_.get();
  if (options.path.ends_with(".gz")) {
    stream.gzip_ = std::make_unique<GzipOutput>(*output);
    output = stream.gzip_.get();
  }
  const bool is_file = stream.output_->is_regular_file();
  if (!options.path.empty()) {
    BackgroundOutput::Options together;
    if (is_file && !stream.gzip_) together.together_bytes = BackgroundOutput::file_together_bytes;
    stream.background_ = std::make_unique<BackgroundOutput>(*output, together);
    output = stream.background_.get();
  }
  stream.add(info_of(*format).make(*output, {.max_held_ns = is_file ? held_interval_ns : 0,
                                             .color = wants_color(options.color, stream.output_->fd())}));
  if (!options.events.empty()) {
    auto filter = EventFilter::parse(options.events);
    if (!filter) return std::unexpected(std::move(filter.error()));
    stream.add(std::make_unique<FilterSink>(stream.sink(), std::move(*filter)));
  }
  stream.add(std::make_unique<FinishingSink>(stream.sink(), *stream.output_, *output));
  return stream;
}

void print_summary(const RunSummary& summary, const Registry& registry) {
  fmt::print(stderr, "{}", summary_text(summary, registry));
}

void survive_output_failures() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

int finish_output(const Output& output, int exit_status) {
  const auto& error = output.error();
  if (!error) return exit_status;
  if (error->code != EPIPE) return report(*error);
  // End as other programs do whose pipe was closed. SIGPIPE was ignored only until everything was cleaned up.
  ::signal(SIGPIPE, SIG_DFL);
  ::raise(SIGPIPE);
  return exit_failure;
}

}  // namespace rtev::cli

// SPDX-License-Identifier: MIT
#include "cli/stream.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "session/command/sudo_user.hpp"
#include "stream/filter.hpp"

namespace rtev::cli {
namespace {

/// What is written to a file may be this old before it is there: held back by what makes records of events, then by
/// what collects them.
constexpr std::uint64_t held_interval_ns = 250'000'000, sync_interval_ns = 500'000'000;

bool wants_color(const Options& options, int fd) {
  if (options.color != ColorMode::automatic) return options.color == ColorMode::always;
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(fd) == 1 && (no_color == nullptr || *no_color == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

/// A trace may hold what other users' programs do: it is for the caller's eyes only.
Result<std::unique_ptr<FdOutput>> create_file(const std::string& path) {
  constexpr mode_t private_mode = 0600;
  const auto output = [&](UniqueFd file, bool created) -> Result<std::unique_ptr<FdOutput>> {
    auto made = std::make_unique<FdOutput>(std::move(file), path);
    made->wait_for_begin(created);
    if (!made->is_regular_file()) return made;
    // Two that write to it would overwrite each other. Held until the file is closed.
    if (::flock(made->fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return errno_error(EBUSY, "cannot write to", path, "something else writes to it: give another file with -o");
    made->spare_page_cache();
    return made;
  };
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, private_mode));
  if (fd) {
    // The caller of sudo gets what sudo made.
    if (const auto user = SudoUser::of_environment(); user && ::fchown(fd.get(), user->uid, user->gid) != 0)
      return errno_error(errno, "cannot give to the calling user", path);
    return output(std::move(fd), true);
  }
  // O_CREAT for the kernel's sake: with it a file that another user laid out in /tmp is refused (fs.protected_regular).
  if (errno == EEXIST) fd.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_NOCTTY | O_CLOEXEC, private_mode));
  if (!fd) return errno_error(errno, "cannot write to", path, "give another file with -o");
  struct stat status{};
  const auto user = SudoUser::of_environment();
  if (::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid != ::geteuid() &&
      !(user && status.st_uid == user->uid)) {
    return std::unexpected(Error{.what = "cannot write to",
                                 .subject = path,
                                 .why = "it belongs to another user, who could read what others' programs do",
                                 .hint = "remove it first, or give another file with -o"});
  }
  auto existing = output(std::move(fd), false);
  if (existing && S_ISREG(status.st_mode) && ::fchmod((*existing)->fd(), private_mode) != 0)
    return errno_error(errno, "cannot make private", path, "give another file with -o");
  return existing;
}

/// /dev/stdout, or another name of the file that stdout is sent to: two that write to it would overwrite each other.
bool is_stdout(const std::string& path) {
  struct stat named{}, own{};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &own) == 0 && named.st_dev == own.st_dev &&
         named.st_ino == own.st_ino && !S_ISCHR(own.st_mode);
}

/// Begins and ends the file with the stream, and writes what outputs hold back every half second.
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

Result<std::unique_ptr<FdOutput>> open_output(const Options& options) {
  if (options.output.empty() || options.output == "-" || is_stdout(options.output))
    return std::make_unique<FdOutput>(STDOUT_FILENO, "stdout");
  return create_file(options.output);
}

Result<Stream> Stream::open(const Options& options, Format otherwise) {
  Stream stream;
  const Result<Format> format = options.format ? *options.format : format_of_file(options.output, otherwise);
  if (!format) return std::unexpected(format.error());
  auto opened = open_output(options);
  if (!opened) return std::unexpected(std::move(opened.error()));
  stream.output_ = std::move(*opened);
  stream.format_ = *format;
  if (info_of(*format).is_binary && stream.output_->is_terminal()) {
    return std::unexpected(Error{.what = "refusing to write binary data to",
                                 .subject = "a terminal",
                                 .why = fmt::format("{} is a binary format", info_of(*format).name),
                                 .hint = "give a file with -o, or redirect stdout to a file or a program"});
  }
  Output* output = stream.output_.get();
  if (options.output.ends_with(".gz")) {
    stream.gzip_ = std::make_unique<GzipOutput>(*output);
    output = stream.gzip_.get();
  }
  const bool is_file = stream.output_->is_regular_file();
  if (!options.output.empty()) {
    BackgroundOutput::Options together;
    if (is_file && !stream.gzip_) together.together_bytes = BackgroundOutput::file_together_bytes;
    stream.background_ = std::make_unique<BackgroundOutput>(*output, together);
    output = stream.background_.get();
  }
  stream.add(info_of(*format).make(
      *output, {.max_held_ns = is_file ? held_interval_ns : 0, .color = wants_color(options, stream.output_->fd())}));
  if (!options.events.empty()) {
    auto filter = EventFilter::parse(options.events);
    if (!filter) return std::unexpected(std::move(filter.error()));
    stream.add(std::make_unique<FilterSink>(stream.sink(), std::move(*filter)));
  }
  stream.add(std::make_unique<FinishingSink>(stream.sink(), *stream.output_, *output));
  return stream;
}

void survive_output_failures() {
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
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

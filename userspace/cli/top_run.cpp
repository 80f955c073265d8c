// SPDX-License-Identifier: MIT
#include "cli/top_run.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/escape.hpp"
#include "base/exit_status.hpp"
#include "base/folding.hpp"
#include "base/parse.hpp"
#include "base/terminal.hpp"
#include "cli/held_messages.hpp"
#include "cli/input.hpp"
#include "cli/messages.hpp"
#include "cli/output_file.hpp"
#include "cli/own_directory.hpp"
#include "cli/stream_writer.hpp"
#include "cli/tracing.hpp"
#include "flight/flight_recorder.hpp"
#include "session/stop_signal.hpp"
#include "stream/tee_sink.hpp"
#include "top/interval_sink.hpp"
#include "top/interval_text.hpp"
#include "top/terminal_screen.hpp"
#include "top/view.hpp"

namespace rtev::cli {
namespace {

/// Of what d writes.
constexpr std::size_t keep_bytes = std::size_t{32} << 20;

top::IntervalOptions interval_options(const TopOptions& options, bool details) {
  return {.interval_ns = static_cast<std::uint64_t>(options.interval.count()), .details = details};
}

bool has_screen(const TopOptions& options) {
  const char* const terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || *terminal == '\0' || std::string_view(terminal) == "dumb";
  return !options.batch && !options.json && !is_dumb && ::isatty(STDOUT_FILENO) == 1 && ::isatty(STDIN_FILENO) == 1;
}

/// A view on a screen.
class Display {
 public:
  Display(top::TerminalScreen& screen, top::ViewOptions options) : screen_(screen), view_(std::move(options)) {}

  top::View& view() { return view_; }
  bool is_over() const { return is_over_; }
  void draw() {
    const auto [columns, lines] = screen_.size();
    screen_.draw(view_.draw(columns, lines));
  }
  /// `on_dump` is called when a dump is asked for.
  template <typename OnDump>
  void take_keys(OnDump&& on_dump) {
    for (const top::Key& key : screen_.read_keys()) {
      const top::View::Wish wish = view_.press(key, screen_.size().lines);
      if (wish == top::View::Wish::quit) is_over_ = true;
      if (wish == top::View::Wish::dump) on_dump();
    }
    draw();
  }

 private:
  top::TerminalScreen& screen_;
  top::View view_;
  bool is_over_ = false;
};

/// What became of a dump, for the screen. Two threads.
class DumpMessage {
 public:
  void set(const flight::DumpResult& result) {
    const std::lock_guard lock(mutex_);
    text_ = result.error
                ? escaped(result.error->message()) + (result.error->hint.empty() ? "" : ": " + result.error->hint)
                : "recording: " + escaped(result.path);
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

int show_live(const TopOptions& options, const Invocation& invocation) {
  const std::string path =
      std::filesystem::absolute(options.dumps.empty() ? default_dump_directory() : options.dumps).lexically_normal();
  auto directory = open_own_directory(path);
  if (!directory) return report(directory.error());
  auto screen = top::TerminalScreen::open();
  if (!screen) return report(screen.error());
  // Destroyed first, so that the messages are below what the screen hid.
  HeldMessages messages;
  const std::unique_ptr<top::TerminalScreen> shown = std::move(*screen);

  DumpMessage dump_message;
  flight::FlightRecorder recorder(
      {.history = {.keep_ns = static_cast<std::uint64_t>(options.keep.count()), .max_bytes = keep_bytes},
       .after_ns = 0},
      flight::DumpDirectory(std::move(*directory), path, {}), [&](const flight::DumpResult& result) {
        dump_message.set(result);
        shown->ask_to_draw();
      });
  Display* display = nullptr;
  top::IntervalSink intervals(interval_options(options, false), [&](top::Interval&& interval) {
    display->view().add(std::move(interval));
    display->draw();
  });
  Display on_screen(*shown, {.sorted_by = options.sorted_by(),
                             .by_process = options.by_process,
                             .filter = options.filter,
                             .details = [&](ProcessIndex process) { return intervals.details_of(process); }});
  display = &on_screen;
  display->draw();
  const auto on_dump = [&] {
    display->view().show_message("writing a recording of the last seconds ...");
    recorder.request_dump("top");
  };
  const auto on_change = [&] {
    if (std::string text = dump_message.take(); !text.empty()) display->view().show_message(std::move(text));
    display->draw();
  };
  TeeSink sink(intervals, recorder);
  const StringOutput none;
  TopOptions quiet = options;
  quiet.quiet = true;
  return trace(quiet, invocation,
               {.sink = sink,
                .output = none,
                .is_full = [&] { return display->is_over(); },
                .shows_services = true,
                .watched = {{.fd = shown->key_fd(), .on_readable = [&] { display->take_keys(on_dump); }},
                            {.fd = shown->change_fd(), .on_readable = on_change}},
                .is_service = true});
}

/// Shows intervals in the time that they took.
void replay(Display& display, const top::TerminalScreen& screen, const StopSignal& stop,
            std::chrono::nanoseconds interval) {
  constexpr std::uint64_t ns_per_ms = 1'000'000;
  const auto interval_ns = static_cast<std::uint64_t>(interval.count());
  std::uint64_t next_ns = monotonic_ns() + interval_ns;
  display.draw();
  while (!display.is_over() && stop.received() == 0) {
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= next_ns) {
      display.view().step();
      display.draw();
      next_ns = std::max(next_ns + interval_ns, now_ns);
      continue;
    }
    std::array<pollfd, 3> wait{{{.fd = screen.key_fd(), .events = POLLIN, .revents = 0},
                                {.fd = screen.change_fd(), .events = POLLIN, .revents = 0},
                                {.fd = stop.event_fd(), .events = POLLIN, .revents = 0}}};
    ::poll(wait.data(), wait.size(), static_cast<int>((next_ns - now_ns) / ns_per_ms) + 1);
    if (wait[0].revents != 0) display.take_keys([&] { display.view().show_message("it is a recording already"); });
    if (wait[1].revents != 0) display.draw();
  }
}

/// Other tools take -i for the interval.
Result<Input> open_input_of_top(const TopOptions& options, const Invocation& invocation) {
  auto input = Input::open(options.input, options, invocation);
  const bool is_number = parse_number<std::uint32_t>(options.input).has_value();
  if (!input && (is_number || parse_duration(options.input)))
    input.error().hint +=
        fmt::format("\nhint: -i reads a recording; rtev-bpf top --interval {}{} shows figures of that time",
                    options.input, is_number ? "s" : "");
  return input;
}

int show_recording(const TopOptions& options, const Invocation& invocation) {
  // Before the rights are given up.
  auto screen = top::TerminalScreen::open();
  if (!screen) return report(screen.error());
  HeldMessages messages;
  const std::unique_ptr<top::TerminalScreen> shown = std::move(*screen);
  const StopSignal stop;
  auto input = open_input_of_top(options, invocation);
  if (!input) return report(input.error());
  Display display(*shown, {.sorted_by = options.sorted_by(),
                           .by_process = options.by_process,
                           .filter = options.filter,
                           .input = escaped(std::filesystem::path(options.input).filename().string())});
  top::IntervalSink intervals(interval_options(options, true),
                              [&](top::Interval&& interval) { display.view().add(std::move(interval)); });
  display.draw();
  const int status = input->read(intervals, true);
  if (status == exit_ok) replay(display, *shown, stop, options.interval);
  return status;
}

/// Prints intervals as they come.
int print_intervals(const TopOptions& options, const Invocation& invocation) {
  auto output = open_output("");
  if (!output) return report(output.error());
  fit_terminal(terminal_columns((*output)->fd()));
  std::uint64_t printed = 0;
  const auto is_enough = [&] { return options.max_intervals != 0 && printed >= options.max_intervals; };
  top::IntervalSink intervals(interval_options(options, false), [&](const top::Interval& interval) {
    if (is_enough()) return;
    ++printed;
    const top::Column* const by = options.sorted_by();
    (*output)->write(options.json ? interval_json(interval, intervals.run(), by)
                                  : interval_text(interval, by, terminal_columns(STDOUT_FILENO), options.by_process));
  });
  int status = exit_ok;
  if (options.input.empty()) {
    status = trace(options, invocation, {.sink = intervals, .output = **output, .is_full = is_enough});
  } else {
    survive_output_failures();
    auto input = open_input_of_top(options, invocation);
    if (!input) return report(input.error());
    status = input->read(intervals, true);
  }
  return finish_output(**output, status);
}

}  // namespace

int run_top(const TopOptions& options, const Invocation& invocation) {
  if (!has_screen(options)) return print_intervals(options, invocation);
  return options.input.empty() ? show_live(options, invocation) : show_recording(options, invocation);
}

}  // namespace rtev::cli

// SPDX-License-Identifier: MIT
// Any arguments, each with a NUL behind it as in /proc/PID/cmdline. They are parsed, and nothing is run.
#include <iostream>
#include <sstream>
#include <utility>

#include "base/exit_status.hpp"
#include "cli/command_line.hpp"
#include "fuzz/fuzzing.hpp"
#include "support/terminal_check.hpp"

namespace rtev::fuzz {
namespace {

/// What is written to stdout and stderr while it lives.
class Printed {
 public:
  Printed() : out_(std::cout.rdbuf(stream_.rdbuf())), err_(std::exchange(stderr, ::open_memstream(&text_, &size_))) {}
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  ~Printed() {
    std::cout.rdbuf(out_);
    if (err_ != nullptr) text();
    std::free(text_);
  }
  /// All of it; then it ends.
  std::string text() {
    std::fclose(std::exchange(stderr, std::exchange(err_, nullptr)));
    return stream_.str() + std::string(text_, size_);
  }

 private:
  std::ostringstream stream_;
  std::streambuf* out_;
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* err_;
};

}  // namespace

void command_line(Bytes bytes) {
  Input input(bytes);
  std::vector<std::string> arguments{"rtev-bpf"};
  while (!input.empty() && arguments.size() < 32) arguments.emplace_back(input.take_until('\0'));

  static cli::CommandLine line;  // making one takes longer than parsing with it
  Printed printed;
  const auto parsed = line.parse(std::move(arguments));
  const std::string text = printed.text();
  if (parsed) {
    check(text.empty(), "an accepted command line prints nothing", text);
    check(static_cast<bool>(*parsed), "an accepted command line can be run");
    return;
  }
  check(parsed.error() == exit_ok || parsed.error() == exit_usage, "the status of a refused command line");
  check(!text.empty() && text.ends_with('\n'), "help and errors are lines", text);
  check(parsed.error() == exit_ok || text.contains("hint:"), "an error of usage has a hint", text);
  const std::string danger = test::terminal_danger(text);
  check(danger.empty(), "nothing controls the terminal", danger);
}

}  // namespace rtev::fuzz

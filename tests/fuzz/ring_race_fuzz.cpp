// SPDX-License-Identifier: MIT
// A ring file that another thread changes while it is read, as a hostile program can at any instant. The input is a
// list of changes and the file.
#include <atomic>
#include <memory>
#include <thread>

#include "fuzz/watched_reader.hpp"
#include "ring/ring_file.hpp"

namespace rtev::fuzz {
namespace {

constexpr std::size_t max_bytes = 1 << 21;

struct Change {
  std::uint16_t word;
  std::uint64_t value;
};

/// Overwrites words of a file again and again, each by the other value of two, from a thread of its own.
class Vandal {
 public:
  explicit Vandal(int fd)
      : words_(static_cast<std::uint64_t*>(::mmap(nullptr, max_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0))),
        thread_([this](const std::stop_token& stop) { run(stop); }) {
    check(words_ != MAP_FAILED, "mmap");
  }
  Vandal(const Vandal&) = delete;
  Vandal& operator=(const Vandal&) = delete;
  ~Vandal() {
    thread_.request_stop();
    set(State::wanted);
    thread_.join();
    ::munmap(words_, max_bytes);
  }

  /// Returns when the first change is made. The file must keep its size until stop().
  void start(std::vector<Change> changes, std::size_t file_bytes) {
    changes_ = std::move(changes);
    file_words_ = file_bytes / sizeof(std::uint64_t);
    set(State::wanted);
    state_.wait(State::wanted);
  }
  /// Returns after the last change.
  void stop() {
    if (State running = State::running; state_.compare_exchange_strong(running, State::unwanted)) {
      state_.notify_all();
      state_.wait(State::unwanted);
    }
  }

 private:
  enum class State { idle, wanted, running, unwanted };
  void set(State state) {
    state_ = state;
    state_.notify_all();
  }

  void run(const std::stop_token& stop) {
    while (true) {
      state_.wait(State::idle);
      if (stop.stop_requested()) return;
      bool is_running = false;
      do {
        for (auto& [word, value] : changes_)
          value = std::atomic_ref(words_[word % file_words_]).exchange(value, std::memory_order_relaxed);
        if (!std::exchange(is_running, true)) set(State::running);
      } while (state_.load(std::memory_order_relaxed) == State::running);
      set(State::idle);
    }
  }

  std::uint64_t* words_;
  std::vector<Change> changes_;
  std::size_t file_words_ = 0;
  std::atomic<State> state_ = State::idle;
  std::jthread thread_;
};

}  // namespace

void ring_race(Bytes bytes) {
  Input input(bytes);
  std::vector<Change> changes(input.take<std::uint8_t>() % 16);
  for (Change& change : changes) change = {.word = input.take<std::uint16_t>(), .value = input.take<std::uint64_t>()};

  // As large as the header says.
  const Bytes content = input.rest();
  const auto header = input.take<FileHeader>();
  const auto file_bytes = std::clamp<std::uint64_t>(file_size(header), sizeof header, max_bytes);
  static const UniqueFd file = file_of({});
  resize(file, 0);
  resize(file, file_bytes);
  static Vandal vandal(file.get());
  const auto size = std::min<std::size_t>(content.size(), file_bytes);
  check(::pwrite(file.get(), content.data(), size, 0) == static_cast<ssize_t>(size), "pwrite");

  auto opened = RingReader::adopt(::dup(file.get()), "fuzz", {});
  if (!opened) return;
  WatchedReader reader(std::move(*opened));
  vandal.start(std::move(changes), file_bytes);
  // Many polls: starting the other thread takes longer than they do.
  for (int i = 0; i < 32; ++i) reader.poll(i % 2 == 0 ? 100 : RingReader::default_budget_words);
  vandal.stop();
  RingReaderAccess::seal(*reader);
  reader.poll(RingReader::default_budget_words);
  reader.finish();
}

}  // namespace rtev::fuzz

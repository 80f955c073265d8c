// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "attacker.hpp"
#include "lookalike.hpp"

namespace rtev::hostile {
namespace {

constexpr std::size_t page_bytes = 4096;

/// What enabling looks through after it has read the maps: a tenth of a second.
constexpr std::size_t places = 2048;

/// Of the places, those that are exchanged without a signal; the others are once the first one is opened.
constexpr std::size_t flickering = 64;

/// How long enabling may take until it frees rings.
constexpr std::chrono::milliseconds attack_time{400};

/// The ring of an earlier trace, removed and still mapped: at many places, none of which joins the next one.
class RemovedRing {
 public:
  explicit RemovedRing(const Directory& dir) {
    const std::string path = dir / (std::to_string(::getpid()) + ".events");
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file_ < 0 || ::ftruncate(file_, 2 * places * page_bytes) != 0) fail("cannot make a ring");
    void* const memory = ::mmap(nullptr, places * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    memory_ = static_cast<char*>(memory);
    for (std::size_t place = 0; place < places; ++place) show_ring(place);
    opened_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (opened_ < 0 || ::inotify_add_watch(opened_, path.c_str(), IN_OPEN | IN_MODIFY) < 0) fail("inotify");
    if (::unlink(path.c_str()) != 0) fail("unlink");
  }

  void show_ring(std::size_t place) const { show(place, file_, 2 * place, PROT_READ | PROT_WRITE); }
  /// Maps another file there, which this process may only read.
  void show_other(std::size_t place, int file) const { show(place, file, 0, PROT_READ); }
  /// True once somebody has opened it, or written to it.
  bool is_opened() const {
    alignas(inotify_event) std::array<char, 4096> events{};
    return ::read(opened_, events.data(), events.size()) > 0;
  }

 private:
  void show(std::size_t place, int file, std::size_t page, int protection) const {
    if (::mmap(memory_ + place * page_bytes, page_bytes, protection, MAP_SHARED | MAP_FIXED, file,
               static_cast<off_t>(page * page_bytes)) == MAP_FAILED)
      fail("cannot exchange a mapping");
  }

  int file_ = -1, opened_ = -1;
  char* memory_ = nullptr;
};

std::vector<int> open_all(const Directory& dir) {
  std::vector<int> files;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    files.push_back(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
  return files;
}

void map_whole(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) == MAP_FAILED)
    fail("cannot map " + path);
}

/// Mappings that look like a removed ring for as long as they exist, of files that have a name.
void map_files_with_names(const Directory& dir) {
  const std::string ring = dir / (std::to_string(::getpid()) + ".events"), with_link = dir / "with-link";
  const std::string named = ring + " (deleted)";
  for (const std::string& path : {with_link, named}) std::ofstream(path) << std::string(page_bytes, 'x');
  if (::link(with_link.c_str(), ring.c_str()) != 0) fail("link");
  map_whole(ring);
  if (::unlink(ring.c_str()) != 0) fail("unlink");
  map_whole(named);
}

}  // namespace

int swapped_rings(const Directory& dir) {
  const std::vector<int> others = open_all(dir / "../targets");
  map_files_with_names(dir);
  const RemovedRing ring(dir);
  const Lookalike program;
  say("ready");
  if (program.await_request()) {
    if (!program.start_events(dir)) fail("cannot make a ring");
    const auto end = std::chrono::steady_clock::now() + attack_time;
    std::atomic<bool> is_over = false;
    std::thread flicker([&] {
      for (std::size_t turn = 0; !is_over; ++turn) {
        const std::size_t place = turn % flickering;
        ring.show_other(place, others[turn % others.size()]);
        ring.show_ring(place);
      }
    });
    while (!ring.is_opened() && std::chrono::steady_clock::now() < end) {
    }
    for (std::size_t place = places; place-- > flickering;) ring.show_other(place, others[place % others.size()]);
    std::this_thread::sleep_until(end);
    is_over = true;
    flicker.join();
    say("attacked");
  }
  constexpr int pause_ms = 10;
  return repeat([] {}, pause_ms);
}

}  // namespace rtev::hostile

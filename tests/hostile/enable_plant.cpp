// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attacker.hpp"

namespace rtev::hostile {
namespace {

using Clock = std::chrono::steady_clock;

/// What is put where a program makes its ring.
enum class Kind : std::uint8_t { closed_file, folder, link, fifo, cut_file };
constexpr std::size_t kinds = 5;

/// A program whose ring is to be made in a directory that others may change.
class Plant {
 public:
  Plant(const Directory& dir, std::size_t number, const std::string& pid, std::string directory, std::string way)
      : kind_(static_cast<Kind>(number % kinds)),
        directory_(std::move(directory)),
        way_(std::move(way)),
        target_(dir / "../targets" / pid),
        other_(Directory(directory_).parent_path() / ("other-" + pid)),
        ring_((is_of_parent() ? other_ : directory_) + "/" + pid + ".events"),
        pid_(pid) {
    if (!is_of_parent()) return;
    // An own directory, which takes the place of the other one, or a link to it does.
    std::filesystem::create_directory(other_);
    put();
    if (number % 2 == 1) {
      if (::symlink(other_.c_str(), (other_ + ".link").c_str()) != 0) fail("symlink");
      other_ += ".link";
    }
  }

  const std::string& directory() const { return directory_; }
  bool takes_signals() const { return !way_.ends_with("flicker"); }

  /// Something happened to the ring, or to another file in the directory, as when its rights are tried. What is put
  /// there stays until tidy().
  void act(std::string_view name, bool is_creation) {
    const bool is_ring = name == pid_ + ".events";
    if (is_there() || (awaits_creation() ? !is_ring || !is_creation : is_ring)) return;
    since_ = Clock::now();
    if (is_of_parent()) return exchange();
    take();
    put();
  }
  /// Has the directory be as before, after more than the time from a check to the creation of a ring: for the next try.
  void tidy() {
    constexpr std::chrono::milliseconds time{400};
    if (!is_there() || Clock::now() < *since_ + time) return;
    since_.reset();
    is_of_parent() ? exchange() : take_own();
  }
  /// There for a moment, then not.
  void flicker() {
    if (is_of_parent()) return exchange();
    put();
    take();
  }
  /// Cuts a file off under whoever has written a ring to it.
  void cut() {
    struct stat file{};
    if (is_cut_ || ::lstat(ring_.c_str(), &file) != 0 || !S_ISREG(file.st_mode) || file.st_uid != ::geteuid() ||
        file.st_size == 0)
      return;
    is_cut_ = true;
    [[maybe_unused]] const int ignored = ::truncate(ring_.c_str(), 0);
    say(("wrote to a file of another user: " + pid_).c_str());
  }

 private:
  bool awaits_creation() const { return way_.ends_with("creation"); }
  bool is_there() const { return since_.has_value(); }
  bool is_of_parent() const { return way_.starts_with("parent"); }

  void exchange() const { ::renameat2(AT_FDCWD, directory_.c_str(), AT_FDCWD, other_.c_str(), RENAME_EXCHANGE); }
  void put() const {
    switch (kind_) {
      case Kind::closed_file:
      case Kind::cut_file: {
        const mode_t mode = kind_ == Kind::closed_file ? 0 : 0666;
        const int file = ::open(ring_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (file < 0) return;
        ::fchmod(file, mode);
        ::close(file);
        return;
      }
      case Kind::folder:
        ::mkdir(ring_.c_str(), 0755);
        return;
      case Kind::link: {
        [[maybe_unused]] const int ignored = ::symlink(target_.c_str(), ring_.c_str());
        return;
      }
      case Kind::fifo:
        ::mkfifo(ring_.c_str(), 0666);
        return;
    }
  }
  /// In a sticky directory only what is this user's.
  void take() const {
    if (::unlink(ring_.c_str()) != 0) ::rmdir(ring_.c_str());
  }
  void take_own() const {
    struct stat file{};
    if (::lstat(ring_.c_str(), &file) == 0 && file.st_uid == ::geteuid()) take();
  }

  Kind kind_;
  std::string directory_, way_, target_, other_, ring_, pid_;
  std::optional<Clock::time_point> since_{};  ///< it is there
  bool is_cut_ = false;
};

/// A line for each program: its pid, the directory of its ring, and the way.
std::vector<Plant> read_plan(const Directory& dir) {
  std::vector<Plant> plants;
  std::ifstream plan(dir / "plan");
  for (std::string pid, directory, way; plan >> pid >> directory >> way;)
    plants.emplace_back(dir, plants.size(), pid, directory, way);
  return plants;
}

}  // namespace

int planted_rings(const Directory& dir) {
  ::umask(0);
  std::vector<Plant> plants = read_plan(dir);
  const int changes = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  std::map<int, Plant*> watched;
  for (Plant& plant : plants) {
    if (!plant.takes_signals()) continue;
    const int watch = ::inotify_add_watch(changes, plant.directory().c_str(), IN_OPEN | IN_CREATE | IN_CLOSE);
    if (watch < 0) fail("cannot watch " + plant.directory());
    watched[watch] = &plant;
  }
  return repeat([&] {
    alignas(inotify_event) std::array<char, 1 << 14> events{};
    const ssize_t got = ::read(changes, events.data(), events.size());
    for (ssize_t at = 0; at < got;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(&events[static_cast<std::size_t>(at)]);
      if (const auto plant = watched.find(event->wd); plant != watched.end())
        plant->second->act(event->len > 0 ? event->name : "", (event->mask & IN_CREATE) != 0);
      at += static_cast<ssize_t>(sizeof *event) + event->len;
    }
    for (Plant& plant : plants) {
      plant.takes_signals() ? plant.tidy() : plant.flicker();
      plant.cut();
    }
  });
}

}  // namespace rtev::hostile

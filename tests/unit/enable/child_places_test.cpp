// SPDX-License-Identifier: MIT
// Children that hang have a bounded number of places, whoever started them.
#include "enable/child_places.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "unit/enable/child.hpp"

namespace rtev::enable {
namespace {

class ChildPlacesTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t user = 12345, another = 54321;

  /// False if there is no place.
  bool hang(std::uint32_t of, const Child& child) {
    auto place = places_.take(of);
    if (!place) return false;
    EXPECT_TRUE(place->give(child.pid()));
    place->leave();
    return true;
  }
  /// That it has died by; 0: it has not.
  static int signal_of(const Child& child) {
    siginfo_t ended{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid()), &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    return ended.si_status;
  }
  bool has_place(std::uint32_t of) { return places_.take(of).has_value(); }
  /// Something that another process does, which is killed then.
  void in_worker(const std::function<void()>& work) {
    const pid_t worker = ::fork();
    if (worker == 0) {
      work();
      ::_exit(0);
    }
    ASSERT_EQ(::waitpid(worker, nullptr, 0), worker);
  }

  ChildPlaces places_;
};

TEST_F(ChildPlacesTest, AUserHasTwoUntilTheChildrenEnd) {
  const Child first([] {});
  std::optional<Child> second(std::in_place, [] {});
  EXPECT_TRUE(hang(user, first));
  EXPECT_TRUE(hang(user, *second));
  EXPECT_FALSE(has_place(user));
  EXPECT_TRUE(has_place(another));
  second.reset();
  EXPECT_TRUE(has_place(user));
}

TEST_F(ChildPlacesTest, TheFirstChildOfAUserHasRoomBeyondThoseOfOthers) {
  const Child child([] {});
  std::uint32_t last = 0;
  while (last < ChildPlaces::most) ASSERT_TRUE(hang(++last, child));
  EXPECT_FALSE(hang(last, child)) << "the second one of a user";
  while (last < ChildPlaces::all) ASSERT_TRUE(hang(++last, child));
  EXPECT_FALSE(hang(++last, child));
}

TEST_F(ChildPlacesTest, StayTakenWhenTheWorkerEnds) {
  const Child child([] {});
  in_worker([&] { places_.take(user)->give(child.pid()); });
  std::optional<Child> begun(std::in_place, [] {});
  in_worker([&] {
    auto place = places_.take(user);
    place->give(begun->pid());
    ::_exit(0);  // while it waits for the answer
  });
  EXPECT_TRUE(hang(user, child)) << "the first one was given back";
  EXPECT_FALSE(has_place(user));
  begun.reset();
  places_.take_over();
  EXPECT_TRUE(has_place(user));
}

TEST_F(ChildPlacesTest, ChildrenThatAKilledWorkerWaitedForAreKilled) {
  const Child begun([] {}), answered([] {}), hangs([] {});
  in_worker([&] {
    places_.take(user)->give(answered.pid());
    EXPECT_TRUE(hang(another, hangs));
    auto place = places_.take(user);
    place->give(begun.pid());
    ::_exit(0);
  });
  places_.take_over();
  EXPECT_EQ(signal_of(begun), SIGKILL);
  EXPECT_EQ(signal_of(answered), 0) << "its place was given back";
  EXPECT_EQ(signal_of(hangs), 0) << "run_in_child() kills these itself";
}

TEST_F(ChildPlacesTest, AreFreeAgainIfTheWorkerEndsBeforeItStartsTheChild) {
  const Child child([] {});
  in_worker([&] {
    const auto place = places_.take(user);
    ::_exit(0);
  });
  EXPECT_TRUE(hang(user, child));
  EXPECT_FALSE(has_place(user));
  places_.take_over();
  EXPECT_TRUE(has_place(user));
}

TEST_F(ChildPlacesTest, ThreadsWaitForEachOther) {
  constexpr int threads = 8, times = 50;
  std::atomic<std::size_t> present = 0, most = 0, taken = 0;
  std::vector<std::jthread> running;
  for (int thread = 0; thread < threads; ++thread)
    running.emplace_back([&] {
      for (int time = 0; time < times; ++time) {
        const auto place = places_.take(user);
        if (!place) continue;
        ++taken;
        const std::size_t now = ++present;
        for (std::size_t before = most; before < now && !most.compare_exchange_weak(before, now);) {
        }
        std::this_thread::yield();
        --present;
      }
    });
  running.clear();
  EXPECT_EQ(taken, threads * times);
  EXPECT_LE(most, ChildPlaces::most_of_user);
}

}  // namespace
}  // namespace rtev::enable

// SPDX-License-Identifier: MIT
// The BPF programs that user space runs, on the running kernel: whether a file is being changed, whether its pages can
// be touched, and whether its mappings let uprobes be attached.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file_links.hpp"
#include "helper/closers.hpp"
#include "live/kernel_fixture.hpp"
#include "support/temp_dir.hpp"

namespace rtev::kernel {
namespace {

using testing::Each;
using testing::ElementsAre;

TEST_F(KernelLive, AFileIsBeingChangedWhileAHoleIsCut) {
  const Programs programs = start({.sched = RTEV_SCHED_OFF});
  const UniqueFd file(::memfd_create("changed", MFD_CLOEXEC));
  constexpr std::size_t bytes = 64 << 20;
  ASSERT_EQ(::ftruncate(file.get(), bytes), 0);
  EXPECT_FALSE(programs.is_being_changed(file.get(), FileUse::read));
  EXPECT_FALSE(programs.is_being_changed(-1, FileUse::read));
  {
    const std::jthread changes([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        ::fallocate(file.get(), 0, 0, bytes);
        ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, bytes);
      }
    });
    // The timeout of the test ends this if it is never seen.
    while (!programs.is_being_changed(file.get(), FileUse::read)) {
    }
  }
  EXPECT_FALSE(programs.is_being_changed(file.get(), FileUse::read));
}

/// Pages of a file, mapped.
class MappedFile {
 public:
  MappedFile(const UniqueFd& file, std::size_t pages)
      : bytes_(pages * page_bytes()),
        mapping_(static_cast<std::byte*>(::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file.get(), 0))) {
    if (mapping_ == MAP_FAILED) throw std::runtime_error("cannot map a file");
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { ::munmap(mapping_, bytes_); }

  static std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  PageRange page(std::size_t number, std::size_t count = 1) const {
    return {mapping_ + number * page_bytes(), count * page_bytes()};
  }

 private:
  std::size_t bytes_;
  std::byte* mapping_;
};

/// What each of these ranges takes.
std::vector<PageState> states(Programs& programs, std::vector<PageRange> ranges) {
  programs.look_at_pages(ranges);
  std::vector<PageState> states;
  for (const PageRange& range : ranges) states.push_back(range.state);
  return states;
}

void write_page(const UniqueFd& file, std::size_t number) {
  const std::string page(MappedFile::page_bytes(), 'x');
  ASSERT_EQ(::pwrite(file.get(), page.data(), page.size(), static_cast<off_t>(number * page.size())), std::ssize(page));
}

TEST_F(KernelLive, PagesOfFilesInMemoryAreReadyUnlessTheyAreHoles) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  constexpr std::size_t pages = 100'000;
  const UniqueFd file(::memfd_create("pages", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(pages * MappedFile::page_bytes())), 0);
  // In all levels of the kernel's tree, and in none.
  for (const std::size_t page : {0ul, 1ul, 63ul, 64ul, 4095ul, 4096ul, 70'000ul, pages - 1}) {
    const MappedFile mapped(file, pages);
    SCOPED_TRACE(page);
    EXPECT_THAT(states(programs, {mapped.page(page)}), ElementsAre(PageState::hole));
    write_page(file, page);
    EXPECT_THAT(states(programs, {mapped.page(page)}), ElementsAre(PageState::ready))
        << "not in the page tables so far";
    EXPECT_EQ(std::byte{*mapped.page(page).address}, std::byte{'x'});
    EXPECT_THAT(states(programs, {mapped.page(page), mapped.page(page + 1 < pages ? page + 1 : 0)}),
                ElementsAre(PageState::ready, page + 1 < pages ? PageState::hole : PageState::ready));
  }
  // A part of a page, and ranges of many pages.
  const MappedFile mapped(file, pages);
  EXPECT_THAT(
      states(programs,
             {{mapped.page(4095).address + 100, 8}, mapped.page(63, 2), mapped.page(4095, 200), mapped.page(5000, 0)}),
      ElementsAre(PageState::ready, PageState::ready, PageState::hole, PageState::ready));
  EXPECT_THAT(states(programs, std::vector<PageRange>(1000, mapped.page(0))), Each(PageState::ready));
}

TEST_F(KernelLive, PagesOfAFileOnDiskMayBeAbsent) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  const test::TempDir dir;
  const UniqueFd file(::open((dir / "pages").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  for (std::size_t page = 0; page < 3; ++page) write_page(file, page);
  const MappedFile mapped(file, 3);
  EXPECT_THAT(states(programs, {mapped.page(0, 3)}), ElementsAre(PageState::ready));
  ASSERT_EQ(::fsync(file.get()), 0);
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  struct statfs system{};
  ASSERT_EQ(::fstatfs(file.get(), &system), 0);
  const bool on_disk = system.f_type != TMPFS_MAGIC;
  EXPECT_THAT(states(programs, {mapped.page(1)}), ElementsAre(on_disk ? PageState::absent : PageState::ready));
  std::byte read{};
  ASSERT_EQ(::pread(file.get(), &read, 1, static_cast<off_t>(MappedFile::page_bytes())), 1);
  EXPECT_THAT(states(programs, {mapped.page(1)}), ElementsAre(PageState::ready));
}

TEST_F(KernelLive, PagesAreBusyWhileTheyAreCut) {
  Programs programs = start({.sched = RTEV_SCHED_OFF});
  constexpr std::size_t pages = 1 << 14;
  const UniqueFd file(::memfd_create("pages", MFD_CLOEXEC));
  const std::size_t bytes = pages * MappedFile::page_bytes();
  ASSERT_EQ(::ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  const MappedFile mapped(file, pages);
  {
    const std::jthread changes([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes));
        ::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
      }
    });
    // The timeout of the test ends this if it is never seen.
    while (states(programs, {mapped.page(pages - 1)}) != std::vector{PageState::busy}) {
    }
  }
  EXPECT_THAT(states(programs, {mapped.page(pages - 1)}), ElementsAre(PageState::hole));
}

/// Maps a page of a file so many times.
void map_often(int file, int times) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (int i = 0; i < times; ++i)
    if (::mmap(nullptr, page, i % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE, file, 0) == MAP_FAILED) ::_exit(1);
}

TEST_F(KernelLive, TheMappingsOfAFileAreFreeUntilThereAreTooMany) {
  const Programs programs = start({.sched = RTEV_SCHED_OFF});
  const UniqueFd file(::memfd_create("mapped", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 1), 0);
  const auto mappings = [&] { return programs.mappings(file.get()); };
  EXPECT_EQ(mappings(), RTEV_MAPPINGS_FREE);
  EXPECT_EQ(programs.mappings(-1), RTEV_MAPPINGS_FREE);
  const Pipe mapped;
  const auto hold = [&](int times) {
    map_often(file.get(), times);
    mapped.put();
    ::pause();
  };
  // Each counts once: no mapping is missed, and none is counted twice.
  constexpr int half = RTEV_MAX_MAPPINGS / 2;
  const Child first{[&] { hold(half); }}, second{[&] { hold(half); }}, third{[&] { hold(1); }};
  for (const Child* child : {&first, &second}) {
    child->release();
    ASSERT_TRUE(mapped.get());
  }
  EXPECT_EQ(mappings(), RTEV_MAPPINGS_FREE);
  third.release();
  ASSERT_TRUE(mapped.get());
  EXPECT_EQ(mappings(), RTEV_MAPPINGS_MANY);
}

TEST_F(KernelLive, TheMappingsOfAFileAreLockedWhileAMemoryMapIs) {
  const Programs programs = start({.sched = RTEV_SCHED_OFF});
  const UniqueFd file(::memfd_create("mapped", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 1), 0);
  const Child child{[&] {
    map_often(file.get(), 1);
    // To fill much memory, and to free it, keeps the map locked for most of the time.
    constexpr std::size_t bytes = 64 << 20;
    while (true) {
      void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_POPULATE, -1, 0);
      ::munmap(memory, bytes);
    }
  }};
  EXPECT_EQ(programs.mappings(file.get()), RTEV_MAPPINGS_FREE);
  child.release();
  // The timeout of the test ends this if it is never seen.
  while (programs.mappings(file.get()) != RTEV_MAPPINGS_LOCKED) {
  }
}

TEST_F(KernelLive, TheMappingsOfAFileKeepItsLinksOpen) {
  const auto helper = helper::HelperProcess::start();
  ASSERT_TRUE(helper);
  const Programs programs = start({.sched = RTEV_SCHED_OFF});
  const auto file = std::make_shared<UniqueFd>(::memfd_create("mapped", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file->get(), 1), 0);
  Pipe link;
  const Pipe mapped;
  std::optional<Child> child(std::in_place, [&] {
    link.out.reset();
    map_often(file->get(), RTEV_MAX_MAPPINGS + 1);
    mapped.put();
    ::pause();
  });
  child->release();
  ASSERT_TRUE(mapped.get());
  const auto is_closed_within = [&](int timeout_ms) {
    pollfd closed{.fd = link.in.get(), .events = 0, .revents = 0};
    return ::poll(&closed, 1, timeout_ms) == 1;
  };
  {
    const helper::Closers closers(*helper);
    std::vector<FileLinks> files(1);
    files[0].file = file;
    files[0].links.push_back(std::move(link.out));
    EXPECT_TRUE(close_links_in_background(programs.mappings_program(), std::move(files)).empty());
  }
  EXPECT_FALSE(is_closed_within(200)) << "by a process without capabilities, after the end of the tracer";
  child.reset();
  EXPECT_TRUE(is_closed_within(20'000));
}

TEST_F(KernelLive, TheMappingsOfAFileOnAnOverlayAreThoseOfTheFileBelow) {
  const Programs programs = start({.sched = RTEV_SCHED_OFF});
  // Of its own, since an overlay cannot be the upper layer of another one.
  Child child{[&] {
    const std::string base = "/dev/shm/rtev-overlay." + std::to_string(::getpid());
    constexpr int not_possible = 77;
    if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mkdir(base.c_str(), 0700) != 0 || ::mount("tmpfs", base.c_str(), "tmpfs", 0, nullptr) != 0)
      ::_exit(not_possible);
    for (const char* const part : {"/lower", "/upper", "/work", "/merged"}) ::mkdir((base + part).c_str(), 0700);
    const UniqueFd below(::open((base + "/lower/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    const std::string options = "lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work";
    const bool is_mounted = ::ftruncate(below.get(), 1) == 0 &&
                            ::mount("overlay", (base + "/merged").c_str(), "overlay", 0, options.c_str()) == 0;
    int status = not_possible;
    if (is_mounted) {
      const UniqueFd file(::open((base + "/merged/file").c_str(), O_RDONLY | O_CLOEXEC));
      const bool was_free = programs.mappings(file.get()) == RTEV_MAPPINGS_FREE;
      map_often(file.get(), RTEV_MAX_MAPPINGS + 1);
      status = was_free && programs.mappings(file.get()) == RTEV_MAPPINGS_MANY ? 0 : 1;
    }
    ::umount2(base.c_str(), MNT_DETACH);
    ::rmdir(base.c_str());
    ::_exit(status);
  }};
  child.release();
  const int status = child.wait();
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "cannot mount an overlay";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace rtev::kernel

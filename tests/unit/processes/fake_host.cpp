// SPDX-License-Identifier: MIT
#include "unit/processes/fake_host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>

#include "base/clock.hpp"
#include "bpf/records.h"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t ms = 1'000'000, second = 1'000 * ms, ns_per_tick = 10 * ms;
constexpr RingFileOptions ring_options{.domains = 1, .words_log2 = 6, .names = false};
constexpr const char* mapping_range = "7f0000000000-7f0000100000";

RuntimeBinary ocaml() {
  RuntimeBinary runtime;
  runtime.version = "5.0";
  runtime.family = Family::before_5_3;
  return runtime;
}

/// Names from the file up to the root, as BPF reports them.
std::string names_of(const fs::path& path) {
  std::string names;
  for (fs::path rest = path; rest.has_relative_path(); rest = rest.parent_path())
    names.append(rest.filename().native()).push_back('\0');
  return names;
}

}  // namespace

FakeHost::FakeHost(Saving saving)
    // In the past, so that no event is from the future.
    : saving_(saving), now_ns_(monotonic_ns() - 60 * second), poller_([this](const Batch& batch) {
        for (const Event& event : batch.events()) {
          if (event.kind != EventKind::begin) continue;
          images_[registry_.ring(Source::unpack(event.source).slot)->process].ids.push_back(event.id);
        }
      }) {
  fs::create_symlink("/proc/self", proc_ / "self");
  for (const char* program : {"A", "B", "C", "sh"}) {
    write(dir_ / program, program);
    const UniqueFd fd{::open((dir_ / program).c_str(), O_RDONLY | O_CLOEXEC)};
    cache_.insert(BinaryCache::identify(fd.get()).value(),
                  std::string_view(program) == "sh" ? std::nullopt : std::optional(ocaml()));
  }
  discovery_ = std::make_unique<Discovery>(DiscoveryContext{.procfs = Procfs(proc_.path()),
                                                            .registry = registry_,
                                                            .processes = processes_,
                                                            .cache = cache_,
                                                            .inspector = inspector_,
                                                            .events = *this,
                                                            .kernel = *this,
                                                            .clock = [this] { return now_ns_; }},
                                           DiscoveryOptions{.since_ns = now_ns_});
  lookup_ = std::make_unique<LifecycleLookup>(
      Procfs(proc_.path()),
      LifecycleLookup::Callbacks{
          .ring_opened = [this](std::int32_t, std::uint64_t announced_ns) { ring_opened(pid, announced_ns); },
          .wait = [](std::uint64_t) {}});
  // The session begins with a scan, of nothing.
  scan();
}

FakeHost::~FakeHost() = default;

void FakeHost::write(const fs::path& path, const std::string& text) const {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

void FakeHost::exec(const std::string& program) {
  now_ns_ += ms;
  if (has_ring_) save_ring(true);
  has_ring_ = false;
  program_ = program;
  fs::remove_all(process_dir());
  write(process_dir() / "stat", fmt::format("{} ({}) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 {} 10 11 12 1 1\n",
                                            pid, program, start_ticks_));
  write(process_dir() / "status", fmt::format("Name:\t{}\nNSpid:\t{}\n", program, pid));
  write(process_dir() / "maps", "");
  fs::create_symlink(dir_ / program, process_dir() / "exe");
  add_record(RTEV_EXEC);
}

void FakeHost::create_ring() {
  now_ns_ += ms;
  if (!rings_.empty() && fs::exists(ring_path())) rings_.back().is_taken_over = true;
  Ring& ring = rings_.emplace_back();
  ring.announced_ns = now_ns_;
  ring.file = std::make_unique<RingFileBuilder>(ring_path(), ring_options);
  for (std::size_t i = 0; i < events_of_a_ring; ++i)
    ring.file->append(0, make::begin(now_ns_ + 1'000 * (i + 1), event_id(program_)));
  has_ring_ = true;
  const UniqueFd fd{::open(ring_path().c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat status{};
  ::fstat(fd.get(), &status);
  write(process_dir() / "maps", fmt::format("{} rw-s 00000000 {:x}:{:x} {} {}\n", mapping_range, major(status.st_dev),
                                            minor(status.st_dev), status.st_ino, ring_path().native()));
  // As in /proc, it leads to the file whatever becomes of its name.
  fs::create_directories(process_dir() / "map_files");
  fs::create_hard_link(ring_path(), process_dir() / "map_files" / mapping_range);
  add_record(RTEV_RING, ring_record_tail(), 0);
}

void FakeHost::remove_ring_file() {
  now_ns_ += ms;
  if (has_ring_) save_ring(false);
  fs::remove(ring_path());
}

void FakeHost::exit(int wait_status) {
  now_ns_ += ms;
  add_record(RTEV_EXIT, {}, static_cast<std::uint64_t>(wait_status));
}

void FakeHost::vanish() {
  now_ns_ += ms;
  fs::remove_all(process_dir());
  has_ring_ = false;
  program_.clear();
  ++start_ticks_;
}

/// As BPF does: before an exec in any case, when the ring is unmapped if it is not known to be open.
void FakeHost::save_ring(bool by_exec) {
  Ring& ring = rings_.back();
  if (saving_ == Saving::off || ring.saved || (!by_exec && ring.opened)) return;
  ring.saved = dir_ / fmt::format("saved-{}", rings_.size());
  ring.file->save(*ring.saved);
}

void FakeHost::add_record(rtev_lifecycle_type type, std::vector<std::byte> tail, std::uint64_t detail) {
  rtev_lifecycle record{};
  record.type = type;
  record.time_ns = now_ns_;
  record.start_time = start_ticks_ * ns_per_tick;
  record.tgid = record.tid = pid;
  record.detail = detail;
  program_.copy(record.comm, sizeof record.comm);
  records_.push_back({record, std::move(tail)});
}

std::vector<std::byte> FakeHost::ring_record_tail() const {
  const Procfs procfs;
  const auto mounts = procfs.mounts();
  rtev_ring_record record{};
  std::string paths;
  const auto place = [&](const fs::path& path, rtev_file& file) {
    const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    const OpenFile open = procfs.open_file(fd.get()).value();
    const auto mount = std::ranges::find(mounts, open.mount, &Mount::id);
    const std::string names = names_of(fs::path(mount->root) / fs::relative(path, mount->point));
    file = {.inode = open.inode,
            .device = static_cast<__u32>(major(mount->device) << 20 | minor(mount->device)),
            .path_bytes = static_cast<__u32>(names.size())};
    paths += names;
  };
  place(ring_path(), record.ring);
  place(dir_ / program_, record.program);
  paths.copy(record.paths, sizeof record.paths);
  const auto bytes = std::as_bytes(std::span(&record, 1));
  const auto tail = bytes.subspan(sizeof record.lifecycle,
                                  sizeof record - sizeof record.lifecycle - sizeof record.paths + paths.size());
  return {tail.begin(), tail.end()};
}

bool FakeHost::look_up() {
  if (records_.empty()) return false;
  const Record& record = records_.front();
  events_.push_back(lookup_->look_up(record.lifecycle, record.tail, events_.size()));
  records_.pop_front();
  return true;
}

void FakeHost::drop_record(std::size_t position) {
  records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(position));
}

void FakeHost::tick() {
  now_ns_ += ms;
  std::vector<LifecycleEvent> events(std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
  mark_ended_images(events);
  for (LifecycleEvent& event : events) discovery_->take(std::move(event));
  discovery_->tick(now_ns_, records_.empty() ? now_ns_ : 0);
  poller_.poll(now_ns_, [](std::uint32_t) { return true; });
}

void FakeHost::scan() {
  discovery_->begin_scan(now_ns_);
  discovery_->scan_some(now_ns_, SIZE_MAX);
}

void FakeHost::settle() {
  while (look_up()) {
  }
  tick();
  // Longer than anything is waited for, with a scan as a session makes them.
  for (int rounds = 0; rounds < 3; ++rounds) {
    now_ns_ += 3 * second;
    scan();
    tick();
    tick();
  }
}

void FakeHost::on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) {
  Image& image = images_[record.process];
  image.comm = registry_.process(record.process).comm;
  const auto later = std::ranges::upper_bound(image.times, time_ns);
  image.actions.insert(image.actions.begin() + (later - image.times.begin()), action);
  image.times.insert(later, time_ns);
}

void FakeHost::on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) {
  ++rings_opened_;
  poller_.add(slot, process, std::move(ring), now_ns_);
}

void FakeHost::on_image_end(const ImageEnd& end) {
  ++images_[end.process].ends;
  ProcessInfo& info = registry_.process(end.process);
  for (const std::uint32_t slot : end.slots) {
    poller_.finish(slot, end.time_ns, now_ns_, info, [&] {
      return slot == end.slots.back() ? take_saved_ring(pid, end.announced_ns, end.announced_ns) : std::nullopt;
    });
  }
}

void FakeHost::ring_opened(std::int32_t, std::uint64_t announced_ns) {
  const auto ring = std::ranges::find(rings_, announced_ns, &Ring::announced_ns);
  if (ring != rings_.end()) ring->opened = true;
}

bool FakeHost::is_latest_ring(std::int32_t, std::uint64_t announced_ns) {
  return rings_.empty() || rings_.back().announced_ns <= announced_ns;
}

std::optional<SavedRingFile> FakeHost::take_saved_ring(std::int32_t, std::uint64_t from_ns, std::uint64_t to_ns) {
  for (auto ring = rings_.rbegin(); ring != rings_.rend(); ++ring) {
    if (!ring->saved || ring->announced_ns < from_ns || ring->announced_ns > to_ns) continue;
    const fs::path path = *std::exchange(ring->saved, std::nullopt);
    return SavedRingFile{.fd = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC)), .cut = {}, .last = true};
  }
  return std::nullopt;
}

std::string FakeHost::story() const {
  std::string text;
  for (const auto& [index, image] : images_) {
    text += fmt::format("{}{}:", text.empty() ? "" : "; ", image.comm);
    for (const ProcessAction action : image.actions) text += fmt::format(" {}", to_string(action));
    if (!image.ids.empty()) text += fmt::format(" {}", image.ids.size());
  }
  return text;
}

void check_invariants(const FakeHost& host, const std::string& name, Attribution attribution) {
  using enum ProcessAction;
  SCOPED_TRACE(name + " -> " + host.story());
  for (const auto& [index, image] : host.images()) {
    const auto begins = std::ranges::count_if(
        image.actions, [](ProcessAction action) { return action == found || action == exec || action == fork; });
    EXPECT_EQ(begins, 1) << "an image begins once";
    EXPECT_EQ(std::ranges::count(image.actions, exit), 1) << "and ends once";
    // A scan may open a ring between the exit record and its reading.
    EXPECT_TRUE(image.actions.back() == exit || image.actions.back() == ring);
    EXPECT_EQ(image.ends, 1u);
    if (attribution == Attribution::unknown) continue;
    EXPECT_TRUE(image.actions.front() == found || image.actions.front() == exec || image.actions.front() == fork);
    for (const std::uint16_t id : image.ids)
      EXPECT_EQ(id, FakeHost::event_id(image.comm)) << "an event is attributed to its own image";
    EXPECT_LE(image.ids.size(), FakeHost::events_of_a_ring) << "an event is delivered once";
  }
  EXPECT_LE(host.rings_opened() + host.rings_missed(), host.rings_created())
      << "a ring is opened or missed, and not both";
  EXPECT_FALSE(host.has_unopened()) << "no ring is pending when all processes have ended";
}

}  // namespace rtev::test

// SPDX-License-Identifier: MIT
#include "unit/processes/fake_host.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>

#include "bpf/records.h"

namespace rtev::test {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t ms = 1'000'000, second = 1'000 * ms, ns_per_tick = 10 * ms;
constexpr RingFileOptions ring_options{.domains = 1, .words_log2 = 6, .names = false};
constexpr std::uint64_t mapping_begin = 0x7f0000000000, mapping_bytes = 0x100000;
constexpr const char* mapping_range = "7f0000000000-7f0000100000";

RuntimeBinary ocaml() {
  RuntimeBinary runtime;
  runtime.version = "5.0";
  runtime.family = Family::before_5_3;
  return runtime;
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

/// Names from the file up to the root, as BPF reports them.
std::string names_of(const fs::path& path) {
  std::string names;
  for (fs::path rest = path; rest.has_relative_path(); rest = rest.parent_path())
    names.append(rest.filename().native()).push_back('\0');
  return names;
}

}  // namespace

FakeHost::FakeHost(const FakeHostOptions& options)
    : options_(options),
      now_ns_(1'000 * second),
      poller_(
          [this](const Batch& batch) {
            for (const Event& event : batch.events()) {
              if (event.kind != EventKind::begin) continue;
              images_[registry_.ring(Source::unpack(event.source).slot)->process].ids.push_back(event.id);
            }
          },
          [](uid_t) { return RingPoller::any_room; }, 0) {
  fs::create_symlink("/proc/self", proc_ / "self");
  for (const char* program : {"A", "B", "C", "sh"}) {
    write(dir_ / program, program);
    const UniqueFd fd{::open((dir_ / program).c_str(), O_RDONLY | O_CLOEXEC)};
    cache_.insert(BinaryCache::identify(fd.get()).value(),
                  std::string_view(program) == "sh" ? std::nullopt : std::optional(ocaml()));
  }
  discovery_ = std::make_unique<Discovery>(DiscoveryContext{.queries = queries_,
                                                            .registry = registry_,
                                                            .processes = processes_,
                                                            .cache = cache_,
                                                            .inspector = inspector_,
                                                            .events = *this,
                                                            .kernel = *this,
                                                            .tasks = tasks_,
                                                            .clock = [this] { return now_ns_; }},
                                           DiscoveryOptions{.since_ns = now_ns_});
  // The session begins with a scan, of nothing.
  play("nt");
}

FakeHost::~FakeHost() = default;

void FakeHost::play(std::string_view steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == ' ') continue;
    const bool has_number = i + 1 < steps.size() && steps[i + 1] >= '0' && steps[i + 1] <= '2';
    play(steps[i], has_number ? steps[i + 1] - '0' : 0);
    i += has_number;
  }
}

void FakeHost::play(char step, int process) {
  now_ns_ += ms;
  switch (step) {
    case 'A':
    case 'B':
    case 'C':
      return exec(std::string(1, step), process);
    case 's':
      return exec("sh", process);
    case 'b':
      return load("B", process);
    case 'f':
      return fork(process);
    case 'r':
      return create_ring(process);
    case 'u':
      save_ring(process, false);
      fs::remove(ring_path(process));
      return;
    case 'x':
      return exit(process, 0);
    case 'a':
      return exit(process, SIGABRT);
    case '.':
      return vanish(process);
    case 'l':
      look_up();
      return;
    case 'L':
      while (look_up()) {
      }
      return;
    case 'd':
      return records_.pop_back();
    case 'R': {
      const ResolvedRecord& last = events_.back();
      ResolvedRecord again{.record = last.record, .files = last.files, .answered = true};
      events_.push_back(std::move(again));
      return;
    }
    case 't':
      return tick();
    case 'n':
      discovery_->begin_scan(ScanScope::all);
      queries_.process(now_ns_);
      discovery_->scan_some(SIZE_MAX);
      return queries_.process(now_ns_);
    default:
      ADD_FAILURE() << "no such step: " << step;
  }
}

void FakeHost::settle() {
  // Longer than anything is waited for, with scans as a session makes them.
  play("Lt");
  for (int rounds = 0; rounds < 3; ++rounds) {
    now_ns_ += 3 * second;
    play("ntt");
  }
}

void FakeHost::add_to_proc(int process) const {
  const Process& state = processes_on_host_.at(static_cast<std::size_t>(process));
  const fs::path dir = process_dir(process);
  fs::remove_all(dir);
  write(dir / "stat", fmt::format("{} ({}) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 {} 10 11 12 1 1\n",
                                  pid_of(process), state.program, state.start_ticks));
  write(dir / "status", fmt::format("Name:\t{}\nNSpid:\t{}\t{}\n", state.program, pid_of(process), ns_pid_of(process)));
  write(dir / "maps", "");
  fs::create_symlink(dir_ / state.program, dir / "exe");
}

void FakeHost::map_ring(int process, const fs::path& ring) const {
  struct stat status{};
  ::stat(ring.c_str(), &status);
  const fs::path dir = process_dir(process);
  write(dir / "maps", fmt::format("{} rw-s 00000000 {:x}:{:x} {} {}\n", mapping_range, major(status.st_dev),
                                  minor(status.st_dev), status.st_ino, ring_path(process).native()));
  // As in /proc, it leads to the file whatever becomes of its name.
  fs::create_directories(dir / "map_files");
  fs::remove(dir / "map_files" / mapping_range);
  fs::create_hard_link(ring, dir / "map_files" / mapping_range);
}

void FakeHost::load(const std::string& program, int process) {
  Process& state = processes_on_host_.at(static_cast<std::size_t>(process));
  save_ring(process, true);
  state.ring = nullptr;
  state.program = program;
  state.exec_written = false;
  state.true_image = true_images_.size();
  true_images_.push_back({.process = process, .start_ticks = state.start_ticks, .program = program});
  add_to_proc(process);
}

void FakeHost::exec(const std::string& program, int process) {
  Process& state = processes_on_host_.at(static_cast<std::size_t>(process));
  if (state.exec_written) load(program, process);
  state.exec_written = true;
  tracked_.erase(pid_of(process));
  add_record(RTEV_EXEC, process);
}

void FakeHost::fork(int child) {
  const Process& parent = processes_on_host_[0];
  Process& state = processes_on_host_.at(static_cast<std::size_t>(child));
  state.program = parent.program;
  state.true_image = true_images_.size();
  true_images_.push_back({.process = child, .start_ticks = state.start_ticks, .program = state.program});
  add_to_proc(child);
  if (parent.ring != nullptr) {
    fs::copy_file(process_dir(0) / "maps", process_dir(child) / "maps", fs::copy_options::overwrite_existing);
    fs::create_directories(process_dir(child) / "map_files");
    fs::create_hard_link(process_dir(0) / "map_files" / mapping_range,
                         process_dir(child) / "map_files" / mapping_range);
  }
  if (!tracked_.contains(pid_of(0))) return;
  tracked_.insert(pid_of(child));
  add_record(RTEV_FORK, 0);
  rtev_lifecycle& record = records_.back().lifecycle;
  record.peer = static_cast<__u32>(pid_of(child));
  record.start_time = state.start_ticks * ns_per_tick;
  record.ns_pid = static_cast<__u32>(ns_pid_of(child));
}

void FakeHost::create_ring(int process) {
  Process& state = processes_on_host_.at(static_cast<std::size_t>(process));
  Ring& ring = rings_.emplace_back();
  ring.process = process;
  ring.announced_ns = now_ns_;
  ring.path = ring_path(process);
  ring.file = std::make_unique<RingFileBuilder>(ring.path, ring_options);
  for (std::size_t i = 0; i < ring_events; ++i)
    ring.file->append(0, make::begin(now_ns_ + 1'000 * (i + 1), static_cast<std::uint16_t>(state.true_image)));
  ++true_images_[state.true_image].rings;
  state.ring = &ring;
  map_ring(process, ring.path);
  tracked_.insert(pid_of(process));
  add_record(RTEV_RING, process, ring_record_tail(process), mapping_bytes);
}

void FakeHost::exit(int process, int wait_status) {
  if (tracked_.erase(pid_of(process)) > 0) add_record(RTEV_EXIT, process, {}, static_cast<std::uint64_t>(wait_status));
}

void FakeHost::vanish(int process) {
  Process& state = processes_on_host_.at(static_cast<std::size_t>(process));
  fs::remove_all(process_dir(process));
  state = {.start_ticks = state.start_ticks + 1};
}

/// As BPF does: before an exec in any case, when the ring is unmapped if it is not known to be open.
void FakeHost::save_ring(int process, bool by_exec) {
  Ring* const ring = processes_on_host_.at(static_cast<std::size_t>(process)).ring;
  if (options_.saving == Saving::off || ring == nullptr || ring->saved || (!by_exec && ring->opened)) return;
  ring->saved = dir_ / fmt::format("saved-{}", ring->announced_ns);
  ring->saved_whole = options_.saving == Saving::whole || !by_exec;
  if (options_.saving == Saving::unusable) return write(*ring->saved, "");
  ring->file->save(*ring->saved);
}

void FakeHost::add_record(rtev_lifecycle_type type, int process, std::vector<std::byte> tail, std::uint64_t detail) {
  const Process& state = processes_on_host_.at(static_cast<std::size_t>(process));
  rtev_lifecycle record{};
  record.type = type;
  record.time_ns = now_ns_;
  record.start_time = state.start_ticks * ns_per_tick;
  record.tgid = record.tid = static_cast<__u32>(pid_of(process));
  record.detail = detail;
  record.ns_pid = static_cast<__u32>(ns_pid_of(process));
  state.program.copy(record.comm, sizeof record.comm);
  records_.push_back({record, std::move(tail)});
}

std::vector<std::byte> FakeHost::ring_record_tail(int process) const {
  const Procfs procfs;
  const auto mounts = procfs.mounts();
  rtev_ring_record record{};
  record.address = mapping_begin;
  std::string paths;
  const auto place = [&](const fs::path& path, rtev_file& file) {
    const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    const OpenFile open = procfs.open_file(fd.get()).value();
    const auto mount = std::ranges::find(mounts, open.mount, &Mount::id);
    ASSERT_NE(mount, mounts.end());
    const std::string names = names_of(fs::path(mount->root) / fs::relative(path, mount->point));
    file = {.inode = open.inode,
            .device = static_cast<__u32>(major(mount->device) << 20 | minor(mount->device)),
            .path_bytes = static_cast<__u32>(names.size())};
    paths += names;
  };
  place(ring_path(process), record.ring);
  place(dir_ / processes_on_host_.at(static_cast<std::size_t>(process)).program, record.program);
  paths.copy(record.paths, sizeof record.paths);
  const auto bytes = std::as_bytes(std::span(&record, 1));
  const auto tail = bytes.subspan(sizeof record.lifecycle,
                                  sizeof record - sizeof record.lifecycle - sizeof record.paths + paths.size());
  return {tail.begin(), tail.end()};
}

bool FakeHost::look_up() {
  if (records_.empty()) return false;
  const Record& record = records_.front();
  ResolvedRecord event{.record = record.lifecycle};
  if (const auto query = lookup_.query_for(event, record.tail, {.all = events_.size(), .of_user = events_.size()}))
    lookup_.add(event, look_at(procfs_, *query));
  if (!event.rings.empty() && event.rings.front().fd)
    ring_opened(static_cast<std::int32_t>(event.record.tgid), event.record.time_ns);
  events_.push_back(std::move(event));
  records_.pop_front();
  return true;
}

/// Takes as long as records may be late at most.
void FakeHost::tick() {
  now_ns_ += 60 * ms;
  tasks_.run(now_ns_);
  std::vector<ResolvedRecord> events(std::make_move_iterator(events_.begin()), std::make_move_iterator(events_.end()));
  events_.clear();
  mark_ended_images(events);
  for (ResolvedRecord& event : events) discovery_->take(std::move(event));
  queries_.process(now_ns_);
  discovery_->tick(now_ns_, records_.empty() ? now_ns_ : 0);
  poller_.poll(now_ns_, RingPoller::Which::active,
               {.take = [](std::uint32_t) { return kernel::RingActivity{.ran = true}; }});
}

void FakeHost::on_process(std::uint64_t time_ns, ProcessAction action, const ProcessRecord& record) {
  Image& image = images_[record.process];
  const ProcessInfo& info = registry_.process(record.process);
  image.pid = info.pid;
  image.start_ticks = info.start_ticks;
  image.comm = info.comm;
  if (action == ProcessAction::exit) image.status = record.detail;
  const auto later = std::ranges::upper_bound(image.times, time_ns);
  image.actions.insert(image.actions.begin() + (later - image.times.begin()), action);
  image.times.insert(later, time_ns);
}

void FakeHost::on_ring(ProcessIndex process, std::uint32_t slot, std::shared_ptr<RingReader> ring) {
  const ProcessInfo& info = registry_.process(process);
  rings_opened_ += std::ranges::any_of(rings_, [&](const Ring& created) {
    return pid_of(created.process) == info.pid && info.ring_path.ends_with(created.path.filename().native());
  });
  poller_.add(slot, process, 0, std::move(ring), now_ns_);
}

void FakeHost::on_image_end(const ImageEnd& end) {
  ++images_[end.process].ends;
  EXPECT_EQ(end.by_exec, images_[end.process].status == exit_by_exec);
  ProcessInfo& info = registry_.process(end.process);
  for (const std::uint32_t slot : end.slots) {
    poller_.seal(slot, end.time_ns);
    poller_.read_last(slot, now_ns_);
    poller_.finish(slot, now_ns_, info, [&] {
      return slot == end.slots.back() ? take_saved(info.pid, end.announced_ns, end.announced_ns) : std::nullopt;
    });
  }
}

void FakeHost::ring_opened(std::int32_t, std::uint64_t announced_ns) {
  const auto ring = std::ranges::find(rings_, announced_ns, &Ring::announced_ns);
  if (ring != rings_.end()) ring->opened = true;
}

bool FakeHost::is_latest_ring(std::int32_t pid, std::uint64_t announced_ns) {
  return std::ranges::none_of(
      rings_, [&](const Ring& ring) { return pid_of(ring.process) == pid && ring.announced_ns > announced_ns; });
}

std::optional<SavedRingFile> FakeHost::take_saved_ring(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  auto copy = take_saved(pid, from_ns, to_ns);
  incomplete_copies_ += copy && options_.saving == Saving::incomplete && !copy->last;
  return copy;
}

std::optional<SavedRingFile> FakeHost::take_saved(std::int32_t pid, std::uint64_t from_ns, std::uint64_t to_ns) {
  for (auto ring = rings_.rbegin(); ring != rings_.rend(); ++ring) {
    if (pid_of(ring->process) != pid || !ring->saved || ring->announced_ns < from_ns || ring->announced_ns > to_ns)
      continue;
    const fs::path path = *std::exchange(ring->saved, std::nullopt);
    return SavedRingFile{
        .fd = UniqueFd(::open(path.c_str(), O_RDWR | O_CLOEXEC)), .cut = {}, .last = ring->saved_whole};
  }
  return std::nullopt;
}

std::string FakeHost::story() const {
  std::string text;
  for (const auto& [index, image] : images_) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", image.comm);
    if (number_of(image) != 0) text += std::to_string(number_of(image));
    text += ":";
    for (const ProcessAction action : image.actions) {
      const bool is_exit = action == ProcessAction::exit;
      text += fmt::format(" {}", is_exit && image.status == exit_by_exec  ? "replaced"
                                 : is_exit && image.status == exit_unseen ? "unseen"
                                                                          : to_string(action));
    }
    if (!image.ids.empty()) text += fmt::format(" {}", image.ids.size());
  }
  return text;
}

std::size_t FakeHost::rings_charged() const {
  std::size_t rings = 0;
  for (const ProcessInfo& info : registry_.processes()) rings += info.missed.gone;
  return rings;
}

std::size_t FakeHost::events_delivered() const {
  std::size_t events = 0;
  for (const auto& [index, image] : images_) events += image.ids.size();
  return events;
}

void check_invariants(const FakeHost& host, const std::string& name, Attribution attribution) {
  using enum ProcessAction;
  const bool known = attribution == Attribution::known;
  SCOPED_TRACE(name + " -> " + host.story());
  std::map<std::uint16_t, std::size_t> delivered;
  for (const auto& [index, image] : host.images()) {
    const auto is_begin = [](ProcessAction action) { return action == found || action == exec || action == fork; };
    EXPECT_EQ(std::ranges::count_if(image.actions, is_begin), 1) << "an image begins once";
    EXPECT_EQ(std::ranges::count(image.actions, exit), 1) << "and ends once";
    EXPECT_EQ(image.ends, 1u);
    for (const std::uint16_t id : image.ids) ++delivered[id];
    if (!known) continue;
    EXPECT_TRUE(is_begin(image.actions.front())) << "begins before all else";
    EXPECT_EQ(image.actions.back(), exit) << "ends after all else";
    for (const std::uint16_t id : image.ids) {
      const FakeHost::TrueImage& writer = host.true_images().at(id);
      EXPECT_TRUE(writer.process == host.number_of(image) && writer.start_ticks == image.start_ticks &&
                  writer.program == image.comm)
          << "an event is attributed to its own image";
    }
    // Images of one process may run the same program.
    const auto is_same = [&](const auto& other) {
      if constexpr (requires { other.program; })
        return other.process == host.number_of(image) && other.start_ticks == image.start_ticks &&
               other.program == image.comm;
      else
        return other.second.pid == image.pid && other.second.start_ticks == image.start_ticks &&
               other.second.comm == image.comm;
    };
    EXPECT_LE(std::ranges::count_if(host.images(), is_same), std::ranges::count_if(host.true_images(), is_same))
        << "an image is reported once";
  }
  if (known) {
    for (const auto& [id, events] : delivered)
      EXPECT_LE(events, host.true_images().at(id).rings * FakeHost::ring_events) << "an event is delivered once";
    EXPECT_LE(host.rings_opened() + host.rings_missed() - host.rings_unfinished(), host.rings_created())
        << "a ring is opened or missed, and not both";
  }
  EXPECT_LE(host.rings_charged(), host.rings_missed());
  EXPECT_FALSE(host.has_unopened()) << "no ring is pending when all processes have ended";
}

void check_all_accounted(const FakeHost& host, const std::string& name) {
  SCOPED_TRACE(name + " -> " + host.story());
  EXPECT_EQ(host.rings_opened() + host.rings_missed() - host.rings_unfinished(), host.rings_created());
  EXPECT_GE(host.events_delivered(), (host.rings_opened() - host.rings_unfinished()) * FakeHost::ring_events);
}

}  // namespace rtev::test

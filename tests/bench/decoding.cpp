// SPDX-License-Identifier: MIT
// Decoding speed of readers on full rings that are not being written.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/ocaml_program.hpp"
#include "bench/peer.hpp"
#include "bench/producer.hpp"
#include "ring/ring_map.hpp"
#include "rtev/ring_reader.hpp"

namespace rtev::bench {
namespace {

constexpr int cpu = 1;

/// OCaml's integers have 63 bits, so only these are compared.
constexpr std::uint64_t comparable = ~std::uint64_t{0} >> 1;

/// Faults in the pages of every mapped ring file, so that the first poll has no page faults. Finds them by the
/// process's mappings, since readers do not expose theirs.
void touch_rings() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0;
    if (!line.ends_with(".events")) continue;
    const auto begin = std::stoull(line, &dash, 16), end = std::stoull(line.substr(dash + 1), nullptr, 16);
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_READ);
  }
}

Decoded decode_ours(const std::filesystem::path& path, int times, bool touched) {
  Decoded decoded;
  const auto see = [&](const Batch& batch) {
    for (const Event& event : batch.events()) decoded.time_sum += event.time;
    const Event& first = batch.events().front();
    if (first.kind == EventKind::lost) decoded.time_sum -= first.time;  // not an event of the ring
  };
  for (int i = 0; i < times; ++i) {
    auto reader = RingReader::open(path);
    if (!reader) throw std::runtime_error(reader.error().message());
    if (touched) touch_rings();
    const std::uint64_t start = thread_cpu_ns();
    while (!reader->poll(see).complete) {
    }
    decoded.ns += thread_cpu_ns() - start;
    decoded.events += reader->accounting().events;
  }
  return decoded;
}

/// Copies the same bytes in pieces, as a reader does that decodes a copy.
std::uint64_t copy_ns(const std::filesystem::path& path, unsigned log2_words, int times) {
  constexpr std::size_t piece = 32 << 10;
  std::vector<std::byte> copy(piece);
  const std::size_t bytes = std::size_t{8} << log2_words;
  std::uint64_t ns = 0;
  for (int i = 0; i < times; ++i) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    void* map = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (map == MAP_FAILED) throw std::runtime_error("cannot map a ring");
    touch_rings();
    const std::uint64_t start = thread_cpu_ns();
    for (std::size_t at = 0; at < bytes; at += piece) {
      std::memcpy(copy.data(), static_cast<const std::byte*>(map) + at, piece);
      asm volatile("" : : "r"(copy.data()) : "memory");
    }
    ns += thread_cpu_ns() - start;
    ::munmap(map, bytes);
  }
  return ns;
}

/// Goes from message to message and writes events of the same size, without checks and translations: the least that any
/// decoder has to do. As in ours, a branch decides where the next message is.
std::uint64_t walk_ns(const std::filesystem::path& path, int times) {
  constexpr std::size_t events_in_a_piece = 1024;
  std::vector<std::array<std::uint64_t, 3>> piece(events_in_a_piece);
  std::uint64_t ns = 0;
  for (int i = 0; i < times; ++i) {
    auto map = RingMap::open(UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path);
    if (!map) throw std::runtime_error(map.error().message());
    touch_rings();
    const std::uint64_t start = thread_cpu_ns();
    std::vector<RingIndices> indices(map->layout().rings);
    if (!map->load_indices(indices)) throw std::runtime_error("cannot read the indices of a ring");
    const auto words = map->words(0, 0, map->layout().ring_words);
    std::size_t event = 0;
    for (std::uint64_t position = indices[0].head; position < indices[0].tail;) {
      const std::uint64_t* const message = words.data() + (position & (words.size() - 1));
      auto& out = piece[event++ % events_in_a_piece];
      const std::uint64_t length = message[0] >> message::length_shift;
      out[0] = message[1];
      out[2] = message[0];
      if (length == 2) {
        out[1] = 0;
        position += 2;
      } else if (length == 3) {
        out[1] = message[2];
        position += 3;
      } else {
        position += length;
      }
      if (event % events_in_a_piece == 0) asm volatile("" : : "r"(piece.data()) : "memory");
    }
    ns += thread_cpu_ns() - start;
  }
  return ns;
}

/// A file with one full ring.
struct Subject {
  std::string what;
  std::filesystem::path directory;
  pid_t pid;
  unsigned log2_words;

  std::filesystem::path path() const { return directory / fmt::format("{}.events", pid); }
};

/// Measures several readers of one file in turn.
class Decoding {
 public:
  Decoding(Subject subject, bool touched, const Effort& effort)
      : subject_(std::move(subject)), touched_(touched), times_(subject_.log2_words < 20 ? 40 : 4) {
    if (has_ocaml()) {
      c_.emplace(PeerKind::c, subject_.directory, subject_.pid, cpu);
      ocaml_.emplace(PeerKind::ocaml, subject_.directory, subject_.pid, cpu);
    }
    for (int round = 0; round < effort.rounds; ++round) measure();
  }

  void report(Report& report) const {
    const auto row = [&](const Series& peer, std::optional<Goal> goal, std::string note) {
      report.add({.section = "decode",
                  .what = fmt::format("e={}, {}{}", subject_.log2_words, subject_.what, touched_ ? "" : ", first look"),
                  .unit = "M events/s",
                  .subject = ours_rate_,
                  .peer = peer,
                  .goal = std::move(goal),
                  .note = std::move(note)});
    };
    const std::string how = touched_ ? "for every reader the pages of its mapping are present before the poll"
                                     : "for every reader the page faults of its new mapping are included";
    if (has_ocaml()) {
      // A ring can be read for the first time only once.
      const auto goal = [&](double ratio) {
        return touched_ ? std::optional(Goal::at_least(ratio, "x")) : std::nullopt;
      };
      row(c_rate_, goal(8), disagreement_ + how);
      row(ocaml_rate_, goal(20), {});
    }
    if (!touched_) return;
    row(copy_rate_, std::nullopt, has_ocaml() ? "" : "no OCaml here: its readers are missing");
    row(walk_rate_, std::nullopt, "the loop loads each message and stores an event, and checks nothing");
  }

 private:
  void measure() {
    const Decoded ours = decode_ours(subject_.path(), times_, touched_);
    const auto rate = [&](std::uint64_t ns) {
      return static_cast<double>(ours.events) * 1e3 / static_cast<double>(ns);
    };
    ours_rate_.runs.push_back(rate(ours.ns));
    for (auto& [peer, series] : {std::pair{&c_, &c_rate_}, std::pair{&ocaml_, &ocaml_rate_}}) {
      if (!*peer) continue;
      const Decoded theirs = (*peer)->round(times_, touched_);
      series->runs.push_back(rate(theirs.ns));
      if (theirs.events != ours.events || (theirs.time_sum & comparable) != (ours.time_sum & comparable)) {
        disagreement_ = fmt::format("WRONG: {} saw {} events, rtev saw {}, or their times differ; ", series->name,
                                    theirs.events, ours.events);
      }
    }
    copy_rate_.runs.push_back(rate(copy_ns(subject_.path(), subject_.log2_words, times_)));
    walk_rate_.runs.push_back(rate(walk_ns(subject_.path(), times_)));
  }

  Subject subject_;
  bool touched_;
  int times_;
  std::optional<DecodingPeer> c_, ocaml_;
  Series ours_rate_{.name = "rtev", .runs = {}};
  Series c_rate_{.name = std::string(name_of(PeerKind::c)), .runs = {}};
  Series ocaml_rate_{.name = std::string(name_of(PeerKind::ocaml)), .runs = {}};
  Series copy_rate_{.name = "memcpy of the bytes", .runs = {}};
  Series walk_rate_{.name = "a loop without checks", .runs = {}};
  std::string disagreement_;
};

void decode_file(Report& report, const Subject& subject, const Effort& effort) {
  for (const bool touched : {true, false}) Decoding(subject, touched, effort).report(report);
}

/// A preserved ring of an OCaml program that does many collections.
void decode_real(Report& report, const Effort& effort) {
  constexpr unsigned log2_words = 16;
  constexpr int collections = 2000;
  const test::TempDir directory;
  test::Command command = ocaml_program("busy_alloc", directory.path(), {std::to_string(collections)});
  command.env["OCAML_RUNTIME_EVENTS_PRESERVE"] = "1";
  command.env["OCAMLRUNPARAM"] = fmt::format("e={},d=1", log2_words);
  test::Process program(command);
  const pid_t pid = program.pid();
  program.close_stdin();
  program.wait();
  decode_file(report, {"an OCaml program's", directory.path(), pid, log2_words}, effort);
}

}  // namespace

void decode(Report& report, const Effort& effort) {
  const CpuBinding binding(cpu);
  for (const unsigned log2_words : {16u, 20u}) {
    for (const Mix mix : {Mix::runtime, Mix::user}) {
      Ring ring(log2_words);
      ring.fill(mix);
      decode_file(report, {std::string(name_of(mix)), ring.directory(), ::getpid(), log2_words}, effort);
    }
  }
  if (has_ocaml()) decode_real(report, effort);
}

}  // namespace rtev::bench

// SPDX-License-Identifier: MIT
// Writes the well-formed inputs from which fuzzing starts: make_seeds tests/fuzz/corpus. The files are part of the
// tree; run it again when a format changes. Inputs that once failed are in the same folders and are kept.
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "bpf/records.h"
#include "formats/fxt/fxt_sink.hpp"
#include "formats/output/output.hpp"
#include "fuzz/fuzzing.hpp"
#include "ring/ring_file.hpp"
#include "rtev/fxt_writer.hpp"
#include "stream/records.hpp"
#include "support/ring_file_builder.hpp"
#include "unit/inspect/runtime_shapes.hpp"
#include "unit/stream/world.hpp"
#include "unit/unwind/frametable_writer.hpp"
#include "unit/unwind/line_writer.hpp"

namespace rtev::fuzz {
namespace {

namespace fs = std::filesystem;
namespace make = test::make;

/// The bytes of an input, written one after the other.
class Seed {
 public:
  template <typename Number>
  Seed& number(Number number) {
    return bytes(std::as_bytes(std::span(&number, 1)));
  }
  Seed& byte(unsigned value) { return number(static_cast<std::uint8_t>(value)); }
  Seed& bytes(std::span<const std::byte> bytes) {
    return text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  Seed& text(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& bytes_so_far() const { return text_; }
  void save(const fs::path& folder, const std::string& name) const {
    fs::create_directories(folder);
    std::ofstream(folder / ("seed-" + name), std::ios::binary) << text_;
  }

 private:
  std::string text_;
};

/// A ring file with messages of every kind, without the unwritten rest of its data.
std::string ring_file(unsigned words_log2, bool names) {
  test::RingFileBuilder file({.domains = 2, .words_log2 = words_log2, .names = names});
  std::array<std::uint64_t, alloc_bucket_count> buckets{42};
  for (std::uint64_t time = 1; time < 6; ++time) {
    const auto domain = static_cast<std::uint32_t>(time % 2);
    file.append(domain, make::lifecycle(time, Lifecycle::ring_start, 42));
    file.append(domain, make::begin(time, 3));
    file.append(domain, make::counter(time, 5, 7));
    file.append(domain, make::alloc(time, buckets));
    file.append(domain, make::end(time, 3));
    if (!names) continue;
    file.append(domain, make::user_custom(time, 1, "custom"));
    file.append(domain, make::user_begin(time, 2));
    file.append(domain, make::user_int(time, 0, -1));
  }
  const auto bytes = file.bytes().first(std::min<std::size_t>(file.bytes().size(), 2048));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A recording with an event of every kind.
std::string recording() {
  test::World world;
  world.user_names = {{3, "request"}};
  StringOutput file;
  FxtSink sink(file, {.max_held_ns = 0});
  sink.header({.version = "1", .host = "h", .kernel = "6", .command_line = {"a", "b"}, .start_ns = 1});
  test::Events events(world.slot), host(0);
  using enum EventKind;
  events.add(20, begin, 6).add(21, user_begin, 3).add(22, end, 6).add(23, user_end, 3).add(24, counter, 5, 7);
  events.add_bytes(25, alloc, std::string(160, 'a')).add(26, lifecycle, 6, 9).add(27, user_unit, 3).late();
  events.add(28, user_int, 4, 5).add_bytes(29, user_custom, "text", 3).add_bytes(30, user_custom, "\xff", 3);
  events.add_record(31, lost, Loss{.words = 1, .from_ns = 30, .to_ns = 31}).add_bytes(32, lost, "none");
  events.add(33, end, 9).add_record(34, process, ProcessRecord{.process = world.process, .peer = 0, .detail = 0}, 7);
  const Thread thread = test::make_thread(4242, 4243, "server", true), idle = test::make_thread(0, 0, "swapper", false);
  host.add_record(35, sched_switch, SchedSwitch{.cpu = 1, .state = LeftState::idle, .prev = thread, .next = idle});
  host.add_record(36, wakeup, Wakeup{.cpu = 1, .woken = thread, .by = idle});
  sink.consume(events.batch(), world.registry);
  sink.consume(host.batch(), world.registry);
  sink.summary({.drops = {{.kind = "switch", .count = 1}}}, world.registry);
  return file.text();
}

/// A trace with a record of every kind.
std::string trace() {
  FxtMemory memory;
  FxtWriter writer(memory);
  const auto thread = writer.thread(100, 101);
  const auto gc = writer.intern("gc");
  const std::byte payload[] = {std::byte{1}, std::byte{2}, std::byte{3}};
  writer.name_process(100, "main.exe");
  writer.name_thread(100, 101, gc);
  fxt::Arguments arguments;
  arguments.add(gc, true).add("b", 1).add("c", 2u).add("d", std::int64_t{3}).add("e", 4.5).add("k", std::uint64_t{9});
  arguments.add("f", gc).add("g", "text").add("h", fxt::Pointer{5}).add("i", fxt::Koid{6}).add("j", fxt::Blob{payload});
  const auto compose = [&](fxt::EventType type) { return writer.compose(type, thread, gc, gc); };
  for (const auto type : {fxt::instant, fxt::duration_begin, fxt::duration_end}) writer.write(compose(type), 1);
  writer.write(compose(fxt::counter), 2, fxt::CounterId{3});
  writer.write(compose(fxt::duration_complete), 2, fxt::EndTime{3});
  for (const auto type : {fxt::async_begin, fxt::async_instant, fxt::async_end})
    writer.write(compose(type), 2, fxt::AsyncId{3});
  for (const auto type : {fxt::flow_begin, fxt::flow_step, fxt::flow_end})
    writer.write(compose(type), 2, fxt::FlowId{3});
  writer.write(writer.compose(fxt::instant, thread, gc, gc, {{fxt::ArgumentType::blob, gc}}), 20, fxt::Blob{payload});
  writer.write(fxt::ContextSwitch{.time = 21, .cpu = 1, .outgoing_tid = 101, .incoming_weight = fxt::idle_weight});
  writer.write(fxt::Wakeup{.time = 23, .cpu = 1, .tid = 101, .weight = 1, .waker_tid = 7});
  writer.write(fxt::UserspaceObject{.address = 9, .process = thread, .name = "object"}, arguments);
  writer.write(fxt::UserspaceObject{.address = 9, .pid = 100}, arguments);
  writer.buffer_full();
  writer.flush();
  return {reinterpret_cast<const char*>(memory.bytes().data()), memory.bytes().size()};
}

void rings(const fs::path& corpus) {
  const std::string small = ring_file(6, false), named = ring_file(6, true), large = ring_file(13, true);
  Seed().byte(0).text(small).save(corpus / "ring", "small");
  Seed().byte(2).text(named).save(corpus / "ring", "names");
  Seed().byte(2 + 4 + 8).text(large).save(corpus / "ring", "large");
  Seed().byte(2 + 16 + 32).text(named).save(corpus / "ring", "owned");

  for (const unsigned words_log2 : {6U, 9U}) {
    Seed seed;
    seed.byte(4);
    // Head and tail of both rings; then a first word, a time, and words beyond.
    for (const int word : {8, 9, 18, 19}) seed.number(static_cast<std::uint16_t>(word)).number(std::uint64_t{64});
    seed.text(ring_file(words_log2, false)).save(corpus / "ring_race", fmt::format("indices-{}", words_log2));
    Seed words;
    words.byte(3);
    for (const int word : {28, 29, 32}) words.number(static_cast<std::uint16_t>(word)).number(~std::uint64_t{0});
    words.text(ring_file(words_log2, false)).save(corpus / "ring_race", fmt::format("words-{}", words_log2));
  }

  // The last one has an owner, and a header that grows before the end.
  for (const unsigned shape : {0U, 5U, 15U, 48U}) {
    Seed()
        .number(std::uint64_t{shape + 1})
        .byte(shape)
        .text(named.substr(0, 1024))
        .save(corpus / "ring_changes", fmt::format("shape-{}", shape));
  }

  for (const bool names : {false, true}) {
    const FileHeader header = make_header(2, 64, names), other = make_header(4, 16, names);
    Seed()
        .number(file_size(header))
        .number(header)
        .number(other)
        .save(corpus / "ring_header", names ? "names" : "plain");
  }
}

void saved_rings(const fs::path& corpus) {
  // The words of the first domain as positions [0, 20).
  const std::string file = ring_file(6, false);
  const std::string words = file.substr(make_header(2, 64, false).data_offset, 160);
  const auto piece = [](unsigned type, std::uint16_t begin, std::uint16_t length, unsigned payload_words) {
    Seed seed;
    seed.byte(type).byte(1).byte(1).byte(0).number(begin).number(length).byte(0).byte(payload_words);
    return seed.bytes_so_far();
  };
  const std::string ring = piece(RTEV_SAVED_RING, 1, 0, 0), domain = piece(RTEV_SAVED_DOMAIN, 0, 20, 0);
  const fs::path folder = corpus / "saved_rings";
  Seed().text(ring).text(piece(RTEV_SAVED_WORDS, 0, 20, 20)).text(words).text(domain).save(folder, "whole");
  Seed()
      .text(ring)
      .text(piece(RTEV_SAVED_WORDS, 12, 8, 8) + words.substr(96))
      .text(piece(RTEV_SAVED_WORDS, 0, 8, 8) + words.substr(0, 64))
      .text(domain)
      .text(piece(RTEV_SAVED_NAME, 3, 0, 128) + std::string(128, 'n'))
      .text(piece(RTEV_SAVED_LAST, 0, 0, 0))
      .save(folder, "cut");
}

void places(const fs::path& corpus) {
  const std::string_view paths("7.events\0my dir\0tmp\0hello\0bin\0", 30);
  const rtev_file ring{.inode = 5, .device = 8 << 20 | 1, .path_bytes = 20};
  const rtev_file program{.inode = 6, .device = 8 << 20 | 1, .path_bytes = 10};
  Seed()
      .byte(3)
      .text(
          "36 35 8:1 / / rw,noatime shared:1 - ext4 /dev/sda rw\n"
          "37 36 8:1 /tmp /mnt\\040x rw - ext4 /dev/sda rw\n38 36 8:1 / /f rw - fuse.sshfs none rw\n")
      .number(__s64{-5})
      .number(ring)
      .number(program)
      .text(paths)
      .save(corpus / "ring_record", "two-paths");
}

void texts(const fs::path& corpus) {
  const fs::path procfs = corpus / "procfs";
  const std::string stat =
      "77 (a) (b) S 1 77 77 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 3 0 12345 1000 200 18446744073709551615";
  const std::string maps = "7f1000000000-7f1004103000 rw-s 0000a000 fe:12 1234567       /run/app/77.events (deleted)";
  const std::string mount = "36 35 8:17 /srv/data /mnt\\040x rw,noatime shared:1 master:2 - btrfs /dev/sda rw,x=y";
  Seed().byte(0).text("Name:\ta\nNSpid:\t77\t5\nVmHWM:\t  1234 kB\n").save(procfs, "status");
  Seed().byte(1).text("monotonic -86400 500\nboottime 1 2\n").save(procfs, "timens_offsets");
  Seed().byte(2).text(maps + "\n" + maps + "\n1000-2000 r-xp 0 0:0 0\n").save(procfs, "maps");
  Seed().byte(3).text(stat).save(procfs, "stat-file");
  Seed().byte(4).text(mount + "\n").save(procfs, "mountinfo");
  Seed().byte(5).text("pos:\t0\nflags:\t02\nmnt_id:\t29\nino:\t77\n").save(procfs, "fdinfo");
  Seed().byte(10).text(stat).save(procfs, "stat");
  Seed().byte(11).text(maps).save(procfs, "mapping");
  Seed().byte(12).text(mount).save(procfs, "mount");
  Seed().byte(13).text("/run/app/77.events").save(procfs, "ring-path");

  Seed().text("user,minor*,re[qx]uest\nrequest\nminor\nother").save(corpus / "filter", "names");
  Seed().text("phase,counter,switch\nphase\n\xff\xfe").save(corpus / "filter", "kinds");

  const std::pair<const char*, std::vector<std::string>> lines[] = {
      {"live", {"-p", "1", "-n", "web*", "-d", "1.5s", "--sched", "all", "--buffer", "64M", "--color", "never"}},
      {"record", {"record", "-o", "x.fxt", "--events", "user,minor*", "--history", "--", "sh", "-c", "true"}},
      {"latency", {"latency", "--phase", "minor", "--min", "1ms", "--interval", "1s", "--full", "-i", "x.fxt"}},
      {"pauses", {"pauses", "--top", "1000", "-f", "json", "--ocaml-version", "5.2"}},
      {"convert", {"convert", "x.fxt", "-o", "y", "-f", "pftrace"}},
      {"wrong", {"stats", "--no-such\x1b[31m", "-d", "1 parsec"}},
      {"help", {"dump", "--help"}},
  };
  for (const auto& [name, arguments] : lines) {
    Seed seed;
    for (const std::string& argument : arguments) seed.text(argument).byte(0);
    seed.save(corpus / "command_line", name);
  }
}

/// One for each format and report, and for their options.
void sinks(const fs::path& corpus) {
  std::mt19937 generator(1);
  const auto random = [&] { return static_cast<unsigned>(generator()); };
  for (const unsigned way : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 32U + 6, 64U + 6, 192U + 6, 7U}) {
    Seed seed;
    seed.byte(way);
    for (const char* string : {"server", "\x1b[2J",
                               "\xc2\x9b"
                               "31m",
                               "\xe2\x80\xae"
                               "x",
                               "line\nbreak", "\xff", "\x7f", "a\"b\\"})
      seed.text(string).byte(0);
    for (int i = 0; i < 60; ++i) {
      const unsigned kind = i % 3 == 0 ? random() % event_kind_count : random() % 2;  // most are begins and ends
      const unsigned size = random() % 16;
      seed.byte(kind).byte(random() % 3).number(static_cast<std::uint16_t>(random() % 60));
      seed.number(static_cast<std::uint16_t>(random() % 3000)).byte(random() % 256).byte(size);
      const auto event_kind = static_cast<EventKind>(kind);
      if (has_payload(event_kind) && event_kind < EventKind::lost) seed.text(std::string(size, 'x'));
    }
    seed.save(corpus / "sinks", fmt::format("{}", way));
  }
}

/// A program with all that unwinding and naming use: unwinding tables, frametables, symbols, lines.
test::ObjectShape unwindable(std::uint16_t machine) {
  using namespace test;
  const bool is_arm = machine == EM_AARCH64;
  const unsigned sp = is_arm ? 31 : 7, column = is_arm ? 30 : 16;
  constexpr std::uint64_t code = ObjectShape::text_address;
  EhFrameWriter cfi;
  const auto common = cfi.common(def_cfa(sp, is_arm ? 0 : 8) + saved(column, 1), "zR", column);
  cfi.function(common, code, 0x40, advance(4) + cfa_offset(32) + saved(3, 2) + instructions({0x0a}) + advance(9));
  cfi.function(common, code + 0x40, 0x40, cfa_expression(instructions({0x77, 16, 0x06, 0x23, 24, 0x06})));
  cfi.function(cfi.common(def_cfa(sp, 8) + instructions({0x07, column}), "zR", column), code + 0x80, 0x20, "");
  cfi.function(
      cfi.common("", "zRS", column), code + 0xa0, 0x10,
      cfa_expression(instructions({0x77, 32})) + instructions({0x10, column, 2, 0x77, 40, 0x16, 3, 2, 0x77, 8}));
  FrametableWriter frames;
  frames.unit(
      {{.return_address = code + 0x20, .frame_bytes = 32, .places = {{"A.f", "a.ml", 3}, {"A.g", "a.ml", 9, true}}},
       {.return_address = code + 0x10, .frame_bytes = 16, .places = {{"A.h", "a.ml", 4}}, .allocations = 2}});
  frames.runtime(code + 0xb0, code + 0xc0);
  LineProgram old_lines, new_lines;
  old_lines.at(code).row(0, 4).file(2).row(0x10, 50).end(0x20);
  new_lines.at(code + 0x40).row(0, 9).row(4, 300).end(0x20);
  std::string line_names;
  const std::string lines = lines_4({"src"}, {{"a.ml", 1}, {"b.ml", 0}}, old_lines) +
                            lines_5({"/b", "lib"}, {{"c.c", 1}, {"c.c", 1}}, new_lines, line_names);
  return {.machine = machine,
          .eh_frame = cfi.bytes(),
          .data = frames.bytes(),
          .symbols = {{.name = "caml_frametable", .value = FrametableWriter::address, .type = STT_OBJECT},
                      {.name = "camlA.f_12", .value = code, .size = 0x40},
                      {.name = "caml_raise_exn", .value = code + 0x40, .size = 8},
                      {.name = "caml_raise_exception", .value = code + 0x80, .size = 8}},
          .relocations = {{FrametableWriter::address, R_X86_64_RELATIVE, FrametableWriter::address + 24}},
          .build_id = "id",
          .debug_line = lines,
          .debug_line_str = line_names};
}

void unwinding(const fs::path& corpus) {
  for (const auto& [name, machine] : {std::pair{"x86-64", EM_X86_64}, {"arm64", EM_AARCH64}}) {
    const std::string file = test::write_object(unwindable(static_cast<std::uint16_t>(machine)));
    Seed().text(file).save(corpus / "unwind_tables", name);
    Seed().bytes(test::build_tables(file).value()).save(corpus / "object_tables", name);
  }
}

void make_seeds(const fs::path& corpus) {
  rings(corpus);
  saved_rings(corpus);
  places(corpus);
  texts(corpus);
  sinks(corpus);
  unwinding(corpus);
  Seed().byte(0).text(recording()).save(corpus / "replay", "every-event");
  Seed().byte(8).text(trace()).save(corpus / "fxt", "every-record");
  Seed().text(test::write_elf(test::program(5))).save(corpus / "elf", "program");
}

}  // namespace
}  // namespace rtev::fuzz

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: rtev-fuzz-seeds FOLDER\n");
    return 2;
  }
  rtev::fuzz::make_seeds(argv[1]);
}

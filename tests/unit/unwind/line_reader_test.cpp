// SPDX-License-Identifier: MIT
#include "unwind/line_reader.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "unit/unwind/frametable_writer.hpp"
#include "unit/unwind/line_writer.hpp"
#include "unwind/frame_names.hpp"

namespace rtev {
namespace {

using namespace test;

/// "file:line" of an address, or "".
std::string line_of(const ObjectTables& tables, std::uint32_t address) {
  const auto line = tables.line_at(address);
  return line ? std::string(line->file) + ':' + std::to_string(line->number) : "";
}

ObjectTables tables_with(const std::string& lines, const std::string& names = {}) {
  return tables_of({.debug_line = lines, .debug_line_str = names});
}

TEST(LineReader, FindsTheLineOfEachInstruction) {
  LineProgram program;
  program.at(code + 0x10).row(0, 9).row(4, 1).row(4, 0).row(4, -2).end(4);
  program.at(code + 0x40).file(2).row(0, 699).file(1).row(200, 1).end(8);
  const auto tables = tables_with(lines_4({"src"}, {{"main.c", 0}, {"list.h", 1}}, program));
  EXPECT_EQ(line_of(tables, code + 0xf), "");
  EXPECT_EQ(line_of(tables, code + 0x10), "main.c:10");
  EXPECT_EQ(line_of(tables, code + 0x13), "main.c:10");
  EXPECT_EQ(line_of(tables, code + 0x14), "main.c:11");
  EXPECT_EQ(line_of(tables, code + 0x1b), "main.c:11");
  EXPECT_EQ(tables.line_at(code + 0x1b)->begin, code + 0x14) << "two rows of one line are one";
  EXPECT_EQ(line_of(tables, code + 0x1f), "main.c:9");
  EXPECT_EQ(line_of(tables, code + 0x20), "") << "behind the end of a sequence";
  EXPECT_EQ(line_of(tables, code + 0x40), "src/list.h:700");
  EXPECT_EQ(line_of(tables, code + 0x40 + 207), "main.c:701");
  EXPECT_EQ(line_of(tables, code + 0x40 + 208), "");
}

TEST(LineReader, ReadsNamesOfVersion5) {
  std::string names;
  LineProgram program;
  program.at(code).file(1).row(0, 4).file(2).row(2, 1).file(3).row(2, 1).end(2);
  const auto lines =
      lines_5({"/build", "lib"}, {{"first.ml", 0}, {"web.ml", 0}, {"db.ml", 1}, {"/usr/x.h", 1}}, program, names);
  const auto tables = tables_with(lines, names);
  EXPECT_EQ(line_of(tables, code), "web.ml:5") << "without the directory of the compiler";
  EXPECT_EQ(line_of(tables, code + 2), "lib/db.ml:6");
  EXPECT_EQ(line_of(tables, code + 4), "/usr/x.h:7");
  EXPECT_EQ(line_of(tables_with(lines), code), ":5") << "without the section of names";
}

TEST(LineReader, FindsLinesInAnyOfManyBlocks) {
  LineProgram program;
  program.at(code).row(0, 0);
  for (int i = 0; i < 1000; ++i) program.file(i % 5 == 0 ? 2 : 1).row(2, i % 2 == 0 ? 3 : -1);
  program.end(2);
  const auto tables = tables_with(lines_4({}, {{"a.c", 0}, {"b.c", 0}}, program));
  for (int i = 0; i < 1000; ++i) {
    const int line = 1 + (i / 2 + 1) * 3 - (i + 1) / 2;
    EXPECT_EQ(line_of(tables, code + 2 + static_cast<std::uint32_t>(i) * 2),
              (i % 5 == 0 ? "b.c:" : "a.c:") + std::to_string(line));
  }
}

TEST(LineReader, SequencesMayComeInAnyOrder) {
  LineProgram later, earlier;
  later.at(code + 8).row(0, 1).end(8);
  earlier.at(code).row(0, 4).end(8);
  const auto tables = tables_with(lines_4({}, {{"a.c", 0}}, later) + lines_4({}, {{"b.c", 0}}, earlier));
  EXPECT_EQ(line_of(tables, code + 7), "b.c:5");
  EXPECT_EQ(line_of(tables, code + 8), "a.c:2") << "where another sequence ends";
  EXPECT_EQ(line_of(tables, code + 16), "");
}

TEST(LineReader, LeavesOutWhatIsNotCode) {
  LineProgram program;
  // Of functions that the linker removed. One is as large as if it reached into the code of others.
  program.at(0).row(0, 1).row(8, 1).end(8);
  program.at(0).row(0, 1).row(code + 8, 20).end(8);
  program.at(code).row(0, 1).row(8, -1).end(8);
  program.at(code + 0x20).row(0, 1);  // has no end
  const auto tables = tables_with(lines_4({}, {{"a.c", 0}}, program));
  EXPECT_EQ(line_of(tables, 0), "");
  EXPECT_EQ(line_of(tables, code), "a.c:2");
  EXPECT_EQ(line_of(tables, code + 8), "a.c:1");
  EXPECT_EQ(line_of(tables, code + 0x20), "");
}

TEST(LineReader, SkipsInstructionsThatItDoesNotKnow) {
  LineProgram program;
  program.at(code).raw(instructions({5, 7, 6, 7, 10, 11, 12, 1, 0, 2, 4, 9, 0, 1, 0x80}));
  program.row(0, 1).raw(instructions({8, 9, 2, 0})).row(0, 1).end(4);
  const auto tables = tables_with(lines_4({}, {{"a.c", 0}}, program));
  EXPECT_EQ(line_of(tables, code), "a.c:2");
  EXPECT_EQ(line_of(tables, code + 21), "a.c:2");
  EXPECT_EQ(line_of(tables, code + 22), "a.c:3") << "(255 - 13) / 12 bytes, and 2";
}

TEST(LineReader, NamesTheLineOfLeavesAndOfC) {
  FrametableWriter frames;
  frames.unit({{.return_address = code + 0x20, .places = {{"Main.g", "src/main.ml", 9}}}});
  frames.runtime(code + 0x800, code + 0x900);
  EhFrameWriter cfi;
  const auto common = cfi.common(def_cfa(7, 8) + saved(16, 1));
  cfi.function(common, code, 0x40, "");
  cfi.function(common, code + 0x40, 0x40, "");
  LineProgram program;
  program.at(code).row(0, 4).file(2).row(0x10, 50).file(1).row(8, -48).end(0x28);
  program.at(code + 0x40).file(3).row(0, 29).row(0x10, 1).end(0x30);
  const ObjectTables tables =
      tables_of({.eh_frame = cfi.bytes(),
                 .data = frames.bytes(),
                 .symbols = {{.name = "caml_frametable", .value = FrametableWriter::address, .type = STT_OBJECT},
                             {.name = "camlMain.g_12", .value = code, .size = 0x40},
                             {.name = "work", .value = code + 0x40, .size = 0x40}},
                 .debug_line = lines_4({"src"}, {{"main.ml", 1}, {"list.ml", 0}, {"work.c", 0}}, program)});
  const auto named = [&](std::uint32_t address, bool is_return) {
    const NamedFrame frame = name_frame(tables, address, is_return).front();
    return frame.function + ' ' + frame.file + ' ' + std::to_string(frame.line);
  };
  EXPECT_EQ(named(code + 4, false), "Main.g src/main.ml 5");
  EXPECT_EQ(named(code + 0x14, false), "(inlined) list.ml 55") << "from a file of another module";
  const auto around = name_frame(tables, code + 0x14, false);
  ASSERT_EQ(around.size(), 2u);
  EXPECT_TRUE(around[0].is_inlined);
  EXPECT_EQ(around[1].function, "Main.g");
  EXPECT_EQ(around[1].file, "src/main.ml");
  EXPECT_EQ(around[1].line, 0u) << "from where it was called is not known";
  EXPECT_EQ(named(code + 0x19, false), "Main.g src/main.ml 7");
  EXPECT_EQ(named(code + 0x20, true), "Main.g src/main.ml 9") << "as OCaml's own tables have it";
  EXPECT_EQ(named(code + 0x44, false), "work work.c 30");
  EXPECT_EQ(named(code + 0x50, true), "work work.c 30") << "the call is before the address that it returns to";
  EXPECT_EQ(name_frame(tables, code + 0x5f, false).front().address, code + 0x50) << "one frame for a line";
}

TEST(LineReader, AFunctionWithoutCallsIsOfTheFileThatItBeginsIn) {
  EhFrameWriter cfi;
  cfi.function(cfi.common(def_cfa(7, 8) + saved(16, 1)), code, 0x40, "");
  LineProgram program;
  program.at(code).row(0, 4).file(2).row(0x10, 50).end(0x28);
  const ObjectTables tables = tables_of({.eh_frame = cfi.bytes(),
                                         .symbols = {{.name = "camlMain.leaf_12", .value = code, .size = 0x40}},
                                         .debug_line = lines_4({}, {{"main.ml", 0}, {"vec.ml", 0}}, program)});
  const auto frames = name_frame(tables, code + 0x14, false);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[0].file, "vec.ml");
  EXPECT_EQ(frames[0].line, 55u);
  EXPECT_EQ(frames[1].function, "Main.leaf");
  EXPECT_EQ(frames[1].file, "main.ml");
  EXPECT_EQ(name_frame(tables, code + 4, false).size(), 1u);
}

TEST(LineReader, AnyDamageIsRead) {
  LineProgram program;
  program.at(code).row(0, 4).file(2).row(0x10, 50).file(1).row(8, -48).end(0x28);
  std::string names;
  const std::string intact =
      lines_4({"src"}, {{"a.c", 1}, {"b.c", 0}}, program) + lines_5({"/b"}, {{"a.c", 0}}, program, names);
  std::mt19937 random{7};
  const std::vector<AddressRange> ranges{{code, code + 0x1000}};
  WorkBudget budget{WorkBudget::unlimited};
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = intact.substr(0, random() % 8 == 0 ? random() % intact.size() : intact.size());
    for (int i = 0; i < 3 && !bytes.empty(); ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    StringPool strings;
    const LineTables tables =
        read_lines({.lines = std::as_bytes(std::span{bytes}), .names = std::as_bytes(std::span{names}), .code = ranges},
                   strings, budget);
    ASSERT_EQ(tables.begins.size(), tables.offsets.size());
    ASSERT_TRUE(std::ranges::is_sorted(tables.begins));
  }
}

}  // namespace
}  // namespace rtev

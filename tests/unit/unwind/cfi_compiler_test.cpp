// SPDX-License-Identifier: MIT
// .eh_frame sections: those of compilers, and invalid ones.
#include "unwind/cfi_compiler.hpp"

#include <gtest/gtest.h>

#include <random>

#include "unit/unwind/object_writer.hpp"

namespace rtev {
namespace {

using namespace test;
using namespace object_tables_format;

const std::string x86_begin = def_cfa(7, 8) + saved(16, 1);

ObjectTables compiled(EhFrameWriter& writer) {
  return tables_of({.eh_frame = writer.bytes()});
}

/// "rsp+8" of the rule at an address; "-" if there is none.
std::string cfa_at(const ObjectTables& tables, std::uint32_t address) {
  const CfiRule rule = tables.rule(tables.rule_number(address));
  if (!rule) return "-";
  if (rule.head.cfa == CfaKind::expression) return "expression";
  return std::to_string(rule.head.cfa_register) + "+" + std::to_string(rule.head.cfa_value);
}

/// Where a register is: "c-16", "r12", …
std::string saved_at(const ObjectTables& tables, std::uint32_t address, unsigned number) {
  for (const SavedRegister& each : tables.rule(tables.rule_number(address)).saved)
    if (each.number == number)
      return (each.kind == SaveKind::at_offset     ? "c"
              : each.kind == SaveKind::in_register ? "r"
              : each.kind == SaveKind::undefined   ? "u"
                                                   : "?") +
             std::to_string(each.value);
  return "same";
}

TEST(CfiCompiler, FollowsPushesAndPops) {
  EhFrameWriter writer;
  const auto common = writer.common(x86_begin);
  writer.function(common, code, 0x20,
                  advance(1) + cfa_offset(16) + saved(3, 2) + advance(4) + cfa_offset(48) + instructions({0x0a}) +
                      advance(10) + cfa_offset(16) + advance(1) + cfa_offset(8) + advance(1) + instructions({0x0b}));
  writer.function(common, code + 0x30, 0x10, "");
  const ObjectTables tables = compiled(writer);
  EXPECT_EQ(cfa_at(tables, code - 1), "-");
  EXPECT_EQ(cfa_at(tables, code), "7+8");
  EXPECT_EQ(saved_at(tables, code, 3), "same");
  EXPECT_EQ(saved_at(tables, code, 16), "c-8");
  EXPECT_EQ(cfa_at(tables, code + 1), "7+16");
  EXPECT_EQ(saved_at(tables, code + 1, 3), "c-16");
  EXPECT_EQ(cfa_at(tables, code + 4), "7+16");
  EXPECT_EQ(cfa_at(tables, code + 5), "7+48");
  EXPECT_EQ(cfa_at(tables, code + 15), "7+16");
  EXPECT_EQ(cfa_at(tables, code + 16), "7+8");
  EXPECT_EQ(cfa_at(tables, code + 17), "7+48");
  EXPECT_EQ(cfa_at(tables, code + 0x1f), "7+48");
  EXPECT_EQ(cfa_at(tables, code + 0x20), "-") << "between functions";
  EXPECT_EQ(cfa_at(tables, code + 0x30), "7+8");
  EXPECT_EQ(cfa_at(tables, code + 0x40), "-");
  const CodeExtent function = tables.function_at(code + 16);
  EXPECT_EQ(function.begin, code);
  EXPECT_EQ(function.end, code + 0x20);
  EXPECT_EQ(tables.function_at(code + 0x25).end, 0u);
}

TEST(CfiCompiler, KnowsWhatIsRareToo) {
  EhFrameWriter writer;
  const auto common = writer.common(x86_begin);
  writer.function(common, code, 0x40,
                  instructions({0x09, 3, 12}) +                        // rbx is in r12
                      advance(1) + instructions({0x06, 3}) +           // restored
                      advance(1) + instructions({0x0d, 6}) +           // rbp is the base now
                      advance(1) + instructions({0x05, 13, 4}) +       // r13 at CFA - 32
                      advance(1) + instructions({0x11, 14, 0x7d}) +    // r14 at CFA - 8 * -3
                      advance(1) + instructions({0x08, 13}) +          // r13 as it was
                      advance(1) + instructions({0x2e, 0x10}) +        // arguments on the stack
                      instructions({0x02, 2, 0x03, 3, 0}) +            // long advances
                      cfa_expression(instructions({0x77, 0, 0x06})));  // what is at rsp
  const ObjectTables tables = compiled(writer);
  EXPECT_EQ(saved_at(tables, code, 3), "r12");
  EXPECT_EQ(saved_at(tables, code + 1, 3), "same");
  EXPECT_EQ(cfa_at(tables, code + 2), "6+8");
  EXPECT_EQ(saved_at(tables, code + 3, 13), "c-32");
  EXPECT_EQ(saved_at(tables, code + 4, 14), "c24");
  EXPECT_EQ(saved_at(tables, code + 5, 13), "same");
  EXPECT_EQ(cfa_at(tables, code + 10), "6+8");
  EXPECT_EQ(cfa_at(tables, code + 11), "expression");
  const CfiRule rule = tables.rule(tables.rule_number(code + 11));
  EXPECT_EQ(tables.expression(rule.head.cfa_value).size(), 3u);
}

TEST(CfiCompiler, MarksRootsAndSignalFrames) {
  EhFrameWriter writer;
  writer.function(writer.common(x86_begin + instructions({0x07, 16})), code, 0x10, "");
  writer.function(writer.common(x86_begin, "zRS"), code + 0x10, 0x10, "");
  const ObjectTables tables = compiled(writer);
  EXPECT_EQ(tables.rule(tables.rule_number(code)).head.flags, is_root);
  EXPECT_EQ(tables.rule(tables.rule_number(code + 0x10)).head.flags, signal_frame);
}

TEST(CfiCompiler, SignedReturnAddressesAreOfArm64Only) {
  for (const std::uint16_t machine : {std::uint16_t{EM_AARCH64}, std::uint16_t{EM_X86_64}}) {
    EhFrameWriter writer;
    writer.function(writer.common(def_cfa(31, 0), "zR", 30), code, 0x10,
                    instructions({0x2d}) + advance(4) + cfa_offset(16) + saved(29, 2) + saved(30, 1));
    const ObjectTables tables = tables_of({.machine = machine, .eh_frame = writer.bytes()});
    if (machine == EM_X86_64) {
      EXPECT_EQ(cfa_at(tables, code + 4), "-");
      continue;
    }
    EXPECT_EQ(cfa_at(tables, code + 4), "31+16");
    EXPECT_EQ(saved_at(tables, code + 4, 30), "c-8");
    EXPECT_EQ(tables.rule(tables.rule_number(code + 4)).head.flags, return_is_signed);
  }
}

TEST(CfiCompiler, OneFunctionThatMakesNoSenseLeavesTheOthers) {
  const std::string nonsense[] = {
      instructions({0x3f}),         // no such instruction
      instructions({0x0b}),         // restores what was never kept
      instructions({0x0c, 40, 8}),  // no such register
      instructions({0x0f, 0}),      // an expression of nothing
      instructions({0x0f, 60, 1}),  // an expression that ends behind the function
      std::string(40, '\x0a'),      // keeps for ever
      instructions({0x0c, 7, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}),
  };
  for (const std::string& instruction : nonsense) {
    EhFrameWriter writer;
    const auto common = writer.common(x86_begin);
    writer.function(common, code, 0x10, advance(1) + instruction);
    writer.function(common, code + 0x10, 0x10, "");
    const ObjectTables tables = compiled(writer);
    EXPECT_EQ(cfa_at(tables, code), "-");
    EXPECT_EQ(cfa_at(tables, code + 8), "-");
    EXPECT_EQ(cfa_at(tables, code + 0x10), "7+8");
  }
}

TEST(CfiCompiler, UnknownAugmentationsHaveNoRules) {
  for (const std::string_view augmentation : {"eh", "zRX", "zXR"}) {
    EhFrameWriter writer;
    writer.function(writer.common(x86_begin, augmentation), code, 0x10, "");
    EXPECT_EQ(cfa_at(compiled(writer), code), "-") << augmentation;
  }
}

TEST(CfiCompiler, OfFunctionsInOnePlaceNoneIsBelieved) {
  EhFrameWriter writer;
  const auto common = writer.common(x86_begin);
  writer.function(common, code, 0x20, "");
  writer.function(common, code + 0x10, 0x20, cfa_offset(64));
  writer.function(common, code + 0x40, 0x10, "");
  const ObjectTables tables = compiled(writer);
  EXPECT_EQ(cfa_at(tables, code), "7+8");
  for (const std::uint32_t address : {code + 0x10, code + 0x20, code + 0x2f, code + 0x30})
    EXPECT_EQ(cfa_at(tables, address), "-");
  EXPECT_EQ(cfa_at(tables, code + 0x40), "7+8");
}

TEST(CfiCompiler, IgnoresFunctionsOutsideTheCode) {
  EhFrameWriter writer;
  const auto common = writer.common(x86_begin);
  writer.function(common, 0, 0x10, "");  // dropped by the linker
  writer.function(common, code + ObjectShape::text_size - 8, 0x10, "");
  writer.function(7, code, 0x10, "");  // has nothing in common with anything
  const ObjectTables tables = compiled(writer);
  EXPECT_EQ(cfa_at(tables, 0), "-");
  EXPECT_EQ(cfa_at(tables, code), "-");
  EXPECT_EQ(cfa_at(tables, code + ObjectShape::text_size - 4), "-");
}

TEST(CfiCompiler, GoesOnBehindAnEndInTheMiddle) {
  EhFrameWriter writer;
  writer.function(writer.common(x86_begin), code, 0x10, "");
  writer.raw().u32(0);
  writer.function(writer.common(x86_begin), code + 0x10, 0x10, "");
  EXPECT_EQ(cfa_at(compiled(writer), code + 0x10), "7+8");
}

TEST(CfiCompiler, FindsTablesWithoutSections) {
  EhFrameWriter writer;
  writer.function(writer.common(x86_begin), code, 0x10, "");
  const ObjectTables tables = tables_of({.section_headers = false, .eh_frame = writer.bytes()});
  EXPECT_EQ(cfa_at(tables, code), "7+8");
}

TEST(CfiCompiler, JumpsHaveRulesWhereNothingElseHas) {
  EhFrameWriter writer;
  writer.function(writer.common(x86_begin), code + 0x20, 0x10, cfa_offset(32));
  const std::string bytes = writer.bytes();
  const AddressRange text{code, code + 0x1000};
  const std::vector<AddressRange> jumps{
      {code, code + 0x20}, {code + 0x28, code + 0x40}, {code + 0x50, code + 0x40}, {code + 0x60, code + 0x70}};
  WorkBudget budget{WorkBudget::unlimited};
  const CfiTables tables = compile_cfi({.bytes = std::as_bytes(std::span{bytes}),
                                        .address = EhFrameWriter::address,
                                        .link_base = 0,
                                        .machine = EM_X86_64,
                                        .code = {&text, 1},
                                        .jumps = jumps},
                                       budget);
  EXPECT_EQ(tables.row_begins, (std::vector<std::uint32_t>{code, code + 0x20, code + 0x30, code + 0x60, code + 0x70}));
  EXPECT_NE(tables.row_rules[0] % first_row, no_rule);
  EXPECT_NE(tables.row_rules[1] % first_row, tables.row_rules[0] % first_row);
  EXPECT_EQ(tables.row_rules[2], no_rule);
  EXPECT_EQ(tables.row_rules[3], tables.row_rules[0]);
}

TEST(CfiCompiler, SurvivesAnyDamage) {
  EhFrameWriter writer;
  const auto common = writer.common(x86_begin);
  for (std::uint32_t i = 0; i < 16; ++i)
    writer.function(common, code + 0x20 * i, 0x20,
                    advance(1) + cfa_offset(16) + saved(3, 2) + instructions({0x0a}) + advance(9));
  const std::string intact = writer.bytes();
  std::mt19937 random{7};
  const AddressRange text{code, code + 0x1000};
  WorkBudget budget{WorkBudget::unlimited};
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = intact;
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(bytes.size() - random() % 64);
    const CfiTables tables = compile_cfi({.bytes = std::as_bytes(std::span{bytes}),
                                          .address = EhFrameWriter::address,
                                          .link_base = 0,
                                          .machine = EM_X86_64,
                                          .code = {&text, 1}},
                                         budget);
    ASSERT_EQ(tables.row_begins.size(), tables.row_rules.size());
    ASSERT_TRUE(std::ranges::is_sorted(tables.row_begins));
    ASSERT_LE(tables.row_begins.size(), 2 * bytes.size());
  }
}

}  // namespace
}  // namespace rtev

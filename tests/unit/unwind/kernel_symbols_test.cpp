// SPDX-License-Identifier: MIT
#include "unwind/kernel_symbols.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temp_dir.hpp"

namespace rtev {
namespace {

KernelSymbols symbols_of(std::string_view text) {
  const test::TempDir directory;
  const auto path = directory.path() / "kallsyms";
  std::ofstream(path) << text;
  return KernelSymbols::load(path);
}

TEST(KernelSymbols, FindTheFunctionOfAnAddress) {
  const KernelSymbols symbols = symbols_of(
      "ffffffff81000100 T second\n"
      "ffffffff81000000 T first\n"
      "ffffffff81000000 t same_as_first\n"
      "ffffffff81000080 D data\n"
      "ffffffffc0000000 t of_module\t[module]\n");
  EXPECT_EQ(symbols.at(0xffffffff81000000).name, "first");
  EXPECT_EQ(symbols.at(0xffffffff810000ff).name, "first");
  EXPECT_EQ(symbols.at(0xffffffff81000120).name, "second");
  EXPECT_EQ(symbols.at(0xffffffff81000120).begin, 0xffffffff81000100);
  EXPECT_EQ(symbols.at(0xffffffffc0000010).name, "of_module");
  EXPECT_EQ(symbols.at(0x1000).name, "");
}

TEST(KernelSymbols, AreEmptyWhereTheKernelHidesAddresses) {
  EXPECT_TRUE(symbols_of("0000000000000000 T first\n0000000000000000 T second\n").is_empty());
  EXPECT_TRUE(symbols_of("nonsense\n\n \nffffffff81000000").is_empty());
  EXPECT_TRUE(KernelSymbols::load("/no/such/file").is_empty());
  EXPECT_EQ(KernelSymbols().at(5).name, "");
}

}  // namespace
}  // namespace rtev

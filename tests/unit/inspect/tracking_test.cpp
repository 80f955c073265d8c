// SPDX-License-Identifier: MIT
#include "inspect/tracking.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

Binary make_binary() {
  Binary binary{.id = 7, .runtime = {}};
  binary.runtime.code_begin = 0x1000;
  binary.runtime.link_base = 0x200;
  binary.runtime.domain_self_tls = -16;
  binary.runtime.paused_flag = 0x800;
  binary.runtime.tls_module_word = 0x900;
  binary.runtime.tick_thread = {.begin = 0x400, .end = 0x500};
  return binary;
}

TEST(Tracking, CodeIsWhereTheProgramIsMapped) {
  const Binary binary = make_binary();
  const rtev_tracked at = tracking_of(binary, bias_of_program(binary.runtime, 0x11000));
  EXPECT_EQ(at.binary, 7u);
  EXPECT_EQ(at.tick_begin, 0x10400u);
  EXPECT_EQ(at.tick_end, 0x10500u);
  EXPECT_EQ(at.backup_begin, 0u) << "not known";
  EXPECT_EQ(at.paused_flag, 0x10800u);
  EXPECT_EQ(at.domain_self_tls, -16);
  EXPECT_EQ(at.tls_module_word, 0u) << "a program's variables have a fixed place";
}

TEST(Tracking, WithoutTheAddressOfItsCodeOnlyThreadVariablesAreKnown) {
  const Binary binary = make_binary();
  const rtev_tracked at = tracking_of(binary, bias_of_program(binary.runtime, 0));
  EXPECT_EQ(at.domain_self_tls, -16);
  EXPECT_EQ(at.tick_begin, 0u);
  EXPECT_EQ(at.paused_flag, 0u);
}

TEST(Tracking, RuntimesInALibrary) {
  Binary binary = make_binary();
  binary.runtime.shared_library = true;
  EXPECT_FALSE(bias_of_program(binary.runtime, 0x11000)) << "the code is the program's";
  EXPECT_EQ(tracking_of(binary, {}).domain_self_tls, 0) << "no thread has them where the program has its own";
  const rtev_tracked at = tracking_of(binary, bias_of_mapping(binary.runtime, 0x10200));
  EXPECT_EQ(at.tick_begin, 0x10400u);
  EXPECT_EQ(at.tls_module_word, 0x10900u);
  EXPECT_EQ(at.domain_self_tls, -16);
  EXPECT_EQ(at.tls_module, 0u) << "is read by BPF";
}

TEST(Tracking, StacksAreFoundByTheRuntimesCodeAndLayout) {
  Binary binary = make_binary();
  binary.runtime.stack_sites = {.system = {.begin = 0x600, .end = 0x700},
                                .raise = {.begin = 0x620, .end = 0x640},
                                .layout = {.young_ptr = 1, .current_stack = 5, .c_stack = 8, .domain_state = 1}};
  const rtev_stack_target at = stack_target_of(binary, bias_of_program(binary.runtime, 0x11000));
  EXPECT_EQ(at.process.tick_begin, 0x10400u);
  EXPECT_EQ(at.system_begin, 0x10600u);
  EXPECT_EQ(at.system_end, 0x10700u);
  EXPECT_EQ(at.raise_begin, 0x10620u);
  EXPECT_EQ(at.raise_end, 0x10640u);
  EXPECT_EQ(at.young_ptr, 1u);
  EXPECT_EQ(at.current_stack, 5u);
  EXPECT_EQ(at.c_stack, 8u);
  EXPECT_EQ(at.domain_state, 1u);
  EXPECT_EQ(at.budget.window_ns, 0u);
  const rtev_stack_target anywhere = stack_target_of(binary, {});
  EXPECT_EQ(anywhere.system_end, 0u);
  EXPECT_EQ(anywhere.current_stack, 5u);
}

}  // namespace
}  // namespace rtev

// SPDX-License-Identifier: MIT
// Streams of samples made by hand.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/profile/profile_sink.hpp"
#include "base/text_format.hpp"
#include "base/utf8.hpp"
#include "unit/stream/world.hpp"

namespace rtev::test {

class ProfileTest : public testing::Test {
 protected:
  static constexpr std::uint64_t ms = 1'000'000, period = 10 * ms;

  ProfileTest() { make({}); }
  void make(ProfileOptions options) {
    profile.emplace(std::move(options));
    profile->header({.version = "1.2", .start_ns = 1});
  }
  void feed(const Events& events) { profile->consume(events.batch(), world.registry); }
  void play(const std::string& script) { feed(Events(world.slot).add(script)); }

  /// "Upload.store:42" is a line of an OCaml function in upload.ml, "memcpy" a C function, "[unknown]", "[cut]" and
  /// "[bytecode]"   /// what they say.
  static StackFrame frame_of(const std::string& text, std::string& file) {
    if (text == "[unknown]") return {};
    if (text == "[bytecode]") return {.kind = FrameKind::bytecode};
    if (text == "[cut]") return {.kind = FrameKind::cut};
    if (text.starts_with("[kernel] ")) return {.kind = FrameKind::kernel, .function = std::string_view(text).substr(9)};
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos)
      return {
          .kind = FrameKind::c, .address = 0x1000, .function = text, .object = "/usr/bin/server", .build_id = "abcd"};
    const std::string_view function = std::string_view(text).substr(0, colon);
    const std::string_view module = function.substr(0, function.rfind('.'));
    file = "src/" + std::string(module.substr(module.rfind('.') + 1)) + ".ml";
    std::ranges::transform(file, file.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return {.kind = FrameKind::ocaml,
            .line = static_cast<std::uint32_t>(std::stoi(text.substr(colon + 1))),
            .address = 0x2000,
            .function = function,
            .file = file,
            .object = "/usr/bin/server",
            .build_id = "abcd"};
  }
  /// Outermost frame first.
  StackIndex stack(const std::vector<std::string>& frames) {
    StackTable& stacks = world.registry.stacks();
    StackIndex index = 0;
    for (const std::string& text : frames) {
      std::string file;
      index = stacks.add_stack(index, stacks.add_frame(frame_of(text, file)));
    }
    return index;
  }
  Sample a_sample(StackIndex stack, std::int32_t domain = 0) const {
    Sample sample{};
    sample.process = world.process;
    sample.pid = sample.tid = 4242;
    sample.domain = domain;
    sample.stack = stack;
    sample.weight = period;
    sample.role = ThreadRole::mutator;
    sample.holds_lock = domain >= 0;
    return sample;
  }
  void sample(std::uint64_t time, const Sample& sample, SampleKind kind = SampleKind::on_cpu) {
    feed(Events(0).add_record(time, EventKind::sample, sample, static_cast<std::uint16_t>(kind), sample_stream));
  }
  /// So many samples of domain 0, from this time on with 1 ns between.
  void samples(std::uint64_t time, const std::vector<std::string>& frames, int count = 1) {
    const StackIndex index = stack(frames);
    for (int i = 0; i < count; ++i) sample(time + static_cast<std::uint64_t>(i), a_sample(index));
  }
  ProfileReport report() {
    profile->summary({.end_ns = 1'000'000'001}, world.registry);
    return profile->report(world.registry);
  }
  /// "Upload.store 5/8": samples of its own and in all, in the order of the report.
  static std::vector<std::string> functions_of(const ProfileReport& report) {
    std::vector<std::string> found;
    for (const ProfileRow& row : report.functions) {
      const auto& place = report.tree.places()[row.place];
      found.push_back(fmt::format("{} {}/{}", report.tree.functions()[place.function], sum_of(row.self).samples,
                                  sum_of(row.total).samples));
    }
    return found;
  }
  /// That it fits a screen.
  static std::string screen(std::string text) {
    EXPECT_LE(std::ranges::count(text, '\n'), 23) << text;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\n', begin) + 1)
      EXPECT_LE(columns_of(text.substr(begin, text.find('\n', begin) - begin)), 100u) << text;
    return text;
  }

  World world;
  std::optional<Profile> profile;
};

}  // namespace rtev::test

// SPDX-License-Identifier: MIT
#include "support/pprof_check.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>

#include "pprof_profile.pb.h"

namespace rtev::test {

PprofContent read_pprof(std::string_view bytes) {
  pprof_proto::Profile profile;
  if (!profile.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    ADD_FAILURE() << "no profile";
    return {};
  }
  const auto text = [&](std::int64_t index) {
    if (index >= 0 && index < profile.string_table_size()) return profile.string_table(static_cast<int>(index));
    ADD_FAILURE() << "no string " << index;
    return std::string();
  };
  EXPECT_EQ(text(0), "");
  const auto type = [&](const pprof_proto::ValueType& of) { return text(of.type()) + "/" + text(of.unit()); };
  std::map<std::uint64_t, const pprof_proto::Function*> functions;
  for (const auto& function : profile.function()) EXPECT_TRUE(functions.emplace(function.id(), &function).second);
  std::map<std::uint64_t, const pprof_proto::Mapping*> mappings;
  for (const auto& mapping : profile.mapping()) EXPECT_TRUE(mappings.emplace(mapping.id(), &mapping).second);
  std::map<std::uint64_t, std::string> locations;
  for (const auto& location : profile.location()) {
    EXPECT_NE(location.id(), 0u);
    EXPECT_TRUE(location.mapping_id() == 0 || mappings.contains(location.mapping_id()));
    std::string name;
    for (const auto& line : location.line()) {
      const auto function = functions.find(line.function_id());
      if (function == functions.end()) {
        ADD_FAILURE() << "no function " << line.function_id();
        continue;
      }
      name += text(function->second->name());
      if (function->second->filename() != 0) name += " " + text(function->second->filename());
      if (line.line() != 0) name += ":" + std::to_string(line.line());
    }
    EXPECT_TRUE(locations.emplace(location.id(), name).second);
  }
  PprofContent content{
      .period = profile.period(), .time_ns = profile.time_nanos(), .duration_ns = profile.duration_nanos()};
  for (const std::int64_t one : profile.comment()) content.comments.push_back(text(one));
  for (const auto& one : profile.sample_type()) content.sample_types.push_back(type(one));
  for (const auto& [id, mapping] : mappings) content.build_ids[text(mapping->filename())] = text(mapping->build_id());
  for (const auto& sample : profile.sample()) {
    PprofStack stack;
    for (const std::uint64_t id : sample.location_id()) {
      EXPECT_TRUE(locations.contains(id)) << "no location " << id;
      stack.frames.push_back(locations[id]);
    }
    stack.values.assign(sample.value().begin(), sample.value().end());
    EXPECT_EQ(stack.values.size(), content.sample_types.size());
    for (const auto& label : sample.label())
      stack.labels[text(label.key())] = label.str() != 0 ? text(label.str()) : std::to_string(label.num());
    content.stacks.push_back(std::move(stack));
  }
  return content;
}

std::string gunzip(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::array<char, 4096> piece;
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    result = ::inflate(&stream, Z_NO_FLUSH);
    text.append(piece.data(), piece.size() - stream.avail_out);
  }
  ::inflateEnd(&stream);
  EXPECT_EQ(result, Z_STREAM_END);
  return text;
}

}  // namespace rtev::test

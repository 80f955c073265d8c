// SPDX-License-Identifier: MIT
// Reads the metadata of a recording: processes and rings, the header and the summary of the run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "recording/stream_builder.hpp"
#include "rtev/error.hpp"
#include "rtev/fxt_reader.hpp"

namespace rtev::record {

/// Takes the records of MetadataWriter, in their order. Memory is bounded.
class MetadataReader {
 public:
  explicit MetadataReader(StreamBuilder& stream) : stream_(stream) {}

  /// False if the kind of metadata is unknown here. An error says what is wrong with the record.
  Result<bool> take(std::string_view what, const fxt::parsed::UserspaceObject& object);

  /// The header has several records; it is complete when another kind of record follows.
  bool has_header() const { return has_header_; }
  void hand_out_header();
  /// True after the summary: the stream has ended.
  bool ended() const { return ended_; }
  const RunHeader& header() const { return header_; }

 private:
  using Object = fxt::parsed::UserspaceObject;

  Result<void> header(const Object& object);
  Result<void> argument(const Object& object);
  Result<void> script(const Object& object);
  Result<void> process(const Object& object);
  Result<void> service(const Object& object);
  Result<void> accounting(const Object& object);
  Result<void> missed(const Object& object);
  Result<void> left_alone(const Object& object);
  ProcessInfo* listed(const Object& object);
  Result<void> ring(const Object& object);
  Result<void> frame(const Object& object);
  Result<void> stack(const Object& object);
  Result<void> others(const Object& object);
  Result<void> events(const Object& object);
  Result<void> drop(const Object& object);
  Result<void> announcer(const Object& object);
  Result<void> summary(const Object& object);

  StreamBuilder& stream_;
  RunHeader header_;
  bool has_header_ = false, header_is_out_ = false;
  bool argument_goes_on_ = false;
  std::size_t argument_bytes_ = 0;
  bool lists_ = false, ended_ = false;
  /// What each summary has.
  bool has_others_ = false, has_events_ = false;
  std::size_t accounted_ = 0;  ///< processes of the list
  StreamBuilder::List list_;
  std::size_t list_bytes_ = 0;
  std::pair<std::uint64_t, std::string> script_{};  ///< of the process of this index, which follows
  RunSummary summary_;
};

}  // namespace rtev::record

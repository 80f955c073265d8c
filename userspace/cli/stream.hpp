// SPDX-License-Identifier: MIT
// From options to the end of the stream: the file and the format.
#pragma once

#include <memory>

#include "cli/options.hpp"
#include "sinks/output.hpp"
#include "sinks/sink.hpp"

namespace rtev::cli {

/// Where a stream goes, and how it looks there.
class Stream {
 public:
  static Result<Stream> open(const Options& options);

  Sink& sink() { return filter_ ? *filter_ : *format_; }
  const Output& output() const { return *output_; }

 private:
  std::unique_ptr<FdOutput> output_;
  std::unique_ptr<Sink> format_;
  std::unique_ptr<Sink> filter_;
};

/// What a broken output means at the end: an error, or silence where the reader (a pager, `head`) just left.
int finish_output(const Output& output, int exit_status);

}  // namespace rtev::cli

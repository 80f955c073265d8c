// SPDX-License-Identifier: MIT
// Opens the files that -o names, with the rights of the user who called the tracer.
#pragma once

#include <memory>
#include <string>

#include "formats/output/output.hpp"
#include "rtev/error.hpp"

namespace rtev::cli {

/// Stdout if the path is empty, "-" or another name of the file that stdout is; a descriptor that the caller opened for
/// /dev/fd/N and its like; else a file that only its user can read. A new file is removed again, and an existing one
/// keeps its content, if nothing begins to write to it.
///
/// Under sudo the user who called it has to have the right to write the file, and owns it. Refused, because another
/// user may have put them there as a trap: files and fifos of others, links of others in the path, files with several
/// names, devices except null, zero, full and the user's terminals. Waits for nobody: a fifo has to have a reader.
Result<std::unique_ptr<FdOutput>> open_output(const std::string& path);

/// For commands that read what others wrote: from now on a signal that ends this process (SIGINT, SIGTERM, SIGHUP)
/// first removes the file that open_output() created, since only a part of it is written.
void remove_output_on_signal();

}  // namespace rtev::cli

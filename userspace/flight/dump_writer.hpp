// SPDX-License-Identifier: MIT
// Writes dumps in a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>

#include "flight/dump_directory.hpp"
#include "flight/kept_chunk.hpp"
#include "recording/stream_builder.hpp"
#include "rtev/error.hpp"

namespace rtev::flight {

/// Why a dump is made.
struct DumpCause {
  std::string trigger{};  ///< "pause", "snap": see DumpName
  std::string what{};     ///< a condition as the user wrote it, or what asked for the dump
  std::string value{};    ///< that met the condition: "51.2ms"
  std::int32_t pid = 0;   ///< of the program; 0: of none
  std::string program{};  ///< its name, as it chose it
};

/// What became of a dump.
struct DumpResult {
  DumpCause cause{};
  std::uint64_t number = 0;  ///< of DumpWriter::begin()
  std::string path{};        ///< of the file
  std::optional<Error> error{};
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;  ///< of its time, without those of what began before
  /// Of the longest pause in it, as `pauses` puts it; empty if there is none.
  std::string verdict{};
  std::size_t removed = 0;  ///< older dumps, for --max-disk
};

/// One thread gives it dumps, one after the other, as chunks. It never waits: chunks that are not written yet are
/// counted. The writing thread starts with the first dump, so that a process forked before has no second thread.
class DumpWriter {
 public:
  /// `done` is called by the writing thread.
  using Done = std::function<void(const DumpResult& result)>;
  DumpWriter(DumpDirectory directory, Done done);
  DumpWriter(const DumpWriter&) = delete;
  DumpWriter& operator=(const DumpWriter&) = delete;
  /// Completes what was given to it.
  ~DumpWriter();

  /// Before the first dump: see DumpDirectory.
  void remove_partial() { directory_.remove_partial(); }

  struct Begin {
    DumpCause cause{};
    std::string name{};
    RunHeader header{};
    std::shared_ptr<const Chunk> state{};  ///< what began before
  };
  /// Returns the number of the dump.
  std::uint64_t begin(Begin begin);
  void add(std::shared_ptr<const Chunk> chunk);
  /// The processes of the list that ended before the dump began, and that no chunk has, are left out.
  struct End {
    RunSummary summary{};
    StreamBuilder::List list{};
    std::map<ProcessIndex, PeriodFigures::ProcessBase> base{};
  };
  void end(End end);

  /// Of chunks that are not written yet.
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  /// Waits until all that was given to it is written.
  void wait();
  const std::string& path() const { return directory_.path(); }

 private:
  class Dump;
  using Request = std::variant<Begin, std::shared_ptr<const Chunk>, End>;

  void put(Request request);
  void run();
  void carry_out(Request request);

  DumpDirectory directory_;
  Done done_;
  std::unique_ptr<Dump> dump_;  ///< of the writing thread
  std::uint64_t begun_ = 0;
  std::uint64_t finished_ = 0;  ///< of the writing thread
  std::atomic<std::size_t> waiting_bytes_ = 0;

  std::mutex mutex_;
  std::condition_variable work_, progress_;
  std::deque<Request> queue_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace rtev::flight

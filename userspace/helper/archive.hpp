// SPDX-License-Identifier: MIT
// Turns queries and views of processes into messages and back. Both sides are one program, so values are copied as they
// lie in memory; a message that is cut or too long is an error nevertheless, since the helper reads hostile files.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/unique_fd.hpp"
#include "inspect/process_view.hpp"

namespace rtev::helper {

/// Bytes and descriptors, sent together.
struct Message {
  std::vector<std::byte> bytes{};
  std::vector<UniqueFd> fds{};

  void add(const void* data, std::size_t size);
};

/// Links of a file, to be closed when check_mappings() allows it.
struct LinksMessage {
  UniqueFd mappings{};  ///< the program that it takes
  UniqueFd file{};
  std::vector<UniqueFd> links{};
  UniqueFd closed{};  ///< see FileLinks
};

/// Appends values to a message. Descriptors are moved into it.
class Writer {
 public:
  explicit Writer(Message& message) : message_(message) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (put(values), ...);
  }

 private:
  template <typename Value>
    requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  void put(Value& value) {
    message_.add(&value, sizeof value);
  }
  void put(std::string& text) {
    std::size_t size = text.size();
    put(size);
    message_.add(text.data(), size);
  }
  void put(UniqueFd& fd) {
    bool is_open{fd};
    put(is_open);
    if (is_open) message_.fds.push_back(std::move(fd));
  }
  template <typename Value>
  void put(std::optional<Value>& value) {
    bool is_set = value.has_value();
    put(is_set);
    if (is_set) put(*value);
  }
  template <typename Value>
  void put(std::vector<Value>& values) {
    std::size_t size = values.size();
    put(size);
    for (Value& value : values) put(value);
  }
  template <typename Value>
    requires std::is_class_v<Value>
  void put(Value& value) {
    fields(*this, value);
  }

  Message& message_;
};

/// Takes values from a message, in the order in which they were written.
class Reader {
 public:
  explicit Reader(Message& message) : message_(message) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (take(values), ...);
  }
  /// The message had everything, and nothing else.
  bool is_complete() const { return whole_ && at_ == message_.bytes.size() && next_fd_ == message_.fds.size(); }

 private:
  std::size_t left() const { return message_.bytes.size() - at_; }
  template <typename Value>
    requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  void take(Value& value) {
    if (left() < sizeof value) return fail();
    std::memcpy(&value, &message_.bytes[at_], sizeof value);
    at_ += sizeof value;
  }
  void take(bool& value) {
    std::uint8_t byte = 0;
    take(byte);
    value = byte != 0;
  }
  std::size_t take_size() {
    std::size_t size = 0;
    take(size);
    // An element has at least one byte.
    if (size > left()) fail();
    return whole_ ? size : 0;
  }
  void take(std::string& text) {
    const std::size_t size = take_size();
    if (size == 0) return;
    text.assign(reinterpret_cast<const char*>(&message_.bytes[at_]), size);
    at_ += size;
  }
  void take(UniqueFd& fd) {
    bool is_open = false;
    take(is_open);
    if (!is_open) return;
    if (next_fd_ == message_.fds.size()) return fail();
    fd = std::move(message_.fds[next_fd_++]);
  }
  template <typename Value>
  void take(std::optional<Value>& value) {
    bool is_set = false;
    take(is_set);
    if (is_set) take(value.emplace());
  }
  template <typename Value>
  void take(std::vector<Value>& values) {
    for (std::size_t size = take_size(); size > 0 && whole_; --size) take(values.emplace_back());
  }
  template <typename Value>
    requires std::is_class_v<Value>
  void take(Value& value) {
    fields(*this, value);
  }
  void fail() {
    whole_ = false;
    at_ = message_.bytes.size();
  }

  Message& message_;
  std::size_t at_ = 0, next_fd_ = 0;
  bool whole_ = true;
};

// The members of what is sent: archive(members...) for a Writer or a Reader.

template <typename Archive>
void fields(Archive& archive, FilePlace& place) {
  archive(place.device, place.inode, place.path);
}
template <typename Archive>
void fields(Archive& archive, AnnouncedRing& ring) {
  archive(ring.place, ring.clock_offset_ns, ring.address, ring.length, ring.user);
}
template <typename Archive>
void fields(Archive& archive, StartedWith& started) {
  archive(started.variable, started.user);
}
template <typename Archive>
void fields(Archive& archive, NamedProcess& process) {
  archive(process.pid, process.comm);
}
template <typename Archive>
void fields(Archive& archive, MappedFile& file) {
  archive(file.device, file.inode, file.changed_ns);
}
template <typename Archive>
void fields(Archive& archive, MappedCode& code) {
  archive(code.begin, code.end, code.offset, code.file, code.path, code.tables, code.has_none);
}
template <typename Archive>
void fields(Archive& archive, ServiceIdentity& service) {
  archive(service.name, service.version, service.cgroup, service.host_name);
}
template <typename Archive>
void fields(Archive& archive, ProcessQuery& query) {
  archive(query.pid, query.careful, query.user, query.image, query.program, query.announced_ring, query.mapped_rings,
          query.shared_files, query.runtime, query.peak_memory, query.arguments, query.service, query.word_address,
          query.code_but, query.builds_tables, query.all_pids, query.started_with);
}
template <typename Archive>
void fields(Archive& archive, ProcessStat& stat) {
  archive(stat.comm, stat.state, stat.parent, stat.kernel_thread, stat.ending, stat.threads, stat.start_code,
          stat.start_ticks, stat.cpu_ticks, stat.memory_pages);
}
template <typename Archive>
void fields(Archive& archive, Image& image) {
  archive(image.start_ticks, image.user, image.start_code, image.ns_pid, image.comm, image.exe, image.script,
          image.file);
}
template <typename Archive>
void fields(Archive& archive, OpenedRing& ring) {
  archive(ring.fd, ring.path, ring.clock_offset_ns, ring.begin, ring.length, ring.inode, ring.of_other_user);
}
template <typename Archive>
void fields(Archive& archive, MappedRuntime& runtime) {
  archive(runtime.fd, runtime.begin);
}
template <typename Archive>
void fields(Archive& archive, ProcessView& view) {
  archive(view.stat, view.image, view.rings, view.placed_ring, view.announced_path, view.runtime,
          view.peak_memory_bytes, view.arguments, view.service, view.word, view.code, view.pids, view.started,
          view.no_answer);
}
template <typename Archive>
void fields(Archive& archive, LinksMessage& message) {
  archive(message.mappings, message.file, message.links, message.closed);
}

}  // namespace rtev::helper

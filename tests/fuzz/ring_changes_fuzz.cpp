// SPDX-License-Identifier: MIT
// A ring that changes thousands of times between polls, mostly as a runtime writes and sometimes as nothing should. At
// the end its header may grow. The input seeds the changes and gives some of their words. Many contents of a ring for
// each input: opening a file takes longer than reading it.
#include "fuzz/watched_reader.hpp"
#include "ring/layout.hpp"
#include "ring/ring_file.hpp"

namespace rtev::fuzz {
namespace {

constexpr unsigned changes = 4096;
constexpr std::uint64_t max_domains = 4, max_words = 512,
                        data_offset = sizeof(FileHeader) + max_domains * ring_header_bytes;
constexpr std::uint64_t names_offset = data_offset + max_domains * max_words * sizeof(std::uint64_t);
/// Of the header that replaces the first one.
constexpr std::uint64_t more_domains = 64, more_data_offset = sizeof(FileHeader) + more_domains * ring_header_bytes;
constexpr std::uint64_t more_names_offset = more_data_offset + more_domains * max_words * sizeof(std::uint64_t);
constexpr std::uint64_t file_bytes = more_names_offset + user_event_names_bytes;

/// xorshift64*
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed | 1) {}
  std::uint64_t number() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1d;
  }
  std::uint64_t below(std::uint64_t limit) { return (number() >> 32) % limit; }

 private:
  std::uint64_t state_;
};

/// A mapped ring file with up to four domains, and the changes to it.
class ChangingRing {
 public:
  ChangingRing()
      : file_(file_of({})),
        words_(
            (resize(file_, file_bytes), static_cast<std::uint64_t*>(::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE,
                                                                           MAP_SHARED, file_.get(), 0)))) {
    check(words_ != MAP_FAILED, "mmap");
  }
  ChangingRing(const ChangingRing&) = delete;
  ChangingRing& operator=(const ChangingRing&) = delete;
  ~ChangingRing() { ::munmap(words_, file_bytes); }

  int file() const { return file_.get(); }

  void begin(std::uint64_t domains, std::uint64_t ring_words, Bytes content) {
    domains_ = domains;
    ring_words_ = ring_words;
    content_ = content;
    std::fill_n(words_, names_offset / sizeof *words_, 0);
    const FileHeader header{.version = 1,
                            .max_domains = domains,
                            .ring_header_size_bytes = ring_header_bytes,
                            .ring_size_bytes = ring_words * sizeof *words_,
                            .ring_size_elements = ring_words,
                            .headers_offset = sizeof header,
                            .data_offset = data_offset,
                            .custom_events_offset = names_offset};
    std::memcpy(words_, &header, sizeof header);
    time_ = 1;
  }

  /// Publishes a header of more domains, as another program would, over what is there.
  void grow() {
    auto* const header = reinterpret_cast<FileHeader*>(words_);
    header->max_domains = more_domains;
    header->data_offset = more_data_offset;
    header->custom_events_offset = more_names_offset;
  }

  void change(Random& random) {
    const std::uint64_t domain = random.below(domains_);
    switch (random.below(16)) {
      case 0:
        word(domain, random.number()) = random.number();
        break;
      case 1:
        word(domain, random.number()) = from_input(random);
        break;
      case 2:
        index(domain, random.below(2)) = index(domain, 1) + random.below(4 * max_words) - 2 * max_words;
        break;
      case 3:
        index(domain, random.below(2)) = random.number() >> random.below(64);
        break;
      case 4:
        index(domain, 0) = index(domain, 1);
        break;
      default:
        append(domain, random);
    }
  }

 private:
  /// Head (0) or tail (1).
  std::uint64_t& index(std::uint64_t domain, std::uint64_t which) {
    return words_[(sizeof(FileHeader) + domain * ring_header_bytes) / sizeof *words_ + which];
  }
  std::uint64_t& word(std::uint64_t domain, std::uint64_t at) {
    return words_[data_offset / sizeof *words_ + domain * ring_words_ + at % ring_words_];
  }
  std::uint64_t from_input(Random& random) const {
    std::uint64_t value = 0;
    if (content_.size() >= sizeof value)
      std::memcpy(&value, content_.data() + random.below(content_.size() - sizeof value + 1), sizeof value);
    return value;
  }

  /// A message as the runtime writes it, or nearly.
  void append(std::uint64_t domain, Random& random) {
    const std::uint64_t shape = random.number(), tail = index(domain, 1);
    const std::uint64_t length = shape % 64 == 0 ? random.below(message::max_words + 1) : 2 + shape % 7;
    const auto type = static_cast<unsigned>(shape >> 8) % (shape % 32 == 1 ? 16 : 6);
    const std::uint64_t id = (shape >> 16) % (shape % 16 == 2 ? message::max_id + 1 : 64);
    time_ = shape % 128 == 3 ? random.number() : time_ + 1;
    for (std::uint64_t i = 0; i < std::min(length, ring_words_); ++i) {
      word(domain, tail + i) = i == 0   ? message::first_word(length, (shape >> 40) % 4 == 0, type, id)
                               : i == 1 ? time_
                                        : from_input(random);
    }
    index(domain, 1) = tail + length;
    if (tail + length - index(domain, 0) > ring_words_) index(domain, 0) = tail + length - ring_words_ / 2;
  }

  UniqueFd file_;
  std::uint64_t* words_;
  std::uint64_t domains_ = 1, ring_words_ = 64;
  Bytes content_;
  std::uint64_t time_ = 1;
};

}  // namespace

void ring_changes(Bytes input) {
  Input rest(input);
  Random random(rest.take<std::uint64_t>());
  const unsigned shape = rest.take<std::uint8_t>();
  const bool has_owner = shape >> 4 & 1;
  enum class Growth : std::uint8_t { none, before_the_end, at_the_end, after_the_end };
  const auto growth = static_cast<Growth>(shape >> 5 & 3);
  static ChangingRing ring;
  ring.begin(1 + shape % max_domains, std::uint64_t{64} << (shape >> 2) % 4, rest.rest());
  auto opened = has_owner ? RingReaderAccess::adopt(UniqueFd(::dup(ring.file())), "fuzz", {}, RingOwner{})
                          : RingReader::adopt(::dup(ring.file()), "fuzz", {});
  check(opened.has_value(), "a valid header");
  WatchedReader reader(std::move(*opened));
  for (unsigned i = 0; i < changes; ++i) {
    ring.change(random);
    reader.poll(i % 16 == 0 ? 10 : RingReader::default_budget_words);
  }
  const auto grow_if = [&](Growth now) {
    if (growth == now) ring.grow();
  };
  grow_if(Growth::before_the_end);
  reader.poll(RingReader::default_budget_words);
  grow_if(Growth::at_the_end);
  RingReaderAccess::seal(*reader);
  reader.poll(RingReader::default_budget_words);
  grow_if(Growth::after_the_end);
  reader.poll(RingReader::default_budget_words);
  reader.finish();
}

}  // namespace rtev::fuzz

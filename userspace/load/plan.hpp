// SPDX-License-Identifier: MIT
// The prepared events of a domain, in order. A domain writes them repeatedly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "load/mix.hpp"
#include "rtev/event.hpp"
#include "rtev/names.hpp"
#include "rtev/ring_writer.hpp"

namespace rtev::load {

struct UserEventSpec {
  std::string_view name;
  UserType type;
};
/// The user events of a load; steps refer to them by index.
inline constexpr std::array<UserEventSpec, 7> user_events{{{"cache_miss", UserType::unit},
                                                           {"timer", UserType::unit},
                                                           {"queued", UserType::integer},
                                                           {"bytes_sent", UserType::integer},
                                                           {"request", UserType::span},
                                                           {"query", UserType::span},
                                                           {"message", UserType::custom}}};

/// One event.
struct Step {
  EventKind kind;       ///< begin to user_custom
  std::uint16_t id;     ///< phase, counter, or index into user_events
  std::uint32_t size;   ///< of user_custom: bytes
  std::uint64_t value;  ///< of counter and user_int; place of the payload of alloc (index) and user_custom (offset)

  bool operator==(const Step&) const = default;
};

/// Numbers of events by kind, of those kinds that a ring can hold.
inline constexpr std::size_t ring_kind_count = static_cast<std::size_t>(EventKind::user_custom) + 1;
using EventCounts = std::array<std::uint64_t, ring_kind_count>;

struct PlanOptions {
  std::uint64_t seed = 1;
  Mix mix = Mix::all();
  Family family = Family::since_5_3;
  std::uint32_t domain = 0;
  std::uint32_t domains = 1;
  std::uint32_t max_payload = 256;  ///< of custom events, in bytes
};

/// A sequence of steps. It consists of blocks, in which all spans that begin also end. The plans of the domains of one
/// process have the same length and stop-the-world sections at the same places, each led by another domain. Equal
/// options give equal plans.
class Plan {
 public:
  using Buckets = std::array<std::uint64_t, alloc_bucket_count>;

  static Plan make(const PlanOptions& options);

  std::span<const Step> steps() const { return steps_; }
  std::span<const std::byte> payload(const Step& step) const {
    return std::span(payloads_).subspan(step.value, step.size);
  }
  const Buckets& buckets(const Step& step) const { return buckets_[step.value]; }

  /// The end of the block around `position`, or `position` itself if it is between two blocks.
  std::size_t block_end(std::size_t position) const;
  /// The first `written` events by kind, if the plan is repeated from its beginning.
  EventCounts counts(std::uint64_t written) const;

 private:
  friend class Composer;
  Plan() = default;

  std::vector<Step> steps_;
  std::vector<std::size_t> block_ends_;
  std::vector<std::byte> payloads_;
  std::vector<Buckets> buckets_;
};

}  // namespace rtev::load

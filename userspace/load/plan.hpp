// SPDX-License-Identifier: MIT
// What a domain writes, prepared: its events in order, to be gone through again and again.
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
  std::uint64_t value;  ///< of counter and user_int; where the payload of alloc (index) and user_custom (offset) lies

  bool operator==(const Step&) const = default;
};

/// Events by kind, those that a ring can hold.
inline constexpr std::size_t ring_kind_count = static_cast<std::size_t>(EventKind::user_custom) + 1;
using EventCounts = std::array<std::uint64_t, ring_kind_count>;

struct PlanOptions {
  std::uint64_t seed = 1;
  Mix mix = Mix::all();
  Family family = Family::since_5_3;
  std::uint32_t domain = 0;
  std::uint32_t domains = 1;
  std::uint32_t largest_payload = 256;  ///< of custom events, bytes
};

/// A sequence of steps made of blocks in which each span that begins ends. Plans of the domains of one process are
/// equally long and have stop-the-world sections at the same places, each led by another domain. The same options give
/// the same plan.
class Plan {
 public:
  using Buckets = std::array<std::uint64_t, alloc_bucket_count>;

  static Plan make(const PlanOptions& options);

  std::span<const Step> steps() const { return steps_; }
  std::span<const std::byte> payload(const Step& step) const {
    return std::span(payloads_).subspan(step.value, step.size);
  }
  const Buckets& buckets(const Step& step) const { return buckets_[step.value]; }

  /// The end of the block that reaches `position`, itself if no block goes beyond it.
  std::size_t block_end(std::size_t position) const;
  /// What the first `written` events are, when the plan is gone through from its beginning as often as it takes.
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

// SPDX-License-Identifier: MIT
// A program outside the project, which uses the installed librtev.
#include <cstdio>
#include <rtev/names.hpp>
#include <rtev/ring_reader.hpp>
#include <rtev/version.hpp>
#include <string_view>

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--version") return std::puts(RTEV_VERSION), 0;
  auto ring = rtev::RingReader::open(argc > 1 ? argv[1] : "");
  if (!ring) return std::fprintf(stderr, "%s\n", ring.error().message().c_str()), 1;
  ring->poll([&](const rtev::Batch& batch) {
    for (const rtev::Event& event : batch.events()) {
      const bool is_user = event.kind == rtev::EventKind::user_int;
      const auto name = is_user ? ring->user_event_name(event.id) : rtev::phase_name(rtev::Family::since_5_3, event.id);
      std::printf("%llu %.*s\n", static_cast<unsigned long long>(event.time), static_cast<int>(name.size()),
                  name.data());
    }
  });
  return ring->accounting().balanced() ? 0 : 1;
}

// SPDX-License-Identifier: MIT
// Writes a ring file with three events for the consumer.
#include "support/ring_file_builder.hpp"

int main(int argc, char** argv) {
  using namespace rtev::test;
  if (argc != 2) return 2;
  RingFileBuilder ring;
  ring.set_name(7, "request");
  ring.append(0, make::begin(100, 11));
  ring.append(0, make::user_int(150, 7, 42));
  ring.append(0, make::end(200, 11));
  ring.save(argv[1]);
}

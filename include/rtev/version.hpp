// SPDX-License-Identifier: MIT
// Version of librtev and of rtev-bpf. CMake reads it from here: this is the only place to change it.
//
// Stability: before 1.0 a minor version (0.2) may change any declaration, a patch version (0.1.1) changes none. There
// is no stable binary interface: link the static library, and compile again with each version. The CMake package
// accepts only the requested minor version. All declarations in include/rtev are public, except
// namespaces `detail`.
#pragma once

#define RTEV_VERSION_MAJOR 0
#define RTEV_VERSION_MINOR 2
#define RTEV_VERSION_PATCH 0

/// The version as one number, for comparisons in #if: major * 1'000'000 + minor * 1'000 + patch.
#define RTEV_VERSION_NUMBER (RTEV_VERSION_MAJOR * 1'000'000 + RTEV_VERSION_MINOR * 1'000 + RTEV_VERSION_PATCH)

/// The version as a string literal, "major.minor.patch".
#define RTEV_VERSION                       \
  RTEV_VERSION_STRING_(RTEV_VERSION_MAJOR) \
  "." RTEV_VERSION_STRING_(RTEV_VERSION_MINOR) "." RTEV_VERSION_STRING_(RTEV_VERSION_PATCH)
#define RTEV_VERSION_STRING_(number) RTEV_VERSION_STRING_2_(number)
#define RTEV_VERSION_STRING_2_(number) #number

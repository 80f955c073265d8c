# SPDX-License-Identifier: MIT
# What makes a mistake in an optimised build hard to use for an attacker, and what keeps folders of the builder out of it.
# Debug and sanitizer builds have checks of their own. Sets RTEV_HARDENED, and rtev_program_link for programs.
# tests/install/check-hardening checks the result.

if(RTEV_STATIC)
  set(rtev_program_link -static)
endif()
set(RTEV_HARDENED OFF)
if(NOT CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$" OR RTEV_SANITIZE)
  return()
endif()
set(RTEV_HARDENED ON)

# No path of this tree, so that another folder gives the same binary. The later option is tried first.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build)

add_compile_options(
  -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3  # some distributions define another value
  -D_GLIBCXX_ASSERTIONS
  -fPIE
  -fstack-protector-strong
  -fstack-clash-protection
  -ftrivial-auto-var-init=zero)
if(rtev_processor STREQUAL x86)
  add_compile_options(-fcf-protection=full)
elseif(rtev_processor STREQUAL arm64)
  add_compile_options(-mbranch-protection=standard)
endif()
add_link_options(-Wl,-z,relro,-z,now,-z,noexecstack)
if(RTEV_STATIC)
  set(rtev_program_link -static-pie)
else()
  set(rtev_program_link -pie)
endif()

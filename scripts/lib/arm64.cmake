# SPDX-License-Identifier: MIT
# Toolchain file of scripts/build-arm64: Debian's cross compiler, and a folder with the arm64 libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RTEV_ARM64_LIBRARIES)
set(CMAKE_FIND_ROOT_PATH ${RTEV_ARM64_LIBRARIES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${RTEV_ARM64_LIBRARIES})
set(ENV{PKG_CONFIG_LIBDIR} ${RTEV_ARM64_LIBRARIES}/usr/lib/aarch64-linux-gnu/pkgconfig)

# The compiler has its own C library, so the folder cannot be a sysroot.
add_compile_options(-isystem ${RTEV_ARM64_LIBRARIES}/usr/include)
add_link_options(-L${RTEV_ARM64_LIBRARIES}/usr/lib/aarch64-linux-gnu)
add_link_options(-Wl,-rpath-link,${RTEV_ARM64_LIBRARIES}/usr/lib/aarch64-linux-gnu)
add_link_options(-Wl,-rpath-link,${RTEV_ARM64_LIBRARIES}/lib/aarch64-linux-gnu)

# Tests run only under an emulator; CMake would run them to list them while it builds.
find_program(RTEV_ARM64_EMULATOR qemu-aarch64-static)
if(RTEV_ARM64_EMULATOR)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${RTEV_ARM64_EMULATOR} -L /usr/aarch64-linux-gnu)
endif()
set(CMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE PRE_TEST)

# SPDX-License-Identifier: MIT
# Run by CPack before it packs a Debian package: adds what Debian wants to see in one, and moves files to its places.
set(tool ${CPACK_TEMPORARY_DIRECTORY}/tool)
set(development ${CPACK_TEMPORARY_DIRECTORY}/development)
set(debian ${CPACK_RTEV_SOURCE_DIR}/packaging/debian)

# run COMMAND...: fails with its error.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# copy(NAME TO): not file(INSTALL), because CPack sets DESTDIR here.
function(copy name to)
  configure_file(${debian}/${name} ${to} COPYONLY NO_SOURCE_PERMISSIONS)
endfunction()

foreach(package rtev-bpf librtev-dev)
  if(package STREQUAL rtev-bpf)
    set(doc ${tool}/usr/share/doc/${package})
  else()
    set(doc ${development}/usr/share/doc/${package})
  endif()
  copy(copyright ${doc}/copyright)
  run(sh ${debian}/make-changelog ${CPACK_RTEV_SOURCE_DIR}/CHANGELOG.md ${package} ${CPACK_PACKAGE_VERSION}
      ${CPACK_PACKAGE_CONTACT} ${doc}/changelog)
  run(gzip -9n ${doc}/changelog)
endforeach()
file(REMOVE ${tool}/usr/share/doc/rtev-bpf/LICENSE)  # that is `copyright`
copy(lintian-overrides ${tool}/usr/share/lintian/overrides/rtev-bpf)

file(GLOB pages ${tool}/usr/share/man/man*/*)
if(pages)
  run(gzip -9n ${pages})
endif()
if(EXISTS ${tool}/usr/share/zsh/site-functions)
  file(RENAME ${tool}/usr/share/zsh/site-functions ${tool}/usr/share/zsh/vendor-completions)
endif()
if(EXISTS ${tool}/usr/share/doc/rtev-bpf/etc)
  file(MAKE_DIRECTORY ${tool}/etc)
  file(RENAME ${tool}/usr/share/doc/rtev-bpf/etc ${tool}/etc/rtev-bpf)
endif()
# Symbols that only a debugger needs.
file(GLOB_RECURSE archives ${development}/usr/lib/*.a)
run(strip --strip-debug --enable-deterministic-archives ${archives})

# SPDX-License-Identifier: MIT
# Writes the files of this folder into OUTPUT, as the constants that embedded_files.hpp declares.
#
# usage: cmake -D OUTPUT=FILE -P embed.cmake
set(code "// SPDX-License-Identifier: MIT\n#include \"web/embedded_files.hpp\"\n\nnamespace rtev::web {\n\n")

# embed(NAME FILE...): the texts of the files in this order.
function(embed name)
  set(text "\n")
  foreach(file IN LISTS ARGN)
    file(READ ${CMAKE_CURRENT_LIST_DIR}/${file} part)
    string(APPEND text "${part}")
  endforeach()
  string(SHA256 hash "${text}")
  string(REGEX REPLACE "(..)" "\\\\x\\1" hash ${hash})
  string(APPEND code "const Part ${name}{.text = R\"web(${text})web\",\n  .sha256 = {\"${hash}\", 32}};\n")
  set(code "${code}" PARENT_SCOPE)
endfunction()

embed(report_style report.css flame_graph.css)
embed(report_script report_basics.js flame_graph.js report_charts.js report_pauses.js report_pause_details.js
      report_sections.js)
embed(flame_graph_style flame_graph.css)
embed(flame_graph_script flame_graph.js)
embed(flame_graph_page flame_graph.html)
file(WRITE ${OUTPUT} "${code}\n}  // namespace rtev::web\n")

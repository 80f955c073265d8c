// SPDX-License-Identifier: MIT
// Names of OCaml functions as a programmer would write them.
#pragma once

#include <string>
#include <string_view>

namespace rtev {

/// True for what the compiler makes of the name of a function of a module: "camlStdlib__List.map_12".
bool is_ocaml_symbol(std::string_view symbol);

/// "Stdlib.List.map" of "camlStdlib__List.map_12". Anonymous functions become "(fun)", the code that initialises a
/// module has the module's name. Returns other symbols as they are, without what C compilers append (".constprop.0").
std::string readable_symbol(std::string_view symbol);

/// "Main.handle.(fun)" of "Dune__exe__Main.handle.(fun)", which is how debugging information names functions.
std::string readable_definition(std::string_view name);

}  // namespace rtev

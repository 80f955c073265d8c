// SPDX-License-Identifier: MIT
#include "unwind/ocaml_names.hpp"

#include <gtest/gtest.h>

namespace rtev {
namespace {

TEST(OCamlNames, SymbolsReadAsInTheSource) {
  EXPECT_EQ(readable_symbol("camlStdlib__List.map_12"), "Stdlib.List.map");
  EXPECT_EQ(readable_symbol("camlWeb__Server.handle_12"), "Web.Server.handle");
  EXPECT_EQ(readable_symbol("camlWeb__Server.handle_request_312"), "Web.Server.handle_request");
  EXPECT_EQ(readable_symbol("camlDune__exe__Main.f_3"), "Main.f");
  EXPECT_EQ(readable_symbol("camlT.fun_1189"), "T.(fun)");
  EXPECT_EQ(readable_symbol("camlT.anon_fn$5bt.ml$3a3$2c4--5$5d_7"), "T.(fun)");
  EXPECT_EQ(readable_symbol("camlMain.entry"), "Main");
  EXPECT_EQ(readable_symbol("camlLwt.$3e$3e$3d_91"), "Lwt.(>>=)");
  EXPECT_EQ(readable_symbol("camlLwt.let$2a_91"), "Lwt.(let*)");
  EXPECT_EQ(readable_symbol("camlLwt.and$2b$2b_91"), "Lwt.(and++)");
  EXPECT_EQ(readable_symbol("camlT.letter_1"), "T.letter");
  EXPECT_EQ(readable_symbol("camlT.and_1"), "T.and");
  EXPECT_EQ(readable_symbol("camlLwt.f$27_9"), "Lwt.f'");
  EXPECT_EQ(readable_symbol("camlT.my__name_2"), "T.my__name");
}

TEST(OCamlNames, SymbolsOf50HaveOtherSeparators) {
  EXPECT_EQ(readable_symbol("camlStdlib__List__map_12"), "Stdlib.List.map");
  EXPECT_EQ(readable_symbol("camlT__fun_1189"), "T.(fun)");
  EXPECT_EQ(readable_symbol("camlT__entry"), "T");
  EXPECT_EQ(readable_symbol("camlT___private_3"), "T._private");
}

TEST(OCamlNames, OtherSymbolsStayAsTheyAre) {
  EXPECT_EQ(readable_symbol("caml_md5_string"), "caml_md5_string");
  EXPECT_EQ(readable_symbol("caml_apply2"), "caml_apply2");
  EXPECT_EQ(readable_symbol("sweep_slice.constprop.0"), "sweep_slice");
  EXPECT_EQ(readable_symbol("mark.part.0.cold"), "mark");
  EXPECT_EQ(readable_symbol(""), "");
  EXPECT_FALSE(is_ocaml_symbol("caml"));
  EXPECT_FALSE(is_ocaml_symbol("caml_main"));
}

TEST(OCamlNames, HostileSymbolsAreText) {
  for (const char* name : {"camlA", "camlA.", "camlA__", "camlA.$", "camlA.$3", "camlA.$zz", "camlA._1", "camlA.1",
                           ".cold", "camlDune__exe__", "camlA____", "camlA.__", "camlX$00.f_1"})
    readable_symbol(name);
  EXPECT_EQ(readable_symbol("camlA.$1b_1"), "A.(\x1b)") << "escaped by whoever prints it";
}

TEST(OCamlNames, DefinitionsReadAsInTheSource) {
  EXPECT_EQ(readable_definition("Stdlib__List.map"), "Stdlib.List.map");
  EXPECT_EQ(readable_definition("Dune__exe__Main.serve.(fun)"), "Main.serve.(fun)");
  EXPECT_EQ(readable_definition("Lwt.Syntax.let*"), "Lwt.Syntax.(let*)");
  EXPECT_EQ(readable_definition("Lwt.(>>=)"), "Lwt.(>>=)");
  EXPECT_EQ(readable_definition("Lwt."), "Lwt.");
  EXPECT_EQ(readable_definition("Main"), "Main");
  EXPECT_EQ(readable_definition("M.my__name"), "M.my__name");
  EXPECT_EQ(readable_definition(""), "");
}

}  // namespace
}  // namespace rtev

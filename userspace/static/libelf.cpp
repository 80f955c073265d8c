// SPDX-License-Identifier: MIT
// Functions that libelf.a of elfutils 0.192 (Debian 13) uses and lacks: it has no libeu.a, where they are. They are
// those of an empty tree, which stays empty: it is filled by elf_getdata_rawchunk(), which neither libbpf nor rtev-bpf
// calls. A call would not link.

extern "C" {
/// A new tree, in memory that libelf has zeroed: its root is the first member.
void eu_search_tree_init(void** tree) {
  *tree = nullptr;
}
void eu_search_tree_fini(void** /*tree*/, void (* /*free_node*/)(void*)) {}
}

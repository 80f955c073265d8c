// SPDX-License-Identifier: MIT
// The functions of {fmt}, compiled once. Debian ships {fmt} as a shared library only; a static rtev-bpf would otherwise
// compile them again in every file that formats text (FMT_HEADER_ONLY), which takes seconds each.
#include <fmt/format-inl.h>

#if FMT_VERSION < 90000 || FMT_VERSION >= 100000
#error "this is the list of {fmt} 9; other versions are used as headers only (see userspace/CMakeLists.txt)"
#endif

// The templates that {fmt}'s headers declare and expect to find in its library.
FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl<char>(locale_ref) -> char;
template FMT_API auto dragonbox::to_decimal<float>(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal<double>(double) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API void buffer<char>::append<char>(const char*, const char*);
template FMT_API void vformat_to<char>(buffer<char>&, string_view, basic_format_args<buffer_context<char>>, locale_ref);

}  // namespace detail
FMT_END_NAMESPACE

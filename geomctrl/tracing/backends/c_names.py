"""Names in exported C code: reserved words and names of C, C++ and operating systems.

Functions are NAME_word, so that only parameters and files can have such a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"[A-Za-z](_?[A-Za-z0-9])*_?")  # two underscores in a row are C++'s, a leading one is C's

KEYWORDS = """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break case catch
    char char8_t char16_t char32_t class co_await co_return co_yield compl complex concept const const_cast consteval
    constexpr constinit continue contract_assert decltype default delete do double dynamic_cast else enum explicit
    export extern false final float for fortran friend goto if imaginary import inline int long module mutable namespace
    new noexcept noreturn not not_eq nullptr operator or or_eq override private protected public reflexpr register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    synchronized template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned
    using virtual void volatile wchar_t while xor xor_eq
"""  # of C99, C11, C23 and C++
MATH = """
    acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p
    log2 logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint llrint
    round lround llround trunc fmod remainder remquo copysign nan nextafter nexttoward fdim fmax fmin fma
"""
MACROS = """
    assert errno fpclassify isfinite isinf isnan isnormal signbit isgreater isgreaterequal isless islessequal
    islessgreater isunordered stdin stdout stderr offsetof setjmp alloca unix linux near far small interface min max
    printf memcpy memcmp main j0 j1 jn y0 y1 yn gamma signgam drem significand math_errhandling
"""  # of C, GNU and Windows, except those in capitals, and functions that the exported files use
HEADERS = """
    assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign stdarg stdatomic
    stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar wchar wctype aio
    cpio dirent dlfcn fcntl fmtmsg fnmatch ftw glob grp iconv langinfo libgen libintl monetary mqueue ndbm netdb
    nl_types poll pthread pwd regex sched search semaphore spawn strings stropts syslog tar termios trace ulimit unistd
    utime utmpx wordexp malloc memory features alloca values endian windows con prn aux nul
    com0 com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt0 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9
"""  # of C and POSIX, which NAME.h would hide, and Windows devices, which can not be file names
RESERVED = {
    *KEYWORDS.split(),
    *MACROS.split(),
    *(f"{x}{suffix}" for x in MATH.split() for suffix in ("", "f", "l")),
}
FILES = set(HEADERS.split())


def is_name(name: str) -> bool:
    """Whether a name is valid in C and C++ and reserved in neither."""
    return _NAME.fullmatch(name) is not None


def parameter(name: str, taken: Iterable[str] = ()) -> str:
    """A valid parameter name from any text.

    Other characters become underscores. An underscore is appended to a name that C, C++, the system, another parameter,
    a local variable of exported code or a macro already has.
    """
    name = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9]", "_", name)).strip("_")
    name = name if name[:1].isalpha() else f"x{name}"
    if name in RESERVED or re.fullmatch(r"t\d+|[A-Z]([A-Z0-9_]+|_.*)|shared|failed|(expected|tolerance)_.*", name):
        name += "_"
    first, k, taken = name, 1, set(taken)
    while name in taken:
        k += 1
        name = f"{first.rstrip('_')}_{k}"
    return name

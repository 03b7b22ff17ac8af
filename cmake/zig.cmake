# Toolchain: Zig's C and C++ compiler, which links for an old glibc or musl on any machine and brings its own C++ library.
#
#     cmake --toolchain cmake/zig.cmake -DHEADRACE_ZIG=/path/to/zig -DHEADRACE_ZIG_TARGET=x86_64-linux-gnu.2.28 ...
#
# Another target: x86_64-linux-musl.
if(NOT HEADRACE_ZIG_TOOLS)
  set(HEADRACE_ZIG_TOOLS ${CMAKE_BINARY_DIR}/zig)
endif()
# CMake reads this file again for each of its trial builds, which have folders of their own.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEADRACE_ZIG HEADRACE_ZIG_TARGET HEADRACE_ZIG_TOOLS)

set(CMAKE_SYSTEM_NAME Linux)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR ${HEADRACE_ZIG_TARGET})

# CMake, ccache and ISA-L's makefile each want a compiler that is one file, not "zig c++".
function(zig_tool name arguments)
  file(WRITE ${HEADRACE_ZIG_TOOLS}/${name} "#!/bin/sh
exec '${HEADRACE_ZIG}' ${arguments} \"$@\"
")
  file(CHMOD ${HEADRACE_ZIG_TOOLS}/${name} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endfunction()

# glibc ends a thread with libgcc's unwinder, which cannot walk frames of Zig's own, so libgcc's is the one to use. Zig
# has no libgcc_s, but every Linux with glibc does: a library of its name with what libc++abi calls is enough to link.
function(zig_unwinder file)
  set(functions "")
  foreach(name IN ITEMS DeleteException GetIP GetLanguageSpecificData GetRegionStart RaiseException Resume SetGR SetIP)
    string(APPEND functions "void _Unwind_${name}(void) {}\n")
  endforeach()
  file(WRITE ${file}.c "${functions}")
  file(WRITE ${file}.map "GCC_3.0 { global: _Unwind_*; local: *; };\n")
  execute_process(COMMAND_ERROR_IS_FATAL ANY
    COMMAND ${HEADRACE_ZIG_TOOLS}/clang -shared -fPIC -nostdlib -Wl,-soname,libgcc_s.so.1
      -Wl,--version-script=${file}.map ${file}.c -o ${file})
endfunction()

if(NOT EXISTS ${HEADRACE_ZIG_TOOLS}/ranlib)
  # Zig adds debug information, which costs a fifth of the build's time and is stripped in the end, and frame pointers.
  set(plain "-g0 -fomit-frame-pointer")
  zig_tool(clang "cc -target ${HEADRACE_ZIG_TARGET} ${plain}")
  zig_tool(clang++ "c++ -target ${HEADRACE_ZIG_TARGET} ${plain}")
  zig_tool(ar ar)
  if(HEADRACE_ZIG_TARGET MATCHES "gnu[.]")
    zig_unwinder(${HEADRACE_ZIG_TOOLS}/libgcc_s.so.1)
  endif()
  zig_tool(ranlib ranlib)
endif()

set(CMAKE_C_COMPILER ${HEADRACE_ZIG_TOOLS}/clang)
set(CMAKE_CXX_COMPILER ${HEADRACE_ZIG_TOOLS}/clang++)
set(CMAKE_AR ${HEADRACE_ZIG_TOOLS}/ar)
set(CMAKE_RANLIB ${HEADRACE_ZIG_TOOLS}/ranlib)

# -s: no strip of this machine knows the target.
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s")
if(HEADRACE_ZIG_TARGET MATCHES "gnu[.]")
  string(APPEND CMAKE_MODULE_LINKER_FLAGS_INIT " ${HEADRACE_ZIG_TOOLS}/libgcc_s.so.1")
endif()

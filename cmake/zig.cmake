# Toolchain: Zig's C and C++ compiler, which links for an old glibc, musl or another system on any machine and brings its
# own C++ library.
#
#     cmake --toolchain cmake/zig.cmake -DHEADRACE_ZIG=/path/to/zig -DHEADRACE_ZIG_TARGET=x86_64-linux-gnu.2.28 ...
#
# Other targets: x86_64-linux-musl; without recording also aarch64-macos, x86_64-macos and x86_64-windows-gnu.
if(NOT HEADRACE_ZIG_TOOLS)
  set(HEADRACE_ZIG_TOOLS ${CMAKE_BINARY_DIR}/zig)
endif()
# CMake reads this file again for each of its trial builds, which have folders of their own.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEADRACE_ZIG HEADRACE_ZIG_TARGET HEADRACE_ZIG_TOOLS)

set(CMAKE_SYSTEM_NAME Linux)
if(HEADRACE_ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  # Zig has what CMake would look for in Xcode, or it is not needed.
  set(CMAKE_OSX_SYSROOT "")
  set(CMAKE_OSX_DEPLOYMENT_TARGET "" CACHE STRING "")
  set(CMAKE_INSTALL_NAME_TOOL true)
elseif(HEADRACE_ZIG_TARGET MATCHES "windows")
  set(CMAKE_SYSTEM_NAME Windows)
endif()
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR ${HEADRACE_ZIG_TARGET})

# CMake, ccache and ISA-L's makefile each want a compiler that is one file, not "zig c++".
# Zig's linker cannot make a bundle, as CMake wants it for macOS; Python loads a dynamic library as well.
function(zig_tool name arguments)
  file(WRITE ${HEADRACE_ZIG_TOOLS}/${name} "#!/bin/sh
for each; do
  shift
  [ \"$each\" = -bundle ] && each=-dynamiclib
  set -- \"$@\" \"$each\"
done
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
  zig_tool(rc rc)
  if(HEADRACE_ZIG_TARGET MATCHES "gnu[.]")
    zig_unwinder(${HEADRACE_ZIG_TOOLS}/libgcc_s.so.1)
  endif()
  zig_tool(ranlib ranlib)
endif()

set(CMAKE_C_COMPILER ${HEADRACE_ZIG_TOOLS}/clang)
set(CMAKE_CXX_COMPILER ${HEADRACE_ZIG_TOOLS}/clang++)
set(CMAKE_AR ${HEADRACE_ZIG_TOOLS}/ar)
set(CMAKE_RANLIB ${HEADRACE_ZIG_TOOLS}/ranlib)
set(CMAKE_RC_COMPILER ${HEADRACE_ZIG_TOOLS}/rc)

# -s: no strip of this machine knows the target.
set(CMAKE_MODULE_LINKER_FLAGS_INIT "-s")
if(HEADRACE_ZIG_TARGET MATCHES "gnu[.]")
  string(APPEND CMAKE_MODULE_LINKER_FLAGS_INIT " ${HEADRACE_ZIG_TOOLS}/libgcc_s.so.1")
endif()

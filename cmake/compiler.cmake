# Compiler settings shared by every target: standard, warnings, sanitizers, compiler cache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)

if(headrace_develop)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

find_program(HEADRACE_CCACHE ccache)
mark_as_advanced(HEADRACE_CCACHE)
if(HEADRACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # CCACHE_BASEDIR: a unit of several files is in the build's folder, and the wheel's is another than the editable
  # install's. CCACHE_NOHASHDIR: nor does the clone's place count; a debugger finds the sources of the first one.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${HEADRACE_CCACHE})
endif()

# Sanitizers change the ABI of what they instrument, so they hold for the whole build, not for one target.
if(HEADRACE_SANITIZE)
  add_compile_options(-fsanitize=${HEADRACE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEADRACE_SANITIZE})
  if(HEADRACE_SANITIZE MATCHES "undefined")
    # AddressSanitizer finds what null and object-size would; without these three a build takes a third less time.
    add_compile_options(-fno-sanitize=null,object-size,vptr)
  endif()
endif()

# A program should name the libraries that it uses, and no others: a wheel carries what is named. It should hold the
# functions that it calls, and no others: a folder's files are one unit, and so all in or all out otherwise.
add_link_options(LINKER:--as-needed LINKER:--gc-sections)
add_compile_options(-ffunction-sections -fdata-sections)

# Warnings for our own targets; not PUBLIC, a user's build keeps its own rules.
function(headrace_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 reports overlapping copies inside std::string's own operator+ (GCC bug 105651), and uninitialised reads
    # of optionals that are empty (GCC bug 80635).
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-maybe-uninitialized)
    if(CMAKE_UNITY_BUILD)
      # A class of a source may have members of that source's anonymous types, also in a unit. And GCC inlines less in a
      # large unit: reports and traces took 8 % longer without the parameter.
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage --param=large-unit-insns=1000000)
    endif()
    if(HEADRACE_SANITIZE STREQUAL "thread")
      # ThreadSanitizer does not follow fences, which would make it report plain data that a fence protects. Ours
      # order relaxed atomics only (the seqlocks' cells), which it never reports.
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
  endif()
  if(HEADRACE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# With CMAKE_UNITY_BUILD the files of a folder are compiled as one, in a quarter of the time: names in the anonymous
# namespaces of one folder differ.
function(headrace_one_unit_per_folder target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${PROJECT_SOURCE_DIR})  # the cache of another clone has it, too
    string(MAKE_C_IDENTIFIER "${folder}" group)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

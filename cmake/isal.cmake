# ISA-L's inflate and deflate from its sources, by its own makefile, as PkgConfig::isal (the name that pkg-config's has).
find_program(HEADRACE_MAKE NAMES gmake make REQUIRED)

set(isal_cpu ${CMAKE_SYSTEM_PROCESSOR})
if(isal_cpu STREQUAL "x86_64")
  find_program(HEADRACE_NASM nasm)
  if(NOT HEADRACE_NASM)
    message(WARNING "No nasm: ISA-L is built without its assembly, and compressed traces are read more slowly.")
    set(isal_cpu base_aliases)
  endif()
elseif(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # Its other assembly is written for GNU's assembler (release 2.31 mends that).
  set(isal_cpu base_aliases)
endif()

# Its headers are installed into a folder isa-l, which its sources lack.
set(isal_build ${CMAKE_CURRENT_BINARY_DIR}/isal)
file(MAKE_DIRECTORY ${isal_build}/include)
file(CREATE_LINK ${isal_SOURCE_DIR}/include ${isal_build}/include/isa-l SYMBOLIC)

add_custom_command(OUTPUT ${isal_build}/libisal.a
  COMMAND ${HEADRACE_MAKE} --silent -f Makefile.unx lib "units=igzip crc" host_cpu=${isal_cpu}
    O=${isal_build}/objects lib_name=${isal_build}/libisal.a "CC=${CMAKE_C_COMPILER} -fPIC" AR=${CMAKE_AR}
  WORKING_DIRECTORY ${isal_SOURCE_DIR}
  VERBATIM)
add_custom_target(headrace_build_isal DEPENDS ${isal_build}/libisal.a)

add_library(headrace_isal INTERFACE)
add_dependencies(headrace_isal headrace_build_isal)
target_include_directories(headrace_isal INTERFACE ${isal_build}/include)
target_link_libraries(headrace_isal INTERFACE ${isal_build}/libisal.a)
add_library(PkgConfig::isal ALIAS headrace_isal)

# The libraries that the core uses: installed ones, or built here from their sources.
#
# OFF      every library must be installed (a checkout: tools/build-packages.txt names the packages)
# MISSING  what is not installed is downloaded and linked statically (pip install, so that it needs a compiler only)
# ALL      every library is, so that a wheel carries the same ones whatever the machine has
#
# Without a network: -DFETCHCONTENT_SOURCE_DIR_<NAME>=FOLDER for each of the names below.
set(HEADRACE_FETCH_DEPENDENCIES OFF CACHE STRING "Libraries built from downloaded sources: OFF, MISSING or ALL")
if(NOT HEADRACE_FETCH_DEPENDENCIES MATCHES "^(OFF|MISSING|ALL)$")
  message(FATAL_ERROR "HEADRACE_FETCH_DEPENDENCIES is OFF, MISSING or ALL, not ${HEADRACE_FETCH_DEPENDENCIES}.")
endif()

find_package(Threads REQUIRED)
if(NOT HEADRACE_FETCH_DEPENDENCIES STREQUAL "ALL")
  if(HEADRACE_FETCH_DEPENDENCIES STREQUAL "OFF")
    set(headrace_required REQUIRED)
  endif()
  find_package(TBB CONFIG ${headrace_required})
  find_package(nlohmann_json 3.9 CONFIG ${headrace_required})
  find_package(simdjson 3.0 CONFIG ${headrace_required})
  find_package(fmt 9 CONFIG ${headrace_required})
  find_package(PkgConfig ${headrace_required})
  if(PkgConfig_FOUND)
    pkg_check_modules(isal ${headrace_required} IMPORTED_TARGET libisal)
  endif()
  find_package(SQLite3 3.36 ${headrace_required})  # databases of Ascend profilers
  find_package(Boost 1.74 ${headrace_required})    # headers only: Boost.Lockfree
endif()
if(HEADRACE_FETCH_DEPENDENCIES STREQUAL "OFF")
  return()
endif()

enable_language(C)
include(FetchContent)
if(POLICY CMP0135)
  cmake_policy(SET CMP0135 NEW)  # times of files: those of the download
endif()

# Archives of the releases that Debian 12 has, which are the ones that the tests run with.
set(tbb_archive https://github.com/oneapi-src/oneTBB/archive/refs/tags/v2021.8.0.tar.gz
  eee380323bb7ce864355ed9431f85c43955faaae9e9bce35c62b372d7ffd9f8b)
set(nlohmann_json_archive https://github.com/nlohmann/json/archive/refs/tags/v3.11.2.tar.gz
  d69f9deb6a75e2580465c6c4c5111b89c4dc2fa94e3a85fcd2ffcd9a143d9273)
set(simdjson_archive https://github.com/simdjson/simdjson/archive/refs/tags/v3.0.1.tar.gz
  156b1bc5eb0561b2bd166b46d191fd3d95a3e709cc63761477d3b7aec2b6e9ed)
set(fmt_archive https://github.com/fmtlib/fmt/archive/refs/tags/9.1.0.tar.gz
  5dea48d1fcddc3ec571ce2058e13910a0d4a6bab4cc09a809d8b1dd1c88ae6f2)
set(isal_archive https://github.com/intel/isa-l/archive/refs/tags/v2.30.0.tar.gz
  bcf592c04fdfa19e723d2adf53d3e0f4efd5b956bb618fed54a1108d76a6eb56)
set(boost_archive https://archives.boost.io/release/1.74.0/source/boost_1_74_0.tar.bz2
  83bfc1507731a0906e387fc28b7ef5417d591429e51e788417fe9ff025e116b1)
set(sqlite3_archive https://www.sqlite.org/2022/sqlite-amalgamation-3400100.zip
  49112cc7328392aa4e3e5dae0b2f6736d0153430143d21f69327788ff4efe734)

# Brings a library along, unless `target`, its name after find_package, is known. More arguments: FetchContent_Declare's.
function(headrace_fetch name target)
  if(TARGET ${target})
    return()
  endif()
  message(STATUS "${target} is built from its sources")
  list(GET ${name}_archive 0 url)
  list(GET ${name}_archive 1 sha256)
  FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${sha256} ${ARGN})

  # They end in a module of which Python sees one function; and none of their own tests and options is ours.
  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  set(CMAKE_UNITY_BUILD OFF)
  set(TBB_TEST OFF)
  set(TBB_STRICT OFF)
  set(TBBMALLOC_BUILD OFF)
  # Their oldest CMake is one that CMake 4 no longer imitates.
  set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
  # Such a `set` counts although the library has an option() of that name.
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
  FetchContent_MakeAvailable(${name})
  if(TARGET ${target})
    # Their headers' warnings are not ours (CMake 3.25; an older one shows them).
    get_target_property(library ${target} ALIASED_TARGET)
    set_target_properties(${library} PROPERTIES SYSTEM ON)
  endif()
  set(${name}_SOURCE_DIR ${${name}_SOURCE_DIR} PARENT_SCOPE)
endfunction()

headrace_fetch(tbb TBB::tbb)
headrace_fetch(nlohmann_json nlohmann_json::nlohmann_json)
headrace_fetch(simdjson simdjson::simdjson)
headrace_fetch(fmt fmt::fmt)

# These three have no CMakeLists.txt.
headrace_fetch(boost Boost::headers SOURCE_SUBDIR none)
if(boost_SOURCE_DIR)
  add_library(headrace_boost INTERFACE)
  target_include_directories(headrace_boost SYSTEM INTERFACE ${boost_SOURCE_DIR})
  add_library(Boost::headers ALIAS headrace_boost)
endif()
headrace_fetch(isal PkgConfig::isal SOURCE_SUBDIR none)
if(isal_SOURCE_DIR)
  include(${CMAKE_CURRENT_LIST_DIR}/isal.cmake)
endif()
headrace_fetch(sqlite3 SQLite::SQLite3 SOURCE_SUBDIR none)
if(sqlite3_SOURCE_DIR)
  add_library(headrace_sqlite3 STATIC ${sqlite3_SOURCE_DIR}/sqlite3.c)
  target_include_directories(headrace_sqlite3 PUBLIC ${sqlite3_SOURCE_DIR})
  target_compile_definitions(headrace_sqlite3 PRIVATE SQLITE_OMIT_LOAD_EXTENSION)
  set_target_properties(headrace_sqlite3 PROPERTIES POSITION_INDEPENDENT_CODE ON UNITY_BUILD OFF)
  add_library(SQLite::SQLite3 ALIAS headrace_sqlite3)
endif()

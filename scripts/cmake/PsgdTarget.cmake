# What every target of ours shares: warnings as errors, instruction set, sanitizers, the precompiled header.

# LibTorch's own packages do not all mark their headers as system headers; ours must see no warning of theirs.
add_library(psgd_dependencies INTERFACE)
target_include_directories(psgd_dependencies SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(psgd_dependencies INTERFACE ${TORCH_LIBRARIES} MPI::MPI_CXX nlohmann_json::nlohmann_json
                                                  spdlog::spdlog CLI11::CLI11 Threads::Threads)

add_library(psgd_flags INTERFACE)
target_include_directories(psgd_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(psgd_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC sees overflows where there are none: 12 in std::string's concatenation (GCC bug 105651), 14 in a vector<bool>
  # that LibTorch's headers inline into our code.
  target_compile_options(psgd_flags INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
target_compile_options(psgd_flags INTERFACE ${TORCH_CXX_FLAGS})
# An FMA rounds once where a product and a sum round twice. The compiler must not choose between them, or results
# would depend on how a loop was vectorised; kernels ask for FMA where they want it.
target_compile_options(psgd_flags INTERFACE -ffp-contract=off)
if(PSGD_MARCH)
  target_compile_options(psgd_flags INTERFACE -march=${PSGD_MARCH})
endif()
if(PSGD_SANITIZE)
  # Undefined behaviour ends the program, as the other findings do: a line on stderr alone would fail no test.
  target_compile_options(psgd_flags INTERFACE -fsanitize=${PSGD_SANITIZE} -fno-sanitize-recover=undefined
                                              -fno-omit-frame-pointer)
  target_link_options(psgd_flags INTERFACE -fsanitize=${PSGD_SANITIZE})
endif()

# One precompiled header for the whole tree: LibTorch's headers take longer to read than all of our code.
file(WRITE ${CMAKE_BINARY_DIR}/pch/pch.cpp "// Carries the precompiled header.\n")
add_library(psgd_pch OBJECT ${CMAKE_BINARY_DIR}/pch/pch.cpp)
target_link_libraries(psgd_pch PRIVATE psgd_flags psgd_dependencies)
target_precompile_headers(psgd_pch PRIVATE <torch/torch.h> <nlohmann/json.hpp> <map> <memory> <string> <vector>
                                           <functional> <filesystem>)

# Reading the precompiled header takes GCC some 4 s a file. A folder's files are therefore compiled as one unit, which
# makes a build from nothing three times faster. -DPSGD_UNITY=OFF compiles file by file, for faster small changes.
option(PSGD_UNITY "Compile each folder's files as one unit" ON)

function(psgd_compile target)
  target_link_libraries(${target} PRIVATE psgd_flags)
  if(PSGD_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # With sanitizers GCC 12 takes parts of std::regex for uninitialised (GCC bug 105562).
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  target_precompile_headers(${target} REUSE_FROM psgd_pch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PSGD_UNITY} UNITY_BUILD_BATCH_SIZE 20)
endfunction()

# psgd_library(NAME SOURCES... [REGISTERED SOURCES...]): objects, not an archive, so that files which register
# themselves are never dropped. Those, after REGISTERED, are compiled each by itself: whoever adds one need not know
# the names in the others.
function(psgd_library name)
  cmake_parse_arguments(PARSE_ARGV 1 library "" "" "REGISTERED")
  add_library(${name}_objects OBJECT ${library_UNPARSED_ARGUMENTS} ${library_REGISTERED})
  set_source_files_properties(${library_REGISTERED} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  psgd_compile(${name}_objects)
  target_link_libraries(${name}_objects PUBLIC psgd_dependencies)
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${name}_objects psgd_dependencies)
  target_sources(${name} INTERFACE $<TARGET_OBJECTS:${name}_objects>)
endfunction()

if(PSGD_SANITIZE)
  add_library(psgd_keep_libraries OBJECT ${PROJECT_SOURCE_DIR}/tests/support/sanitizers/keep_libraries.cpp)
endif()

# psgd_program(NAME SOURCES...)
function(psgd_program name)
  add_executable(${name} ${ARGN})
  psgd_compile(${name})
  target_link_libraries(${name} PRIVATE psgd_dependencies)
  if(PSGD_SANITIZE)
    target_link_libraries(${name} PRIVATE psgd_keep_libraries)
    target_link_options(${name} PRIVATE LINKER:--export-dynamic-symbol=dlclose)
  endif()
endfunction()

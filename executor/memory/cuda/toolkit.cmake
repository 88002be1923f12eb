# Where CUDA's headers and compiler are, if anywhere: COMMTUNE_NVCC, COMMTUNE_CUDA_INCLUDE (cuda.h),
# COMMTUNE_NVML_INCLUDE, COMMTUNE_NCCL_INCLUDE, and COMMTUNE_CUDA, which is true where commtune is built with it.
# Nothing of it is linked: what runs loads NVIDIA's driver and NCCL where a host has them.

# commtune_add_kernels(TARGET NAMESPACE NAME...)
# Compiles kernels/NAME.cu for GPUs from Turing to Hopper, and as PTX for newer ones, and puts the result into TARGET,
# which finds it by the function NAME() of NAMESPACE.
function(commtune_add_kernels TARGET NAMESPACE)
  foreach(NAME IN ITEMS ${ARGN})
    set(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/kernels/${NAME}.cu)
    set(IMAGE ${CMAKE_CURRENT_BINARY_DIR}/${NAME}.fatbin)
    add_custom_command(OUTPUT ${IMAGE} DEPENDS ${SOURCE} DEPFILE ${IMAGE}.d
      COMMAND ${COMMTUNE_NVCC} -fatbin -std=c++17 -O3 -ccbin ${CMAKE_CXX_COMPILER} -Werror all-warnings
        -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80
        -gencode arch=compute_86,code=sm_86 -gencode arch=compute_89,code=sm_89
        -gencode arch=compute_90,code=[sm_90,compute_90]
        -I ${PROJECT_SOURCE_DIR} -MD -MF ${IMAGE}.d -o ${IMAGE} ${SOURCE}
      COMMENT "Compiling kernels ${NAME}" VERBATIM)
    set(HOLDER ${CMAKE_CURRENT_BINARY_DIR}/${NAME}_image.cc)
    configure_file(${PROJECT_SOURCE_DIR}/executor/memory/cuda/kernel_image.cc.in ${HOLDER} @ONLY)
    # Link-time optimisation does not see what the assembler defines.
    set_source_files_properties(${HOLDER} PROPERTIES OBJECT_DEPENDS ${IMAGE} SKIP_UNITY_BUILD_INCLUSION ON
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS -fno-lto)
    target_sources(${TARGET} PRIVATE ${HOLDER})
  endforeach()
endfunction()

set(COMMTUNE_WITH_CUDA AUTO CACHE STRING "Build what uses NVIDIA's GPUs: AUTO (where its headers and compiler are), ON or OFF")
set(COMMTUNE_CUDA OFF)
set(COMMTUNE_CUDA_STATE "left out: COMMTUNE_WITH_CUDA is OFF")
if(COMMTUNE_WITH_CUDA STREQUAL "OFF")
  return()
endif()

file(GLOB FOLDERS /usr/local/cuda /usr/local/cuda-*)
set(HINTS $ENV{CUDA_HOME} ${FOLDERS})
execute_process(COMMAND ${PROJECT_SOURCE_DIR}/.ci/toolkit OUTPUT_VARIABLE FOLDER OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE MISSES ERROR_QUIET)
if(NOT MISSES)
  list(APPEND HINTS ${FOLDER}/cu13 ${FOLDER}/nccl)
endif()
find_program(COMMTUNE_NVCC nvcc HINTS ${HINTS} PATH_SUFFIXES bin)
find_path(COMMTUNE_CUDA_INCLUDE cuda.h HINTS ${HINTS} PATH_SUFFIXES include)
find_path(COMMTUNE_NVML_INCLUDE nvml.h HINTS ${HINTS} PATH_SUFFIXES include)
find_path(COMMTUNE_NCCL_INCLUDE nccl.h HINTS ${HINTS} PATH_SUFFIXES include)
mark_as_advanced(COMMTUNE_NVCC COMMTUNE_CUDA_INCLUDE COMMTUNE_NVML_INCLUDE COMMTUNE_NCCL_INCLUDE)

set(MISSING "")
foreach(PART IN ITEMS NVCC CUDA_INCLUDE NVML_INCLUDE NCCL_INCLUDE)
  if(NOT COMMTUNE_${PART})
    list(APPEND MISSING ${PART})
  endif()
endforeach()
list(TRANSFORM MISSING REPLACE "NVCC" "nvcc")
list(TRANSFORM MISSING REPLACE "^(.*)_INCLUDE$" "\\1")
string(TOLOWER "${MISSING}" MISSING)
list(TRANSFORM MISSING REPLACE "^(cuda|nvml|nccl)$" "\\1.h")
list(JOIN MISSING ", " MISSING)
if(MISSING STREQUAL "")
  set(COMMTUNE_CUDA ON)
  file(STRINGS ${COMMTUNE_CUDA_INCLUDE}/cuda.h VERSION REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX REPLACE ".* ([0-9]+)$" "\\1" VERSION "${VERSION}")
  math(EXPR MAJOR "${VERSION} / 1000")
  math(EXPR MINOR "${VERSION} % 1000 / 10")
  set(COMMTUNE_CUDA_STATE "${MAJOR}.${MINOR} of ${COMMTUNE_CUDA_INCLUDE}, NVIDIA's driver and NCCL when it runs")
else()
  set(COMMTUNE_CUDA_STATE "left out: ${MISSING} not found (.ci/install gpu)")
  if(COMMTUNE_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "COMMTUNE_WITH_CUDA is ON: ${MISSING} not found in /usr/local/cuda*, CUDA_HOME or the package group gpu (.ci/install gpu)")
  endif()
endif()

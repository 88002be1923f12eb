# What measures a GPU: programs of the bundle that tests/gpu/run starts.
if(COMMTUNE_CUDA)
  set(RANKS ${PROJECT_SOURCE_DIR}/tests/executor/forked_ranks.cc ${PROJECT_SOURCE_DIR}/tests/executor/random_plan.cc
    ${PROJECT_SOURCE_DIR}/tests/gpu/gpu_ranks.cc)
  commtune_add_gpu_program(gpu_memory
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_memory.cc
    LIBS commtune::executor_memory commtune::perfmodel fmt::fmt)
  commtune_add_gpu_program(gpu_executor
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_executor.cc ${RANKS}
    LIBS commtune::executor fmt::fmt GTest::gtest)
  commtune_add_gpu_program(gpu_replay
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_replay.cc ${RANKS}
    LIBS commtune::executor fmt::fmt GTest::gtest)
  # What NCCL takes, and what its tuner plugin gains.
  commtune_add_gpu_program(gpu_tuning
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_tuning.cc ${RANKS}
    LIBS commtune::executor commtune::probes_analysis commtune::probes_sampling commtune::tuner fmt::fmt GTest::gtest)
  target_compile_definitions(gpu_tuning PRIVATE COMMTUNE_TUNER_PLUGIN="$<TARGET_FILE:nccl-tuner-commtune>")
  add_dependencies(gpu_tuning nccl-tuner-commtune)
  commtune_add_gpu_program(gpu_probe
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_probe.cc ${RANKS}
    LIBS commtune::executor commtune::probes fmt::fmt GTest::gtest)
  # Whether layers that are timed one by one add up. It skips on the stand-in, which has no cuDNN.
  commtune_add_gpu_program(gpu_profile
    SOURCES ${CMAKE_CURRENT_LIST_DIR}/gpu_profile.cc
    LIBS commtune::probes_compute_gpu commtune::probes_architecture commtune::perfmodel fmt::fmt)
endif()

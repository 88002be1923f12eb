# What measures the executor: build/tests/bench/executor_bench, which tests/bench/executor runs.
add_executable(executor_bench ${CMAKE_CURRENT_LIST_DIR}/executor_bench.cc)
target_link_libraries(executor_bench PRIVATE commtune::executor commtune::warnings fmt::fmt MPI::MPI_C)
target_compile_definitions(executor_bench PRIVATE OMPI_SKIP_MPICXX)

# What a session costs: needs neither MPI nor an emulated cluster.
add_executable(session_bench ${CMAKE_CURRENT_LIST_DIR}/session_bench.cc)
target_link_libraries(session_bench PRIVATE commtune::executor commtune::warnings fmt::fmt)

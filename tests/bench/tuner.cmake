# What measures the tuner: build/tests/bench/{gap,planning,survey}
set(here ${CMAKE_CURRENT_LIST_DIR})
add_library(bench_made_up ${here}/made_up.cc)
target_link_libraries(bench_made_up PUBLIC commtune::perfmodel PRIVATE commtune::warnings)
add_executable(gap ${here}/gap.cc)
target_link_libraries(gap PRIVATE bench_made_up commtune::tuner fmt::fmt commtune::warnings)

# What measures the sampling plan of a probe, without a network: build/tests/bench/sampling
set(here ${CMAKE_CURRENT_LIST_DIR})
add_executable(sampling
  ${here}/sampling.cc
  ${here}/sampling_figures.cc
  ${here}/sampling_for.cc
  ${here}/drawn_choice.cc
  ${here}/drawn_cluster.cc
  ${here}/drawn_probe.cc)
target_link_libraries(sampling PRIVATE commtune::api_advice commtune::probes commtune::tuner fmt::fmt commtune::warnings)
add_dependencies(unit_tests sampling)
add_test(NAME bench.sampling COMMAND ${here}/sampling_test.py $<TARGET_FILE:sampling>)
set_tests_properties(bench.sampling PROPERTIES LABELS unit TIMEOUT 120)

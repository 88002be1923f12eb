#pragma once
// Where NVIDIA's libraries may lie beside the system's library path.

#include <string>
#include <string_view>
#include <vector>

namespace commtune::compute {

/// The lib folders of NVIDIA's packages (nvidia-cudnn-cu13, nvidia-cublas and so on) of the first python3 on
/// `path`, a list of folders as PATH has it: those of the environment of which that python3 is part.
std::vector<std::string> python_library_folders(std::string_view path);

}  // namespace commtune::compute

#pragma once
// The kernels of kernels/, compiled for every GPU that the build knows: what Module loads.

namespace commtune::compute::images {

const void* profile();

}  // namespace commtune::compute::images

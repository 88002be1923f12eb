#pragma once
// The kernels of kernels/, compiled for every GPU that the build knows: what Module loads.

namespace commtune::probes::images {

const void* compute();

}  // namespace commtune::probes::images

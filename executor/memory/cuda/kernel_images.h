#pragma once
// The kernels of kernels/, compiled for every GPU that the build knows: what Module loads.

namespace commtune::cuda::images {

const void* elementwise();
const void* parts();
const void* busy();

}  // namespace commtune::cuda::images

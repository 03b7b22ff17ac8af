#include "headrace/analysis/device/device_work.h"

#include <gtest/gtest.h>

namespace headrace::analysis::device {
namespace {

TEST(KernelKind, KnowsCollectivesOfEveryLibrary) {
  for (const char* name :
       {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "nccl:all_reduce", "void ncclDevKernel_Generic<4>()",
        "rcclGenericKernel", "hcclAllReduce", "void vllm::cross_device_reduce_1stage<half, 2>()",
        "mscclKernel_Sum_float_Simple"}) {
    EXPECT_EQ(kind_of_kernel(name), KernelKind::communication) << name;
  }
}

TEST(KernelKind, KnowsCopiesAndFills) {
  for (const char* name : {"Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "hipMemcpyDtoD",
                           "hipMemsetAsync", "__amd_rocclr_copyBuffer", "dma_in"}) {
    EXPECT_EQ(kind_of_kernel(name), KernelKind::memory) << name;
  }
  EXPECT_EQ(kind_of_work(trace::EventKind::memory_copy, "CopyHostToDevice"), KernelKind::memory);
  EXPECT_EQ(kind_of_work(trace::EventKind::kernel, "CopyHostToDevice"), KernelKind::computation);
}

TEST(KernelKind, AKernelThatMentionsAWaitOrACopyStillComputes) {
  for (const char* name : {"void batch_norm_SyncBN_kernel<float>()", "void at::native::MemcpyLike<int>()",
                           "volta_dmaless_gemm", "hip_kernel_of_a_user", ""}) {
    EXPECT_EQ(kind_of_kernel(name), KernelKind::computation) << name;
  }
  EXPECT_EQ(kind_of_kernel("Event Sync"), KernelKind::other);
  EXPECT_EQ(kind_of_kernel("Stream Wait Event"), KernelKind::other);
}

}  // namespace
}  // namespace headrace::analysis::device

"""Variables that decide how a run computes: on which accelerators, and how ranks exchange."""

OF_ACCELERATORS = (
    "CUDA_*", "CUDNN_*", "NVIDIA_*", "NCCL_*", "ROCR_*", "HIP_*", "HSA_*", "TF_*", "XLA_*",
    "HOROVOD_*", "GLOO_*", "OMPI_MCA_*", "OMPI_ALLOW_*", "PMIX_MCA_*", "PRTE_MCA_*", "UCX_*",
    "FI_*", "OMP_*", "KMP_*", "MKL_*", "OPENBLAS_*",
)  # fmt: skip
"""Names, in which * stands for any characters."""

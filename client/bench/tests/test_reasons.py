from __future__ import annotations

from attune_bench.reasons import sdpa_reason

ERROR = "No available kernel. Aborting execution.\nmore"
WARNINGS = [
    "Memory efficient kernel not used because: (Triggered internally at sdp_utils.cpp:774.)",
    "Memory Efficient attention has been runtime disabled. (Triggered internally at sdp_utils_cpp.h:551.)",
    "For dense input, K and V must have as many heads. (Triggered internally at sdp_utils_cpp.h:520.)",
    "Flash attention kernel not used because: (Triggered internally at sdp_utils.cpp:776.)",
    "Flash attention requires head_dim <= 256. (Triggered internally at sdp_utils.cpp:200.)",
    "CuDNN attention kernel not used because: (Triggered internally at sdp_utils.cpp:778.)",
    "head_dim should be no more than 128 (Triggered internally at sdp_utils.cpp:500.)",
]


def test_a_backend_gets_its_own_reason():
    assert sdpa_reason("flash", WARNINGS, ERROR) == "Flash attention requires head_dim <= 256."
    assert sdpa_reason("cudnn", WARNINGS, ERROR) == "head_dim should be no more than 128"


def test_that_it_was_switched_off_is_no_reason():
    assert sdpa_reason("efficient", WARNINGS, ERROR) == "For dense input, K and V must have as many heads."


def test_without_warnings_the_error_is_the_reason():
    assert sdpa_reason("cudnn", [], ERROR) == "No available kernel. Aborting execution."
    assert sdpa_reason("cudnn", [], "") == "no reason given"

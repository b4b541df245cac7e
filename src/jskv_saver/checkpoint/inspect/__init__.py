"""Looking at what is stored: threads, a thread's history, one checkpoint.

For tools, over any document store. Nothing is written, and no user's type is ever
deserialised: values are decoded generically and shown as text.
"""

from jskv_saver.checkpoint.inspect.detail import (
    PREVIEW,
    CheckpointDetail,
    ValueInfo,
    WriteInfo,
    checkpoint_detail,
)
from jskv_saver.checkpoint.inspect.history import (
    CheckpointInfo,
    ThreadHistory,
    thread_history,
)
from jskv_saver.checkpoint.inspect.plan import (
    FollowedStep,
    PlannedTask,
    ReplayPlan,
    next_tasks,
    replay_plan,
)
from jskv_saver.checkpoint.inspect.preview import escaped
from jskv_saver.checkpoint.inspect.threads import (
    ThreadInfo,
    ThreadRef,
    find_thread,
    list_threads,
)

__all__ = [
    "PREVIEW",
    "CheckpointDetail",
    "CheckpointInfo",
    "FollowedStep",
    "PlannedTask",
    "ReplayPlan",
    "ThreadHistory",
    "ThreadInfo",
    "ThreadRef",
    "ValueInfo",
    "WriteInfo",
    "checkpoint_detail",
    "escaped",
    "find_thread",
    "list_threads",
    "next_tasks",
    "replay_plan",
    "thread_history",
]

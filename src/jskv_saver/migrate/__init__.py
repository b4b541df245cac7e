"""Moving threads from one LangGraph saver to another, through their public methods."""

from jskv_saver.migrate.moving import migrate
from jskv_saver.migrate.report import Outcome, Report, ThreadReport

__all__ = ["Outcome", "Report", "ThreadReport", "migrate"]

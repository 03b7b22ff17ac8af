"""What runs in the user's process: sessions, operators, steps, and the loops of trials."""

from headrace.common.recording import require_recording

require_recording("recording")

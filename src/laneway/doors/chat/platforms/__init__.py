"""The platforms on which conversations are shown; each implements `laneway.doors.chat.platform.ChatPlatform`."""

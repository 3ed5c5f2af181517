"""The platforms that show conversations; each implements `laneway.doors.chat.platform.ChatPlatform`."""

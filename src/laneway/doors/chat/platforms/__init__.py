"""The platforms on which conversations are shown; each implements `ChatPlatform`."""

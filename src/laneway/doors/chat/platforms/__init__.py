"""The platforms on which conversations are shown: implementations of `ChatPlatform`."""

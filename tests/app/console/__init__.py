"""The console as a process, beside others that it reaches: sessions, jobs, mail and checks."""

"""What attention knows of the service's answers, and the thread that asks for them: no call waits for the service.
Nothing here needs torch."""

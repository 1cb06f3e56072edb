"""The HTTP face of tasks: requests become values, verbs and reads do the work, views become documents."""

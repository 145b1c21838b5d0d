"""Skills: folders with instructions, scripts and files for kinds of tasks, which an agent reads when it has such a task."""

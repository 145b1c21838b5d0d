"""Schedules: runs that start by themselves, at times that a cron names."""

import os
import sys

key = os.environ.get("WEATHER_KEY", "no key")
print(f"{sys.argv[1]}: sunny ({len(key)} letters of key, {key})")

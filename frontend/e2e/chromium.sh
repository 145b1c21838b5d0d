#!/bin/sh
# Debian's Chromium without parts of its window that no page sees and that cost each new window a second of CPU time: the lists below
# the address bar, which are pages of their own, and a process that waits for a next site. Playwright's own list of features stays.
for argument; do
    shift
    case $argument in
    --disable-features=*) argument=$argument,WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess ;;
    esac
    set -- "$@" "$argument"
done
exec "${CHROMIUM:-/usr/bin/chromium}" "$@"

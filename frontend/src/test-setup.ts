import { cleanup, configure } from "@testing-library/react";
import { afterAll, afterEach, vi } from "vitest";

// Nothing here measures time: on a loaded machine what a test waits for comes later.
configure({ asyncUtilTimeout: 10_000 });

// Files share a window. Each has modules of its own, and what it left goes with it.
vi.resetModules();

afterEach(() => {
  cleanup();
  document.body.replaceChildren();
  localStorage.clear();
  sessionStorage.clear();
});

afterAll(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

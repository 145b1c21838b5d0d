import { cleanup, configure } from "@testing-library/react";
import { afterEach } from "vitest";

// Nothing here measures time: on a loaded machine what a test waits for comes later.
configure({ asyncUtilTimeout: 10_000 });

afterEach(() => {
  cleanup();
  localStorage.clear();
  sessionStorage.clear();
});

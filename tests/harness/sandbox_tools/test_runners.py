"""The table of test runners."""

from __future__ import annotations

import pytest

from deerflow.tools.runners import invocation


@pytest.mark.parametrize(
    ("command", "argv", "env", "directory"),
    [
        ("pytest", ["pytest"], {}, ""),
        ("cd a && pytest -q 2>&1", ["pytest", "-q"], {}, "a"),
        (
            "cd 'a b' && CI=1 ./.venv/bin/pytest -k 'a; b'",
            ["./.venv/bin/pytest", "-k", "a; b"],
            {"CI": "1"},
            "a b",
        ),
        ("# run\npython3.12 -X dev -m pytest -x", ["python3.12", "-X", "dev", "-m", "pytest", "-x"], {}, ""),
        ("env A=1 pytest", ["pytest"], {"A": "1"}, ""),
        ("time pytest", ["pytest"], {}, ""),
        ("python -m unittest -v", ["python", "-m", "unittest", "-v"], {}, ""),
        ("./manage.py test", ["./manage.py", "test"], {}, ""),
        ("python manage.py test shop", ["python", "manage.py", "test", "shop"], {}, ""),
        ("node --test", ["node", "--test"], {}, ""),
        ("npm test", ["npm", "test"], {}, ""),
        ("npm run test:unit", ["npm", "run", "test:unit"], {}, ""),
        ("pnpm -C web test", ["pnpm", "-C", "web", "test"], {}, ""),
        ("make -C a test", ["make", "-C", "a", "test"], {}, ""),
        ("make check", ["make", "check"], {}, ""),
        ("uv run pytest", ["uv", "run", "pytest"], {}, ""),
        ("timeout 60 pytest", ["timeout", "60", "pytest"], {}, ""),
        ("npx vitest run", ["npx", "vitest", "run"], {}, ""),
        ("go test ./...", ["go", "test", "./..."], {}, ""),
        ("cargo test --all", ["cargo", "test", "--all"], {}, ""),
        ("mvn -q test", ["mvn", "-q", "test"], {}, ""),
        ("pytest 'tests/t.py::t[1]'", ["pytest", "tests/t.py::t[1]"], {}, ""),
        (
            "cd web && X=1 node --test tests/*.js",
            ["bash", "--norc", "--noprofile", "-c", "X=1 node --test tests/*.js"],
            {},
            "web",
        ),
    ],
)
def test_a_command_that_is_a_test_runner_can_be_run_again(
    command: str, argv: list[str], env: dict[str, str], directory: str
) -> None:
    found = invocation(command)
    assert found is not None and (found.argv, found.env, found.directory) == (argv, env, directory)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q\necho finished",
        "make test; echo done",
        "npm test; echo ok",
        "pytest(){ :; }; pytest",
        "pytest(){ :; }\npytest",
        "pytest || true",
        "pytest | tail -3",
        "pytest > out",
        "pytest & wait",
        "(pytest)",
        "! pytest",
        "pytest $(echo -x)",
        "pytest `echo -x`",
        "pytest # and more",
        "cd a; pytest",
        "trap 'exit 0' EXIT && pytest",
        "PATH=/tmp/forged pytest",
        "env PATH=/tmp/forged pytest",
        "LD_PRELOAD=/tmp/forged.so pytest tests/*",
        "pip install pytest",
        "which pytest",
        "npm install test",
        "make clean",
        "echo pytest",
        "pytest 'unclosed",
        "x" * 1001,
        "",
    ],
)
def test_a_command_that_does_more_or_else_is_none(command: str) -> None:
    assert invocation(command) is None


@pytest.mark.parametrize(
    ("command", "output", "counted"),
    [
        ("pytest", "..\n===== 3 passed, 1 skipped, 2 warnings in 0.12s =====\n", (3, 0)),
        ("pytest -q", "F.\n1 failed, 1 passed in 61.20s (0:01:01)\n", (1, 1)),
        ("pytest", "\x1b[32m===== \x1b[1m2 passed\x1b[0m\x1b[32m in 0.1s =====\x1b[0m", (2, 0)),
        ("pytest", "= 1 error in 0.10s =", (0, 1)),
        ("pytest --version", "pytest 8.4.1\n", (0, 0)),
        ("pytest --collect-only", "t.py::t\n\n3 tests collected in 0.01s\n", (0, 0)),
        ("pytest", "no tests ran in 0.01s\n", (0, 0)),
        ("./manage.py test", "Found 3 test(s).\n...\nRan 3 tests in 0.004s\n\nOK\n", (3, 0)),
        ("python -m unittest", "Ran 2 tests in 0s\n\nFAILED (failures=1, errors=1)\n", (2, 2)),
        ("python -m unittest", "Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", (0, 0)),
        ("node --test", "# tests 3\n# pass 2\n# fail 1\n", (2, 1)),
        ("node --test", "ℹ tests 3\nℹ pass 3\nℹ fail 0\n", (3, 0)),
        ("npm test", "Tests:       1 failed, 2 passed, 3 total\n", (2, 1)),
        ("npx vitest run", " Test Files  1 passed (1)\n      Tests  3 passed (3)\n", (3, 0)),
        ("npx mocha", "  3 passing (10ms)\n  1 failing\n", (3, 1)),
        ("npx playwright test", "  3 passed (1.2s)\n", (3, 0)),
        ("go test ./...", "ok  \ta/b\t0.01s\nok  \tc\t0.1s [no tests to run]\n?   \td\t[no test files]\n", (1, 0)),
        ("go test ./...", "--- FAIL: TestA\nFAIL\ta/b\t0.1s\nFAIL\n", (0, 1)),
        (
            "cargo test",
            "test result: ok. 3 passed; 0 failed; 0 ignored\ntest result: ok. 1 passed; 0 failed;\n",
            (4, 0),
        ),
        ("phpunit", "Tests: 3, Assertions: 5, Failures: 1.\n", (0, 1)),
        ("phpunit", "OK (3 tests, 5 assertions)\n", (3, 0)),
        ("rspec", "3 examples, 1 failure\n", (3, 1)),
        ("dotnet test", "Passed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3\n", (3, 0)),
        ("mvn test", "[INFO] Tests run: 3, Failures: 0, Errors: 1, Skipped: 0\n", (3, 1)),
        ("ctest", "100% tests passed, 0 tests failed out of 3\n", (3, 0)),
        ("deno test", "ok | 3 passed | 0 failed (10ms)\n", (3, 0)),
        ("bun test", " 3 pass\n 0 fail\n", (3, 0)),
        ("make test", "python -m unittest\nRan 2 tests in 0.1s\n\nOK\n", (2, 0)),
        ("make test", "true\n", (0, 0)),
    ],
)
def test_a_summary_says_how_many_tests_there_were(command: str, output: str, counted: tuple[int, int]) -> None:
    found = invocation(command)
    assert found is not None and found.count(output) == counted
